// What arrives at the worker that is not as the protocol says: answered or ignored, and nobody else's calls are harmed. The
// rogue is a page of the site that speaks for itself, without the relay's client. (Chromium.)
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Call, Coordinator } from '../../shared/protocol.ts';
import type { Sealed } from '../../shared/seal.ts';
import { type Browser, launch, type Page } from './driver/index.ts';
import { served } from './pages.ts';
import { type Site, startSite } from './site.ts';

const RELAY = '<script src="/webmcp-relay.js" data-worker="/host-sw.js"></script>';

/** What the rogue page offers to the tests. */
interface Rogue {
  /** Of its latest hello. */
  helloId: string;
  /** Posts to the worker, with a port; what comes back by it first, or `null` if nothing does. */
  post(message: unknown): Promise<Answer | null>;
  /** Posts without a port. */
  shout(message: unknown): Promise<void>;
  /** A hello as it should be, but for these members. */
  hello(changes?: object): object;
  /** Connects. */
  open(): Promise<MessagePort>;
  /** Asks the worker over the port, as the link does; the reply, or what it threw. */
  ask(port: MessagePort, method: string, ...args: unknown[]): Promise<Answer>;
}

interface Answer {
  type?: string;
  ok?: boolean;
  error?: { reason: string; started: boolean };
  value?: unknown;
}

const ROGUE = `<title>rogue</title><script>
  const active = async () => (await navigator.serviceWorker.ready).active;
  const rogue = {
    async post(message) {
      const { port1, port2 } = new MessageChannel();
      const answer = new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data);
        // A worker answers in its order: once it has answered a later message, it will not answer this one any more.
        active().then(async (worker) => {
          worker.postMessage(message, [port2]);
          const { port1: mark, port2: end } = new MessageChannel();
          mark.onmessage = () => setTimeout(resolve, 50, null);
          worker.postMessage({ type: 'host:ask' }, [end]);
        });
      });
      return answer;
    },
    async shout(message) {
      (await active()).postMessage(message);
    },
    hello: (changes = {}) => ({
      type: 'webmcp-relay:hello',
      versions: [1],
      helloId: (rogue.helloId = 'hello ' + Math.random()),
      documentId: 'rogue',
      tabId: 'tab of the rogue',
      groupId: group,
      top: false,
      url: location.href,
      announcement: { tools: [], calls: [], activations: [], resumptions: [] },
      ...changes,
    }),
    async open() {
      const { port1, port2 } = new MessageChannel();
      const welcomed = new Promise((resolve) => {
        port1.onmessage = ({ data }) => resolve(data.type);
      });
      (await active()).postMessage(rogue.hello(), [port2]);
      if ((await welcomed) !== 'welcome') throw new Error('The rogue is not welcome');
      return port1;
    },
    ask(port, method, ...args) {
      const id = String(Math.random());
      const answer = new Promise((resolve) => {
        port.addEventListener('message', ({ data }) => {
          if (data.id !== id) return;
          resolve(data.name === 'throw' ? { error: { reason: 'threw' } } : data.value);
        });
      });
      const argumentList = args.map((value) => ({ type: 'RAW', value }));
      port.postMessage({ id, type: 'APPLY', path: [method], argumentList });
      return answer;
    },
  };
  const { groupId: group } = JSON.parse(sessionStorage['webmcp-relay'] ?? '{}');
</script>`;

declare const rogue: Rogue;

let site: Site;
let browser: Browser;
let shop: Page;
let agent: Page;
let page: Page;
let generation: string;

beforeAll(async () => {
  site = await startSite();
  site.route(
    '/host-sw.js',
    `const heard = [];
    addEventListener('install', () => skipWaiting());
    addEventListener('message', ({ data, ports }) => {
      const type = data && data.type;
      if (String(type).startsWith('webmcp-relay:')) return;
      if (type === 'host:ask') ports[0].postMessage(heard);
      else heard.push(data);
    });
    importScripts('/webmcp-relay-sw.js');`,
  );
  site.page(
    '/shop',
    `${RELAY}<script>
    document.modelContext.registerTool({
      name: 'echo', description: 'Says it again', execute: async ({ value, path }) => {
        if (path) await fetch(path);
        return value;
      },
    });
  </script>`,
  );
  site.page('/agent', RELAY);
  site.page('/rogue', ROGUE);
  browser = await launch('chromium');
  shop = await browser.newPage();
  await shop.goto(`${site.origin}/shop`);
  await served(shop);
  const opened = (path: string) =>
    shop.waitForPopup(() => shop.evaluate((path) => void window.open(path), path));
  agent = await opened('/agent');
  await served(agent);
  page = await opened('/rogue');
  generation = await alive();
  await call('at first');
});

