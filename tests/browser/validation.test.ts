// Inputs are checked against their tools' schemas before the callback runs (semantics, Errors: `invalid-input`).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { InputError } from '../../client/index.ts';
import { type Browser, engines, launch, type Page } from './driver/index.ts';
import { arrived, call, eventually, LAB, outcome, ready, useLab } from './lab.ts';
import { RELAY, served } from './pages.ts';
import { createGate, type Responder, type Site, startSite } from './site.ts';

const bench = useLab();

const CHUNK = '/webmcp-relay-validator.js';

/** The tool `order`, which answers with its input; the log says whether it ran. */
const ORDER = `globalThis.registered = document.modelContext.registerTool({
  name: 'order',
  description: 'Orders',
  inputSchema: {
    type: 'object',
    properties: {
      amount: { type: 'integer', minimum: 1 },
      items: { type: 'array', items: { type: 'object', properties: { size: { enum: ['S', 'M'] } }, required: ['id'] } },
    },
    required: ['amount'],
  },
  execute(input) {
    lab.log.push('began order');
    return input;
  },
});`;

declare global {
  /** Warnings of the console, as text. */
  var warnings: string[];
  /** What registering `order` gave. */
  var registered: Promise<void>;
  /** Takes the tool `brief` back. */
  var brief: AbortController;
}

const WARNINGS = `<script>
  window.warnings = [];
  const { warn } = console;
  console.warn = (...what) => (warnings.push(what.join(' ')), warn(...what));
</script>`;

let pages = 0;

/** Opens a page of its own that offers `order`; with a tag or headers of its own, and a chunk that is another one. */
async function visit({ tag = RELAY, headers = {}, before = '' } = {}): Promise<Page> {
  const path = `/order${++pages}`;
  bench.site.route(`${path}.js`, ORDER);
  const body = `${before}${LAB.replace(RELAY, tag)}<script src="${path}.js"></script>`;
  bench.site.page(path, { headers, body });
  const page = await bench.blank();
  await page.goto(bench.site.origin + path);
  await ready(page);
  return page;
}

/** A page whose relay loads the chunk from a folder of its own: the chunk is what `responder` says. */
async function visitWithChunk(responder: Responder, before = WARNINGS): Promise<Page> {
  const folder = `/folder${++pages}`;
  const script = await (await fetch(`${bench.site.origin}/webmcp-relay.js`)).text();
  bench.site.route(`${folder}/webmcp-relay.js`, { body: script, headers: { 'service-worker-allowed': '/' } });
  bench.site.route(folder + CHUNK, responder);
  const more = '/webmcp-relay-more.js';
  bench.site.route(folder + more, await (await fetch(bench.site.origin + more)).text());
  const tag = `<script src="${folder}/webmcp-relay.js" data-worker="/webmcp-relay-sw.js"></script>`;
  return visit({ tag, before });
}

interface Told {
  value?: string | null;
  error?: {
    name: string;
    reason: string;
    started: boolean;
    message: string;
    errors: InputError[];
    executionId: string;
  };
}

/** Calls `order` within the tab or for the group, and tells all that a caller is told. */
const order = (page: Page, input: object, scope: 'document' | 'group' = 'document'): Promise<Told> =>
  page.evaluate(
    async (input, scope) => {
      const tool =
        scope === 'group'
          ? await lab.find('order')
          : (await document.modelContext.getTools()).find(({ name }) => name === 'order');
      return document.modelContext.executeTool(tool as never, input).then(
        (value) => ({ value }),
        ({ name, reason, started, message, errors, executionId }) => ({
          error: { name, reason, started, message, errors, executionId },
        }),
      );
    },
    input,
    scope,
  );

const logOf = (page: Page) => page.evaluate(() => lab.log);

/** What the log of the page has of a call of `order` that ran. */
const RAN = ['toolactivated order', 'began order'];

const MISSING = {
  name: 'DataError',
  reason: 'invalid-input',
  started: false,
  message: expect.stringContaining('"path":"/amount"'),
  errors: [{ path: '/amount', message: 'Instance does not have required property "amount".' }],
  executionId: expect.any(String),
};

