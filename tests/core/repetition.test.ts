/**
 * Every command may be repeated (I2): the second time the same is answered, no callback is told to run, and nothing is
 * changed but the count of revisions and when something was last heard of.
 */
import { describe, expect, test } from 'vitest';
import type { Happening } from '../../sw/core/event.ts';
import type { Execution } from '../../sw/core/state.ts';
import { createWorld, type World } from './harness.ts';
import { aCall, aGrant, returned, threw } from './records.ts';

const ids = { executionId: 'execution', activationId: 'execution' };
const resumed = { executionId: 'execution', activationId: 'resumption' };
const grant = aGrant({ ...ids, digest: 'token', lifetime: 60_000 });

/** A whole story, in which nothing is done twice. */
function theStory(caller: string, target: string): Happening[] {
  const call = aCall({ callerDocumentId: caller, callerTabId: 'agent', documentId: target });
  const presented = { type: 'token-presented', digest: 'token', documentId: target } as const;
  return [
    { type: 'execution-requested', documentId: caller, call },
    { type: 'activation-acknowledged', ...ids, refused: null },
    { type: 'token-requested', documentId: target, ...grant },
    { ...presented, ...resumed },
    { type: 'activation-ended', ...ids, end: returned('on our way') },
    { type: 'activation-acknowledged', ...resumed, refused: null },
    { type: 'activation-ended', ...resumed, end: returned('paid') },
    { type: 'outcome-delivered', executionId: 'execution', documentId: caller },
    { type: 'cancel-requested', executionId: 'execution' },
    { type: 'document-stayed', documentId: target },
    { type: 'document-left', documentId: target, lostCalls: [] },
    { type: 'document-lost', documentId: caller },
    { type: 'time-passed' },
  ];
}

function begin(): { world: World; story: Happening[] } {
  const world = createWorld({ automatic: false });
  const caller = world.opens({ tab: 'agent' });
  const target = world.opens({ tab: 'shop' });
  return { world, story: theStory(caller.documentId, target.documentId) };
}

function essence(execution: Execution) {
  return {
    ...execution,
    revision: 0,
    activations: execution.activations.map((each) => ({ ...each, heardAt: 0 })),
  };
}

describe('each event of a story, told twice', () => {
  const { story } = begin();
  test.each(story.map(({ type }, index) => [index, type] as const))('%i: %s', (index) => {
    const { world, story: told } = begin();
    for (const event of told.slice(0, index)) world.happens(event);
    const event = told[index] as Happening;
    const reply = world.happens(event);
    const once = [...world.state.executions.values()].map(essence);
    world.passes(0);
    expect(world.happens(event)).toEqual(reply);
    expect([...world.state.executions.values()].map(essence)).toEqual(once);
    expect(world.effects.filter(({ type }) => type === 'activate' || type === 'drop')).toEqual([]);
  });

  test('the story ends as it would have', () => {
    const { world, story: told } = begin();
    for (const event of told) for (let times = 0; times < 3; times += 1) world.happens(event);
    expect(world.stateOf('execution')).toBe('result');
    expect(world.execution('execution').activations.map(({ state }) => state)).toEqual([
      'returned',
      'returned',
    ]);
  });
});

describe('an end that is reported differently the second time', () => {
  test.each([
    ['a throw after a return', returned('done'), threw('it broke'), 'result'],
    ['a return after a throw', threw('it broke'), returned('done'), 'tool-failed'],
  ])('%s: the first one counts', (_, first, second, outcome) => {
    const { world, story } = begin();
    for (const event of story.slice(0, 2)) world.happens(event);
    world.happens({ type: 'activation-ended', ...ids, end: first });
    world.happens({ type: 'activation-ended', ...ids, end: second });
    expect(world.stateOf('execution')).toBe(outcome);
  });
});

describe('a command that is read twice by its document', () => {
  test('begins its callback once, and is acknowledged twice', () => {
    const world = createWorld({ automatic: false });
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    const id = caller.calls(page);
    caller.sendsAll();
    const [command] = page.inbox;
    if (command !== undefined) page.inbox.push(command);
    page.readsAll();
    page.sendsAll();
    expect([...world.begun.keys()]).toEqual([id]);
    expect(world.activation(id).state).toBe('running');
  });
});
