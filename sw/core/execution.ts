/**
 * One execution, from its request to its settlement: its activations, its outputs and answers, its caller.
 *
 * Owns: what an event means for a single execution. Does not own: which executions an event concerns (`step`), tokens' own
 * rules (`token`), who is connected (`registry`).
 * Kept: I3 an activation begins at most once; I6 one settlement; an activation changes its state by `moveActivation` only, an
 * execution settles by `settle` only. What changes, changes the draft that it is given and leaves its effects in the turn;
 * `advance` then draws the conclusions.
 *
 *            command    begin    return    throw   hold   refuse     stay   discard    lose       withdraw
 * waiting    commanded  running  returned  threw   held   withdrawn  .      .          .          withdrawn
 * commanded  commanded  running  returned  threw   held   withdrawn  .      .          lost       waiting
 * running    .          .        returned  threw   held   withdrawn  .      .          lost       .
 * held       .          .        .         .       .      .          threw  discarded  .          .
 * (returned, threw, discarded, lost, withdrawn: final)
 *
 * `withdraw` of a commanded activation is a refusal that came too late to begin: it may be commanded again. `refuse` is for good:
 * a document that had acknowledged it did not run the callback after all.
 */
import { ACKNOWLEDGEMENT_GRACE } from '../../shared/bounds.ts';
import type { ErrorRecord, Reason } from '../../shared/errors.ts';
import type { ActivationId, DocumentId, TokenDigest } from '../../shared/ids.ts';
import type { Call, End, Ending, Output, Value } from '../../shared/protocol.ts';
import { type Turn, tell } from './event.ts';
import type { Activation, ActivationState, Execution, Token } from './state.ts';
import { expireTokens, isOutstanding, moveToken, startLifetimes } from './token.ts';

export type ActivationEvent =
  | 'command'
  | 'begin'
  | 'return'
  | 'throw'
  | 'hold'
  | 'refuse'
  | 'stay'
  | 'discard'
  | 'lose'
  | 'withdraw';

const ENDS = { return: 'returned', throw: 'threw', hold: 'held', refuse: 'withdrawn' } as const;

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

/** Moves the activation if its table allows it, and says whether it did. */
export function moveActivation(activation: Activation, event: ActivationEvent): boolean {
  const next = ACTIVATION_TABLE[activation.state][event];
  if (next) activation.state = next;
  return Boolean(next);
}

/** Has it begun, or may it have, and is it not over? */
export function isActive({ state }: Activation): boolean {
  return state === 'commanded' || state === 'running';
}

/** Is it not over, or has it not begun yet? */
export function isOpen(activation: Activation): boolean {
  return isActive(activation) || activation.state === 'waiting';
}

/** Can nothing change it any more? */
export function isOver(activation: Activation): boolean {
  return !isOpen(activation) && activation.state !== 'held';
}

/** Has it begun, or may it have, whatever became of it? */
function hasBegun({ state, mayHaveBegun }: Activation): boolean {
  return mayHaveBegun || (state !== 'waiting' && state !== 'withdrawn');
}

/** An execution with its first activation, as its call describes them. */
export function createExecution(turn: Turn, call: Call, mayHaveBegun = false): Execution {
  const { executionId: id, callerDocumentId, documentId } = call;
  const execution: Execution = {
    id,
    revision: 0,
    stored: true,
    call,
    callerDocumentId,
    met: new Map(),
    activations: [{ ...createActivation(turn, id, documentId), mayHaveBegun }],
    tokens: [],
    outputs: [],
    answer: null,
    settled: null,
  };
  meet(turn, execution);
  return execution;
}

export function createActivation(
  { now }: Turn,
  id: ActivationId,
  documentId: DocumentId,
  resumes: TokenDigest | null = null,
): Activation {
  return {
    id,
    documentId,
    state: 'waiting',
    resumes,
    mayHaveBegun: false,
    heardAt: now,
    refuseAfter: 0,
    held: null,
  };
}

/** Remembers those of its documents that are here. */
function meet({ documents }: Turn, { met, callerDocumentId, activations }: Execution): void {
  for (const id of [callerDocumentId ?? '', ...activations.map(({ documentId }) => documentId)]) {
    const document = documents.get(id);
    if (document) met.set(id, { clientId: document.clientId, tabId: document.tabId });
  }
}

/** The document acknowledges: the callback begins. */
export function beginActivation(activation: Activation, now: number): void {
  activation.heardAt = now;
  moveActivation(activation, 'begin');
}

/** The document refuses to begin it: for good, or because it read the command too late, or because it has begun it before. */
export function refuseActivation(
  turn: Turn,
  execution: Execution,
  activation: Activation,
  refusal: ErrorRecord,
): void {
  if (refusal.started) {
    loseActivation(turn, execution, activation, 'navigated');
    return;
  }
  const readsTooLate = refusal.reason === 'document-unresponsive' && activation.resumes;
  if (readsTooLate && activation.state !== 'commanded') return;
  if (!moveActivation(activation, 'withdraw')) return;
  activation.mayHaveBegun = false;
  if (!activation.resumes) settle(turn, execution, refusal.reason, null);
  else if (!readsTooLate) withdrawResumption(execution, activation);
}

