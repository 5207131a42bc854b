/**
 * One event, one step: which executions it concerns, what becomes of them, what is answered.
 *
 * Pure: reads the state, changes nothing, awaits nothing; time and ids come in with the event. The shell applies `changes`,
 * commits those that are stored, and only then performs `effects` (I1).
 */
import { failure, type Reason } from '../../shared/errors.ts';
import type { ExecutionId } from '../../shared/ids.ts';
import type { Reply } from '../../shared/protocol.ts';
import type { Effect, Event, Step, Turn } from './event.ts';
import {
  advance,
  beginActivation,
  cancelExecution,
  createExecution,
  dropActivation,
  endActivation,
  failed,
  isDue,
  isForgotten,
  isOver,
  loseActivation,
  loseCaller,
  markDelivered,
  refuseActivation,
  reportHeld,
  settle,
} from './execution.ts';
import { announcedIds, forgotten, rebuild, reclaim, reconcile, tellNavigated } from './recover.ts';
import { grantToken, redeemToken } from './redemption.ts';
import { type ConnectedDocument, draftOf, type Execution, type State } from './state.ts';

type EventOf<T extends Event['type']> = Extract<Event, { type: T }>;

/** What a step has so far. */
interface Work extends Step, Turn {
  /** With the documents as they are after this event. */
  readonly state: State;
  readonly documents: Map<string, ConnectedDocument>;
}

const DONE: Reply<unknown> = { ok: true, value: undefined };

/** The ids of the executions that an event may change: what a transaction has to read before the step. */
export function concerned(state: State, event: Event): ExecutionId[] {
  switch (event.type) {
    case 'document-connected':
      return [...new Set([...announcedIds(event.announcement), ...partaking(state, event.facts.documentId)])];
    case 'document-left':
    case 'document-lost':
    case 'document-stayed':
      return partaking(state, event.documentId);
    case 'outcomes-collected':
      return uncollected(state, event.tabId, event.documentId);
    case 'outcomes-awaited':
      return event.executionIds;
    case 'time-passed':
      return [...state.executions.values()]
        .filter((execution) => isDue(execution, event.now))
        .map(({ id }) => id);
    default:
      return 'executionId' in event && event.executionId !== null ? [event.executionId] : [];
  }
}

/** An activation that is over is not touched by what becomes of its document. */
function partaking(state: State, documentId: string): ExecutionId[] {
  const takesPart = (execution: Execution) =>
    execution.callerDocumentId === documentId ||
    execution.activations.some((activation) => activation.documentId === documentId && !isOver(activation));
  return [...state.executions.values()].filter(takesPart).map(({ id }) => id);
}

/** The executions of the tab that `documentId` may have: without a caller, or its own already. */
function uncollected(state: State, tabId: string, documentId: string): ExecutionId[] {
  return [...state.executions.values()]
    .filter((execution) => execution.call.callerTabId === tabId && execution.settled?.ending !== null)
    .filter(({ callerDocumentId }) => callerDocumentId === null || callerDocumentId === documentId)
    .map(({ id }) => id);
}

export function step(state: State, event: Event): Step {
  const documents = new Map(state.documents);
  const work: Work = {
    state: { ...state, documents },
    documents,
    now: event.now,
    bounds: state.bounds,
    changes: [],
    effects: [],
    reply: DONE,
  };
  switch (event.type) {
    case 'document-connected':
      connect(work, event);
      break;
    case 'document-left':
    case 'document-lost':
      disconnect(work, event);
      break;
    case 'document-stayed':
      each(work, event, (execution) => reportHeld(execution, event.documentId, work));
      break;
    case 'tools-changed':
      changeTools(work, event);
      break;
    case 'execution-requested':
      request(work, event);
      break;
    case 'cancel-requested':
      each(work, event, (execution) => cancelExecution(execution, work));
      break;
    case 'token-requested':
      grant(work, event);
      break;
    case 'token-presented':
      redeem(work, event);
      break;
    case 'activation-acknowledged':
      eachActivation(work, event, (execution, activation) => {
        if (event.refused === null) beginActivation(activation, event.now);
        else refuseActivation(execution, activation, event.refused, work);
      });
      break;
    case 'activation-ended':
      end(work, event);
      break;
    case 'outcome-delivered':
      each(work, event, (execution) => {
        if (execution.callerDocumentId === event.documentId) markDelivered(execution, work);
      });
      break;
    case 'outcomes-collected':
      collect(work, event);
      break;
    case 'outcomes-awaited':
      awaitOutcomes(work, event);
      break;
    case 'time-passed':
      each(work, event, () => {});
      break;
  }
  const effects = work.effects.filter((effect) => isReachable(effect, work.documents));
  return { changes: work.changes, effects, reply: work.reply };
}

