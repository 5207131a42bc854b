/** What a tool's callback gets, and how it asks for a continuation token (continuations explainer, Token Creation). */
import { DEFAULT_LIFETIME, LONGEST_LIFETIME } from '../shared/bounds.ts';
import type { Reply } from '../shared/protocol.ts';
import { check } from './check.ts';
import { relayError } from './errors.ts';
import { checkOurs } from './interfaces.ts';

export interface TokenRequestOptions {
  /** How long the token lives, in milliseconds: up to one hour, 60,000 if omitted. */
  lifetime?: number;
}

export interface ToolExecuteCallbackOptions {
  /** Aborts when the execution is cancelled or the document goes away. */
  signal: AbortSignal;
  invocation: ModelContextToolInvocation;
}

// biome-ignore lint/suspicious/noExplicitAny: the specification's `object` in, `any` out
export type ToolExecuteCallback = (input: any, options: ToolExecuteCallbackOptions) => unknown;

/** One activation, as its callback sees it. */
export class ModelContextToolInvocation {
  readonly #request: (lifetime: number) => Promise<Reply<string>>;

  /** @internal */
  constructor(...[key, request]: [key?: unknown, request?: (lifetime: number) => Promise<Reply<string>>]) {
    checkOurs(key);
    this.#request = request as never;
  }

  /**
   * Asks for a continuation token: 256 random bits, base64url. Resolves once it is committed to storage, so a page may
   * navigate the moment it has it. From then on what the callback returns is an output, not the answer.
   *
   * Rejects with `InvalidStateError` (`not-running`) once the callback has settled or its document went away; with
   * `storage-unavailable`, `storage-full`, `too-many`, or whatever keeps the worker from serving this document; with a
   * `TypeError` if `lifetime` is not a number of milliseconds between 1 and 3,600,000.
   */
  async requestToken(options: TokenRequestOptions = {}): Promise<string> {
    const lifetime = Number(options?.lifetime ?? DEFAULT_LIFETIME);
    check(lifetime >= 1 && lifetime <= LONGEST_LIFETIME, `lifetime must be 1 to ${LONGEST_LIFETIME} ms.`);
    const reply = await this.#request(lifetime);
    // Its callback runs: whoever gets this error as a tool's cause must not take it for a safe retry.
    if (!reply.ok) throw relayError({ ...reply.error, started: true });
    return reply.value;
  }
}
