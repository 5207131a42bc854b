/**
 * The calls that wait in this document: its own, and those that it collected from an earlier document of the tab.
 *
 * Kept: I6, each settles once; an abort rejects at once with the caller's own reason; a call within the tab never meets the
 * worker unless its tool asks for a token.
 */
import { type ErrorRecord, failure } from '../shared/errors.ts';
import type { ExecutionId } from '../shared/ids.ts';
import type { AnnouncedCall, Call, Ending, KeyedCall, Output, PendingExecution } from '../shared/protocol.ts';
import type { Connection } from './connection.ts';
import { type RelayError, relayError } from './errors.ts';
import { guarded, remember } from './task.ts';
import type { LocalCaller, Neighbour } from './window-tree.ts';

export type OutputListener = ((text: string | null) => void) | null | undefined;

/** What calls need of the document around them. */
export interface CallSurroundings {
  send: Connection['send'];
  /** Something waits for the worker now: have one. */
  wake(): void;
  /** Asks the worker anew what became of the calls that it may know. */
  announce(): void;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  onoutput?: OutputListener;
}

interface CallHere extends KeyedCall {
  /** The document in this tab that runs it; `null` if the worker takes care. */
  readonly target: Neighbour | null;
  /** Has the worker heard of it? `'maybe'`: its tool has asked for a token. */
  known: 'no' | 'maybe' | 'sent' | 'stored';
  readonly outputs: Set<string>;
  onoutput: OutputListener;
  settle(ending: Ending): void;
}

/** An execution that lost its caller, collected by this document (`semantics.md`, The caller leaves). */
export interface PendingExecutionHandle {
  readonly id: ExecutionId;
  readonly toolName: string;
  readonly input: unknown;
  readonly state: 'open' | 'settled';
  /** The texts that its activations gave so far, in order. */
  readonly outputs: (string | null)[];
  /** As the promise of `executeTool()` would have settled. */
  readonly outcome: Promise<string | null>;
  onoutput: OutputListener;
  cancel(): void;
}

export interface Calls {
  execute(command: KeyedCall, target: Neighbour | null, options: CallOptions): Promise<string | null>;
  collect(pending: readonly PendingExecution[]): PendingExecutionHandle[];
  /** The outcome of a call of this document; `false` if it never awaited such a call. */
  settle(executionId: ExecutionId, ending: Ending): boolean;
  deliverOutput(output: { executionId: ExecutionId } & Output): void;
  announced(): AnnouncedCall[];
  isPending(): boolean;
  /** The document goes away: what dies with it. */
  leave(): Call[];
  /** It is back from the back/forward cache: what died cannot be answered any more. */
  returned(): void;
}

