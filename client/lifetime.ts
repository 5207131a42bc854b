/**
 * The document's own life: when it begins to count, whether it is leaving, when it goes and when it comes back.
 *
 * A document is leaving from a cross-document `navigate` event (where there is no Navigation API, from `beforeunload`) until
 * `pagehide`, or until it is clear that it stays. Without the Navigation API nothing says that it stays: what waits for
 * that then waits for its own bound.
 */
import { PRESUMPTION } from '../shared/bounds.ts';

export interface Lifetime {
  /**
   * Gives a function that says: is it leaving, by a departure that came after this? What begins after a departure did not
   * cause it, and not every navigation that brings no document (a 204, a download) says so.
   */
  watchDeparture(): () => boolean;
  /**
   * Until when it is presumed to be about to be parsed, or to be followed by another document: milliseconds since the epoch,
   * 0 where it is not.
   */
  presumedUntil(): number;
  /** Is it the active document of its window, and shown as such? */
  isActive(): boolean;
  readonly prerendering: boolean;
  /** Resolves at once, or when a prerendered document is activated. */
  readonly activated: Promise<void>;
}

export interface LifetimeListener {
  /** What is presumed is something else now; of a document that leaves, nothing may run after this task. */
  presumed(): void;
  /** A navigation ended without a new document. */
  stayed(): void;
  /** The document goes: for good, or into the back/forward cache. */
  left(): void;
  /** It came back out of that cache. */
  returned(): void;
}

/** What is used of the Navigation API. */
interface NavigationLike extends EventTarget {
  readonly transition: unknown;
}

interface NavigateEventLike extends Event {
  readonly destination: { sameDocument: boolean };
  readonly downloadRequest: string | null;
  readonly hashChange: boolean;
}

export function watchLifetime(listener: LifetimeListener): Lifetime {
  const { prerendering = false } = document as { prerendering?: boolean };
  /** Until when it is presumed to be about to be parsed; 0 once it is. */
  let parsedBy = document.readyState === 'complete' ? 0 : Date.now() + PRESUMPTION;
  /** While it is leaving, until when another document is presumed to follow; else 0. */
  let leaving = 0;
  let departures = 0;
  let gone = false;

  function depart(): void {
    leaving = Date.now() + PRESUMPTION;
    departures += 1;
    listener.presumed();
  }

  function stay(): void {
    if (!leaving || gone) return;
    leaving = 0;
    listener.stayed();
  }

  const { navigation } = window as { navigation?: NavigationLike };
  if (navigation === undefined) {
    addEventListener('beforeunload', depart);
  } else {
    navigation.addEventListener('navigate', (event) => {
      const { destination, hashChange, downloadRequest } = event as NavigateEventLike;
      if (!(destination.sameDocument || hashChange) && downloadRequest === null) depart();
    });
    // An intercepted navigation succeeds in this document; one that was stopped, or brought no document, fails here.
    navigation.addEventListener('navigatesuccess', stay);
    navigation.addEventListener('navigateerror', stay);
  }
  const parsed = (): void => {
    parsedBy = 0;
    listener.presumed();
  };
  // Whether the first has been already, nothing says. What the page's own listeners do comes before it is said to be parsed.
  for (const type of ['DOMContentLoaded', 'load']) {
    addEventListener(type, () => addEventListener(type, parsed), { capture: true });
  }
  addEventListener('pagehide', () => {
    gone = true;
    listener.left();
  });
  addEventListener('pageshow', (event) => {
    if (!(event as PageTransitionEvent).persisted) return;
    gone = false;
    leaving = 0;
    listener.returned();
  });
  return {
    watchDeparture() {
      const before = departures;
      return () => leaving > 0 && departures > before;
    },
    presumedUntil: () => Math.max(parsedBy, leaving),
    isActive: () => !gone && isFullyActive(),
    prerendering,
    activated: new Promise((resolve) => {
      if (prerendering) document.addEventListener('prerenderingchange', () => resolve());
      else resolve();
    }),
  };
}

/** A removed frame keeps its script and loses its window. */
export function isFullyActive(): boolean {
  return document.defaultView !== null && window.top !== null;
}
