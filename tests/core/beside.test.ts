/**
 * Several executions, activations and tokens beside each other: what is said of one touches no other. And what decides when
 * there are several: which activation is the latest, whose token it was.
 */
import { describe, expect, test } from 'vitest';
import type { Announcement } from '../../shared/protocol.ts';
import type { Effect } from '../../sw/core/event.ts';
import type { ConnectedDocument, Execution, State } from '../../sw/core/state.ts';
import { step } from '../../sw/core/step.ts';
import {
  aDocument,
  aGrant,
  anActivation,
  anExecution,
  answer,
  aState,
  aToken,
  at,
  aValue,
  changedBy,
  inWords,
  metIn,
  returned,
  START,
  threw,
} from './records.ts';

const NOTHING: Announcement = { tools: [], calls: [], activations: [], resumptions: [] };

function hello(state: State, document: ConnectedDocument, announcement: Partial<Announcement>) {
  const { clientId, tools: _, ...facts } = document;
  const said = { ...NOTHING, ...announcement };
  const done = step(
    state,
    at({ type: 'document-connected', facts, clientId, announcement: said }, START + 1),
  );
  const executions = new Map<string, Execution>();
  for (const change of done.changes)
    if (change.type === 'put') executions.set(change.execution.id, change.execution);
  return { effects: done.effects, executions };
}

function running(executionId: string, facts: Partial<Announcement['activations'][number]> = {}) {
  return {
    activationId: executionId,
    executionId,
    key: 'key',
    stored: true,
    end: null,
    ...facts,
  };
}

function told(effects: Effect[]): string[] {
  return effects.map((effect) => {
    if (effect.type === 'settle') return `${effect.executionId} ${inWords(effect.ending)}`;
    return 'activationId' in effect ? `${effect.type} ${effect.activationId}` : effect.type;
  });
}

/** Two stored executions whose activations have the names of their executions and run in one document. */
function two(facts: Parameters<typeof anExecution>[0] = {}) {
  return ['one', 'two'].map((id) =>
    anExecution({ id, callerDocumentId: null, activations: [anActivation({ id })], ...facts }),
  );
}

describe('an announcement that speaks of several', () => {
  test('each gets its own end', () => {
    const activations = [
      running('one', { end: returned('of one') }),
      running('two', { end: threw('of two') }),
    ];
    const { executions } = hello(aState(two()), aDocument('target'), { activations });
    expect(executions.get('one')?.settled?.as).toBe('result');
    expect(executions.get('two')?.settled?.as).toBe('tool-failed');
  });

  test('one that it names goes on, one that it does not is over: lost without a word', () => {
    const { executions } = hello(aState(two()), aDocument('target'), { activations: [running('two')] });
    expect(executions.get('one')?.settled?.as).toBe('document-lost');
    expect(executions.get('two')?.activations[0]?.state).toBe('running');
  });

  test('a call is awaited by its name', () => {
    const known = two({
      callerDocumentId: 'caller',
      call: { keepalive: true },
      activations: [anActivation()],
      met: metIn('elsewhere', 'target'),
    });
    const calls = [{ executionId: 'two', key: 'key' }];
    const { executions } = hello(aState(known), aDocument('caller'), { calls });
    expect(executions.get('one')?.callerDocumentId).toBeNull();
    expect(executions.get('two')?.callerDocumentId).toBe('caller');
  });

  test('what nobody knows is dismissed, each by its own name', () => {
    const { effects, executions } = hello(aState([]), aDocument('target'), {
      calls: [{ executionId: 'one', key: 'key' }],
      activations: [running('two'), running('three')],
      resumptions: [
        { activationId: 'waits', executionId: 'one', token: '' },
        { activationId: 'waits too', executionId: 'three', token: '' },
      ],
    });
    expect(told(effects)).toEqual([
      'one failed: navigated, started',
      'drop waits',
      'drop two',
      'drop three',
      'drop waits too',
    ]);
    expect(executions.size).toBe(0);
  });

  test('one whose first token is only being asked for is left alone, whether it is known or not', () => {
    const activations = [running('one', { stored: false }), running('nobody knows', { stored: false })];
    const known = two().slice(0, 1);
    const { effects, executions } = hello(aState(known), aDocument('target'), { activations });
    expect(told(effects)).toEqual([]);
    expect(executions.get('one')?.activations[0]?.state).toBe('running');
  });

  test('a resumption that still waits is left to wait; one that is over is dropped', () => {
    const issuer = anActivation({ id: 'issuer', documentId: 'other' });
    const waiting = (id: string, state: 'waiting' | 'withdrawn') =>
      anActivation({ id, state, resumes: 'digest' });
    const known = anExecution({
      callerDocumentId: null,
      activations: [issuer, waiting('waits', 'waiting'), waiting('over', 'withdrawn')],
      tokens: [aToken({ issuer: 'issuer', state: 'redeemed' })],
    });
    const resumptions = ['waits', 'over', 'never heard of'].map((activationId) => ({
      activationId,
      executionId: 'execution',
      token: '',
    }));
    const { effects } = hello(aState([known]), aDocument('target'), { resumptions });
    expect(told(effects)).toEqual(['drop over', 'drop never heard of']);
  });

  test('a resumption of one execution is none of another', () => {
    const known = two();
    const resumptions = [{ activationId: 'gone', executionId: 'three', token: '' }];
    const { effects } = hello(aState(known), aDocument('target'), {
      activations: [running('one'), running('two')],
      resumptions,
    });
    expect(told(effects)).toEqual(['drop gone']);
  });

  test('an activation of what is settled is dropped, by its own document', () => {
    const settled = { ending: null, as: 'aborted', keepUntil: START } as const;
    const known = anExecution({
      settled,
      tokens: [aToken({ state: 'void' })],
      activations: [anActivation({ state: 'lost' })],
    });
    const activations = [running('execution', { activationId: 'activation' })];
    const { effects } = hello(aState([known]), aDocument('target'), { activations });
    expect(told(effects)).toEqual(['drop activation']);
  });
});

