// What every fault test does: a shop in one tab, an agent in another, one call of three pages, and a worker that is killed
// on the way. Pages count in sessionStorage how often each callback ran and each token was redeemed.
import { type Browser, launch, type Page } from '../browser/driver/index.ts';
import { within } from '../browser/driver/time.ts';
import { served } from '../browser/pages.ts';
import { createGate, type Site, type SiteRequest, startSite } from '../browser/site.ts';
import { type Fault, faultWorker } from './worker.ts';

const RELAY = '<script src="/webmcp-relay.js" data-worker="/fault-sw.js"></script>';

/** What the pages' scripts use: `pass` waits in a callback until the test lets it go on. */
const WORDS = `
  const round = new URLSearchParams(location.search).get('round');
  const count = (what) => { sessionStorage[what] = Number(sessionStorage[what] ?? 0) + 1; };
  const onward = (path, token) => { location.href = webmcpRelay.withToken(path + '?round=' + round, token); };
  const pass = (page) => fetch('/pass/' + page);`;

const PAGES = {
  '/billing': `document.modelContext.registerTool({
    name: 'checkout', title: round, description: 'Buys what is in the cart',
    async execute(input, { invocation }) {
      count('billing ran');
      const token = await invocation.requestToken();
      onward('/shipping', token);
      return 'billed ' + input.address;
    },
  });`,
  '/plain': `document.modelContext.registerTool({
    name: 'plain', title: round, description: 'Needs no other page',
    async execute(input) {
      count('plain ran');
      await pass('plain');
      return 'done ' + input.address;
    },
  });`,
  '/shipping': `document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input, { invocation }) => {
    count('shipping ran');
    await pass('shipping');
    const token = await invocation.requestToken();
    onward('/confirmation', token);
    return 'shipped ' + input.address;
  }).then(() => count('shipping redeemed'), (error) => count('shipping refused ' + error.reason));`,
  '/confirmation': `document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input) => {
    count('confirmation ran');
    await pass('confirmation');
    return { receipt: input.address };
  }).then(() => count('confirmation redeemed'), (error) => count('confirmation refused ' + error.reason));`,
};

/** What the page before says last. */
const BEFORE: Record<string, string> = { '/shipping': 'billed', '/confirmation': 'shipped' };

/** What a whole checkout leaves in its pages' counters, whatever happened to the worker. */
export const EVERYTHING_ONCE = {
  'billing ran': '1',
  'shipping ran': '1',
  'shipping redeemed': '1',
  'confirmation ran': '1',
  'confirmation redeemed': '1',
};

export interface Rig {
  readonly browser: Browser;
  readonly site: Site;
  readonly shop: Page;
  readonly agent: Page;
  /** Opens the shop anew, with empty counters: at the beginning of a checkout, unless told. */
  open(round: string, path?: string): Promise<void>;
  /** Calls the shop's tool from the agent's tab; not awaited, it goes on while the test does other things. */
  call(round: string, options?: { keepalive?: boolean }): Promise<Outcome>;
  arm(fault: Fault): Promise<void>;
  /** The world has stopped at the armed point. */
  stopped(): Promise<void>;
  kill(): Promise<void>;
  /** Holds the answers of a path until the gate that it gives is opened; `reached` settles with the first request. */
  hold(path: string): { reached: Promise<void>; open(): void };
  /** The generation that is alive, by its lock; asking wakes nobody. */
  generation(): Promise<string>;
  /** The agent asks the worker for something, so that there is one. */
  meet(): Promise<void>;
  counters(): Promise<Record<string, string>>;
  close(): Promise<void>;
}

export interface Outcome {
  result?: string | null;
  error?: { name: string; reason: string; started: boolean };
  outputs: (string | null)[];
}

/** An armed point is reached well within this time, in milliseconds, or never. */
const STOP_BOUND = 15_000;

