/**
 * Every event × the state that an execution, an activation or a token can be in: what the step answers, what it changes and
 * what it wants done. One activation or token is put into each state by hand, beside a running one that keeps its execution
 * open, so that nothing but the event moves it.
 */
import { describe, expect, test } from 'vitest';
import type { Effect, Happening } from '../../sw/core/event.ts';
import { ACTIVATION_TABLE } from '../../sw/core/execution.ts';
import type { Activation, ActivationState, Execution, Settlement, TokenState } from '../../sw/core/state.ts';
import { concerned, step } from '../../sw/core/step.ts';
import { TOKEN_TABLE } from '../../sw/core/token.ts';
import {
  aCall,
  aDocument,
  aGrant,
  anActivation,
  anExecution,
  answer,
  aState,
  aToken,
  at,
  aValue,
  boxOf,
  changedBy,
  declined,
  deepFreeze,
  metIn,
  returned,
  START,
  threw,
} from './records.ts';

const STATES = Object.keys(ACTIVATION_TABLE) as ActivationState[];
const DOCUMENTS = [aDocument('caller'), aDocument('target'), aDocument('anchor')];

interface Facts extends Partial<Activation> {
  /** Was it granted a token, which is outstanding? */
  granted?: boolean;
}

/** The activation under test resumes a token whose issuer still runs: nothing else moves it. */
function withActivation(state: ActivationState, { granted, ...facts }: Facts = {}): Execution {
  const held =
    state === 'held'
      ? ({
          type: 'threw',
          reason: 'tool-failed',
          error: aValue('it broke'),
          leaving: true,
        } as const)
      : null;
  return anExecution({
    activations: [
      anActivation({ id: 'anchor', documentId: 'anchor' }),
      anActivation({ state, resumes: 'digest', refuseAfter: START + 2_000, held, ...facts }),
    ],
    tokens: [
      aToken({ issuer: 'anchor', state: 'redeemed' }),
      ...(granted ? [aToken({ digest: 'own', issuer: 'activation' })] : []),
    ],
  });
}

function inWords(effect: Effect): string {
  const { type } = effect;
  if (type === 'announce-tools') return type;
  if (type === 'summon' || type === 'settle') return `${type} ${effect.documentId}`;
  return `${type} ${effect.documentId} ${effect.activationId}`;
}

/** What one event makes of one activation: its next state, how the execution settles, what is done. */
function outcomeOf(state: ActivationState, happening: Happening, facts: Facts = {}) {
  const known = deepFreeze(aState([withActivation(state, facts)], DOCUMENTS));
  const done = step(known, at(happening));
  const change = done.changes.find((candidate) => candidate.type === 'put' || candidate.type === 'remove');
  // Only of an activation that is over may an event leave its execution alone, and so storage.
  if (change === undefined) expect(Object.keys(ACTIVATION_TABLE[state])).toEqual([]);
  const execution = change?.execution ?? (known.executions.values().next().value as Execution);
  const [anchor, activation] = execution.activations;
  expect(execution.revision).toBe(change === undefined ? 1 : 2);
  if (execution.settled === null) expect(anchor?.state).toBe('running');
  return {
    state: activation?.state,
    settled: execution.settled?.as ?? null,
    effects: done.effects.map(inWords),
    reply: answer(done.reply),
    own: execution.tokens[1]?.state,
    redeemed: execution.tokens[0]?.state,
    outputs: execution.outputs.length,
    answer: execution.answer,
    activation,
  };
}

const ids = { executionId: 'execution', activationId: 'activation' };
const late = { reason: 'document-unresponsive', started: false, message: '' } as const;
const unavailable = { reason: 'tool-unavailable', started: false, message: '' } as const;
const begunBefore = { reason: 'navigated', started: true, message: '' } as const;

/** For each event: what becomes of an activation in each state. What is not named stays as it is and has no effect. */
const EXPECTED: Record<
  string,
  {
    happening: Happening;
    next: Partial<Record<ActivationState, ActivationState>>;
    settles?: ActivationState[];
    granted?: true;
  }