export function createCalls(surroundings: CallSurroundings): Calls {
  const here = new Map<ExecutionId, CallHere>();
  const collected = new Map<ExecutionId, PendingExecutionHandle>();
  /** Settled here: an acknowledgement that was lost is given again. */
  const finished = new Set<ExecutionId>();

  /** Makes a promise for the outcome of a call, and everything that may settle it. */
  function open(
    { call, key }: KeyedCall,
    target: Neighbour | null,
    { signal, onoutput }: CallOptions,
  ): Promise<string | null> {
    return new Promise((resolve, reject) => {
      const abort = (): void => cancel(call.executionId, () => reject(signal?.reason), signal?.reason);
      const settle = (ending: Ending): void => {
        here.delete(call.executionId);
        remember(finished, call.executionId);
        signal?.removeEventListener('abort', abort);
        if (ending.type === 'result') resolve(ending.value.text ?? null);
        else reject(errorOf(ending, call.executionId));
      };
      signal?.addEventListener('abort', abort, { once: true });
      here.set(call.executionId, { call, key, target, known: 'no', outputs: new Set(), onoutput, settle });
    });
  }

  function cancel(executionId: ExecutionId, reject: () => void, reason: unknown): void {
    const waiting = here.get(executionId);
    if (waiting === undefined) return;
    here.delete(executionId);
    remember(finished, executionId);
    reject();
    waiting.target?.abort(executionId, reason);
    if (waiting.known !== 'no') void surroundings.send('cancel', { executionId });
  }

  function execute(
    command: KeyedCall,
    target: Neighbour | null,
    options: CallOptions,
  ): Promise<string | null> {
    const promise = open(command, target, options);
    const waiting = here.get(command.call.executionId) as CallHere;
    if (target === null) viaWorker(waiting);
    else withinTab(waiting, target);
    return promise;
  }

  function viaWorker(waiting: CallHere): void {
    waiting.known = 'sent';
    const { call, key } = waiting;
    void surroundings.send('execute', { call, key }).then((reply) => {
      const isOpen = here.has(call.executionId);
      if (!reply.ok && isOpen) waiting.settle(failed(reply.error));
      // Cancelled before it had arrived: whichever came first there, it is cancelled.
      if (reply.ok && !isOpen) void surroundings.send('cancel', { executionId: call.executionId });
    });
  }

  function withinTab(waiting: CallHere, target: Neighbour): void {
    const { executionId } = waiting.call;
    const isOpen = (): boolean => here.has(executionId);
    const caller: LocalCaller = {
      tokenRequested() {
        if (waiting.known === 'no') waiting.known = 'maybe';
      },
      stored() {
        waiting.known = 'stored';
        if (isOpen()) surroundings.wake();
        else void surroundings.send('cancel', { executionId });
      },
      ended(end) {
        if (!isOpen()) return;
        if (end.type === 'returned') waiting.settle({ type: 'result', value: end.value });
        else waiting.settle({ type: 'failed', reason: end.reason, started: true, detail: end.error });
      },
      failed(error) {
        if (!isOpen() || waiting.known === 'stored') return;
        if (waiting.known === 'no') waiting.settle(failed(error));
        else surroundings.announce();
      },
    };
    const refusal = target.activate({ call: waiting.call, key: waiting.key }, caller);
    if (refusal !== null) waiting.settle(failed(refusal));
    else watchTarget(waiting, target, caller);
  }

  /** A frame that is removed, or crashes, may not be able to say so. */
  function watchTarget(waiting: CallHere, target: Neighbour, caller: LocalCaller): void {
    if (target.window === window) return;
    const timer = setInterval(() => {
      if (!here.has(waiting.call.executionId) || waiting.known === 'stored') clearInterval(timer);
      else if (target.window.closed) {
        clearInterval(timer);
        caller.failed(failure('document-lost', true));
      }
    }, 1_000);
  }

  function collect(pending: readonly PendingExecution[]): PendingExecutionHandle[] {
    return pending
      .filter(({ call: { executionId } }) => collected.has(executionId) || !here.has(executionId))
      .map((execution) => collected.get(execution.call.executionId) ?? handleOf(execution));
  }

  function handleOf({ outputs: known, ...command }: PendingExecution): PendingExecutionHandle {
    const { call } = command;
    const abort = new AbortController();
    let state: 'open' | 'settled' = 'open';
    const outputs: (string | null)[] = [];
    const handle: PendingExecutionHandle = {
      id: call.executionId,
      toolName: call.toolName,
      input: JSON.parse(call.input.text ?? '{}'),
      get state() {
        return state;
      },
      outputs,
      outcome: open(command, null, { signal: abort.signal, onoutput: receive }),
      onoutput: null,
      cancel: () => abort.abort(relayError({ ...failure('aborted', true), executionId: call.executionId })),
    };
    function receive(text: string | null): void {
      outputs.push(text);
      handle.onoutput?.(text);
    }
    const settled = (): void => {
      state = 'settled';
      collected.delete(call.executionId);
    };
    handle.outcome.then(settled, settled);
    collected.set(call.executionId, handle);
    const waiting = here.get(call.executionId) as CallHere;
    waiting.known = 'stored';
    for (const output of known) deliverOutput({ executionId: call.executionId, ...output });
    return handle;
  }

  function deliverOutput({ executionId, activationId, value }: { executionId: ExecutionId } & Output): void {
    const waiting = here.get(executionId);
    if (waiting === undefined || waiting.outputs.has(activationId)) return;
    waiting.outputs.add(activationId);
    if (waiting.onoutput) guarded(waiting.onoutput, value.text ?? null);
  }

  function leave(): Call[] {
    const lost = [...here.values()].filter(({ known }) => known === 'no');
    for (const { call, target } of lost) {
      if (target !== null && target.window !== window) target.abort(call.executionId, undefined);
    }
    return lost.map(({ call }) => call);
  }

  function returned(): void {
    for (const { known, settle } of [...here.values()]) {
      if (known === 'no' || known === 'sent') settle(failed(failure('navigated', true)));
    }
  }

  return {
    execute,
    collect,
    settle(executionId, ending) {
      const waiting = here.get(executionId);
      waiting?.settle(ending);
      return finished.has(executionId);
    },
    deliverOutput,
    announced: () =>
      [...here.values()]
        .filter(({ known }) => known !== 'no')
        .map(({ call, key, known }) => ({ call, key, stored: known !== 'sent' })),
    isPending: () => [...here.values()].some(({ known }) => known !== 'no'),
    leave,
    returned,
  };
}

function failed({ reason, started, ...error }: ErrorRecord): Ending {
  return { type: 'failed', reason, started, detail: { text: JSON.stringify(error) } };
}

function errorOf(ending: Extract<Ending, { type: 'failed' }>, executionId: ExecutionId): RelayError {
  const { reason, started, detail } = ending;
  return relayError({ message: '', ...JSON.parse(detail?.text ?? '{}'), reason, started, executionId });
}