/** It will not run: its token is outstanding again, with its old deadline (rule 5). */
function withdrawResumption(execution: Execution, activation: Activation): void {
  moveActivation(activation, 'withdraw');
  const token = resumedToken(execution, activation);
  if (token) moveToken(token, 'restore');
}

function resumedToken({ tokens }: Execution, { resumes }: Activation): Token | undefined {
  return tokens.find(({ digest }) => digest === resumes);
}

/** The tokens that it was ever granted: with any, it gives outputs, not answers. */
function grantedTokens({ tokens }: Execution, { id }: Activation): Token[] {
  return tokens.filter(({ issuer }) => issuer === id);
}

/** Its callback ended (rules 9 and 10), or was not run after all. */
export function endActivation(turn: Turn, execution: Execution, activation: Activation, end: End): void {
  const tokens = grantedTokens(execution, activation);
  const isContinued = tokens.some(isOutstanding);
  const holds = end.type === 'threw' && end.leaving && isContinued;
  const refuses = end.type === 'threw' && end.started === false;
  const event = refuses ? 'refuse' : end.type === 'returned' ? 'return' : holds ? 'hold' : 'throw';
  if (!moveActivation(activation, event)) return;
  // Whatever became of the command: its document knows.
  activation.mayHaveBegun &&= !refuses;
  activation.heardAt = turn.now;
  startLifetimes(tokens, turn.now);
  if (end.type === 'threw') {
    if (holds) activation.held = end;
    else if (isContinued || tokens.length === 0) settle(turn, execution, end.reason, end.error);
  } else if (tokens.length > 0) {
    const output = { activationId: activation.id, value: end.value };
    execution.outputs.push(output);
    deliverOutput(turn, execution, output);
  } else execution.answer = end.value;
}

export function deliverOutput(turn: Turn, execution: Execution, output: Output): void {
  tell(turn, execution.callerDocumentId, { type: 'deliverOutput', executionId: execution.id, ...output });
}

/** The document of a held throw stays after all: the throw counts. */
export function reportHeld(turn: Turn, execution: Execution, documentId: DocumentId): void {
  for (const activation of execution.activations) {
    if (activation.documentId === documentId && moveActivation(activation, 'stay')) {
      settleHeld(turn, execution, activation);
    }
  }
}

function settleHeld(turn: Turn, execution: Execution, { held }: Activation): void {
  if (held) settle(turn, execution, held.reason, held.error);
}

/** The document of the activation is gone (rules 5 and 11); it was surely still there when it was last heard of. */
export function loseActivation(
  turn: Turn,
  execution: Execution,
  activation: Activation,
  reason: 'navigated' | 'document-lost',
): void {
  const { state, resumes, mayHaveBegun, heardAt } = activation;
  if (moveActivation(activation, 'lose')) {
    const tokens = grantedTokens(execution, activation);
    startLifetimes(tokens, heardAt);
    if (tokens.length === 0) settle(turn, execution, reason, null);
  } else if (state === 'waiting') {
    if (resumes) withdrawResumption(execution, activation);
    else settle(turn, execution, mayHaveBegun ? reason : 'tool-unavailable', null);
  }
}

/** The caller is gone (`decisions/11`). */
export function loseCaller(turn: Turn, execution: Execution, reason: 'navigated' | 'document-lost'): void {
  const { call, tokens, activations, met } = execution;
  execution.callerDocumentId = null;
  if (call.keepalive) return;
  const latest = activations.findLast(hasBegun);
  // An accepted resumption continues it while its callback was not told to run. Of a caller that is found lost nobody knows
  // when it left: its token may have been redeemed since.
  const isResumption = (activation: Activation) =>
    activation.resumes &&
    (activation.state === 'waiting' || (reason === 'document-lost' && isActive(activation)));
  const continues = tokens.some(isOutstanding) || activations.some(isResumption);
  if (continues && latest && met.get(latest.documentId)?.tabId === call.callerTabId) return;
  settle(turn, execution, reason, null, REMAINS_KEPT);
}

/** A cancel always cancels. The caller has rejected its promise already, with its own reason. */
export function cancelExecution(turn: Turn, execution: Execution): void {
  settle(turn, execution, 'aborted', null);
  markDelivered(turn, execution);
}

export function failed(reason: Reason, started: boolean, detail: Value | null = null): Ending {
  return { type: 'failed', reason, started, detail };
}

/**
 * The one place where an execution settles (I6): what still runs or waits is dropped, what is outstanding is void. `value` is
 * the result, or a tool's own error.
 */