> = {
  'acknowledged: it begins': {
    happening: { type: 'activation-acknowledged', ...ids, refused: null },
    next: { waiting: 'running', commanded: 'running' },
  },
  'refused, read too late: it waits for its turn again': {
    happening: { type: 'activation-acknowledged', ...ids, refused: late },
    next: { commanded: 'waiting' },
  },
  'refused for good': {
    happening: { type: 'activation-acknowledged', ...ids, refused: unavailable },
    next: { waiting: 'withdrawn', commanded: 'withdrawn' },
  },
  'refused, begun before': {
    happening: { type: 'activation-acknowledged', ...ids, refused: begunBefore },
    next: { waiting: 'withdrawn', commanded: 'lost', running: 'lost' },
    settles: ['commanded', 'running'],
  },
  'ended, returned': {
    happening: { type: 'activation-ended', ...ids, end: returned('done') },
    next: { waiting: 'returned', commanded: 'returned', running: 'returned' },
  },
  'ended, threw, its document leaving and a token outstanding: held': {
    happening: { type: 'activation-ended', ...ids, end: threw('it broke', { leaving: true }) },
    next: { waiting: 'held', commanded: 'held', running: 'held' },
    granted: true,
  },
  'ended, not run after all': {
    happening: { type: 'activation-ended', ...ids, end: declined('it does not fit') },
    next: { waiting: 'withdrawn', commanded: 'withdrawn', running: 'withdrawn' },
    settles: ['waiting', 'commanded', 'running'],
  },
  'its document left': {
    happening: { type: 'document-left', documentId: 'target', lostCalls: [] },
    next: { waiting: 'withdrawn', commanded: 'lost', running: 'lost' },
    settles: ['commanded', 'running'],
  },
  'its document is lost': {
    happening: { type: 'document-lost', documentId: 'target' },
    next: { waiting: 'withdrawn', commanded: 'lost', running: 'lost' },
    settles: ['commanded', 'running'],
  },
  'another document left': {
    happening: { type: 'document-left', documentId: 'caller', lostCalls: [] },
    next: {},
    granted: true,
  },
  'a token of the other activation is asked for': {
    happening: {
      type: 'token-requested',
      documentId: 'anchor',
      ...aGrant({ activationId: 'anchor', digest: 'another' }),
    },
    next: {},
  },
  'another activation is spoken of': {
    happening: {
      type: 'activation-ended',
      executionId: 'execution',
      activationId: 'nobody',
      end: returned(''),
    },
    next: {},
  },
};

for (const [name, { happening, next, settles = [], granted = false }] of Object.entries(EXPECTED)) {
  describe(name, () => {
    test.each(STATES)('%s', (state) => {
      const outcome = outcomeOf(state, happening, { granted });
      expect(outcome.state).toBe(next[state] ?? state);
      expect(outcome.settled !== null).toBe(settles.includes(state));
      expect(outcome.reply).toBe('ok');
      if (!settles.includes(state)) {
        expect(outcome.effects.filter((effect) => !effect.startsWith('deliverOutput'))).toEqual([]);
      }
    });
  });
}

describe('a token’s fate, where its resumption moves', () => {
  test.each([
    ['refused, read too late', late, 'commanded', 'redeemed'],
    ['refused, read too late', late, 'waiting', 'redeemed'],
    ['refused for good', unavailable, 'commanded', 'outstanding'],
    ['refused for good', unavailable, 'waiting', 'outstanding'],
    ['refused, begun before', begunBefore, 'running', 'redeemed'],
  ] as const)('%s (%s) while %s: %s', (_, refused, state, fate) => {
    const outcome = outcomeOf(state, { type: 'activation-acknowledged', ...ids, refused });
    expect(outcome.redeemed).toBe(fate);
  });

  test.each([
    ['waiting', 'outstanding'],
    ['commanded', 'redeemed'],
    ['running', 'redeemed'],
    ['returned', 'redeemed'],
  ] as const)('its document left while %s: %s', (state, fate) => {
    expect(outcomeOf(state, { type: 'document-left', documentId: 'target', lostCalls: [] }).redeemed).toBe(
      fate,
    );
  });

  test('a refusal says that it had not begun, whatever was thought', () => {
    const refusal = { type: 'activation-acknowledged', ...ids, refused: late } as const;
    expect(outcomeOf('commanded', refusal, { mayHaveBegun: true }).activation?.mayHaveBegun).toBe(false);
  });
});

describe('what an end gives', () => {
  const end = { type: 'activation-ended', ...ids, end: returned('done') } as const;

  test('of an activation without a token: the answer', () => {
    const outcome = outcomeOf('running', end);
    expect(outcome.answer).toEqual(aValue('done'));
    expect(outcome.outputs).toBe(0);
    expect(outcome.effects).toEqual([]);
  });

  test('of one with a token: an output, told to the caller', () => {
    const outcome = outcomeOf('running', end, { granted: true });
    expect(outcome.answer).toBeNull();
    expect(outcome.outputs).toBe(1);
    expect(outcome.effects).toEqual(['deliverOutput caller activation']);
  });

  test.each(['returned', 'threw', 'held', 'discarded', 'lost', 'withdrawn'] as const)(
    'of one that is %s: nothing',
    (state) => {
      const outcome = outcomeOf(state, end, { granted: true });
      expect([outcome.answer, outcome.outputs, outcome.effects]).toEqual([null, 0, []]);
    },
  );

  test('it is heard of at that time, and its tokens count from then', () => {
    const outcome = outcomeOf('running', end, { heardAt: START - 5_000 });
    expect(outcome.activation?.heardAt).toBe(START);
  });

  test('a throw, its document not leaving: fails, and drops the others', () => {
    const outcome = outcomeOf('running', { ...end, end: threw('it broke') }, { granted: true });
    expect(outcome.settled).toBe('tool-failed');
    expect(outcome.effects).toEqual(['drop anchor anchor', 'settle caller']);
    expect([outcome.own, outcome.redeemed]).toEqual(['void', 'redeemed']);
  });

  test('a held throw is kept until it is known what it means', () => {
    const held = { ...end, end: threw('it broke', { leaving: true }) };
    const outcome = outcomeOf('running', held, { granted: true });
    expect(outcome.activation?.held).toEqual(held.end);
  });
});

