// The steps of the specification's algorithms that can be seen, and their order, in every engine.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ModelContext as Context, RegisteredTool, ToolExecuteCallback } from '../../client/index.ts';
import { type Browser, engines, launch, type Page } from './driver/index.ts';
import { RELAY, served } from './pages.ts';
import { type Site, startSite } from './site.ts';

let site: Site;

interface OrderInPage {
  log: unknown[];
  /** Resolves once the tool `quiet` has had its `toolchange`. */
  ready?: Promise<unknown>;
  write(entry: unknown): void;
  /** Resolves once the log has the entry. */
  written(entry: string): Promise<void>;
  /** Writes the events of a context, with a word before each. */
  watch(context: Context, word?: string): void;
  register(name: string, execute: ToolExecuteCallback, options?: object, context?: Context): Promise<unknown>;
  /** Registers a tool that writes when it begins and when its signal aborts, and never ends. */
  waits(name: string, options?: object, context?: Context): Promise<unknown>;
  entry(name: string): Promise<RegisteredTool>;
  /** Calls it, and writes how that settled. */
  call(entry: RegisteredTool, options?: object, context?: Context): Promise<void>;
  /** Resolves once everything that waits for a task in this document has had it. */
  quiet(): Promise<void>;
  frame(): Promise<HTMLIFrameElement>;
  nameOf(error: unknown): string;
}

declare global {
  var order: OrderInPage;
}

