// The pages' half of the bare counterparts.
import { BARE_LOCK, type Command, RECORD_ID } from './bare-messages.ts';

export interface Bare {
  /** Has the other page answer through the worker: four hops. */
  call(to: string, text: string): Promise<string>;
  /** One seal and one put in the worker; resolves with the milliseconds that they took there. */
  store(text: string): Promise<number>;
  /** One round trip, and in the worker one transaction and one unseal. */
  redeem(): Promise<string>;
}

/** Registers the worker and resolves once it is active. */
export async function registerBare(): Promise<ServiceWorkerRegistration> {
  const registration = await navigator.serviceWorker.register('/bare-worker.js', { scope: '/bare/' });
  const { installing } = registration;
  await new Promise<void>((resolve) => {
    const check = () => registration.active && resolve();
    installing?.addEventListener('statechange', check);
    check();
  });
  return registration;
}

/** Says hello under a name and resolves with the port once the worker has answered. */
export function connectBare({ active }: ServiceWorkerRegistration, name: string): Promise<MessagePort> {
  const { port1: port, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port.onmessage = () => resolve(port);
    active?.postMessage({ name }, [port2]);
  });
}

/** Answers every call with the text that it came with. */
export function answerBare(port: MessagePort): void {
  port.onmessage = ({ data }: MessageEvent<Extract<Command, { type: 'pass' }>>) => {
    port.postMessage({ ...data, from: data.to, to: data.from });
  };
}

export function useBare(port: MessagePort, name: string): Bare {
  const waiting = new Map<number, (text: string) => void>();
  let calls = 0;
  let answer: (data: never) => void = () => {};
  port.onmessage = ({ data }) => {
    if (data.type !== 'pass') answer(data as never);
    else {
      waiting.get(data.id)?.(data.text);
      waiting.delete(data.id);
    }
  };
  const ask = <T>(command: Command) =>
    new Promise<T>((resolve) => {
      answer = resolve;
      port.postMessage(command);
    });
  return {
    call: (to, text) =>
      new Promise((resolve) => {
        const id = ++calls;
        waiting.set(id, resolve);
        port.postMessage({ type: 'pass', id, from: name, to, text } satisfies Command);
      }),
    store: async (text) => (await ask<{ ms: number }>({ type: 'store', text })).ms,
    redeem: async () => (await ask<{ text: string }>({ type: 'redeem', key: RECORD_ID })).text,
  };
}

/** Queues for the worker's death and says hello to its successor at once; resolves with the time of the answer. */
export async function reconnectBare(registration: ServiceWorkerRegistration): Promise<number> {
  await deathOf(BARE_LOCK);
  const port = await connectBare(registration, 'reconnecting');
  const time = performance.now();
  port.close();
  return time;
}

/** Resolves with the time at which the lock was granted: its holder is dead then. */
export function deathOf(name: string): Promise<number> {
  return navigator.locks.request(name, { mode: 'shared' }, () => performance.now());
}
