/**
 * The rules 1 to 13 of `semantics.md`, "Executions, activations, tokens", as far as the core decides them: stories about
 * pretend documents, one `describe` a rule.
 */
import { describe, expect, test } from 'vitest';
import { createWorld } from './harness.ts';
import { aGrant, answer, threw } from './records.ts';

/** A call of one tab's document to another tab's, which runs. */
function aRunningCall(options: { keepalive?: boolean } = {}) {
  const world = createWorld();
  const caller = world.opens({ tab: 'agent' });
  const page = world.opens({ tab: 'shop' });
  const id = caller.calls(page, options);
  return { world, caller, page, id };
}

/** The same, with a token. */
function aGrantedCall({ lifetime = 60_000 } = {}) {
  const story = aRunningCall();
  const { digest } = story.page.requestsToken(story.id, { lifetime });
  return { ...story, digest };
}

describe('rule 1: a token is granted to a running activation only', () => {
  test('to one that runs', () => {
    const { page, id } = aRunningCall();
    expect(answer(page.requestsToken(id).reply)).toBe('ok');
  });

  test('not to one that has returned', () => {
    const { world, page, id, digest } = aGrantedCall();
    page.returns(id);
    expect(answer(requestLate(world, page.documentId, id, `${digest} too`))).toBe('not-running');
  });

  test('not to one that was aborted a moment ago', () => {
    const { world, caller, page, id } = aRunningCall();
    caller.cancels(id);
    expect(answer(requestLate(world, page.documentId, id, 'late'))).toBe('not-running');
    expect(world.stateOf(id)).toBe('aborted');
  });

  test('not to one whose document went away, even if it is back', () => {
    const { world, page, id, digest } = aGrantedCall();
    page.leaves();
    page.connects();
    expect(answer(requestLate(world, page.documentId, id, `${digest} too`))).toBe('not-running');
  });

  test('not to one that nobody knows and nobody describes', () => {
    const { world, page } = aRunningCall();
    expect(answer(requestLate(world, page.documentId, 'no such execution', 'late'))).toBe('not-running');
  });

  test('the acknowledgement may be slower than the request', () => {
    const world = createWorld({ automatic: false });
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    const id = caller.calls(page);
    caller.sendsAll();
    expect(world.activation(id).state).toBe('commanded');
    expect(answer(requestLate(world, page.documentId, id, 'early'))).toBe('ok');
    expect(world.activation(id).state).toBe('running');
  });

  test('it is committed to storage, with the input sealed', () => {
    const { world, id } = aGrantedCall();
    expect(world.storage.get(id)?.call.input).toHaveProperty('sealed');
    expect(world.storage.get(id)?.call.input).not.toHaveProperty('text');
  });

  function requestLate(
    world: ReturnType<typeof createWorld>,
    documentId: string,
    executionId: string,
    digest: string,
  ) {
    const grant = aGrant({ activationId: executionId, executionId, digest, lifetime: 1 });
    return world.happens({ type: 'token-requested', documentId, ...grant });
  }
});

describe('rule 2: a repeated request is the same request', () => {
  test('the token stands once', () => {
    const { world, page, id, digest } = aGrantedCall();
    const again = page.requestsToken(id, { digest });
    expect(again.reply?.ok).toBe(true);
    expect(world.execution(id).tokens).toHaveLength(1);
  });

  test('also once its activation has ended', () => {
    const { world, page, id, digest } = aGrantedCall();
    page.returns(id);
    const grant = aGrant({ activationId: id, executionId: id, digest, lifetime: 1 });
    const reply = world.happens({ type: 'token-requested', documentId: page.documentId, ...grant });
    expect(reply?.ok).toBe(true);
    expect(world.token(digest).lifetime).toBe(60_000);
  });
});

