/**
 * What pages and the worker say to each other: the whole protocol, and nothing else.
 *
 * Rules: a field may be added and unknown fields are ignored; anything else is a new version.
 * Every command may be repeated (I2): the ids in it say whether it has been seen before.
 * A page takes part by `hello`, which carries a port; all commands then travel over that port.
 */
import type { ErrorRecord, Reason } from './errors.ts';
import type {
  ActivationId,
  DocumentId,
  ExecutionId,
  Generation,
  GroupId,
  TabId,
  TokenDigest,
} from './ids.ts';
import type { Sealed } from './seal.ts';
import type { ToolDefinition, ToolOwner } from './tool.ts';

/** The versions that this code speaks, best first. */
export const PROTOCOL_VERSIONS: readonly number[] = [1];

/** All messages that are not on a relay's own port have a `type` that begins so; whatever else arrives is a site's own. */
const PREFIX = 'webmcp-relay:';
export const HELLO = `${PREFIX}hello`;
export const GOODBYE = `${PREFIX}goodbye`;
/** Worker → every client, from a worker that has just started and needs its documents: say hello. */
export const SUMMONS = `${PREFIX}summons`;

/** Name of the Web Lock that a worker holds for as long as it lives. */
export function lockName(generation: Generation): string {
  return `${PREFIX}${generation}`;
}

/** Who a document is. */
export interface DocumentFacts {
  documentId: DocumentId;
  tabId: TabId;
  groupId: GroupId;
  /** Is it the document of a top-level window? */
  top: boolean;
  url: string;
}

/** Page → worker. The message transfers the port of the connection. */
export interface Hello extends DocumentFacts {
  type: typeof HELLO;
  versions: readonly number[];
  /** Of this one hello: a goodbye names the one that it ends. */
  helloId: string;
  /** Is it to be told when tools of its group change? */
  listens: boolean;
  announcement: Announcement;
}

/** Everything that a worker without memory has to learn from a document (I4). */
export interface Announcement {
  tools: ToolDefinition[];
  /** From when on the document is ready, in milliseconds since the epoch: `Infinity` while a promise of it pends. */
  readyFrom?: number;
  /** No tools have changed since a worker was told of them. */
  quiet?: boolean;
  calls: AnnouncedCall[];
  activations: AnnouncedActivation[];
  resumptions: AnnouncedResumption[];
}

/** A call of this document that the worker has, and whose outcome it awaits from there. */
export interface AnnouncedCall {
  executionId: ExecutionId;
  key: string;
}

/** An activation of such a call that runs in this document, or whose end was not acknowledged. */
export interface AnnouncedActivation {
  activationId: ActivationId;
  executionId: ExecutionId;
  key: string;
  /** `false`: its first token is being asked for, and the worker may or may not have the call. */
  stored: boolean;
  end: End | null;
}

/** A redemption that was accepted and whose callback has not been told to run. */
export interface AnnouncedResumption {
  activationId: ActivationId;
  executionId: ExecutionId;
  /** Opens the input, once it is the callback's turn. */
  token: string;
}

/** Page → worker, while it leaves. */
export interface Goodbye {
  type: typeof GOODBYE;
  documentId: DocumentId;
  helloId: string;
  /** Calls that end with the page and that the worker never heard of. */
  lostCalls: Call[];
  /** Commands that were not acknowledged: the port may be slower than this message, or its worker dead. */
  commands: LastCommand[];
}

/** The commands that must not be lost with their page. */
export const LAST_COMMANDS = ['grant', 'reportEnd', 'cancel'] as const;

export interface LastCommand {
  method: (typeof LAST_COMMANDS)[number];
  argument: unknown;
}

/** The answer to a hello, by the new port. After `welcome` both ends send their commands over that port. */
export type HelloAnswer =
  | { type: 'welcome'; version: number; generation: Generation; tabId: TabId }
  | { type: 'refused'; error: ErrorRecord };

/**
 * An execution as its caller describes it. The first activation has the id of its execution, a resumed one that of its
 * redemption: who asks twice names the same thing twice.
 */
export interface Call {
  executionId: ExecutionId;
  callerDocumentId: DocumentId;
  callerTabId: TabId;
  groupId: GroupId;
  keepalive: boolean;
  /** The document that registered the tool. */
  documentId: DocumentId;
  registrationId: string;
  toolName: string;
  /** JSON text of an object. */
  input: Value;
  /** The execution's key, sealed by the secret of the caller's tab: lets a later document of the tab read what is stored. */
  tabKey: Sealed | null;
}

export interface KeyedCall {
  call: Call;
  /** The execution's key, base64url: seals what is stored of it, and is itself never stored. */
  key: string;
}

/** A request to store a continuation token. The token itself stays in its page. */
export interface Grant {
  activationId: ActivationId;
  executionId: ExecutionId;
  /** `null` if the worker has it. */
  call: Call | null;
  key: string;
  digest: TokenDigest;
  /** The execution's key, sealed by the token. */
  tokenKey: Sealed;
  /** Milliseconds. */
  lifetime: number;
}

