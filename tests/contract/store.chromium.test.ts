// The store's promises on Chromium's IndexedDB: the same outcomes as on the fake (C48).
import type { Page as PuppeteerPage } from 'puppeteer-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ChromiumPlace, openInChromium } from './in-chromium.ts';
import type * as Suite from './store.ts';
import { storeScenarios } from './store.ts';

declare const suite: typeof Suite;
declare const clearData: () => Promise<void>;

let place: ChromiumPlace;

beforeAll(async () => {
  place = await openInChromium('./store.ts');
  const raw = place.page.raw as PuppeteerPage;
  const session = await raw.createCDPSession();
  await raw.exposeFunction('clearData', () =>
    session.send('Storage.clearDataForOrigin', { origin: place.site.origin, storageTypes: 'indexeddb' }),
  );
});

afterAll(() => place.close());

test.each(Object.entries(storeScenarios))('%s', async (name, { expected }) => {
  const outcome = await place.page.evaluate((name) => suite.runStoreScenario(name, { clearData }), name);
  expect(outcome).toBe(expected);
});
