/**
 * `document.modelContext`: the specification's interface, with the proposals' members and our own.
 *
 * Owns: reading arguments as Web IDL does, the order of the methods' steps, what a listing looks like. What the methods
 * promise is decided in `client/relay`.
 */
import type { ToolAnnotations, ToolDefinition } from '../shared/tool.ts';
import type { OutputListener, PendingExecutionHandle } from './calls.ts';
import { relayFailure } from './errors.ts';
import { ToolActivatedEvent, ToolCancelEvent, ToolChangeEvent } from './events.ts';
import type { ToolExecuteCallback } from './invocation.ts';
import { createRelay, type Relay, type RelayOptions, type RelayStatus, type Target } from './relay.ts';
import { within } from './task.ts';
import type { ModelContextTool } from './tools.ts';
import { inputText } from './values.ts';
import { type Neighbour, neighbours } from './window-tree.ts';

const SCOPES = ['traversable', 'group', 'document'] as const;
export type Scope = (typeof SCOPES)[number];

export interface RegisterToolOptions {
  /** Unregisters the tool when it aborts. */
  signal?: AbortSignal;
  /** Origins, beside this one, that may see and call the tool. */
  exposedTo?: string[];
}

export interface GetToolsOptions {
  /** Default `'traversable'`: this tab and its frames. `'group'` needs the worker. */
  scope?: Scope;
  /** Milliseconds. */
  readyTimeout?: number;
}

export interface ExecuteToolOptions {
  /** Cancels the execution when it aborts; the call rejects with its reason. */
  signal?: AbortSignal;
  /** Let the execution live on when this document goes away. */
  keepalive?: boolean;
  /** Called with the text of each output, in order, before the result. */
  onoutput?: OutputListener;
}

/** WebMCP, dictionary RegisteredTool, and what tells equal names apart. */
export interface RegisteredTool {
  name: string;
  title: string;
  description: string;
  inputSchema?: object;
  annotations?: ToolAnnotations;
  origin: string;
  /** `null` when the document is in another tab. */
  window: Window | null;
  documentId: string;
  registrationId: string;
  /** Given when listed for the group: only such an entry reaches another tab. */
  tabId?: string;
}

type EventHandler = ((event: Event) => unknown) | null;

interface HandlerEntry {
  handler: EventHandler;
  listener(event: Event): unknown;
}

/** A document is waited for until it is parsed, but no longer than this, in milliseconds. */
const PARSING_BOUND = 1_000;

export class ModelContext extends EventTarget {
  readonly #relay: Relay;
  readonly #handlers = new Map<string, HandlerEntry>();
  declare ontoolchange: EventHandler;
  declare ontoolactivated: EventHandler;
  declare ontoolcancel: EventHandler;
  /** Does the worker serve this document? */
  readonly relay: RelayStatus;

  /** @internal */
  constructor(options: RelayOptions) {
    super();
    const relay = createRelay(options, (type, toolName) => this.dispatchEvent(createEvent(type, toolName)));
    this.#relay = relay;
    this.relay = relay.status;
  }

