/**
 * "The caller leaves" of `semantics.md`, sentence by sentence: when an execution lives on without its caller, who may collect
 * it, and what is kept of calls that died with their page.
 */
import { describe, expect, test } from 'vitest';
import { createWorld } from './harness.ts';
import { aCall, answer, aValue } from './records.ts';

/** An agent embedded in the page that it drives: one tab, the call meets the worker with its token. */
function anEmbeddedAgent({ frames = false, lifetime = 60_000 } = {}) {
  const world = createWorld();
  const page = world.opens({ tab: 'shop' });
  const caller = frames ? world.opens({ tab: 'shop', top: false }) : page;
  const id = caller.callsDirectly(page);
  const { digest } = page.requestsToken(id, { lifetime });
  return { world, page, caller, id, digest };
}

/** An agent in a tab of its own. */
function aRemoteAgent({ keepalive = false } = {}) {
  const world = createWorld();
  const caller = world.opens({ tab: 'agent' });
  const page = world.opens({ tab: 'shop' });
  const id = caller.calls(page, { keepalive });
  return { world, caller, page, id };
}

describe('the latest activation ran in the caller’s own tab and a token is outstanding: the execution lives on', () => {
  test('an agent in the page', () => {
    const { world, page, id, digest } = anEmbeddedAgent();
    const next = world.navigates(page);
    expect(world.stateOf(id)).toBe('open');
    expect(world.execution(id).callerDocumentId).toBeNull();
    const { activationId } = next.redeems(digest, id);
    const collected = next.collects();
    next.returns(activationId, 'paid');
    expect(collected).toEqual([id]);
    expect(next.outcomeOf(id)).toBe('result: paid');
  });

  test('an agent in a frame of the page', () => {
    const { world, page, caller, id, digest } = anEmbeddedAgent({ frames: true });
    caller.leaves();
    const next = world.navigates(page);
    next.redeems(digest, id);
    expect(world.stateOf(id)).toBe('open');
  });

  test('also where the caller is lost without a word', () => {
    const { world, page, id } = anEmbeddedAgent();
    page.crashes();
    page.isMissed();
    expect(world.stateOf(id)).toBe('open');
  });

  test('also where its token waits behind a resumption that was not told to run', () => {
    const { world, page, caller, id, digest } = anEmbeddedAgent({ frames: true });
    const other = world.opens({ tab: 'shop', top: false });
    other.redeems(digest, id);
    caller.leaves();
    expect(world.stateOf(id)).toBe('open');
    page.returns(id);
    expect(world.stateOf(id)).toBe('open');
  });

  test('the latest activation is the latest that was told to run', () => {
    const { world, page, caller, id, digest } = anEmbeddedAgent({ frames: true });
    page.returns(id);
    const elsewhere = world.opens({ tab: 'elsewhere' });
    const { activationId } = elsewhere.redeems(digest, id);
    elsewhere.requestsToken(activationId);
    caller.leaves();
    expect(world.stateOf(id)).toBe('navigated');
  });
});

describe('otherwise it is cancelled', () => {
  test('without a token', () => {
    const { world, caller, page, id } = aRemoteAgent();
    caller.leaves();
    expect(world.stateOf(id)).toBe('navigated');
    expect(page.runs.get(id)?.aborted).toBe(true);
  });

  test('where the activation runs in another tab, with a token all the same', () => {
    const { world, caller, page, id } = aRemoteAgent();
    const { digest } = page.requestsToken(id);
    caller.leaves();
    expect(world.stateOf(id)).toBe('navigated');
    expect(world.token(digest).state).toBe('void');
  });

  test('where its tokens are all redeemed and the resumption runs', () => {
    const { world, page, caller, id, digest } = anEmbeddedAgent({ frames: true });
    const other = world.opens({ tab: 'shop', top: false });
    const { activationId } = other.redeems(digest, id);
    page.returns(id);
    expect(world.begun.has(activationId)).toBe(true);
    caller.leaves();
    expect(world.stateOf(id)).toBe('navigated');
    expect(other.runs.get(activationId)?.aborted).toBe(true);
  });

  test.each([true, false])('it says whether a callback could have begun: %s', (couldHaveBegun) => {
    const world = createWorld({ automatic: false });
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    world.dies();
    caller.connects();
    if (couldHaveBegun) page.connects();
    const id = caller.calls(page);
    caller.sendsAll();
    caller.leaves();
    const ending = { type: 'failed', reason: 'navigated', started: couldHaveBegun, detail: null };
    expect(world.execution(id).settled?.ending).toEqual(ending);
  });
});

