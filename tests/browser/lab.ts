// What most browser tests share: pages with the relay and a few words for tests to speak in them (`lab`), and tabs that are
// closed after each test. Every tab that `open` gives is a group of its own; `join` opens a window with an opener.
import type { Page as PuppeteerPage } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type {
  CauseRecord,
  ModelContextExecuteToolOptions,
  PendingExecutionHandle,
  RegisteredTool,
  ToolExecuteCallback,
  ToolExecuteCallbackOptions,
} from '../../client/index.ts';
import { type Browser, type Engine, type LaunchOptions, launch, type Page } from './driver/index.ts';
import { RELAY, served } from './pages.ts';
import { type Site, startSite } from './site.ts';

/** An error as tests compare it: what is stable of it. */
export interface Failure {
  name?: string;
  reason?: string;
  started?: boolean;
  cause?: CauseRecord;
  /** What was thrown and is no error. */
  thrown?: unknown;
  /** One of ours that is not a DOMException itself. */
  strange?: true;
}

export type Settled<T = unknown> = { value: T } | { error: Failure };

interface CallInPage {
  controller: AbortController;
  outputs: (string | null)[];
  settled: Promise<Settled<string | null>>;
  done: Settled<string | null> | null;
}

export interface LabInPage {
  /** `began NAME`, `ended NAME`, `toolactivated NAME`, `toolcancel NAME`, and whatever a test writes. */
  log: string[];
  calls: Record<string, CallInPage>;
  /** What the callback that began last was given. */
  last: ToolExecuteCallbackOptions & { input: unknown };
  pending: PendingExecutionHandle[];
  /** Tokens that a test keeps in the page. */
  tokens: string[];
  register(name: string, execute: ToolExecuteCallback, signal?: AbortSignal): Promise<void>;
  /** Resumes with the token that the page was handed, or with this one. */
  resume(execute: ToolExecuteCallback, token?: string | null): Promise<void>;
  /** Waits until the group has just one tool of that name (in that document). */
  find(name: string, documentId?: string): Promise<RegisteredTool>;
  names(scope?: 'group' | 'traversable' | 'document'): Promise<string[]>;
  /** Finds the tool and calls it; resolves once the call is made, not settled. */
  call(id: string, name: string, input?: object, options?: ModelContextExecuteToolOptions): Promise<void>;
  outcome(id: string): Promise<Settled<string | null>>;
  settled<T>(promise: Promise<T>): Promise<Settled<T>>;
  describe(error: unknown): Failure;
  /** A promise that `open` of the same name settles. */
  gate(name: string): Promise<unknown>;
  open(name: string, value?: unknown): void;
  fail(name: string, message: string): void;
  /** Waits for an entry of the log. */
  logged(entry: string): Promise<void>;
  /** Collects, and waits until there is something. */
  collect(): Promise<{ toolName: string; input: unknown; state: string }[]>;
}

declare global {
  var lab: LabInPage;
}