describe('a document stays', () => {
  test.each(STATES)('%s', (state) => {
    const outcome = outcomeOf(state, { type: 'document-stayed', documentId: 'target' });
    expect(outcome.settled).toBe(state === 'held' ? 'tool-failed' : null);
    expect(outcome.state).toBe(state === 'held' ? 'threw' : state);
  });
});

describe('a cancel', () => {
  test.each(STATES)('%s', (state) => {
    const outcome = outcomeOf(
      state,
      { type: 'cancel-requested', executionId: 'execution' },
      { granted: true },
    );
    const runs = state === 'commanded' || state === 'running';
    expect(outcome.settled).toBe('aborted');
    expect(outcome.state).toBe(runs ? 'lost' : state === 'waiting' ? 'withdrawn' : state);
    expect(outcome.effects).toEqual([
      'drop anchor anchor',
      ...(runs || state === 'waiting' ? ['drop target activation'] : []),
      'settle caller',
      'drop anchor anchor',
      'drop target activation',
    ]);
    expect(outcome.own).toBe('void');
  });
});

describe('a token is presented', () => {
  const TOKENS = Object.keys(TOKEN_TABLE) as TokenState[];
  const presented = (activationId: string) =>
    ({
      type: 'token-presented',
      documentId: 'target',
      activationId,
      digest: 'digest',
    }) as const;

  function withToken(state: TokenState, redeemedBy = 'another') {
    const tokens = [aToken({ state, issuer: 'anchor' })];
    const activations = [anActivation({ id: 'anchor', documentId: 'anchor' })];
    if (state === 'redeemed') activations.push(anActivation({ id: redeemedBy, resumes: 'digest' }));
    return aState([anExecution({ tokens, activations })], DOCUMENTS);
  }

  test.each(TOKENS)('%s', (state) => {
    const done = step(deepFreeze(withToken(state)), at(presented('new')));
    const accepted = state === 'outstanding';
    expect(answer(done.reply)).toBe(accepted ? 'ok' : `token-${state}`);
    expect(done.changes).toHaveLength(accepted ? 1 : 0);
    expect(done.effects).toEqual([]);
  });

  test('outstanding: redeemed for an activation that waits for its turn', () => {
    const { execution } = changedBy(deepFreeze(withToken('outstanding')), at(presented('new')));
    expect(execution.tokens[0]?.state).toBe('redeemed');
    const waiting = { id: 'new', documentId: 'target', state: 'waiting', resumes: 'digest', heardAt: START };
    expect(execution.activations).toMatchObject([{ id: 'anchor' }, waiting]);
    expect(execution.met.get('target')).toEqual({ clientId: 'client of target', tabId: 'tab' });
  });

  test('its callback is told to run with the call, and with the token, which opens what is sealed', () => {
    const activations = [anActivation({ id: 'anchor', documentId: 'anchor', state: 'returned' })];
    const tokens = [aToken({ digest: 'another', issuer: 'anchor' }), aToken({ issuer: 'anchor' })];
    const known = anExecution({ tokens, activations });
    const { done } = changedBy(aState([known], DOCUMENTS), at(presented('new')));
    expect(done.effects).toEqual([
      {
        type: 'activate',
        documentId: 'target',
        executionId: 'execution',
        activationId: 'new',
        call: known.call,
        token: aToken({ issuer: 'anchor', state: 'redeemed' }),
        refuseAfter: START + 2_000,
      },
    ]);
  });

  test('the same redemption again: accepted, and changes nothing', () => {
    const known = withToken('redeemed', 'new');
    const { done, execution } = changedBy(known, at(presented('new')));
    expect(done.reply).toEqual({ ok: true, value: { executionId: 'execution' } });
    expect(execution.activations).toHaveLength(2);
  });

  test('the same redemption again, of what was withdrawn when its execution settled: void', () => {
    const settled: Settlement = {
      ending: null,
      as: 'aborted',
      keepUntil: START + 60_000,
    };
    const activations = [anActivation({ id: 'new', state: 'withdrawn', resumes: 'digest' })];
    const tokens = [aToken({ state: 'redeemed' })];
    const known = aState([anExecution({ settled, activations, tokens })], DOCUMENTS);
    expect(answer(step(known, at(presented('new'))).reply)).toBe('token-void');
  });

  test('nothing is refused as started: a retry is safe', () => {
    for (const state of ['redeemed', 'expired', 'void'] as const) {
      const { reply } = step(withToken(state), at(presented('new')));
      expect(reply.ok === false && reply.error.started).toBe(false);
    }
  });

  test('the same redemption again, of what was told to run and is over: its document is told to forget it', () => {
    const activations = [anActivation({ id: 'new', state: 'lost', resumes: 'digest' })];
    const tokens = [aToken({ state: 'redeemed' })];
    const settled = { ending: null, as: 'aborted', keepUntil: START + 60_000 } as const;
    const { done } = changedBy(
      aState([anExecution({ settled, activations, tokens })], DOCUMENTS),
      at(presented('new')),
    );
    expect(answer(done.reply)).toBe('ok');
    expect(done.effects).toEqual([{ type: 'drop', documentId: 'target', activationId: 'new' }]);
  });

  test('another digest of the same execution', () => {
    const done = step(withToken('outstanding'), at({ ...presented('new'), digest: 'another' }));
    expect(answer(done.reply)).toBe('token-unknown');
  });

  test('a digest that is found nowhere changes nothing', () => {
    const done = step(withToken('outstanding'), at({ ...presented('new'), digest: 'nowhere' }));
    expect([answer(done.reply), done.changes]).toEqual(['token-unknown', []]);
  });

  test('it is answered with the execution that holds it', () => {
    const done = step(withToken('outstanding'), at(presented('new')));
    expect(done.reply).toEqual({ ok: true, value: { executionId: 'execution' } });
  });

  test('a held throw of its issuer is discarded, one of another is not', () => {
    const tokens = [aToken({ issuer: 'holds' })];
    const holds = {
      held: {
        type: 'threw',
        reason: 'tool-failed',
        error: aValue('it broke'),
        leaving: true,
      } as const,
      state: 'held' as const,
    };
    const activations = [anActivation({ id: 'holds', ...holds }), anActivation({ id: 'another', ...holds })];
    const { execution } = changedBy(
      aState([anExecution({ tokens, activations })], DOCUMENTS),
      at(presented('new')),
    );
    expect(execution.activations.map(({ state }) => state)).toEqual(['discarded', 'held', 'commanded']);
  });
});

