// What the bare pages and their worker say to each other.

export type Command =
  | { type: 'pass'; id: number; from: string; to: string; text: string }
  | { type: 'store'; text: string }
  | { type: 'redeem'; key: string };

export interface Sealed {
  iv: Uint8Array<ArrayBuffer>;
  box: ArrayBuffer;
}

export const BARE_LOCK = 'bare-worker';
export const RECORD_ID = 'record';
