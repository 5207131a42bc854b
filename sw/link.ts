/**
 * The worker's end of a page's port: the one place where the worker meets Comlink.
 *
 * A welcomed port carries commands both ways: the page's to the {@link Coordinator} exposed here, ours to the page's
 * {@link DocumentPeer}. A refused one carries the refusal and is closed.
 */
import { expose, transfer, wrap } from 'comlink';
import type { ErrorRecord } from '../shared/errors.ts';
import type { Coordinator, DocumentPeer, HelloAnswer, Remote } from '../shared/protocol.ts';
import type { Connection } from './documents.ts';

type Welcome = Extract<HelloAnswer, { type: 'welcome' }>;

export function welcome(
  port: MessagePort,
  answer: Welcome,
  coordinator: Coordinator,
  of: Pick<Connection, 'groupId' | 'helloId' | 'listens'>,
): Connection {
  port.postMessage(answer);
  expose(coordinator, port);
  // The proxy stays referenced by the connection: a collected one would drop its calls.
  const peer = wrap<DocumentPeer>(port) as unknown as Remote<DocumentPeer>;
  return { peer, ...of, close: () => port.close() };
}

/** The command or reply, with the port in it handed over. */
export function handingOver<T>(port: MessagePort, message: T): T {
  return transfer(message, [port]);
}

export function refuse(port: MessagePort, error: ErrorRecord): void {
  port.postMessage({ type: 'refused', error } satisfies HelloAnswer);
  port.close();
}
