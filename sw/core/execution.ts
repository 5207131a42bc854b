/**
 * One execution, from its request to its settlement: its activations, its outputs and answers, its caller.
 *
 * Owns: what an event means for a single execution. Does not own: which executions an event concerns (`step`), tokens' own
 * rules (`token`), who is connected (`registry`).
 * Kept: I3 an activation begins at most once; I6 one settlement; an activation changes its state by `moveActivation` only, an
 * execution settles by `settle` only. What changes, changes the draft that it is given and leaves its effects in the turn;
 * `advance` then draws the conclusions.
 *
 *            command    begin    return    throw   hold   stay   discard    lose       withdraw
 * waiting    commanded  running  returned  threw   held   .      .          .          withdrawn
 * commanded  commanded  running  returned  threw   held   .      .          lost       waiting
 * running    .          .        returned  threw   held   .      .          lost       .
 * held       .          .        .         .       .      threw  discarded  .          .
 * (returned, threw, discarded, lost, withdrawn: final)
 *
 * `withdraw` of a commanded activation is a refusal that came too late to begin: it may be commanded again.
 */
import type { ErrorRecord, Reason } from '../../shared/errors.ts';
import type { ActivationId, DocumentId } from '../../shared/ids.ts';
import type { Call, End } from '../../shared/protocol.ts';
import type { Turn } from './event.ts';
import type {
  Activation,
  ActivationState,
  ConnectedDocument,
  Ending,
  Execution,
  State,
  Value,
} from './state.ts';
import { expireTokens, isOutstanding, moveToken, startLifetimes } from './token.ts';

export type ActivationEvent =
  | 'command'
  | 'begin'
  | 'return'
  | 'throw'
  | 'hold'
  | 'stay'
  | 'discard'
  | 'lose'
  | 'withdraw';

const ENDS = { return: 'returned', throw: 'threw', hold: 'held' } as const;

export const ACTIVATION_TABLE: Readonly<
  Record<ActivationState, Readonly<Partial<Record<ActivationEvent, ActivationState>>>>
> = {
  waiting: { command: 'commanded', begin: 'running', ...ENDS, withdraw: 'withdrawn' },
  commanded: { command: 'commanded', begin: 'running', ...ENDS, lose: 'lost', withdraw: 'waiting' },
  running: { ...ENDS, lose: 'lost' },
  held: { stay: 'threw', discard: 'discarded' },
  returned: {},
  threw: {},
  discarded: {},
  lost: {},
  withdrawn: {},
};

/** An outcome that nobody collects is kept this long, in milliseconds. */
const OUTCOME_KEPT = 600_000;
/** What is left of a settled execution, or of a call that died with its page, is kept this long. */
export const REMAINS_KEPT = 60_000;
/** An acknowledgement given just before `refuseAfter` may still be on its way. */
export const ACKNOWLEDGEMENT_GRACE = 500;

/** Moves the activation if its table allows it, and says whether it did. */
export function moveActivation(activation: Activation, event: ActivationEvent): boolean {
  const next = ACTIVATION_TABLE[activation.state][event];
  if (next === undefined) return false;
  activation.state = next;
  return true;
}

/** Has it begun, or may it have, and is it not over? */
export function isActive(activation: Activation): boolean {
  return activation.state === 'commanded' || activation.state === 'running';
}

/** Is it not over, or has it not begun yet? */
export function isOpen(activation: Activation): boolean {
  return isActive(activation) || activation.state === 'waiting';
}

/** Can nothing change it any more? */
export function isOver(activation: Activation): boolean {
  return !isOpen(activation) && activation.state !== 'held';
}

/** Could any callback of the execution have begun, but for one that certainly has not? */
function hasStarted(execution: Execution, besides?: Activation): boolean {
  return execution.activations.some(
    (activation) =>
      activation.mayHaveBegun ||
      (activation !== besides && activation.state !== 'waiting' && activation.state !== 'withdrawn'),
  );
}

