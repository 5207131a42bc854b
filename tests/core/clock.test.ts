/**
 * Time: deadlines are times and judged whenever time passes (I5), a clock that jumps back pulls them in and never out, bounds
 * hold, and it is known what time alone has given something to do.
 */
import { describe, expect, test } from 'vitest';
import { isDue } from '../../sw/core/execution.ts';
import type { Execution } from '../../sw/core/state.ts';
import { concerned, step } from '../../sw/core/step.ts';
import { createWorld } from './harness.ts';
import { aDocument, anActivation, anExecution, aState, aToken, at, changedBy, START } from './records.ts';

const HOUR = 3_600_000;

/** A token that counts down: its activation has ended. */
function aCountdown({ lifetime = 60_000 } = {}) {
  const world = createWorld();
  const caller = world.opens({ tab: 'agent' });
  const page = world.opens({ tab: 'shop' });
  const id = caller.calls(page);
  const { digest } = page.requestsToken(id, { lifetime });
  page.returns(id);
  return { world, caller, page, id, digest };
}

describe('a clock that jumps', () => {
  test('an hour ahead: what is over is over', () => {
    const { world, caller, id } = aCountdown();
    world.jumps(HOUR);
    expect(caller.outcomeOf(id)).toBe('failed: token-expired, started');
  });

  test('an hour back: the deadline is pulled in to one lifetime from now', () => {
    const { world, caller, id, digest } = aCountdown();
    world.jumps(-HOUR);
    expect(world.token(digest).deadline).toBe(world.now + 60_000);
    world.passes(60_000);
    expect(caller.outcomeOf(id)).toBe('failed: token-expired, started');
  });

  test('back by less than what was left: the deadline stays', () => {
    const { world, digest } = aCountdown();
    const deadline = world.token(digest).deadline;
    world.passes(50_000);
    world.jumps(-20_000);
    expect(world.token(digest).deadline).toBe(deadline);
  });

  test('back and ahead again: never out', () => {
    const { world, caller, id, digest } = aCountdown();
    world.jumps(-HOUR);
    const deadline = world.token(digest).deadline;
    world.jumps(30_000);
    world.jumps(-10_000);
    expect(world.token(digest).deadline).toBe(deadline);
    world.jumps(HOUR);
    expect(caller.outcomeOf(id)).toBe('failed: token-expired, started');
  });

  test('back, again and again: the deadline follows, and is met in the end', () => {
    const { world, caller, id } = aCountdown();
    for (let times = 0; times < 5; times += 1) world.jumps(-HOUR);
    world.passes(59_999);
    expect(caller.outcomeOf(id)).toBeNull();
    world.passes(1);
    expect(caller.outcomeOf(id)).toBe('failed: token-expired, started');
  });

  test('back, while the issuing activation runs: there is no deadline to pull in', () => {
    const world = createWorld();
    const page = world.opens();
    const id = page.callsDirectly(page);
    const { digest } = page.requestsToken(id);
    world.jumps(-HOUR);
    expect(world.token(digest).deadline).toBeNull();
    page.returns(id);
    expect(world.token(digest).deadline).toBe(world.now + 60_000);
  });

  test('a redemption judges by the clock of its own moment', () => {
    const { world, page, digest } = aCountdown();
    const { documentId } = page;
    const presented = { type: 'token-presented', documentId, digest, activationId: 'late' } as const;
    const late = at(presented, world.now + 60_000);
    const { reply } = step(world.state, late);
    expect(reply).toMatchObject({ ok: false, error: { reason: 'token-expired', started: false } });
  });

  test('one millisecond earlier it is accepted', () => {
    const { world, page, id, digest } = aCountdown();
    const { documentId } = page;
    const presented = { type: 'token-presented', documentId, digest, activationId: 'in time' } as const;
    const { done } = changedBy(world.state, at(presented, world.now + 59_999));
    expect(done.reply).toEqual({ ok: true, value: { executionId: id } });
  });
});

describe('a document that does not acknowledge', () => {
  function aSilentDocument() {
    const world = createWorld();
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    page.freezes();
    const id = caller.calls(page);
    return { world, caller, page, id };
  }

  test('has two seconds, and its answer half a second more', () => {
    const { world, caller, id } = aSilentDocument();
    expect(world.activation(id).refuseAfter).toBe(world.now + 2_000);
    world.passes(2_500);
    expect(caller.outcomeOf(id)).toBeNull();
    world.passes(1);
    expect(caller.outcomeOf(id)).toBe('failed: document-unresponsive, not started');
  });

  test('does not begin it when it wakes up after all', () => {
    const { world, page, id } = aSilentDocument();
    world.passes(10_000);
    page.thaws();
    expect(world.begun.has(id)).toBe(false);
    expect(page.holds()).toEqual([]);
  });

  test('is told to abort it, should its clock have been set back', () => {
    const { world, page, id } = aSilentDocument();
    world.passes(10_000);
    world.jumps(-HOUR);
    page.thaws();
    expect(page.runs.get(id)?.aborted).toBe(true);
  });

  test('may have begun it where an earlier worker told it: then it says started', () => {
    const { world, caller, page, id } = aSilentDocument();
    world.restarts();
    page.freezes();
    world.passes(2_501);
    expect(caller.outcomeOf(id)).toBe('failed: document-unresponsive, started');
  });

  test('refuses in time: not started', () => {
    const world = createWorld();
    const [caller, page] = [world.opens({ tab: 'agent' }), world.opens({ tab: 'shop' })];
    page.refuses('tool-unavailable');
    const id = caller.calls(page);
    expect(caller.outcomeOf(id)).toBe('failed: tool-unavailable, not started');
  });

  test('does not acknowledge a resumption: the execution fails once its token is over, started', () => {
    const { world, caller, id, digest } = aCountdown({ lifetime: 30_000 });
    const next = world.opens({ tab: 'shop' });
    next.freezes();
    next.redeems(digest, id);
    world.passes(30_500);
    expect(caller.outcomeOf(id)).toBeNull();
    world.passes(1);
    expect(caller.outcomeOf(id)).toBe('failed: document-unresponsive, started');
  });
});

