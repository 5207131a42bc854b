// The worker dies, at whatever instant: nobody notices. (Chromium, where a worker can be killed; the exact points of a
// checkout are in tests/fault.)
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { PendingExecutionHandle } from '../../client/index.ts';
import { type Browser, launch, type Page } from './driver/index.ts';
import { pause } from './driver/time.ts';
import { checkoutPages, RELAY, served } from './pages.ts';
import { createGate, type Site, type SiteRequest, startSite } from './site.ts';

let site: Site;
let browser: Browser;
let shop: Page;
let agent: Page;
/** How often each callback ran, as its page told the server. */
const ran = new Map<string, number>();
/** What the callbacks of the pages wait for. */
let gate = createGate();

const SCRIPT = `
  const name = new URLSearchParams(location.search).get('name');
  const ran = (what) => fetch('/ran?what=' + what, { method: 'POST', keepalive: true });
  const register = (name, execute) =>
    document.modelContext.registerTool({ name, description: 'For tests', execute });`;

beforeAll(async () => {
  site = await startSite();
  checkoutPages(site);
  site.route('/ran', ({ query }: SiteRequest) => {
    const what = query.get('what') ?? '';
    ran.set(what, (ran.get(what) ?? 0) + 1);
    return '';
  });
  site.route('/gate', async () => {
    await gate.opened;
    return '';
  });
  site.route('/count', () => `${ran.size}`);
  site.page('/empty', '<title>empty</title>');
  site.page(
    '/tool',
    `${RELAY}<script>${SCRIPT}
    register(name, async (input) => {
      await ran(name);
      if (input.wait) await fetch('/gate');
      return name + ' ' + input.value;
    });
  </script>`,
  );
  // In a process of its own: its opener outlives its crash.
  site.page('/apart', {
    headers: { 'cross-origin-opener-policy': 'same-origin' },
    body: `${RELAY}<script>${SCRIPT}
    register('doomed', async () => {
      await ran('doomed');
      await fetch('/gate');
    });
  </script>`,
  });
  site.page(
    '/suspend',
    `${RELAY}<script>${SCRIPT}
    register('suspend', async (input, { invocation }) => {
      const token = await invocation.requestToken({ lifetime: input.lifetime });
      sessionStorage['webmcp-token'] = token;
      location.href = '/empty';
    });
  </script>`,
  );
  site.page(
    '/resume',
    `${RELAY}<script>${SCRIPT}
    document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input) => {
      await ran('resumed');
      return input.value;
    });
  </script>`,
  );
});

afterAll(() => site.close());

beforeAll(async () => {
  browser = await launch('chromium');
});

afterAll(() => browser?.close());

/** The shop at a page of it, and an agent in another tab of its group. */
async function open(path: string): Promise<void> {
  ran.clear();
  gate = createGate();
  shop = await browser.newPage();
  await shop.goto(site.origin + path);
  await served(shop);
  agent = await openFrom(shop, '/agent');
}

async function openFrom(page: Page, path: string): Promise<Page> {
  const opened = await page.waitForPopup(() => page.evaluate((path) => void window.open(path), path));
  await served(opened);
  return opened;
}

afterEach(async () => {
  gate.open();
  for (const page of (await browser.pages()).slice(1)) await page.close();
  const [first] = await browser.pages();
  await first?.goto('about:blank');
});

/** The agent calls a tool of its group; what came of it, in words. */
const call = (page: Page, name: string, input: object): Promise<string> =>
  page.evaluate(
    async (name, input) => {
      const tools = await document.modelContext.getTools({ scope: 'group' });
      const tool = tools.find((candidate) => candidate.name === name);
      if (tool === undefined) return `not listed among ${tools.map(({ name }) => name)}`;
      const outputs: unknown[] = [];
      return document.modelContext.executeTool(tool, input, { onoutput: (text) => outputs.push(text) }).then(
        (result) => [...outputs, result].join(', '),
        ({ name, reason, started }) => `${name}, ${reason}, ${started ? 'started' : 'not started'}`,
      );
    },
    name,
    input,
  );

