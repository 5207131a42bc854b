/**
 * Records made by hand, for tests that put the core into one certain state, and the small translations that let a test say
 * what it expects in a few words. Knows the core's types and nothing of its rules.
 */
import { BOUNDS, SIZES } from '../../shared/bounds.ts';
import type { Call, End, Ending, Grant, Reply, Value } from '../../shared/protocol.ts';
import type { Sealed } from '../../shared/seal.ts';
import type { Event, Happening, Step } from '../../sw/core/event.ts';
import type { Activation, ConnectedDocument, Execution, State, Token } from '../../sw/core/state.ts';
import { step } from '../../sw/core/step.ts';

/** When a test's clock starts: a round number, far from zero. */
export const START = 1_000_000_000;

/** A sealed box that is none: what is in it can be read by {@link textOf}. */
export function boxOf(text: string | null): Sealed {
  return { iv: new Uint8Array(0), box: new TextEncoder().encode(JSON.stringify(text)).buffer };
}

/** Text → a value as the shell would seal it. Inverse of {@link textOf}. */
export function aValue(text: string | null): Value {
  return { text, sealed: boxOf(text) };
}

/** A value → its text, from storage's half of it where the plain half is gone. */
export function textOf(value: Value): string | null | undefined {
  if (value.text !== undefined) return value.text;
  if (value.sealed === undefined) return undefined;
  return JSON.parse(new TextDecoder().decode(value.sealed.box)) as string | null;
}

export function returned(text: string | null): End {
  return { type: 'returned', value: aValue(text) };
}

export function threw(message: string, { leaving = false } = {}): End {
  return { type: 'threw', error: aValue(message), reason: 'tool-failed', leaving };
}

/** The callback was not run after all. */
export function declined(message: string): End {
  const how = { reason: 'invalid-input', leaving: false, started: false } as const;
  return { type: 'threw', error: aValue(message), ...how };
}

/** An ending in words: `result: text`, or `failed: reason, started, message`. */
export function inWords(ending: Ending): string {
  if (ending.type === 'result') return `result: ${textOf(ending.value)}`;
  const detail = ending.detail === null ? '' : `, ${textOf(ending.detail)}`;
  return `${ending.type}: ${ending.reason}, ${ending.started ? 'started' : 'not started'}${detail}`;
}

/** A reply in words: `ok`, or the reason it was refused for. */
export function answer(reply: Reply<unknown> | null | undefined): string {
  if (!reply) return 'none yet';
  return reply.ok ? 'ok' : reply.error.reason;
}

export function aDocument(documentId: string, facts: Partial<ConnectedDocument> = {}): ConnectedDocument {
  return {
    documentId,
    tabId: 'tab',
    groupId: 'group',
    top: true,
    url: `https://shop.example/${documentId}`,
    clientId: `client of ${documentId}`,
    tools: [],
    ...facts,
  };
}

export function aCall(facts: Partial<Call> = {}): Call {
  return {
    executionId: 'execution',
    callerDocumentId: 'caller',
    callerTabId: 'tab',
    groupId: 'group',
    keepalive: false,
    documentId: 'target',
    registrationId: 'registration',
    toolName: 'checkout',
    input: aValue('{"item":1}'),
    tabKey: null,
    ...facts,
  };
}

export function anActivation(facts: Partial<Activation> = {}): Activation {
  return {
    id: 'activation',
    documentId: 'target',
    state: 'running',
    resumes: null,
    mayHaveBegun: false,
    heardAt: START,
    refuseAfter: 0,
    held: null,
    ...facts,
  };
}

export function aToken(facts: Partial<Token> = {}): Token {
  return {
    digest: 'digest',
    state: 'outstanding',
    key: boxOf('key'),
    issuer: 'activation',
    lifetime: 60_000,
    deadline: null,
    ...facts,
  };
}

export function aGrant(facts: Partial<Grant> = {}): Grant {
  return {
    activationId: 'activation',
    executionId: 'execution',
    call: null,
    key: 'key',
    digest: 'new',
    tokenKey: boxOf('key'),
    lifetime: 1_000,
    ...facts,
  };
}

/** What an execution knows of documents that it met in one tab. */
export function metIn(tabId: string, ...documentIds: string[]): Execution['met'] {
  return new Map(documentIds.map((id) => [id, { clientId: `client of ${id}`, tabId }]));
}

/** The facts of an execution; of its call, only those that matter. */
export type ExecutionFacts = Partial<Omit<Execution, 'call'>> & { call?: Partial<Call> };

export function anExecution({ call, ...facts }: ExecutionFacts = {}): Execution {
  const id = facts.id ?? 'execution';
  return {
    id,
    revision: 1,
    stored: true,
    call: aCall({ executionId: id, tabKey: boxOf('key'), ...call }),
    callerDocumentId: 'caller',
    met: metIn('tab', 'caller', ...(facts.activations ?? []).map(({ documentId }) => documentId)),
    activations: [],
    tokens: [],
    outputs: [],
    answer: null,
    settled: null,
    ...facts,
  };
}

export function aState(executions: Execution[], documents: ConnectedDocument[] = []): State {
  return {
    generation: 'generation',
    bounds: BOUNDS,
    sizes: SIZES,
    documents: new Map(documents.map((document) => [document.documentId, document])),
    executions: new Map(executions.map((execution) => [execution.id, execution])),
  };
}

/** One event at the start of the test's clock, or later. */
export function at(happening: Happening, now = START): Event {
  return { ...happening, now };
}

/** What the step makes of the one execution that it changes; fails if it leaves it alone. */
export function changedBy(state: State, event: Event): { done: Step; execution: Execution } {
  const done = step(state, event);
  const change = done.changes.find((candidate) => candidate.type === 'put' || candidate.type === 'remove');
  if (change === undefined) throw new Error(`${event.type} changed no execution`);
  return { done, execution: change.execution };
}

/** Freezes a record and all that it holds, so that a step which changes its input fails. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