describe('a token is asked for', () => {
  const grant = aGrant({ tokenKey: boxOf('key of the token'), lifetime: 5_000 });
  const asked = { type: 'token-requested', documentId: 'target', ...grant } as const;

  test.each(STATES)('by an activation that is %s', (state) => {
    const known = aState([withActivation(state)], DOCUMENTS);
    const done = step(deepFreeze(known), at(asked));
    const runs = state === 'waiting' || state === 'commanded' || state === 'running';
    expect(answer(done.reply)).toBe(runs ? 'ok' : 'not-running');
    if (!runs) expect(done.changes).toEqual([]);
    else {
      const { execution } = changedBy(known, at(asked));
      expect(execution.activations[1]).toMatchObject({ state: 'running', heardAt: START });
      expect(execution.tokens[1]).toEqual({
        digest: 'new',
        state: 'outstanding',
        key: boxOf('key of the token'),
        issuer: 'activation',
        lifetime: 5_000,
        deadline: null,
      });
    }
  });

  test('not-running may have started', () => {
    const { reply } = step(aState([withActivation('returned')], DOCUMENTS), at(asked));
    expect(reply.ok === false && reply.error.started).toBe(true);
  });

  test('of a settled execution: not running', () => {
    const settled = { ending: null, as: 'aborted', keepUntil: START } as const;
    const known = aState([anExecution({ settled, activations: [anActivation()] })], DOCUMENTS);
    expect(answer(step(known, at(asked)).reply)).toBe('not-running');
  });

  test('by a call that is known already, which its page does not know yet: what is stored stays', () => {
    const known = aState([anExecution({ activations: [anActivation()] })], DOCUMENTS);
    const call = aCall({ input: aValue('sealed anew') });
    const { execution } = changedBy(known, at({ ...asked, call }));
    expect(execution.call).toEqual(aCall({ input: aValue('{"item":1}'), tabKey: boxOf('key') }));
  });

  test('a resumed activation brings no input and no key: what is stored stays', () => {
    const known = aState([anExecution({ activations: [anActivation()] })], DOCUMENTS);
    const { execution } = changedBy(known, at({ ...asked, call: null }));
    expect(execution.call).toEqual(aCall({ input: aValue('{"item":1}'), tabKey: boxOf('key') }));
  });

  test('for a call that the worker has never heard of: now it has', () => {
    const call = aCall({ toolName: 'book', input: aValue('{"seat":3}') });
    const { done, execution } = changedBy(
      aState([], DOCUMENTS),
      at({ ...asked, activationId: 'execution', call }),
    );
    expect(answer(done.reply)).toBe('ok');
    expect(execution).toMatchObject({
      id: 'execution',
      stored: true,
      call,
      callerDocumentId: 'caller',
      met: metIn('tab', 'caller', 'target'),
    });
    const activation = { id: 'execution', documentId: 'target', state: 'running', heardAt: START };
    expect(execution.activations).toMatchObject([activation]);
  });
});

