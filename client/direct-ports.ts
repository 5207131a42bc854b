/**
 * Calls straight to a document of another tab, over a port that the worker has put through between the two.
 *
 * Each end holds a lock for as long as it lives, and tells the other its name: being granted that lock means that the other
 * end is gone, whatever became of it. Kept: what an end said before it went is heard first; every call is answered or fails,
 * within a bound unless its callback runs; a page that goes away leaves no port open.
 */
import { ACKNOWLEDGEMENT_GRACE, type Bounds, type Sizes } from '../shared/bounds.ts';
import { type ErrorRecord, failure } from '../shared/errors.ts';
import { type DocumentId, type ExecutionId, freshId } from '../shared/ids.ts';
import type { End, KeyedCall } from '../shared/protocol.ts';
import type { CallSurroundings } from './calls.ts';
import type { Connection } from './connection.ts';
import type { Direct } from './direct.ts';
import type { Callee, Caller } from './window-tree.ts';

/** The last words of a document that is gone have this long to arrive, in milliseconds. */
const LAST_WORDS = 500;

export interface DirectSurroundings {
  send: Connection['send'];
  ownTab: CallSurroundings['ownTab'];
  /** This document, as others call it. */
  callee: Omit<Callee, 'window'>;
  bounds: Bounds;
  sizes: Sizes;
  /** Settles once the worker knows of every change of tools so far; `undefined` if it does. */
  toolsTold(): Promise<unknown> | undefined;
}

/** What the ends say to each other. They may be of different versions: kinds may be added, none is changed. */
type Message =
  /** The end holds the lock of that name. */
  | ['holds', name: string]
  | ['bye', unused?: string]
  | ['activate', ExecutionId, Order]
  | ['abort', ExecutionId]
  | ['acknowledged' | 'failed', ExecutionId, ErrorRecord | null]
  | ['tokenRequested' | 'stored', ExecutionId]
  | ['ended', ExecutionId, End];

interface Order extends KeyedCall {
  /** Milliseconds since the epoch; a document that reads the order later refuses it. */
  refuseAfter: number;
}

interface Waiting {
  readonly caller: Caller;
  readonly key: string;
  acknowledged: boolean;
  timer?: ReturnType<typeof setTimeout>;
}

interface PortEnd {
  /** Resolves with itself once it may speak, and hears. */
  opened: Promise<PortEnd>;
  post(message: Message): void;
  close(): void;
}

