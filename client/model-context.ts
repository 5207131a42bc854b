/**
 * `document.modelContext`: the specification's interface, with the proposals' members and our own.
 *
 * Owns: reading arguments as Web IDL does, the order of the methods' steps, what a listing looks like. What the methods
 * promise is decided in `client/relay`.
 */
import type { ToolAnnotations, ToolOwner } from '../shared/tool.ts';
import type { OutputListener } from './calls.ts';
import { asGiven, asSignal, check, checkObject, converted, given, required, texts } from './check.ts';
import { relayFailure } from './errors.ts';
import type { ToolActivatedEvent, ToolCancelEvent, ToolChangeEvent } from './events.ts';
import { checkOurs } from './interfaces.ts';
import type { ToolExecuteCallback } from './invocation.ts';
import { isFullyActive } from './lifetime.ts';
import { checkTrustworthy, MAY_CHANGE_ORIGIN, OWN_ORIGIN, originOf } from './origins.ts';
import type { PendingExecutionHandle } from './pending.ts';
import type { Observed, Sight } from './readiness.ts';
import { createRelay, type Relay, type RelayOptions, type RelayStatus, type Target } from './relay.ts';
import { withoutToken } from './token.ts';
import { type ModelContextTool, TOOL_MEMBERS, toolOf } from './tools.ts';
import { inputText } from './values.ts';
import { isOneArriving, type Neighbour, neighbourOf, neighbours } from './window-tree.ts';

const SCOPES = ['traversable', 'group', 'document'] as const;
export type Scope = (typeof SCOPES)[number];

/** WebMCP, dictionary of that name. */
export interface ModelContextRegisterToolOptions {
  /** Unregisters the tool when it aborts. */
  signal?: AbortSignal;
  /** Origins, beside this one, that may see and call the tool. */
  exposedTo?: string[];
}

/** WebMCP, dictionary of that name, with our members. */
export interface ModelContextGetToolOptions {
  /** Origins, beside this one, whose tools are wanted. */
  fromOrigins?: string[];
  /** Default `'traversable'`: this tab and its frames. `'group'` needs the worker. */
  scope?: Scope;
  /** How long to wait for documents to be ready, in milliseconds. Default: the readiness bound. */
  readyTimeout?: number;
}

/** WebMCP, dictionary of that name, with our members. */
export interface ModelContextExecuteToolOptions {
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

type EventHandler<SomeEvent extends Event> = ((this: ModelContext, event: SomeEvent) => unknown) | null;

/** What a document has that was never shown in a window. */
const INACTIVE = {
  isActive: () => false,
  status: { state: 'alone', reason: 'inactive-document', ready: Promise.resolve(), watch() {} },
  readiness: { toolsReady: () => Promise.resolve() },
} as unknown as Relay;

export class ModelContext extends EventTarget {
  readonly #relay: Relay;
  readonly #handlers = new Map<string, object | null>();
  readonly #callHandler = (event: Event): void => {
    const handler = this.#handlers.get(event.type);
    if (typeof handler === 'function' && handler.call(this, event) === false) event.preventDefault();
  };
  declare ontoolchange: EventHandler<ToolChangeEvent>;
  declare ontoolactivated: EventHandler<ToolActivatedEvent>;
  declare ontoolcancel: EventHandler<ToolCancelEvent>;

  /** @internal */
  constructor(...[key, options]: [key?: unknown, options?: RelayOptions]) {
    checkOurs(key);
    super();
    const fire = (event: Event): unknown => isFullyActive() && this.dispatchEvent(event);
    this.#relay = options ? createRelay(options, fire) : INACTIVE;
  }

  /** Does the worker serve this document? */
  get relay(): RelayStatus {
    return this.#relay.status;
  }