describe('a token is asked for by a call that is not known', () => {
  const grant = aGrant({ activationId: 'execution' });
  const ask = (callerTabId: string, callerIsHere = true) => {
    const caller = aDocument('caller', { tabId: callerTabId });
    const known = aState([], [aDocument('target', { tabId: 'shop' }), ...(callerIsHere ? [caller] : [])]);
    const asked = { ...grant, call: aCall({ callerTabId }) };
    return answer(step(known, at({ type: 'token-requested', documentId: 'target', ...asked })).reply);
  };

  test('of a caller in its own tab: granted', () => expect(ask('shop')).toBe('ok'));
  test('of a caller in another tab: granted', () => expect(ask('agent')).toBe('ok'));
  test('of a caller that is not here: granted', () => expect(ask('agent', false)).toBe('ok'));
});

describe('limits', () => {
  test('too many tokens of one execution', () => {
    const tokens = Array.from({ length: 15 }, (_, index) => aToken({ digest: `${index}` }));
    const known = (count: number) =>
      aState([anExecution({ activations: [anActivation()], tokens: tokens.slice(0, count) })], DOCUMENTS);
    const ask = (count: number, digest: string) => {
      const grant = aGrant({ digest });
      return step(known(count), at({ type: 'token-requested', documentId: 'target', ...grant }));
    };
    expect(answer(ask(15, 'the sixteenth').reply)).toBe('ok');
    tokens.push(aToken({ digest: '15' }));
    const refused = ask(16, 'the seventeenth');
    expect(refused.reply).toMatchObject({ ok: false, error: { reason: 'too-many', started: true } });
    expect(refused.reply.ok === false && refused.reply.error.message).toContain('16');
    expect(refused.changes).toEqual([]);
    expect(answer(ask(16, '15').reply)).toBe('ok');
  });

  test('too many open executions of one document', () => {
    const open = (callerDocumentId: string, index: number) =>
      anExecution({ id: `${callerDocumentId} ${index}`, callerDocumentId, activations: [anActivation()] });
    const known = aState(
      [open('caller', 1), open('caller', 2), open('another', 1)].concat(
        anExecution({
          id: 'over',
          settled: {
            ending: { type: 'result', value: aValue('done') },
            as: 'result',
            keepUntil: START,
          },
        }),
      ),
      DOCUMENTS,
    );
    const ask = (executions: number) => {
      const sizes = { ...known.sizes, executions };
      const event = { type: 'execution-requested', documentId: 'caller', call: aCall() } as const;
      return step({ ...known, sizes }, at(event));
    };
    expect(answer(ask(3).reply)).toBe('ok');
    const refused = ask(2);
    expect(refused.reply).toMatchObject({ ok: false, error: { reason: 'too-many', started: false } });
    expect(refused.reply.ok === false && refused.reply.error.message).toContain('2');
    expect([refused.changes, refused.effects]).toEqual([[], []]);
  });
});

