// What the store promises, as scenarios that run on the fake and on a real browser's IndexedDB alike. Each gives a few words
// that say how it went; both must say the same. Imports nothing of a test runner: it is bundled and run in a worker too.
import { freshSecret } from '../../shared/ids.ts';
import { seal } from '../../shared/seal.ts';
import type { Clock } from '../../sw/clock.ts';
import type { Execution } from '../../sw/core/state.ts';
import { createStore, DATABASE, type Store, storageFailure } from '../../sw/store.ts';
import { anActivation, anExecution, aToken } from '../core/records.ts';

/** What only the place where the scenarios run can do. */
export interface StorePlace {
  /** Closes every connection as a browser does on its own (its disk is full, the site's data is cleared), and loses the data. */
  clearData(): Promise<void>;
}

export interface Scenario<Place> {
  run(place: Place): Promise<string>;
  /** What it says where all is well. */
  expected: string;
}

const BOUND = 1_000;
type Factory = NonNullable<Parameters<typeof createStore>[2]>;

/** A clock that stands still until it is turned. */
function createClock(): Clock & { turn(ms: number): void } {
  let now = 0;
  const timers = new Set<{ at: number; callback(): void }>();
  return {
    now: () => now,
    after(delay, callback) {
      const timer = { at: now + delay, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    turn(ms) {
      now += ms;
      for (const timer of [...timers].filter(({ at }) => at <= now)) {
        timers.delete(timer);
        // Whatever a timer's callback throws goes to nobody, as it does with the browser's.
        try {
          timer.callback();
        } catch {}
      }
    },
  };
}

const newStore = (clock: Clock = createClock(), factory?: Factory) => createStore(clock, BOUND, factory);

const write = (store: Store, ...put: Execution[]) =>
  store.transact({ ids: [], digest: null }, () => ({ put, remove: [] }));

const read = async (store: Store, id: string): Promise<Execution | undefined> => {
  let found: Execution | undefined;
  await store.transact({ ids: [id], digest: null }, ([record]) => {
    found = record;
    return { put: [], remove: [] };
  });
  return found;
};

const findByDigest = async (store: Store, digest: string): Promise<string> => {
  let found = '';
  await store.transact({ ids: [], digest }, (records) => {
    found = records.map(({ id }) => id).join();
    return { put: [], remove: [] };
  });
  return found || 'none';
};

/** How a promise of the store ends, in a word. */
const ending = (promise: Promise<unknown>): Promise<string> =>
  Promise.race([
    promise.then(
      () => 'ok',
      (error) => storageFailure(error).reason,
    ),
    // The bound has passed long ago by the store's own clock.
    new Promise<string>((resolve) => setTimeout(resolve, 2_000, 'never told')),
  ]);

const ids = async (store: Store): Promise<string> =>
  (await store.load()).map(({ id }) => id).join() || 'none';

/** Lets whatever is under way in the database come to its end: a transaction that starts now ends after those before it. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await ids(createStore(createClock(), BOUND));
}

const opened = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** A connection of somebody else's, who does not know when to close. */
const stubborn = (): Promise<IDBDatabase> => opened(indexedDB.open(DATABASE));

/** Keeps the store locked by a transaction that does not end, until `release` is called. */
async function occupy(): Promise<{ release(): void }> {
  const database = await stubborn();
  const transaction = database.transaction('executions', 'readwrite');
  let isHeld = true;
  const linger = () => {
    if (isHeld) transaction.objectStore('executions').count().onsuccess = linger;
  };
  linger();
  return {
    release() {
      isHeld = false;
      database.close();
    },
  };
}

/** A factory whose answer is given by hand. */
function createHand(): { factory: Factory; asked: Promise<void>; give(database: object): Promise<void> } {
  let give = (_: object) => {};
  let ask = () => {};
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const given = new Promise<object>((resolve) => {
    give = resolve;
  });
  const factory = () => {
    ask();
    return given as never;
  };
  return {
    factory,
    asked,
    async give(database) {
      give(database);
      await given;
      await new Promise((resolve) => setTimeout(resolve));
    },
  };
}

/** A database whose transactions end in this way, once everything was asked of them. */
function fakeDatabase(done: () => Promise<void>): object {
  const store = { get: done, put: done, delete: done, index: () => ({ get: done }) };
  return { close() {}, transaction: () => ({ done: done(), abort() {}, store }) };
}

const failing = (name: string) => fakeDatabase(() => Promise.reject(new DOMException('of the test', name)));

export const storeScenarios: Record<string, Scenario<StorePlace>> = {
  'what is written survives the store that wrote it': {
    async run() {
      const first = newStore();
      await write(first, anExecution({ id: 'a', call: { toolName: 'kept' } }));
      first.close();
      const second = newStore();
      return `${await ids(second)}: ${(await read(second, 'a'))?.call.toolName}`;
    },
    expected: 'a: kept',
  },
  'what is removed is gone, and nothing else': {
    async run() {
      const store = newStore();
      await write(store, anExecution({ id: 'a' }), anExecution({ id: 'b' }));
      await store.transact({ ids: [], digest: null }, () => ({ put: [], remove: ['a'] }));
      return ids(store);
    },
    expected: 'b',
  },
  'a store can be used again after it was closed': {
    async run() {
      const store = newStore();
      store.close();
      await write(store, anExecution({ id: 'a' }));
      store.close();
      return ids(store);
    },
    expected: 'a',
  },
  'an execution is found by the digest of each of its tokens, and by no other': {
    async run() {
      const store = newStore();
      const tokens = [aToken({ digest: 'one' }), aToken({ digest: 'two' })];
      await write(store, anExecution({ id: 'a', tokens }), anExecution({ id: 'b' }));
      const digests = ['one', 'two', 'three', ''];
      return (await Promise.all(digests.map((digest) => findByDigest(store, digest)))).join(' ');
    },
    expected: 'a a none none',
  },
  'no plain text of a value is written, its sealed half is': {
    async run() {
      const store = newStore();
      const SECRET = 'card 4111 1111';
      const value = { text: SECRET, sealed: await seal(JSON.stringify(SECRET), freshSecret()) };
      const error = { text: SECRET, sealed: value.sealed };
      await write(
        store,
        anExecution({
          id: 'a',
          call: { input: value },
          answer: value,
          outputs: [{ activationId: 'x', value }],
          activations: [
            anActivation({
              state: 'held',
              held: { type: 'threw', reason: 'tool-failed', error, leaving: true },
            }),
          ],
          settled: {
            ending: { type: 'failed', reason: 'tool-failed', started: true, detail: error },
            as: 'tool-failed',
            keepUntil: 0,
          },
        }),
        anExecution({
          id: 'b',
          settled: { ending: { type: 'result', value }, as: 'result', keepUntil: 0 },
        }),
      );
      const database = await stubborn();
      const records = await opened(database.transaction('executions').objectStore('executions').getAll());
      database.close();
      const { found, boxes } = inspect(records, SECRET);
      const back = await read(store, 'a');
      return `${found} plain texts, ${boxes} boxes, input ${back?.call.input.text === undefined ? 'sealed' : 'open'}`;
    },
    // Seven values, and the sealed key of each of the two executions.
    expected: '0 plain texts, 9 boxes, input sealed',
  },
  'of a hundred redemptions at once, over two stores, one wins (C44)': {
    async run() {
      const stores = [newStore(), newStore()];
      await write(stores[0] as Store, anExecution({ id: 'a', tokens: [aToken({ digest: 'one' })] }));
      const attempts = Array.from({ length: 100 }, async (_, attempt) => {
        const { won } = await (stores[attempt % 2] as Store).transact(
          { ids: [], digest: 'one' },
          ([record]) => {
            const [token] = record?.tokens ?? [];
            if (record === undefined || token?.state !== 'outstanding')
              return { put: [], remove: [], won: false };
            const tokens = [{ ...token, state: 'redeemed' as const, redeemedBy: `${attempt}` }];
            return { put: [{ ...record, tokens }], remove: [], won: true };
          },
        );
        return won;
      });
      const won = (await Promise.all(attempts)).filter(Boolean);
      return `${won.length} won`;
    },
    expected: '1 won',
  },
  'no change is lost among a hundred at once': {
    async run() {
      const stores = [newStore(), newStore()];
      await write(stores[0] as Store, anExecution({ id: 'a', revision: 0 }));
      const increments = Array.from({ length: 100 }, (_, turn) =>
        (stores[turn % 2] as Store).transact({ ids: ['a'], digest: null }, ([record]) => ({
          put: record ? [{ ...record, revision: record.revision + 1 }] : [],
          remove: [],
        })),
      );
      await Promise.all(increments);
      return `revision ${(await read(newStore(), 'a'))?.revision}`;
    },
    expected: 'revision 100',
  },
  'what seems known is decided without the records, and again with them where they say more': {
    async run() {
      const store = newStore();
      await write(store, anExecution({ id: 'a', revision: 5 }));
      const asked: string[] = [];
      const decide = (revision: number) => (records: Execution[]) => {
        asked.push(records.map((record) => record.revision).join() || 'none');
        const [record = anExecution({ id: 'b', revision })] = records;
        return { put: [{ ...record, revision: record.revision + 1 }], remove: [] };
      };
      const than = (known: number) => (record: Execution) => record.revision > known;
      await store.transact({ ids: ['a'], digest: null, isNews: than(5) }, decide(5));
      await store.transact({ ids: ['a'], digest: null, isNews: than(4) }, decide(7));
      const [a, b] = [await read(store, 'a'), await read(store, 'b')];
      return `asked with ${asked.join(', ')}: a ${a?.revision}, b ${b?.revision}`;
    },
    expected: 'asked with none, none, 5: a 6, b 6',
  },
  'a decision that throws is a failure that writes nothing': {
    async run() {
      const store = newStore();
      const failed = store.transact({ ids: [], digest: null }, () => {
        throw new RangeError('no');
      });
      return `${await ending(failed)}, ${await ids(store)}`;
    },
    expected: 'storage-unavailable, none',
  },
  'a record that cannot be stored takes those beside it along': {
    async run() {
      const store = newStore();
      const monster = { ...anExecution({ id: 'b' }), toolName: (() => {}) as never };
      const failed = write(store, anExecution({ id: 'a' }), monster);
      return `${await ending(failed)}, ${await ids(store)}`;
    },
    expected: 'storage-unavailable, none',
  },
  'an opening that is refused is told, and not remembered (C45)': {
    async run() {
      let refusals = 0;
      const factory = async () => {
        refusals += 1;
        // One step may try twice.
        if (refusals <= 2) throw new DOMException('private', 'InvalidStateError');
        return fakeDatabase(async () => {}) as never;
      };
      const store = newStore(createClock(), factory);
      return `${await ending(write(store, anExecution()))}, then ${await ending(write(store, anExecution()))}`;
    },
    expected: 'storage-unavailable, then ok',
  },
  'a database that never opens is bounded, and what comes too late is closed and writes nothing': {
    async run() {
      const clock = createClock();
      const hand = createHand();
      const store = newStore(clock, hand.factory);
      const writing = ending(write(store, anExecution({ id: 'a' })));
      await hand.asked;
      clock.turn(BOUND);
      const told = await writing;
      let touched = 0;
      let closed = 0;
      await hand.give({
        close: () => {
          closed += 1;
        },
        transaction() {
          touched += 1;
          throw new DOMException('too late', 'UnknownError');
        },
      });
      return `${told}, ${touched} transactions, ${closed > 0 ? 'closed' : 'left open'}`;
    },
    expected: 'storage-unavailable, 0 transactions, closed',
  },
  'a transaction that does not come to its turn is bounded, and writes nothing afterwards': {
    async run() {
      const clock = createClock();
      const store = newStore(clock);
      await ids(store);
      const occupied = await occupy();
      const writing = ending(write(store, anExecution({ id: 'a' })));
      await new Promise((resolve) => setTimeout(resolve, 20));
      clock.turn(BOUND);
      const told = await writing;
      await new Promise((resolve) => setTimeout(resolve, 20));
      occupied.release();
      await settle();
      return `${told}, then ${await ids(newStore())}`;
    },
    expected: 'storage-unavailable, then none',
  },
  'full storage is called so': {
    async run() {
      const full = async () => failing('QuotaExceededError') as never;
      return ending(write(newStore(createClock(), full), anExecution()));
    },
    expected: 'storage-full',
  },
  'an unknown failure of a transaction is told, and not tried again': {
    async run() {
      let asked = 0;
      const factory = async () => {
        asked += 1;
        return failing('UnknownError') as never;
      };
      return `${await ending(write(newStore(createClock(), factory), anExecution()))}, asked ${asked} time`;
    },
    expected: 'storage-unavailable, asked 1 time',
  },
  'a connection that was closed while idle is opened again (C21)': {
    async run({ clearData }) {
      const store = newStore();
      await write(store, anExecution({ id: 'a' }));
      await clearData();
      const told = await ending(write(store, anExecution({ id: 'b' })));
      return `${told}, ${await ids(store)}`;
    },
    expected: 'ok, b',
  },
  'connections that are closed during transactions: each settles, and the next one works (C21)': {
    async run({ clearData }) {
      const store = newStore();
      await write(store, anExecution({ id: 'a' }));
      const writing = Array.from({ length: 20 }, (_, turn) =>
        ending(write(store, anExecution({ id: `w${turn}` }))),
      );
      await clearData();
      const told = new Set(await Promise.all(writing));
      told.delete('ok');
      told.delete('storage-unavailable');
      await ending(write(store, anExecution({ id: 'later' })));
      return `${told.size} otherwise, later: ${(await read(store, 'later'))?.id}`;
    },
    expected: '0 otherwise, later: later',
  },
  'an idle store makes room for a newer schema; then it is refused, and wipes nothing (C43a)': {
    async run() {
      const store = newStore();
      await write(store, anExecution({ id: 'a' }));
      const newer = await opened(indexedDB.open(DATABASE, 99));
      const told = await ending(write(store, anExecution({ id: 'b' })));
      const kept = await opened(newer.transaction('executions').objectStore('executions').getAllKeys());
      newer.close();
      return `${told}, kept ${kept}`;
    },
    expected: 'storage-unavailable, kept a',
  },
  'behind an upgrade that somebody blocks, the store is bounded, and writes nothing later (C43b, c)': {
    async run() {
      const first = newStore();
      await write(first, anExecution({ id: 'a' }));
      first.close();
      const holder = await stubborn();
      const upgrading = opened(indexedDB.open(DATABASE, 99));
      const clock = createClock();
      const store = newStore(clock);
      const writing = ending(write(store, anExecution({ id: 'b' })));
      await new Promise((resolve) => setTimeout(resolve, 20));
      clock.turn(BOUND);
      const told = await writing;
      holder.close();
      const newer = await upgrading;
      await new Promise((resolve) => setTimeout(resolve, 20));
      const kept = await opened(newer.transaction('executions').objectStore('executions').getAllKeys());
      newer.close();
      return `${told}, kept ${kept}`;
    },
    expected: 'storage-unavailable, kept a',
  },
};

/** How often a text is in there, as text or as its bytes, and how many sealed boxes are. */
function inspect(data: unknown, text: string): { found: number; boxes: number } {
  let found = 0;
  let boxes = 0;
  const visit = (item: unknown): void => {
    if (typeof item === 'string' && item.includes(text)) found += 1;
    const isBytes = item instanceof ArrayBuffer || ArrayBuffer.isView(item);
    if (isBytes && new TextDecoder().decode(item as ArrayBuffer).includes(text)) found += 1;
    if (typeof item !== 'object' || item === null || isBytes) return;
    if ('iv' in item && 'box' in item) boxes += 1;
    for (const member of Object.values(item)) visit(member);
  };
  visit(data);
  return { found, boxes };
}

/** Runs one scenario on an empty database. */
export async function runStoreScenario(name: string, place: StorePlace): Promise<string> {
  await opened(indexedDB.deleteDatabase(DATABASE));
  const { run } = storeScenarios[name] as Scenario<StorePlace>;
  return run(place).catch((error) => `threw ${error}`);
}
