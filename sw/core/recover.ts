/**
 * What a document's announcement means for the executions that it takes part in: the way back after a worker's death, a
 * lost connection or the back/forward cache.
 *
 * Kept: I3, an activation that may have begun is commanded again only under its old id, and its document drops what it has
 * seen; I4, whatever the worker forgot is rebuilt from here or from storage.
 */
import type { DocumentId } from '../../shared/ids.ts';
import type { AnnouncedActivation, Announcement } from '../../shared/protocol.ts';
import type { Turn } from './event.ts';
import {
  beginActivation,
  cancelExecution,
  command,
  createExecution,
  deliverOutcome,
  deliverOutput,
  dropActivation,
  dropCaller,
  endActivation,
  failed,
  isActive,
  isOpen,
  loseActivation,
} from './execution.ts';
import type { Activation, ConnectedDocument, Execution, State } from './state.ts';

/** The executions that an announcement speaks of, by id. */
export function announcedIds(announcement: Announcement): string[] {
  return [
    ...announcement.calls.map(({ call }) => call.executionId),
    ...announcement.activations.map(({ executionId }) => executionId),
    ...announcement.resumptions.map(({ executionId }) => executionId),
  ];
}

/** An execution that the worker has no memory of, rebuilt from what a live document knows; `undefined` if only storage could know it. */
export function rebuild(
  executionId: string,
  announcement: Announcement,
  state: State,
  turn: Turn,
): Execution | undefined {
  const awaited = announcement.calls.find(({ call }) => call.executionId === executionId);
  const runs = announcement.activations.find(
    (activation) => activation.executionId === executionId && !activation.stored,
  );
  const call = awaited?.stored === false ? awaited.call : runs?.call;
  if (!call) return undefined;
  const execution = createExecution(call, state.documents, turn.now, true);
  for (const activation of execution.activations) if (runs) beginActivation(activation, turn.now);
  if (awaited === undefined && state.documents.has(call.callerDocumentId)) disown(execution, turn);
  return execution;
}

/** Puts one execution in accord with what `document` has just announced. */
export function reconcile(
  execution: Execution,
  document: ConnectedDocument,
  announcement: Announcement,
  turn: Turn,
): void {
  const { documentId } = document;
  const call = announcement.calls.find((announced) => announced.call.executionId === execution.id);
  if (call !== undefined) reclaim(execution, document, turn);
  else if (execution.callerDocumentId === documentId) disown(execution, turn);
  for (const activation of execution.activations) {
    if (activation.documentId !== documentId) continue;
    activation.clientId = document.clientId;
    activation.tabId ??= document.tabId;
    const announced = announcement.activations.find(({ activationId }) => activationId === activation.id);
    reconcileActivation(execution, activation, announced, turn);
  }
  for (const { activationId, executionId } of announcement.resumptions) {
    if (executionId !== execution.id) continue;
    const activation = execution.activations.find(({ id }) => id === activationId);
    if (activation === undefined || !isOpen(activation)) dropActivation(documentId, activationId, turn);
  }
}

function reconcileActivation(
  execution: Execution,
  activation: Activation,
  announced: AnnouncedActivation | undefined,
  turn: Turn,
): void {
  if (announced !== undefined) {
    if (execution.settled !== null) {
      dropActivation(activation.documentId, activation.id, turn);
      return;
    }
    beginActivation(activation, turn.now);
    if (announced.end !== null) endActivation(execution, activation, announced.end, turn);
  } else if (activation.state === 'commanded') {
    command(execution, activation, turn);
  } else if (isActive(activation)) {
    // A document announces all that runs in it: what it does not name was over before this connection.
    loseActivation(execution, activation, 'document-lost', activation.heardAt, turn);
  }
}

/** The document says that it awaits the outcome. */
export function reclaim(execution: Execution, document: ConnectedDocument, turn: Turn): void {
  const { documentId } = document;
  execution.callerDocumentId ??= execution.settled?.ending === null ? null : documentId;
  if (execution.callerDocumentId !== documentId || execution.settled?.ending === null) {
    tellNavigated(documentId, execution.id, turn);
    return;
  }
  execution.callerClientId = document.clientId;
  tellCaller(execution, turn);
}

/**
 * Its caller has said hello and not named it: it had cancelled, or has the outcome. Not so while a stored one is open (it may
 * not know yet that it has collected it), nor within a tab, where a caller knows nothing of the worker before there is a token.
 */
function disown(execution: Execution, turn: Turn): void {
  const isWithinTab = execution.activations.some(({ tabId }) => tabId === execution.call.callerTabId);
  if (execution.settled !== null) deliverOutcome(execution, turn);
  else if (!execution.stored && !isWithinTab) {
    dropCaller(execution);
    if (!execution.call.keepalive) cancelExecution(execution, turn);
  }
}

/** Whatever the caller may have missed; it drops what it has seen (I2). */
function tellCaller(execution: Execution, turn: Turn): void {
  for (const { activationId, value } of execution.outputs) {
    deliverOutput(execution, activationId, value, turn);
  }
  deliverOutcome(execution, turn);
}

/** The outcome is not for this document, or not to be had any more. */
export function tellNavigated(documentId: DocumentId, executionId: string, turn: Turn): void {
  turn.effects.push({ type: 'settle', documentId, executionId, ending: failed('navigated', true) });
}

/** What is told to a document that awaits an execution, or holds a part of one, that nobody knows any more. */
export function forgotten(
  documentId: DocumentId,
  executionId: string,
  announcement: Announcement,
  turn: Turn,
): void {
  const { calls, activations, resumptions } = announcement;
  if (calls.some(({ call }) => call.executionId === executionId))
    tellNavigated(documentId, executionId, turn);
  for (const part of [...activations, ...resumptions]) {
    if (part.executionId === executionId) dropActivation(documentId, part.activationId, turn);
  }
}