describe('an execution is asked for', () => {
  const asked = (facts: Parameters<typeof aCall>[0] = {}) =>
    ({ type: 'execution-requested', documentId: 'caller', call: aCall(facts) }) as const;

  test('its target is told to run it, within the bound', () => {
    const { done, execution } = changedBy(aState([], DOCUMENTS), at(asked()));
    expect(done.effects).toEqual([
      {
        type: 'activate',
        documentId: 'target',
        executionId: 'execution',
        activationId: 'execution',
        call: aCall(),
        token: null,
        refuseAfter: START + 2_000,
      },
    ]);
    expect(execution).toMatchObject({
      stored: true,
      call: aCall(),
      callerDocumentId: 'caller',
      met: metIn('tab', 'caller', 'target'),
      revision: 1,
    });
    expect(execution.activations).toEqual([
      anActivation({ id: 'execution', state: 'commanded', refuseAfter: START + 2_000 }),
    ]);
  });

  test('its target is in another group: unavailable, and it certainly did not start', () => {
    const stranger = aDocument('stranger', { groupId: 'elsewhere' });
    const known = aState([], [...DOCUMENTS, stranger]);
    const { done } = changedBy(known, at(asked({ documentId: 'stranger' })));
    const ending = { type: 'failed', reason: 'tool-unavailable', started: false, detail: null };
    expect(done.effects).toEqual([
      { type: 'drop', documentId: 'stranger', activationId: 'execution' },
      { type: 'settle', documentId: 'caller', executionId: 'execution', ending },
    ]);
  });

  test('its target is not known to this worker: it is asked to say hello', () => {
    const { done, execution } = changedBy(aState([], DOCUMENTS), at(asked({ documentId: 'asleep' })));
    expect(done.effects).toEqual([{ type: 'summon', documentId: 'asleep' }]);
    expect(execution.activations).toMatchObject([{ state: 'waiting' }]);
    expect([...execution.met.keys()]).toEqual(['caller']);
  });

  test('and told to run it when it does', () => {
    const { execution } = changedBy(aState([], DOCUMENTS), at(asked({ documentId: 'asleep' })));
    const { documentId, tabId, groupId, top, url, clientId } = aDocument('asleep');
    const facts = { documentId, tabId, groupId, top, url };
    const announcement = { tools: [], calls: [], activations: [], resumptions: [] };
    const hello = { type: 'document-connected', facts, clientId, announcement } as const;
    const { done } = changedBy(aState([execution], DOCUMENTS), at(hello));
    expect(done.effects.map(inWords)).toEqual(['activate asleep execution']);
  });

  test('again: the same execution', () => {
    const { execution } = changedBy(aState([], DOCUMENTS), at(asked()));
    const again = changedBy(aState([execution], DOCUMENTS), at(asked()));
    expect(again.execution).toEqual({ ...execution, revision: execution.revision + 1 });
    expect(again.done.effects).toEqual([]);
  });

  test('again, and meanwhile it was taken for one that nobody awaits: it is awaited', () => {
    const { execution } = changedBy(aState([], DOCUMENTS), at(asked()));
    const again = changedBy(aState([{ ...execution, callerDocumentId: null }], DOCUMENTS), at(asked()));
    expect(again.execution.callerDocumentId).toBe('caller');
  });

  test('again, by a document that has left: it is not awaited', () => {
    const { execution } = changedBy(aState([], DOCUMENTS), at(asked()));
    const known = aState([{ ...execution, callerDocumentId: null }], [aDocument('target')]);
    expect(changedBy(known, at(asked())).execution.callerDocumentId).toBeNull();
  });

  test('by a document that has left: refused, and it did not start', () => {
    const done = step(aState([], [aDocument('target')]), at(asked()));
    expect(done.reply).toMatchObject({ ok: false, error: { reason: 'inactive-document', started: false } });
    expect([done.changes, done.effects]).toEqual([[], []]);
  });
});

describe('an outcome is delivered', () => {
  const settled: Settlement = {
    ending: { type: 'result', value: aValue('done') },
    as: 'result',
    keepUntil: START + 600_000,
  };
  const delivered = (documentId: string) =>
    ({ type: 'outcome-delivered', executionId: 'execution', documentId }) as const;
  const known = () =>
    anExecution({
      settled,
      answer: aValue('done'),
      outputs: [{ activationId: 'activation', value: aValue('on our way') }],
      activations: [anActivation({ state: 'returned' })],
      tokens: [aToken({ state: 'redeemed', deadline: START + 5_000 })],
    });

  test('to its caller: it shrinks, and its documents drop what they kept', () => {
    const { done, execution } = changedBy(aState([known()], DOCUMENTS), at(delivered('caller')));
    expect(execution.settled).toEqual({ ...settled, ending: null, keepUntil: START + 65_000 });
    expect(execution).toMatchObject({ answer: null, outputs: [] });
    expect(execution.call).toEqual(aCall({ input: {}, tabKey: null }));
    expect(execution.tokens).toMatchObject([{ state: 'redeemed', key: null }]);
    expect(done.effects.map(inWords)).toEqual(['drop target activation']);
  });

  test('to somebody else: it is still to be delivered', () => {
    const { done, execution } = changedBy(aState([known()], DOCUMENTS), at(delivered('target')));
    expect(execution).toEqual({ ...known(), revision: 2 });
    expect(done.effects).toEqual([]);
  });

  test('twice: dropped once', () => {
    const once = changedBy(aState([known()], DOCUMENTS), at(delivered('caller'))).execution;
    expect(changedBy(aState([once], DOCUMENTS), at(delivered('caller'))).done.effects).toEqual([]);
  });

  test('while the execution is open: nothing', () => {
    const open = anExecution({ activations: [anActivation()] });
    const { execution } = changedBy(aState([open], DOCUMENTS), at(delivered('caller')));
    expect(execution.settled).toBeNull();
  });

  test('without a token: forgotten', () => {
    const { done } = changedBy(aState([{ ...known(), tokens: [] }], DOCUMENTS), at(delivered('caller')));
    expect(done.changes.map(({ type }) => type)).toEqual(['remove']);
  });
});

