/**
 * `document.modelContext`: the specification's interface, with the proposals' members and our own.
 *
 * Owns: reading arguments as Web IDL does, the order of the methods' steps, what a listing looks like. What the methods
 * promise is decided in `client/relay`.
 */
import type { ToolAnnotations, ToolOwner } from '../shared/tool.ts';
import type { OutputListener, PendingExecutionHandle } from './calls.ts';
import { check, checkObject } from './check.ts';
import { relayFailure } from './errors.ts';
import type { ToolExecuteCallback } from './invocation.ts';
import type { Observed, Sight } from './readiness.ts';
import { createRelay, type Relay, type RelayOptions, type RelayStatus, type Target } from './relay.ts';
import { withoutToken } from './token.ts';
import type { ModelContextTool } from './tools.ts';
import { inputText } from './values.ts';
import { isOneArriving, type Neighbour, neighbourOf, neighbours } from './window-tree.ts';

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
  /** How long to wait for documents to be ready, in milliseconds. Default: the readiness bound. */
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

/** A document as `observe()` shows it. */
export interface ObservedDocument {
  documentId: string;
  tabId: string;
  url: string;
  origin: string;
  ready: boolean;
  tools: RegisteredTool[];
}

export type Observation = Observed<ObservedDocument>;

/** Whose tools a listing shows; `window` as in its entries. */
type Owner = ToolOwner & Pick<RegisteredTool, 'window'>;

type EventHandler = ((event: Event) => unknown) | null;

export class ModelContext extends EventTarget {
  readonly #relay: Relay;
  readonly #handlers = new Map<string, (event: Event) => unknown>();
  readonly #callHandler = (event: Event): unknown => this.#handlers.get(event.type)?.call(this, event);
  declare ontoolchange: EventHandler;
  declare ontoolactivated: EventHandler;
  declare ontoolcancel: EventHandler;
  /** Does the worker serve this document? */
  readonly relay: RelayStatus;

  /** @internal */
  constructor(options: RelayOptions) {
    super();
    this.#relay = createRelay(options, (event) => this.dispatchEvent(event));
    this.relay = this.#relay.status;
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
    return this.#relay.registerTool(tool, signal);
  }

  /**
   * Lists tools, sorted by name (WebMCP, getTools), once the documents in scope are ready or the time is up. Every entry names
   * its registration: a call that is made with it runs that registration or none.
   *
   * Rejects with `inactive-document`; for `scope: 'group'` with whatever keeps the worker from serving this document.
   */
  async getTools(options: GetToolsOptions = {}): Promise<RegisteredTool[]> {
    const { state, documents } = await this.observe(options);
    if (state === 'gone') throw relayFailure('inactive-document');
    return documents
      .flatMap(({ tools }) => tools)
      .sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  }

  /**
   * A snapshot of the documents in scope and their tools, once all are ready or the time is up; `gone` at once if this document
   * leaves while it waits. Rejects as `getTools()` does.
   */
  observe({ scope = 'traversable', readyTimeout }: GetToolsOptions = {}): Promise<Observation> {
    return this.#relay.readiness.observe(() => this.#look(scope), readyTimeout);
  }

  /** The tools of this document are about to change until the promise has settled. */
  waitForToolsUntil(promise: PromiseLike<unknown>): void {
    this.#requireActive();
    this.#relay.readiness.waitUntil(promise);
  }

  /** Settled unless a promise of this tab pends; another one each time that readiness is lost. */
  get toolsReady(): Promise<void> {
    return this.#relay.readiness.toolsReady();
  }

  async #look(scope: Scope): Promise<Sight<ObservedDocument>> {
    this.#requireActive();
    check(SCOPES.includes(scope), `There is no scope ${scope}.`);
    const forGroup = scope === 'group';
    const listed = forGroup ? await this.#relay.listGroup() : [];
    const here = scope === 'document' ? [neighbourOf(window) as Neighbour] : neighbours();
    const owners = here.map<Owner>(({ identity, tools, window, readyFrom }) => ({
      ...identity(),
      url: withoutToken(window.location.href),
      ready: Date.now() >= readyFrom(),
      tools: tools(),
      window,
    }));
    for (const owner of listed) {
      if (owners.every(({ documentId }) => documentId !== owner.documentId))
        owners.push({ ...owner, window: null });
    }
    return {
      documents: owners.map((owner) => documentOf(owner, forGroup)),
      ready: owners.every(({ ready }) => ready) && !(scope !== 'document' && isOneArriving()),
    };
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
    check(
      typeof tool?.name === 'string' && typeof tool.origin === 'string',
      'The tool must be a listed one.',
    );
    requireOrigin(tool);
    const text = inputText(input);
    const { keepalive, onoutput } = options;
    const signal = signalOf(options);
    return this.#relay.execute(targetOf(tool), text, { signal, keepalive: !!keepalive, onoutput });
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
    check(typeof callback === 'function', 'The callback must be a function.');
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
          return this.#handlers.get(type) ?? null;
        },
        set(this: ModelContext, value: unknown) {
          if (typeof value === 'function') {
            this.#handlers.set(type, value as () => unknown);
            this.addEventListener(type, this.#callHandler);
          } else {
            this.#handlers.delete(type);
            this.removeEventListener(type, this.#callHandler);
          }
        },
        configurable: true,
        enumerable: true,
      });
    }
  }

  #requireActive(): void {
    if (!this.#relay.isActive()) throw relayFailure('inactive-document');
  }
}

/** The signal among the options, which must be one: a wrong one would leave a tool or a call behind. */
function signalOf(options: { signal?: AbortSignal }): AbortSignal | undefined {
  checkObject(options, 'The options');
  const { signal } = options;
  // Of anything else this is a TypeError too.
  if (signal !== undefined) signal.throwIfAborted();
  return signal;
}

function documentOf(owner: Owner, forGroup: boolean): ObservedDocument {
  const { documentId, tabId, url, ready, window, tools } = owner;
  const entries = tools.map(({ inputSchema, annotations, ...named }) => ({
    ...named,
    ...(inputSchema && { inputSchema: JSON.parse(inputSchema) as object }),
    ...(annotations && { annotations: { ...annotations } }),
    origin: OWN_ORIGIN,
    documentId,
    window,
    ...(forGroup && { tabId }),
  }));
  return { documentId, tabId, url, origin: OWN_ORIGIN, ready, tools: entries };
}

/** Where a call with this entry goes. */
function targetOf({ documentId, registrationId, name: toolName, tabId, window }: RegisteredTool): Target {
  const isMeant = (candidate: Neighbour): boolean =>
    documentId ? candidate.identity().documentId === documentId : candidate.window === window;
  const neighbour = neighbours().find(isMeant) ?? null;
  // An entry made by hand names its tool alone.
  const named = registrationId ?? neighbour?.tools().find(({ name }) => name === toolName)?.registrationId;
  const owner = neighbour?.identity().documentId ?? (tabId && documentId);
  if (!named || !owner) throw relayFailure('tool-unavailable');
  return { documentId: owner, registrationId: named, toolName, neighbour };
}

const OWN_ORIGIN = location.origin;

function requireOrigin({ origin }: RegisteredTool): void {
  if (origin === OWN_ORIGIN) return;
  const parsed = URL.canParse(origin) ? new URL(origin).origin : 'null';
  if (parsed === 'null') throw relayFailure('opaque-origin');
  if (parsed !== OWN_ORIGIN) throw relayFailure('tool-unavailable');
}