  /**
   * Registers a tool of this document (WebMCP, registerTool). Resolves once `toolchange` has fired in this tab, at once
   * where that is held back; never waits for the worker.
   *
   * Rejects with `InvalidStateError` (`duplicate-name`, `invalid-tool`, `inactive-document`), `QuotaExceededError`
   * (`too-large`, `too-many`), `SecurityError` (`invalid-origin`), a `TypeError` for a missing or mistyped member, or the
   * reason of an aborted signal.
   */
  async registerTool(tool: ModelContextTool, options: ModelContextRegisterToolOptions = {}): Promise<void> {
    const draft = toolOf(tool);
    const { exposedTo, signal } = converted<ModelContextRegisterToolOptions & { exposedTo: string[] }>(
      options,
      { exposedTo: texts, signal: asSignal },
    );
    return this.#active().registerTool(draft, signal, () => {
      signal?.throwIfAborted();
      checkTrustworthy(exposedTo);
    });
  }

  /**
   * Lists tools, sorted by name (WebMCP, getTools), once the documents in scope are ready or the time is up. Every entry names
   * its registration: a call that is made with it runs that registration or none.
   *
   * Rejects with `inactive-document`, `invalid-origin`; for `scope: 'group'` with whatever keeps the worker from serving this
   * document.
   */
  async getTools(options: ModelContextGetToolOptions = {}): Promise<RegisteredTool[]> {
    const { state, documents } = await this.#observe(options);
    if (state === 'gone') throw relayFailure('inactive-document');
    return documents
      .flatMap(({ tools }) => tools)
      .sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  }

  /**
   * A snapshot of the documents in scope and their tools, once all are ready or the time is up; `gone` at once if this document
   * leaves while it waits. Rejects as `getTools()` does.
   */
  observe(options: ModelContextGetToolOptions = {}): Promise<Observation> {
    // Not `async`: a document that is destroyed while it waits runs no reaction of its own, and yet is `gone`.
    try {
      return this.#observe(options);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }

  /** The tools of this document are about to change until the promise has settled. */
  waitForToolsUntil(promise: PromiseLike<unknown>): void {
    this.#active().readiness.waitUntil(promise);
  }

  /** Settled unless a promise of this tab pends; another one each time that readiness is lost. */
  get toolsReady(): Promise<void> {
    return this.#relay.readiness.toolsReady();
  }

  #observe(options: ModelContextGetToolOptions): Promise<Observation> {
    const { fromOrigins, readyTimeout, scope } = converted<
      ModelContextGetToolOptions & { fromOrigins: string[]; scope: Scope }
    >(options, {
      fromOrigins: texts,
      readyTimeout: asGiven,
      scope(value: Scope = 'traversable') {
        check(SCOPES.includes(value), `There is no scope ${value}.`);
        return value;
      },
    });
    const relay = this.#active();
    checkTrustworthy(fromOrigins);
    return relay.readiness.observe(() => this.#look(scope), readyTimeout);
  }

  async #look(scope: Scope): Promise<Sight<ObservedDocument>> {
    const relay = this.#active();
    const forGroup = scope === 'group';
    const listed = forGroup ? await relay.listGroup() : [];
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
   * for `undefined` (WebMCP, executeTool; README, Values). A tool that asks for continuation tokens gives outputs,
   * and its result is the last answer of the chain, whatever pages that takes.
   *
   * Rejects with the signal's reason, a `TypeError` for an entry that lacks a required member (`name`, `description`, `origin`,
   * `window`) or an input that is not an object, or a RelayError.
   */
  async executeTool(
    tool: RegisteredTool,
    input: object | string = {},
    options: ModelContextExecuteToolOptions = {},
  ): Promise<string | null> {
    const entry = entryOf(tool);
    if (typeof input !== 'string') checkObject(input, 'The input');
    const members = converted<ModelContextExecuteToolOptions & { keepalive: boolean }>(options, {
      keepalive: Boolean,
      onoutput: asGiven,
      signal: asSignal,
    });
    const relay = this.#active();
    if (originOf(entry.origin) === 'null') throw relayFailure('opaque-origin');
    const text = inputText(input);
    members.signal?.throwIfAborted();
    return relay.execute(targetOf(entry), text, members);
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
    return this.#active().resumeTool(text, callback);
  }

  /**
   * The executions of this tab that lost their caller; this document becomes their caller. First come, first served.
   * Rejects with whatever keeps the worker from serving this document.
   */
  async getPendingExecutions(): Promise<PendingExecutionHandle[]> {
    return this.#active().getPendingExecutions();
  }

  /** An event handler attribute keeps the place in the order that it got when it was first set. */
  static {
    for (const type of ['toolchange', 'toolactivated', 'toolcancel']) {
      const attribute = {
        get [`on${type}`](): object | null {
          return (this as never as ModelContext).#handlers.get(type) ?? null;
        },
        set [`on${type}`](handler: object | null) {
          const context = this as never as ModelContext;
          const isHandler = Object(handler) === handler;
          context.#handlers.set(type, isHandler ? handler : null);
          context[isHandler ? 'addEventListener' : 'removeEventListener'](type, context.#callHandler);
        },
      };
      Object.defineProperties(ModelContext.prototype, Object.getOwnPropertyDescriptors(attribute));
    }
  }

  #active(): Relay {
    if (!this.#relay.isActive()) throw relayFailure('inactive-document');
    if (MAY_CHANGE_ORIGIN) throw relayFailure('invalid-origin');
    return this.#relay;
  }
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

/** Throws a `TypeError`, or whatever reading the members throws. */
function entryOf(tool: RegisteredTool): RegisteredTool {
  return converted<RegisteredTool>(tool, {
    ...TOOL_MEMBERS,
    documentId: asGiven,
    origin: required,
    registrationId: asGiven,
    tabId: asGiven,
    window(other: Window | null, member) {
      // The getter throws for what is no window, and takes `null` for its own.
      Reflect.get(window, 'closed', given(other, member));
      return other;
    },
  });
}

/** Where a call with this entry goes. */
function targetOf(entry: RegisteredTool): Target {
  const { documentId, registrationId, name: toolName, tabId, window, origin } = entry;
  const isMeant = (candidate: Neighbour): boolean =>
    documentId ? candidate.identity().documentId === documentId : candidate.window === window;
  const neighbour = neighbours().find(isMeant) ?? null;
  // An entry made by hand names its tool alone.
  const named = registrationId ?? neighbour?.tools().find(({ name }) => name === toolName)?.registrationId;
  const owner = neighbour?.identity().documentId ?? (tabId && documentId);
  if (!named || !owner || originOf(origin) !== OWN_ORIGIN) throw relayFailure('tool-unavailable');
  return { documentId: owner, registrationId: named, toolName, neighbour };
}
