// A checkout over three pages, killed at each point that matters, 50 times each. Whatever the point: the call settles once,
// with the receipt; no callback runs twice; each token is redeemed once; and it was a new worker that brought it to its end.
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVERYTHING_ONCE, type Rig, startRig } from './rig.ts';
import type { Fault } from './worker.ts';

/** How often each point is hit at least, over its cases together. */
const HITS = 50;

let rig: Rig;
let rounds = 0;

beforeAll(async () => {
  rig = await startRig();
});

afterAll(() => rig.close());

/** How one checkout is disturbed: armed before the call, or killed from outside while it runs. Gives the generation that died. */
type Disturbance = { fault: Fault } | { kill: () => Promise<string> };

async function checkout(disturbance: Disturbance): Promise<void> {
  rounds += 1;
  const address = `Elm ${rounds}`;
  await rig.open(`${rounds}`);
  if ('fault' in disturbance) await rig.arm(disturbance.fault);
  const outcome = rig.call(`${rounds}`);
  outcome.catch(() => {});
  const killed = 'fault' in disturbance ? await killStopped() : await disturbance.kill();
  const settled = await outcome;
  // The promise of the last redemption may settle after the outcome.
  await rig.shop.waitFor(() => sessionStorage['confirmation redeemed'] !== undefined).catch(() => {});
  const result = JSON.stringify({ receipt: address });
  const outputs = [`billed ${address}`, `shipped ${address}`];
  const counters = await rig.counters();
  if (isDeepStrictEqual({ ...settled, counters }, { result, outputs, counters: EVERYTHING_ONCE })) {
    expect(killed).not.toBe('');
    await rig.meet();
    expect(await rig.generation()).not.toBe(killed);
  } else throw new Error(JSON.stringify({ ...settled, counters }));
}

async function killStopped(): Promise<string> {
  await rig.stopped();
  const generation = await rig.generation();
  await rig.kill();
  return generation;
}

/** While the answer of `path` is held. */
function killWhileHeld(path: string): Disturbance {
  return {
    async kill() {
      const gate = rig.hold(path);
      await gate.reached;
      const generation = await rig.generation();
      await rig.kill();
      gate.open();
      return generation;
    },
  };
}

/** One test a case: goes its share of the rounds, all of them, and fails with what went wrong in any. */
function hit<T>(cases: readonly T[], disturb: (one: T) => Disturbance): void {
  const share = Math.ceil(HITS / cases.length);
  test.each(cases.map((one) => ({ one })))(
    `$one, ${share} times`,
    async ({ one }) => {
      const failures: string[] = [];
      for (let round = 0; round < share; round += 1) {
        await checkout(disturb(one)).catch((error) => failures.push(String(error.message)));
      }
      expect(failures).toEqual([]);
    },
    180_000,
  );
}

/** The writes of a checkout, in order: a grant and its page's end, twice after a redemption; the last end; the delivery. */
const WRITES = Array.from({ length: 8 }, (_, turn) => turn);

describe('after a commit, before its acknowledgement: write', () => {
  hit(WRITES, (turn) => ({ fault: { at: 'after-commit', turn } }));
});

describe('before a commit: write', () => {
  hit(WRITES, (turn) => ({ fault: { at: 'before-commit', turn } }));
});

describe('during a navigation: to', () => {
  hit(['/shipping', '/confirmation'], killWhileHeld);
});

describe('after a redemption, before its activation: the page that redeems is', () => {
  hit(['shipping', 'confirmation'], (page) => ({
    fault: { at: 'command activate', turn: page === 'shipping' ? 0 : 1 },
  }));
});

const MOMENTS = [
  'the callback of shipping runs',
  'the callback of confirmation runs',
  'the end of shipping is under way',
  'the end of confirmation is under way',
] as const;

describe('after an activation, before its settlement:', () => {
  hit(MOMENTS, (moment) => {
    const page = moment.includes('shipping') ? 'shipping' : 'confirmation';
    if (moment.includes('callback')) return killWhileHeld(`/pass/${page}`);
    return { fault: { at: 'asked reportEnd', turn: page === 'shipping' ? 1 : 2 } };
  });
});

describe('before the outcome is delivered: the worker misses', () => {
  hit(['command settle', 'reply settle'] as const, (at) => ({ fault: { at, turn: 0 } }));
});

test('an outcome that its caller has is not pending, though the worker died before it knew', async () => {
  await checkout({ fault: { at: 'reply settle', turn: 0 } });
  const pending = await rig.agent.evaluate(() => document.modelContext.getPendingExecutions());
  expect(pending).toEqual([]);
});