afterAll(async () => {
  await browser?.close();
  await site.close();
});

/** The worker that is alive, by its lock. */
const alive = (): Promise<string> =>
  agent.evaluate(async () => {
    const { held = [] } = await navigator.locks.query();
    return held.flatMap(({ name }) => (name?.startsWith('webmcp-relay:') ? name : [])).join();
  });

const call = (value: string, path?: string): Promise<string | null> =>
  agent.evaluate(
    async (value, path) => {
      const tools = await document.modelContext.getTools({ scope: 'group' });
      const tool = tools.find(({ name }) => name === 'echo');
      return document.modelContext.executeTool(tool as never, path === null ? { value } : { value, path });
    },
    value,
    path ?? null,
  );

// Whatever a test has sent: the other pages' calls work, and it is the same worker that serves them.
let calls = 0;
afterEach(async () => {
  calls += 1;
  expect(await call(`call ${calls}`)).toBe(`call ${calls}`);
  expect(await alive()).toBe(generation);
});

const post = (message: unknown) => page.evaluate((message) => rogue.post(message), message);
const hello = (changes: object) => page.evaluate((changes) => rogue.post(rogue.hello(changes)), changes);

const WRONG = [null, 7, 'text', true, {}, []];

describe('a hello', () => {
  const NOTHING = { tools: [], calls: [], activations: [], resumptions: [] };
  const TYPES: Record<string, string> = {
    documentId: 'string',
    helloId: 'string',
    tabId: 'string',
    groupId: 'string',
    url: 'string',
    top: 'boolean',
    versions: 'array',
    announcement: 'object',
  };
  const fits = (value: unknown, type: string) =>
    type === 'array' ? Array.isArray(value) : type !== 'object' && typeof value === type;

  test.each(Object.entries(TYPES))(
    'whose %s is anything else than it should be is refused',
    async (member, type) => {
      for (const wrong of WRONG.filter((value) => !fits(value, type))) {
        expect(await hello({ [member]: wrong })).toMatchObject({
          type: 'refused',
          error: { reason: 'version-mismatch', started: false },
        });
      }
    },
  );

  test.each([[[]], [[2]], [['1']], [[null]], [[{}]]])('of the versions %j is refused', async (versions) => {
    expect(await hello({ versions })).toMatchObject({
      type: 'refused',
      error: { reason: 'version-mismatch' },
    });
  });

  test.each(['tools', 'calls', 'activations', 'resumptions'])(
    'that announces wrong %s is refused',
    async (member) => {
      for (const wrong of [null, 7, 'text', {}, [null], [7], ['text'], [{}], [[]]]) {
        const announcement = { ...NOTHING, [member]: wrong };
        expect(await hello({ announcement })).toMatchObject({ type: 'refused' });
      }
    },
  );

  test('of later versions as well, with members that nobody knows, is welcome', async () => {
    const answer = await hello({
      versions: [3, 2, 1],
      later: { a: 1 },
      announcement: { ...NOTHING, later: [] },
    });
    expect(answer).toMatchObject({ type: 'welcome', version: 1 });
  });

  test('without a port is ignored', async () => {
    await page.evaluate(() => rogue.shout(rogue.hello()));
    await page.evaluate(() => rogue.shout({ type: 'webmcp-relay:hello' }));
  });
});

describe('a message', () => {
  test.each([
    ['webmcp-relay:'],
    ['webmcp-relay:nonsense'],
    ['webmcp-relay:summons'],
    ['webmcp-relay:__proto__'],
  ])('of the type %s is ignored', async (type) => {
    expect(await post({ type, documentId: 'rogue' })).toBe(null);
  });

  test("that does not begin as ours do is the host's alone", async () => {
    const ours = [
      null,
      7,
      'webmcp-relay:hello',
      { type: 7 },
      { type: 'webmcp-rela' },
      { type: ['webmcp-relay:hello'] },
    ];
    const before = (await post({ type: 'host:ask' })) as never as unknown[];
    for (const message of ours) await page.evaluate((message) => rogue.shout(message), message);
    const after = (await post({ type: 'host:ask' })) as never as unknown[];
    // An array of one text reads like that text, and the host's listener above is not as exact as ours.
    expect(after.slice(before.length)).toEqual(ours.slice(0, -1));
  });
});