describe('a caller that says hello and does not name its call', () => {
  const known = (facts: Parameters<typeof anExecution>[0]) =>
    hello(
      aState([
        anExecution({
          activations: [anActivation()],
          met: metIn('elsewhere', 'target'),
          ...facts,
        }),
      ]),
      aDocument('caller'),
      {},
    );

  test('had called directly, and need not know that the worker has it: it goes on', () => {
    const { executions, effects } = known({
      outputs: [{ activationId: 'activation', value: aValue('billed') }],
    });
    expect(executions.get('execution')).toMatchObject({ settled: null, callerDocumentId: 'caller' });
    expect(told(effects)).toEqual(['deliverOutput activation']);
  });

  test('keepalive, collected by it meanwhile: it may not know so yet, and stays the caller', () => {
    const call = { keepalive: true, callerDocumentId: 'the one before' };
    expect(known({ call }).executions.get('execution')?.callerDocumentId).toBe('caller');
  });

  test('keepalive: it lives on, and waits to be collected', () => {
    const execution = known({ call: { keepalive: true } }).executions.get('execution');
    expect(execution).toMatchObject({ settled: null, callerDocumentId: null });
  });
});

describe('a throw beside the tokens of others', () => {
  test('its own are all redeemed, another’s is outstanding: nothing changes', () => {
    const known = anExecution({
      activations: [anActivation({ id: 'throws' }), anActivation({ id: 'other', documentId: 'other' })],
      tokens: [
        aToken({ digest: 'redeemed', issuer: 'throws', state: 'redeemed' }),
        aToken({ digest: 'others', issuer: 'other' }),
      ],
    });
    const end = { executionId: 'execution', activationId: 'throws', end: threw('it broke') };
    const { execution } = changedBy(aState([known]), at({ type: 'activation-ended', ...end }));
    expect(execution.settled).toBeNull();
    expect(execution.tokens[1]).toMatchObject({ state: 'outstanding', deadline: null });
  });

  test('the end of one activation starts its own tokens’ lifetimes only', () => {
    const known = anExecution({
      activations: [anActivation({ id: 'ends' }), anActivation({ id: 'runs' })],
      tokens: [aToken({ digest: 'own', issuer: 'ends' }), aToken({ digest: 'others', issuer: 'runs' })],
    });
    const end = { executionId: 'execution', activationId: 'ends', end: returned('') };
    const { execution } = changedBy(aState([known]), at({ type: 'activation-ended', ...end }));
    expect(execution.tokens.map(({ deadline }) => deadline)).toEqual([START + 60_000, null]);
  });
});