describe('rule 3: what redemption needs', () => {
  test('the same group', () => {
    const { world, page, id, digest } = aGrantedCall();
    page.leaves();
    const stranger = world.opens({ tab: 'shop', group: 'elsewhere' });
    expect(answer(stranger.redeems(digest, id).reply)).toBe('other-group');
    expect(world.token(digest).state).toBe('outstanding');
  });

  test('an active document', () => {
    const { world, page, digest } = aGrantedCall();
    page.leaves();
    const { documentId } = page;
    const presented = { type: 'token-presented', documentId, digest, activationId: 'late' } as const;
    const reply = world.happens(presented);
    expect(answer(reply)).toBe('inactive-document');
    expect(world.token(digest).state).toBe('outstanding');
  });

  test('a token that exists', () => {
    const { world, id } = aGrantedCall();
    const next = world.opens({ tab: 'shop' });
    expect(answer(next.redeems('no such token', id).reply)).toBe('token-unknown');
    expect(answer(next.redeems('no such token', null).reply)).toBe('token-unknown');
  });

  test('of two redemptions in the same instant one wins', () => {
    const { world, page, id, digest } = aGrantedCall();
    page.leaves();
    const [first, second] = [world.opens({ tab: 'shop' }), world.opens({ tab: 'another' })];
    const winner = first.redeems(digest, id);
    const loser = second.redeems(digest, id);
    expect(answer(winner.reply)).toBe('ok');
    expect(winner.reply).toMatchObject({ value: { executionId: id } });
    expect(answer(loser.reply)).toBe('token-redeemed');
    expect([...world.begun.keys()]).toEqual([id, winner.activationId]);
  });

  test('another document, or a later one, of the group', () => {
    const { world, page, id, digest } = aGrantedCall();
    const other = world.opens({ tab: 'another' });
    page.leaves();
    const { activationId } = other.redeems(digest, id);
    other.returns(activationId, 'paid elsewhere');
    expect(world.stateOf(id)).toBe('result');
  });
});

describe('rule 4: a resumption waits for the activation that issued its token', () => {
  test('in another document', () => {
    const { world, page, id, digest } = aGrantedCall();
    const next = world.opens({ tab: 'shop' });
    const { activationId, reply } = next.redeems(digest, id);
    expect(reply?.ok).toBe(true);
    expect(world.begun.has(activationId)).toBe(false);
    page.returns(id);
    expect(world.begun.has(activationId)).toBe(true);
  });

  test('in the issuing document', () => {
    const { world, page, id, digest } = aGrantedCall();
    const { activationId, reply } = page.redeems(digest, id);
    expect(reply?.ok).toBe(true);
    expect(world.activation(activationId).state).toBe('waiting');
    page.returns(id);
    expect(world.activation(activationId).state).toBe('running');
  });

  test('begins once the issuing document is gone', () => {
    const { world, page, id, digest } = aGrantedCall();
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    page.leaves();
    expect(world.begun.has(activationId)).toBe(true);
  });

  test('waits for its own issuer only', () => {
    const { world, page, id, digest } = aGrantedCall();
    const { digest: second } = page.requestsToken(id);
    page.returns(id);
    const { activationId: runs } = page.redeems(digest, id);
    const { activationId: runsToo } = page.redeems(second, id);
    expect(world.activation(runs).state).toBe('running');
    expect(world.activation(runsToo).state).toBe('running');
  });

  test('gets its token’s whole lifetime to begin: a page that is slow to load loses nothing', () => {
    const { world, page, id, digest } = aGrantedCall();
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    next.freezes();
    const { activationId } = next.redeems(digest, id);
    world.passes(59_000);
    next.thaws();
    expect(world.activation(activationId).state).toBe('running');
  });
});