describe('documents come and go', () => {
  const tool = {
    registrationId: 'r',
    name: 'checkout',
    title: '',
    description: 'Pays',
    inputSchema: '',
    annotations: null,
  };
  const hello = (documentId: string, tools: (typeof tool)[], readyFrom?: number, quiet = false) => {
    const { tabId, groupId, top, url, clientId } = aDocument(documentId);
    const facts = { documentId, tabId, groupId, top, url };
    const announcement = {
      tools,
      ...(readyFrom !== undefined && { readyFrom }),
      quiet,
      calls: [],
      activations: [],
      resumptions: [],
    };
    return at({ type: 'document-connected', facts, clientId, announcement });
  };

  test.each([
    ['comes with tools', [] as (typeof tool)[], [tool], true],
    ['comes without', [], [], false],
    ['says hello again, with none left', [tool], [], true],
  ])('%s', (_, before, tools, isTold) => {
    const known = aState([], before.length > 0 ? [aDocument('target', { tools: before })] : []);
    const done = step(known, hello('target', tools));
    expect(done.changes).toEqual([{ type: 'connect', document: aDocument('target', { tools }) }]);
    expect(done.effects).toEqual(isTold ? [{ type: 'announce-tools', groupId: 'group', quiet: false }] : []);
  });

  test.each([
    ['with tools', [tool], true],
    ['without', [], false],
  ])('leaves %s', (_, tools, isTold) => {
    const known = aState([], [aDocument('target', { tools })]);
    for (const event of [
      at({ type: 'document-left', documentId: 'target', lostCalls: [] }),
      at({ type: 'document-lost', documentId: 'target' }),
    ]) {
      const done = step(known, event);
      expect(done.changes).toEqual([{ type: 'disconnect', documentId: 'target' }]);
      expect(done.effects).toEqual(
        isTold ? [{ type: 'announce-tools', groupId: 'group', quiet: false }] : [],
      );
    }
  });

  test('comes with tools that the group had heard of from another worker: in silence', () => {
    const done = step(aState([]), hello('target', [tool], undefined, true));
    expect(done.effects).toEqual([{ type: 'announce-tools', groupId: 'group', quiet: true }]);
  });

  test('leaves, and was not known: nothing', () => {
    const done = step(aState([], []), at({ type: 'document-lost', documentId: 'target' }));
    expect([done.changes, done.effects]).toEqual([[], []]);
  });

  test('its tools change', () => {
    const known = aState([], [aDocument('target')]);
    const done = step(known, at({ type: 'tools-changed', documentId: 'target', tools: [tool] }));
    expect(done.changes).toEqual([{ type: 'connect', document: aDocument('target', { tools: [tool] }) }]);
    expect(done.effects).toEqual([{ type: 'announce-tools', groupId: 'group', quiet: false }]);
  });

  test.each([
    ['without tools, and is not ready', [], START + 1, true],
    ['with tools, while a promise of it pends', [tool], Infinity, true],
    ['with tools, and is not parsed', [tool], START + 1, false],
    ['without tools, and is ready', [], 0, true],
  ])('comes %s: listings that wait are told, events are held back', (_, tools, readyFrom, quiet) => {
    const done = step(aState([]), hello('target', tools, readyFrom));
    expect(done.changes).toEqual([{ type: 'connect', document: aDocument('target', { tools, readyFrom }) }]);
    expect(done.effects).toEqual([{ type: 'announce-tools', groupId: 'group', quiet }]);
  });

  test.each([
    ['loses its readiness', 0, Infinity, true, true],
    ['registers while it is not ready', Infinity, Infinity, false, true],
    ['is ready again', Infinity, 0, false, false],
    ['is leaving', 0, START + 1_000, true, true],
  ])('a document with tools %s', (_, before, readyFrom, quiet, isSilent) => {
    const known = aState([], [aDocument('target', { tools: [tool], readyFrom: before })]);
    const done = step(
      known,
      at({ type: 'tools-changed', documentId: 'target', tools: [tool], readyFrom, quiet }),
    );
    expect(done.changes).toEqual([
      { type: 'connect', document: aDocument('target', { tools: [tool], readyFrom }) },
    ]);
    expect(done.effects).toEqual([{ type: 'announce-tools', groupId: 'group', quiet: isSilent }]);
  });

  test('leaves while a promise of it pends: that its tools are gone is told aloud', () => {
    const known = aState([], [aDocument('target', { tools: [tool], readyFrom: Infinity })]);
    const done = step(known, at({ type: 'document-left', documentId: 'target', lostCalls: [] }));
    expect(done.effects).toEqual([{ type: 'announce-tools', groupId: 'group', quiet: false }]);
  });

  test('tools of a document that is not here', () => {
    const done = step(aState([]), at({ type: 'tools-changed', documentId: 'target', tools: [tool] }));
    expect([done.changes, done.effects]).toEqual([[], []]);
  });
});