/** Runs in every page of the lab. */
function installLab(): void {
  const { modelContext } = document;
  const gates = new Map<string, PromiseWithResolvers<unknown>>();
  const waiting = new Set<() => void>();
  const write = (entry: string) => {
    lab.log.push(entry);
    for (const check of waiting) check();
  };
  const gateOf = (name: string) => {
    const gate = gates.get(name) ?? Promise.withResolvers<unknown>();
    gates.set(name, gate);
    return gate;
  };
  const recorded =
    (name: string, execute: ToolExecuteCallback): ToolExecuteCallback =>
    async (input, options) => {
      lab.last = { ...options, input };
      write(`began ${name}`);
      try {
        return await execute(input, options);
      } finally {
        write(`ended ${name}`);
      }
    };
  const lab: LabInPage = {
    log: [],
    calls: {},
    last: undefined as never,
    pending: [],
    tokens: [],
    register: (name, execute, signal) =>
      modelContext.registerTool(
        { name, description: `The tool ${name}`, execute: recorded(name, execute) },
        signal ? { signal } : {},
      ),
    resume: (execute, token = webmcpRelay.takeToken()) =>
      modelContext.resumeTool(token as string, recorded('resumed', execute)),
    async find(name, documentId) {
      for (const deadline = Date.now() + 10_000; Date.now() < deadline; ) {
        const changed = new Promise<void>((resolve) => {
          modelContext.addEventListener('toolchange', () => resolve(), { once: true });
          setTimeout(resolve, 500);
        });
        const tools = (await modelContext.getTools({ scope: 'group' })).filter(
          (tool) => tool.name === name && (documentId === undefined || tool.documentId === documentId),
        );
        if (tools[0] && tools.length === 1) return tools[0];
        await changed;
      }
      const all = await modelContext.getTools({ scope: 'group' });
      throw new Error(`There is not just one tool ${name}: ${JSON.stringify(all, ['name', 'documentId'])}`);
    },
    names: async (scope = 'group') => (await modelContext.getTools({ scope })).map(({ name }) => name),
    async call(id, name, input, options = {}) {
      const tool = await lab.find(name);
      const controller = new AbortController();
      const outputs: (string | null)[] = [];
      const promise = modelContext.executeTool(tool, input, {
        signal: controller.signal,
        onoutput: (text) => outputs.push(text),
        ...options,
      });
      const call: CallInPage = {
        controller,
        outputs,
        settled: lab.settled(promise),
        done: null,
      };
      lab.calls[id] = call;
      void call.settled.then((done) => {
        call.done = done;
        write(`settled ${id}`);
      });
    },
    outcome: (id) => lab.calls[id]?.settled ?? Promise.reject(new Error(`No call ${id}`)),
    settled: (promise) =>
      promise.then(
        (value) => ({ value }),
        (error) => ({ error: lab.describe(error) }),
      ),
    describe(error) {
      if (!(error instanceof Object)) return { thrown: error };
      const { name, reason, started, cause } = error as Failure & Error;
      const strange = reason !== undefined && error.constructor !== DOMException;
      return { name, reason, started, cause, ...(strange && { strange }) } as Failure;
    },
    gate: (name) => gateOf(name).promise,
    open: (name, value) => gateOf(name).resolve(value),
    fail: (name, message) => gateOf(name).reject(new Error(message)),
    logged: (entry) =>
      new Promise((resolve) => {
        const check = () => {
          if (!lab.log.includes(entry)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    async collect() {
      for (const deadline = Date.now() + 10_000; Date.now() < deadline; ) {
        lab.pending = await modelContext.getPendingExecutions();
        if (lab.pending.length > 0) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return lab.pending.map(({ toolName, input, state }) => ({ toolName, input, state }));
    },
  };
  Object.assign(window, { lab });
  for (const type of ['toolactivated', 'toolcancel']) {
    modelContext.addEventListener(type, (event) =>
      write(`${type} ${(event as Event & { toolName: string }).toolName}`),
    );
  }
}

export const LAB = `${RELAY}<script src="/lab.js"></script>`;

export interface Lab {
  readonly site: Site;
  readonly browser: Browser;
  /** A fresh tab, a group of its own, served by the worker. */
  open(path?: string): Promise<Page>;
  /** A window that the page opens. */
  join(page: Page, path?: string, features?: string): Promise<Page>;
  /** A tab for tools and one for the agent, one opened by the other. `apart`: cut off, in a process of its own, so that it may crash. */
  pair(options?: { apart?: boolean }): Promise<{ tool: Page; agent: Page }>;
  /** A fresh tab in which nothing is loaded; closed after the test like all others. */
  blank(): Promise<Page>;
}

/**
 * The pages `/lab`, `/one`, `/two` and `/three`, all alike, in Chromium unless told. Call it once, at the top of a test file, or
 * of what it describes for each engine.
 */
export function useLab({ engine = 'chromium', ...options }: LaunchOptions & { engine?: Engine } = {}): Lab {
  let site: Site;
  let browser: Browser;
  let home: Page;

  beforeAll(async () => {
    site = await startSite();
    site.route('/lab.js', `(${installLab})()`);
    for (const path of ['/lab', '/one', '/two', '/three']) site.page(path, `${LAB}<title>${path}</title>`);
    const headers = { 'cross-origin-opener-policy': 'same-origin' };
    site.page('/apart', { headers, body: `${LAB}<title>/apart</title>` });
    browser = await launch(engine, options);
    home = await browser.newPage();
  });
  afterEach(async () => {
    const pages = await browser.pages();
    await Promise.all(pages.filter((page) => page !== home).map((page) => page.close().catch(() => {})));
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  const lab: Lab = {
    get site() {
      return site;
    },
    get browser() {
      return browser;
    },
    blank: () => browser.newPage(),
    async open(path = '/lab') {
      const page = await browser.newPage();
      await page.goto(site.origin + path);
      await ready(page);
      return page;
    },
    async join(page, path = '/lab', features = '') {
      const opened = await page.waitForPopup(() =>
        page.evaluate((path, features) => void window.open(path, '', features), path, features),
      );
      await ready(opened);
      return opened;
    },
    async pair({ apart = false } = {}) {
      const first = await lab.open();
      const second = await lab.join(first, apart ? '/apart' : '/lab');
      return apart ? { tool: second, agent: first } : { tool: first, agent: second };
    },
  };
  return lab;
}

/** What becomes true by itself, however slow the machine is. */
export const eventually = <T>(ask: () => T | Promise<T>) => expect.poll(ask, { timeout: 20_000 });

/** Resolves once the page has its lab and the worker serves it. */
export async function ready(page: Page): Promise<void> {
  await page.waitFor(() => 'lab' in window);
  const state = await served(page);
  if (state !== 'shared') throw new Error(`The relay is ${state}`);
}

/** Waits until the tab shows the page and its lab. */
export async function arrived(page: Page, path: string): Promise<void> {
  await page.waitFor(
    (path) => location.pathname === path && 'lab' in window && document.readyState === 'complete',
    path,
  );
}

/** Crashes the page's process. */
export async function crash(page: Page): Promise<void> {
  const session = await (page.raw as PuppeteerPage).createCDPSession();
  const crashed = new Promise<void>((resolve) => session.on('Inspector.targetCrashed', () => resolve()));
  await session.send('Inspector.enable');
  session.send('Page.crash').catch(() => {});
  await crashed;
}

/** Calls from the agent; resolves once the call is made. */
export function call(
  agent: Page,
  id: string,
  name: string,
  input: object = {},
  options: ModelContextExecuteToolOptions = {},
): Promise<void> {
  return agent.evaluate(
    (id, name, input, options) => lab.call(id, name, input, options),
    id,
    name,
    input,
    options,
  );
}

export function outcome(agent: Page, id: string): Promise<Settled<string | null>> {
  return agent.evaluate((id) => lab.outcome(id), id);
}

export function outputs(agent: Page, id: string): Promise<(string | null)[] | undefined> {
  return agent.evaluate((id) => lab.calls[id]?.outputs, id);
}

/** What `outcome` gives for one of our errors. */
export const failed = (reason: string, name: string, started: boolean, cause?: unknown) => ({
  error: cause === undefined ? { name, reason, started } : { name, reason, started, cause },
});
