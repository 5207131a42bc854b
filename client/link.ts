/**
 * The page's end of its port to the worker: says hello, and hands over a link at once, with the answer to come.
 *
 * The worker's end is Comlink. Of what that can say, a page says and hears two things, in the words of Comlink's protocol.ts: a
 * method called with one value, and what became of it. That takes less than bringing Comlink to every page would.
 * Kept: commands leave in the order of their calls; a command to this page is answered, if only with what it threw.
 */
import { freshId } from '../shared/ids.ts';
import type { Coordinator, DocumentPeer, Hello, HelloAnswer } from '../shared/protocol.ts';

export interface Link {
  /**
   * Usable at once: what is sent before the answer is taken up after a welcome, and lost with a refusal. Rejects with what the
   * method throws, or where the argument cannot be cloned.
   */
  command(method: keyof Coordinator, argument: unknown): Promise<unknown>;
  /** Never rejects; resolves with `undefined` if the link is closed before there is one. */
  readonly answer: Promise<HelloAnswer | undefined>;
  close(): void;
}

interface Request {
  id: string;
  type: 'APPLY';
  path: string[];
  argumentList: { type: 'RAW'; value: unknown }[];
}

type Reply = { id: string } & (
  | { type: 'RAW'; value: unknown }
  | { type: 'HANDLER'; name: 'throw'; value: { isError: true; value: object } }
);

/** One hello to `worker`. */
export function sayHello(worker: ServiceWorker, hello: Hello, peer: DocumentPeer): Link {
  const { port1: port, port2 } = new MessageChannel();
  const unanswered = new Map<string, (reply: Reply) => void>();
  const post = (message: Request | Reply): void => port.postMessage(message);
  let close = (): void => port.close();
  const answer = new Promise<HelloAnswer | undefined>((resolve) => {
    port.onmessage = ({ data }: MessageEvent<Request | Reply | HelloAnswer | null>) => {
      if (data?.type === 'welcome' || data?.type === 'refused') resolve(data);
      else if (data?.type === 'APPLY') void obey(data);
      else if (data) unanswered.get(data.id)?.(data);
    };
    close = () => {
      port.close();
      resolve(undefined);
    };
  });

  async function obey({ id, path, argumentList }: Request): Promise<void> {
    try {
      const value = await peer[path[0] as keyof DocumentPeer](argumentList[0]?.value as never);
      post({ id, type: 'RAW', value });
    } catch (thrown) {
      const { name, message } = thrown as Error;
      post({ id, type: 'HANDLER', name: 'throw', value: { isError: true, value: { name, message } } });
    }
  }

  function command(method: keyof Coordinator, argument: unknown): Promise<unknown> {
    const id = freshId();
    return new Promise((resolve, reject) => {
      post({ id, type: 'APPLY', path: [method], argumentList: [{ type: 'RAW', value: argument }] });
      unanswered.set(id, (reply) => {
        unanswered.delete(id);
        if (reply.type === 'RAW') resolve(reply.value);
        else reject(Object.assign(new Error(), reply.value.value));
      });
    });
  }

  worker.postMessage(hello, [port2]);
  return { command, answer, close };
}
