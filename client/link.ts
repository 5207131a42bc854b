/**
 * The page's end of its port to the worker: says hello, and hands over a link at once, with the answer to come.
 * The one place where the page meets Comlink.
 */
import { expose, wrap } from 'comlink';
import type { Coordinator, DocumentPeer, Hello, HelloAnswer } from '../shared/protocol.ts';

export interface Link {
  /** Usable at once: what is sent before the answer is taken up after a welcome, and lost with a refusal. */
  readonly coordinator: Coordinator;
  /** Never rejects; resolves with `undefined` if the link is closed before there is one. */
  readonly answer: Promise<HelloAnswer | undefined>;
  close(): void;
}

/** One hello to `worker`. */
export function sayHello(worker: ServiceWorker, hello: Hello, peer: DocumentPeer): Link {
  const { port1: port, port2 } = new MessageChannel();
  let close = (): void => port.close();
  const answer = new Promise<HelloAnswer | undefined>((resolve) => {
    port.addEventListener('message', ({ data }: MessageEvent<HelloAnswer | null>) => {
      if (data?.type === 'welcome' || data?.type === 'refused') resolve(data);
    });
    close = () => {
      port.close();
      resolve(undefined);
    };
  });
  expose(peer, port);
  // The proxy stays referenced by the link: a collected one would drop its calls.
  const coordinator = wrap<Coordinator>(port) as unknown as Coordinator;
  worker.postMessage(hello, [port2]);
  return { coordinator, answer, close };
}
