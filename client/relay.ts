/**
 * This document's part of the relay: puts its tools, activations, calls and redemptions together with the ways in which they
 * reach other documents: the window tree (this tab), ports (other tabs), and the worker (what may outlive a page).
 *
 * Owns: the wiring; how a token is made (rule 2); whether a command to activate comes in time; that tools are told of once a
 * task, and before a result that implies them.
 */
import { BOUNDS, type Bounds, isLonger, SIZES, type Sizes } from '../shared/bounds.ts';
import { failure, type Reason } from '../shared/errors.ts';
import { freshId, freshSecret } from '../shared/ids.ts';
import {
  type Acknowledgement,
  type Activate,
  type Call,
  type DocumentPeer,
  type EndReport,
  type Grant,
  HELLO,
  type Hello,
  type KeyedCall,
  PROTOCOL_VERSIONS,
  type Reply,
  type Snapshot,
} from '../shared/protocol.ts';
import { digestOf, seal, secretOf } from '../shared/seal.ts';
import type { ToolOwner } from '../shared/tool.ts';
import { createActivations } from './activations.ts';
import { type CallOptions, type CallSurroundings, createCalls } from './calls.ts';
import { type Connection, createConnection } from './connection.ts';
import { createDirect } from './direct.ts';
import { relayError, unwrap } from './errors.ts';
import { createIdentity } from './identity.ts';
import type { ToolExecuteCallback } from './invocation.ts';
import { watchLifetime } from './lifetime.ts';
import type { PendingExecutionHandle } from './pending.ts';
import { createReadiness, type Readiness } from './readiness.ts';
import { createResumptions } from './resumptions.ts';
import { guarded, inTask, nextTask, onAbort, within } from './task.ts';
import { withoutToken } from './token.ts';
import { createTools, type ToolDraft } from './tools.ts';
import { createValidation } from './validation.ts';
import { tooLarge } from './values.ts';
import { type Caller, isTop, type Neighbour, neighbours, showNeighbour } from './window-tree.ts';

export interface RelayOptions {
  /** Address of the worker's script. Default: `/webmcp-relay-sw.js`. */
  worker?: string | URL;
  /** Default: the folder of the worker's script. */
  scope?: string | undefined;
  /** `false`: the site registers its own worker, which includes the relay. */
  register?: boolean;
  /** `false`: inputs are not checked against the schemas of their tools. */
  validate?: boolean;
  /** Milliseconds; defaults in the README. */
  bounds?: Partial<Bounds>;
  sizes?: Partial<Sizes>;
}

/** Where a call goes: to which registration of which document. */
export interface Target {
  documentId: string;
  registrationId: string;
  toolName: string;
  /** The document, if it is in this tab. */
  neighbour: Neighbour | null;
}

export interface Relay {
  isActive(): boolean;
  /** Resolves once the tab has been told. `signal` undoes it, and nothing else. `admit` may refuse it by throwing. */
  registerTool(draft: ToolDraft, signal: AbortSignal | undefined, admit: () => void): Promise<void>;
  execute(
    target: Target,
    input: string,
    options: CallOptions & { keepalive: boolean },
  ): Promise<string | null>;
  resumeTool(token: string, callback: ToolExecuteCallback): Promise<void>;
  listGroup(): Promise<ToolOwner[]>;
  readonly readiness: Readiness;
  getPendingExecutions(): Promise<PendingExecutionHandle[]>;
  readonly status: RelayStatus;
}

/** `modelContext.relay`. */
export interface RelayStatus {
  /** Does the worker serve this document? */
  readonly state: 'connecting' | 'shared' | 'alone';
  /** Why it does not; `null` unless `alone`. */
  readonly reason: Reason | null;
  /** Settles once `state` is no longer `connecting`, within the connecting bound. Never rejects. */
  readonly ready: Promise<void>;
  /** Calls back with a snapshot of the group now and after every change, until the signal aborts. */
  watch(callback: (snapshot: Snapshot) => void, options?: { signal?: AbortSignal }): void;
}

