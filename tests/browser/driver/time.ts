// Bounds and polling for the driver.

export const defaultTimeoutMs = 20_000;

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export class TimeUp extends Error {
  override name = 'TimeUp';
  constructor(what: string, ms: number) {
    super(`${what} (waited ${ms} ms)`);
  }
}

/** Rejects with `message` if the promise has not settled in time. */
export async function within<T>(ms: number, message: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeUp(message, ms)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks until the answer is truthy, ever more slowly up to every 50 ms. `message` is made only when time is up. */
export async function poll<T>(
  ms: number,
  message: () => string,
  ask: () => Promise<T>,
): Promise<Exclude<T, undefined>> {
  const deadline = Date.now() + ms;
  for (let wait = 2; ; wait = Math.min(wait * 2, 50)) {
    const answer = await ask();
    if (answer) return answer as Exclude<T, undefined>;
    if (Date.now() > deadline) throw new TimeUp(message(), ms);
    await pause(wait);
  }
}