const names = (page: Page): Promise<string[]> =>
  page.evaluate(async () => {
    const tools = await document.modelContext.getTools({ scope: 'group' });
    return tools.map(({ name }) => name);
  });

/** The generation of the worker that serves the page. */
const generation = (page: Page): Promise<string> =>
  page.evaluate(
    () =>
      new Promise<string>((resolve) => {
        const watching = new AbortController();
        document.modelContext.relay.watch(
          ({ generation }) => {
            watching.abort();
            resolve(generation);
          },
          { signal: watching.signal },
        );
      }),
  );

const kill = () => browser.stopWorkers();

test('stopped while nothing is pending: the next call works (C01)', async () => {
  await open('/tool?name=idle');
  expect(await call(agent, 'idle', { value: 1 })).toBe('idle 1');
  const before = await generation(agent);
  await kill();
  expect(await call(agent, 'idle', { value: 2 })).toBe('idle 2');
  expect(ran.get('idle')).toBe(2);
  expect(await generation(agent)).not.toBe(before);
});

test('killed while a call runs in another tab', async () => {
  await open('/tool?name=slow');
  const before = await generation(agent);
  const answer = call(agent, 'slow', { value: 1, wait: true });
  await shop.waitFor(
    () => performance.getEntriesByName(new URL('/ran?what=slow', location.href).href).length,
  );
  await kill();
  gate.open();
  expect(await answer).toBe('slow 1');
  expect(ran.get('slow')).toBe(1);
  expect(await generation(agent)).not.toBe(before);
});

describe('killed while a token is outstanding and its caller waits', () => {
  test('the token is redeemed all the same', async () => {
    await open('/suspend');
    const before = await generation(agent);
    const answer = call(agent, 'suspend', { value: 'kept', lifetime: 60_000 });
    await shop.waitFor(() => document.title === 'empty');
    await kill();
    await shop.goto(`${site.origin}/resume`);
    // An activation that was granted a token gave an output: none, and then the answer.
    expect(await answer).toBe(', kept');
    expect(ran.get('resumed')).toBe(1);
    expect(await generation(agent)).not.toBe(before);
  });

  test('the token expires all the same', async () => {
    await open('/suspend');
    const answer = call(agent, 'suspend', { value: 'lost', lifetime: 2_000 });
    await shop.waitFor(() => document.title === 'empty');
    await kill();
    expect(await answer).toBe('TimeoutError, token-expired, started');
  });
});

test('killed with twenty pages connected: all their tools are there, and each call settles', async () => {
  await open('/tool?name=tool0');
  for (let number = 1; number < 20; number += 1) {
    await shop.evaluate((number) => void window.open(`/tool?name=tool${number}`), number);
  }
  const expected = Array.from({ length: 20 }, (_, number) => `tool${number}`).sort();
  await agent.waitFor(async () => {
    const tools = await document.modelContext.getTools({ scope: 'group' });
    return tools.length === 20;
  });
  const before = await generation(agent);
  const answers = Promise.all(expected.map((name) => call(agent, name, { value: 'x', wait: true })));
  await shop.waitFor(async () => {
    const response = await fetch('/count');
    return Number(await response.text()) === 20;
  });
  await kill();
  gate.open();
  expect(await answers).toEqual(expected.map((name) => `${name} x`));
  expect([...ran.values()]).toEqual(expected.map(() => 1));
  await kill();
  expect(await names(agent)).toEqual(expected);
  expect(await generation(agent)).not.toBe(before);
});

test('killed again and again during whole checkouts', async () => {
  await open('/billing');
  for (let round = 0; round < 5; round += 1) {
    await shop.goto(`${site.origin}/billing`);
    await served(shop);
    let over = false;
    const answer = call(agent, 'checkout', { address: `Elm ${round}` }).finally(() => {
      over = true;
    });
    while (!over) {
      await kill();
      await pause(100);
    }
    expect(await answer).toMatch(new RegExp(`\\{"receipt":"Elm ${round}"\\}$`));
  }
});

