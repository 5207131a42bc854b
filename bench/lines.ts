// The lines of the table: what each opens, runs and reports.
import type { Page as PuppeteerPage } from 'puppeteer-core';
import type { Browser, Page } from '../tests/browser/driver/index.ts';
import { ownScript } from './own-script.ts';
import type { Samples } from './page.ts';
import type { BenchSite } from './site.ts';
import type { Measured } from './table.ts';

export interface Setting {
  site: BenchSite;
  /** Started for this line alone. */
  browser: Browser;
  rounds: number;
}

export interface Line {
  name: string;
  /** The part of the rounds that it takes. */
  share: number;
  measure(setting: Setting): Promise<Measured[]>;
}

export const lines: Line[] = [
  {
    name: 'call within the document',
    share: 1,
    async measure({ site, browser, rounds }) {
      const page = await open(browser, `${site.on('isolated')}/bench`);
      await page.evaluate(() => bench.offer());
      const samples = await inParts(rounds, (part) => page.evaluate((part) => bench.callHere(part), part));
      return [{ name: 'call within the document : an async call, two microtasks', ...samples }];
    },
  },
  {
    name: 'call to another tab',
    share: 1,
    async measure({ site, browser, rounds }) {
      const first = await open(browser, `${site.on('isolated')}/bench`);
      const second = await popup(first, '/bench');
      await second.evaluate(() => bench.ready);
      await second.evaluate(() => bench.offer());
      const samples = await inParts(rounds, (part) => first.evaluate((part) => bench.callThere(part), part));
      return [{ name: 'call to another tab : the payload over four bare port hops', aim: 1.5, ...samples }];
    },
  },
  {
    name: 'token',
    share: 1,
    async measure({ site, browser, rounds }) {
      const page = await open(browser, `${site.on('isolated')}/bench`);
      const request: Samples = { ours: [], bare: [] };
      const trips: number[] = [];
      const resume = await inParts(rounds, async (part) => {
        const both = await page.evaluate((part) => bench.tokens(part), part);
        add(request, both.request);
        trips.push(...both.trips);
        return both.resume;
      });
      return [
        {
          name: 'requestToken, in the page : a seal and a strict put, in a bare worker',
          aim: 2,
          ...request,
        },
        {
          name: 'the same : as long as that takes for the page that asks for it',
          ours: request.ours,
          bare: trips,
        },
        {
          name: 'resumeTool until accepted : a round trip, a strict get-and-put, an unseal',
          aim: 2,
          ...resume,
        },
      ];
    },
  },
  {
    name: 'reconnect',
    share: 1 / 3,
    async measure({ site, browser, rounds }) {
      const page = await open(browser, `${site.on('isolated')}/bench-reconnect`);
      const kill = await killer(page);
      const welcomed: Samples = { ours: [], bare: [] };
      const served: Samples = { ours: [], bare: [] };
      for (let round = -3; round < rounds; round += 1) {
        for (const side of ['ours', 'bare'] as const) {
          await page.evaluate((side) => bench.awaitDeath(side), side);
          await kill();
          const times = await page.evaluate(() => bench.reconnected);
          if (round < 0) continue;
          welcomed[side].push(times.welcomed);
          served[side].push(times.served);
        }
      }
      return [
        {
          name: 'reconnect after a worker kill, until welcomed : bare start and handshake',
          aim: 1.5,
          ...welcomed,
        },
        { name: 'the same, until a command is answered', ...served },
      ];
    },
  },
  {
    name: 'checkout',
    share: 1 / 5,
    async measure({ site, browser, rounds }) {
      const ours = await open(browser, `${site.on('shop')}/agent`);
      const bare = await open(browser, `${site.on('bare')}/bare-agent`);
      const shop = await popup(ours, '/cart');
      const bareShop = await popup(bare, '/bare-cart');
      const samples: Samples = { ours: [], bare: [] };
      for (let round = -3; round < rounds; round += 1) {
        const [a, b] = [await checkout(ours), await bareCheckout(bare)];
        await shop.goto(`${site.on('shop')}/cart`);
        await bareShop.goto(`${site.on('bare')}/bare-cart`);
        if (round < 0) continue;
        samples.ours.push(a);
        samples.bare.push(b);
      }
      const own: number[] = [];
      for (let round = 0; round < PROFILED; round += 1) {
        own.push((await ownScript(ours, () => checkout(ours))) / 3);
        await shop.goto(`${site.on('shop')}/cart`);
      }
      const name = 'checkout over three navigations, more a page : the navigations alone';
      return [
        { name, aim: 20, extraPer: 3, ...samples },
        {
          name: "of that, the relay's own scripts, profiled: a page's share of page and worker",
          ours: own,
          bare: null,
        },
      ];
    },
  },
  {
    name: 'listing after a navigation',
    share: 1 / 3,
    async measure({ site, browser, rounds }) {
      const ours = await open(browser, `${site.on('shop')}/agent`);
      const bare = await open(browser, `${site.on('bare')}/bare-agent`);
      await popup(ours, '/catalogue?before');
      await popup(bare, '/bare-catalogue');
      await ours.evaluate(() => document.modelContext.relay.ready);
      const listed: Samples = { ours: [], bare: [] };
      const parsed: number[] = [];
      const since: Samples = { ours: [], bare: [] };
      for (let round = -3; round < rounds; round += 1) {
        const [a, b] = [await listing(ours, round), await bareNavigation(bare)];
        if (round < 0) continue;
        listed.ours.push(a.listed);
        listed.bare.push(b.parsed);
        parsed.push(a.parsed);
        since.ours.push(a.listed - a.parsed);
        since.bare.push(b.told - b.parsed);
      }
      return [
        { name: 'listing after a navigation : the bare navigation until DOMContentLoaded', ...listed },
        {
          name: 'listing after a navigation, more after its DOMContentLoaded : until that',
          aim: 20,
          extraPer: 1,
          ours: listed.ours,
          bare: parsed,
        },
        // The agent shares a thread with the new page, which is laid out before either gets there.
        {
          name: 'listed since its DOMContentLoaded : a message from there, until the agent has it',
          ...since,
        },
      ];
    },
  },
  {
    name: '1,000 tools',
    share: 1 / 3,
    async measure({ site, browser, rounds }) {
      const first = await open(browser, `${site.on('isolated')}/bench`);
      const second = await popup(first, '/bench');
      await second.evaluate(() => bench.ready);
      const register = await inParts(rounds, (part) =>
        second.evaluate((part) => bench.registerMany(part), part),
      );
      await second.evaluate(() => bench.offerMany());
      const list = await inParts(rounds, (part) => first.evaluate((part) => bench.listMany(part), part));
      return [
        {
          name: 'registering 1,000 tools in one task : one structuredClone of their list',
          aim: 3,
          ...register,
        },
        { name: 'listing 1,000 tools of another tab : one structuredClone of the list', aim: 3, ...list },
      ];
    },
  },
  {
    name: 'first visit',
    share: 1 / 15,
    async measure({ site, browser, rounds }) {
      const ours: number[] = [];
      const page = await browser.newPage();
      for (let round = 0; round < rounds; round += 1) {
        // A host of its own has no worker, no storage, no cache.
        const agent = await page.waitForPopup(() => page.goto(`${site.on(`visit-${round}`)}/shop`));
        ours.push((await page.waitFor('window.callable')) as number);
        await agent.close();
      }
      return [{ name: 'first visit, until a tool has answered another tab', ours, bare: null }];
    },
  },
];

