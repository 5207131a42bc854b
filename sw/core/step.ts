/**
 * One event, one step: which executions it concerns, what becomes of them, what is answered.
 *
 * Pure: reads the state, changes nothing, awaits nothing; time and ids come in with the event. The shell applies `changes`,
 * commits those that are stored, and only then performs `effects` (I1).
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
  loseActivation,
  loseCaller,
  markDelivered,
  refuseActivation,
  reportHeld,
  settle,
} from './execution.ts';
import { announcedIds, rebuild, reclaim, reconcile, tellNavigated } from './recover.ts';
import { grantToken, redeemToken } from './redemption.ts';
import type { Activation, ConnectedDocument, Execution, State } from './state.ts';

type EventOf<T extends Event['type']> = Extract<Event, { type: T }>;
type Answer = Reply<unknown> | undefined;

/** Which executions an event concerns, and what it does: without an answer of its own, it is done. */
type Rule<E> = [concerns: (event: E, state: State) => ExecutionId[], apply: (event: E, turn: Turn) => Answer];

const DONE: Reply<unknown> = { ok: true, value: undefined };

const RULES: { [T in Event['type']]: Rule<EventOf<T>> } = {
  'document-connected': [announced, connect],
  'document-left': [partaking, disconnect],
  'document-lost': [partaking, disconnect],
  'document-stayed': [partaking, stay],
  'tools-changed': [none, asked(changeTools)],
  'execution-requested': [none, request],
  'cancel-requested': [named, (event, turn) => each(turn, event, cancelExecution)],
  'token-requested': [named, grant],
  'token-presented': [named, asked(redeem)],
  'activation-acknowledged': [named, acknowledge],
  'activation-ended': [named, end],
  'outcome-delivered': [named, deliver],
  'outcomes-collected': [uncollected, asked(collect)],
  'outcomes-awaited': [({ executionIds }) => executionIds, asked(awaitOutcomes)],
  'time-passed': [due, (event, turn) => each(turn, event, () => {})],
};

function ruleFor<E extends Event>(event: E): Rule<E> {
  return RULES[event.type] as unknown as Rule<E>;
}

/** The ids of the executions that an event may change: what a transaction has to read before the step. */
export function concerned(state: State, event: Event): ExecutionId[] {
  return [...new Set(ruleFor(event)[0](event, state))];
}

export function step(state: State, event: Event): Step {
  const turn: Turn = {
    ...state,
    now: event.now,
    documents: new Map(state.documents),
    changes: [],
    effects: [],
  };
  const reply = ruleFor(event)[1](event, turn) ?? DONE;
  return { changes: turn.changes, effects: turn.effects, reply };
}

function none(): ExecutionId[] {
  return [];
}

function named({ executionId }: { executionId: ExecutionId | null }): ExecutionId[] {
  return executionId === null ? [] : [executionId];
}

function idsOf({ executions }: State, holds: (execution: Execution) => boolean): ExecutionId[] {
  return [...executions.values()].filter(holds).map(({ id }) => id);
}

function due({ now }: Event, state: State): ExecutionId[] {
  return idsOf(state, (execution) => isDue(execution, now));
}

function partaking({ documentId }: { documentId: string }, state: State): ExecutionId[] {
  return idsOf(
    state,
    ({ callerDocumentId, activations }) =>
      callerDocumentId === documentId ||
      activations.some((activation) => activation.documentId === documentId),
  );
}

function announced({ facts, announcement }: EventOf<'document-connected'>, state: State): ExecutionId[] {
  return [...announcedIds(announcement), ...partaking(facts, state)];
}

/** Those of the tab that the document may have: without a caller, or its own already. */
function uncollected({ documentId }: EventOf<'outcomes-collected'>, state: State): ExecutionId[] {
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
  apply: (event: E, turn: Turn, document: ConnectedDocument) => Answer,
): (event: E, turn: Turn) => Answer {
  return (event, turn) => {
    const document = turn.documents.get(event.documentId);
    return document ? apply(event, turn, document) : refused('inactive-document');
  };
}

function refused(reason: Reason, message?: string): Reply<unknown> {
  return { ok: false, error: failure(reason, false, message) };
}

/** May answer with an error: then what it did to the draft does not count. */
type ExecutionChange =
  | ((draft: Execution, turn: Turn) => ErrorRecord | null)
  | ((draft: Execution, turn: Turn) => void);

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
    if (draft) reply = finish(turn, draft, change);
  }
  return reply;
}