/** An execution with its first activation, as its call describes them. */
export function createExecution(
  call: Call,
  documents: State['documents'],
  now: number,
  mayHaveBegun = false,
): Execution {
  const { executionId: id, callerDocumentId, documentId } = call;
  const first = createActivation(id, documentId, documents.get(documentId), now);
  return {
    id,
    revision: 0,
    stored: false,
    call,
    callerDocumentId,
    callerClientId: documents.get(callerDocumentId)?.clientId ?? null,
    activations: [{ ...first, mayHaveBegun }],
    tokens: [],
    outputs: [],
    answer: null,
    settled: null,
  };
}

export function createActivation(
  id: string,
  documentId: DocumentId,
  document: ConnectedDocument | undefined,
  now: number,
  resumes: string | null = null,
): Activation {
  return {
    id,
    documentId,
    clientId: document?.clientId ?? null,
    tabId: document?.tabId ?? null,
    state: 'waiting',
    resumes,
    granted: false,
    mayHaveBegun: false,
    heardAt: now,
    refuseAfter: 0,
    held: null,
  };
}

/** The document acknowledges: the callback begins. */
export function beginActivation(activation: Activation, now: number): void {
  activation.heardAt = now;
  moveActivation(activation, 'begin');
}

/** The document refuses to begin it: for good, or because it read the command too late, or because it has begun it before. */
export function refuseActivation(
  execution: Execution,
  activation: Activation,
  refusal: ErrorRecord,
  turn: Turn,
): void {
  if (refusal.started) {
    loseActivation(execution, activation, 'navigated', activation.heardAt, turn);
    return;
  }
  const readsTooLate = refusal.reason === 'document-unresponsive' && activation.resumes !== null;
  if (readsTooLate && activation.state !== 'commanded') return;
  if (!moveActivation(activation, 'withdraw')) return;
  activation.mayHaveBegun = false;
  if (activation.resumes === null) {
    settle(execution, failed(refusal.reason, hasStarted(execution)), turn);
  } else if (!readsTooLate) {
    withdrawResumption(execution, activation);
  }
}

/** It will not run: its token is outstanding again, with its old deadline (rule 5). */
function withdrawResumption(execution: Execution, activation: Activation): void {
  moveActivation(activation, 'withdraw');
  const token = execution.tokens.find(({ digest }) => digest === activation.resumes);
  if (token !== undefined && moveToken(token, 'restore')) token.redeemedBy = null;
}

/** Its callback ended (rules 9 and 10). */
export function endActivation(execution: Execution, activation: Activation, end: End, turn: Turn): void {
  const holds = end.type === 'threw' && end.leaving && hasOutstanding(execution, activation);
  const event = end.type === 'returned' ? 'return' : holds ? 'hold' : 'throw';
  if (!moveActivation(activation, event)) return;
  activation.heardAt = turn.now;
  startLifetimes(execution, activation.id, turn.now);
  if (end.type === 'returned') {
    if (activation.granted) addOutput(execution, activation, end.value, turn);
    else execution.answer = end.value;
    return;
  }
  const ending = failed(end.reason, true, end.error);
  if (holds) activation.held = ending;
  else if (!activation.granted || hasOutstanding(execution, activation)) settle(execution, ending, turn);
}

function hasOutstanding(execution: Execution, issuer: Activation): boolean {
  return execution.tokens.some((token) => token.issuer === issuer.id && isOutstanding(token));
}

function addOutput(execution: Execution, activation: Activation, value: Value, turn: Turn): void {
  execution.outputs.push({ activationId: activation.id, value });
  deliverOutput(execution, activation.id, value, turn);
}

export function deliverOutput(execution: Execution, activationId: string, value: Value, turn: Turn): void {
  if (execution.callerDocumentId === null) return;
  const { callerDocumentId: documentId, id: executionId } = execution;
  turn.effects.push({ type: 'deliverOutput', documentId, executionId, activationId, value });
}

/** The document of a held throw stays after all: the throw counts. */
export function reportHeld(execution: Execution, documentId: DocumentId, turn: Turn): void {
  for (const activation of execution.activations) {
    if (activation.documentId === documentId && moveActivation(activation, 'stay')) {
      settle(execution, activation.held as Ending, turn);
    }
  }
}

