/**
 * The life of this document's connection to the worker, as a table. Pure: the shell (`client/connection`) does what a state
 * asks for.
 *
 *              need        welcomed    refused   failed   lost     closed
 * idle         connecting  .           .         .        .        .
 * connecting   .           connected   alone     alone    .        idle
 * connected    .           connected   alone     .        lost     idle
 * lost         connecting  connected   alone     alone    .        idle
 * alone        .           .           .         .        .        .
 *
 * `lost`: the worker's generation is dead, and nothing has needed another one yet. `alone` after a failure is left by a new
 * attempt (`retry`); after a refusal it is final.
 */
export type ConnectionState = 'idle' | 'connecting' | 'connected' | 'lost' | 'alone';
export type ConnectionEvent = 'need' | 'welcomed' | 'refused' | 'failed' | 'lost' | 'closed' | 'retry';

export const CONNECTION_TABLE: Readonly<
  Record<ConnectionState, Readonly<Partial<Record<ConnectionEvent, ConnectionState>>>>
> = {
  idle: { need: 'connecting' },
  connecting: { welcomed: 'connected', refused: 'alone', failed: 'alone', closed: 'idle' },
  connected: { welcomed: 'connected', refused: 'alone', lost: 'lost', closed: 'idle' },
  lost: { need: 'connecting', closed: 'idle' },
  alone: { retry: 'connecting', closed: 'idle' },
};

/** The next state; the same one where the table has none. */
export function nextConnectionState(state: ConnectionState, event: ConnectionEvent): ConnectionState {
  return CONNECTION_TABLE[state][event] ?? state;
}
