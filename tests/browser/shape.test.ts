// What pages see of the interfaces: as Web IDL makes them, in every engine.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, engines, launch, type Page } from './driver/index.ts';
import { RELAY, served } from './pages.ts';
import { type Site, startSite } from './site.ts';

let site: Site;

/** Words that the tests speak in the page. */
interface ShapeInPage {
  /** The name of what it throws or rejects with, with our reason if there is one; else the value. */
  outcome(call: () => unknown): Promise<unknown>;
  /** What a call throws at once. */
  thrown(call: () => unknown): string | null;
  /** An object whose members write their names to `log` when they are read. */
  traced(log: string[], members: object): never;
  frame(): Promise<HTMLIFrameElement>;
}

declare global {
  var shape: ShapeInPage;
}

function installShape(): void {
  const nameOf = (error: { name: string; reason?: string }) =>
    error.reason === undefined ? (error.name ?? error) : `${error.name} ${error.reason}`;
  const shape: ShapeInPage = {
    async outcome(call) {
      try {
        return await call();
      } catch (error) {
        return nameOf(error as Error);
      }
    },
    thrown(call) {
      try {
        Promise.resolve(call()).catch(() => {});
        return null;
      } catch (error) {
        return nameOf(error as Error);
      }
    },
    traced(log, members) {
      const trace = (target: object, name: PropertyKey): unknown => {
        log.push(String(name));
        return Reflect.get(target, name);
      };
      return new Proxy(members, { get: trace }) as never;
    },
    async frame() {
      const frame = Object.assign(document.createElement('iframe'), { src: '/shape' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      return frame;
    },
  };
  Object.assign(window, { shape });
}

beforeAll(async () => {
  site = await startSite();
  site.route('/shape.js', `(${installShape})()`);
  site.page('/shape', `${RELAY}<script src="/shape.js"></script><title>shape</title><body></body>`);
  const headers = { 'origin-agent-cluster': '?0' };
  site.page('/site-keyed', { headers, body: `${RELAY}<script src="/shape.js"></script>` });
});

afterAll(() => site.close());

const INTERFACES = {
  ModelContext: 0,
  ModelContextToolInvocation: 0,
  ToolActivatedEvent: 1,
  ToolCancelEvent: 1,
  ToolChangeEvent: 1,
};

describe.each(engines)('%s', (engine) => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await launch(engine);
    page = await browser.newPage();
    await page.goto(`${site.origin}/shape`);
    await served(page);
  });

  afterAll(() => browser?.close());

  test('interfaces are on the global: not enumerable, writable, configurable, with name, length and tag', async () => {
    const found = await page.evaluate((names) => {
      const described = names.map((name) => {
        const { value, ...flags } = Object.getOwnPropertyDescriptor(window, name) ?? {};
        const prototype = Object.getOwnPropertyDescriptor(value, 'prototype');
        const tag = Object.getOwnPropertyDescriptor(value.prototype, Symbol.toStringTag);
        const back = Object.getOwnPropertyDescriptor(value.prototype, 'constructor');
        return {
          name: value.name,
          length: value.length,
          flags,
          prototype: prototype?.writable,
          tag,
          back: back?.value === value && back?.enumerable,
        };
      });
      return described;
    }, Object.keys(INTERFACES));
    expect(found).toEqual(
      Object.entries(INTERFACES).map(([name, length]) => ({
        name,
        length,
        flags: { enumerable: false, writable: true, configurable: true },
        prototype: false,
        tag: { value: name, enumerable: false, writable: false, configurable: true },
        back: false,
      })),
    );
  });

  test('methods and attributes are on the prototypes, enumerable, with names and lengths', async () => {
    const members = await page.evaluate(() => {
      const membersOf = ({ prototype }: { prototype: object }) =>
        Object.entries(Object.getOwnPropertyDescriptors(prototype))
          .filter(([name]) => name !== 'constructor')
          .map(([, { value, get, set, enumerable, configurable }]) => [
            value ? `${value.name}/${value.length}` : [get?.name, set?.name].filter(Boolean).join(', '),
            enumerable && configurable,
          ]);
      return {
        context: Object.fromEntries(membersOf(ModelContext)),
        invocation: Object.fromEntries(membersOf(ModelContextToolInvocation)),
        activated: Object.fromEntries(membersOf(ToolActivatedEvent as never)),
        cancel: Object.fromEntries(membersOf(ToolCancelEvent as never)),
        change: Object.fromEntries(membersOf(ToolChangeEvent as never)),
        own: Object.keys(document.modelContext),
        text: String(document.modelContext),
        isOne: document.modelContext instanceof ModelContext && document.modelContext instanceof EventTarget,
      };
    });
    expect(members).toMatchObject({
      context: {
        'registerTool/1': true,
        'getTools/0': true,
        'executeTool/1': true,
        'resumeTool/2': true,
        'getPendingExecutions/0': true,
        'get relay': true,
        'get ontoolchange, set ontoolchange': true,
        'get ontoolactivated, set ontoolactivated': true,
        'get ontoolcancel, set ontoolcancel': true,
      },
      invocation: { 'requestToken/0': true },
      activated: { 'get toolName': true },
      cancel: { 'get toolName': true },
      change: { 'get ready': true },
      own: [],
      text: '[object ModelContext]',
      isOne: true,
    });
  });

  test('pages construct neither a ModelContext nor an invocation', async () => {
    const thrown = await page.evaluate(() =>
      [ModelContext, ModelContextToolInvocation].flatMap((one) => {
        const Interface = one as unknown as new (...args: unknown[]) => object;
        class Derived extends Interface {}
        return [
          shape.thrown(() => new Interface()),
          shape.thrown(() => new Interface(Symbol(), {})),
          shape.thrown(() => new Derived()),
          shape.thrown(() => (Interface as unknown as () => void)()),
        ];
      }),
    );
    expect(thrown).toEqual(Array.from({ length: 8 }, () => 'TypeError'));
  });

  test('events: members of the dictionary, defaults, conversions and their order', async () => {
    const events = await page.evaluate(() => {
      const log: string[] = [];
      const Activated = ToolActivatedEvent;
      const full = new Activated(
        'toolactivated',
        shape.traced(log, { bubbles: 1, cancelable: true, composed: true, toolName: 7 }),
      );
      const { bubbles, cancelable, composed, toolName, type } = full;
      return {
        full: { bubbles, cancelable, composed, toolName, type },
        log,
        plain: [
          new Activated('x').toolName,
          new ToolCancelEvent('x').toolName,
          new ToolChangeEvent('x').ready,
        ],
        nothing: [new Activated('x', null as never).toolName, new Activated('x', undefined).toolName],
        ready: [
          new ToolChangeEvent('x', { ready: false }).ready,
          new ToolChangeEvent('x', { ready: 0 as never }).ready,
        ],
        wrong: [
          shape.thrown(() => new Activated('x', 7 as never)),
          shape.thrown(() => new Activated('x', { toolName: Symbol() as never })),
          shape.thrown(() => (Activated as unknown as () => void)()),
          ...[Activated, ToolCancelEvent, ToolChangeEvent].map((one) =>
            shape.thrown(() => new (one as unknown as new () => Event)()),
          ),
        ],
        kinds: [full instanceof Event, full instanceof ToolCancelEvent, String(full)],
        own: Object.keys(full).filter((name) => name !== 'isTrusted'),
      };
    });
    expect(events).toEqual({
      full: { bubbles: true, cancelable: true, composed: true, toolName: '7', type: 'toolactivated' },
      log: ['bubbles', 'cancelable', 'composed', 'toolName'],
      plain: ['', '', true],
      nothing: ['', ''],
      ready: [false, false],
      wrong: Array.from({ length: 6 }, () => 'TypeError'),
      kinds: [true, false, '[object ToolActivatedEvent]'],
      own: [],
    });
  });

  test('attributes of what is none of theirs throw; methods reject, and never throw', async () => {
    const report = await page.evaluate(async () => {
      const getter = (Interface: { prototype: object }, name: string) =>
        Object.getOwnPropertyDescriptor(Interface.prototype, name)?.get as () => unknown;
      const getters = [
        getter(ModelContext, 'relay'),
        getter(ModelContext, 'ontoolchange'),
        getter(ToolActivatedEvent as never, 'toolName'),
        getter(ToolChangeEvent as never, 'ready'),
      ];
      const strangers = [undefined, {}, ModelContext.prototype, new ToolCancelEvent('x'), new EventTarget()];
      const thrown = getters.flatMap((get) => strangers.map((one) => shape.thrown(() => get.call(one))));
      const methods = ['registerTool', 'getTools', 'executeTool', 'resumeTool', 'getPendingExecutions'];
      const calls = methods.flatMap((name) =>
        strangers.map(
          (one) => () => (ModelContext.prototype as never as Record<string, () => void>)[name]?.call(one),
        ),
      );
      calls.push(() => ModelContextToolInvocation.prototype.requestToken.call({} as never) as never);
      return {
        attributes: [...new Set(thrown)],
        atOnce: [...new Set(calls.map(shape.thrown))],
        methods: [...new Set(await Promise.all(calls.map(shape.outcome)))],
      };
    });
    expect(report).toEqual({ attributes: ['TypeError'], atOnce: [null], methods: ['TypeError'] });
  });

  test('arguments that are missing or of the wrong type reject with a TypeError, and never throw', async () => {
    const report = await page.evaluate(async () => {
      const context = document.modelContext as never as Record<
        string,
        (...args: unknown[]) => Promise<unknown>
      >;
      const tool = { name: 'wrong', description: 'd', execute() {} };
      const entry = { name: 'n', description: 'd', origin, window };
      const calls: [string, ...unknown[]][] = [
        ['registerTool'],
        ['registerTool', tool, 7],
        ['registerTool', tool, { signal: null }],
        ['registerTool', tool, { signal: { aborted: false, addEventListener() {}, throwIfAborted() {} } }],
        ['registerTool', tool, { exposedTo: 7 }],
        ['registerTool', tool, { exposedTo: 'https://a.example' }],
        ['registerTool', tool, { exposedTo: null }],
        ['registerTool', tool, { exposedTo: [Symbol()] }],
        ['registerTool', { ...tool, title: Symbol() }],
        ['registerTool', { ...tool, inputSchema: null }],
        ['getTools', 7],
        ['getTools', { fromOrigins: {} }],
        ['getTools', { scope: 'planet' }],
        ['executeTool'],
        ...['name', 'description', 'origin', 'window'].map((member): [string, unknown] => [
          'executeTool',
          { ...entry, [member]: undefined },
        ]),
        ['executeTool', { ...entry, window: {} }],
        ['executeTool', { ...entry, window: 7 }],
        ['executeTool', { ...entry, title: Symbol() }],
        ['executeTool', { ...entry, inputSchema: '{}' }],
        ['executeTool', { ...entry, annotations: 7 }],
        ['executeTool', entry, 7],
        ['executeTool', entry, null],
        ['executeTool', entry, {}, 7],
        ['executeTool', entry, {}, { signal: {} }],
        ['resumeTool'],
        ['resumeTool', 'token'],
        ['resumeTool', 'token', {}],
      ];
      const run = ([name, ...args]: [string, ...unknown[]]) => context[name]?.(...args);
      return {
        atOnce: calls.filter((call) => shape.thrown(() => run(call)) !== null),
        others: (await Promise.all(calls.map((call) => shape.outcome(() => run(call))))).filter(
          (outcome) => outcome !== 'TypeError',
        ),
        names: (await document.modelContext.getTools()).map(({ name }) => name),
      };
    });
    expect(report).toEqual({ atOnce: [], others: [], names: [] });
  });

  test('null is an empty dictionary, undefined a member left out', async () => {
    const report = await page.evaluate(async () => {
      const controller = new AbortController();
      const { signal } = controller;
      const { modelContext } = document;
      const undefinedMembers = { exposedTo: undefined, signal: undefined };
      const tool = {
        name: 'empty',
        description: 'd',
        title: undefined,
        annotations: null,
        execute: () => 'ran',
      };
      await modelContext.registerTool(tool as never, { signal });
      await modelContext.registerTool(
        { name: 'b', description: 'd', execute() {} },
        undefinedMembers as never,
      );
      const [b, entry] = await modelContext.getTools(null as never);
      const result = await modelContext.executeTool(entry as never, undefined, null as never);
      controller.abort();
      return { names: [b?.name, entry?.name], title: entry?.title, annotations: entry?.annotations, result };
    });
    expect(report).toEqual({
      names: ['b', 'empty'],
      title: '',
      annotations: {
        consequentialHint: false,
        debugging: false,
        readOnlyHint: false,
        untrustedContentHint: false,
      },
      result: 'ran',
    });
  });

  test('members are read once, in the order of Web IDL, before anything else is looked at', async () => {
    const logs = await page.evaluate(async () => {
      const { modelContext } = document;
      const [registered, listed, executed]: string[][] = [[], [], []] as never;
      const annotations = (log: string[]) => shape.traced(log, { readOnlyHint: true });
      const tool = {
        annotations: annotations(registered as string[]),
        name: 'a',
        description: '',
        execute() {},
      };
      const refused = await shape.outcome(() =>
        modelContext.registerTool(
          shape.traced(registered as string[], tool),
          shape.traced(registered as string[], {}),
        ),
      );
      await modelContext.getTools(shape.traced(listed as string[], {}));
      const entry = {
        annotations: annotations(executed as string[]),
        name: 'a',
        description: 'd',
        origin: 'about:blank',
        window,
      };
      const opaque = await shape.outcome(() =>
        modelContext.executeTool(
          shape.traced(executed as string[], entry),
          {},
          shape.traced(executed as string[], {}),
        ),
      );
      return { registered, refused, listed, executed, opaque };
    });
    expect(logs).toEqual({
      registered: [
        'annotations',
        'consequentialHint',
        'debugging',
        'readOnlyHint',
        'untrustedContentHint',
        'description',
        'execute',
        'inputSchema',
        'name',
        'title',
        'exposedTo',
        'signal',
      ],
      refused: 'InvalidStateError invalid-tool',
      listed: ['fromOrigins', 'readyTimeout', 'scope'],
      executed: [
        'annotations',
        'consequentialHint',
        'debugging',
        'readOnlyHint',
        'untrustedContentHint',
        'description',
        'documentId',
        'inputSchema',
        'name',
        'origin',
        'registrationId',
        'tabId',
        'title',
        'window',
        'keepalive',
        'onoutput',
        'signal',
      ],
      opaque: 'NotSupportedError opaque-origin',
    });
  });

  test('an entry’s window: one of any origin, or null for that of another tab; the input comes before the options', async () => {
    const report = await page.evaluate(async (src) => {
      const frame = Object.assign(document.createElement('iframe'), { src });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      const { modelContext } = document;
      const far = frame.contentWindow;
      const call = (window: Window | null, input: unknown, options: object) =>
        shape.outcome(() =>
          modelContext.executeTool(
            { name: 'n', description: 'd', origin, window } as never,
            input as never,
            options,
          ),
        );
      const outcomes = [await call(far, {}, {}), await call(null, {}, {})];
      frame.remove();
      outcomes.push(await call(far, {}, {}));
      const log: string[] = [];
      outcomes.push(await call(window, 7, shape.traced(log, {})), log);
      return outcomes;
    }, `${site.other}/shape`);
    const unavailable = 'UnknownError tool-unavailable';
    expect(report).toEqual([unavailable, unavailable, unavailable, 'TypeError', []]);
  });

  test('event handler attributes: objects and null, nothing else; called with the context, false cancels', async () => {
    const report = await page.evaluate(() => {
      const { modelContext } = document;
      const handlers = [7, 'text', undefined, {}, () => 1].map((value) => {
        modelContext.ontoolcancel = value as never;
        return modelContext.ontoolcancel === value ? 'kept' : modelContext.ontoolcancel;
      });
      const log: unknown[] = [];
      modelContext.ontoolcancel = { handleEvent: () => log.push('no') } as never;
      modelContext.addEventListener('toolcancel', () => log.push('listener'));
      modelContext.dispatchEvent(new ToolCancelEvent('toolcancel'));
      modelContext.ontoolcancel = function (event) {
        log.push(this === modelContext, event.toolName);
        return false;
      };
      const event = new ToolCancelEvent('toolcancel', { toolName: 'n', cancelable: true });
      log.push(modelContext.dispatchEvent(event), event.defaultPrevented);
      modelContext.ontoolcancel = null;
      log.push(modelContext.dispatchEvent(new ToolCancelEvent('toolcancel', { cancelable: true })));
      return { handlers, log };
    });
    expect(report).toEqual({
      handlers: [null, null, null, 'kept', 'kept'],
      // A handler keeps the place that it got when it was first set, whatever it was then.
      log: ['listener', true, 'n', 'listener', false, true, 'listener', true],
    });
  });

  test('Document.prototype.modelContext: a getter, always the same object, a TypeError for what is no document', async () => {
    const report = await page.evaluate(() => {
      const { get, set, ...flags } =
        Object.getOwnPropertyDescriptor(Document.prototype, 'modelContext') ?? {};
      const read = get as () => unknown;
      return {
        flags,
        names: [get?.name, typeof set],
        same: read.call(document) === document.modelContext,
        own: Object.hasOwn(document, 'modelContext'),
        wrong: [{}, window, undefined, Document.prototype, document.body].map((one) =>
          shape.thrown(() => read.call(one)),
        ),
      };
    });
    expect(report).toEqual({
      flags: { enumerable: true, configurable: true },
      names: ['get modelContext', 'undefined'],
      same: true,
      own: false,
      wrong: ['TypeError', 'TypeError', 'TypeError', 'TypeError', 'TypeError'],
    });
  });

  test('a document without a window has a context of its own, in which nothing can be done', async () => {
    const report = await page.evaluate(async () => {
      const inactive = document.implementation.createHTMLDocument();
      const { modelContext } = inactive;
      const tool = { name: 'n', description: 'd', execute() {} };
      const entry = { name: 'n', description: 'd', origin, window };
      return {
        same: inactive.modelContext === modelContext && modelContext instanceof ModelContext,
        other: modelContext !== document.modelContext,
        parsed: new DOMParser().parseFromString('<p>', 'text/html').modelContext !== modelContext,
        methods: await Promise.all([
          shape.outcome(() => modelContext.registerTool(tool)),
          shape.outcome(() => modelContext.getTools()),
          shape.outcome(() => modelContext.executeTool(entry as never)),
          shape.outcome(() => modelContext.resumeTool('A'.repeat(43), () => 1)),
          shape.outcome(() => modelContext.getPendingExecutions()),
        ]),
        // What Web IDL makes a TypeError comes first.
        mistyped: await shape.outcome(() => modelContext.registerTool({} as never)),
        relay: [modelContext.relay.state, modelContext.relay.reason],
      };
    });
    expect(report).toEqual({
      same: true,
      other: true,
      parsed: true,
      methods: Array.from({ length: 5 }, () => 'InvalidStateError inactive-document'),
      mistyped: 'TypeError',
      relay: ['alone', 'inactive-document'],
    });
  });

  test('frames: each realm has its own; a removed one keeps its object, whose methods reject in its own realm', async () => {
    // Firefox runs no reactions to promises of a realm whose window is gone, whoever made them.
    const methods = engine === 'firefox' ? [] : ['getTools', 'registerTool', 'executeTool'];
    const report = await page.evaluate(async (methods) => {
      const frame = await shape.frame();
      const inside = frame.contentDocument as Document;
      const { ModelContext: Theirs, DOMException: Exception } = frame.contentWindow as Window &
        typeof globalThis;
      const { modelContext } = inside;
      const get = Object.getOwnPropertyDescriptor(Document.prototype, 'modelContext')?.get as () => unknown;
      const before = {
        own: modelContext !== document.modelContext && modelContext instanceof Theirs,
        through: get.call(inside) === modelContext,
      };
      frame.remove();
      const errors: unknown[] = [];
      for (const method of methods as 'getTools'[]) {
        try {
          await modelContext[method]({ name: 'n', description: 'd', origin, window, execute() {} } as never);
        } catch (error) {
          errors.push(error instanceof Exception && error.name);
        }
      }
      return { before, kept: inside.modelContext === modelContext, errors };
    }, methods);
    expect(report).toEqual({
      before: { own: true, through: true },
      kept: true,
      errors: methods.map(() => 'InvalidStateError'),
    });
  });

  test('a page that may change its origin is refused as Chromium refuses it, and elsewhere served', async () => {
    const keyed = await browser.newPage();
    await keyed.goto(`${site.origin}/site-keyed`);
    await keyed.waitFor(() => document.modelContext !== undefined);
    const outcomes = await keyed.evaluate(async () => {
      const { modelContext } = document;
      const tool = { name: 'n', description: 'd', execute() {} };
      return [
        await shape.outcome(() => modelContext.registerTool(tool).then(() => 'served')),
        await shape.outcome(() => modelContext.getTools().then(() => 'served')),
      ];
    });
    const expected = engine === 'chromium' ? 'SecurityError invalid-origin' : 'served';
    expect(outcomes).toEqual([expected, expected]);
    await keyed.close();
  });

  test('a signal of another realm is one', async () => {
    const report = await page.evaluate(async () => {
      const frame = await shape.frame();
      const { AbortController: Theirs } = frame.contentWindow as Window & typeof globalThis;
      const controller = new Theirs();
      const { signal } = controller;
      await document.modelContext.registerTool(
        { name: 'foreign', description: 'd', execute() {} },
        { signal },
      );
      const names = async () => (await document.modelContext.getTools()).map(({ name }) => name);
      const before = await names();
      controller.abort();
      const after = await names();
      frame.remove();
      return [before.includes('foreign'), after.includes('foreign')];
    });
    expect(report).toEqual([true, false]);
  });

  test('exposedTo and fromOrigins: addresses of origins that are potentially trustworthy', async () => {
    const report = await page.evaluate(async () => {
      const bad = [
        '/',
        '*',
        'https://example:bogus',
        'https://\ud800.com',
        'http://example.com',
        'ftp://example.com',
      ];
      bad.push(
        'chrome-extension://foobar',
        'about:blank',
        'http://localhost.example',
        'http://127.0.0.1.example',
        '',
      );
      const good = [
        'https://example.com/path',
        'http://localhost:3000',
        'http://127.0.0.1',
        'http://a.localhost',
      ];
      const { modelContext } = document;
      const ask = async (address: string, index: number) => {
        const controller = new AbortController();
        const tool = { name: `exposed-${index}`, description: 'd', execute() {} };
        const options = { exposedTo: [address], signal: controller.signal };
        const registered = await shape.outcome(() => modelContext.registerTool(tool, options));
        const listed = await shape.outcome(
          async () => void (await modelContext.getTools({ fromOrigins: [address] })),
        );
        controller.abort();
        return [registered, listed];
      };
      return {
        bad: [...new Set((await Promise.all(bad.map(ask))).flat())],
        good: (await Promise.all(good.map(ask))).flat().filter((outcome) => outcome != null),
      };
    });
    expect(report).toEqual({ bad: ['SecurityError invalid-origin'], good: [] });
  });
});