describe('rule 5: accepted but not begun', () => {
  test('announced again after a restart of the worker, and begun when its turn comes', () => {
    const { world, page, id, digest } = aGrantedCall();
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    world.restarts();
    expect(world.begun.has(activationId)).toBe(false);
    page.returns(id);
    next.returns(activationId, 'paid');
    expect(world.stateOf(id)).toBe('result');
  });

  test('its document leaves: the token is outstanding again, with its old deadline', () => {
    const { world, page, id, digest } = aGrantedCall();
    const { digest: keepsWaiting } = page.requestsToken(id);
    page.returns(id);
    const deadline = world.token(digest).deadline;
    const waiting = world.opens({ tab: 'shop' });
    const holder = world.opens({ tab: 'another' });
    // It waits behind a resumption of the other token, which was granted this one.
    const { activationId: issuer } = holder.redeems(keepsWaiting, id);
    const { digest: third } = holder.requestsToken(issuer);
    const { activationId } = waiting.redeems(third, id);
    world.passes(10_000);
    waiting.leaves();
    expect(world.activation(activationId).state).toBe('withdrawn');
    expect(world.token(third)).toMatchObject({ state: 'outstanding', deadline: null });
    expect(world.token(digest)).toMatchObject({ state: 'outstanding', deadline });
  });

  test('and can be redeemed by another document', () => {
    const { world, page, id, digest } = aGrantedCall();
    const waiting = world.opens({ tab: 'shop' });
    waiting.redeems(digest, id);
    waiting.leaves();
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    next.returns(activationId, 'paid');
    expect(world.stateOf(id)).toBe('result');
  });

  test('and by the same document, back from the back/forward cache, under the same id', () => {
    const { world, page, id, digest } = aGrantedCall();
    const waiting = world.opens({ tab: 'shop' });
    const { activationId } = waiting.redeems(digest, id);
    waiting.leaves();
    waiting.connects();
    waiting.redeems(digest, id, activationId);
    page.returns(id);
    waiting.returns(activationId, 'paid');
    expect(world.stateOf(id)).toBe('result');
  });

  test('told but not acknowledged counts as started', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    next.freezes();
    next.redeems(digest, id);
    next.leaves();
    expect(world.token(digest).state).toBe('redeemed');
    expect(caller.outcomeOf(id)).toBe('failed: navigated, started');
  });

  test('refused for good by its document: the token is outstanding again', () => {
    const { world, page, id, digest } = aGrantedCall();
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    next.refuses('tool-unavailable');
    const { activationId } = next.redeems(digest, id);
    expect(world.activation(activationId).state).toBe('withdrawn');
    expect(world.token(digest)).toMatchObject({ state: 'outstanding' });
    expect(world.stateOf(id)).toBe('open');
  });

  test('refused because it has begun before: it is over, and the token stays redeemed', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    next.freezes();
    const { activationId } = next.redeems(digest, id);
    const refused = { reason: 'navigated', started: true, message: '' } as const;
    world.happens({ type: 'activation-acknowledged', executionId: id, activationId, refused });
    expect(world.token(digest).state).toBe('redeemed');
    expect(caller.outcomeOf(id)).toBe('failed: navigated, started');
  });

  test('read too late by a document that is alive: told again', () => {
    const { world, page, id, digest } = aGrantedCall({ lifetime: 1_000 });
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    next.freezes();
    const { activationId } = next.redeems(digest, id);
    world.passes(2_400);
    next.thaws();
    expect(world.activation(activationId).state).toBe('running');
  });
});

describe('acknowledged, and not run after all', () => {
  test('the call fails with the document’s reason, not started', () => {
    const world = createWorld();
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    const id = caller.calls(page);
    expect(world.activation(id).state).toBe('running');
    page.declines(id);
    expect(caller.outcomeOf(id)).toBe('failed: invalid-input, not started, it does not fit');
  });

  test('also where a later worker knows of it by announcements alone', () => {
    const world = createWorld();
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    const id = caller.calls(page);
    world.dies();
    page.connects();
    page.declines(id);
    caller.connects();
    expect(caller.outcomeOf(id)).toBe('failed: invalid-input, not started, it does not fit');
  });
});

