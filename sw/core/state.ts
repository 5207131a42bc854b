/**
 * What the coordinator knows. Plain data: a record here is what is stored, word for word, but for the plain text of values.
 *
 * Kept: I4, nothing that correctness needs lives here alone. `executions` that are `stored` are in the database; documents
 * announce themselves again; what is left of calls that ended with their page may be forgotten.
 */
import type { Bounds, Sizes } from '../../shared/bounds.ts';
import type { Reason } from '../../shared/errors.ts';
import type { ActivationId, DocumentId, ExecutionId, Generation, TokenDigest } from '../../shared/ids.ts';
import type { Call, DocumentFacts, End, Ending, Output, Value } from '../../shared/protocol.ts';
import type { Sealed } from '../../shared/seal.ts';
import type { ToolDefinition } from '../../shared/tool.ts';

export interface State {
  readonly generation: Generation;
  readonly bounds: Readonly<Bounds>;
  readonly sizes: Readonly<Sizes>;
  /** Documents that said hello to this generation and have not gone since. */
  readonly documents: ReadonlyMap<DocumentId, ConnectedDocument>;
  readonly executions: ReadonlyMap<ExecutionId, Execution>;
}

export interface ConnectedDocument extends DocumentFacts {
  /** The browser's id of it, as `clients.matchAll` has it. */
  clientId: string;
  tools: ToolDefinition[];
  /** Milliseconds since the epoch; `Infinity` while a promise of it pends. */
  readyFrom?: number | undefined;
}

export type ActivationState =
  /** Not told to run: its document is awaited, or the activation that issued its token still runs. */
  | 'waiting'
  /** Told to run, not acknowledged: counts as started. */
  | 'commanded'
  | 'running'
  | 'returned'
  | 'threw'
  /** Threw while its document was leaving; whether that counts is not known yet. */
  | 'held'
  /** A held throw that a redemption made void. */
  | 'discarded'
  /** Its document went away, or its execution settled without it. */
  | 'lost'
  /** Never ran and never will. */
  | 'withdrawn';

export interface Activation {
  readonly id: ActivationId;
  readonly documentId: DocumentId;
  state: ActivationState;
  /** The token that it redeemed; `null` for an execution's first activation. */
  readonly resumes: TokenDigest | null;
  /** Could it have begun under a command whose fate is not known (an earlier generation's, a repeated one)? */
  mayHaveBegun: boolean;
  /** When it was last heard of: milliseconds since the epoch. */
  heardAt: number;
  /** Until when its document may begin it, once commanded. */
  refuseAfter: number;
  /** What a held activation threw, if it counts. */
  held: Extract<End, { type: 'threw' }> | null;
}

export type TokenState = 'outstanding' | 'redeemed' | 'expired' | 'void';

export interface Token {
  readonly digest: TokenDigest;
  state: TokenState;
  /** The execution's key, sealed by the token; gone once it cannot be redeemed. */
  key: Sealed | null;
  readonly issuer: ActivationId;
  /** Milliseconds. */
  readonly lifetime: number;
  /** Milliseconds since the epoch; `null` while the issuing activation runs and the execution is open. */
  deadline: number | null;
}

export interface Settlement {
  /** `null` once delivered: what is left is how its tokens ended. */
  ending: Ending | null;
  /** What `ending` was, for whoever watches. */
  readonly as: 'result' | Reason;
  /** Until when an outcome that nobody has collected is kept; of a delivered one, what is left. */
  keepUntil: number;
}

export interface Execution {
  readonly id: ExecutionId;
  /** Counts stored versions, so that a newer one is recognised. */
  revision: number;
  /** Is it in the database, or on its way there? Not what is left of a call that ended with its page. */
  stored: boolean;
  /** As its first caller described it; empty of what is private once it is delivered. */
  call: Call;
  /** `null`: it lost its caller, and waits to be collected in the caller's tab. */
  callerDocumentId: DocumentId | null;
  /** Its documents as they were last seen connected: a new worker has not met them. */
  met: Map<DocumentId, Pick<ConnectedDocument, 'clientId' | 'tabId'>>;
  /** In the order in which they were asked for. */
  activations: Activation[];
  tokens: Token[];
  outputs: Output[];
  /** The latest answer. */
  answer: Value | null;
  settled: Settlement | null;
}
