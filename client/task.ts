/** Runs `callback` in a task of its own. Timers are not used: a hidden tab's come late. */
export function nextTask(callback: () => void): void {
  tasks.push(callback);
  channel.port2.postMessage(null);
}

const tasks: (() => void)[] = [];
const channel = new MessageChannel();
channel.port1.onmessage = () => tasks.shift()?.();

/** Resolves in a task of its own. */
export const inTask = (): Promise<undefined> => new Promise((resolve) => nextTask(() => resolve(undefined)));

/** Settles as `promise` does, or resolves with `undefined` once `bound` milliseconds have passed. */
export function within<T>(bound: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, bound);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

const REMEMBERED = 4_096;

/** Adds an id, and forgets the oldest where there are many: what is repeated, is repeated soon. */
export function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest] = ids;
  if (ids.size > REMEMBERED) ids.delete(oldest as string);
}

/** Calls what a page gave us; what it throws is the page's to see, and stops nothing of ours. */
export function guarded<T>(callback: (value: T) => void, value: T): void {
  try {
    callback(value);
  } catch (thrown) {
    reportError(thrown);
  }
}

const aborts = new WeakMap<AbortSignal, (() => void)[]>();

/** One listener a signal: the browser compares each new one with all that are there. */
export function onAbort(signal: AbortSignal, callback: () => void): void {
  const callbacks = aborts.get(signal) ?? [];
  if (callbacks.push(callback) > 1) return;
  aborts.set(signal, callbacks);
  signal.addEventListener('abort', () => {
    for (const callback of callbacks) callback();
  });
}