describe('rule 6: lifetime', () => {
  test('counts from the end of the issuing activation', () => {
    const { world, page, id, digest } = aGrantedCall();
    world.passes(600_000);
    expect(world.token(digest).deadline).toBeNull();
    page.returns(id);
    expect(world.token(digest).deadline).toBe(world.now + 60_000);
  });

  test('from the loss of its document, if that is how it ends', () => {
    const { world, page, id, digest } = aGrantedCall({ lifetime: 3_600_000 });
    world.passes(5_000);
    page.leaves();
    expect(world.token(digest).deadline).toBe(world.now + 3_600_000);
    expect(world.stateOf(id)).toBe('open');
  });

  test('if the worker was dead, from when it last heard of the activation', () => {
    const { world, page, digest } = aGrantedCall();
    const heardAt = world.now;
    world.passes(20_000);
    page.crashes();
    world.dies();
    page.isMissed();
    expect(world.token(digest).deadline).toBe(heardAt + 60_000);
  });

  test('a goodbye to a worker that does not know the document is heard now', () => {
    const { world, page, digest } = aGrantedCall();
    world.passes(20_000);
    world.dies();
    page.leaves();
    expect(world.token(digest).deadline).toBe(world.now + 60_000);
  });

  test('also of a token that is redeemed already: it may be outstanding again', () => {
    const { world, page, id, digest } = aGrantedCall();
    const next = world.opens({ tab: 'shop' });
    next.redeems(digest, id);
    page.returns(id);
    expect(world.token(digest).deadline).toBe(world.now + 60_000);
  });

  test('the second token of an activation does not move the deadline of the first', () => {
    const { world, page, id, digest } = aGrantedCall();
    const { digest: second } = page.requestsToken(id, { lifetime: 1_000 });
    page.returns(id);
    expect(world.token(digest).deadline).toBe(world.now + 60_000);
    expect(world.token(second).deadline).toBe(world.now + 1_000);
  });
});

describe('rule 7: a token outlives its document', () => {
  test('the tab comes back within the lifetime, however long nobody of the group was there', () => {
    const { world, caller, page, id, digest } = aGrantedCall({ lifetime: 3_600_000 });
    page.leaves({ destroyed: true });
    world.passes(3_599_000);
    const back = world.opens({ tab: 'shop' });
    const { activationId } = back.redeems(digest, id);
    back.returns(activationId, 'paid');
    expect(caller.outcomeOf(id)).toBe('result: paid');
  });

  test('also across the death of its worker', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.leaves({ destroyed: true });
    world.restarts();
    const back = world.opens({ tab: 'shop' });
    const { activationId } = back.redeems(digest, id);
    back.returns(activationId, 'paid');
    expect(caller.outcomeOf(id)).toBe('result: paid');
  });
});

describe('rule 8: cancelling', () => {
  test('aborts what runs', () => {
    const { world, caller, page, id } = aRunningCall();
    caller.cancels(id);
    expect(page.runs.get(id)?.aborted).toBe(true);
    expect(world.stateOf(id)).toBe('aborted');
  });

  test('aborts what was told to run: it may have begun', () => {
    const world = createWorld();
    const [caller, page] = [world.opens({ tab: 'agent' }), world.opens({ tab: 'shop' })];
    page.freezes();
    const id = caller.calls(page);
    caller.cancels(id);
    expect(page.inbox.map(({ type }) => type)).toEqual(['activate', 'drop', 'drop']);
  });

  test('voids every token, for good', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    caller.cancels(id);
    expect(world.token(digest)).toMatchObject({ state: 'void', key: null });
    world.restarts();
    expect(world.token(digest).state).toBe('void');
    page.leaves();
    const next = world.opens({ tab: 'shop' });
    expect(answer(next.redeems(digest, id).reply)).toBe('token-void');
  });

  test('drops waiting resumptions', () => {
    const { world, caller, id, digest } = aGrantedCall();
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    caller.cancels(id);
    expect(next.withdrawn).toEqual([activationId]);
    expect(world.activation(activationId).state).toBe('withdrawn');
    expect(world.begun.has(activationId)).toBe(false);
  });

  test('drops a resumption that was told and may not have begun', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    next.freezes();
    next.redeems(digest, id);
    caller.cancels(id);
    expect(next.inbox.map(({ type }) => type)).toEqual(['activate', 'drop', 'drop']);
    expect(world.stateOf(id)).toBe('aborted');
  });

  test('releases every document that held a part, and keeps nothing private', () => {
    const { world, caller, page, id } = aGrantedCall();
    caller.cancels(id);
    expect(page.holds()).toEqual([]);
    expect(world.execution(id)).toMatchObject({ outputs: [], answer: null });
    const { input, tabKey } = world.execution(id).call;
    expect({ input, tabKey }).toEqual({ input: {}, tabKey: null });
  });

  test('of something that is settled changes nothing but that it needs no caller', () => {
    const { world, caller, page, id } = aGrantedCall();
    caller.freezes();
    page.throws(id);
    caller.cancels(id);
    expect(world.execution(id).settled).toMatchObject({ as: 'tool-failed' });
  });

  test('of something unknown is no error', () => {
    const { world } = aRunningCall();
    const reply = world.happens({ type: 'cancel-requested', executionId: 'no such execution' });
    expect(reply).toEqual({ ok: true, value: undefined });
  });
});

