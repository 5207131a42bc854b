/**
 * Who is connected and what is seen of it: the tools of a group, copies of a tab, the documents worth asking for, and the
 * snapshot that watchers get, which holds nothing private.
 */
import { describe, expect, test } from 'vitest';
import type { ToolOwner } from '../../shared/tool.ts';
import { documentsInQuestion, rivalOf, snapshotOf, toolsOfGroup } from '../../sw/core/registry.ts';
import type { ConnectedDocument } from '../../sw/core/state.ts';
import {
  aDocument,
  anActivation,
  anExecution,
  aState,
  aToken,
  at,
  aValue,
  changedBy,
  START,
  threw,
} from './records.ts';

const tool = (name: string) => ({
  registrationId: `registration of ${name}`,
  name,
  title: '',
  description: 'Does it',
  inputSchema: '',
  annotations: null,
});

describe('the tools of a group', () => {
  const owner = (documentId: string, facts: Partial<ToolOwner> = {}) => ({
    documentId,
    tabId: 'tab',
    url: `https://shop.example/${documentId}`,
    ready: true,
    tools: [],
    ...facts,
  });
  const listed = (
    documents: ConnectedDocument[],
    { gone = [] as string[], arriving = [] as ConnectedDocument[], now = START } = {},
  ) => {
    const live = new Set(
      documents.map(({ documentId, clientId }) => (gone.includes(documentId) ? '' : clientId)),
    );
    live.delete('');
    return toolsOfGroup(aState([], documents), arriving, 'group', now, live);
  };

  test('document by document, of this group, with tools or without', () => {
    const documents = [
      aDocument('shop', { tools: [tool('checkout'), tool('search')], tabId: 'one' }),
      aDocument('empty'),
      aDocument('stranger', { tools: [tool('mine')], groupId: 'elsewhere' }),
    ];
    expect(listed(documents)).toEqual([
      owner('shop', { tabId: 'one', tools: [tool('checkout'), tool('search')] }),
      owner('empty'),
    ]);
  });

  test.each([
    ['does not say', undefined, true],
    ['is ready', 0, true],
    ['has a promise that pends', Infinity, false],
    ['is presumed to be about to be', START + 1, false],
    ['was presumed to be about to be', START, true],
  ])('a document that %s', (_, readyFrom, ready) => {
    expect(listed([aDocument('shop', { tools: [tool('a')], readyFrom })])).toEqual([
      owner('shop', { ready, tools: [tool('a')] }),
    ]);
  });

  test('not of a document that does not live any more; if another is presumed to follow it, that one is awaited', () => {
    const tools = [tool('a')];
    const documents = [aDocument('closed', { tools }), aDocument('leaving', { tools, readyFrom: START + 1 })];
    const gone = ['closed', 'leaving'];
    expect(listed(documents, { gone })).toEqual([owner('leaving', { ready: false })]);
    expect(listed(documents, { gone, now: START + 1 })).toEqual([]);
  });

  test('what a tab is presumed to be about to have, for that time', () => {
    const arriving = [aDocument('left', { tools: [tool('a')], clientId: '', readyFrom: START + 1_000 })];
    expect(listed([], { arriving, now: START + 999 })).toEqual([owner('left', { ready: false })]);
    expect(listed([], { arriving, now: START + 1_000 })).toEqual([]);
  });

  test('until the tab has it: whichever is heard of first, its hello or the goodbye', () => {
    const next = aDocument('next');
    const arriving = [aDocument('left', { clientId: '', readyFrom: START + 1_000 })];
    expect(listed([next], { arriving })).toEqual([owner('next')]);
    const leaving = aDocument('left', { readyFrom: START + 1_000 });
    expect(listed([leaving, next], { gone: ['left'] })).toEqual([owner('next')]);
    const frame = aDocument('frame', { top: false });
    expect(listed([frame], { arriving })).toEqual([owner('frame'), owner('left', { ready: false })]);
  });
});

describe('the rival of a newcomer', () => {
  const rival = (newcomer: Parameters<typeof aDocument>[1], holder: Parameters<typeof aDocument>[1]) =>
    rivalOf(aState([], [aDocument('holder', holder)]), aDocument('newcomer', newcomer))?.documentId;

  test('is the live top document of another window that goes by the same tab id', () => {
    expect(rival({}, {})).toBe('holder');
  });

  test('is not in another tab', () => {
    expect(rival({}, { tabId: 'another' })).toBeUndefined();
  });

  test('is not a frame, and a frame has none', () => {
    expect(rival({}, { top: false })).toBeUndefined();
    expect(rival({ top: false }, {})).toBeUndefined();
  });

  test('is not itself', () => {
    expect(rivalOf(aState([], [aDocument('same')]), aDocument('same'))).toBeUndefined();
  });
});

