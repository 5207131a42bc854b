/**
 * A worker dies and another one takes over: what is stored is loaded, everything else comes back from the documents (I4), and
 * nothing begins twice (I3). Also a document that lost its connection, or was away, and says hello again.
 */
import { describe, expect, test } from 'vitest';
import { withRecords } from '../../sw/core/recover.ts';
import { step } from '../../sw/core/step.ts';
import { createWorld } from './harness.ts';
import {
  aDocument,
  anActivation,
  anExecution,
  answer,
  aState,
  aToken,
  at,
  inWords,
  returned,
  START,
} from './records.ts';

function aRunningCall({ granted = false, frozen = false } = {}) {
  const world = createWorld();
  const caller = world.opens({ tab: 'agent' });
  const page = world.opens({ tab: 'shop' });
  if (frozen) page.freezes();
  const id = caller.calls(page);
  const digest = granted ? page.requestsToken(id).digest : '';
  return { world, caller, page, id, digest };
}

describe('a call without a token', () => {
  test.each(['the caller first', 'the target first'])('runs on and is answered: %s', (order) => {
    const { world, caller, page, id } = aRunningCall();
    world.dies();
    const [first, second] = order === 'the caller first' ? [caller, page] : [page, caller];
    first.connects();
    second.connects();
    expect(world.activation(id).state).toBe('running');
    page.returns(id, 'done');
    expect(caller.outcomeOf(id)).toBe('result: done');
    expect([...world.begun.keys()]).toEqual([id]);
  });

  test('ended while there was no worker: the end is announced', () => {
    const { world, caller, page, id } = aRunningCall();
    world.dies();
    page.returns(id, 'done');
    caller.connects();
    page.connects();
    expect(caller.outcomeOf(id)).toBe('result: done');
  });

  test('was not run after all while there was no worker', () => {
    const { world, caller, page, id } = aRunningCall();
    world.dies();
    page.declines(id);
    caller.connects();
    page.connects();
    expect(caller.outcomeOf(id)).toBe('failed: invalid-input, not started, it does not fit');
  });

  test('threw while there was no worker', () => {
    const { world, caller, page, id } = aRunningCall();
    world.dies();
    page.throws(id, { message: 'sold out' });
    page.connects();
    caller.connects();
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
  });

  test('ended, and the worker died before its caller had the outcome', () => {
    const { world, caller, page, id } = aRunningCall();
    caller.freezes();
    page.returns(id, 'done');
    world.dies();
    caller.thaws();
    caller.connects();
    page.connects();
    expect(caller.outcomeOf(id)).toBe('result: done');
    expect(page.holds()).toEqual([]);
  });

  test('asked for, and the worker died before it told the target', () => {
    const world = createWorld({ automatic: false });
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    const id = caller.calls(page);
    caller.sends(0, { crash: true });
    expect([...world.summoned]).toEqual([page.documentId]);
    world.answersSummons();
    page.readsAll();
    page.sendsAll();
    expect(world.activation(id).state).toBe('running');
    expect([...world.begun.keys()]).toEqual([id]);
  });

  test('its target is gone meanwhile: document-lost, and it may have started', () => {
    const { world, caller, page, id } = aRunningCall();
    page.crashes();
    world.dies();
    caller.connects();
    world.looksForLostDocuments();
    expect(caller.outcomeOf(id)).toBe('failed: document-lost, started');
  });

  test('its target is asked to say hello, once for each document that needs it', () => {
    const world = createWorld({ automatic: false });
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    world.dies();
    caller.connects();
    const id = caller.calls(page);
    caller.sendsAll();
    expect(world.effects).toEqual([{ type: 'summon', documentId: page.documentId }]);
    expect(world.activation(id)).toMatchObject({ state: 'waiting', mayHaveBegun: false });
  });

  test('its target has begun it before and is over it: navigated, started', () => {
    const { world, caller, page, id } = aRunningCall();
    world.dies();
    page.leaves();
    page.connects();
    caller.connects();
    expect(caller.outcomeOf(id)).toBe('failed: navigated, started');
    expect([...world.begun.keys()]).toEqual([id]);
  });

  test('its caller is gone meanwhile: cancelled', () => {
    const { world, caller, page, id } = aRunningCall();
    caller.crashes();
    world.dies();
    page.connects();
    expect(world.activation(id).state).toBe('running');
    world.looksForLostDocuments();
    expect(page.runs.get(id)?.aborted).toBe(true);
    expect(world.stateOf(id)).toBe('document-lost');
  });

  test.each(['the caller first', 'the target first'])(
    'cancelled while there was no worker, and the cancel is late: aborted all the same, %s',
    (order) => {
      const { world, caller, page, id } = aRunningCall();
      world.dies();
      caller.cancels(id);
      const [first, second] = order === 'the caller first' ? [caller, page] : [page, caller];
      first.connects();
      second.connects();
      expect(page.runs.get(id)?.aborted).toBe(true);
      expect(page.holds()).toEqual([]);
      expect(caller.outcomeOf(id)).toBe('aborted by the caller');
    },
  );

  test('told to run it by a worker that died unheard: it may have begun', () => {
    const { world, page, id } = aRunningCall({ frozen: true });
    world.dies();
    world.passes(3_000);
    const { settled } = world.execution(id);
    expect(settled?.ending).toMatchObject({ reason: 'document-unresponsive', started: true });
    expect(page.runs.size).toBe(0);
  });

  test('a direct caller need not know that the worker has its call: its silence cancels nothing', () => {
    const world = createWorld({ automatic: false });
    const page = world.opens({ tab: 'shop' });
    const frame = world.opens({ tab: 'shop', top: false });
    const id = frame.callsDirectly(page);
    page.requestsToken(id);
    world.dies();
    page.connects();
    page.sendsAll();
    frame.connects();
    expect(world.activation(id).state).toBe('running');
    page.returns(id, 'on our way');
    page.sendsAll();
    expect(world.stateOf(id)).toBe('open');
    expect(page.runs.get(id)?.aborted).toBe(false);
  });
});

