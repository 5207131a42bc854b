/**
 * The two ends of a continuation token: granting it to a running activation, redeeming it in another document.
 *
 * Both only change the draft they are given and answer with an error, or `null`. Called inside the transaction that stores
 * the draft, so that of two redemptions in the same instant one wins (rule 3).
 */
import { LONGEST_LIFETIME } from '../../shared/bounds.ts';
import { type ErrorRecord, failure } from '../../shared/errors.ts';
import type { ActivationId, TokenDigest } from '../../shared/ids.ts';
import type { Grant } from '../../shared/protocol.ts';
import type { Turn } from './event.ts';
import {
  beginActivation,
  createActivation,
  dropActivation,
  isForgotten,
  moveActivation,
} from './execution.ts';
import type { ConnectedDocument, Execution } from './state.ts';
import { expireTokens, moveToken } from './token.ts';

/** Stores a token for a running activation. A repeated request is the same request. */
export function grantToken(turn: Turn, execution: Execution, grant: Grant): ErrorRecord | null {
  const { tokens, activations, settled } = execution;
  const { digest, tokenKey, activationId } = grant;
  if (tokens.some((token) => token.digest === digest)) return null;
  const issuer = activations.find(({ id }) => id === activationId);
  if (issuer) beginActivation(issuer, turn.now);
  if (issuer?.state !== 'running' || settled) return failure('not-running', true);
  const most = turn.sizes.tokens;
  if (tokens.length >= most) {
    return failure('too-many', true, `At most ${most} continuation tokens an execution.`);
  }
  const lifetime = Math.min(Math.max(grant.lifetime, 0), LONGEST_LIFETIME);
  tokens.push({
    digest,
    state: 'outstanding',
    key: tokenKey,
    issuer: activationId,
    lifetime,
    deadline: null,
  });
  return null;
}

/** Redeems a token for an activation that is to run in `document`. A repeated redemption is the same redemption. */
export function redeemToken(
  turn: Turn,
  execution: Execution,
  { digest, activationId }: { digest: TokenDigest; activationId: ActivationId },
  { documentId, groupId }: ConnectedDocument,
): ErrorRecord | null {
  const { tokens, activations, call } = execution;
  const token = tokens.find((candidate) => candidate.digest === digest);
  if (!token || isForgotten(execution, turn.now)) return failure('token-unknown', false);
  if (call.groupId !== groupId) return failure('other-group', false);
  expireTokens(tokens, turn.now);
  const { state } = token;
  if (state === 'redeemed') {
    const redeemer = activations.findLast(({ resumes }) => resumes === digest);
    if (redeemer?.id !== activationId) return failure('token-redeemed', false);
    if (redeemer.state === 'withdrawn') return failure('token-void', false);
    // Asked for again, and over meanwhile: its document may never have read that it was its turn.
    if (redeemer.state === 'lost') dropActivation(turn, redeemer);
    return null;
  }
  if (!moveToken(token, 'redeem')) return failure(`token-${state as 'expired' | 'void'}`, false);
  for (const activation of activations) {
    if (activation.id === token.issuer) moveActivation(activation, 'discard');
  }
  // One of that id that was withdrawn has never run: its document was away, is back, and asks again.
  execution.activations = [
    ...activations.filter(({ id }) => id !== activationId),
    createActivation(turn, activationId, documentId, digest),
  ];
  return null;
}