describe('an input that does not fit', () => {
  test('rejects within the document; the callback does not run, toolactivated does not fire', async () => {
    const page = await visit();
    expect(await order(page, {})).toEqual({ error: MISSING });
    expect(await logOf(page)).toEqual([]);
  });

  test('rejects over tabs, with its errors', async () => {
    const page = await visit();
    const agent = await bench.join(page);
    expect(await order(agent, {}, 'group')).toEqual({ error: MISSING });
    expect(await logOf(page)).toEqual([]);
  });

  test('rejects where keepalive sends the call of the same tab through the worker', async () => {
    const page = await visit();
    await call(page, 'kept', 'order', {}, { keepalive: true });
    expect(await outcome(page, 'kept')).toEqual({
      error: { name: 'DataError', reason: 'invalid-input', started: false },
    });
  });

  test('rejects to a frame, with its errors', async () => {
    const page = await visit();
    const frame = await page.evaluate(
      async (path) => {
        const frame = Object.assign(document.createElement('iframe'), { src: path });
        const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
        document.body.append(frame);
        await loaded;
        const tools = await document.modelContext.getTools();
        const tool = tools.find(({ window }) => window === frame.contentWindow);
        return document.modelContext.executeTool(tool as never, { amount: 'two' }).catch((error) => ({
          errors: error.errors,
          isOurs: error.constructor === DOMException,
        }));
      },
      new URL(await page.evaluate(() => location.href)).pathname,
    );
    expect(frame).toEqual({
      errors: [{ path: '/amount', message: 'Instance type "string" is invalid. Expected "integer".' }],
      isOurs: true,
    });
  });

  test('is told of by paths into it, however deep, all at once', async () => {
    const page = await visit();
    const told = await order(page, { amount: 0, items: [{ id: 1 }, { size: 'XL' }] });
    expect(told.error?.errors.map(({ path }) => path)).toEqual(['/amount', '/items/1/id', '/items/1/size']);
  });

  test('may be corrected: the next call runs', async () => {
    const page = await visit();
    const agent = await bench.join(page);
    for (const [from, scope] of [
      [page, 'document'],
      [agent, 'group'],
    ] as const) {
      expect(await order(from, { amount: 'two' }, scope)).toMatchObject({
        error: { reason: 'invalid-input' },
      });
      expect(await order(from, { amount: 2 }, scope)).toEqual({ value: '{"amount":2}' });
    }
    expect(await logOf(page)).toEqual([...RAN, ...RAN]);
  });
});

describe('a schema that is none', () => {
  test.each([
    `{ type: 7 }`,
    `{ type: 'nonsense' }`,
    `{ required: 'a' }`,
    `{ properties: [] }`,
    `{ pattern: '(' }`,
  ])('%s is a TypeError at registration, and registers nothing', async (source) => {
    const page = await bench.open();
    const told = await page.evaluate(async (source) => {
      const inputSchema = new Function(`return ${source}`)();
      const tool = { name: 'odd', description: 'Odd', inputSchema, execute: () => 1 };
      const settled = await lab.settled(document.modelContext.registerTool(tool));
      return { settled, names: await lab.names('document') };
    }, source);
    expect(told).toEqual({ settled: { error: { name: 'TypeError' } }, names: [] });
  });

  test('one that the validator cannot apply lets the call run, with a warning', async () => {
    const page = await visit({ before: WARNINGS });
    const result = await page.evaluate(async () => {
      const inputSchema = { properties: { a: { $ref: 'https://schemas.example/none' } } };
      await document.modelContext.registerTool({
        name: 'far',
        description: 'Far',
        inputSchema,
        execute: () => 'ran',
      });
      const tools = await document.modelContext.getTools();
      return document.modelContext.executeTool(tools.find(({ name }) => name === 'far') as never, { a: 1 });
    });
    expect(result).toBe('ran');
    expect(await page.evaluate(() => warnings)).toEqual([expect.stringContaining('not validated')]);
  });
});

