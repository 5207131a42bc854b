/**
 * Is this document ready, and what waits for readiness: promises of the page hold it up, listings wait for it.
 *
 * Owns: the promises that pend, `toolsReady`, what `toolchange` has last said, the listings that wait here.
 * Kept: readiness is compared when a task is over ({@link Readiness.look}), so that what is settled by then changes nothing;
 * while a promise of the tab pends, events are held back; presumptions delay listings only; no wait outlives its bound.
 */
import { PRESUMPTION } from '../shared/bounds.ts';
import { ToolChangeEvent } from './events.ts';
import { within } from './task.ts';
import { neighbours } from './window-tree.ts';

/** Looked at together: all documents in scope, and whether all are ready. */
export interface Sight<T> {
  documents: T[];
  ready: boolean;
}

export interface Observed<T> {
  /** `gone`: this document left while it waited. */
  state: 'ready' | 'timeout' | 'gone';
  documents: T[];
}

export interface Readiness {
  /** From when on it is ready, in milliseconds since the epoch: `Infinity` while a promise pends. */
  readyFrom(): number;
  waitUntil(promise: unknown): void;
  /** Of the tab, as `toolchange` tells of it. */
  toolsReady(): Promise<void>;
  /** Is an event of this tab held back? */
  isHeld(): boolean;
  /** A task is over that changed something listings wait for; unless `quiet`, tools too. */
  look(quiet?: boolean): void;
  /** Lists until everything is ready, for `bound` milliseconds at most. */
  observe<T>(list: () => Promise<Sight<T>>, bound?: number): Promise<Observed<T>>;
  /** The document goes away. */
  leave(): void;
}

/** `usualBound`: of observing. `changed`: has {@link Readiness.look} called, once the task is over. */
export function createReadiness(
  presumedUntil: () => number,
  usualBound: number,
  changed: () => void,
  fire: (event: Event) => void,
): Readiness {
  const leavers = new Set<() => void>();
  let pending = 0;
  /** What the last event said. */
  let told = true;
  let toolsReady = Promise.resolve();
  /** The next `toolsReady`, if readiness turns out to be lost. */
  let renewal: Promise<void> | undefined;
  let wake: () => void;
  let change: Promise<void>;

  const isHeld = (): boolean => neighbours().some(({ readyFrom }) => readyFrom() === Infinity);

  function awaitChange(): void {
    change = new Promise((resolve) => {
      wake = resolve;
    });
  }

  async function whenReady(): Promise<void> {
    while (isHeld()) await change;
  }

  function waitUntil(promise: unknown): void {
    const settled = (): void => {
      pending -= 1;
      changed();
    };
    pending += 1;
    renewal ??= whenReady();
    // Not `Promise.resolve`, which gives back a promise whose `then` may be anything.
    new Promise((resolve) => resolve(promise)).then(settled, settled);
    changed();
  }

  function look(quiet = false): void {
    wake();
    awaitChange();
    const before = told;
    told = !isHeld();
    if (!told) renewal ??= whenReady();
    else {
      if (!before && renewal) toolsReady = renewal;
      renewal = undefined;
    }
    if (told !== before || (told && !quiet)) fire(new ToolChangeEvent('toolchange', { ready: told }));
  }

  async function settle<T>(list: () => Promise<Sight<T>>, bound: number): Promise<Observed<T>> {
    for (const start = performance.now(); ; ) {
      // Taken before it lists, so that no change falls in between.
      const next = change;
      const { documents, ready } = await list();
      const left = bound - (performance.now() - start);
      if (ready || !(left > 0)) return { state: ready ? 'ready' : 'timeout', documents };
      // Nobody tells that a presumption has run out.
      await within(Math.min(left, PRESUMPTION), next);
    }
  }

  awaitChange();

  return {
    readyFrom: () => (pending > 0 ? Infinity : presumedUntil()),
    waitUntil,
    toolsReady: () => renewal ?? toolsReady,
    isHeld,
    look,
    observe: (list, bound = usualBound) =>
      new Promise((resolve, reject) => {
        // Settled from there: a document that is destroyed runs nothing of its own any more.
        const leaver = (): void => resolve({ state: 'gone', documents: [] });
        leavers.add(leaver);
        settle(list, bound)
          .then(resolve, reject)
          .finally(() => leavers.delete(leaver));
      }),
    leave() {
      for (const leaver of leavers) leaver();
      // By then it is out of the tree and holds up nothing.
      for (const { lookAgain } of neighbours()) lookAgain();
    },
  };
}
