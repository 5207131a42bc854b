// A real idle stop: nothing kills the worker and no debugger is attached to it; the browser stops it because nothing has
// happened for half a minute (C23). Then a call works, in another generation. Takes a minute or two.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Browser, launch, type Page } from './driver/index.ts';
import { poll } from './driver/time.ts';
import { RELAY, served } from './pages.ts';
import { type Site, startSite } from './site.ts';

const LONGEST = 150_000;

let site: Site;
let browser: Browser;

beforeAll(async () => {
  site = await startSite();
  site.page(
    '/tool',
    `${RELAY}<script>
    document.modelContext.registerTool({ name: 'tool', description: 'For tests', execute: ({ value }) => value });
  </script>`,
  );
  site.page('/agent', RELAY);
  browser = await launch('chromium');
});

afterAll(async () => {
  await browser?.close();
  await site.close();
});

/** The generations whose lock is held: a worker that is alive holds its own. Asking wakes nobody. */
const alive = (page: Page): Promise<string[]> =>
  page.evaluate(async () => {
    const { held = [] } = await navigator.locks.query();
    return held.map(({ name }) => name as string).filter((name) => name.startsWith('webmcp-relay:'));
  });

const call = (page: Page, value: string): Promise<string | null> =>
  page.evaluate(async (value) => {
    const [tool] = await document.modelContext.getTools({ scope: 'group' });
    return document.modelContext.executeTool(tool as never, { value });
  }, value);

test(
  'after it has idled to death the worker is started by the next call',
  async () => {
    const shop = await browser.newPage();
    await shop.goto(`${site.origin}/tool`);
    await served(shop);
    const agent = await shop.waitForPopup(() => shop.evaluate(() => void window.open('/agent')));
    await served(agent);
    expect(await call(agent, 'first')).toBe('first');
    const [before] = await alive(agent);
    expect(before).toBeDefined();
    await poll(
      LONGEST,
      () => 'The worker was not stopped',
      async () => (await alive(agent)).length === 0,
    );
    expect(await call(agent, 'second')).toBe('second');
    const [after, ...others] = await alive(agent);
    expect(after).toBeDefined();
    expect(after).not.toBe(before);
    expect(others).toEqual([]);
  },
  LONGEST + 30_000,
);
