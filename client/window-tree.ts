/**
 * The other documents of this tab, reached directly through the window tree: frames of this origin that run a relay too.
 *
 * A document shows itself to the others as a {@link Neighbour}, under a registered symbol of its window. Neighbours may be
 * of another version: members may be added, none is changed. Texts and plain data cross; realms do not mix.
 */
import { PRESUMPTION } from '../shared/bounds.ts';
import type { ErrorRecord } from '../shared/errors.ts';
import type { DocumentFacts, End, KeyedCall } from '../shared/protocol.ts';
import type { ToolDefinition } from '../shared/tool.ts';

const NEIGHBOUR = Symbol.for('webmcp-relay');

/** Runs tools of its document. */
export interface Callee {
  /** Its window; `null` if it is in another tab. */
  readonly window: Window | null;
  /** Runs the tool in a task of its own. Answers why not, if it is certain at once. */
  activate(command: KeyedCall, caller: Caller): ErrorRecord | null;
  /** Cancels it, in a task of its own: whoever awaits the call has been told by then. */
  abort(activationId: string): void;
}

/** What the documents of a tab offer each other. */
export interface Neighbour extends Callee {
  readonly window: Window;
  identity(): Omit<DocumentFacts, 'top' | 'url'>;
  tools(): ToolDefinition[];
  /** From when on it is ready, in milliseconds since the epoch: `Infinity` while a promise of it pends. */
  readyFrom(): number;
  /** Something has changed that it may wait for; unless `quiet`, tools too. */
  toolsChanged(quiet?: boolean): void;
  /** Somebody came or goes: looks again in a task of its own, which a document that goes may have none of. */
  lookAgain(): void;
  /** The tab turned out to be a copy: this is what it goes by now. */
  adopt(tabId: string, tabSecret: string): void;
}

/** Whom a callee reports to. */
export interface Caller {
  /** Is it of the callee's own tab? */
  readonly isOwn: boolean;
  /** The callback asks for a token: from now on the worker may know of the call. */
  tokenRequested(): void;
  /** The worker has the call: its outcome comes from there. */
  stored(): void;
  ended(end: End): void;
  /** It was not begun, or its document is gone. */
  failed(error: ErrorRecord): void;
}

declare global {
  interface Window {
    [NEIGHBOUR]?: Neighbour;
  }
}

/** Is this the document of the tab's own window, rather than of a frame? */
export function isTop(): boolean {
  return window.top === window;
}

export function showNeighbour(neighbour: Neighbour): void {
  window[NEIGHBOUR] = neighbour;
}

/** The neighbour in a window; `undefined` if the window is of another origin, gone, or without a relay. */
export function neighbourOf(other: Window): Neighbour | undefined {
  try {
    return other[NEIGHBOUR];
  } catch {
    return undefined;
  }
}

/** All of them, this document included, in tree order. */
export function neighbours(): Neighbour[] {
  return windows().flatMap((other) => neighbourOf(other) ?? []);
}

/** Is there a document of this origin that is only just loading, and may yet turn out to be a neighbour? */
export function isOneArriving(): boolean {
  return windows().some((other) => {
    try {
      const { readyState } = other.document;
      const { responseStart } = other.performance.timing;
      return !other[NEIGHBOUR] && readyState === 'loading' && Date.now() < responseStart + PRESUMPTION;
    } catch {
      return false;
    }
  });
}

/** All of the tab, in tree order. */
function windows(from: Window = window.top ?? window): Window[] {
  // By its indices: a window of another origin cannot be iterated.
  const frames = Array.from({ length: from.length }, (_, index) => windows(from[index] as Window));
  return [from, ...frames.flat()];
}