/** The document of the activation is gone (rules 5 and 11). `heardAt`: when it was surely still there. */
export function loseActivation(
  execution: Execution,
  activation: Activation,
  reason: 'navigated' | 'document-lost',
  heardAt: number,
  turn: Turn,
): void {
  if (awaitsTurn(activation)) {
    withdrawResumption(execution, activation);
  } else if (activation.state === 'waiting') {
    const { mayHaveBegun } = activation;
    settle(execution, failed(mayHaveBegun ? reason : 'tool-unavailable', mayHaveBegun), turn);
  } else if (moveActivation(activation, 'lose')) {
    startLifetimes(execution, activation.id, heardAt);
    if (!activation.granted) settle(execution, failed(reason, true), turn);
  }
}

/** The caller is gone (`semantics.md`, The caller leaves). */
export function loseCaller(execution: Execution, reason: 'navigated' | 'document-lost', turn: Turn): void {
  const latest = execution.activations.findLast(({ state }) => state !== 'waiting' && state !== 'withdrawn');
  // Of a caller that is found lost nobody knows when it left: its token may have been redeemed since.
  const continuesIn = reason === 'document-lost' ? isOpenResumption : awaitsTurn;
  const continues = execution.tokens.some(isOutstanding) || execution.activations.some(continuesIn);
  dropCaller(execution);
  if (execution.settled !== null || execution.call.keepalive) return;
  if (continues && latest?.tabId === execution.call.callerTabId) return;
  settle(execution, failed(reason, hasStarted(execution)), turn);
  Object.assign(execution.settled ?? {}, { keepUntil: turn.now + REMAINS_KEPT });
}

/** Nobody awaits it: whoever collects it is its next caller. */
export function dropCaller(execution: Execution): void {
  execution.callerDocumentId = null;
  execution.callerClientId = null;
}

function isOpenResumption(activation: Activation): boolean {
  return isOpen(activation) && activation.resumes !== null;
}

/** An accepted resumption whose callback was not told to run: its token falls back if its document goes. */
function awaitsTurn(activation: Activation): boolean {
  return activation.state === 'waiting' && activation.resumes !== null;
}

/** A cancel always cancels. The caller has rejected its promise already, with its own reason. */
export function cancelExecution(execution: Execution, turn: Turn): void {
  settle(execution, failed('aborted', hasStarted(execution)), turn);
  markDelivered(execution, turn);
}

export function failed(reason: Reason, started: boolean, detail: Value | null = null): Ending {
  return { type: 'failed', reason, started, detail };
}

/** The one place where an execution settles (I6): what still runs or waits is dropped, what is outstanding is void. */
export function settle(execution: Execution, ending: Ending, turn: Turn): void {
  if (execution.settled !== null) return;
  execution.settled = {
    ending,
    as: ending.type === 'result' ? 'result' : ending.reason,
    at: turn.now,
    keepUntil: turn.now + OUTCOME_KEPT,
  };
  for (const activation of execution.activations) {
    if (isOpen(activation)) dropActivation(activation.documentId, activation.id, turn);
    if (!moveActivation(activation, 'lose')) moveActivation(activation, 'withdraw');
  }
  for (const token of execution.tokens) moveToken(token, 'void');
  deliverOutcome(execution, turn);
}

/** Nobody wants what it may still give. */
export function dropActivation(documentId: DocumentId, activationId: ActivationId, turn: Turn): void {
  turn.effects.push({ type: 'drop', documentId, activationId });
}

/** Tells the caller, if it has one. */
export function deliverOutcome(execution: Execution, turn: Turn): void {
  const { callerDocumentId: documentId, id: executionId, settled } = execution;
  const { ending = null } = settled ?? {};
  if (documentId === null || ending === null) return;
  turn.effects.push({ type: 'settle', documentId, executionId, ending });
}

/** Its outcome is where it belongs: shrink to what a late `resumeTool` is told by (rule 13). */
export function markDelivered(execution: Execution, turn: Turn): void {
  const { settled } = execution;
  if (settled === null || settled.ending === null) return;
  settled.ending = null;
  execution.call = { ...execution.call, input: {}, tabKey: null };
  execution.answer = null;
  execution.outputs = [];
  for (const token of execution.tokens) token.key = null;
  for (const activation of execution.activations) {
    activation.held = null;
    dropActivation(activation.documentId, activation.id, turn);
  }
}

