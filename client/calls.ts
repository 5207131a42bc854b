/**
 * The calls that wait in this document: its own, and those that it collected from an earlier document of the tab.
 *
 * Kept: I6, each settles once; an abort rejects at once with the caller's own reason; a call never meets the worker
 * unless its tool asks for a token, or it is to outlive its caller.
 */
import { type ErrorRecord, failure } from '../shared/errors.ts';
import type { ExecutionId } from '../shared/ids.ts';
import type {
  AnnouncedCall,
  Call,
  Ending,
  KeyedCall,
  Output,
  PendingExecution,
  Value,
} from '../shared/protocol.ts';
import type { Connection } from './connection.ts';
import { relayError } from './errors.ts';
import type { describePending, PendingExecutionHandle } from './pending.ts';
import { guarded, remember } from './task.ts';
import type { Callee, Caller } from './window-tree.ts';

export type OutputListener = ((text: string | null) => void) | null | undefined;

/** What calls need of the document around them. */
export interface CallSurroundings {
  send: Connection['send'];
  /** What a call is stored with that may outlive this document; `null` if there turns out to be no worker to store it. */
  ownTab(key: string): Promise<Pick<Call, 'callerTabId' | 'groupId' | 'tabKey'> | null>;
  /** Something waits for the worker now: have one. */
  wake(): void;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  onoutput?: OutputListener;
}

interface CallHere extends KeyedCall {
  /** The document that runs it, unless the worker takes care. */
  target?: Callee;
  /** May the worker have heard of it? */
  heard?: boolean;
  /** Does the worker have it, or is it the only one who can say? */
  stored?: boolean;
  readonly outputs: Set<string>;
  readonly onoutput: OutputListener;
  outcome: Promise<string | null>;
  /** If it was collected. */
  handle?: PendingExecutionHandle;
  fulfil(value: Value): void;
  fail(error: ErrorRecord): void;
}

export interface Calls {
  execute(command: KeyedCall, target: Callee, options: CallOptions): Promise<string | null>;
  /** Those that were collected: now, or before. */
  collect(pending: readonly PendingExecution[], describe: typeof describePending): PendingExecutionHandle[];
  /** The outcome of a call of this document; throws if it never awaited such a call. */
  settle(command: { executionId: ExecutionId; ending: Ending }): void;
  deliverOutput(output: { executionId: ExecutionId } & Output): void;
  announced(): AnnouncedCall[];
  /** The document goes away: what dies with it. */
  leave(): Call[];
  /** It is back from the back/forward cache: what died cannot be answered any more. */
  returned(): void;
}

