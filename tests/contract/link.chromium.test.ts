// The link's promises between a page and a service worker of Chromium: the same outcomes as in Node (C48).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundle, type ChromiumPlace, openInChromium } from './in-chromium.ts';
import type * as Suite from './link.ts';
import { linkScenarios } from './link.ts';

declare const suite: typeof Suite;

let place: ChromiumPlace;

beforeAll(async () => {
  const end = `${await bundle('./link-worker.ts', 'end')}
    addEventListener('install', () => skipWaiting());
    addEventListener('message', (event) => end.serve(event));`;
  place = await openInChromium('./link.ts', { '/end.js': end });
  await place.page.evaluate(async () => {
    await navigator.serviceWorker.register('/end.js');
    await navigator.serviceWorker.ready;
  });
});

afterAll(() => place.close());

test.each(Object.entries(linkScenarios))('%s', async (name, { expected }) => {
  const outcome = await place.page.evaluate(async (name) => {
    const { active } = await navigator.serviceWorker.ready;
    return suite.runLinkScenario(name, { worker: active as ServiceWorker });
  }, name);
  expect(outcome).toBe(expected);
});