describe('the documents in question: those that are connected, and those that something pending waits for', () => {
  const awaited = (...args: Parameters<typeof aState>) =>
    documentsInQuestion(aState(...args)).map(({ documentId, clientId }) => ({ documentId, clientId }));
  const ending = { type: 'result', value: aValue('done') } as const;
  const settled = { ending, as: 'result', keepUntil: START } as const;

  test.each([
    ['waiting', true],
    ['commanded', true],
    ['running', true],
    ['held', false],
    ['returned', false],
    ['threw', false],
    ['discarded', false],
    ['lost', false],
    ['withdrawn', false],
  ] as const)('the document of an activation that is %s: %s', (state, isAwaited) => {
    const execution = anExecution({ callerDocumentId: null, activations: [anActivation({ state })] });
    expect(awaited([execution])).toEqual(
      isAwaited ? [{ documentId: 'target', clientId: 'client of target' }] : [],
    );
  });

  test('the caller, until it has the outcome', () => {
    const caller = [{ documentId: 'caller', clientId: 'client of caller' }];
    expect(awaited([anExecution()])).toEqual(caller);
    expect(awaited([anExecution({ settled })])).toEqual(caller);
    expect(awaited([anExecution({ settled: { ...settled, ending: null } })])).toEqual([]);
    expect(awaited([anExecution({ callerDocumentId: null })])).toEqual([]);
  });

  test('no document of an activation once the execution is settled', () => {
    const activations = [anActivation(), anActivation({ id: 'another', documentId: 'another' })];
    const open = anExecution({ callerDocumentId: null, activations });
    expect(awaited([open]).map(({ documentId }) => documentId)).toEqual(['target', 'another']);
    const end = threw('it broke');
    const ended = at({
      type: 'activation-ended',
      executionId: 'execution',
      activationId: 'activation',
      end,
    });
    const { execution } = changedBy(aState([open]), ended);
    expect(execution.settled?.as).toBe('tool-failed');
    expect(awaited([execution])).toEqual([]);
  });

  test('each once, by the newest id that the browser knows it by', () => {
    const execution = anExecution({
      callerDocumentId: 'target',
      activations: [anActivation(), anActivation({ id: 'another' })],
    });
    const unmet = { ...execution, id: 'unmet', met: new Map() };
    expect(awaited([execution, unmet])).toEqual([{ documentId: 'target', clientId: 'client of target' }]);
    expect(awaited([execution], [aDocument('target', { clientId: 'newer' })])).toEqual([
      { documentId: 'target', clientId: 'newer' },
    ]);
  });

  test('one that is connected, though nothing is pending', () => {
    expect(awaited([], [aDocument('idle')])).toEqual([{ documentId: 'idle', clientId: 'client of idle' }]);
    const execution = anExecution({ callerDocumentId: null, activations: [anActivation()] });
    expect(awaited([execution], [aDocument('idle'), aDocument('target')])).toEqual([
      { documentId: 'idle', clientId: 'client of idle' },
      { documentId: 'target', clientId: 'client of target' },
    ]);
  });

  test('one that the browser never named', () => {
    const activations = [anActivation()];
    expect(awaited([anExecution({ callerDocumentId: null, activations, met: new Map() })])).toEqual([
      { documentId: 'target', clientId: null },
    ]);
  });
});

describe('a snapshot', () => {
  const execution = anExecution({
    call: { input: aValue('card 4111') },
    answer: aValue('receipt 77'),
    outputs: [{ activationId: 'activation', value: aValue('address') }],
    activations: [
      anActivation({
        held: { type: 'threw', reason: 'tool-failed', error: aValue('secret'), leaving: true },
      }),
    ],
    tokens: [aToken({ deadline: START + 5 })],
  });
  const settled = { ending: null, as: 'tool-failed', keepUntil: START } as const;
  const documents = [
    aDocument('shop', { tools: [tool('checkout')], top: false, readyFrom: START }),
    aDocument('other', { groupId: 'x' }),
  ];
  const state = aState(
    [execution, anExecution({ id: 'over', settled }), anExecution({ id: 'x', call: { groupId: 'x' } })],
    documents,
  );
  const snapshot = snapshotOf(state, 'group', START);

  test('shows the documents, executions and tokens of one group', () => {
    expect(snapshot).toEqual({
      generation: 'generation',
      now: START,
      documents: [
        {
          documentId: 'shop',
          tabId: 'tab',
          groupId: 'group',
          url: 'https://shop.example/shop',
          top: false,
          tools: ['checkout'],
        },
      ],
      executions: [
        {
          id: 'execution',
          toolName: 'checkout',
          state: 'open',
          callerDocumentId: 'caller',
          activations: [{ id: 'activation', documentId: 'target', state: 'running' }],
          tokens: [{ state: 'outstanding', deadline: START + 5 }],
          outcome: null,
        },
        {
          id: 'over',
          toolName: 'checkout',
          state: 'settled',
          callerDocumentId: 'caller',
          activations: [],
          tokens: [],
          outcome: 'tool-failed',
        },
      ],
    });
  });

  test('holds no input, no result and no token', () => {
    const shown = JSON.stringify(snapshot);
    for (const secret of ['4111', '77', 'address', 'secret', 'digest', 'key'])
      expect(shown).not.toContain(secret);
  });
});
