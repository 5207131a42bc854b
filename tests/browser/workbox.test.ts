// A site that has a worker already, made by Workbox's own generateSW, and imports the relay into it: both work, and neither
// disturbs the other (C09).
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateSW } from 'workbox-build';
import { type Browser, type Engine, engines, launch, type Page } from './driver/index.ts';
import { served } from './pages.ts';
import { type Site, startSite } from './site.ts';

const RELAY = '<script src="/webmcp-relay.js" data-register="false"></script>';
const REGISTER = `<script>
  navigator.serviceWorker.getRegistration().then((found) => found ?? navigator.serviceWorker.register('/host-sw.js'));
</script>`;

let folder: string;
let site: Site;

/** Workbox's worker for a site whose precached file has this text. */
async function generate(text: string): Promise<string> {
  writeFileSync(join(folder, 'precached.txt'), text);
  const swDest = join(folder, 'sw.js');
  await generateSW({
    swDest,
    globDirectory: folder,
    globPatterns: ['*.txt'],
    importScripts: ['/host-extra.js', '/webmcp-relay-sw.js'],
    inlineWorkboxRuntime: true,
    sourcemap: false,
    mode: 'development',
  });
  return readFileSync(swDest, 'utf8');
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'relay-workbox-'));
  site = await startSite();
  site.route('/host-sw.js', await generate('the first version'));
  site.route('/precached.txt', 'the first version');
  site.route(
    '/host-extra.js',
    `const heard = [];
    addEventListener('message', ({ data, ports }) => {
      if (String(data?.type).startsWith('host:')) heard.push(data.type);
      if (data?.type === 'host:ask') ports[0].postMessage(heard);
    });`,
  );
  site.page('/conflict', `<script src="/webmcp-relay.js"></script>`);
  site.page('/agent', RELAY + REGISTER);
  site.page(
    '/billing',
    `${RELAY}${REGISTER}<script>
    document.modelContext.registerTool({
      name: 'checkout',
      description: 'Buys what is in the cart',
      async execute(input, { invocation }) {
        const token = await invocation.requestToken();
        location.href = webmcpRelay.withToken('/shipping', token);
        return 'billed ' + input.address;
      },
    });
  </script>`,
  );
  site.page(
    '/shipping',
    `${RELAY}<script>
    document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input, { invocation }) => {
      const token = await invocation.requestToken();
      location.href = webmcpRelay.withToken('/confirmation', token);
      return 'shipped ' + input.address;
    });
  </script>`,
  );
  site.page(
    '/confirmation',
    `${RELAY}<script>
    document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input) => ({ receipt: input.address }));
  </script>`,
  );
});

afterAll(async () => {
  await site?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function checkout(shop: Page, agent: Page, address: string): Promise<unknown> {
  await shop.goto(`${site.origin}/billing`);
  expect(await served(shop)).toBe('shared');
  return agent.evaluate(async (address) => {
    const [tool] = await document.modelContext.getTools({ scope: 'group' });
    const outputs: unknown[] = [];
    const onoutput = (text: unknown) => outputs.push(text);
    const result = await document.modelContext.executeTool(tool as never, { address }, { onoutput });
    return [...outputs, result];
  }, address);
}

async function openShop(engine: Engine): Promise<{ browser: Browser; shop: Page; agent: Page }> {
  const browser = await launch(engine);
  const shop = await browser.newPage();
  await shop.goto(`${site.origin}/billing`);
  expect(await served(shop)).toBe('shared');
  const agent = await shop.waitForPopup(() => shop.evaluate(() => void window.open('/agent')));
  expect(await served(agent)).toBe('shared');
  return { browser, shop, agent };
}

const scriptURL = (page: Page) =>
  page.evaluate(async () => (await navigator.serviceWorker.getRegistration())?.active?.scriptURL);

describe.each(engines)('%s', (engine) => {
  test('the checkout goes over three pages', async () => {
    const { browser, shop, agent } = await openShop(engine);
    try {
      expect(await checkout(shop, agent, 'Elm 1')).toEqual([
        'billed Elm 1',
        'shipped Elm 1',
        '{"receipt":"Elm 1"}',
      ]);
    } finally {
      await browser.close();
    }
  });
});

describe("beside the host's own", () => {
  let browser: Browser;
  let shop: Page;

  beforeAll(async () => {
    ({ browser, shop } = await openShop('chromium'));
  });

  afterAll(() => browser?.close());

  test('precaching works', async () => {
    await shop.reload();
    // From now on it is in the cache or nowhere.
    site.route('/precached.txt', { status: 410 });
    const text = shop.evaluate(async () => {
      const response = await fetch('/precached.txt');
      return response.ok ? response.text() : `status ${response.status}`;
    });
    expect(await text).toBe('the first version');
  });

  test('its message listener hears what it is told', async () => {
    const heard = await shop.evaluate(async () => {
      const { active } = await navigator.serviceWorker.ready;
      const { port1, port2 } = new MessageChannel();
      const answer = new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data);
      });
      active?.postMessage({ type: 'host:one' });
      active?.postMessage({ type: 'host:ask' }, [port2]);
      return answer;
    });
    expect(heard).toEqual(['host:one', 'host:ask']);
  });

  test('pages that would register a worker of their own leave it alone, and use it', async () => {
    const page = await browser.newPage();
    for (let load = 0; load < 10; load += 1) await page.goto(`${site.origin}/conflict`);
    expect(await served(page)).toBe('shared');
    expect(await scriptURL(page)).toBe(`${site.origin}/host-sw.js`);
    await page.close();
  });
});

test("the host's next version waits until it is told to go on, and then the relay goes on in it", async () => {
  // In a browser of its own: after many navigations Chromium's own look for an update holds up registrations, for minutes.
  site.route('/precached.txt', 'the first version');
  const { browser, shop, agent } = await openShop('chromium');
  const generation = () =>
    agent.evaluate(async () => {
      const { held = [] } = await navigator.locks.query();
      return held.map(({ name }) => name).filter((name) => name?.startsWith('webmcp-relay:'));
    });
  await checkout(shop, agent, 'Elm 2');
  const before = await generation();
  site.route('/host-sw-2.js', await generate('the second version'));
  site.route('/precached.txt', 'the second version');
  await shop.evaluate(async () => {
    const registration = await navigator.serviceWorker.register('/host-sw-2.js');
    const until = (state: string, worker: ServiceWorker) =>
      new Promise<void>((resolve) => {
        const check = () => worker.state === state && resolve();
        worker.addEventListener('statechange', check);
        check();
      });
    const next = (registration.installing ?? registration.waiting) as ServiceWorker;
    await until('installed', next);
    next.postMessage({ type: 'SKIP_WAITING' });
    await until('activated', next);
  });
  expect(await checkout(shop, agent, 'Elm 3')).toEqual([
    'billed Elm 3',
    'shipped Elm 3',
    '{"receipt":"Elm 3"}',
  ]);
  const after = await generation();
  expect(after).not.toEqual(before);
  expect(await shop.evaluate(() => fetch('/precached.txt').then((response) => response.text()))).toBe(
    'the second version',
  );
  await browser.close();
});
