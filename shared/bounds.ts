/**
 * The waits and sizes of the runtime (README, Bounds and sizes). Every wait is bounded by one of these;
 * a running callback is not.
 */

/** Milliseconds. */
export interface Bounds {
  /** Registering the worker, reaching it and being welcomed; loading the validator. */
  connecting: number;
  /** A document's acknowledgement of a command. */
  acknowledging: number;
  /** One step of storage. */
  storage: number;
  /** Waiting for documents to be ready, in a listing. */
  readiness: number;
  /** Noticing that a document is gone which the browser cannot be asked about. */
  noticing: number;
}

export const BOUNDS: Readonly<Bounds> = {
  connecting: 5_000,
  acknowledging: 2_000,
  storage: 3_000,
  readiness: 3_000,
  noticing: 5_000,
};

/** Bytes of UTF-8 for texts, counts for the rest. */
export interface Sizes {
  /** An input or a result, as JSON. */
  value: number;
  /** An input schema, as JSON. */
  schema: number;
  /** Tools of one document. */
  tools: number;
  /** Continuation tokens of one execution. */
  tokens: number;
  /** Executions of one calling document that are open at once: that the worker has, and by way of each port. */
  executions: number;
}

export const SIZES: Readonly<Sizes> = {
  value: 4 * 1024 * 1024,
  schema: 256 * 1024,
  tools: 1_024,
  tokens: 16,
  executions: 1_024,
};

/** A document is presumed to become ready (to be parsed, to be followed by the next) within this time, in milliseconds. */
export const PRESUMPTION = 1_000;

/** An acknowledgement that was given in time may be on its way for so long, in milliseconds. */
export const ACKNOWLEDGEMENT_GRACE = 500;

/** A token's life, in milliseconds, unless its tool asks for another one. */
export const DEFAULT_LIFETIME = 60_000;
/** The longest life that a tool may ask for. */
export const LONGEST_LIFETIME = 3_600_000;

/** Is `text` longer than `limit` bytes of UTF-8? Encodes only where the length alone cannot tell. */
export function isLonger(text: string, limit: number): boolean {
  if (text.length > limit) return true;
  return text.length * 3 > limit && new TextEncoder().encode(text).length > limit;
}