describe('restarted by something that is none of its pages (C08)', () => {
  const restarts: Record<string, () => Promise<unknown>> = {
    'another page': async () => (await browser.newPage()).goto(`${site.origin}/agent`),
    "a site's own message": () =>
      shop.evaluate(async () => {
        const { active } = (await navigator.serviceWorker.getRegistration()) as ServiceWorkerRegistration;
        active?.postMessage({ type: 'of-the-site' });
      }),
  };
  test.each(Object.entries(restarts))('%s', async (_, restart) => {
    await open('/tool?name=first');
    await openFrom(shop, '/tool?name=second');
    expect(await names(agent)).toEqual(['first', 'second']);
    await kill();
    await restart();
    expect(await names(agent)).toEqual(['first', 'second']);
    expect(await call(agent, 'second', { value: 2 })).toBe('second 2');
  });
});

describe('a page that the relay comes to late is waited for (C17)', () => {
  const tool = `document.modelContext.resumeTool(webmcpRelay.takeToken(), () => 'resumed ' + document.title);`;
  const styles: Record<string, string> = {
    'in the head': `<head>${RELAY}<script>${tool}</script></head>`,
    'a deferred module': `<script type="module">
      import { installModelContext, takeToken } from '/index.js';
      installModelContext();
      globalThis.webmcpRelay = { takeToken };
      ${tool}
    </script>`,
    'long after load': `<script>
      const later = async () => {
        await fetch('/gate');
        const script = document.createElement('script');
        script.src = '/webmcp-relay.js';
        script.onload = () => { ${tool} };
        document.head.append(script);
      };
      addEventListener('load', later);
    </script>`,
  };

  test.each(Object.entries(styles))('%s', async (style, html) => {
    site.page('/late', `<title>${style}</title>${html}`);
    await open('/suspend');
    const answer = call(agent, 'suspend', { lifetime: 60_000 });
    await shop.waitFor(() => document.title === 'empty');
    await kill();
    await shop.goto(`${site.origin}/late`);
    gate.open();
    expect(await answer).toBe(`, resumed ${style}`);
  });
});

test('a callback whose page crashes while the worker is dead is not run again (C28)', async () => {
  await open('/agent');
  const doomed = await openFrom(shop, '/apart');
  const answer = call(agent, 'doomed', {});
  await doomed.waitFor(
    () => performance.getEntriesByName(new URL('/ran?what=doomed', location.href).href).length,
  );
  await kill();
  const { raw } = doomed as { raw: { goto(url: string): Promise<unknown> } };
  raw.goto('chrome://crash').catch(() => {});
  expect(await answer).toBe('UnknownError, document-lost, started');
  expect(ran.get('doomed')).toBe(1);
});

test('an answer that a collected call had before the worker died is its result', async () => {
  site.page(
    '/two',
    `${RELAY}<script>${SCRIPT}
    register('two', async (input, { invocation }) => {
      const token = await invocation.requestToken();
      await invocation.requestToken({ lifetime: 3_000 });
      location.href = webmcpRelay.withToken('/answer', token);
    });
  </script>`,
  );
  site.page(
    '/answer',
    `${RELAY}<title>answer</title><script>${SCRIPT}
    document.modelContext.resumeTool(webmcpRelay.takeToken(), async () => 'the answer');
    collected = document.modelContext.getPendingExecutions();
  </script>`,
  );
  await open('/two');
  await shop.waitForNavigation(() =>
    shop.evaluate(async () => {
      const [tool] = (await document.modelContext.getTools()) as never[];
      void document.modelContext.executeTool(tool as never, {}).catch(() => {});
    }),
  );
  await shop.waitFor(() => document.title === 'answer');
  const outcome = shop.evaluate(async () => {
    const [execution] = await (window as never as { collected: Promise<PendingExecutionHandle[]> }).collected;
    return execution?.outcome.then(
      (result) => `result: ${result}`,
      ({ reason }) => `failed: ${reason}`,
    );
  });
  await agent.waitFor(
    () =>
      new Promise((resolve) => {
        document.modelContext.relay.watch(({ executions }) =>
          resolve(executions[0]?.activations[1]?.state === 'returned'),
        );
      }),
  );
  await kill();
  expect(await outcome).toBe('result: the answer');
});
