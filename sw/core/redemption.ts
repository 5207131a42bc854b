/**
 * The two ends of a continuation token: granting it to a running activation, redeeming it in another document.
 *
 * Both only change the draft they are given and answer with an error, or `null`. Called inside the transaction that stores
 * the draft, so that of two redemptions in the same instant one wins (rule 3).
 */
import type { Sizes } from '../../shared/bounds.ts';
import { type ErrorRecord, failure, type Reason } from '../../shared/errors.ts';
import type { ActivationId, TokenDigest } from '../../shared/ids.ts';
import type { Grant } from '../../shared/protocol.ts';
import { beginActivation, createActivation, moveActivation } from './execution.ts';
import type { ConnectedDocument, Execution, Token } from './state.ts';
import { expireTokens, moveToken } from './token.ts';

/** Stores a token for a running activation. A repeated request is the same request. */
export function grantToken(
  execution: Execution,
  grant: Grant,
  sizes: Sizes,
  now: number,
): ErrorRecord | null {
  if (execution.tokens.some(({ digest }) => digest === grant.digest)) return null;
  const activation = execution.activations.find(({ id }) => id === grant.activationId);
  if (activation !== undefined) beginActivation(activation, now);
  if (activation?.state !== 'running' || execution.settled !== null) return failure('not-running', true);
  if (execution.tokens.length >= sizes.tokens) {
    return failure('too-many', true, `An execution may have ${sizes.tokens} continuation tokens at most.`);
  }
  activation.granted = true;
  execution.stored = true;
  if (grant.call !== null) execution.call = grant.call;
  execution.tokens.push({
    digest: grant.digest,
    state: 'outstanding',
    key: grant.tokenKey,
    issuer: activation.id,
    redeemedBy: null,
    lifetime: grant.lifetime,
    deadline: null,
  });
  return null;
}

const REFUSALS: Record<Exclude<Token['state'], 'outstanding'>, Reason> = {
  redeemed: 'token-redeemed',
  expired: 'token-expired',
  void: 'token-void',
};

/** Redeems a token for an activation that is to run in `document`. A repeated redemption is the same redemption. */
export function redeemToken(
  execution: Execution,
  digest: TokenDigest,
  activationId: ActivationId,
  document: ConnectedDocument,
  now: number,
): ErrorRecord | null {
  const token = execution.tokens.find((candidate) => candidate.digest === digest);
  if (token === undefined) return failure('token-unknown', false);
  if (execution.call.groupId !== document.groupId) return failure('other-group', false);
  expireTokens(execution, now);
  const known = execution.activations.find(({ id }) => id === activationId);
  if (token.redeemedBy === activationId)
    return known?.state === 'withdrawn' ? failure('token-void', false) : null;
  if (token.state !== 'outstanding') return failure(REFUSALS[token.state], false);
  moveToken(token, 'redeem');
  token.redeemedBy = activationId;
  for (const activation of execution.activations) {
    if (activation.id === token.issuer) moveActivation(activation, 'discard');
  }
  // One that was withdrawn has never run: its document was away, is back, and asks again.
  if (known?.state === 'withdrawn') execution.activations.splice(execution.activations.indexOf(known), 1);
  execution.activations.push(createActivation(activationId, document.documentId, document, now, digest));
  return null;
}