export function createDirectPorts({
  send,
  ownTab,
  callee,
  bounds,
  sizes,
  toolsTold,
}: DirectSurroundings): Direct {
  const callees = new Map<DocumentId, Callee>();
  const ends = new Set<PortEnd>();
  /** Ends of callbacks that are kept back until the worker knows what they imply. */
  const unsaid = new Set<() => void>();

  /** `gone` is called once, `saidSo` if the other end said goodbye. */
  function open(
    port: MessagePort,
    receive: (message: Message) => void,
    gone: (saidSo: boolean) => void,
  ): PortEnd {
    const closing = new AbortController();
    const { signal } = closing;
    const name = `webmcp-relay-port:${freshId()}`;
    const end = {
      post: (message) => port.postMessage(message),
      close() {
        closing.abort();
        port.close();
        ends.delete(end);
      },
    } as PortEnd;
    const lose = (saidSo: boolean): void => {
      if (signal.aborted) return;
      end.close();
      gone(saidSo);
    };
    ends.add(end);
    const hear = ({ data: message }: MessageEvent<Message>): void => {
      if (message[0] === 'bye') lose(true);
      else if (message[0] !== 'holds') receive(message);
      else {
        navigator.locks
          ?.request(message[1], { mode: 'shared', signal }, () => {
            setTimeout(lose, LAST_WORDS, false);
          })
          .catch(() => {});
      }
    };
    // The first word of an end is the name of its lock: whatever it says after that, the other learns of its death.
    const held = new Promise<void>((resolve) => {
      const hold = (): Promise<void> => {
        end.post(['holds', name]);
        resolve();
        return new Promise((release) => signal.addEventListener('abort', () => release()));
      };
      if (navigator.locks) navigator.locks.request(name, { signal }, hold).catch(() => resolve());
      else resolve();
    });
    end.opened = held.then(() => {
      port.onmessage = hear;
      return end;
    });
    return end;
  }

  function reach(documentId: DocumentId): Callee {
    const waiting = new Map<ExecutionId, Waiting>();

    function receive([type, id, argument]: Message): void {
      const call = waiting.get(id as ExecutionId);
      if (!call) return;
      if (type === 'acknowledged') {
        clearTimeout(call.timer);
        call.acknowledged = true;
        if (argument) fail(id as ExecutionId, argument as ErrorRecord);
        return;
      }
      const tell = call.caller[type as keyof Caller & Message[0]];
      if (!tell) return;
      clearTimeout(call.timer);
      if (type !== 'tokenRequested') waiting.delete(id as ExecutionId);
      tell(argument as never);
      if (type === 'stored') void keep(id, call.key);
    }

    /** Should it go on in this tab, a later document here may collect it: it shall be able to read what is stored. */
    async function keep(id: ExecutionId, key: string): Promise<void> {
      const { tabKey } = (await ownTab(key)) ?? {};
      void send('awaitOutcomes', { executionIds: [id], tabKey });
    }

    function fail(id: ExecutionId, error: ErrorRecord): void {
      const call = waiting.get(id);
      waiting.delete(id);
      call?.caller.failed(error);
    }

    function gone(saidSo: boolean): void {
      callees.delete(documentId);
      for (const [id, { acknowledged, timer }] of waiting) {
        clearTimeout(timer);
        // It read in order: what it had not acknowledged when it said goodbye it never began.
        const isCertain = saidSo && !acknowledged;
        const reason = isCertain ? 'tool-unavailable' : saidSo ? 'navigated' : 'document-lost';
        fail(id, failure(reason, !isCertain));
      }
    }

    /** Or why there is no port: whatever has been called by then, and whatever yet may be, fails with it. */
    const introduced = send('introduce', { documentId }).then<PortEnd | ErrorRecord>((reply) => {
      if (reply.ok) return open(reply.value, receive, gone).opened;
      callees.delete(documentId);
      return reply.error;
    });

    return {
      window: null,
      activate(command, caller) {
        const { executionId } = command.call;
        if (waiting.size >= sizes.executions) {
          return failure('too-many', false, `At most ${sizes.executions} open executions a document.`);
        }
        waiting.set(executionId, { caller, key: command.key, acknowledged: false });
        void introduced.then((end) => {
          const call = waiting.get(executionId);
          if (!call) return;
          if ('reason' in end) return fail(executionId, end);
          const refuseAfter = Date.now() + bounds.acknowledging;
          const unresponsive = (): void => {
            // It may have missed the introduction; or, if the clock was set back, run it all the same.
            callees.delete(documentId);
            end.post(['abort', executionId]);
            fail(executionId, failure('document-unresponsive', false));
            if (waiting.size > 0) return;
            // Nothing goes this way any more: the next call is introduced anew.
            end.post(['bye']);
            end.close();
          };
          // In two steps: where this document was frozen, the acknowledgement is read before the second.
          const late = (): void => {
            call.timer = setTimeout(unresponsive, ACKNOWLEDGEMENT_GRACE);
          };
          call.timer = setTimeout(late, bounds.acknowledging);
          end.post(['activate', executionId, { ...command, refuseAfter }]);
        });
        return null;
      },
      abort(executionId) {
        clearTimeout(waiting.get(executionId)?.timer);
        waiting.delete(executionId);
        void introduced.then((end) => 'post' in end && end.post(['abort', executionId]));
      },
    };
  }

  function meet({ port }: { port: MessagePort }): void {
    const running = new Set<ExecutionId>();

    function receive([type, id, order]: Message): void {
      if (type === 'abort') callee.abort(id);
      if (type !== 'activate') return;
      running.add(id);
      const conclude = (message: Message): void => {
        running.delete(id);
        there.post(message);
      };
      const caller: Caller = {
        isOwn: false,
        tokenRequested: () => there.post(['tokenRequested', id]),
        stored: () => conclude(['stored', id]),
        ended(how) {
          const say = (): void => {
            if (unsaid.delete(say)) conclude(['ended', id, how]);
          };
          unsaid.add(say);
          const told = toolsTold();
          if (told) void told.then(say);
          else say();
        },
        failed: (error) => conclude(['failed', id, error]),
      };
      const isLate = Date.now() > (order as Order).refuseAfter;
      const refusal = isLate
        ? failure('document-unresponsive', false)
        : callee.activate(order as Order, caller);
      if (refusal) running.delete(id);
      there.post(['acknowledged', id, refusal]);
    }

    const there = open(port, receive, () => {
      for (const id of running) callee.abort(id);
    });
  }

  return {
    to(documentId) {
      const known = callees.get(documentId) ?? reach(documentId);
      callees.set(documentId, known);
      return known;
    },
    meet,
    leave() {
      for (const say of unsaid) say();
      for (const { post, close } of ends) {
        post(['bye']);
        close();
      }
      callees.clear();
    },
  };
}
