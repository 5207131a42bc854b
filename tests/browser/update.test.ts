// A newer worker: the page registers only where there is none, so it is the browser that looks for it, on a navigation. In every
// engine.
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, engines, launch, type Page } from './driver/index.ts';
import { checkoutPages, RELAY, served } from './pages.ts';
import { type Site, startSite } from './site.ts';

const WORKER = readFileSync(new URL('../../dist/webmcp-relay-sw.js', import.meta.url), 'utf8');

let site: Site;
let version = 0;
let requests = 0;

beforeAll(async () => {
  site = await startSite();
  checkoutPages(site);
  // It only listens: a worker that is asked again and again is not idle, and Chromium waits with the update until it is.
  site.page(
    '/watching',
    `<script>
      const changed = new Promise((resolve) => {
        navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true });
      });
    </script>${RELAY}`,
  );
  site.route('/webmcp-relay-sw.js', () => {
    requests += 1;
    const answer = `addEventListener('message', ({ data, ports: [port] }) => data === 'version?' && port.postMessage(${version}));`;
    return { body: answer + WORKER, headers: { 'cache-control': 'no-cache' } };
  });
});

afterAll(() => site.close());

async function activeVersion(): Promise<number> {
  const registration = await navigator.serviceWorker.getRegistration();
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = ({ data }) => resolve(data);
    registration?.active?.postMessage('version?', [port2]);
  });
}

describe.each(engines)('%s', (engine) => {
  let browser: Browser;
  let shop: Page;

  beforeAll(async () => {
    version = 1;
    browser = await launch(engine);
    shop = await browser.newPage();
  });

  afterEach(() => shop.goto('about:blank'));
  afterAll(() => browser?.close());

  test('a navigation brings it, and it carries a checkout to its end', async () => {
    await shop.goto(`${site.origin}/agent`);
    expect(await served(shop)).toBe('shared');
    expect(await shop.evaluate(activeVersion)).toBe(1);
    const before = requests;
    version = 2;
    await shop.goto(`${site.origin}/watching`);
    await shop.evaluate('changed.then(() => {})');
    expect(await shop.evaluate(activeVersion)).toBe(2);
    expect(requests).toBe(before + 1);
    await shop.goto(`${site.origin}/billing`);
    expect(await served(shop)).toBe('shared');
    const agent = await shop.waitForPopup(() => shop.evaluate(() => void window.open('/agent')));
    await served(agent);
    const result = await agent.evaluate(async () => {
      const [tool] = await document.modelContext.getTools({ scope: 'group' });
      return document.modelContext.executeTool(tool as never, { address: 'Elm 1' });
    });
    expect(result).toBe('{"receipt":"Elm 1"}');
    await agent.close();
  });
});
