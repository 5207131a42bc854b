/**
 * Private values on their way into storage and out of it, and the keys of the executions that this worker has met.
 *
 * Kept: a key lives in memory only; documents bring it along with whatever needs it (I4).
 */
import type { ExecutionId, TokenDigest } from '../shared/ids.ts';
import { type Sealed, seal, unseal } from '../shared/seal.ts';
import type { Execution, Value } from './core/state.ts';

export interface Keyring {
  learn(executionId: ExecutionId, key: string): void;
  forget(executionId: ExecutionId): void;
  /** `''` if nobody has brought it. */
  keyOf(executionId: ExecutionId): string;
  /** A token was presented: should it turn out to be good, it opens its execution. */
  offer(digest: TokenDigest, tokenSecret: string): void;
  /** Learns the execution's key with a token of it that was offered. */
  openWithToken(execution: Execution): Promise<void>;
  /** Learns it with the secret of the caller's tab. */
  openWithTab(execution: Execution, tabSecret: string): Promise<void>;
  /** The text of a value; `undefined` if nobody has brought the key. */
  read(executionId: ExecutionId, value: Value): Promise<string | null | undefined>;
}

/** Text → a value that storage may keep. */
export async function sealValue(text: string | null, key: string): Promise<Value> {
  return { text, sealed: await seal(JSON.stringify(text), key) };
}

export function createKeyring(): Keyring {
  const keys = new Map<ExecutionId, string>();
  const offers = new Map<TokenDigest, string>();

  async function open(
    executionId: ExecutionId,
    box: Sealed | null | undefined,
    secret: string,
  ): Promise<void> {
    if (keys.has(executionId) || !box) return;
    keys.set(executionId, await unseal(box, secret));
  }

  return {
    learn(executionId, key) {
      if (key !== '') keys.set(executionId, key);
    },
    forget(executionId) {
      keys.delete(executionId);
    },
    keyOf: (executionId) => keys.get(executionId) ?? '',
    offer(digest, tokenSecret) {
      offers.set(digest, tokenSecret);
    },
    async openWithToken(execution) {
      for (const { digest, key } of execution.tokens) {
        const secret = offers.get(digest);
        offers.delete(digest);
        if (secret !== undefined) await open(execution.id, key, secret);
      }
    },
    openWithTab: (execution, tabSecret) => open(execution.id, execution.tabKey, tabSecret),
    async read(executionId, { text, sealed }) {
      if (text !== undefined) return text;
      const key = keys.get(executionId);
      if (key === undefined || sealed === undefined) return undefined;
      return JSON.parse(await unseal(sealed, key)) as string | null;
    },
  };
}