/** Who is not here is told nothing: a document learns what it missed when it connects (`recover`). */
function isReachable(effect: Effect, documents: State['documents']): boolean {
  return effect.type === 'summon' || effect.type === 'announce-tools' || documents.has(effect.documentId);
}

/** Lets `change` work on a draft of each concerned execution, draws the conclusions and records what became of it. */
function each(work: Work, event: Event, change: (execution: Execution) => void): void {
  for (const id of concerned(work.state, event)) {
    const execution = work.state.executions.get(id);
    if (execution !== undefined) finish(work, draftOf(execution), change);
  }
}

function finish(work: Work, draft: Execution, change: (execution: Execution) => void): void {
  change(draft);
  advance(draft, work.state, work);
  draft.revision += 1;
  work.changes.push({ type: isForgotten(draft, work.now) ? 'remove' : 'put', execution: draft });
}

function eachActivation(
  work: Work,
  event: EventOf<'activation-acknowledged' | 'activation-ended'>,
  change: (execution: Execution, activation: Execution['activations'][number]) => void,
): void {
  each(work, event, (execution) => {
    const activation = execution.activations.find(({ id }) => id === event.activationId);
    if (activation !== undefined) change(execution, activation);
  });
}

function connect(work: Work, event: EventOf<'document-connected'>): void {
  const { facts, clientId, announcement } = event;
  const document: ConnectedDocument = { ...facts, clientId, tools: announcement.tools };
  const before = work.documents.get(document.documentId);
  work.documents.set(document.documentId, document);
  work.changes.push({ type: 'connect', document });
  if (document.tools.length > 0 || before?.tools.length) {
    work.effects.push({ type: 'announce-tools', groupId: document.groupId });
  }
  for (const id of concerned(work.state, event)) {
    const known = work.state.executions.get(id);
    const execution = known === undefined ? rebuild(id, announcement, work.state, work) : draftOf(known);
    if (execution === undefined) forgotten(document.documentId, id, announcement, work);
    else
      finish(work, execution, () => {
        reconcile(execution, document, announcement, work);
        summonTarget(work, execution);
      });
  }
}

/** A call to a document that this generation has not met yet: it may only need to be asked. */
function summonTarget(work: Work, execution: Execution): void {
  const [first] = execution.activations;
  if (first?.state !== 'waiting' || work.documents.has(first.documentId)) return;
  work.effects.push({ type: 'summon', documentId: first.documentId });
}

function disconnect(work: Work, event: EventOf<'document-left' | 'document-lost'>): void {
  const { documentId, now } = event;
  const document = work.documents.get(documentId);
  const reason = event.type === 'document-left' ? 'navigated' : 'document-lost';
  const heard = event.type === 'document-left' || document !== undefined;
  work.documents.delete(documentId);
  if (document !== undefined) work.changes.push({ type: 'disconnect', documentId });
  if (document && document.tools.length > 0) {
    work.effects.push({ type: 'announce-tools', groupId: document.groupId });
  }
  each(work, event, (execution) => {
    if (execution.callerDocumentId === documentId) loseCaller(execution, reason, work);
    for (const activation of execution.activations) {
      if (activation.documentId !== documentId) continue;
      loseActivation(execution, activation, reason, heard ? now : activation.heardAt, work);
    }
  });
  if (event.type === 'document-left') keepLostCalls(work, event);
}

/** Calls that nobody else knew of: the next page may ask what became of them. */
function keepLostCalls(work: Work, { lostCalls }: EventOf<'document-left'>): void {
  for (const call of lostCalls) {
    if (work.state.executions.has(call.executionId)) continue;
    // Its page has ended it, whatever it was to live on for.
    const execution = createExecution({ ...call, keepalive: false }, work.documents, work.now, true);
    finish(work, execution, () => loseCaller(execution, 'navigated', work));
  }
}

function changeTools(work: Work, { documentId, tools }: EventOf<'tools-changed'>): void {
  const document = work.documents.get(documentId);
  if (document === undefined) return;
  work.changes.push({ type: 'connect', document: { ...document, tools } });
  work.effects.push({ type: 'announce-tools', groupId: document.groupId });
}