export function settle(
  turn: Turn,
  execution: Execution,
  as: 'result' | Reason,
  value: Value | null,
  kept = OUTCOME_KEPT,
): void {
  if (execution.settled) return;
  // A document that is late refuses by now, or, if the clock was set back meanwhile, is told to abort.
  const refuses = (activation: Activation) =>
    as === 'document-unresponsive' && isLate(activation, turn.now) && !activation.mayHaveBegun;
  const started = execution.activations.some((activation) => hasBegun(activation) && !refuses(activation));
  const ending: Ending = as === 'result' ? { type: as, value: value ?? {} } : failed(as, started, value);
  execution.settled = { ending, as, keepUntil: turn.now + kept };
  for (const activation of execution.activations) {
    if (isOpen(activation)) dropActivation(turn, activation);
    if (!moveActivation(activation, 'lose')) moveActivation(activation, 'withdraw');
  }
  startLifetimes(execution.tokens, turn.now);
  for (const token of execution.tokens) moveToken(token, 'void');
  deliverOutcome(turn, execution);
}

/** Nobody wants what it may still give. */
export function dropActivation(turn: Turn, { documentId, id }: Pick<Activation, 'documentId' | 'id'>): void {
  tell(turn, documentId, { type: 'drop', activationId: id });
}

/** Tells the caller, if it has one. */
export function deliverOutcome(turn: Turn, { id, callerDocumentId, settled }: Execution): void {
  if (settled?.ending) {
    tell(turn, callerDocumentId, { type: 'settle', executionId: id, ending: settled.ending });
  }
}

/**
 * Its outcome is where it belongs: shrink to what a late `resumeTool` is told by (rule 13). A token may yet be presented, and a
 * callback that was aborted may yet ask for one.
 */
export function markDelivered(turn: Turn, execution: Execution): void {
  const { settled, tokens, activations } = execution;
  if (!settled?.ending) return;
  const isAskedFor = tokens.length > 0 || activations.some(({ state }) => state === 'lost');
  const deadlines = tokens.map(({ deadline }) => deadline ?? 0);
  const keepUntil = isAskedFor ? Math.max(turn.now, ...deadlines) + REMAINS_KEPT : 0;
  Object.assign(settled, { ending: null, keepUntil });
  execution.call = { ...execution.call, input: {}, tabKey: null };
  execution.answer = null;
  execution.outputs = [];
  for (const token of tokens) token.key = null;
  for (const activation of activations) {
    activation.held = null;
    dropActivation(turn, activation);
  }
}

/** Has nobody collected its outcome in time, or is what is left of it no longer needed? */
function isKeptNoLonger({ settled, callerDocumentId }: Execution, now: number): boolean {
  return settled !== null && now >= settled.keepUntil && !(settled.ending && callerDocumentId);
}

/** Is nothing left of it that anybody may ask for? */
export function isForgotten({ settled }: Execution, now: number): boolean {
  return settled?.ending === null && now >= settled.keepUntil;
}

/**
 * Draws every conclusion that holds by now: expired tokens, activations whose turn it is, bounds that have passed, and
 * whether the execution is over (rule 9). May be called at any time, any number of times.
 */
export function advance(turn: Turn, execution: Execution): void {
  meet(turn, execution);
  if (isKeptNoLonger(execution, turn.now)) markDelivered(turn, execution);
  if (execution.settled) return;
  expireTokens(execution.tokens, turn.now);
  for (const activation of execution.activations) {
    if (activation.state === 'waiting') command(turn, execution, activation);
    else if (isLate(activation, turn.now)) {
      settle(turn, execution, 'document-unresponsive', null);
    }
  }
  if (execution.activations.some(isOpen) || execution.tokens.some(isOutstanding)) return;
  const held = execution.activations.findLast(({ state }) => state === 'held');
  if (held) settleHeld(turn, execution, held);
  else settle(turn, execution, execution.answer ? 'result' : 'token-expired', execution.answer);
}

/**
 * Tells its document to run it, once that is here and the activation that issued its token is over (rule 4); a repeated
 * command is dropped there (I2). A resumption may begin as long as its token would have lived: a page that is slow to load
 * loses nothing.
 */
export function command(turn: Turn, execution: Execution, activation: Activation): void {
  const { id: executionId, call, activations } = execution;
  const { documentId, id: activationId } = activation;
  const token = resumedToken(execution, activation) ?? null;
  if (!turn.documents.has(documentId)) {
    // One that this generation has not met yet may only need to be asked.
    if (!token) turn.effects.push({ type: 'summon', documentId });
    return;
  }
  if (activations.some((issuer) => issuer.id === token?.issuer && isOpen(issuer))) return;
  if (activation.state === 'commanded') activation.mayHaveBegun = true;
  moveActivation(activation, 'command');
  const refuseAfter = Math.max(turn.now + turn.bounds.acknowledging, token?.deadline ?? 0);
  activation.refuseAfter = refuseAfter;
  tell(turn, documentId, { type: 'activate', executionId, activationId, call, token, refuseAfter });
}

/**
 * Has time alone given `advance` something to do? A deadline farther away than a whole lifetime is one that the clock jumped
 * back from.
 */
export function isDue(execution: Execution, now: number): boolean {
  if (execution.settled) return isKeptNoLonger(execution, now);
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
