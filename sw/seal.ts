/**
 * Private values on their way into storage and out of it, and the keys of the executions that this worker has met.
 *
 * Kept: a key lives in memory only; documents bring it along with whatever needs it (I4). A value keeps its text in memory
 * once it was read.
 */
import type { ExecutionId, TokenDigest } from '../shared/ids.ts';
import type { Value } from '../shared/protocol.ts';
import { digestOf, type Sealed, seal, secretOf, unseal } from '../shared/seal.ts';
import type { Execution, Token } from './core/state.ts';

export interface Keyring {
  /** Whatever a document says may bring its execution's key along. */
  learnFrom(message: {
    call?: { executionId: ExecutionId } | null;
    executionId?: ExecutionId;
    key?: string;
  }): void;
  forget(executionId: ExecutionId): void;
  /** `''` if nobody has brought it. */
  keyOf(executionId: ExecutionId): string;
  /** A token was presented: should it turn out to be good, it opens its execution. Resolves with its digest. */
  offer(token: string): Promise<TokenDigest>;
  /** It turned out to be none. */
  withdrawOffer(digest: TokenDigest): void;
  /** Learns the execution's key with a token of it, if that was offered. */
  openWithToken(executionId: ExecutionId, token: Token): Promise<void>;
  /** Learns it with the secret of the caller's tab. */
  openWithTab(execution: Execution, tabSecret: string): Promise<void>;
  /** Seals every value in `data` that is not sealed yet: then it may be stored. */
  sealAll(data: unknown): Promise<void>;
  /** Gives every value in `data`, a part of the execution, its text back. Without the key it stays as it is. */
  openAll(executionId: ExecutionId, data: unknown): Promise<void>;
}

export function createKeyring(): Keyring {
  const keys = new Map<ExecutionId, string>();
  const offers = new Map<TokenDigest, string>();
  const keyOf = (executionId: ExecutionId): string => keys.get(executionId) ?? '';

  async function open(
    executionId: ExecutionId,
    box: Sealed | null | undefined,
    secret: string,
  ): Promise<void> {
    if (!keys.has(executionId) && box) keys.set(executionId, await unseal(box, secret));
  }

  return {
    learnFrom({ call, executionId = call?.executionId, key }) {
      if (executionId && key) keys.set(executionId, key);
    },
    forget: (executionId) => keys.delete(executionId),
    keyOf,
    async offer(token) {
      const [digest, secret] = await Promise.all([digestOf(token), secretOf(token)]);
      offers.set(digest, secret);
      return digest;
    },
    withdrawOffer: (digest) => offers.delete(digest),
    async openWithToken(executionId, { digest, key }) {
      const secret = offers.get(digest);
      offers.delete(digest);
      if (secret !== undefined) await open(executionId, key, secret);
    },
    openWithTab: (execution, tabSecret) => open(execution.id, execution.call.tabKey, tabSecret),
    async sealAll(data) {
      for (const { value, executionId } of valuesIn(data)) {
        const key = keyOf(executionId);
        if (key && value.text !== undefined) value.sealed ??= await seal(JSON.stringify(value.text), key);
      }
    },
    async openAll(executionId, data) {
      const key = keyOf(executionId);
      for (const { value } of valuesIn(data)) {
        if (value.text === undefined && key && value.sealed) {
          value.text = JSON.parse(await unseal(value.sealed, key));
        }
      }
    },
  };
}

/** Can every value in `data` be read as it is? */
export function isReadable(data: unknown): boolean {
  return [...valuesIn(data)].every(({ value }) => value.text !== undefined);
}

/** A copy for a document: of its values, nothing but the texts. */
export function plainOf<T>(data: T): T {
  const copy = structuredClone(data);
  for (const { value } of valuesIn(copy)) {
    value.text ??= null;
    delete value.sealed;
  }
  return copy;
}

/** A copy for the database: of its values, everything but the texts. */
export function sealedOf<T>(data: T): T {
  const copy = structuredClone(data);
  for (const { value } of valuesIn(copy)) delete value.text;
  return copy;
}

/** The values in a piece of plain data, each with the id of the execution that it stands in. */
function* valuesIn(data: unknown, within = ''): Generator<{ value: Value; executionId: ExecutionId }> {
  if (typeof data !== 'object' || data === null || ArrayBuffer.isView(data)) return;
  const { executionId = within } = data as { executionId?: ExecutionId };
  if ('text' in data || 'sealed' in data) yield { value: data as Value, executionId };
  else for (const member of Object.values(data)) yield* valuesIn(member, executionId);
}
