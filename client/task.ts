/** Runs `callback` in a task of its own. Timers are not used: a hidden tab's come late. */
export function nextTask(callback: () => void): void {
  tasks.push(callback);
  channel.port2.postMessage(null);
}

const tasks: (() => void)[] = [];
const channel = new MessageChannel();
channel.port1.onmessage = () => tasks.shift()?.();

/** Resolves with `promise`, or with `undefined` once `bound` milliseconds have passed. */
export async function within<T>(bound: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const passed = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, bound, undefined);
  });
  try {
    return await Promise.race([promise, passed]);
  } finally {
    clearTimeout(timer);
  }
}
