/** Time, as the worker's shell uses it: injected, so that tests turn it by hand and storage keeps running. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back after `delay` milliseconds, unless cancelled before. A worker may be dead by then (I5). */
  after(delay: number, callback: () => void): () => void;
}

/** The longest delay that timers take. */
const LONGEST_DELAY = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delay, callback) {
    const timer = setTimeout(callback, Math.min(delay, LONGEST_DELAY));
    return () => clearTimeout(timer);
  },
};

/** Settles as `promise` does, or, once `bound` milliseconds have passed, as `fallback` says: it may throw. */
export async function within<T, F>(
  clock: Clock,
  bound: number,
  promise: Promise<T>,
  fallback: () => F,
): Promise<T | F> {
  let cancel = () => {};
  const passed = new Promise<void>((resolve) => {
    cancel = clock.after(bound, resolve);
  }).then(fallback);
  try {
    return await Promise.race([promise, passed]);
  } finally {
    cancel();
  }
}