describe('rule 9: answers and outputs', () => {
  test('without a token the return value is the result', () => {
    const { caller, page, id } = aRunningCall();
    page.returns(id, 'done');
    expect(caller.outcomeOf(id)).toBe('result: done');
    expect(caller.outputsOf(id)).toEqual([]);
  });

  test('a result without text is a result', () => {
    const { caller, page, id } = aRunningCall();
    page.returns(id, null);
    expect(caller.outcomeOf(id)).toBe('result: null');
  });

  test('with a token it is an output, at once', () => {
    const { world, caller, page, id } = aGrantedCall();
    page.returns(id, 'on our way');
    expect(caller.outputsOf(id)).toEqual(['on our way']);
    expect(world.stateOf(id)).toBe('open');
  });

  test('the answer of the resumed activation is the result', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.returns(id, 'on our way');
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    next.returns(activationId, 'paid');
    expect(caller.outcomeOf(id)).toBe('result: paid');
    expect(caller.outputsOf(id)).toEqual(['on our way']);
  });

  test('an answer waits for what runs and for tokens that are outstanding; the latest one counts', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    const { digest: second } = page.requestsToken(id);
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    const { activationId: first } = next.redeems(digest, id);
    next.returns(first, 'the first');
    expect(world.stateOf(id)).toBe('open');
    const { activationId: other } = next.redeems(second, id);
    expect(world.stateOf(id)).toBe('open');
    next.returns(other, 'the second');
    expect(caller.outcomeOf(id)).toBe('result: the second');
  });

  test('an answer is the result when the last other token expires', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.requestsToken(id, { lifetime: 120_000 });
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    next.returns(activationId, 'paid');
    world.passes(119_000);
    expect(caller.outcomeOf(id)).toBeNull();
    world.passes(1_000);
    expect(caller.outcomeOf(id)).toBe('result: paid');
  });

  test('without an answer it fails with token-expired', () => {
    const { world, caller, page, id } = aGrantedCall();
    page.returns(id, 'on our way');
    world.passes(60_000);
    expect(caller.outcomeOf(id)).toBe('failed: token-expired, started');
  });
});