describe('what is stored', () => {
  test('is loaded: a token can be redeemed though no document of the execution is left', () => {
    const { world, caller, page, id, digest } = aRunningCall({ granted: true });
    page.leaves({ destroyed: true });
    world.dies();
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    next.returns(activationId, 'paid');
    caller.connects();
    expect(caller.outcomeOf(id)).toBe('result: paid');
  });

  test('outputs and outcome are told again to a caller that says hello', () => {
    const { world, caller, page, id, digest } = aRunningCall({ granted: true });
    caller.freezes();
    page.returns(id, 'on our way');
    const { activationId } = page.redeems(digest, id);
    page.returns(activationId, 'paid');
    world.dies();
    caller.thaws();
    caller.connects();
    expect(caller.outputsOf(id)).toEqual(['on our way']);
    expect(caller.outcomeOf(id)).toBe('result: paid');
    expect(world.execution(id).met.get(caller.documentId)?.clientId).toBe(`client of ${caller.documentId}`);
  });

  test('an activation that its document still announces goes on', () => {
    const { world, page, id, digest } = aRunningCall({ granted: true });
    world.passes(30_000);
    world.restarts();
    expect(world.activation(id)).toMatchObject({ state: 'running', heardAt: world.now });
    page.returns(id);
    expect(world.token(digest).deadline).toBe(world.now + 60_000);
  });

  test('an activation that its document does not announce any more was over before', () => {
    const { world, page, id, digest } = aRunningCall({ granted: true });
    const heardAt = world.now;
    world.passes(30_000);
    world.dies();
    page.drops(id);
    page.connects();
    expect(world.activation(id).state).toBe('lost');
    expect(world.token(digest).deadline).toBe(heardAt + 60_000);
  });

  test('a resumption that was told but not read is told again, under its old id', () => {
    const { world, page, id, digest } = aRunningCall({ granted: true });
    page.returns(id);
    const next = world.opens({ tab: 'shop' });
    next.freezes();
    const { activationId } = next.redeems(digest, id);
    world.dies();
    next.thaws();
    next.connects();
    expect(world.activation(activationId)).toMatchObject({ state: 'running', mayHaveBegun: true });
    next.returns(activationId, 'paid');
    expect(world.stateOf(id)).toBe('result');
  });

  test('a redemption that was committed and not answered is asked for again, and is the same', () => {
    const world = createWorld({ automatic: false });
    const page = world.opens({ tab: 'shop' });
    const id = page.callsDirectly(page);
    const { digest } = page.requestsToken(id);
    page.sendsAll();
    const next = world.opens({ tab: 'shop', top: false });
    const { activationId } = next.redeems(digest, id);
    next.sends(0, { crash: true });
    page.connects();
    next.connects();
    next.sendsAll();
    expect(world.execution(id).activations.map((activation) => activation.id)).toEqual([id, activationId]);
    expect(next.holds()).toEqual([`resumption ${activationId}`]);
  });

  test('one that is asked for again when its execution has settled is accepted, and withdrawn', () => {
    const world = createWorld({ automatic: false });
    const page = world.opens({ tab: 'shop' });
    const id = page.callsDirectly(page);
    const { digest } = page.requestsToken(id);
    page.returns(id);
    page.sendsAll();
    const { activationId } = page.redeems(digest, id);
    page.sends(0, { crash: true });
    world.passes(60_501);
    expect(world.stateOf(id)).toBe('document-unresponsive');
    page.connects();
    page.sendsAll();
    page.readsAll();
    expect(page.withdrawn).toEqual([activationId]);
    expect(page.holds()).toEqual([]);
    expect(page.outcomeOf(id)).toBe('failed: document-unresponsive, started');
  });

  test('an outcome that was committed and not told is told', () => {
    const world = createWorld({ automatic: false });
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    const id = caller.calls(page);
    caller.sendsAll();
    page.readsAll();
    page.requestsToken(id);
    page.throws(id, { message: 'sold out' });
    page.sends();
    page.sends();
    page.sends(0, { crash: true });
    expect(world.stateOf(id)).toBe('tool-failed');
    caller.connects();
    caller.readsAll();
    expect(caller.outcomeOf(id)).toBe('failed: tool-failed, started, sold out');
  });

  test('expired while there was no worker', () => {
    const { world, caller, page, id } = aRunningCall({ granted: true });
    page.returns(id);
    world.jumps(0);
    page.leaves({ destroyed: true });
    world.passes(59_000);
    world.dies();
    world.passes(1_000);
    expect(world.stateOf(id)).toBe('token-expired');
    caller.connects();
    expect(caller.outcomeOf(id)).toBe('failed: token-expired, started');
  });

  test('a waiting resumption of what has settled meanwhile is withdrawn', () => {
    const { world, caller, id, digest } = aRunningCall({ granted: true });
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    world.dies();
    world.happens({ type: 'cancel-requested', executionId: id });
    next.connects();
    expect(next.withdrawn).toEqual([activationId]);
    expect(next.holds()).toEqual([]);
    expect(caller.connected).toBe(false);
  });

  test('a running activation of what has settled meanwhile is aborted and released', () => {
    const { world, page, id } = aRunningCall({ granted: true });
    world.dies();
    world.happens({ type: 'cancel-requested', executionId: id });
    page.connects();
    expect(page.runs.get(id)?.aborted).toBe(true);
    expect(page.holds()).toEqual([]);
  });

  test('of what another worker has commanded it is not known whether it began; of anything else it is', () => {
    const record = anExecution({
      activations: [
        anActivation({ id: 'runs' }),
        anActivation({ id: 'told', state: 'commanded' }),
        anActivation({ id: 'told to resume', state: 'commanded', resumes: 'digest' }),
      ],
    });
    const taken = withRecords(new Map(), [record]).get('execution');
    expect(taken?.activations.map(({ state, mayHaveBegun }) => [state, mayHaveBegun])).toEqual([
      ['running', false],
      ['waiting', true],
      ['commanded', true],
    ]);
  });

  test('a newer record replaces what is known, an older one does not', () => {
    const known = anExecution({ revision: 5 });
    const load = (revision: number) => {
      const record = anExecution({ revision, call: { toolName: `revision ${revision}` } });
      return [...withRecords(new Map(aState([known]).executions), [record]).values()];
    };
    expect(load(6)).toMatchObject([{ call: { toolName: 'revision 6' } }]);
    expect(load(5)).toEqual([known]);
    expect(load(4)).toEqual([known]);
    const unknown = anExecution({ id: 'another', revision: 0 });
    const loaded = withRecords(new Map(aState([known]).executions), [unknown]);
    expect([...loaded.values()]).toEqual([known, unknown]);
  });
});