describe('what time alone has given something to do', () => {
  const settled = {
    ending: { type: 'result', value: {} },
    as: 'result',
    keepUntil: START + 600_000,
  } as const;

  /** It is due from that many milliseconds on, and not before; and then it is what a passing of time concerns. */
  function expectDueFrom(execution: Execution, delay: number): void {
    const times = [0, 1, delay / 2, delay - 1, delay, delay + 1, delay + 1_000, 10 * HOUR, 1_000 * HOUR];
    for (const time of times.filter((time) => Number.isFinite(time) && time >= 0)) {
      expect([time, isDue(execution, START + time)]).toEqual([time, time >= delay]);
      const event = at({ type: 'time-passed' }, START + time);
      expect(concerned(aState([execution]), event)).toEqual(time >= delay ? [execution.id] : []);
    }
  }

  function cancelled(facts: Partial<Execution>): Execution {
    const cancel = at({ type: 'cancel-requested', executionId: 'execution' });
    return changedBy(aState([anExecution(facts)]), cancel).execution;
  }

  test('an outstanding token, from the first deadline on', () => {
    const tokens = [
      aToken({ deadline: START + 5_000 }),
      aToken({ deadline: START + 3_000 }),
      aToken({ deadline: START + 1_000, state: 'redeemed' }),
      aToken({ deadline: START + 1_000, state: 'expired' }),
      aToken({ deadline: null }),
    ];
    expectDueFrom(anExecution({ tokens, activations: [anActivation()] }), 3_000);
  });

  test('an acknowledgement that may be late', () => {
    const activations = [
      anActivation({ state: 'commanded', refuseAfter: START + 2_000 }),
      anActivation({ state: 'running', refuseAfter: START + 10 }),
    ];
    expectDueFrom(anExecution({ activations }), 2_501);
  });

  test('never a callback that runs', () => {
    const execution = anExecution({ activations: [anActivation()], tokens: [aToken()] });
    expectDueFrom(execution, Number.POSITIVE_INFINITY);
  });

  test('never one that runs behind a token that it redeemed, whatever became of the others', () => {
    const tokens = (['redeemed', 'expired', 'void'] as const).map((state) =>
      aToken({ state, deadline: START - 5_000 }),
    );
    expectDueFrom(anExecution({ activations: [anActivation()], tokens }), Number.POSITIVE_INFINITY);
  });

  test('what is overdue, at once', () => {
    expectDueFrom(anExecution({ tokens: [aToken({ deadline: START - 5_000 })] }), 0);
  });

  test.each(['outstanding', 'redeemed'] as const)(
    'a clock that jumped back: a deadline of a token that is %s',
    (state) => {
      const activations = [anActivation()];
      const at = (deadline: number) => anExecution({ activations, tokens: [aToken({ state, deadline })] });
      expect(isDue(at(START + 60_001), START)).toBe(true);
      expect(isDue(at(START + 60_000), START)).toBe(false);
    },
  );

  test('an outcome that nobody collects', () => {
    expectDueFrom(anExecution({ settled, callerDocumentId: null }), 600_000);
  });

  test('not one whose caller may still take it', () => {
    expectDueFrom(anExecution({ settled }), Number.POSITIVE_INFINITY);
  });

  test('what is left: a minute after the last deadline', () => {
    const tokens = [
      aToken({ state: 'redeemed', deadline: START + 5_000 }),
      aToken({ state: 'outstanding', deadline: null, lifetime: 90_000 }),
    ];
    expectDueFrom(cancelled({ tokens }), 150_000);
  });

  test('what is left where the outcome was given up: a minute', () => {
    const tokens = [aToken({ state: 'redeemed', deadline: START + 5_000 })];
    const abandoned = anExecution({ settled, callerDocumentId: null, tokens });
    const givenUp = at({ type: 'time-passed' }, START + 600_000);
    expectDueFrom(changedBy(aState([abandoned]), givenUp).execution, 660_000);
  });

  test('what was aborted: a minute after it settled', () => {
    expectDueFrom(cancelled({ activations: [anActivation()] }), 60_000);
  });

  test('time that passes too early, or twice, changes nothing', () => {
    const { world, id, digest } = aCountdown();
    const before = world.execution(id);
    world.happens({ type: 'time-passed' });
    world.happens({ type: 'time-passed' });
    expect(world.execution(id)).toBe(before);
    expect(world.token(digest).state).toBe('outstanding');
  });

  test('a document that connects late changes nothing about what is due', () => {
    const tokens = [aToken({ deadline: START + 1_000, lifetime: 1_000 })];
    const execution = anExecution({
      tokens,
      activations: [anActivation({ state: 'returned' })],
    });
    const state = aState([execution], [aDocument('caller')]);
    const { execution: expired } = changedBy(state, at({ type: 'time-passed' }, START + 1_000));
    expect(expired.settled?.as).toBe('token-expired');
  });
});