describe('unless keepalive', () => {
  test('it lives on, without a token and in another tab', () => {
    const { world, caller, page, id } = aRemoteAgent({ keepalive: true });
    caller.leaves();
    page.returns(id, 'done');
    const heir = world.opens({ tab: 'agent' });
    expect(heir.collects()).toEqual([id]);
    expect(heir.outcomeOf(id)).toBe('result: done');
  });

  test('also across the death of the worker', () => {
    const { world, caller, page, id } = aRemoteAgent({ keepalive: true });
    caller.leaves({ destroyed: true });
    world.restarts();
    world.looksForLostDocuments();
    page.returns(id, 'done');
    const heir = world.opens({ tab: 'agent' });
    expect(heir.collects()).toEqual([id]);
    expect(heir.outcomeOf(id)).toBe('result: done');
  });

  test('a cancel always cancels', () => {
    const { world, caller, page, id } = aRemoteAgent({ keepalive: true });
    caller.leaves();
    const heir = world.opens({ tab: 'agent' });
    heir.collects();
    heir.cancels(id);
    expect(world.stateOf(id)).toBe('aborted');
    expect(page.runs.get(id)?.aborted).toBe(true);
  });
});

describe('getPendingExecutions()', () => {
  test('gives the executions of this tab only', () => {
    const { world, page, id } = anEmbeddedAgent();
    page.leaves();
    const stranger = world.opens({ tab: 'another' });
    expect(stranger.collects()).toEqual([]);
    expect(world.execution(id).callerDocumentId).toBeNull();
  });

  test('first come, first served', () => {
    const { world, page, id } = anEmbeddedAgent();
    const first = world.navigates(page);
    const second = world.opens({ tab: 'shop', top: false });
    expect(first.collects()).toEqual([id]);
    expect(second.collects()).toEqual([]);
    const { callerDocumentId, met } = world.execution(id);
    expect(callerDocumentId).toBe(first.documentId);
    expect(met.get(first.documentId)?.clientId).toBe(`client of ${first.documentId}`);
  });

  test('free again when the collector leaves', () => {
    const { world, page, id } = anEmbeddedAgent();
    const first = world.navigates(page);
    first.collects();
    const second = world.navigates(first);
    expect(second.collects()).toEqual([id]);
  });

  test('who asks twice gets the same', () => {
    const { world, page, id } = anEmbeddedAgent();
    const next = world.navigates(page);
    expect(next.collects()).toEqual([id]);
    expect(next.collects()).toEqual([id]);
  });

  test('a document that has left collects nothing', () => {
    const { world, page, id } = anEmbeddedAgent();
    page.leaves();
    const { documentId } = page;
    const reply = world.happens({ type: 'outcomes-collected', documentId });
    expect(answer(reply)).toBe('inactive-document');
    expect(world.execution(id).callerDocumentId).toBeNull();
  });

  test('nor does it wait for anything', () => {
    const { world, page, id } = anEmbeddedAgent();
    page.leaves();
    world.happens({ type: 'outcomes-awaited', documentId: page.documentId, executionIds: [id] });
    expect(world.effects).toEqual([]);
    expect(world.execution(id).callerDocumentId).toBeNull();
  });

  test('the collector gets the outputs that there were, and those that come', () => {
    const { world, page, id, digest } = anEmbeddedAgent();
    page.returns(id, 'first');
    const next = world.navigates(page);
    next.collects();
    const { activationId } = next.redeems(digest, id);
    next.requestsToken(activationId);
    next.returns(activationId, 'second');
    expect(next.outputsOf(id)).toEqual(['first', 'second']);
  });

  test('an outcome that was there before is told once the collector is ready for it', () => {
    const { world, page, id } = anEmbeddedAgent();
    page.leaves();
    world.passes(60_000);
    expect(world.stateOf(id)).toBe('token-expired');
    const next = world.opens({ tab: 'shop' });
    next.collects();
    expect(next.outcomeOf(id)).toBe('failed: token-expired, started');
    expect(world.execution(id).settled?.ending === null).toBe(true);
  });

  test('what was delivered is not pending', () => {
    const { world, page, id } = anEmbeddedAgent();
    page.leaves();
    world.passes(60_000);
    const next = world.opens({ tab: 'shop' });
    next.collects();
    expect(next.outcomeOf(id)).not.toBeNull();
    expect(world.opens({ tab: 'shop', top: false }).collects()).toEqual([]);
  });

  test('who waits for what has gone meanwhile, or is another’s, is told so', () => {
    const { world, page, id } = anEmbeddedAgent();
    const first = world.navigates(page);
    first.collects();
    const second = world.opens({ tab: 'shop', top: false });
    const { documentId } = second;
    world.happens({ type: 'outcomes-awaited', documentId, executionIds: [id, 'gone'] });
    const told = world.effects.map((effect) =>
      'executionId' in effect ? [effect.type, effect.executionId] : [],
    );
    expect(told).toEqual([
      ['settle', id],
      ['settle', 'gone'],
    ]);
    expect(world.execution(id).callerDocumentId).toBe(first.documentId);
  });

  test('an outcome is kept for ten minutes', () => {
    const { world, caller, page, id } = aRemoteAgent({ keepalive: true });
    caller.leaves();
    page.returns(id, 'done');
    world.passes(599_999);
    expect(world.stateOf(id)).toBe('result');
    world.passes(1);
    expect(world.stateOf(id)).toBe('forgotten');
    expect(page.holds()).toEqual([]);
  });

  test('an outcome whose caller is there but does not answer is kept for it', () => {
    const { world, caller, page, id } = aRemoteAgent();
    caller.freezes();
    page.returns(id, 'done');
    world.passes(3_600_000);
    caller.thaws();
    expect(caller.outcomeOf(id)).toBe('result: done');
  });

  test('calls that died with their page are there for a minute', () => {
    const { world, caller, id } = aRemoteAgent();
    caller.leaves();
    const settledAt = world.now;
    const next = world.opens({ tab: 'agent' });
    expect(next.collects()).toEqual([id]);
    expect(next.outcomeOf(id)).toBe('failed: navigated, started');
    expect(world.execution(id).settled?.keepUntil).toBe(settledAt + 60_000);
  });

  test('for a minute and no longer', () => {
    const { world, caller, id } = aRemoteAgent();
    caller.leaves();
    world.passes(60_000);
    expect(world.opens({ tab: 'agent' }).collects()).toEqual([]);
    expect(world.opens({ tab: 'agent' }).outcomeOf(id)).toBeNull();
  });

  test('for a minute, too, where the same document was caller and target', () => {
    const world = createWorld();
    const page = world.opens({ tab: 'shop' });
    const id = page.calls(page);
    page.leaves();
    expect(world.execution(id).settled).toMatchObject({ as: 'navigated', keepUntil: world.now + 60_000 });
  });
});

