/**
 * The redemptions of this document: callbacks that wait for their turn.
 *
 * Kept: a callback is taken once; what was accepted is announced again to every worker until it is taken or dropped
 * (rule 5).
 */
import { type ActivationId, type ExecutionId, freshId } from '../shared/ids.ts';
import type { AnnouncedResumption } from '../shared/protocol.ts';
import type { Connection } from './connection.ts';
import { relayFailure, unwrap } from './errors.ts';
import type { ToolExecuteCallback } from './invocation.ts';
import { isToken } from './token.ts';

interface Resumption {
  readonly token: string;
  readonly callback: ToolExecuteCallback;
  /** Settles once `resumeTool()` has: the callback runs later than that. */
  readonly answered: Promise<unknown>;
  executionId?: ExecutionId;
}

export interface Resumptions {
  /** Resolves once the token is accepted; rejects with a RelayError. */
  resume(token: string, callback: ToolExecuteCallback): Promise<void>;
  /** The callback whose turn it is; it is gone from here then. */
  take(id: ActivationId): Partial<Resumption>;
  /** It will not run. */
  drop(id: ActivationId): void;
  leave(): void;
  announced(): AnnouncedResumption[];
}

export function createResumptions(send: Connection['send']): Resumptions {
  const here = new Map<ActivationId, Resumption>();

  async function resume(token: string, callback: ToolExecuteCallback): Promise<void> {
    if (!isToken(token)) throw relayFailure('token-unknown');
    const activationId = freshId();
    const answered = send('redeem', { activationId, token });
    const resumption: Resumption = { token, callback, answered };
    here.set(activationId, resumption);
    const reply = await answered;
    if (!reply.ok) here.delete(activationId);
    resumption.executionId = unwrap(reply).executionId;
  }

  return {
    resume,
    take(id) {
      const resumption = here.get(id) ?? {};
      here.delete(id);
      return resumption;
    },
    drop(id) {
      if (here.delete(id)) console.warn('webmcp-relay: a resumed callback will not run');
    },
    leave: () => here.clear(),
    announced: () =>
      [...here].flatMap(([activationId, { executionId, token }]) =>
        executionId ? { activationId, executionId, token } : [],
      ),
  };
}