function request(work: Work, { documentId, call }: EventOf<'execution-requested'>): void {
  if (work.state.executions.has(call.executionId)) return;
  if (!work.documents.has(documentId)) {
    work.reply = refused('inactive-document');
    return;
  }
  if (openCalls(work.state, documentId) >= work.state.sizes.executions) {
    work.reply = refused(
      'too-many',
      `A document may have ${work.state.sizes.executions} open executions at most.`,
    );
    return;
  }
  const target = work.documents.get(call.documentId);
  const execution = createExecution(call, work.documents, work.now);
  finish(work, execution, () => {
    if (target !== undefined && target.groupId !== call.groupId) {
      settle(execution, failed('tool-unavailable', false), work);
    }
    summonTarget(work, execution);
  });
}

function openCalls(state: State, documentId: string): number {
  let count = 0;
  for (const { callerDocumentId, settled } of state.executions.values()) {
    if (callerDocumentId === documentId && settled === null) count += 1;
  }
  return count;
}

function grant(work: Work, event: EventOf<'token-requested'>): void {
  const known = work.state.executions.get(event.executionId);
  const draft = known ? draftOf(known) : hearOf(work, event);
  if (draft === undefined) {
    work.reply = refused('not-running');
    return;
  }
  const error = grantToken(draft, event, work.state.sizes, work.now);
  if (error !== null) work.reply = { ok: false, error };
  else finish(work, draft, () => {});
}

/**
 * A call that stays in its tab is first heard of when it asks for a token. One of another tab's caller went through here: who
 * is not known any more is over, and its document has not read so yet.
 */
function hearOf(work: Work, { call, documentId }: EventOf<'token-requested'>): Execution | undefined {
  const caller = work.documents.get(call?.callerDocumentId ?? '');
  const document = work.documents.get(documentId);
  if (call === null || (caller !== undefined && caller.tabId !== document?.tabId)) return undefined;
  return createExecution(call, work.documents, work.now);
}

function redeem(work: Work, event: EventOf<'token-presented'>): void {
  const { executionId, documentId, digest, activationId, now } = event;
  const known = executionId === null ? undefined : work.state.executions.get(executionId);
  const document = work.documents.get(documentId);
  if (known === undefined || isForgotten(known, now) || document === undefined) {
    work.reply = refused(document === undefined ? 'inactive-document' : 'token-unknown');
    return;
  }
  const draft = draftOf(known);
  finish(work, draft, () => {
    const error = redeemToken(draft, digest, activationId, document, now);
    work.reply = error === null ? { ok: true, value: { executionId } } : { ok: false, error };
    // Asked for again, and over meanwhile: its document may never have read that it was its turn.
    if (
      error === null &&
      draft.activations.some(({ id, state }) => id === activationId && state === 'lost')
    ) {
      dropActivation(documentId, activationId, work);
    }
  });
}

function end(work: Work, event: EventOf<'activation-ended'>): void {
  if (!work.state.executions.has(event.executionId)) {
    work.reply = refused('not-running');
    return;
  }
  eachActivation(work, event, (execution, activation) => {
    beginActivation(activation, event.now);
    endActivation(execution, activation, event.end, work);
  });
}

function collect(work: Work, event: EventOf<'outcomes-collected'>): void {
  const { documentId } = event;
  const document = work.documents.get(documentId);
  if (document === undefined) {
    work.reply = refused('inactive-document');
    return;
  }
  each(work, event, (execution) => {
    execution.callerDocumentId = documentId;
    execution.callerClientId = document.clientId;
  });
  work.reply = { ok: true, value: concerned(work.state, event) };
}

/** It gets what there is already; what is not its own, or has gone meanwhile, it shall not wait for. */
function awaitOutcomes(work: Work, event: EventOf<'outcomes-awaited'>): void {
  const { documentId, executionIds } = event;
  const document = work.documents.get(documentId);
  if (document === undefined) return;
  for (const id of executionIds) {
    if (!work.state.executions.has(id)) tellNavigated(documentId, id, work);
  }
  each(work, event, (execution) => reclaim(execution, document, work));
}

function refused(reason: Reason, message?: string): Reply<unknown> {
  return { ok: false, error: failure(reason, false, message) };
}