export function createRelay(options: RelayOptions, fire: (event: Event) => void): Relay {
  const sizes = { ...SIZES, ...options.sizes };
  const bounds = { ...BOUNDS, ...options.bounds };
  const tools = createTools(sizes);
  const validation = createValidation(bounds.connecting);
  const watchers = new Set<(snapshot: Snapshot) => void>();
  let announcedChange: Promise<void> | undefined;
  /** Is that one of readiness only? */
  let quiet = true;
  /** Have tools changed since the worker was told? */
  let stale = false;
  /** Is the worker being told? */
  let telling: Promise<unknown> | undefined;
  /** As the worker was told last. */
  let announcedReady = 0;
  /** It has listed its group, and wants to know of changes. */
  let listens = false;
  /** An end was reported that counts only if the document stays. */
  let mayStay = false;

  const send: Connection['send'] = (method, argument) => {
    if (method === 'reportEnd') {
      mayStay ||= 'leaving' in (argument as EndReport).end;
      announceTools();
    }
    return connection.send(method, argument);
  };

  const lookAgain = (): void => void changed();

  const lifetime = watchLifetime({
    presumed() {
      // At once: an agent that has just caused the navigation may list before the next task comes.
      announceTools();
      lookAgain();
    },
    stayed() {
      lookAgain();
      if (mayStay) void send('reportStay', {});
      mayStay = false;
    },
    left: leave,
    returned() {
      // Its tools are back.
      stale = true;
      calls.returned();
      connection.wake();
    },
  });

  const readiness = createReadiness(lifetime.presumedUntil, bounds.readiness, lookAgain, fire);

  const identity = createIdentity(lifetime);

  const activations = createActivations({ limit: sizes.value, lifetime, fire, requestToken, send });

  const calls = createCalls({
    send,
    ownTab,
    wake: () => connection.wake(),
  });

  const resumptions = createResumptions(send);

  const direct = createDirect({
    send,
    ownTab,
    callee: { activate: activateFirst, abort: activations.cancel },
    bounds,
    sizes,
    toolsTold,
  });

  const peer: DocumentPeer = {
    activate,
    meet: direct.meet,
    drop({ activationId }) {
      resumptions.drop(activationId);
      activations.drop(activationId);
    },
    settle: calls.settle,
    deliverOutput: calls.deliverOutput,
    toolsChanged: readiness.look,
    observe(snapshot) {
      for (const watcher of watchers) guarded(watcher, snapshot);
    },
    ping: () => true,
  };

  const connection: Connection = createConnection(
    {
      ...options,
      worker: options.worker ?? '/webmcp-relay-sw.js',
      bounds,
    },
    {
      hello,
      peer,
      isPending,
      activated: lifetime.activated,
      connected(tabId) {
        adoptTabId(tabId);
        if (watchers.size > 0) void send('watch', { on: true });
      },
    },
  );

  const neighbour: Neighbour = {
    window,
    identity: () => identity.current,
    tools: tools.list,
    readyFrom: readiness.readyFrom,
    toolsChanged: readiness.look,
    lookAgain,
    activate: activateFirst,
    abort: (activationId) => nextTask(() => activations.cancel(activationId)),
    adopt(tabId, tabSecret) {
      identity.adopt(tabId, tabSecret);
      if (!isTop()) connection.renew();
    },
  };

  function isPending(): boolean {
    const parts = [calls, activations, resumptions];
    return watchers.size > 0 || parts.some(({ announced }) => announced().length > 0);
  }

  /** The worker gives a copied tab an id of its own; the frames of the tab follow. */
  function adoptTabId(tabId: string): void {
    if (!isTop() || tabId === identity.current.tabId) return;
    const tabSecret = freshSecret();
    for (const { adopt } of neighbours()) adopt(tabId, tabSecret);
  }

  function hello(): Hello {
    const { tabSecret: _, ...facts } = identity.current;
    announcedReady = readiness.readyFrom();
    const quiet = !stale && !telling;
    stale = false;
    return {
      type: HELLO,
      versions: PROTOCOL_VERSIONS,
      helloId: freshId(),
      ...facts,
      top: isTop(),
      url: withoutToken(location.href),
      listens,
      announcement: {
        tools: tools.list(),
        readyFrom: announcedReady,
        quiet,
        calls: calls.announced(),
        activations: activations.announced(),
        resumptions: resumptions.announced(),
      },
    };
  }

  function leave(): void {
    const missed = isPending();
    readiness.leave();
    // Before its activations: with a callback of this document the call that waits for it is gone too.
    const lostCalls = calls.leave();
    activations.leave();
    resumptions.leave();
    direct.leave();
    connection.leave({ documentId: identity.current.documentId, lostCalls, missed });
  }

  /** As the tab is called by now: who has called may have done so before that was known. */
  async function ownTab(key: string): ReturnType<CallSurroundings['ownTab']> {
    await connection.ready;
    // Without a worker there may be no cipher either: an insecure page has neither.
    if (connection.status().error !== null) return null;
    const { tabId: callerTabId, groupId, tabSecret } = identity.current;
    return { callerTabId, groupId, tabKey: await seal(key, tabSecret) };
  }

  /** Makes the token here, so that a repeated request is the same request (rule 2). */
  async function requestToken(
    request: Pick<Grant, 'activationId' | 'executionId' | 'call' | 'key' | 'lifetime'>,
    isOwn = false,
  ): Promise<Reply<string>> {
    await connection.ready;
    const { error } = connection.status();
    if (error !== null) return { ok: false, error };
    const token = freshSecret();
    const { call, key } = request;
    const [digest, tokenKey, own, sealed] = await Promise.all([
      digestOf(token),
      secretOf(token).then((secret) => seal(key, secret)),
      isOwn && ownTab(key),
      call && seal(JSON.stringify(call.input.text), key),
    ]);
    const stored = call && sealed && { ...call, ...own, input: { ...call.input, sealed } };
    const grant: Grant = { ...request, call: stored, digest, tokenKey };
    const reply = await send('grant', grant);
    return reply.ok ? { ok: true, value: token } : reply;
  }

  /** A command from the worker: a `keepalive` call, or a resumption's turn. */
  function activate(command: Activate): Acknowledgement {
    const { activationId, call, refuseAfter } = command;
    const acknowledged = activations.acknowledged(activationId);
    if (acknowledged !== undefined) return acknowledged;
    if (!lifetime.isActive()) return failure('tool-unavailable', false);
    if (Date.now() > refuseAfter) return failure('document-unresponsive', false);
    if (activationId === call.executionId) return activateFirst(command, null);
    const { callback, answered } = resumptions.take(activationId);
    if (!callback || !answered) return failure('tool-unavailable', false);
    activations.begin(command, null, () => callback, answered.then(inTask));
    return null;
  }

  /** For whoever calls, directly or through the worker. */
  function activateFirst({ call, key }: KeyedCall, caller: Caller | null): Acknowledgement {
    const { executionId, registrationId, input } = call;
    const tool = tools.find(registrationId);
    // A direct caller hears of a tool that is gone in its turn: after the `toolchange` that says so.
    if (!lifetime.isActive() || !(tool ?? caller)) return failure('tool-unavailable', false);
    // What came from elsewhere came in a task of its own.
    const turn = caller?.isOwn ? inTask() : Promise.resolve();
    const ready = turn.then(() => validation.refusalOf(tool?.inputSchema ?? '', input.text ?? '{}'));
    const find = (): ToolExecuteCallback | undefined => tools.find(registrationId)?.execute;
    activations.begin({ activationId: executionId, call, key }, caller, find, ready);
    return null;
  }

  /** Tells the worker what it does not know yet. None is woken where no tools have changed. */
  function announceTools(): void {
    const before = announcedReady;
    const readyFrom = readiness.readyFrom();
    if (!stale && (readyFrom === before || !connection.isKnown())) return;
    // What was held back is told now.
    const isQuiet = !stale && before < Infinity;
    announcedReady = readyFrom;
    const told = connection.send('announceTools', { tools: tools.list(), readyFrom, quiet: isQuiet });
    // A hello that this has caused has told them aloud.
    stale = false;
    telling = told;
    void told.then(() => {
      if (telling === told) telling = undefined;
    });
  }

  /** An agent that has a result lists the tools that it implies: the worker is told of them first. */
  function toolsTold(): Promise<unknown> | undefined {
    announceTools();
    return telling && within(bounds.acknowledging, telling);
  }

  /** Tells the documents of this tab, and the worker: once a task, however much changed. `ofTools`: tools did. */
  function changed(ofTools = false): Promise<void> {
    quiet &&= !ofTools;
    stale ||= ofTools;
    announcedChange ??= new Promise((resolve) => {
      nextTask(() => {
        const isQuiet = quiet;
        announcedChange = undefined;
        quiet = true;
        for (const { toolsChanged } of neighbours()) toolsChanged(isQuiet);
        announceTools();
        resolve();
      });
    });
    return announcedChange;
  }

  showNeighbour(neighbour);
  lookAgain();

  return {
    isActive: lifetime.isActive,
    registerTool(draft, signal, admit) {
      const { registrationId, inputSchema } = tools.register(draft, admit);
      if (inputSchema && options.validate !== false) validation.prepare();
      return new Promise((resolve, reject) => {
        if (signal) {
          onAbort(signal, () => {
            tools.unregister(registrationId);
            void changed(true);
            reject(signal.reason);
          });
        }
        const told = changed(true);
        if (readiness.isHeld()) resolve();
        else void told.then(resolve);
      });
    },
    async execute({ neighbour, ...tool }, input, { keepalive, ...callOptions }) {
      if (isLonger(input, sizes.value)) throw relayError(tooLarge('input', sizes.value));
      const { documentId, tabId, groupId } = identity.current;
      const call: Call = {
        executionId: freshId(),
        callerDocumentId: documentId,
        callerTabId: tabId,
        groupId,
        ...tool,
        keepalive,
        input: { text: input },
        tabKey: null,
      };
      const target = neighbour ?? direct.to(tool.documentId);
      return calls.execute({ call, key: freshSecret() }, target, callOptions);
    },
    resumeTool: resumptions.resume,
    async listGroup() {
      listens = true;
      return unwrap(await send('listTools', {}));
    },
    readiness,
    async getPendingExecutions() {
      // Loaded first: what is collected is nobody else's, and could not be shown without it.
      const { describePending } = await import('./more.ts');
      const { tabSecret } = identity.current;
      const pending = unwrap(await send('collect', { tabSecret }));
      const collected = calls.collect(pending, describePending);
      const executionIds = collected.map(({ id }) => id);
      void send('awaitOutcomes', { executionIds });
      return collected;
    },
    status: {
      get state() {
        return connection.status().state;
      },
      get reason() {
        return connection.status().error?.reason ?? null;
      },
      ready: connection.ready,
      watch(callback, { signal } = {}) {
        if (signal?.aborted) return;
        const tellWorker = (): void => void send('watch', { on: watchers.size > 0 });
        watchers.add(callback);
        tellWorker();
        signal?.addEventListener('abort', () => {
          watchers.delete(callback);
          tellWorker();
        });
      },
    },
  };
}
