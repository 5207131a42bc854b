/**
 * One event, one step: which executions it concerns, what becomes of them, what is answered.
 *
 * Pure: reads the state, changes nothing, awaits nothing; time and ids come in with the event. The shell commits those
 * `changes` that are stored, applies all, and only then performs `effects` (I1).
 */
import { type ErrorRecord, failure, type Reason } from '../../shared/errors.ts';
import type { DocumentId, ExecutionId } from '../../shared/ids.ts';
import type { Reply } from '../../shared/protocol.ts';
import type { Event, Step, Turn } from './event.ts';
import {
  advance,
  beginActivation,
  cancelExecution,
  createExecution,
  endActivation,
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
import { announcedIds, dismiss, reclaim, reconcile, tellNavigated } from './recover.ts';
import { grantToken, redeemToken } from './redemption.ts';
import type { Activation, ConnectedDocument, Execution, State } from './state.ts';

type EventOf<T extends Event['type']> = Extract<Event, { type: T }>;
type Answer = Reply<unknown> | undefined;

/** Which executions an event concerns, and what it does: without an answer of its own, it is done. */
type Rule<E> = [concerns: (state: State, event: E) => ExecutionId[], apply: (turn: Turn, event: E) => Answer];

const DONE: Reply<unknown> = { ok: true, value: undefined };

const RULES: { [T in Event['type']]: Rule<EventOf<T>> } = {
  'document-connected': [announced, connect],
  'document-left': [partaking, disconnect],
  'document-lost': [partaking, disconnect],
  'document-stayed': [partaking, stay],
  'tools-changed': [none, asked(changeTools)],
  'execution-requested': [(_, { call }) => [call.executionId], request],
  'cancel-requested': [
    named,
    (turn, event) => each(turn, event, (execution) => cancelExecution(turn, execution)),
  ],
  'token-requested': [named, grant],
  'token-presented': [holding, asked(redeem)],
  'activation-acknowledged': [named, acknowledge],
  'activation-ended': [named, end],
  'outcome-delivered': [named, deliver],
  'outcomes-collected': [uncollected, asked(collect)],
  'outcomes-awaited': [(_, { executionIds }) => executionIds, asked(awaitOutcomes)],
  'time-passed': [due, advanceEach],
  'worker-started': [unfinished, advanceEach],
};

function ruleFor<E extends Event>(event: E): Rule<E> {
  return RULES[event.type] as unknown as Rule<E>;
}

/** The ids of the executions that an event may change: what a transaction has to read before the step. */
export function concerned(state: State, event: Event): ExecutionId[] {
  return [...new Set(ruleFor(event)[0](state, event))];
}

export function step(state: State, event: Event): Step {
  const turn: Turn = {
    ...state,
    now: event.now,
    documents: new Map(state.documents),
    changes: [],
    effects: [],
  };
  const reply = ruleFor(event)[1](turn, event) ?? DONE;
  return { changes: turn.changes, effects: turn.effects, reply };
}

function none(): ExecutionId[] {
  return [];
}

function named(_: State, { executionId }: { executionId: ExecutionId }): ExecutionId[] {
  return [executionId];
}

/** A token that is presented says by its digest whose it is. */
function holding(state: State, { digest }: { digest: string }): ExecutionId[] {
  return idsOf(state, ({ tokens }) => tokens.some((token) => token.digest === digest));
}

function idsOf({ executions }: State, holds: (execution: Execution) => boolean): ExecutionId[] {
  return [...executions.values()].filter(holds).map(({ id }) => id);
}

function due(state: State, { now }: Event): ExecutionId[] {
  return idsOf(state, (execution) => isDue(execution, now));
}

/** Those whose document is to be asked to say hello, too. */
function unfinished(state: State, event: Event): ExecutionId[] {
  const waits = ({ activations }: Execution) =>
    activations.some((activation) => activation.state === 'waiting' && !activation.resumes);
  return [...due(state, event), ...idsOf(state, waits)];
}

function partaking(state: State, { documentId }: { documentId: string }): ExecutionId[] {
  return idsOf(
    state,
    ({ callerDocumentId, activations }) =>
      callerDocumentId === documentId ||
      activations.some((activation) => activation.documentId === documentId && !isOver(activation)),
  );
}

function announced(state: State, { facts, announcement }: EventOf<'document-connected'>): ExecutionId[] {
  return [...announcedIds(announcement), ...partaking(state, facts)];
}

/** Those of the tab that the document may have: without a caller, or its own already. */
function uncollected(state: State, { documentId }: EventOf<'outcomes-collected'>): ExecutionId[] {
  const tabId = state.documents.get(documentId)?.tabId;
  return idsOf(
    state,
    ({ call, settled, callerDocumentId }) =>
      call.callerTabId === tabId &&
      settled?.ending !== null &&
      (callerDocumentId ?? documentId) === documentId,
  );
}

/** Only a connected document may ask. */
function asked<E extends { documentId: string }>(
  apply: (turn: Turn, event: E, document: ConnectedDocument) => Answer,
): (turn: Turn, event: E) => Answer {
  return (turn, event) => {
    const document = turn.documents.get(event.documentId);
    return document ? apply(turn, event, document) : refused('inactive-document');
  };
}

function refused(reason: Reason, message?: string): Reply<unknown> {
  return { ok: false, error: failure(reason, false, message) };
}

/** May answer with an error: then what it did to the draft does not count. */
type ExecutionChange = ((draft: Execution) => ErrorRecord | null) | ((draft: Execution) => void);

/**
 * Lets `change` work on a draft of each execution that the event concerns. `revive` may give one that nobody knows. The answer
 * is that of the last one.
 */
function each(
  turn: Turn,
  event: Event,
  change: ExecutionChange,
  revive: (id: ExecutionId) => Execution | undefined = () => undefined,
): Answer {
  let reply: Answer;
  for (const id of concerned(turn, event)) {
    const known = turn.executions.get(id);
    const draft = known ? structuredClone(known) : revive(id);
    const error = draft && change(draft);
    if (error) reply = { ok: false, error };
    else if (draft) reply = record(turn, draft);
  }
  return reply;
}

/** Draws the conclusions, and records what became of the draft. */
function record(turn: Turn, draft: Execution): Reply<unknown> {
  advance(turn, draft);
  draft.revision += 1;
  turn.changes.push({ type: isForgotten(draft, turn.now) ? 'remove' : 'put', execution: draft });
  return DONE;
}

function advanceEach(turn: Turn, event: Event): Answer {
  return each(turn, event, () => {});
}

function eachActivation(
  turn: Turn,
  event: EventOf<'activation-acknowledged' | 'activation-ended'>,
  change: (execution: Execution, activation: Activation) => void,
): Answer {
  return each(turn, event, (execution) => {
    const activation = execution.activations.find(({ id }) => id === event.activationId);
    if (activation) change(execution, activation);
  });
}

function connect(turn: Turn, event: EventOf<'document-connected'>): Answer {
  const { facts, clientId, announcement } = event;
  const { documentId } = facts;
  const { tools, readyFrom, quiet } = announcement;
  enlist(turn, documentId, { ...facts, clientId, tools, readyFrom }, quiet);
  return each(
    turn,
    event,
    (execution) => reconcile(turn, execution, documentId, announcement),
    (id) => dismiss(turn, documentId, id, announcement),
  );
}

/**
 * Records who is here with which tools, or that it is gone; its group is told: in silence, where no tools have changed or its
 * own events are held back.
 */
function enlist(turn: Turn, documentId: DocumentId, document?: ConnectedDocument, quiet = false): void {
  const before = turn.documents.get(documentId);
  if (document) {
    document.tools = document.tools.slice(0, turn.sizes.tools);
    turn.documents.set(documentId, document);
    turn.changes.push({ type: 'connect', document });
  } else if (turn.documents.delete(documentId)) {
    turn.changes.push({ type: 'disconnect', documentId });
  }
  const owner = document ?? before;
  const isListed = [before, document].some((one) => one && one.tools.length > 0);
  if (owner && (isListed || owner.readyFrom !== undefined)) {
    const isHeld = document?.readyFrom === Infinity;
    // Told already: by the hello that the same change has caused, where the worker was dead. Unless that was held back.
    const isOld = before?.readyFrom !== Infinity && textOf(before) === textOf(document);
    turn.effects.push({
      type: 'announce-tools',
      groupId: owner.groupId,
      quiet: quiet || !isListed || isHeld || isOld,
    });
  }
}

function textOf(document?: ConnectedDocument): string {
  return JSON.stringify(document?.tools ?? null);
}

function disconnect(turn: Turn, event: EventOf<'document-left' | 'document-lost'>): Answer {
  const { documentId } = event;
  const isSaid = event.type === 'document-left';
  const reason = isSaid ? 'navigated' : 'document-lost';
  const isHeard = isSaid || turn.documents.has(documentId);
  enlist(turn, documentId);
  each(turn, event, (execution) => {
    if (execution.callerDocumentId === documentId) loseCaller(turn, execution, reason);
    for (const activation of execution.activations) {
      if (activation.documentId !== documentId) continue;
      if (isHeard) activation.heardAt = turn.now;
      loseActivation(turn, execution, activation, reason);
    }
  });
  for (const call of isSaid ? event.lostCalls : []) {
    if (turn.executions.has(call.executionId)) continue;
    // Nobody else knew of it: the next page may ask what became of it. Its page has ended it, whatever it was to live on for.
    const lost = createExecution(turn, { ...call, keepalive: false }, true);
    lost.stored = false;
    loseCaller(turn, lost, reason);
    record(turn, lost);
  }
  return DONE;
}

function stay(turn: Turn, event: EventOf<'document-stayed'>): Answer {
  return each(turn, event, (execution) => reportHeld(turn, execution, event.documentId));
}

function changeTools(turn: Turn, event: EventOf<'tools-changed'>, document: ConnectedDocument): Answer {
  const { tools, readyFrom, quiet } = event;
  enlist(turn, document.documentId, { ...document, tools, readyFrom }, quiet);
  return DONE;
}

function request(turn: Turn, event: EventOf<'execution-requested'>): Answer {
  const { documentId, call } = event;
  // Asked again: it may have been taken for one that its caller does not await.
  const known = each(turn, event, (execution) => {
    if (turn.documents.has(documentId)) reclaim(turn, execution, documentId);
  });
  if (known) return known;
  if (!turn.documents.has(documentId)) return refused('inactive-document');
  const most = turn.sizes.executions;
  const open = idsOf(turn, (known) => known.callerDocumentId === documentId && known.settled === null);
  if (open.length >= most) {
    return refused('too-many', `At most ${most} open executions a document.`);
  }
  const execution = createExecution(turn, call);
  const target = turn.documents.get(call.documentId) ?? call;
  if (target.groupId !== call.groupId) settle(turn, execution, 'tool-unavailable', null);
  return record(turn, execution);
}

function grant(turn: Turn, event: EventOf<'token-requested'>): Answer {
  const { call } = event;
  const granted = each(
    turn,
    event,
    (execution) => grantToken(turn, execution, event),
    // One that went straight to its document is heard of when it first asks for a token.
    () => (call ? createExecution(turn, call) : undefined),
  );
  return granted ?? refused('not-running');
}

function redeem(turn: Turn, event: EventOf<'token-presented'>, document: ConnectedDocument): Answer {
  const redeemed = each(turn, event, (execution) => redeemToken(turn, execution, event, document));
  if (!redeemed?.ok) return redeemed ?? refused('token-unknown');
  const [executionId] = holding(turn, event);
  return { ok: true, value: { executionId } };
}

function acknowledge(turn: Turn, event: EventOf<'activation-acknowledged'>): Answer {
  return eachActivation(turn, event, (execution, activation) => {
    if (event.refused) refuseActivation(turn, execution, activation, event.refused);
    else beginActivation(activation, turn.now);
  });
}

function end(turn: Turn, event: EventOf<'activation-ended'>): Answer {
  const ended = eachActivation(turn, event, (execution, activation) => {
    beginActivation(activation, turn.now);
    endActivation(turn, execution, activation, event.end);
  });
  return ended ?? refused('not-running');
}

function deliver(turn: Turn, event: EventOf<'outcome-delivered'>): Answer {
  return each(turn, event, (execution) => {
    if (execution.callerDocumentId === event.documentId) markDelivered(turn, execution);
  });
}

function collect(turn: Turn, event: EventOf<'outcomes-collected'>): Answer {
  const value: Execution[] = [];
  each(turn, event, (execution) => {
    execution.callerDocumentId = event.documentId;
    value.push(execution);
  });
  return { ok: true, value };
}

/** It gets what there is already; what is not its own, or has gone meanwhile, it shall not wait for. */
function awaitOutcomes(turn: Turn, event: EventOf<'outcomes-awaited'>): Answer {
  const { documentId, tabKey = null } = event;
  return each(
    turn,
    event,
    (execution) => {
      reclaim(turn, execution, documentId);
      const { call, callerDocumentId, settled } = execution;
      if (!settled && callerDocumentId === documentId) call.tabKey ??= tabKey;
    },
    (id) => tellNavigated(turn, documentId, id),
  );
}