describe('the caller leaves, and there are several activations', () => {
  const here = { documentId: 'target' };
  const elsewhere = { documentId: 'elsewhere' };
  const met = new Map([...metIn('tab', 'target', 'next'), ...metIn('elsewhere', 'elsewhere')]);
  const leave = (type: 'document-left' | 'document-lost', known: Execution) => {
    const happening =
      type === 'document-left'
        ? { type, documentId: 'caller', lostCalls: [] }
        : { type, documentId: 'caller' };
    return changedBy(aState([{ ...known, met }]), at(happening)).execution.settled?.as ?? 'lives on';
  };
  const returnedThere = anActivation({ id: 'first', state: 'returned', ...elsewhere });
  const returnedHere = anActivation({ id: 'first', state: 'returned', ...here });
  const outstanding = aToken({ issuer: 'first', deadline: START + 60_000 });

  test.each(['withdrawn', 'waiting'] as const)(
    'one that is %s has not run: it is not the latest',
    (state) => {
      const issuer = anActivation({ id: 'issuer', ...here });
      const notRun = (where: object) => anActivation({ id: 'second', state, resumes: 'redeemed', ...where });
      const redeemed = aToken({
        digest: 'redeemed',
        issuer: 'issuer',
        state: 'redeemed',
      });
      const tokens = [outstanding, redeemed];
      expect(leave('document-left', anExecution({ activations: [issuer, notRun(elsewhere)], tokens }))).toBe(
        'lives on',
      );
      const there = { ...issuer, ...elsewhere };
      expect(leave('document-left', anExecution({ activations: [there, notRun(here)], tokens }))).toBe(
        'navigated',
      );
    },
  );

  test('the last one that ran decides', () => {
    const second = (where: object) =>
      anActivation({ id: 'second', resumes: 'redeemed', state: 'returned', ...where });
    const tokens = [outstanding];
    const toHere = anExecution({ activations: [returnedThere, second(here)], tokens });
    const toThere = anExecution({ activations: [returnedHere, second(elsewhere)], tokens });
    expect(leave('document-left', toHere)).toBe('lives on');
    expect(leave('document-left', toThere)).toBe('navigated');
  });

  test('nothing has run and nothing is outstanding: cancelled', () => {
    expect(leave('document-left', anExecution({ activations: [anActivation({ state: 'waiting' })] }))).toBe(
      'navigated',
    );
  });

  test.each([
    ['document-lost', 'running', 'digest', 'lives on'],
    ['document-lost', 'commanded', 'digest', 'lives on'],
    ['document-left', 'running', 'digest', 'navigated'],
    ['document-lost', 'running', null, 'document-lost'],
    ['document-lost', 'returned', 'digest', 'document-lost'],
  ] as const)('%s, and what runs is %s and resumes %s: %s', (type, state, resumes, expected) => {
    const resumption = anActivation({ id: 'second', documentId: 'next', state, resumes, refuseAfter: START });
    const anchor = anActivation({ id: 'anchor', documentId: 'next' });
    const tokens = [aToken({ issuer: 'first', state: 'redeemed' })];
    const known = anExecution({ activations: [returnedHere, anchor, resumption], tokens });
    expect(leave(type, known)).toBe(expected);
  });
});

describe('what a refusal is for', () => {
  const error = (state: State, document: string, digest = 'digest') => {
    const presented = { type: 'token-presented', activationId: 'new' } as const;
    const { reply } = step(state, at({ ...presented, documentId: document, digest }));
    return reply.ok ? null : reply.error;
  };
  const documents = [aDocument('target'), aDocument('stranger', { groupId: 'elsewhere' })];
  const known = aState([anExecution({ tokens: [aToken()], activations: [anActivation()] })], documents);

  test('every refusal of a token says that nothing has started', () => {
    expect(error(known, 'stranger')).toMatchObject({ reason: 'other-group', started: false });
    expect(error(known, 'target', 'another')).toMatchObject({ reason: 'token-unknown', started: false });
    expect(error(known, 'away')).toMatchObject({ reason: 'inactive-document', started: false });
  });

  test('a token asked for by an activation that is not there', () => {
    const grant = aGrant({ activationId: 'nobody' });
    const done = step(known, at({ type: 'token-requested', documentId: 'target', ...grant }));
    expect(answer(done.reply)).toBe('not-running');
  });

  test('the document of a cancelled resumption is told to drop it', () => {
    const waiting = anActivation({ state: 'waiting', resumes: 'digest' });
    const issuer = anActivation({ id: 'issuer', documentId: 'other' });
    const tokens = [aToken({ issuer: 'issuer', state: 'redeemed' })];
    const state = aState([anExecution({ activations: [issuer, waiting], tokens })], documents);
    const { effects } = step(state, at({ type: 'cancel-requested', executionId: 'execution' }));
    expect(effects).toContainEqual({ type: 'drop', documentId: 'target', activationId: 'activation' });
  });
});
