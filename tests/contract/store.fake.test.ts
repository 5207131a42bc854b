// The store's promises on fake-indexeddb.
import { forceCloseDatabase, IDBFactory } from 'fake-indexeddb';
import 'fake-indexeddb/auto';
import { beforeEach, expect, test } from 'vitest';
import { DATABASE } from '../../sw/store.ts';
import { runStoreScenario, storeScenarios } from './store.ts';

const open = new Set<IDBDatabase>();

beforeEach(() => {
  open.clear();
  globalThis.indexedDB = new IDBFactory();
  const opening = indexedDB.open;
  indexedDB.open = (...args) => {
    const request = opening.apply(indexedDB, args);
    request.addEventListener('success', () => open.add(request.result));
    return request;
  };
});

async function clearData(): Promise<void> {
  for (const database of open) forceCloseDatabase(database as never);
  await new Promise((resolve) => {
    indexedDB.deleteDatabase(DATABASE).onsuccess = resolve;
  });
}

test.each(Object.entries(storeScenarios))('%s', async (name, { expected }) => {
  expect(await runStoreScenario(name, { clearData })).toBe(expected);
});