describe('calls that the worker never heard of', () => {
  test('are there for a minute, from the goodbye of their page', () => {
    const world = createWorld();
    const page = world.opens({ tab: 'shop' });
    const id = page.callsDirectly(page, { toolName: 'search', input: aValue('{"q":"shoes"}') });
    const next = world.navigates(page);
    expect(world.execution(id)).toMatchObject({
      call: { toolName: 'search', input: { text: '{"q":"shoes"}' }, callerTabId: 'shop', groupId: 'group' },
      stored: false,
      callerDocumentId: null,
    });
    expect(next.collects()).toEqual([id]);
    expect(next.outcomeOf(id)).toBe('failed: navigated, started');
    expect(world.storage.size).toBe(0);
  });

  test('and no longer', () => {
    const world = createWorld();
    const page = world.opens({ tab: 'shop' });
    const id = page.callsDirectly(page);
    page.leaves();
    world.passes(59_999);
    expect(world.stateOf(id)).toBe('navigated');
    world.passes(1);
    // What was aborted is remembered a little longer, and is nobody’s to collect.
    expect(world.opens({ tab: 'shop' }).collects()).toEqual([]);
  });

  test('also those with keepalive: their page has ended them', () => {
    const world = createWorld();
    const page = world.opens({ tab: 'shop' });
    const id = page.callsDirectly(page, { keepalive: true });
    const next = world.navigates(page);
    expect(next.collects()).toEqual([id]);
    expect(next.outcomeOf(id)).toBe('failed: navigated, started');
  });

  test('one that it has heard of meanwhile is not lost', () => {
    const { world, page, id } = anEmbeddedAgent();
    const { documentId } = page;
    const lostCall = aCall({ executionId: id, callerTabId: 'shop', toolName: 'x', input: { text: '{}' } });
    world.happens({ type: 'document-left', documentId, lostCalls: [lostCall] });
    expect(world.stateOf(id)).toBe('open');
  });
});

describe('a promise restored from the back/forward cache', () => {
  test('gets the outcome if nobody collected it', () => {
    const { world, page, id } = anEmbeddedAgent();
    page.leaves();
    world.passes(60_000);
    page.connects();
    expect(page.outcomeOf(id)).toBe('failed: token-expired, started');
  });

  test('else rejects with navigated, started', () => {
    const { world, page, id } = anEmbeddedAgent();
    const next = world.navigates(page);
    next.collects();
    page.connects();
    expect(page.outcomeOf(id)).toBe('failed: navigated, started');
    expect(world.execution(id).callerDocumentId).toBe(next.documentId);
  });

  test('also if the collector has the outcome already', () => {
    const { world, page, id } = anEmbeddedAgent();
    const next = world.navigates(page);
    next.collects();
    world.passes(60_000);
    expect(next.outcomeOf(id)).toBe('failed: token-expired, started');
    page.connects();
    expect(page.outcomeOf(id)).toBe('failed: navigated, started');
  });

  test('also if all of it is forgotten', () => {
    const { world, page, id } = anEmbeddedAgent();
    page.leaves();
    world.passes(3_600_000);
    expect(world.stateOf(id)).toBe('forgotten');
    page.connects();
    expect(page.outcomeOf(id)).toBe('failed: navigated, started');
  });
});