test('a resumed activation gets the original input, which is not validated again', async () => {
  const page = await bench.open();
  await page.evaluate(async () => {
    await document.modelContext.registerTool({
      name: 'first',
      description: 'Asks for a token',
      inputSchema: { required: ['n'] },
      async execute(_input, { invocation }) {
        location.href = webmcpRelay.withToken('/two', await invocation.requestToken());
      },
    });
  });
  const agent = await bench.join(page);
  await call(agent, 'resumed', 'first', { n: 1 });
  await arrived(page, '/two');
  const before = bench.site.requests.length;
  await page.evaluate(() => lab.resume((input) => input));
  expect(await outcome(agent, 'resumed')).toEqual({ value: '{"n":1}' });
  expect(bench.site.requests.slice(before).map(({ path }) => path)).not.toContain(CHUNK);
});

test('works under a policy that forbids eval and all scripts but the site’s own', async () => {
  const policy = "default-src 'self'; script-src 'self'; require-trusted-types-for 'script'";
  const page = await visit({ headers: { 'content-security-policy': policy } });
  expect(await order(page, {})).toEqual({ error: MISSING });
});

describe('the validator', () => {
  const chunkLoads = () => bench.site.requests.filter(({ path }) => path === CHUNK).length;

  test('is never requested by a page without schemas', async () => {
    const before = chunkLoads();
    const page = await bench.open();
    await page.evaluate(() => lab.register('plain', (input) => input));
    await call(page, 'plain', 'plain', { n: 1 });
    expect(await outcome(page, 'plain')).toEqual({ value: '{"n":1}' });
    expect(chunkLoads()).toBe(before);
  });

  test('is requested when a tool with a schema is registered, before any call', async () => {
    const before = chunkLoads();
    await visit();
    await eventually(chunkLoads).toBe(before + 1);
  });

  test('does not delay registerTool', async () => {
    const gate = createGate();
    const page = await visitWithChunk(async () => {
      await gate.opened;
      return { status: 404 };
    });
    await page.evaluate(() => registered);
    expect(await page.evaluate(() => lab.names('document'))).toEqual(['order']);
    gate.open();
  });

  test('is not there: the call runs unvalidated, with one warning', async () => {
    const page = await visitWithChunk({ status: 404 });
    expect(await order(page, {})).toEqual({ value: '{}' });
    expect(await order(page, {})).toEqual({ value: '{}' });
    expect(await page.evaluate(() => warnings)).toEqual([expect.stringContaining('not validated')]);
  });

  test('is forbidden by a policy: the call runs unvalidated, with one warning', async () => {
    const page = await visit({
      before: `<meta http-equiv="content-security-policy" content="script-src 'unsafe-inline' ${bench.site.origin}/webmcp-relay.js ${bench.site.origin}/lab.js ${bench.site.origin}/order${pages + 1}.js">${WARNINGS}`,
    });
    expect(await order(page, {})).toEqual({ value: '{}' });
    expect(await page.evaluate(() => warnings)).toEqual([expect.stringContaining('not validated')]);
  });

  test('hangs: the call runs after the connecting bound, with one warning; late, it validates what comes then', async () => {
    const gate = createGate();
    const chunk = await (await fetch(bench.site.origin + CHUNK)).text();
    const page = await visitWithChunk(async () => {
      await gate.opened;
      return chunk;
    });
    const agent = await bench.join(page);
    const started = Date.now();
    expect(await order(agent, {}, 'group')).toEqual({ value: '{}' });
    expect(await order(page, {})).toEqual({ value: '{}' });
    expect(Date.now() - started).toBeLessThan(8_000);
    expect(await page.evaluate(() => warnings)).toEqual([expect.stringContaining('not validated')]);
    gate.open();
    await eventually(async () => (await order(page, {})).error?.reason).toBe('invalid-input');
  });

  /** A page whose validator comes when the gate opens, and an agent in another tab. */
  async function slow() {
    const gate = createGate();
    const chunk = await (await fetch(bench.site.origin + CHUNK)).text();
    const page = await visitWithChunk(async () => {
      await gate.opened;
      return chunk;
    });
    return { gate, page, agent: await bench.join(page) };
  }

  test('comes after the worker’s bound for acknowledgements: the call is refused all the same, not started', async () => {
    const { gate, agent, page } = await slow();
    const told = order(agent, {}, 'group');
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    gate.open();
    expect(await told).toEqual({ error: MISSING });
    expect(await logOf(page)).toEqual([]);
  });

  test('loads while the call is aborted: the callback does not run', async () => {
    const { gate, page, agent } = await slow();
    for (const caller of [page, agent]) {
      await call(caller, 'aborted', 'order', { amount: 1 });
      await caller.evaluate(() => lab.calls.aborted?.controller.abort('enough'));
      expect(await outcome(caller, 'aborted')).toEqual({ error: { thrown: 'enough' } });
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    gate.open();
    // A call that comes after those has had its turn: theirs would have been before.
    expect(await order(page, { amount: 1 })).toEqual({ value: '{"amount":1}' });
    expect(await logOf(page)).toEqual(['settled aborted', ...RAN]);
  });

  test('loads while the page of the tool leaves: the call fails as navigated', async () => {
    const { gate, page, agent } = await slow();
    await call(agent, 'left', 'order', { amount: 1 });
    await new Promise((resolve) => setTimeout(resolve, 200));
    await page.goto(`${bench.site.origin}/two`);
    gate.open();
    expect(await outcome(agent, 'left')).toMatchObject({ error: { reason: 'navigated' } });
  });

  test('loads while the tool is unregistered: the call fails as unavailable, not started', async () => {
    const { gate, page, agent } = await slow();
    await page.evaluate(() => {
      globalThis.brief = new AbortController();
      const tool = { name: 'brief', description: 'Brief', inputSchema: {}, execute: () => 'ran' };
      return document.modelContext.registerTool(tool, { signal: brief.signal });
    });
    for (const caller of [page, agent]) await call(caller, 'brief', 'brief');
    await new Promise((resolve) => setTimeout(resolve, 200));
    await page.evaluate(() => brief.abort());
    gate.open();
    for (const caller of [page, agent]) {
      expect(await outcome(caller, 'brief')).toEqual({
        error: { name: 'UnknownError', reason: 'tool-unavailable', started: false },
      });
    }
    expect(await logOf(page)).toEqual(['settled brief']);
  });
});

describe('validate: false', () => {
  test('as data-validate: the call runs, and the validator is not requested', async () => {
    const before = bench.site.requests.length;
    const page = await visit({ tag: RELAY.replace('>', ' data-validate="false">'), before: WARNINGS });
    expect(await order(page, {})).toEqual({ value: '{}' });
    expect(bench.site.requests.slice(before).map(({ path }) => path)).not.toContain(CHUNK);
    expect(await page.evaluate(() => warnings)).toEqual([]);
  });

  test('as an option of installModelContext(); without it the module finds its validator beside itself', async () => {
    for (const [options, expected] of [
      ['{}', { error: MISSING }],
      ['{ validate: false }', { value: '{}' }],
    ] as const) {
      const tag = `<script type="module">import { installModelContext } from '/index.js'; installModelContext(${options});</script>`;
      const path = `/module${++pages}`;
      bench.site.page(path, `${tag}<script type="module">globalThis.lab = { log: [] };${ORDER}</script>`);
      const page = await bench.blank();
      await page.goto(bench.site.origin + path);
      await page.waitFor(() => document.modelContext !== undefined && 'lab' in window);
      expect(await order(page, {})).toEqual(expected);
    }
  });
});

describe.each(engines)('in %s', (engine) => {
  let site: Site;
  let browser: Browser;

  beforeAll(async () => {
    site = await startSite();
    site.page('/order', `${RELAY}<script>globalThis.lab = { log: [] };</script><script>${ORDER}</script>`);
    browser = await launch(engine);
  });

  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  test('an input that does not fit is refused, a corrected one runs', async () => {
    const page = await browser.newPage();
    await page.goto(`${site.origin}/order`);
    await served(page);
    expect(await order(page, {})).toEqual({ error: MISSING });
    expect(await order(page, { amount: 1 })).toEqual({ value: '{"amount":1}' });
  });
});
