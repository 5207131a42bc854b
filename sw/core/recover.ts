/**
 * What a document's announcement means for the executions that it takes part in: the way back after a worker's death, a
 * lost connection or the back/forward cache.
 *
 * Kept: I3, an activation that may have begun is commanded again only under its old id, and its document drops what it has
 * seen; I4, whatever the worker forgot comes from here or from storage.
 */
import type { DocumentId, ExecutionId } from '../../shared/ids.ts';
import type { AnnouncedActivation, Announcement } from '../../shared/protocol.ts';
import { type Turn, tell } from './event.ts';
import {
  beginActivation,
  command,
  deliverOutcome,
  deliverOutput,
  dropActivation,
  endActivation,
  failed,
  isActive,
  isOpen,
  loseActivation,
  moveActivation,
} from './execution.ts';
import type { Activation, Execution } from './state.ts';

/** The executions as they are once storage's newer records, which another worker wrote, are taken in. */
export function withRecords(
  known: Map<ExecutionId, Execution>,
  records: readonly Execution[],
): Map<ExecutionId, Execution> {
  const news = records.filter(({ id, revision }) => revision > (known.get(id)?.revision ?? -1));
  // As a rule there are none, and what is known may be much.
  if (news.length === 0) return known;
  const executions = new Map(known);
  for (const record of news) executions.set(record.id, inherited(record));
  return executions;
}

/** What another worker has commanded may have begun. Only a resumption's document says hello by itself. */
function inherited(record: Execution): Execution {
  const activations = record.activations.map((activation) => {
    const { state, resumes, mayHaveBegun } = activation;
    const isCommanded = state === 'commanded';
    const own = { ...activation, mayHaveBegun: mayHaveBegun || isCommanded };
    if (isCommanded && !resumes) moveActivation(own, 'withdraw');
    return own;
  });
  return { ...record, activations };
}

/** The executions that an announcement speaks of, by id. */
export function announcedIds({ calls, activations, resumptions }: Announcement): ExecutionId[] {
  return [...calls, ...activations, ...resumptions].map(({ executionId }) => executionId);
}

/** What storage does not know either is over, and the document is told so. */
export function dismiss(
  turn: Turn,
  documentId: DocumentId,
  executionId: ExecutionId,
  announcement: Announcement,
): undefined {
  if (announcement.calls.some((call) => call.executionId === executionId)) {
    tellNavigated(turn, documentId, executionId);
  }
  release(turn, undefined, documentId, executionId, announcement);
}

/** Puts one execution in accord with what the document has just announced. */
export function reconcile(
  turn: Turn,
  execution: Execution,
  documentId: DocumentId,
  announcement: Announcement,
): void {
  const { calls, activations } = announcement;
  if (calls.some(({ executionId }) => executionId === execution.id)) reclaim(turn, execution, documentId);
  else if (execution.callerDocumentId === documentId) disown(turn, execution);
  for (const activation of execution.activations) {
    if (activation.documentId !== documentId) continue;
    const announced = activations.find(({ activationId }) => activationId === activation.id);
    reconcileActivation(turn, execution, activation, announced);
  }
  release(turn, execution, documentId, execution.id, announcement);
}

function reconcileActivation(
  turn: Turn,
  execution: Execution,
  activation: Activation,
  announced: AnnouncedActivation | undefined,
): void {
  if (announced) {
    beginActivation(activation, turn.now);
    if (announced.end) endActivation(turn, execution, activation, announced.end);
  } else if (activation.state === 'commanded') {
    command(turn, execution, activation);
  } else if (isActive(activation)) {
    // A document announces all that runs in it: what it does not name was over before this connection.
    loseActivation(turn, execution, activation, 'document-lost');
  }
}

/** What the document holds of an execution, and nobody needs any more, it is told to drop. */
function release(
  turn: Turn,
  execution: Execution | undefined,
  documentId: DocumentId,
  executionId: ExecutionId,
  { activations, resumptions }: Announcement,
): void {
  for (const part of [...activations, ...resumptions]) {
    if (part.executionId !== executionId) continue;
    const activation = execution?.activations.find(({ id }) => id === part.activationId);
    const isNeeded = activation
      ? !execution?.settled && ('end' in part || isOpen(activation))
      : 'stored' in part && !part.stored;
    if (!isNeeded) dropActivation(turn, { documentId, id: part.activationId });
  }
}

/** The document says that it awaits the outcome. */
export function reclaim(turn: Turn, execution: Execution, documentId: DocumentId): void {
  const isDelivered = execution.settled?.ending === null;
  if (!isDelivered) execution.callerDocumentId ??= documentId;
  if (isDelivered || execution.callerDocumentId !== documentId) {
    tellNavigated(turn, documentId, execution.id);
    return;
  }
  catchUp(turn, execution);
}

/** The caller is told whatever it may have missed; it drops what it has seen (I2). */
function catchUp(turn: Turn, execution: Execution): void {
  for (const output of execution.outputs) deliverOutput(turn, execution, output);
  deliverOutcome(turn, execution);
}

/**
 * Its caller has said hello and not named it. Unless it goes by way of the worker, that means no more than that it has not heard
 * yet that the worker has the call, or that it has collected it.
 */
function disown(turn: Turn, execution: Execution): void {
  const { settled, call, callerDocumentId } = execution;
  if (!settled && call.keepalive && callerDocumentId === call.callerDocumentId) {
    execution.callerDocumentId = null;
  } else catchUp(turn, execution);
}

/** The outcome is not for this document, or not to be had any more. */
export function tellNavigated(turn: Turn, documentId: DocumentId, executionId: ExecutionId): undefined {
  tell(turn, documentId, { type: 'settle', executionId, ending: failed('navigated', true) });
}
