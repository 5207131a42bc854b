/**
 * The page's end of its port to the worker: says hello, waits for the answer, and hands over a link.
 * The one place where the page meets Comlink.
 */
import { expose, wrap } from 'comlink';
import type { ErrorRecord } from '../shared/errors.ts';
import type { Coordinator, DocumentPeer, Hello, HelloAnswer } from '../shared/protocol.ts';

export interface Link {
  readonly coordinator: Coordinator;
  readonly generation: string;
  /** The id that the worker knows this document's tab by. */
  readonly tabId: string;
  close(): void;
}

export type Answer = { link: Link } | { refused: ErrorRecord };

/**
 * One hello to `worker`. Never rejects; resolves with `undefined` once `signal` aborts before there is an answer: the port is
 * closed then.
 */
export function sayHello(
  worker: ServiceWorker,
  hello: Hello,
  peer: DocumentPeer,
  signal: AbortSignal,
): Promise<Answer | undefined> {
  const { port1: port, port2 } = new MessageChannel();
  const close = (): void => port.close();
  return new Promise((resolve) => {
    const giveUp = (): void => {
      close();
      resolve(undefined);
    };
    signal.addEventListener('abort', giveUp);
    port.onmessage = ({ data }: MessageEvent<HelloAnswer | null>) => {
      if (data?.type === 'refused') resolve({ refused: data.error });
      if (data?.type !== 'welcome') return;
      port.onmessage = null;
      signal.removeEventListener('abort', giveUp);
      expose(peer, port);
      // The proxy stays referenced by the link: a collected one would drop its calls.
      const coordinator = wrap<Coordinator>(port) as unknown as Coordinator;
      const { generation, tabId } = data;
      resolve({ link: { coordinator, generation, tabId, close } });
    };
    worker.postMessage(hello, [port2]);
  });
}