describe('rule 10: throws', () => {
  test('without a token: the execution fails at once with that error', () => {
    const { caller, page, id } = aRunningCall();
    page.throws(id, { message: 'sold out' });
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
  });

  test('without a token, even while its document is leaving', () => {
    const { caller, page, id } = aRunningCall();
    page.throws(id, { message: 'sold out', leaving: true });
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
  });

  test('with a token, its document not leaving: fails at once, and all tokens are void', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    const { digest: second } = page.requestsToken(id);
    page.throws(id, { message: 'sold out' });
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
    expect([world.token(digest).state, world.token(second).state]).toEqual(['void', 'void']);
  });

  test('with a token, its document leaving: held, and redemption discards it', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.throws(id, { leaving: true });
    expect(world.activation(id).state).toBe('held');
    expect(world.token(digest).deadline).toBe(world.now + 60_000);
    const next = world.navigates(page);
    const { activationId } = next.redeems(digest, id);
    expect(world.activation(id).state).toBe('discarded');
    next.returns(activationId, 'paid');
    expect(caller.outcomeOf(id)).toBe('result: paid');
  });

  test('held, and its document stays: reported', () => {
    const { caller, page, id } = aGrantedCall();
    page.throws(id, { leaving: true, message: 'sold out' });
    page.stays();
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
  });

  test('held, and another document stays: still held', () => {
    const { world, caller, page, id } = aGrantedCall();
    page.throws(id, { leaving: true });
    caller.stays();
    expect(world.activation(id).state).toBe('held');
    expect(world.stateOf(id)).toBe('open');
  });

  test('held, and the token expires: reported', () => {
    const { world, caller, page, id } = aGrantedCall();
    page.throws(id, { leaving: true, message: 'sold out' });
    page.leaves();
    world.passes(60_000);
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
  });

  test('held across a restart of the worker', () => {
    const { world, caller, page, id } = aGrantedCall();
    page.throws(id, { leaving: true, message: 'sold out' });
    page.leaves({ destroyed: true });
    world.restarts();
    world.passes(60_000);
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
  });

  test('all its tokens are redeemed: nothing changes', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    page.throws(id);
    expect(world.activation(id).state).toBe('threw');
    next.returns(activationId, 'paid');
    expect(caller.outcomeOf(id)).toBe('result: paid');
  });

  test('all its tokens are redeemed and its document is leaving: not held', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    page.throws(id, { leaving: true });
    expect(world.activation(id).state).toBe('threw');
    next.returns(activationId, 'paid');
    expect(caller.outcomeOf(id)).toBe('result: paid');
  });

  test('of several tokens one is outstanding: fails at once, and what was resumed is aborted', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.requestsToken(id);
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    page.throws(id, { message: 'sold out' });
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
    expect(next.withdrawn).toEqual([activationId]);
    expect(world.stateOf(id)).toBe('tool-failed');
  });
});

describe('rule 11: the document of an activation goes away', () => {
  test('with a token, the token lives on', () => {
    const { world, page, id, digest } = aGrantedCall();
    page.leaves();
    expect(world.activation(id).state).toBe('lost');
    expect(world.token(digest).state).toBe('outstanding');
    expect(world.stateOf(id)).toBe('open');
  });

  test('without: fails with navigated, if it said goodbye', () => {
    const { caller, page, id } = aRunningCall();
    page.leaves();
    expect(caller.outcomeOf(id)).toBe('failed: navigated, started');
  });

  test('without: fails with document-lost, if it did not', () => {
    const { caller, page, id } = aRunningCall();
    page.crashes();
    page.isMissed();
    expect(caller.outcomeOf(id)).toBe('failed: document-lost, started');
  });

  test('a resumed one without a token, too', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    const next = world.navigates(page);
    next.redeems(digest, id);
    next.leaves();
    expect(caller.outcomeOf(id)).toBe('failed: navigated, started');
  });

  test('a late settlement is dropped', () => {
    const { world, page, id } = aGrantedCall();
    page.leaves();
    page.connects();
    const end = threw('too late');
    world.happens({ type: 'activation-ended', executionId: id, activationId: id, end });
    expect(world.activation(id).state).toBe('lost');
    expect(world.stateOf(id)).toBe('open');
  });

  test('what its document announces of it afterwards is dropped', () => {
    const { world, page, id } = aGrantedCall();
    page.leaves();
    const run = page.runs.get(id);
    if (run) run.state = 'running';
    page.connects();
    expect(world.activation(id).state).toBe('lost');
  });

  test('one that was never told to run has certainly not started', () => {
    const world = createWorld();
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    page.crashes();
    page.isMissed();
    const id = caller.calls(page);
    expect(caller.outcomeOf(id)).toBe('failed: tool-unavailable, not started');
  });

  test('the callback never runs a second time', () => {
    const { world, page, id } = aRunningCall({ keepalive: true });
    world.restarts();
    page.leaves();
    page.connects();
    world.restarts();
    expect([...world.begun.keys()]).toEqual([id]);
  });
});