test('a worker that starts looks after what is overdue, and what waits for a document that has not said hello', () => {
  const waiting = (id: string, resumes: string | null = null) =>
    anExecution({
      id,
      activations: [
        anActivation({ id: 'over', state: 'returned' }),
        anActivation({ id, state: 'waiting', resumes }),
      ],
    });
  const known = [
    anExecution({ id: 'overdue', tokens: [aToken({ deadline: START })] }),
    anExecution({ id: 'runs', activations: [anActivation()] }),
    waiting('waits to begin'),
    waiting('waits to be resumed', 'digest'),
  ];
  expect(concerned(aState(known), at({ type: 'worker-started' }))).toEqual(['overdue', 'waits to begin']);
});

describe('which executions an event concerns: all that a transaction has to read', () => {
  const own = anExecution({
    id: 'as caller',
    callerDocumentId: 'target',
    activations: [anActivation({ documentId: 'x' })],
  });
  const runs = anExecution({
    id: 'as target',
    activations: [anActivation()],
    call: { callerTabId: 'elsewhere' },
  });
  const other = anExecution({
    id: 'other',
    callerDocumentId: null,
    call: { callerTabId: 'another tab' },
    activations: [anActivation({ documentId: 'x' })],
    tokens: [aToken({ digest: 'of other' })],
  });
  const overdue = anExecution({
    id: 'overdue',
    call: { callerTabId: 'elsewhere' },
    tokens: [aToken({ deadline: START })],
  });
  const documents = [aDocument('x', { tabId: 'another tab' }), aDocument('target')];
  const known = aState([own, runs, other, overdue], documents);
  const facts = { documentId: 'target', tabId: 'tab', groupId: 'group', top: true, url: '' };

  test.each<[Happening, string[]]>([
    [{ type: 'document-left', documentId: 'target', lostCalls: [] }, ['as caller', 'as target']],
    [{ type: 'document-lost', documentId: 'target' }, ['as caller', 'as target']],
    [{ type: 'document-stayed', documentId: 'target' }, ['as caller', 'as target']],
    [{ type: 'tools-changed', documentId: 'target', tools: [] }, []],
    [{ type: 'execution-requested', documentId: 'caller', call: aCall() }, ['execution']],
    [{ type: 'cancel-requested', executionId: 'other' }, ['other']],
    [{ type: 'token-requested', documentId: 'target', ...aGrant({ executionId: 'other' }) }, ['other']],
    [{ type: 'token-presented', documentId: 'target', activationId: 'a', digest: 'of other' }, ['other']],
    [{ type: 'token-presented', documentId: 'target', activationId: 'a', digest: 'of nobody' }, []],
    [{ type: 'activation-acknowledged', executionId: 'other', activationId: 'a', refused: null }, ['other']],
    [{ type: 'activation-ended', executionId: 'other', activationId: 'a', end: returned('') }, ['other']],
    [{ type: 'outcome-delivered', executionId: 'other', documentId: 'target' }, ['other']],
    [{ type: 'outcomes-collected', documentId: 'x' }, ['other']],
    [{ type: 'outcomes-collected', documentId: 'target' }, ['as caller']],
    [{ type: 'outcomes-awaited', documentId: 'x', executionIds: ['other', 'gone'] }, ['other', 'gone']],
    [{ type: 'time-passed' }, ['overdue']],
    [
      {
        type: 'document-connected',
        facts,
        clientId: '',
        announcement: {
          tools: [],
          calls: [{ executionId: 'called', key: '' }],
          activations: [
            { activationId: 'a', executionId: 'run', key: '', stored: true, end: null },
            { activationId: 'b', executionId: 'as target', key: '', stored: true, end: null },
          ],
          resumptions: [{ activationId: 'c', executionId: 'resumed', token: '' }],
        },
      },
      ['called', 'run', 'as target', 'resumed', 'as caller'],
    ],
  ])('%o', (happening, expected) => {
    expect(concerned(known, at(happening))).toEqual(expected);
  });

  test('what a clock that was set back would let live too long is due', () => {
    const tokens = [aToken({ deadline: START + 60_001 })];
    const jumped = anExecution({ tokens });
    expect(concerned(aState([jumped]), at({ type: 'time-passed' }))).toEqual(['execution']);
    const fine = anExecution({ tokens: [aToken({ deadline: START + 60_000 })] });
    expect(concerned(aState([fine]), at({ type: 'time-passed' }))).toEqual([]);
  });
});