/** `first` runs in the worker before everything else. */
export async function startRig(first = ''): Promise<Rig> {
  const site = await startSite();
  let stopped = createGate();
  let address = '';
  const ends = new Map<string, ReturnType<typeof createGate>>();
  const held = new Map<string, () => Promise<void>>();

  const passing =
    <T>(path: string, answer: T) =>
    async ({ query }: SiteRequest): Promise<T> => {
      const before = BEFORE[path];
      if (before !== undefined) await lastWords(`${before} Elm ${query.get('round')}`).opened;
      await held.get(path)?.();
      return answer;
    };

  /** A page leaves once the worker has answered its end, or was killed: a worker that dies with the page's last words unread
   *  loses an output for good, and that is not what is asked here. */
  function lastWords(text: string): ReturnType<typeof createGate> {
    const gate = ends.get(text) ?? createGate();
    ends.set(text, gate);
    return gate;
  }

  site.route('/fault-sw.js', first + faultWorker);
  site.route('/fault/ended', ({ query }: SiteRequest) => {
    lastWords(query.get('of') ?? '').open();
    return '';
  });
  site.route('/fault/stopped', () => {
    stopped.open();
    return '';
  });
  for (const [path, script] of Object.entries(PAGES)) {
    const name = path.slice(1);
    site.page(path, passing(path, `${RELAY}<title>${name}</title><script>${WORDS}${script}</script>`));
    site.route(`/pass${path}`, passing(`/pass${path}`, ''));
  }
  site.page('/agent', `${RELAY}<title>agent</title>`);
  site.page('/empty', '<title>empty</title>');

  const browser = await launch('chromium');
  const shop = await browser.newPage();
  await shop.goto(`${site.origin}/billing?round=first`);
  await served(shop);
  const agent = await shop.waitForPopup(() => shop.evaluate(() => void window.open('/agent')));
  await served(agent);

  return {
    browser,
    site,
    shop,
    agent,
    async open(round, path = '/billing') {
      address = `Elm ${round}`;
      await shop.evaluate(() => {
        const relay = sessionStorage['webmcp-relay'];
        sessionStorage.clear();
        sessionStorage['webmcp-relay'] = relay;
      });
      await shop.goto(`${site.origin}${path}?round=${round}`);
      await served(shop);
    },
    call: (round, options) =>
      agent.evaluate(
        async (round, options) => {
          let tool: never | undefined;
          while (tool === undefined) {
            const tools = await document.modelContext.getTools({ scope: 'group' });
            tool = tools.find(({ title }) => title === round) as never;
          }
          const outputs: (string | null)[] = [];
          const onoutput = (text: string | null) => outputs.push(text);
          try {
            const input = { address: `Elm ${round}` };
            return {
              result: await document.modelContext.executeTool(tool, input, { onoutput, ...options }),
              outputs,
            };
          } catch (error) {
            const { name, reason, started } = error as never as NonNullable<Outcome['error']>;
            return { error: { name, reason, started }, outputs };
          }
        },
        round,
        options,
      ),
    async arm(fault) {
      stopped = createGate();
      await agent.evaluate(async (fault) => {
        const { active } = (await navigator.serviceWorker.getRegistration()) as ServiceWorkerRegistration;
        const { port1, port2 } = new MessageChannel();
        const armed = new Promise((resolve) => {
          port1.onmessage = resolve;
        });
        active?.postMessage({ type: 'test:arm', fault }, [port2]);
        await armed;
      }, fault);
    },
    stopped: () => within(STOP_BOUND, 'The armed point was not reached', stopped.opened),
    async kill() {
      await browser.stopWorkers();
      for (const text of [`billed ${address}`, `shipped ${address}`]) lastWords(text).open();
    },
    hold(path) {
      const gate = createGate();
      const arrival = createGate();
      held.set(path, () => {
        arrival.open();
        return gate.opened;
      });
      const open = () => {
        held.delete(path);
        gate.open();
      };
      return { reached: arrival.opened, open };
    },
    generation: () =>
      agent.evaluate(async () => {
        const { held = [] } = await navigator.locks.query();
        return held.flatMap(({ name }) => (name?.startsWith('webmcp-relay:') ? name : [])).join();
      }),
    async meet() {
      await agent.evaluate(() => document.modelContext.getTools({ scope: 'group' }).then(() => {}));
    },
    counters: () =>
      shop.evaluate(() => {
        const { 'webmcp-relay': _, ...counters } = { ...sessionStorage } as Record<string, string>;
        return counters;
      }),
    async close() {
      await browser.close();
      await site.close();
    },
  };
}
