/**
 * What the core is told, and what it wants done. Events are past tense and carry everything that a step may use: time,
 * ids and values come in with them. Effects are for the shell to perform, after the commit (I1).
 */
import type { ErrorRecord } from '../../shared/errors.ts';
import type { ActivationId, DocumentId, ExecutionId, GroupId, TokenDigest } from '../../shared/ids.ts';
import type {
  Announcement,
  Call,
  DocumentFacts,
  End,
  Ending,
  Grant,
  Reply,
  Value,
} from '../../shared/protocol.ts';
import type { ToolDefinition } from '../../shared/tool.ts';
import type { ConnectedDocument, Execution, State, Token } from './state.ts';

export type Event = { now: number } & Happening;

export type Happening =
  | { type: 'document-connected'; facts: DocumentFacts; clientId: string; announcement: Announcement }
  /** It said goodbye. */
  | { type: 'document-left'; documentId: DocumentId; lostCalls: Call[] }
  /** It is gone, without a word. */
  | { type: 'document-lost'; documentId: DocumentId }
  /** A navigation of it ended without a new document. */
  | { type: 'document-stayed'; documentId: DocumentId }
  | {
      type: 'tools-changed';
      documentId: DocumentId;
      tools: ToolDefinition[];
      readyFrom?: number;
      /** Readiness only. */
      quiet?: boolean;
    }
  | { type: 'execution-requested'; documentId: DocumentId; call: Call }
  | { type: 'cancel-requested'; executionId: ExecutionId }
  | ({ type: 'token-requested'; documentId: DocumentId } & Grant)
  | {
      type: 'token-presented';
      documentId: DocumentId;
      activationId: ActivationId;
      digest: TokenDigest;
    }
  | {
      type: 'activation-acknowledged';
      executionId: ExecutionId;
      activationId: ActivationId;
      refused: ErrorRecord | null;
    }
  | { type: 'activation-ended'; executionId: ExecutionId; activationId: ActivationId; end: End }
  | { type: 'outcome-delivered'; executionId: ExecutionId; documentId: DocumentId }
  | { type: 'outcomes-collected'; documentId: DocumentId }
  | {
      type: 'outcomes-awaited';
      documentId: DocumentId;
      executionIds: ExecutionId[];
      /** Of calls that went straight to their documents. */
      tabKey?: Call['tabKey'] | undefined;
    }
  | { type: 'time-passed' }
  /** Its memory is what storage had. */
  | { type: 'worker-started' };

/** Those with the name of a `DocumentPeer`'s method are commands to that document. */
export type Effect =
  | {
      type: 'activate';
      documentId: DocumentId;
      executionId: ExecutionId;
      activationId: ActivationId;
      call: Call;
      /** The one that was redeemed for it: it opens what is sealed. */
      token: Token | null;
      refuseAfter: number;
    }
  /** Nobody wants what the activation may still give. */
  | { type: 'drop'; documentId: DocumentId; activationId: ActivationId }
  | { type: 'settle'; documentId: DocumentId; executionId: ExecutionId; ending: Ending }
  | {
      type: 'deliverOutput';
      documentId: DocumentId;
      executionId: ExecutionId;
      activationId: ActivationId;
      value: Value;
    }
  /** Ask every client to say hello; then say whether this document did. */
  | { type: 'summon'; documentId: DocumentId }
  /** `quiet`: only for listings that wait. */
  | { type: 'announce-tools'; groupId: GroupId; quiet: boolean };

/** One change of the state. */
export type Change =
  | { type: 'put'; execution: Execution }
  | { type: 'remove'; execution: Execution }
  | { type: 'connect'; document: ConnectedDocument }
  | { type: 'disconnect'; documentId: DocumentId };

export interface Step {
  changes: Change[];
  effects: Effect[];
  reply: Reply<unknown>;
}

/** A step under way: the state, with the documents as they are after the event, and what is to come of it. */
export interface Turn extends State {
  readonly now: number;
  readonly documents: Map<DocumentId, ConnectedDocument>;
  readonly changes: Change[];
  readonly effects: Effect[];
}

type Command = Exclude<Effect, { type: 'summon' | 'announce-tools' }>;
type Unaddressed<T> = T extends Command ? Omit<T, 'documentId'> : never;

/** Who is not here is told nothing: a document learns what it missed when it connects (`recover`). */
export function tell(turn: Turn, documentId: DocumentId | null, command: Unaddressed<Command>): void {
  if (documentId !== null && turn.documents.has(documentId)) {
    turn.effects.push({ ...command, documentId } as Command);
  }
}