/** A profile takes longer to read than to make. */
const PROFILED = 10;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** No question to a page may take minutes. */
const LARGEST_PART = 100;

async function inParts(rounds: number, measure: (part: number) => Promise<Samples>): Promise<Samples> {
  const samples: Samples = { ours: [], bare: [] };
  for (let left = rounds; left > 0; left -= LARGEST_PART) {
    add(samples, await measure(Math.min(left, LARGEST_PART)));
  }
  return samples;
}

function add(samples: Samples, more: Samples): void {
  samples.ours.push(...more.ours);
  samples.bare.push(...more.bare);
}

async function open(browser: Browser, url: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(url);
  if (url.includes('isolated')) await page.evaluate(() => bench.ready);
  return page;
}

/** A window beside the page's, so that both stay visible. */
function popup(page: Page, path: string): Promise<Page> {
  return page.waitForPopup(() => page.evaluate((path) => void window.open(path, 'popup', 'popup'), path));
}

/** Gives what kills every worker. It does not wait for their end: the page sees it, and a new one may start meanwhile. */
async function killer(page: Page): Promise<() => Promise<unknown>> {
  const session = await (page.raw as PuppeteerPage).createCDPSession();
  await session.send('ServiceWorker.enable');
  return () => session.send('ServiceWorker.stopAllWorkers');
}

async function checkout(agent: Page): Promise<number> {
  await agent.waitFor(async () => (await document.modelContext.getTools({ scope: 'group' })).length === 1);
  return agent.evaluate(async () => {
    const [tool] = await document.modelContext.getTools({ scope: 'group' });
    const begin = performance.now();
    await document.modelContext.executeTool(tool as never, { address: '1 Elm Street' });
    return performance.now() - begin;
  });
}

function bareCheckout(agent: Page): Promise<number> {
  return agent.evaluate(async () => {
    const done = new Promise((resolve) => addEventListener('message', resolve, { once: true }));
    const begin = performance.now();
    window.open('', 'popup')?.postMessage('begin', origin);
    await done;
    return performance.now() - begin;
  });
}

/** What a round leaves behind (a page that is laid out, one that is thrown away) has ended by then. Milliseconds. */
const REST = 100;

/** Navigates the other tab and lists at once. Milliseconds until the new page is listed, and until it is parsed. */
async function listing(agent: Page, round: number): Promise<{ listed: number; parsed: number }> {
  await pause(REST);
  return agent.evaluate(async (round) => {
    const other = window.open('', 'popup') as Window & { parsedAt(): number };
    const begin = performance.now();
    other.location.href = `/catalogue?${round}`;
    const tools = await document.modelContext.getTools({ scope: 'group' });
    const listed = performance.now() - begin;
    const names = tools.map(({ name }) => name).join();
    if (names !== `show-${round}`) throw new Error(`After navigation ${round}, listed are: ${names}`);
    const parsedAt = other.parsedAt();
    if (parsedAt === 0) throw new Error('It was listed before it was parsed.');
    return { listed, parsed: parsedAt - performance.timeOrigin - begin };
  }, round);
}

/** Milliseconds until the page is parsed, and until the agent has its word for it. */
async function bareNavigation(agent: Page): Promise<{ parsed: number; told: number }> {
  await pause(REST);
  return agent.evaluate(async () => {
    const telling = new Promise<MessageEvent<number>>((resolve) =>
      addEventListener('message', resolve, { once: true }),
    );
    const begin = performance.now();
    (window.open('', 'popup') as Window).location.href = '/bare-catalogue';
    const parsedAt = (await telling).data;
    const told = performance.now() - begin;
    if (parsedAt === 0) throw new Error('It does not say when it was parsed.');
    return { parsed: parsedAt - performance.timeOrigin - begin, told };
  });
}