describe('rule 12: the caller learns of the last token’s expiry in time', () => {
  test('the worker wakes at the deadline itself', () => {
    const { world, caller, page, id } = aGrantedCall();
    page.returns(id);
    world.passes(59_999);
    expect(caller.outcomeOf(id)).toBeNull();
    world.passes(1);
    expect(caller.outcomeOf(id)).toBe('failed: token-expired, started');
  });

  test('the last one counts', () => {
    const { world, caller, page, id, digest } = aGrantedCall();
    page.requestsToken(id, { lifetime: 90_000 });
    page.returns(id);
    world.passes(60_000);
    expect(world.token(digest).state).toBe('expired');
    expect(caller.outcomeOf(id)).toBeNull();
    world.passes(30_000);
    expect(caller.outcomeOf(id)).toBe('failed: token-expired, started');
  });
});

describe('rule 13: what is left of a settled execution', () => {
  test.each(['token-redeemed', 'token-void', 'token-expired'] as const)(
    'a late resumeTool is told %s',
    (fate) => {
      const { world, page, id, digest } = aGrantedCall();
      if (fate === 'token-redeemed') {
        const next = world.opens({ tab: 'shop' });
        const { activationId } = next.redeems(digest, id);
        page.returns(id);
        next.returns(activationId);
      } else if (fate === 'token-void') page.throws(id);
      else page.returns(id);
      world.passes(fate === 'token-expired' ? 60_000 : 0);
      expect(world.stateOf(id)).not.toBe('open');
      const late = world.opens({ tab: 'shop' });
      expect(answer(late.redeems(digest, id).reply)).toBe(fate);
    },
  );

  test('until one minute after the last deadline', () => {
    const { world, page, id } = aGrantedCall();
    page.requestsToken(id, { lifetime: 600_000 });
    page.throws(id);
    const settledAt = world.now;
    world.passes(settledAt + 600_000 + 59_999 - world.now);
    expect(world.stateOf(id)).toBe('tool-failed');
    world.passes(1);
    expect(world.stateOf(id)).toBe('forgotten');
    expect(world.storage.size).toBe(0);
  });

  test('at least for one minute after it settled', () => {
    const { world, page, id, digest } = aGrantedCall({ lifetime: 1_000 });
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    world.passes(500_000);
    next.returns(activationId);
    world.passes(59_999);
    expect(answer(next.redeems(digest, id).reply)).toBe('token-redeemed');
    world.passes(1);
    expect(world.stateOf(id)).toBe('forgotten');
  });

  test('also where nobody collects the outcome: it is gone after ten minutes, the fates are not', () => {
    const { world, caller, page, id, digest } = aGrantedCall({ lifetime: 3_600_000 });
    page.returns(id, 'on our way');
    caller.freezes();
    const next = world.opens({ tab: 'agent' });
    const { activationId } = next.redeems(digest, id);
    next.throws(activationId);
    caller.leaves();
    world.passes(600_000);
    expect(world.execution(id).settled).toMatchObject({ ending: null });
    expect(world.execution(id).outputs).toEqual([]);
    expect(answer(next.redeems(digest, id).reply)).toBe('token-redeemed');
  });

  test('without a token nothing is left', () => {
    const { world, page, id } = aRunningCall();
    page.returns(id);
    expect(world.stateOf(id)).toBe('forgotten');
  });

  test('nothing private is left', () => {
    const { world, page, id } = aGrantedCall();
    page.throws(id);
    const { call, outputs, answer: last, settled, tokens, activations } = world.execution(id);
    const { input, tabKey } = call;
    expect({ input, tabKey, outputs, last }).toEqual({ input: {}, tabKey: null, outputs: [], last: null });
    expect(settled).toMatchObject({ ending: null, as: 'tool-failed' });
    expect(tokens.map(({ key }) => key)).toEqual([null]);
    expect(activations.map(({ held }) => held)).toEqual([null]);
  });
});
