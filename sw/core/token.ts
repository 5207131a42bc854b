/**
 * Continuation tokens: what may become of one, and when it expires.
 *
 * Kept: at most one redemption (`redeemed` leads back only for an activation that never began); void and expired are final
 * (I3). Deadlines are times, judged on every wake (I5); a clock that jumps back pulls them in, never out.
 *
 *              redeem      restore       expire     void
 * outstanding  redeemed    .             expired    void
 * redeemed     .           outstanding   .          .
 * expired      .           .             .          .
 * void         .           .             .          .
 */
import type { Token, TokenState } from './state.ts';

export type TokenEvent = 'redeem' | 'restore' | 'expire' | 'void';

export const TOKEN_TABLE: Readonly<Record<TokenState, Readonly<Partial<Record<TokenEvent, TokenState>>>>> = {
  outstanding: { redeem: 'redeemed', expire: 'expired', void: 'void' },
  redeemed: { restore: 'outstanding' },
  expired: {},
  void: {},
};

/** Moves the token if its table allows it, and says whether it did. */
export function moveToken(token: Token, event: TokenEvent): boolean {
  const next = TOKEN_TABLE[token.state][event];
  if (!next) return false;
  token.state = next;
  if (next === 'expired' || next === 'void') token.key = null;
  return true;
}

export function isOutstanding({ state }: Token): boolean {
  return state === 'outstanding';
}

/** The activation that issued them has ended at `endedAt`: their lifetimes count from now on. */
export function startLifetimes(tokens: readonly Token[], endedAt: number): void {
  for (const token of tokens) token.deadline ??= endedAt + token.lifetime;
}

/** Judges every deadline by `now`. */
export function expireTokens(tokens: readonly Token[], now: number): void {
  for (const token of tokens) {
    if (token.deadline === null) continue;
    token.deadline = Math.min(token.deadline, now + token.lifetime);
    if (now >= token.deadline) moveToken(token, 'expire');
  }
}
