/**
 * What a document's announcement means for the executions that it takes part in: the way back after a worker's death, a
 * lost connection or the back/forward cache.
 *
 * Kept: I3, an activation that may have begun is commanded again only under its old id, and its document drops what it has
 * seen; I4, whatever the worker forgot is rebuilt from here or from storage.
 */
import { failure } from '../../shared/errors.ts';
import type { DocumentId } from '../../shared/ids.ts';
import type { AnnouncedCall, AnnouncedResumption } from '../../shared/protocol.ts';
import type { AnnouncedState, Turn } from './event.ts';
import {
  beginActivation,
  command,
  createActivation,
  createExecution,
  deliverOutcome,
  deliverOutput,
  endActivation,
  isActive,
  loseActivation,
} from './execution.ts';
import type { Activation, ConnectedDocument, Execution, State } from './state.ts';

type AnnouncedActivation = AnnouncedState['activations'][number];

/** The executions that an announcement speaks of, by id. */
export function announcedIds(announcement: AnnouncedState): string[] {
  return [
    ...announcement.calls.map(({ call }) => call.executionId),
    ...announcement.activations.map(({ executionId }) => executionId),
    ...announcement.resumptions.map(({ executionId }) => executionId),
  ];
}

/** An execution that the worker has no memory of, rebuilt from what a live document knows; `undefined` if only storage could know it. */
export function rebuild(
  executionId: string,
  announcement: AnnouncedState,
  state: State,
  now: number,
): Execution | undefined {
  const announced =
    announcement.calls.find(({ call, stored }) => call.executionId === executionId && !stored) ??
    announcement.activations.find(
      (activation) => activation.executionId === executionId && !activation.stored,
    );
  if (!announced?.call) return undefined;
  const { call } = announced;
  const execution = createExecution(call, state.documents.get(call.callerDocumentId), { text: call.input });
  const target = state.documents.get(call.documentId);
  const activation = createActivation(execution.id, call.documentId, target, now);
  execution.activations.push({ ...activation, mayHaveBegun: true });
  return execution;
}

/** Puts one execution in accord with what `document` has just announced. */
export function reconcile(
  execution: Execution,
  document: ConnectedDocument,
  announcement: AnnouncedState,
  turn: Turn,
): void {
  const { documentId } = document;
  const call = announcement.calls.find((announced) => announced.call.executionId === execution.id);
  if (call !== undefined) reclaim(execution, document, turn);
  else if (execution.callerDocumentId === documentId) tellCaller(execution, turn);
  for (const activation of execution.activations) {
    if (activation.documentId !== documentId) continue;
    activation.clientId = document.clientId;
    activation.tabId ??= document.tabId;
    const announced = announcement.activations.find(({ activationId }) => activationId === activation.id);
    reconcileActivation(execution, activation, announced, turn);
  }
}

function reconcileActivation(
  execution: Execution,
  activation: Activation,
  announced: AnnouncedActivation | undefined,
  turn: Turn,
): void {
  if (announced !== undefined) {
    const { documentId, id: activationId } = activation;
    if (execution.settled !== null) {
      const over = { documentId, activationId };
      turn.effects.push(
        { type: 'abort', ...over },
        { type: 'release', documentId, activationIds: [activationId] },
      );
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
function reclaim(execution: Execution, document: ConnectedDocument, turn: Turn): void {
  const { documentId } = document;
  execution.callerDocumentId ??= execution.settled?.delivered ? null : documentId;
  if (execution.callerDocumentId !== documentId || execution.settled?.delivered) {
    turn.effects.push(navigatedAway(documentId, execution.id));
    return;
  }
  execution.callerClientId = document.clientId;
  tellCaller(execution, turn);
}

/** Whatever the caller may have missed; it drops what it has seen (I2). */
function tellCaller(execution: Execution, turn: Turn): void {
  for (const { activationId, value } of execution.outputs) {
    deliverOutput(execution, activationId, value, turn);
  }
  deliverOutcome(execution, turn);
}

function navigatedAway(documentId: DocumentId, executionId: string): Turn['effects'][number] {
  const ending = { type: 'failed', reason: 'navigated', started: true, detail: null } as const;
  return { type: 'settle', documentId, executionId, ending };
}

/** What is told to a document that awaits an execution, or holds a part of one, that nobody knows any more. */
export function forgotten(
  documentId: DocumentId,
  executionId: string,
  announcement: AnnouncedState,
  turn: Turn,
): void {
  const isOfIt = (announced: { executionId: string }) => announced.executionId === executionId;
  const awaits = ({ call }: AnnouncedCall) => call.executionId === executionId;
  if (announcement.calls.some(awaits)) turn.effects.push(navigatedAway(documentId, executionId));
  const activationIds = announcement.activations.filter(isOfIt).map(({ activationId }) => activationId);
  if (activationIds.length > 0) turn.effects.push({ type: 'release', documentId, activationIds });
  announcement.resumptions.filter(isOfIt).forEach(({ activationId }: AnnouncedResumption) => {
    turn.effects.push({ type: 'withdraw', documentId, activationId, error: failure('token-unknown', false) });
  });
}