describe('what nobody knows any more', () => {
  test('a call is told that it is over', () => {
    const { world, caller, page, id } = aRunningCall({ granted: true });
    page.returns(id, 'on our way');
    world.storage.clear();
    const waiting = caller.awaited.get(id);
    if (waiting) waiting.known = 'stored';
    world.restarts();
    expect(caller.outcomeOf(id)).toBe('failed: navigated, started');
    expect(world.stateOf(id)).toBe('forgotten');
  });

  test('a stored activation is aborted and released', () => {
    const { world, page, id } = aRunningCall({ granted: true });
    world.dies();
    world.storage.clear();
    world.dies();
    page.connects();
    expect(page.runs.get(id)?.aborted).toBe(true);
    expect(page.holds()).toEqual([]);
  });

  test('a resumption is withdrawn', () => {
    const { world, id, digest } = aRunningCall({ granted: true });
    const next = world.opens({ tab: 'shop' });
    const { activationId } = next.redeems(digest, id);
    world.dies();
    world.storage.clear();
    world.dies();
    next.connects();
    expect(next.withdrawn).toEqual([activationId]);
    const [effect] = world.effects;
    expect(effect).toMatchObject({ type: 'drop', documentId: next.documentId, activationId });
  });

  test('the end of an activation is no longer needed', () => {
    const { world } = aRunningCall();
    const end = returned('done');
    const reply = world.happens({ type: 'activation-ended', executionId: 'gone', activationId: 'gone', end });
    expect(answer(reply)).toBe('not-running');
  });
});

