// The demo as a stranger meets it: `npm start` in a fresh copy of the project, and the shop that it prints in Chromium.
import { cpSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser as PuppeteerBrowser, Page as PuppeteerPage } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Child, createFolder, start } from './browser/driver/child.ts';
import { type Browser, launch, type Page } from './browser/driver/index.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = createFolder('demo');
let npm: Child;
let shopOrigin: string;
let browser: Browser;

/** What is not part of a clone. Its own build keeps `npm start` from replacing the files that other tests serve. */
const NOT_COPIED = ['node_modules', 'dist', 'reports', '.git'];

beforeAll(async () => {
  const copy = join(folder.path, 'project');
  cpSync(root, copy, { recursive: true, filter: (path) => !NOT_COPIED.includes(basename(path)) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  npm = start('npm', ['--prefix', copy, 'start'], { ...process.env, PORT: '0' });
  const [, address] = await npm.printed(/^Shop: (\S+)\/$/m);
  shopOrigin = address as string;
}, 180_000);

afterAll(async () => {
  await npm?.kill();
  folder.remove();
});

beforeAll(async () => {
  browser = await launch('chromium');
});

/** The next test begins without tabs and with an empty cart. The first tab stays: without any the browser would end. */
afterEach(async () => {
  const [first, ...others] = await browser.pages();
  await Promise.all(others.map((page) => page.close()));
  await first?.goto('about:blank');
  const chromium = browser.raw as PuppeteerBrowser;
  await chromium.deleteCookie(...(await chromium.cookies()));
});

afterAll(() => browser?.close());

function click(page: Page, selector: string): Promise<void> {
  return page.evaluate((selector) => (document.querySelector(selector) as HTMLElement).click(), selector);
}

function textOf(page: Page, selector: string): Promise<string | null> {
  return page.evaluate((selector) => (document.querySelector(selector) as HTMLElement).textContent, selector);
}

/** A tab of the shop whose agent has found out how the relay is. */
async function openShop(path = '/'): Promise<Page> {
  const shop = await browser.newPage();
  await shop.goto(shopOrigin + path);
  await shop.waitFor(() => document.getElementById('widget-hint')?.textContent?.includes('Relay: shared'));
  return shop;
}

async function fillCart(shop: Page): Promise<void> {
  await shop.goto(`${shopOrigin}/`);
  await shop.waitForNavigation(() => click(shop, '.cards button'));
  expect(await shop.evaluate(() => location.pathname)).toBe('/cart');
}

const openAgent = (shop: Page) => shop.waitForPopup(() => click(shop, '#open-agent'));

/** Chooses the tool on the agent page, fills in its arguments and calls it. */
async function call(agent: Page, tool: string, input: Record<string, string>): Promise<void> {
  await agent.waitFor((tool) => document.querySelector(`#tool-select option[value="${tool}"]`), tool);
  await agent.evaluate(
    (tool, input) => {
      const field = (selector: string) => document.querySelector(selector) as HTMLInputElement;
      const select = field('#tool-select');
      select.value = tool;
      select.dispatchEvent(new Event('change'));
      for (const [name, value] of Object.entries(input)) {
        field(`#argument-fields [name="${name}"]`).value = value;
      }
      field('#call-button').click();
    },
    tool,
    input,
  );
}

/** The latest call of the tool, once it is over. */
async function outcome(agent: Page, tool: string) {
  const over = (tool: string) =>
    document.querySelector(`#calls .call[data-tool="${tool}"]:not([data-call-state=running])`) !== null;
  await agent.waitFor(over, tool);
  return agent.evaluate((tool) => {
    const card = document.querySelector(`#calls .call[data-tool="${tool}"]`) as HTMLElement;
    const texts = (selector: string) =>
      [...card.querySelectorAll(selector)].map(({ textContent }) => textContent ?? '');
    const { reason, started } = card.querySelector<HTMLElement>('.call-error')?.dataset ?? {};
    return {
      state: card.dataset.callState,
      outputs: texts('.call-outputs li'),
      results: texts('.call-result').map((text) => JSON.parse(text)),
      error: texts('.call-error')[0],
      reason,
      started,
    };
  }, tool);
}

const ADDRESSES = { billing_address: '3 Elm Row, Bath', shipping_address: '4 Oak Street, Hull' };
const OUTPUTS = [
  'The order is drawn up; the billing address is next.',
  'The billing address is sent; shipping is next.',
  'The shipping address is sent; the payment is next.',
];

/** From now on the tab stays on the payment page, which else pays by itself, until it is told to go on. */
async function holdPayment(shop: Page): Promise<void> {
  await (shop.raw as PuppeteerPage).evaluateOnNewDocument(() => {
    if (location.pathname === '/pay') HTMLFormElement.prototype.requestSubmit = () => {};
  });
}

const pay = (shop: Page) =>
  shop.evaluate(() => (document.getElementById('pay-form') as HTMLFormElement).submit());

async function atPayment(shop: Page): Promise<void> {
  await shop.waitFor(() => location.pathname === '/pay' && document.readyState === 'complete');
  expect(await shop.evaluate(() => location.origin)).not.toBe(shopOrigin);
}

describe('the agent page', () => {
  test('calls checkout once, while the shop goes through its pages, and gets one receipt', async () => {
    const shop = await openShop();
    const agent = await openAgent(shop);
    await call(agent, 'add_to_cart', { item_id: 'felt-hat', quantity: '2' });
    expect(await outcome(agent, 'add_to_cart')).toMatchObject({ state: 'result', results: [{ total: 78 }] });
    expect(await textOf(shop, '#cart-count')).toBe('2');

    await call(agent, 'checkout', ADDRESSES);
    const { state, outputs, results } = await outcome(agent, 'checkout');
    expect({ state, outputs }).toEqual({ state: 'result', outputs: OUTPUTS });
    expect(results).toEqual([
      { order: expect.any(String), items: expect.any(Array), total: 78, ...ADDRESSES },
    ]);
    expect(await shop.evaluate(() => location.pathname)).toBe('/confirmation');
    expect(await textOf(shop, '#order')).toBe(results[0].order);
    expect(await agent.evaluate(() => document.querySelectorAll('#calls .call-result').length)).toBe(2);
  });

  test('hears of a mistake that a page shows as the tool’s own error', async () => {
    const shop = await openShop();
    await fillCart(shop);
    const agent = await openAgent(shop);
    await call(agent, 'checkout', { ...ADDRESSES, billing_address: ' ' });
    expect(await outcome(agent, 'checkout')).toMatchObject({
      state: 'error',
      reason: 'tool-failed',
      started: 'true',
      error: expect.stringContaining('The billing address is empty.'),
    });
  });

  test('hears that the payment was declined, by way of another origin', async () => {
    const shop = await openShop();
    await holdPayment(shop);
    await fillCart(shop);
    const agent = await openAgent(shop);
    await call(agent, 'checkout', ADDRESSES);
    await atPayment(shop);
    await click(shop, '#pay-form a');
    expect(await outcome(agent, 'checkout')).toMatchObject({
      reason: 'tool-failed',
      error: expect.stringContaining('The payment was declined.'),
      outputs: OUTPUTS,
    });
  });

  test('gets the receipt although the worker was stopped while the payment page was shown', async () => {
    const shop = await openShop();
    await holdPayment(shop);
    await fillCart(shop);
    const agent = await openAgent(shop);
    await call(agent, 'checkout', ADDRESSES);
    await atPayment(shop);
    const shown = () => document.querySelector('#live [data-generation]')?.textContent;
    const before = await agent.waitFor(shown);
    await browser.stopWorkers();
    await agent.waitFor((before) => {
      const generation = document.querySelector('#live [data-generation]')?.textContent;
      return generation && generation !== before;
    }, before);
    await pay(shop);
    const { outputs, results } = await outcome(agent, 'checkout');
    expect(outputs).toEqual(OUTPUTS);
    expect(results).toEqual([expect.objectContaining(ADDRESSES)]);
  });

  test('cancels a call, and the token is void', async () => {
    const shop = await openShop();
    await holdPayment(shop);
    await fillCart(shop);
    const agent = await openAgent(shop);
    await call(agent, 'checkout', ADDRESSES);
    await atPayment(shop);
    await agent.waitFor(() => document.querySelector('#live [data-token-state=outstanding]'));
    await click(agent, '#calls .call-cancel');
    expect(await outcome(agent, 'checkout')).toMatchObject({ state: 'error', results: [] });
    await agent.waitFor(() => document.querySelector('#live [data-token-state=void]'));
    await pay(shop);
    await shop.waitFor(() => document.getElementById('tool-banner')?.textContent?.includes('token-void'));
  });

  test('has an item tried on in a frame that is made on demand', async () => {
    const shop = await openShop('/item/felt-hat');
    const agent = await openAgent(shop);
    await call(agent, 'try_on', { item_id: '"rain-jacket"' });
    expect(await outcome(agent, 'try_on')).toMatchObject({
      outputs: ['The fitting room is open.'],
      results: [{ item_id: 'rain-jacket', size: 'M' }],
    });
  });

  test('says why it sees nothing when it was opened by hand', async () => {
    await openShop();
    const agent = await browser.newPage();
    await agent.goto(`${shopOrigin}/agent`);
    await agent.waitFor(() => document.getElementById('agent-hint')?.textContent?.includes('by hand'));
    expect(await textOf(agent, '#agent-state')).toBe('shared');
    expect(await agent.evaluate(() => document.querySelectorAll('#tool-select option').length)).toBe(0);
  });
});

describe('the agent embedded in the pages', () => {
  const log = () =>
    [...document.querySelectorAll<HTMLElement>('#widget-log li')].map(({ dataset, textContent }) => [
      dataset.kind,
      textContent,
    ]);

  async function checkOut(shop: Page): Promise<void> {
    await shop.waitFor(() => document.querySelector('#widget-call:enabled'));
    await shop.evaluate((addresses) => {
      for (const [name, value] of Object.entries(addresses)) {
        (document.querySelector(`#widget-form [name="${name}"]`) as HTMLInputElement).value = value;
      }
    }, ADDRESSES);
    await click(shop, '#widget-call');
  }

  const receipt = (shop: Page) =>
    shop.waitFor(() => {
      const shown = document.querySelector('#widget-result:not([hidden])');
      return shown && JSON.parse(shown.textContent ?? '');
    });

  test('calls checkout of its own page and collects the receipt on the last one', async () => {
    const shop = await openShop();
    await fillCart(shop);
    await checkOut(shop);
    expect(await receipt(shop)).toMatchObject(ADDRESSES);
    const lines = await shop.evaluate(log);
    expect(lines.filter(([kind]) => kind === 'output').map(([, text]) => text)).toEqual(OUTPUTS);
    expect(lines.filter(([kind]) => kind === 'call' || kind === 'result' || kind === 'error')).toEqual([
      ['call', 'Called checkout on /cart.'],
      ['result', expect.stringMatching(/^Order A-\d+ placed, €49\.00\.$/)],
    ]);
    expect(lines.some(([kind]) => kind === 'found')).toBe(true);
  });

  test('does so too when the worker was stopped while the payment page was shown', async () => {
    const shop = await openShop();
    await holdPayment(shop);
    await fillCart(shop);
    await checkOut(shop);
    await atPayment(shop);
    await browser.stopWorkers();
    await pay(shop);
    expect(await receipt(shop)).toMatchObject(ADDRESSES);
  });

  test('can be watched in the live list', async () => {
    const shop = await openShop();
    await click(shop, '#live-panel summary');
    await shop.waitFor(() => document.getElementById('live')?.textContent?.includes('view_cart'));
    expect(await textOf(shop, '#live [data-relay-state]')).toBe('shared');
  });
});
