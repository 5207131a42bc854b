// A call to another tab whose tool asks for no token is nowhere but in its two documents. The worker between them dies at
// each step of it: it settles once all the same, with its result, and its callback runs once (C28).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Rig, startRig } from './rig.ts';
import type { Fault } from './worker.ts';

const PLACES: Fault['at'][] = [
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
  kill: (call: Promise<unknown>) => Promise<string>,
  before = async () => {},
): Promise<void> {
  rounds += 1;
  await rig.open(`${rounds}`, '/plain');
  await before();
  const outcome = rig.call(`${rounds}`);
  outcome.catch(() => {});
  const killed = await kill(outcome);
  expect(await outcome).toEqual({ result: `done Elm ${rounds}`, outputs: [] });
  expect(await rig.counters()).toEqual({ 'plain ran': '1' });
  expect(killed).not.toBe('');
  await rig.meet();
  expect(await rig.generation()).not.toBe(killed);
}

test.each(PLACES)('%s', async (at) => {
  for (let time = 0; time < TIMES; time += 1) {
    await call(
      async () => {
        await rig.stopped();
        const generation = await rig.generation();
        await rig.kill();
        return generation;
      },
      () => rig.arm({ at, turn: 0 }),
    );
  }
});

test('while the callback runs', async () => {
  for (let time = 0; time < TIMES; time += 1) {
    const callback = rig.hold('/pass/plain');
    await call(async () => {
      await callback.reached;
      const generation = await rig.generation();
      await rig.kill();
      callback.open();
      return generation;
    });
  }
});