describe('a goodbye', () => {
  const GOODBYE = { documentId: 'rogue', helloId: 'hello of nobody', lostCalls: [], commands: [] };
  test.each([
    [{}],
    [{ ...GOODBYE, documentId: 7 }],
    [{ ...GOODBYE, helloId: null }],
    [{ ...GOODBYE, helloId: 'never said' }],
    [{ ...GOODBYE, lostCalls: null }],
    [{ ...GOODBYE, lostCalls: [null], commands: [null] }],
    [{ ...GOODBYE, commands: [{ method: 'constructor', argument: {} }] }],
    [{ ...GOODBYE, commands: [{ method: 'grant', argument: { digest: 7 } }] }],
    [{ ...GOODBYE, commands: [{ method: 'listTools', argument: {} }] }],
    [{ ...GOODBYE, documentId: 'nobody ever heard of' }],
    [
      {
        ...GOODBYE,
        documentId: '__proto__',
        commands: [{ method: 'cancel', argument: { executionId: 'x' } }],
      },
    ],
  ])('%j harms nobody', async (goodbye) => {
    expect(await post({ type: 'webmcp-relay:goodbye', ...goodbye })).toBe(null);
  });
});

describe('a command', () => {
  const CALL: Call = {
    executionId: 'x1',
    callerDocumentId: 'rogue',
    callerTabId: 'tab of the rogue',
    groupId: 'group',
    keepalive: false,
    documentId: 'nobody',
    registrationId: 'none',
    toolName: 'none',
    input: { text: '{}' },
    tabKey: null,
  };
  const GRANT = {
    activationId: 'x',
    executionId: 'x',
    call: null as Call | null,
    key: '',
    digest: 'd',
    tokenKey: {} as Sealed,
    lifetime: 1,
  };
  /** A right argument of each, for a document that has nothing. */
  const ARGUMENTS: { [method in keyof Coordinator]?: Parameters<Coordinator[method]>[0] } = {
    execute: { call: CALL, key: '' },
    cancel: { executionId: 'x' },
    grant: GRANT,
    redeem: { activationId: 'x', token: 'x' },
    reportEnd: {
      activationId: 'x',
      executionId: 'x',
      key: '',
      end: { type: 'returned', value: { text: null } },
    },
    announceTools: { tools: [] },
    collect: { tabSecret: 'x' },
    awaitOutcomes: { executionIds: ['x'] },
    watch: { on: false },
  };

  /** `right` with each of its members in turn as something that it must not be. */
  const wrongs = (right: object): object[] =>
    Object.entries(right).flatMap(([member, value]) =>
      [undefined, ...WRONG]
        .filter((other) => typeof other !== typeof value)
        // `null` is a call that storage knows, and the key of a call that nobody outside its tab can read.
        .filter((other) => member !== 'tabKey' && !(member === 'call' && other === null))
        .map((other) => ({ ...right, [member]: other })),
    );

  /** What each of the commands is answered with, in short. */
  const askAll = (commands: [string, ...unknown[]][]) =>
    page.evaluate(async (commands) => {
      const port = await rogue.open();
      const answers = await Promise.all(
        commands.map(async ([method, ...args]) => {
          const answer = await rogue.ask(port, method, ...args);
          return answer.ok ? 'ok' : answer.error?.reason;
        }),
      );
      port.close();
      return answers;
    }, commands);

  test.each(Object.entries(ARGUMENTS))(
    '%s with a wrong member is answered with an error',
    async (method, right) => {
      const calls = method === 'execute' ? wrongs(CALL).map((call) => ({ ...right, call })) : [];
      const wrong = [...wrongs(right), ...calls, null, 7].map((argument): [string, unknown] => [
        method,
        argument,
      ]);
      const answers = await askAll([...wrong, [method]]);
      expect(new Set(answers)).toEqual(new Set(['version-mismatch']));
    },
  );

  test('to grant a token whose lifetime is no number is answered with an error', async () => {
    const answers = await page.evaluate(async (grant) => {
      const port = await rogue.open();
      const lifetimes = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      const asked = lifetimes.map((lifetime) => rogue.ask(port, 'grant', { ...grant, lifetime }));
      const reasons = (await Promise.all(asked)).map(({ error }) => error?.reason);
      port.close();
      return reasons;
    }, GRANT);
    // An endless one may be read as the longest that there is: then the answer is that nothing runs.
    expect(answers[0]).toBe('version-mismatch');
    expect(['version-mismatch', 'not-running']).toContain(answers[1]);
    expect(['version-mismatch', 'not-running']).toContain(answers[2]);
  });

  test.each(['noSuchMethod', 'constructor', '__proto__', 'toString', 'hasOwnProperty', ''])(
    'that does not exist, %j, is answered and gives nothing away',
    async (method) => {
      const [answer] = await askAll([[method, {}]]);
      expect(answer).not.toBe('ok');
    },
  );

  test('about what nobody has heard of is answered', async () => {
    const answers = await askAll([
      ['cancel', { executionId: '__proto__' }],
      ['grant', ARGUMENTS.grant],
      ['redeem', { activationId: 'x', token: 'x'.repeat(43) }],
      ['redeem', { activationId: 'x', token: '' }],
      ['reportEnd', ARGUMENTS.reportEnd],
      ['awaitOutcomes', ARGUMENTS.awaitOutcomes],
      ['collect', ARGUMENTS.collect],
      ['reportStay', {}],
    ]);
    expect(answers).toEqual([
      'ok',
      'not-running',
      'token-unknown',
      'token-unknown',
      'not-running',
      'ok',
      'ok',
      'ok',
    ]);
  });

  test('that announces tools with schemas that are no JSON does not spoil the listing of others', async () => {
    const tool = { registrationId: 'r', name: 'zzz', title: '', description: 'x', annotations: null };
    await page.evaluate(async (tool) => {
      const port = await rogue.open();
      return rogue.ask(port, 'announceTools', { tools: [{ ...tool, inputSchema: '{no json' }] });
    }, tool);
    const names = agent.evaluate(async () => {
      const tools = await document.modelContext.getTools({ scope: 'group' });
      return tools.map(({ name }) => name);
    });
    try {
      expect(await names).toContain('echo');
    } finally {
      await page.evaluate(() => {
        const { helloId } = rogue;
        const goodbye = { type: 'webmcp-relay:goodbye', documentId: 'rogue', helloId };
        return rogue.post({ ...goodbye, lostCalls: [], commands: [] });
      });
    }
  });
});