/** Changes the draft, draws the conclusions and records what became of it. */
function finish(turn: Turn, draft: Execution, change: ExecutionChange): Reply<unknown> {
  const error = change(draft, turn);
  if (error) return { ok: false, error };
  advance(draft, turn);
  draft.revision += 1;
  turn.changes.push({ type: isForgotten(draft, turn.now) ? 'remove' : 'put', execution: draft });
  return DONE;
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

function connect(event: EventOf<'document-connected'>, turn: Turn): Answer {
  const { facts, clientId, announcement } = event;
  const { documentId } = facts;
  enlist(turn, documentId, { ...facts, clientId, tools: announcement.tools });
  return each(
    turn,
    event,
    (execution) => reconcile(documentId, execution, announcement, turn),
    (id) => rebuild(documentId, id, announcement, turn),
  );
}

/** Records who is here with which tools, or that it is gone; its group is told if a listing is another one now. */
function enlist(turn: Turn, documentId: DocumentId, document?: ConnectedDocument): void {
  const before = turn.documents.get(documentId);
  if (document) {
    document.tools = document.tools.slice(0, turn.sizes.tools);
    turn.documents.set(documentId, document);
    turn.changes.push({ type: 'connect', document });
  } else if (turn.documents.delete(documentId)) {
    turn.changes.push({ type: 'disconnect', documentId });
  }
  const owner = [before, document].find((one) => one && one.tools.length > 0);
  if (owner) turn.effects.push({ type: 'announce-tools', groupId: owner.groupId });
}

function disconnect(event: EventOf<'document-left' | 'document-lost'>, turn: Turn): Answer {
  const { documentId } = event;
  const isSaid = event.type === 'document-left';
  const reason = isSaid ? 'navigated' : 'document-lost';
  const isHeard = isSaid || turn.documents.has(documentId);
  enlist(turn, documentId);
  each(turn, event, (execution) => {
    if (execution.callerDocumentId === documentId) loseCaller(execution, reason, turn);
    for (const activation of execution.activations) {
      if (activation.documentId !== documentId) continue;
      if (isHeard) activation.heardAt = turn.now;
      loseActivation(execution, activation, reason, turn);
    }
  });
  for (const call of isSaid ? event.lostCalls : []) {
    if (turn.executions.has(call.executionId)) continue;
    // Nobody else knew of it: the next page may ask what became of it. Its page has ended it, whatever it was to live on for.
    const lost = createExecution({ ...call, keepalive: false }, turn, true);
    finish(turn, lost, () => loseCaller(lost, reason, turn));
  }
  return DONE;
}

function stay(event: EventOf<'document-stayed'>, turn: Turn): Answer {
  return each(turn, event, (execution) => reportHeld(execution, event.documentId, turn));
}

function changeTools({ tools }: EventOf<'tools-changed'>, turn: Turn, document: ConnectedDocument): Answer {
  enlist(turn, document.documentId, { ...document, tools });
  return DONE;
}

function request({ documentId, call }: EventOf<'execution-requested'>, turn: Turn): Answer {
  if (turn.executions.has(call.executionId)) return DONE;
  if (!turn.documents.has(documentId)) return refused('inactive-document');
  const most = turn.sizes.executions;
  const open = idsOf(turn, (known) => known.callerDocumentId === documentId && known.settled === null);
  if (open.length >= most) {
    return refused('too-many', `A document may have ${most} open executions at most.`);
  }
  return finish(turn, createExecution(call, turn), (execution) => {
    const target = turn.documents.get(call.documentId);
    if (target && target.groupId !== call.groupId) {
      settle(execution, 'tool-unavailable', null, turn);
    }
  });
}

function grant(event: EventOf<'token-requested'>, turn: Turn): Answer {
  const granted = each(
    turn,
    event,
    (execution) => grantToken(execution, event, turn),
    () => hearOf(event, turn),
  );
  return granted ?? refused('not-running');
}

/**
 * A call that stays in its tab is first heard of when it asks for a token. One of another tab's caller went through here: who
 * is not known any more is over, and its document has not read so yet.
 */
function hearOf({ call, documentId }: EventOf<'token-requested'>, turn: Turn): Execution | undefined {
  const caller = turn.documents.get(call?.callerDocumentId ?? '');
  if (!call || (caller && caller.tabId !== turn.documents.get(documentId)?.tabId)) return undefined;
  return createExecution(call, turn);
}

function redeem(event: EventOf<'token-presented'>, turn: Turn, document: ConnectedDocument): Answer {
  const redeemed = each(turn, event, (execution) => redeemToken(execution, event, document, turn));
  if (!redeemed?.ok) return redeemed ?? refused('token-unknown');
  return { ok: true, value: { executionId: event.executionId } };
}

function acknowledge(event: EventOf<'activation-acknowledged'>, turn: Turn): Answer {
  return eachActivation(turn, event, (execution, activation) => {
    if (event.refused) refuseActivation(execution, activation, event.refused, turn);
    else beginActivation(activation, turn.now);
  });
}

function end(event: EventOf<'activation-ended'>, turn: Turn): Answer {
  const ended = eachActivation(turn, event, (execution, activation) => {
    beginActivation(activation, turn.now);
    endActivation(execution, activation, event.end, turn);
  });
  return ended ?? refused('not-running');
}

function deliver(event: EventOf<'outcome-delivered'>, turn: Turn): Answer {
  return each(turn, event, (execution) => {
    if (execution.callerDocumentId === event.documentId) markDelivered(execution, turn);
  });
}

function collect(event: EventOf<'outcomes-collected'>, turn: Turn): Answer {
  const value: Execution[] = [];
  each(turn, event, (execution) => {
    execution.callerDocumentId = event.documentId;
    value.push(execution);
  });
  return { ok: true, value };
}

/** It gets what there is already; what is not its own, or has gone meanwhile, it shall not wait for. */
function awaitOutcomes(event: EventOf<'outcomes-awaited'>, turn: Turn): Answer {
  const { documentId } = event;
  return each(
    turn,
    event,
    (execution) => reclaim(execution, documentId, turn),
    (id) => tellNavigated(documentId, id, turn),
  );
}