export function createCalls({ send, ownTab, wake }: CallSurroundings): Calls {
  const here = new Map<ExecutionId, CallHere>();
  /** Settled here: an acknowledgement that was lost is given again. */
  const finished = new Set<ExecutionId>();

  /** Awaits the outcome of a call: everything that may settle it. */
  function open(command: KeyedCall, { signal, onoutput }: CallOptions): CallHere {
    const { executionId } = command.call;
    const waiting = { ...command, outputs: new Set(), onoutput } as Partial<CallHere> as CallHere;
    here.set(executionId, waiting);
    waiting.outcome = new Promise((resolve, reject) => {
      const close = (): void => {
        here.delete(executionId);
        remember(finished, executionId);
        signal?.removeEventListener('abort', abort);
      };
      const abort = (): void => {
        close();
        reject(signal?.reason);
        waiting.target?.abort(executionId);
        if (waiting.heard) void send('cancel', { executionId });
      };
      signal?.addEventListener('abort', abort);
      waiting.fulfil = ({ text = null }) => {
        close();
        resolve(text);
      };
      waiting.fail = (error) => {
        close();
        reject(relayError({ ...error, executionId }));
      };
    });
    return waiting;
  }

  function execute(command: KeyedCall, target: Callee, options: CallOptions): Promise<string | null> {
    const waiting = open(command, options);
    if (command.call.keepalive) void callViaWorker(command, waiting, target);
    else callDirectly(command, waiting, target);
    return waiting.outcome;
  }

  /** If there is one: without it, the call lives as long as its page. */
  async function callViaWorker({ call, key }: KeyedCall, waiting: CallHere, target: Callee): Promise<void> {
    const { executionId } = call;
    const own = await ownTab(key);
    if (!here.has(executionId)) return;
    if (!own) return callDirectly({ call, key }, waiting, target);
    waiting.heard = true;
    const reply = await send('execute', { call: { ...call, ...own }, key });
    waiting.stored = reply.ok;
    if (!reply.ok) waiting.fail(reply.error);
  }

  function callDirectly(command: KeyedCall, waiting: CallHere, target: Callee): void {
    const { executionId } = command.call;
    waiting.target = target;
    const caller: Caller = {
      isOwn: target.window !== null,
      tokenRequested() {
        waiting.heard = true;
      },
      stored() {
        waiting.stored = true;
        if (here.has(executionId)) wake();
        else void send('cancel', { executionId });
      },
      ended(end) {
        // It was refused a token: the worker may have heard of it all the same.
        if (waiting.heard) void send('cancel', { executionId });
        if (end.type === 'returned') waiting.fulfil(end.value);
        else waiting.fail(JSON.parse(end.error.text as string));
      },
      failed(error) {
        if (!waiting.heard) waiting.fail(error);
        else if (!waiting.stored && here.has(executionId)) {
          waiting.stored = true;
          void send('awaitOutcomes', { executionIds: [executionId] }).then(({ ok }) => {
            if (!ok) waiting.fail(error);
          });
        }
      },
    };
    const refusal = target.activate(command, caller);
    if (refusal) waiting.fail(refusal);
    const frame = target.window;
    if (refusal || !frame || frame === window) return;
    // One that is removed, or crashes, may not be able to say so.
    const timer = setInterval(() => {
      const { closed } = frame;
      if (closed) caller.failed(failure('document-lost', true));
      if (closed || waiting.stored || !here.has(executionId)) clearInterval(timer);
    }, 1_000);
  }

  /** The worker has it already. */
  function adopt({ outputs, ...command }: PendingExecution, describe: typeof describePending): void {
    const { executionId } = command.call;
    const handle = describe(command, (options) => {
      const waiting = open(command, options);
      Object.assign(waiting, { heard: true, stored: true });
      return waiting.outcome;
    });
    Object.assign(here.get(executionId) as CallHere, { handle });
    for (const output of outputs) deliverOutput({ executionId, ...output });
  }

  function deliverOutput({ executionId, activationId, value }: { executionId: ExecutionId } & Output): void {
    const { outputs, onoutput } = here.get(executionId) ?? {};
    if (!outputs || outputs.has(activationId)) return;
    outputs.add(activationId);
    if (onoutput) guarded(onoutput, value.text ?? null);
  }

  return {
    execute,
    collect: (pending, describe) =>
      pending.flatMap((execution) => {
        const { executionId } = execution.call;
        if (!here.has(executionId)) adopt(execution, describe);
        return here.get(executionId)?.handle ?? [];
      }),
    settle({ executionId, ending }) {
      const waiting = here.get(executionId);
      if (ending.type === 'result') waiting?.fulfil(ending.value);
      else {
        const { reason, started, detail } = ending;
        waiting?.fail({ ...JSON.parse(detail?.text ?? '{}'), reason, started });
      }
      // What is not awaited here is not acknowledged: somebody else may collect it.
      if (!finished.has(executionId)) throw new Error('No such call.');
    },
    deliverOutput,
    announced: () =>
      [...here.values()]
        .filter(({ stored }) => stored)
        .map(({ call: { executionId }, key }) => ({ executionId, key })),
    leave() {
      // Whatever the worker may have heard of these: no token of theirs is anywhere.
      const lost = [...here.values()].filter(({ stored }) => !stored);
      for (const { call, target } of lost) {
        if (target?.window !== window) target?.abort(call.executionId);
      }
      return lost.filter(({ heard, call }) => !heard || call.keepalive).map(({ call }) => call);
    },
    returned() {
      for (const { stored, fail } of here.values()) if (!stored) fail(failure('navigated', true));
    },
  };
}
