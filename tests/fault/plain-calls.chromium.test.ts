// Calls to another tab whose tool asks for no token: straight to its document, to which the worker only introduces the caller, and
// by way of the worker. It dies at each step: the call settles once all the same, with its result, and its callback runs once (C28).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Rig, startRig } from './rig.ts';
import type { Fault } from './worker.ts';

const INTRODUCING: Fault['at'][] = ['asked introduce', 'command meet', 'reply meet'];
const KEPT_ALIVE: Fault['at'][] = [
  'asked execute',
  'command activate',
  'reply activate',
  'asked reportEnd',
  'command settle',
  'reply settle',
  'command drop',
];
const TIMES = 5;

let rig: Rig;
let rounds = 0;

beforeAll(async () => {
  rig = await startRig();
});

afterAll(() => rig.close());

async function call(
  keepalive: boolean,
  kill: (call: Promise<unknown>) => Promise<string>,
  before = async () => {},
): Promise<void> {
  rounds += 1;
  await rig.open(`${rounds}`, '/plain');
  await before();
  const outcome = rig.call(`${rounds}`, { keepalive });
  outcome.catch(() => {});
  const killed = await kill(outcome);
  expect(await outcome).toEqual({ result: `done Elm ${rounds}`, outputs: [] });
  expect(await rig.counters()).toEqual({ 'plain ran': '1' });
  expect(killed).not.toBe('');
  await rig.meet();
  expect(await rig.generation()).not.toBe(killed);
}

async function killAt(keepalive: boolean, at: Fault['at']): Promise<void> {
  for (let time = 0; time < TIMES; time += 1) {
    await call(
      keepalive,
      async () => {
        await rig.stopped();
        const generation = await rig.generation();
        await rig.kill();
        return generation;
      },
      () => rig.arm({ at, turn: 0 }),
    );
  }
}

test.each(INTRODUCING)('straight to its document: %s', (at) => killAt(false, at));

test.each(KEPT_ALIVE)('by way of the worker: %s', (at) => killAt(true, at));

test.each([false, true])('while the callback runs; by way of the worker: %s', async (keepalive) => {
  for (let time = 0; time < TIMES; time += 1) {
    const callback = rig.hold('/pass/plain');
    await call(keepalive, async () => {
      await callback.reached;
      const generation = await rig.generation();
      await rig.kill();
      callback.open();
      return generation;
    });
  }
});