/** Has nobody collected its outcome in time? Its tokens' fates are kept longer (rule 13). */
function isAbandoned({ settled, callerDocumentId }: Execution, now: number): boolean {
  return settled !== null && settled.ending !== null && callerDocumentId === null && now >= settled.keepUntil;
}

/** Is nothing left of it that anybody may ask for? */
export function isForgotten(execution: Execution, now: number): boolean {
  return execution.settled?.ending === null && now >= remainsUntil(execution);
}

/** A token may yet be presented, and a callback that was aborted may yet ask for one. */
function remainsUntil({ tokens, activations, settled }: Execution): number {
  if (tokens.length === 0 && !activations.some(({ state }) => state === 'lost')) return 0;
  const settledAt = settled?.at ?? 0;
  const deadlines = tokens.map((token) => token.deadline ?? settledAt + token.lifetime);
  return Math.max(settledAt, ...deadlines) + REMAINS_KEPT;
}

/**
 * Draws every conclusion that holds by now: expired tokens, activations whose turn it is, bounds that have passed, and
 * whether the execution is over (rule 9). May be called at any time, any number of times.
 */
export function advance(execution: Execution, state: State, turn: Turn): void {
  expireTokens(execution, turn.now);
  if (isAbandoned(execution, turn.now)) markDelivered(execution, turn);
  if (execution.settled !== null) return;
  for (const activation of execution.activations) {
    if (activation.state === 'waiting') commandIfDue(execution, activation, state, turn);
    else if (isLate(activation, turn.now)) {
      // Its document refuses it by now, or, if the clock was set back meanwhile, is told to abort it.
      settle(execution, failed('document-unresponsive', hasStarted(execution, activation)), turn);
    }
  }
  if (execution.activations.some(isOpen) || execution.tokens.some(isOutstanding)) return;
  const held = execution.activations.findLast(({ state }) => state === 'held');
  if (held !== undefined) settle(execution, held.held as Ending, turn);
  else if (execution.answer !== null) settle(execution, { type: 'result', value: execution.answer }, turn);
  else settle(execution, failed('token-expired', true), turn);
}

/** Commands a waiting activation once its document is here and the activation that issued its token is over (rule 4). */
function commandIfDue(execution: Execution, activation: Activation, state: State, turn: Turn): void {
  const document = state.documents.get(activation.documentId);
  const token = execution.tokens.find(({ digest }) => digest === activation.resumes);
  const issuer = execution.activations.find(({ id }) => id === token?.issuer);
  if (document === undefined || (issuer !== undefined && isOpen(issuer))) return;
  activation.tabId = document.tabId;
  activation.clientId = document.clientId;
  command(execution, activation, turn);
}

/**
 * Tells the document to run it; a repeated command is dropped there (I2). A resumption may begin as long as its token
 * would have lived: a page that is slow to load loses nothing.
 */
export function command(execution: Execution, activation: Activation, turn: Turn): void {
  if (activation.state === 'commanded') activation.mayHaveBegun = true;
  if (!moveActivation(activation, 'command')) return;
  const token = execution.tokens.find(({ digest }) => digest === activation.resumes) ?? null;
  activation.refuseAfter = Math.max(turn.now + turn.bounds.acknowledging, token?.deadline ?? 0);
  const { documentId, id: activationId, refuseAfter } = activation;
  const { id: executionId, call } = execution;
  turn.effects.push({ type: 'activate', documentId, executionId, activationId, call, token, refuseAfter });
}

/**
 * Has time alone given `advance` something to do? A deadline farther away than a whole lifetime is one that the clock jumped
 * back from.
 */
export function isDue(execution: Execution, now: number): boolean {
  if (execution.settled !== null) return isAbandoned(execution, now) || isForgotten(execution, now);
  return (
    execution.tokens.some((token) => {
      const { deadline, lifetime } = token;
      return deadline !== null && (deadline > now + lifetime || (isOutstanding(token) && now >= deadline));
    }) || execution.activations.some((activation) => isLate(activation, now))
  );
}

/** Has its document had its time to acknowledge the command? */
function isLate({ state, refuseAfter }: Activation, now: number): boolean {
  return state === 'commanded' && now > refuseAfter + ACKNOWLEDGEMENT_GRACE;
}
