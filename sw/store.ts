/**
 * The database: one record an execution, with its activations and tokens inside, and an index over the tokens' digests.
 *
 * Owns: opening, the one kind of transaction that there is, and what can go wrong with either. Only the worker opens it.
 * Kept: a transaction reads, decides and writes without awaiting anything foreign in between, so of two redemptions in the
 * same instant, in whichever worker, one wins; every step is bounded; no plain text of a value is ever written.
 */
import { type DBSchema, type IDBPDatabase, type IDBPObjectStore, openDB } from 'idb';
import { type ErrorRecord, failure } from '../shared/errors.ts';
import type { ExecutionId, TokenDigest } from '../shared/ids.ts';
import { type Clock, within } from './clock.ts';
import type { Execution } from './core/state.ts';
import { sealedOf } from './seal.ts';

export const DATABASE = 'webmcp-relay';
/** Of the schema; apart from the protocol's. An upgrade keeps records. */
const SCHEMA_VERSION = 1;
const EXECUTIONS = 'executions';

interface Schema extends DBSchema {
  executions: {
    key: ExecutionId;
    value: Execution & { digests: TokenDigest[] };
    indexes: { digests: TokenDigest };
  };
}
type Database = IDBPDatabase<Schema>;
type Executions = IDBPObjectStore<Schema, ['executions'], 'executions', 'readwrite'>;

export interface Query {
  ids: readonly ExecutionId[];
  digest: TokenDigest | null;
  /** Given where `decide` knows by itself what the query names, unless a record says more: does it? */
  isNews?: ((record: Execution) => boolean) | undefined;
  /** Must it outlive a loss of power? Everything outlives the worker's death and the browser's. */
  strict?: boolean;
}

/** What a transaction is to write. */
export interface Writes {
  put: readonly Execution[];
  remove: readonly ExecutionId[];
}

export interface Store {
  /** All records. Rejects with whatever went wrong: {@link storageFailure} puts a name to it. */
  load(): Promise<Execution[]>;
  /**
   * One transaction: reads the records that the query names, lets `decide` choose what to write (it must not await, and may
   * be asked more than once), and resolves with its decision once all is committed. If it rejects, nothing was written.
   */
  transact<T extends Writes>(query: Query, decide: (records: Execution[]) => T): Promise<T>;
  close(): void;
}

/** Opens lazily, and again whenever the browser has closed the connection; a failed opening is not remembered. */
export function createStore(clock: Clock, bound: number, factory = openDatabase): Store {
  let opening: Promise<Database> | undefined;

  /** Opens, or waits for the opening that is under way. A failed or closed one is forgotten, and no other with it. */
  function connection(): Promise<Database> {
    if (opening !== undefined) return opening;
    const forget = () => {
      if (opening === mine) opening = undefined;
    };
    const mine = factory(forget);
    mine.catch(forget);
    opening = mine;
    return mine;
  }

  function close(): void {
    opening?.then(
      (database) => database.close(),
      () => {},
    );
    opening = undefined;
  }

  /**
   * What comes too late is closed and aborted: nothing commits behind the back of whoever was told that it failed. A connection
   * that was closed under us says so by failing: once, a fresh one is tried.
   */
  function bounded<T>(use: (database: Database, signal: AbortSignal) => Promise<T>): Promise<T> {
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const attempt = async () => {
      const database = await connection();
      signal.throwIfAborted();
      return use(database, signal);
    };
    const again = (error: unknown) => {
      if (signal.aborted || !isConnectionLoss(error)) throw error;
      opening = undefined;
      return attempt();
    };
    return within(clock, bound, attempt().catch(again), () => {
      giveUp.abort();
      close();
      throw new Error(`Storage did not answer within ${bound} ms.`);
    });
  }

  return {
    load: () => bounded((database) => database.transaction(EXECUTIONS).store.getAll()),
    transact: (query, decide) =>
      bounded((database, signal) => runTransaction(database, query, decide, signal)),
    close,
  };
}

function openDatabase(onClosed: () => void): Promise<Database> {
  return openDB<Schema>(DATABASE, SCHEMA_VERSION, {
    upgrade(database) {
      const executions = database.createObjectStore(EXECUTIONS, { keyPath: 'id' });
      executions.createIndex('digests', 'digests', { multiEntry: true });
    },
    // Another worker wants a newer schema: make room; the next step opens again, or is refused.
    blocking(_current, _wanted, event) {
      onClosed();
      (event.target as IDBDatabase).close();
    },
    terminated: onClosed,
  });
}

/**
 * Where what the query names may be known already, `decide` is asked at once, with no records, and what it writes waits
 * behind the reading: should that bring news (another worker's), the transaction is thrown away and begun again.
 */
async function runTransaction<T extends Writes>(
  database: Database,
  query: Query,
  decide: (records: Execution[]) => T,
  signal: AbortSignal,
): Promise<T> {
  const { isNews } = query;
  const transaction = database.transaction(EXECUTIONS, 'readwrite', {
    durability: query.strict ? 'strict' : 'relaxed',
  });
  // A transaction that outlives its bound must not commit behind the caller's back.
  signal.addEventListener('abort', () => abort(transaction));
  transaction.done.catch(() => {});
  try {
    const reading = readRecords(transaction.store, query);
    reading.catch(() => {});
    const decision = decide(isNews ? [] : await reading);
    for (const execution of decision.put) transaction.store.put(recordOf(execution)).catch(() => {});
    for (const id of decision.remove) transaction.store.delete(id).catch(() => {});
    if (isNews && (await reading).some(isNews)) {
      abort(transaction);
      return runTransaction(database, { ...query, isNews: undefined }, decide, signal);
    }
    await transaction.done;
    return decision;
  } catch (error) {
    // A record that cannot be cloned throws at once: what was put beside it goes too.
    abort(transaction);
    throw error;
  }
}

function abort(transaction: { abort(): void }): void {
  try {
    transaction.abort();
  } catch {
    // It is over already.
  }
}

async function readRecords(executions: Executions, { ids, digest }: Query): Promise<Execution[]> {
  const requests = ids.map((id) => executions.get(id));
  if (digest !== null) requests.push(executions.index('digests').get(digest));
  const found = await Promise.all(requests);
  return found.filter((record) => record !== undefined);
}

/** What is written of an execution: everything but the plain text of its values. */
function recordOf(execution: Execution): Execution & { digests: TokenDigest[] } {
  return { ...sealedOf(execution), digests: execution.tokens.map(({ digest }) => digest) };
}

function isConnectionLoss(error: unknown): boolean {
  const { name = '' } = (error ?? {}) as { name?: string };
  return ['InvalidStateError', 'AbortError', 'TransactionInactiveError'].includes(name);
}

/** What is told of a step of storage that failed: nothing was written. */
export function storageFailure(error: unknown): ErrorRecord {
  const isFull = (error as { name?: unknown } | null)?.name === 'QuotaExceededError';
  return failure(isFull ? 'storage-full' : 'storage-unavailable', false, String(error));
}