  /**
   * Registers a tool of this document (WebMCP, registerTool). Resolves once `toolchange` has fired in this tab; never waits
   * for the worker.
   *
   * Rejects with `InvalidStateError` (`duplicate-name`, `invalid-tool`, `inactive-document`), `QuotaExceededError`
   * (`too-large`, `too-many`), a `TypeError` for a missing or mistyped member, or the reason of an aborted signal.
   */
  async registerTool(tool: ModelContextTool, options: RegisterToolOptions = {}): Promise<void> {
    this.#requireActive();
    const signal = signalOf(options);
    if (signal?.aborted) throw signal.reason;
    const { unregister, changed } = this.#relay.registerTool(tool);
    if (signal === undefined) return changed;
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        unregister();
        reject(signal.reason);
      };
      signal.addEventListener('abort', abort, { once: true });
      changed.then(resolve);
    });
  }

  /**
   * Lists tools, sorted by name (WebMCP, getTools). Every entry names its registration: a call that is made with it runs
   * that registration or none.
   *
   * Rejects with `inactive-document`; for `scope: 'group'` with whatever keeps the worker from serving this document.
   */
  async getTools({ scope = 'traversable', readyTimeout }: GetToolsOptions = {}): Promise<RegisteredTool[]> {
    this.#requireActive();
    if (!SCOPES.includes(scope)) throw new TypeError(`There is no scope ${scope}.`);
    const own = this.#relay.identity.documentId;
    const here = neighbours().filter(
      (neighbour) => scope !== 'document' || neighbour.identity().documentId === own,
    );
    const parsed = Promise.all(here.map((neighbour) => neighbour.parsed()));
    await within(Math.min(readyTimeout ?? PARSING_BOUND, PARSING_BOUND), parsed);
    const listed = here.flatMap((neighbour) => entriesOf(neighbour, scope === 'group'));
    if (scope === 'group') listed.push(...(await this.#listElsewhere(here)));
    return listed.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  async #listElsewhere(here: readonly Neighbour[]): Promise<RegisteredTool[]> {
    const known = new Set(here.map((neighbour) => neighbour.identity().documentId));
    const owners = await this.#relay.listGroup();
    return owners
      .filter(({ documentId }) => !known.has(documentId))
      .flatMap(({ documentId, tabId, tools }) =>
        tools.map((tool) => entryOf(tool, { documentId, tabId, window: null })),
      );
  }

  /**
   * Runs a listed tool and resolves with the text of its final result: a string as itself, anything else as JSON, `null`
   * for `undefined` (WebMCP, executeTool; `semantics.md`, Values). A tool that asks for continuation tokens gives outputs,
   * and its result is the last answer of the chain, whatever pages that takes.
   *
   * Rejects with the signal's reason, a `TypeError` for an input that is not an object, or a RelayError.
   */
  async executeTool(
    tool: RegisteredTool,
    input?: object | string,
    options: ExecuteToolOptions = {},
  ): Promise<string | null> {
    this.#requireActive();
    if (typeof tool?.name !== 'string' || typeof tool.origin !== 'string') {
      throw new TypeError('The tool must be one that was listed.');
    }
    requireOrigin(tool);
    const text = inputText(input);
    const signal = signalOf(options);
    const { keepalive = false, onoutput } = options;
    if (signal?.aborted) throw signal.reason;
    const target = targetOf(tool);
    if (target === null) throw relayFailure('tool-unavailable');
    return this.#relay.execute(target, text, { signal, keepalive: Boolean(keepalive), onoutput });
  }

  /**
   * Redeems a continuation token (continuations explainer, Token Redemption). Resolves when it is accepted; `callback` runs
   * later, with the original input, once the activation that issued the token is over.
   *
   * Rejects with `token-unknown`, `token-redeemed`, `token-expired`, `token-void`, `other-group`, `inactive-document`, or
   * whatever keeps the worker from serving this document.
   */
  async resumeTool(token: string, callback: ToolExecuteCallback): Promise<void> {
    const text = `${token}`;
    if (typeof callback !== 'function') throw new TypeError('The callback must be a function.');
    this.#requireActive();
    return this.#relay.resumeTool(text, callback);
  }

  /**
   * The executions of this tab that lost their caller; this document becomes their caller. First come, first served.
   * Rejects with whatever keeps the worker from serving this document.
   */
  async getPendingExecutions(): Promise<PendingExecutionHandle[]> {
    this.#requireActive();
    return this.#relay.getPendingExecutions();
  }

  /** An event handler attribute keeps the place in the order that it got when it was first set. */
  static {
    for (const type of ['toolchange', 'toolactivated', 'toolcancel']) {
      Object.defineProperty(ModelContext.prototype, `on${type}`, {
        get(this: ModelContext) {
          return this.#handlers.get(type)?.handler ?? null;
        },
        set(this: ModelContext, value: unknown) {
          this.#setHandler(type, typeof value === 'function' ? (value as EventHandler) : null);
        },
        configurable: true,
        enumerable: true,
      });
    }
  }

  #setHandler(type: string, handler: EventHandler): void {
    const known = this.#handlers.get(type);
    const entry: HandlerEntry = known ?? { handler, listener: (event) => entry.handler?.call(this, event) };
    entry.handler = handler;
    this.#handlers.set(type, entry);
    if (handler === null) this.removeEventListener(type, entry.listener);
    else this.addEventListener(type, entry.listener);
  }

  #requireActive(): void {
    if (!this.#relay.isActive()) throw relayFailure('inactive-document');
  }
}

/** The signal among the options, which must be one: a wrong one would leave a tool or a call behind. */
function signalOf(options: { signal?: AbortSignal }): AbortSignal | undefined {
  if (typeof options !== 'object' || options === null) throw new TypeError('The options must be an object.');
  const { signal } = options;
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function') {
    throw new TypeError('signal must be an AbortSignal.');
  }
  return signal;
}

function createEvent(type: 'toolchange' | 'toolactivated' | 'toolcancel', toolName: string): Event {
  if (type === 'toolchange') return new ToolChangeEvent(type);
  return type === 'toolactivated'
    ? new ToolActivatedEvent(type, { toolName })
    : new ToolCancelEvent(type, { toolName });
}

function entriesOf(neighbour: Neighbour, forGroup: boolean): RegisteredTool[] {
  const { documentId, tabId } = neighbour.identity();
  const place = { documentId, window: neighbour.window, ...(forGroup && { tabId }) };
  return neighbour.tools().map((tool) => entryOf(tool, place));
}

function entryOf(
  tool: ToolDefinition,
  place: Pick<RegisteredTool, 'documentId' | 'window' | 'tabId'>,
): RegisteredTool {
  const { inputSchema, annotations, ...named } = tool;
  return {
    ...named,
    ...(inputSchema && { inputSchema: JSON.parse(inputSchema) as object }),
    ...(annotations && { annotations: { ...annotations } }),
    origin: OWN_ORIGIN,
    ...place,
  };
}

/** Where a call with this entry goes; `null` if nowhere. */
function targetOf(tool: RegisteredTool): Target | null {
  const { documentId, registrationId, name: toolName, tabId } = tool;
  const isMeant = (candidate: Neighbour): boolean =>
    documentId ? candidate.identity().documentId === documentId : candidate.window === tool.window;
  const neighbour = neighbours().find(isMeant) ?? null;
  if (neighbour === null)
    return tabId && documentId ? { documentId, registrationId, toolName, neighbour } : null;
  // An entry made by hand names its tool alone.
  const named = registrationId ?? neighbour.tools().find(({ name }) => name === toolName)?.registrationId;
  if (named === undefined) return null;
  return { documentId: neighbour.identity().documentId, registrationId: named, toolName, neighbour };
}

const OWN_ORIGIN = location.origin;

function requireOrigin({ origin }: RegisteredTool): void {
  if (origin === OWN_ORIGIN) return;
  const parsed = URL.canParse(origin) ? new URL(origin).origin : 'null';
  if (parsed === 'null') throw relayFailure('opaque-origin');
  if (parsed !== OWN_ORIGIN) throw relayFailure('tool-unavailable');
}