test('a thousand malformed messages: a call under way and those after it are answered', async () => {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let reached = () => {};
  const arrived = new Promise<void>((resolve) => {
    reached = resolve;
  });
  site.route('/wait', async () => {
    reached();
    await opened;
    return '';
  });
  const underWay = call('patience', '/wait');
  await arrived;
  const answered = await page.evaluate(async () => {
    const port = await rogue.open();
    const replies: Promise<Answer | null>[] = [];
    // Five kinds, two of which are answered.
    for (let count = 0; count < 200; count += 1) {
      void rogue.shout({ type: 'webmcp-relay:goodbye', documentId: count });
      void rogue.shout({ type: `webmcp-relay:${count}` });
      const { port1, port2 } = new MessageChannel();
      replies.push(
        new Promise((resolve) => {
          port1.onmessage = ({ data }) => {
            resolve(data);
            port1.close();
          };
        }),
      );
      const { active } = await navigator.serviceWorker.ready;
      active?.postMessage(rogue.hello({ documentId: count }), [port2]);
      port.postMessage({ id: `junk ${count}`, type: count, path: count });
      replies.push(rogue.ask(port, 'grant', { digest: count }));
    }
    const kinds = (await Promise.all(replies)).map((reply) => reply?.error?.reason);
    return { count: kinds.length, kinds: [...new Set(kinds)] };
  });
  expect(answered).toEqual({ count: 400, kinds: ['version-mismatch'] });
  expect(await call('meanwhile')).toBe('meanwhile');
  open();
  expect(await underWay).toBe('patience');
});