describe('a document that says hello again to the same worker', () => {
  test('its running activations go on, the others’ are left alone', () => {
    const { world, caller, page, id } = aRunningCall();
    caller.connects();
    page.connects();
    expect(world.activation(id).state).toBe('running');
    page.returns(id, 'done');
    expect(caller.outcomeOf(id)).toBe('result: done');
  });

  test('an activation that it did not read is told again', () => {
    const world = createWorld();
    const caller = world.opens({ tab: 'agent' });
    const page = world.opens({ tab: 'shop' });
    page.freezes();
    const id = caller.calls(page);
    page.connects();
    expect(page.inbox.map(({ type }) => type)).toEqual(['activate']);
    page.thaws();
    expect(world.activation(id)).toMatchObject({ state: 'running', mayHaveBegun: true });
  });

  test('settled, and its caller does not ask any more: it is told once more, and says that it has it', () => {
    const { world, caller, page, id } = aRunningCall({ granted: true });
    caller.freezes();
    page.throws(id);
    const waiting = caller.awaited.get(id);
    if (waiting) waiting.outcome = 'had it';
    expect(world.execution(id).settled?.ending).not.toBeNull();
    caller.connects();
    caller.thaws();
    expect(world.execution(id).settled?.ending).toBeNull();
    expect(waiting?.outcome).toBe('had it');
  });

  test('settled, and its caller never heard of it: it is kept for whoever collects it', () => {
    const { world, caller, page, id } = aRunningCall({ granted: true });
    caller.freezes();
    page.throws(id);
    caller.awaited.delete(id);
    caller.connects();
    caller.thaws();
    expect(world.execution(id).settled?.ending).not.toBeNull();
    caller.leaves();
    expect(world.execution(id)).toMatchObject({ callerDocumentId: null });
  });

  test('open and stored, and its caller does not name it yet: it stays the caller', () => {
    const { world, caller, id } = aRunningCall({ granted: true });
    const waiting = caller.awaited.get(id);
    if (waiting) waiting.known = 'maybe';
    caller.connects();
    expect(world.execution(id).callerDocumentId).toBe(caller.documentId);
    expect(world.stateOf(id)).toBe('open');
  });

  test('the announcement of one execution says nothing about another', () => {
    const kept = anExecution({
      id: 'kept',
      activations: [anActivation({ documentId: 'other', id: 'kept' })],
    });
    const state = aState([kept], [aDocument('other')]);
    const { documentId, tabId, groupId, top, url, clientId } = aDocument('newcomer');
    const facts = { documentId, tabId, groupId, top, url };
    const announcement = { tools: [], calls: [], activations: [], resumptions: [] };
    const done = step(state, at({ type: 'document-connected', facts, clientId, announcement }));
    expect(done.changes).toEqual([{ type: 'connect', document: { ...facts, clientId, tools: [] } }]);
  });

  test('an execution learns the tab and the browser’s id of its document', () => {
    const activation = anActivation({ id: 'a' });
    const tokens = [aToken({ issuer: 'a' })];
    const state = aState([anExecution({ activations: [activation], tokens, met: new Map() })]);
    const { documentId, tabId, groupId, top, url, clientId } = aDocument('target', { tabId: 'shop' });
    const running = {
      activationId: 'a',
      executionId: 'execution',
      key: '',
      stored: true,
      call: null,
      end: null,
    };
    const announcement = { tools: [], calls: [], activations: [running], resumptions: [] };
    const facts = { documentId, tabId, groupId, top, url };
    const done = step(state, at({ type: 'document-connected', facts, clientId, announcement }, START + 7));
    const put = done.changes.find(({ type }) => type === 'put');
    const changed = put?.type === 'put' ? put.execution : undefined;
    expect(changed?.activations[0]).toMatchObject({ state: 'running', heardAt: START + 7 });
    expect(changed?.met.get('target')).toEqual({ tabId: 'shop', clientId });
  });
});

test('what is told to a returning document is what was settled', () => {
  const { world, caller, page, id } = aRunningCall({ granted: true });
  caller.freezes();
  page.throws(id, { message: 'sold out' });
  world.dies();
  caller.connects();
  const [effect] = caller.inbox;
  expect(effect?.type === 'settle' && inWords(effect.ending)).toBe('failed: tool-failed, started, sold out');
});
