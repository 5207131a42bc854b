/**
 * What a document's announcement means for the executions that it takes part in: the way back after a worker's death, a
 * lost connection or the back/forward cache.
 *
 * Kept: I3, an activation that may have begun is commanded again only under its old id, and its document drops what it has
 * seen; I4, whatever the worker forgot is rebuilt from here or from storage.
 */
import type { DocumentId, ExecutionId } from '../../shared/ids.ts';
import type { AnnouncedActivation, Announcement } from '../../shared/protocol.ts';
import { type Turn, tell } from './event.ts';
import {
  beginActivation,
  cancelExecution,
  command,
  createExecution,
  deliverOutcome,
  deliverOutput,
  dropActivation,
  endActivation,
  failed,
  isActive,
  isOpen,
  loseActivation,
} from './execution.ts';
import type { Activation, Execution } from './state.ts';

/** The executions that an announcement speaks of, by id. */
export function announcedIds({ calls, activations, resumptions }: Announcement): ExecutionId[] {
  const parts = [...calls.map(({ call }) => call), ...activations, ...resumptions];
  return parts.map(({ executionId }) => executionId);
}

/**
 * An execution that the worker has no memory of, rebuilt from what a live document knows. If only storage could know it, it
 * is forgotten, and the document is told so.
 */
export function rebuild(
  documentId: DocumentId,
  executionId: ExecutionId,
  announcement: Announcement,
  turn: Turn,
): Execution | undefined {
  const awaited = announcement.calls.find(({ call }) => call.executionId === executionId);
  const runs = announcement.activations.find((part) => part.executionId === executionId && !part.stored);
  const call = awaited?.stored === false ? awaited.call : runs?.call;
  if (!call) {
    if (awaited) tellNavigated(documentId, executionId, turn);
    release(documentId, executionId, undefined, announcement, turn);
    return undefined;
  }
  const execution = createExecution(call, turn, true);
  if (runs) for (const activation of execution.activations) beginActivation(activation, turn.now);
  if (!awaited && turn.documents.has(call.callerDocumentId)) disown(execution, turn);
  return execution;
}

/** Puts one execution in accord with what the document has just announced. */
export function reconcile(
  documentId: DocumentId,
  execution: Execution,
  announcement: Announcement,
  turn: Turn,
): void {
  const { calls, activations } = announcement;
  if (calls.some(({ call }) => call.executionId === execution.id)) reclaim(execution, documentId, turn);
  else if (execution.callerDocumentId === documentId) disown(execution, turn);
  for (const activation of execution.activations) {
    if (activation.documentId !== documentId) continue;
    const announced = activations.find(({ activationId }) => activationId === activation.id);
    reconcileActivation(execution, activation, announced, turn);
  }
  release(documentId, execution.id, execution, announcement, turn);
}

function reconcileActivation(
  execution: Execution,
  activation: Activation,
  announced: AnnouncedActivation | undefined,
  turn: Turn,
): void {
  if (announced) {
    beginActivation(activation, turn.now);
    if (announced.end) endActivation(execution, activation, announced.end, turn);
  } else if (activation.state === 'commanded') {
    command(execution, activation, turn);
  } else if (isActive(activation)) {
    // A document announces all that runs in it: what it does not name was over before this connection.
    loseActivation(execution, activation, 'document-lost', turn);
  }
}

/** What the document holds of an execution, and nobody needs any more, it is told to drop. */
function release(
  documentId: DocumentId,
  executionId: ExecutionId,
  execution: Execution | undefined,
  { activations, resumptions }: Announcement,
  turn: Turn,
): void {
  for (const part of [...activations, ...resumptions]) {
    if (part.executionId !== executionId) continue;
    const activation = execution?.activations.find(({ id }) => id === part.activationId);
    const isNeeded = activation && !execution?.settled && ('end' in part || isOpen(activation));
    if (!isNeeded) dropActivation({ documentId, id: part.activationId }, turn);
  }
}

/** The document says that it awaits the outcome. */
export function reclaim(execution: Execution, documentId: DocumentId, turn: Turn): void {
  const isDelivered = execution.settled?.ending === null;
  if (!isDelivered) execution.callerDocumentId ??= documentId;
  if (isDelivered || execution.callerDocumentId !== documentId) {
    tellNavigated(documentId, execution.id, turn);
    return;
  }
  // Whatever it may have missed; it drops what it has seen (I2).
  for (const output of execution.outputs) deliverOutput(execution, output, turn);
  deliverOutcome(execution, turn);
}

/**
 * Its caller has said hello and not named it: it had cancelled, or has the outcome. Not so while a stored one is open (it may
 * not know yet that it has collected it), nor within a tab, where a caller knows nothing of the worker before there is a token.
 */
function disown(execution: Execution, turn: Turn): void {
  const { settled, stored, activations, met, call } = execution;
  const isWithinTab = activations.some(({ documentId }) => met.get(documentId)?.tabId === call.callerTabId);
  if (settled) deliverOutcome(execution, turn);
  else if (!stored && !isWithinTab) {
    execution.callerDocumentId = null;
    if (!call.keepalive) cancelExecution(execution, turn);
  }
}

/** The outcome is not for this document, or not to be had any more. */
export function tellNavigated(documentId: DocumentId, executionId: ExecutionId, turn: Turn): undefined {
  tell(turn, documentId, { type: 'settle', executionId, ending: failed('navigated', true) });
}