function installOrder(): void {
  const { modelContext } = document;
  const waiting = new Set<() => void>();
  const order: OrderInPage = {
    log: [],
    write(entry) {
      order.log.push(entry);
      for (const look of waiting) look();
    },
    written: (entry) =>
      new Promise((resolve) => {
        const look = () => {
          if (order.log.includes(entry)) resolve();
        };
        waiting.add(look);
        look();
      }),
    watch(context, word = '') {
      for (const type of ['toolchange', 'toolactivated', 'toolcancel']) {
        context.addEventListener(type, (event) => {
          const { toolName = '' } = event as ToolCancelEvent;
          if (toolName !== 'quiet') order.write(`${word}${type} ${toolName}`.trim());
        });
      }
    },
    register: (name, execute, options = {}, context = modelContext) =>
      context.registerTool({ name, description: 'd', execute }, options).catch((error) => error),
    waits: (name, options, context) =>
      order.register(
        name,
        (_input, { signal }) => {
          order.write(`began ${name}`);
          signal.addEventListener('abort', () => order.write(`signal ${name} ${signal.reason.name}`));
          return new Promise(() => {});
        },
        options,
        context,
      ),
    async entry(name) {
      const tools = await modelContext.getTools();
      return tools.find((tool) => tool.name === name) as RegisteredTool;
    },
    call: (entry, options = {}, context = modelContext) =>
      context.executeTool(entry, {}, options).then(
        (result) => order.write(`result ${result}`),
        (error) => order.write(`rejected ${order.nameOf(error)}`),
      ),
    async quiet() {
      const quiet = await order.entry('quiet');
      for (let round = 0; round < 3; round += 1) await modelContext.executeTool(quiet);
    },
    async frame() {
      const frame = Object.assign(document.createElement('iframe'), { src: '/order' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      await (frame.contentWindow as unknown as typeof globalThis).order.ready;
      return frame;
    },
    nameOf(error) {
      const { name, reason, started } = error as { name: string; reason?: string; started?: boolean };
      return reason === undefined ? (name ?? String(error)) : `${name} ${reason} ${started}`;
    },
  };
  order.ready = order.register('quiet', () => 'quiet');
  Object.assign(window, { order });
}

beforeAll(async () => {
  site = await startSite();
  site.route('/order.js', `(${installOrder})()`);
  site.page('/order', `${RELAY}<script src="/order.js"></script><title>order</title><body></body>`);
});

afterAll(() => site.close());

describe.each(engines)('%s', (engine) => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await launch(engine);
    page = await browser.newPage();
  });

  beforeEach(async () => {
    await page.goto(`${site.origin}/order`);
    await served(page);
    await page.evaluate(async () => void (await order.ready));
  });

  afterAll(() => browser?.close());

  describe('registerTool', () => {
    test('what is wrong is found in order: duplicate, name, description, schema, aborted signal, exposedTo', async () => {
      const outcomes = await page.evaluate(async () => {
        const { modelContext } = document;
        await order.register('taken', () => 1);
        const circular: { self?: object } = {};
        circular.self = circular;
        const signal = AbortSignal.abort('aborted');
        const exposedTo = ['about:blank'];
        const good = { name: 'new', description: 'd', execute() {} };
        const attempts: [object, object][] = [
          [
            { ...good, name: 'taken', description: '', inputSchema: circular },
            { signal, exposedTo },
          ],
          [
            { ...good, name: 'a b', description: '', inputSchema: circular },
            { signal, exposedTo },
          ],
          [
            { ...good, description: '', inputSchema: circular },
            { signal, exposedTo },
          ],
          [
            { ...good, inputSchema: circular },
            { signal, exposedTo },
          ],
          [good, { signal, exposedTo }],
          [good, { exposedTo }],
        ];
        const messages: string[] = [];
        for (const [tool, options] of attempts) {
          const refusal = await modelContext.registerTool(tool as never, options).catch((error) => error);
          messages.push(`${order.nameOf(refusal)} ${refusal.message?.includes('description') ?? ''}`.trim());
        }
        const tools = await modelContext.getTools();
        return { messages, names: tools.map(({ name }) => name) };
      });
      expect(outcomes).toEqual({
        messages: [
          'InvalidStateError duplicate-name false false',
          'InvalidStateError invalid-tool false false',
          'InvalidStateError invalid-tool false true',
          'TypeError false',
          'aborted',
          'SecurityError invalid-origin false false',
        ],
        names: ['quiet', 'taken'],
      });
    });

    test('toolchange comes in a task of its own, then the promise resolves', async () => {
      const log = await page.evaluate(async () => {
        order.watch(document.modelContext);
        const registered = order.register('a', () => 1).then(() => order.write('registered'));
        await Promise.resolve().then(() => order.write('microtask'));
        await registered;
        return order.log;
      });
      expect(log).toEqual(['microtask', 'toolchange', 'registered']);
    });

    test('toolchange reaches the parent before the frame, whoever registered', async () => {
      const log = await page.evaluate(async () => {
        const frame = await order.frame();
        const inside = (frame.contentDocument as Document).modelContext;
        order.watch(document.modelContext, 'parent ');
        order.watch(inside, 'frame ');
        await order.register('a', () => 1, {}, inside).then(() => order.write('registered'));
        await order.register('b', () => 1).then(() => order.write('registered'));
        return order.log;
      });
      const once = ['parent toolchange', 'frame toolchange', 'registered'];
      expect(log).toEqual([...once, ...once]);
    });

    test('a signal that aborts before the promise has resolved rejects it, and fires toolchange all the same', async () => {
      const log = await page.evaluate(async () => {
        order.watch(document.modelContext);
        const controller = new AbortController();
        const { signal } = controller;
        const registered = document.modelContext
          .registerTool({ name: 'a', description: 'd', execute() {} }, { signal })
          .catch((reason) => order.write(`rejected ${reason}`));
        controller.abort('reason');
        await registered;
        await order.written('toolchange');
        order.write((await document.modelContext.getTools()).map(({ name }) => name));
        return order.log;
      });
      expect(log).toEqual(['rejected reason', 'toolchange', ['quiet']]);
    });
  });

  describe('executeTool', () => {
    test('what is wrong is found in order: opaque origin, input, aborted signal, another origin, no such tool', async () => {
      const names = await page.evaluate(async () => {
        const signal = AbortSignal.abort('aborted');
        const entry = { name: 'none', description: 'd', window };
        const attempts: [object, object, object][] = [
          [{ ...entry, origin: 'about:blank' }, { big: 1n }, { signal }],
          [{ ...entry, origin: 'no origin' }, { big: 1n }, { signal }],
          [{ ...entry, origin: 'https://elsewhere.example' }, { big: 1n }, { signal }],
          [{ ...entry, origin: 'https://elsewhere.example' }, {}, { signal }],
          [{ ...entry, origin: 'https://elsewhere.example' }, {}, {}],
          [{ ...entry, origin }, {}, {}],
        ];
        const names: string[] = [];
        for (const [tool, input, options] of attempts) {
          names.push(
            order.nameOf(
              await document.modelContext.executeTool(tool as never, input, options).catch((error) => error),
            ),
          );
        }
        return names;
      });
      expect(names).toEqual([
        'NotSupportedError opaque-origin false',
        'NotSupportedError opaque-origin false',
        'TypeError',
        'aborted',
        'UnknownError tool-unavailable false',
        'UnknownError tool-unavailable false',
      ]);
    });

    test('a signal that has aborted rejects at once, and nothing begins', async () => {
      const log = await page.evaluate(async () => {
        await order.waits('a');
        const entry = await order.entry('a');
        void order.call(entry, { signal: AbortSignal.abort('early') });
        await Promise.resolve();
        await Promise.resolve();
        order.write('microtasks');
        await order.quiet();
        return order.log;
      });
      expect(log).toEqual(['rejected early', 'microtasks']);
    });

    test('in a task of its own: toolactivated, then the callback, whose result comes after', async () => {
      const log = await page.evaluate(async () => {
        await order.register('a', (input, options) => {
          order.write(
            `began ${JSON.stringify(input)} ${Object.keys(options).sort()} ${options.signal.aborted}`,
          );
          return 'x';
        });
        order.watch(document.modelContext);
        const entry = await order.entry('a');
        const call = order.call(entry);
        order.write('called');
        await Promise.resolve().then(() => order.write('microtask'));
        await call;
        return order.log;
      });
      expect(log).toEqual([
        'called',
        'microtask',
        'toolactivated a',
        'began {} invocation,signal false',
        'result x',
      ]);
    });

    test('the input is taken when the call is made', async () => {
      const log = await page.evaluate(async () => {
        await order.register('a', ({ list }: { list: number[] }) => list);
        const entry = await order.entry('a');
        const input = { list: [1] };
        const call = document.modelContext.executeTool(entry, input);
        input.list.push(2);
        return call;
      });
      expect(log).toBe('[1]');
    });

    test('calls begin in the order in which they were made', async () => {
      const log = await page.evaluate(async () => {
        await order.register('a', ({ n }: { n: number }) => order.write(n));
        const entry = await order.entry('a');
        await Promise.all([1, 2, 3].map((n) => document.modelContext.executeTool(entry, { n })));
        return order.log;
      });
      expect(log).toEqual([1, 2, 3]);
    });

    test('what a listener of toolactivated throws stops nothing', async () => {
      const log = await page.evaluate(async () => {
        addEventListener('error', (event) => event.preventDefault());
        await order.register('a', () => 'x');
        document.modelContext.ontoolactivated = () => {
          throw new Error('mine');
        };
        await order.call(await order.entry('a'));
        return order.log;
      });
      expect(log).toEqual(['result x']);
    });
  });

  describe('unregister a tool', () => {
    test('in the task of a call: toolchange, then the rejection; nothing is activated', async () => {
      const log = await page.evaluate(async () => {
        const controller = new AbortController();
        void order.waits('a', { signal: controller.signal });
        const entry = await order.entry('a');
        await order.quiet();
        order.watch(document.modelContext);
        const call = order.call(entry);
        controller.abort();
        await call;
        return order.log;
      });
      expect(log).toEqual(['toolchange', 'rejected UnknownError tool-unavailable false']);
    });

    test('before a call in the same task: toolchange, then the rejection', async () => {
      const log = await page.evaluate(async () => {
        const controller = new AbortController();
        void order.waits('a', { signal: controller.signal });
        const entry = await order.entry('a');
        await order.quiet();
        order.watch(document.modelContext);
        controller.abort();
        await order.call(entry);
        return order.log;
      });
      expect(log).toEqual(['toolchange', 'rejected UnknownError tool-unavailable false']);
    });

    test('in a frame, by its own signal, in the task of a call from its parent: toolchange first', async () => {
      const log = await page.evaluate(async () => {
        const frame = await order.frame();
        const inside = (frame.contentDocument as Document).modelContext;
        const controller = new AbortController();
        void order.waits('a', { signal: controller.signal }, inside);
        const entry = await order.entry('a');
        await order.quiet();
        order.watch(document.modelContext);
        const call = order.call(entry);
        controller.abort();
        await call;
        return order.log;
      });
      expect(log).toEqual(['toolchange', 'rejected UnknownError tool-unavailable false']);
    });

    test('within the callback: it goes on, its signal stays, its result counts', async () => {
      const log = await page.evaluate(async () => {
        const controller = new AbortController();
        const { signal } = controller;
        void order.register(
          'a',
          async (_input, options) => {
            controller.abort();
            await order.written('toolchange');
            return `late ${options.signal.aborted}`;
          },
          { signal },
        );
        const entry = await order.entry('a');
        await order.quiet();
        order.watch(document.modelContext);
        await order.call(entry);
        return order.log;
      });
      expect(log).toEqual(['toolactivated a', 'toolchange', 'result late false']);
    });

    test('right after the callback’s promise has resolved, in its task: the result counts', async () => {
      const log = await page.evaluate(async () => {
        const controller = new AbortController();
        const execute = () =>
          new Promise((resolve) => {
            resolve('resolved');
            controller.abort();
          });
        void order.register('a', execute, { signal: controller.signal });
        await order.call(await order.entry('a'));
        return order.log;
      });
      expect(log).toEqual(['result resolved']);
    });

    test('a call that has begun can be cancelled after it', async () => {
      const log = await page.evaluate(async () => {
        const registration = new AbortController();
        void order.waits('a', { signal: registration.signal });
        const entry = await order.entry('a');
        await order.quiet();
        order.watch(document.modelContext);
        const execution = new AbortController();
        const call = order.call(entry, { signal: execution.signal });
        await order.written('began a');
        registration.abort();
        execution.abort('both');
        await call;
        await order.written('toolcancel a');
        return order.log;
      });
      expect(log).toEqual([
        'toolactivated a',
        'began a',
        'rejected both',
        'toolchange',
        'signal a AbortError',
        'toolcancel a',
      ]);
    });
  });

  describe('cancel a pending tool execution', () => {
    test('the caller is told at once; in a later task the signal aborts, without the caller’s reason, then toolcancel', async () => {
      const log = await page.evaluate(async () => {
        await order.waits('a');
        order.watch(document.modelContext);
        const controller = new AbortController();
        const call = order.call(await order.entry('a'), { signal: controller.signal });
        await order.written('began a');
        controller.abort('mine');
        await call;
        await order.written('toolcancel a');
        controller.abort('again');
        await order.quiet();
        return order.log;
      });
      expect(log).toEqual([
        'toolactivated a',
        'began a',
        'rejected mine',
        'signal a AbortError',
        'toolcancel a',
      ]);
    });

    test('in the task of the call: it begins in its turn, and is cancelled', async () => {
      const log = await page.evaluate(async () => {
        await order.waits('a');
        order.watch(document.modelContext);
        const controller = new AbortController();
        const call = order.call(await order.entry('a'), { signal: controller.signal });
        controller.abort('mine');
        await call;
        await order.written('toolcancel a');
        return order.log;
      });
      expect(log).toEqual([
        'rejected mine',
        'toolactivated a',
        'began a',
        'signal a AbortError',
        'toolcancel a',
      ]);
    });

    test('in the task in which the callback resolves: the caller’s reason counts, and no toolcancel comes', async () => {
      const log = await page.evaluate(async () => {
        const controller = new AbortController();
        await order.register(
          'a',
          () =>
            new Promise((resolve) => {
              resolve('resolved');
              controller.abort('mine');
            }),
        );
        order.watch(document.modelContext);
        await order.call(await order.entry('a'), { signal: controller.signal });
        await order.quiet();
        return order.log;
      });
      expect(log).toEqual(['toolactivated a', 'rejected mine']);
    });

    test('unregistered, then cancelled, in the task of the call: the reason counts, and nothing begins', async () => {
      const log = await page.evaluate(async () => {
        const registration = new AbortController();
        void order.waits('a', { signal: registration.signal });
        const entry = await order.entry('a');
        await order.quiet();
        order.watch(document.modelContext);
        const execution = new AbortController();
        const call = order.call(entry, { signal: execution.signal });
        registration.abort();
        execution.abort('mine');
        await call;
        await order.quiet();
        return order.log;
      });
      expect(log).toEqual(['rejected mine', 'toolchange']);
    });

    test('one signal for two calls cancels both, each with its own signal', async () => {
      const log = await page.evaluate(async () => {
        const controller = new AbortController();
        const signals: AbortSignal[] = [];
        await order.register('a', (_input, { signal }) => {
          signals.push(signal);
          return new Promise(() => {});
        });
        const entry = await order.entry('a');
        const calls = [1, 2].map(() => order.call(entry, { signal: controller.signal }));
        order.watch(document.modelContext);
        controller.abort('both');
        await Promise.all(calls);
        await order.quiet();
        const distinct = new Set(signals).size;
        return [
          distinct,
          signals.every(({ aborted }) => aborted),
          order.log.filter((line) => line === 'toolcancel a').length,
        ];
      });
      expect(log).toEqual([2, true, 2]);
    });

    test('re-entrant: an abort listener that calls, a toolcancel listener that cancels another', async () => {
      const log = await page.evaluate(async () => {
        await order.waits('b');
        const other = await order.entry('b');
        const inner = new AbortController();
        await order.register(
          'a',
          (_input, { signal }) =>
            new Promise(() => {
              signal.addEventListener('abort', () => {
                order.write('signal a');
                void order.call(other, { signal: inner.signal });
              });
            }),
        );
        document.modelContext.addEventListener('toolcancel', async (event) => {
          const { toolName } = event as ToolCancelEvent;
          if (toolName !== 'a') return;
          await order.written('began b');
          inner.abort('inner');
        });
        order.watch(document.modelContext);
        const outer = new AbortController();
        const call = order.call(await order.entry('a'), { signal: outer.signal });
        await order.written('toolactivated a');
        outer.abort('outer');
        await call;
        await order.written('toolcancel b');
        return order.log;
      });
      expect(log).toEqual([
        'toolactivated a',
        'rejected outer',
        'signal a',
        'toolcancel a',
        'toolactivated b',
        'began b',
        'rejected inner',
        'signal b AbortError',
        'toolcancel b',
      ]);
    });

    test('re-entrant: a callback that cancels its own call, before and after it returns', async () => {
      const log = await page.evaluate(async () => {
        const controllers = { a: new AbortController(), b: new AbortController() };
        await order.register('a', () => {
          controllers.a.abort('within');
          return new Promise(() => {});
        });
        await order.register('b', () => {
          queueMicrotask(() => controllers.b.abort('after'));
          return 'returned';
        });
        order.watch(document.modelContext);
        await order.call(await order.entry('a'), { signal: controllers.a.signal });
        await order.written('toolcancel a');
        await order.call(await order.entry('b'), { signal: controllers.b.signal });
        await order.quiet();
        return order.log;
      });
      expect(log.slice(0, 3)).toEqual(['toolactivated a', 'rejected within', 'toolcancel a']);
      expect(log[3]).toBe('toolactivated b');
      expect(log).not.toContain('toolcancel b');
      expect(log).toHaveLength(5);
    });

    test('a tool that calls a tool: cancelling the outer call leaves the inner one alone', async () => {
      const log = await page.evaluate(async () => {
        const { promise, resolve } = Promise.withResolvers<string>();
        await order.register('inner', (_input, { signal }) =>
          promise.then((text) => `${text} ${signal.aborted}`),
        );
        const inner = await order.entry('inner');
        await order.register('outer', () => order.call(inner));
        order.watch(document.modelContext);
        const controller = new AbortController();
        const call = order.call(await order.entry('outer'), { signal: controller.signal });
        await order.written('toolactivated inner');
        controller.abort('outer');
        await call;
        await order.written('toolcancel outer');
        resolve('inner');
        await order.written('result inner false');
        return order.log;
      });
      expect(log).toEqual([
        'toolactivated outer',
        'toolactivated inner',
        'rejected outer',
        'toolcancel outer',
        'result inner false',
      ]);
    });
  });

  describe('documents that go', () => {
    test('the target’s frame is removed by a listener of toolactivated: the callback does not begin', async () => {
      const log = await page.evaluate(async () => {
        const frame = await order.frame();
        const inside = (frame.contentDocument as Document).modelContext;
        await order.waits('a', {}, inside);
        inside.addEventListener('toolactivated', () => frame.remove());
        await order.call(await order.entry('a'));
        return order.log;
      });
      expect(log).toEqual(['rejected UnknownError navigated false']);
    });

    test('the target’s frame is removed by the callback: the caller is told, no event comes', async () => {
      const log = await page.evaluate(async () => {
        const frame = await order.frame();
        const inside = (frame.contentDocument as Document).modelContext;
        const execute: ToolExecuteCallback = (_input, { signal }) => {
          signal.addEventListener('abort', () => order.write('signal'));
          order.watch(inside);
          frame.remove();
          return 'lost';
        };
        await order.register('a', execute, {}, inside);
        await order.call(await order.entry('a'));
        await order.quiet();
        return order.log;
      });
      expect(log).toEqual(['signal', 'rejected UnknownError navigated true']);
    });

    test('the target’s frame is removed by a listener of the signal: no toolcancel at a document that is gone', async () => {
      const log = await page.evaluate(async () => {
        const frame = await order.frame();
        const inside = (frame.contentDocument as Document).modelContext;
        await order.register(
          'a',
          (_input, { signal }) =>
            new Promise(() => {
              signal.addEventListener('abort', () => {
                order.write('signal');
                frame.remove();
              });
              order.write('began');
            }),
          {},
          inside,
        );
        order.watch(inside);
        const controller = new AbortController();
        const call = order.call(await order.entry('a'), { signal: controller.signal });
        await order.written('began');
        controller.abort('mine');
        await call;
        await order.written('signal');
        await order.quiet();
        return order.log;
      });
      expect(log).toEqual(['toolactivated a', 'began', 'rejected mine', 'signal']);
    });

    test('the caller’s frame is removed: the signal aborts, then toolcancel', async () => {
      const log = await page.evaluate(async () => {
        await order.waits('a');
        const frame = await order.frame();
        order.watch(document.modelContext);
        const inside = frame.contentWindow as unknown as typeof globalThis;
        const [entry] = await inside.document.modelContext.getTools();
        void inside.order.call(entry as RegisteredTool);
        await order.written('began a');
        frame.remove();
        await order.written('toolcancel a');
        return order.log;
      });
      expect(log).toEqual(['toolactivated a', 'began a', 'signal a AbortError', 'toolcancel a']);
    });

    test('a frame that calls itself and is removed: its signal aborts, no event comes', async () => {
      const log = await page.evaluate(async () => {
        const frame = await order.frame();
        const inside = (frame.contentDocument as Document).modelContext;
        await order.waits('a', {}, inside);
        order.watch(inside);
        void order.call(await order.entry('a'), {}, inside);
        await order.written('began a');
        frame.remove();
        await order.written('signal a AbortError');
        await order.quiet();
        return order.log;
      });
      // Whether the page around it hears of the rejection is the browser's business: Firefox tells nobody.
      expect(log.slice(0, 3)).toEqual(['toolactivated a', 'began a', 'signal a AbortError']);
      expect(log.slice(3)).toEqual(engine === 'firefox' ? [] : ['rejected UnknownError navigated true']);
    });

    test('a frame that is gone is not listed, and its entries name nothing', async () => {
      const report = await page.evaluate(async () => {
        const frame = await order.frame();
        const inside = (frame.contentDocument as Document).modelContext;
        await order.waits('a', {}, inside);
        const entry = await order.entry('a');
        frame.remove();
        await order.call(entry);
        return [(await document.modelContext.getTools()).map(({ name }) => name), order.log];
      });
      expect(report).toEqual([['quiet'], ['rejected UnknownError tool-unavailable false']]);
    });
  });
});