export interface Redemption {
  activationId: ActivationId;
  token: string;
}

/**
 * A private text. On the wire and in memory it has `text` (`null` where a tool returned `undefined`); in the database only
 * `sealed`.
 */
export interface Value {
  text?: string | null;
  sealed?: Sealed;
}

/** How a callback ended. */
export type End =
  | { type: 'returned'; value: Value }
  /**
   * `error` is an ErrorRecord as JSON; its reason stands beside it. `leaving`: the document is on its way out, so the throw
   * may be no more than a fetch cut short. `started: false`: the callback was not run after all.
   */
  | { type: 'threw'; error: Value; reason: Reason; leaving: boolean; started?: boolean };

export interface EndReport {
  activationId: ActivationId;
  executionId: ExecutionId;
  key: string;
  end: End;
}

/** How an execution ended. `detail` is an ErrorRecord as JSON where a tool's own error is part of it. */
export type Ending =
  | { type: 'result'; value: Value }
  | { type: 'failed'; reason: Reason; started: boolean; detail: Value | null };

export type Reply<T = undefined> = { ok: true; value: T } | { ok: false; error: ErrorRecord };

/** The document that collects it is now the one to bring its key along. */
export interface PendingExecution extends KeyedCall {
  outputs: Output[];
}

/** What an activation gave that was granted a token. */
export interface Output {
  activationId: ActivationId;
  value: Value;
}

/** The worker's face. Every method answers within a bound; outcomes come later, as commands to the page (I8). */
export interface Coordinator {
  /** Of a call that is to outlive its caller; any other goes straight to its document. */
  execute(command: KeyedCall): Promise<Reply>;
  cancel(request: { executionId: ExecutionId }): Promise<Reply>;
  grant(grant: Grant): Promise<Reply>;
  redeem(redemption: Redemption): Promise<Reply<{ executionId: ExecutionId }>>;
  reportEnd(report: EndReport): Promise<Reply>;
  /** A navigation of the document ended without a new document. */
  reportStay(nothing: object): Promise<Reply>;
  /** `quiet`: the tools are the same. */
  announceTools(announcement: {
    tools: ToolDefinition[];
    readyFrom?: number;
    quiet?: boolean;
  }): Promise<Reply>;
  /** Puts a port through to another document of the group, which is told to `meet` by its other end. */
  introduce(request: { documentId: DocumentId }): Promise<Reply<MessagePort>>;
  listTools(nothing: object): Promise<Reply<ToolOwner[]>>;
  collect(request: { tabSecret: string }): Promise<Reply<PendingExecution[]>>;
  /** The document is ready to take the outputs and outcomes of what it collected. */
  awaitOutcomes(request: {
    executionIds: ExecutionId[];
    tabKey?: Call['tabKey'] | undefined;
  }): Promise<Reply>;
  watch(request: { on: boolean }): Promise<Reply>;
}

/** A command to run a callback. */
export interface Activate extends KeyedCall {
  activationId: ActivationId;
  /** Milliseconds since the epoch; a document that reads the command later refuses it. */
  refuseAfter: number;
}

/** Why the document will not run it; `null` if it does. `started`: it did once, and that is over. */
export type Acknowledgement = ErrorRecord | null;

/** A page's face. */
export interface DocumentPeer {
  activate(command: Activate): Acknowledgement;
  /** Nobody wants what it may still give: a waiting resumption will not run, a running callback is aborted, an end is forgotten. */
  drop(command: { activationId: ActivationId }): void;
  /** Acknowledged once the caller has it. */
  settle(command: { executionId: ExecutionId; ending: Ending }): void;
  deliverOutput(command: { executionId: ExecutionId } & Output): void;
  /** Another document of the group has the other end. */
  meet(introduction: { port: MessagePort }): void;
  /** `quiet`: readiness only, which concerns a listing that waits. */
  toolsChanged(quiet?: boolean): void;
  observe(snapshot: Snapshot): void;
  ping(): true;
}

/** A face as the other side sees it. */
export type Remote<Face> = {
  [Method in keyof Face]: Face[Method] extends (...args: infer Arguments) => infer Result
    ? (...args: Arguments) => Promise<Awaited<Result>>
    : never;
};

/** What `relay.watch` shows. It holds no input, no result, no token. */
export interface Snapshot {
  generation: Generation;
  /** Milliseconds since the epoch, by the worker's clock. */
  now: number;
  documents: (DocumentFacts & { tools: string[] })[];
  executions: {
    id: ExecutionId;
    toolName: string;
    state: 'open' | 'settled';
    callerDocumentId: DocumentId | null;
    activations: { id: ActivationId; documentId: DocumentId; state: string }[];
    tokens: { state: string; deadline: number | null }[];
    /** `null` while open, then `'result'` or the reason of the failure. */
    outcome: 'result' | Reason | null;
  }[];
}
