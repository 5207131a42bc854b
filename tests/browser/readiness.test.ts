// Readiness: what holds it up, what waits for it and for how long, and which events tell of it. In every engine but for
// back/forward caches: only Chromium's is at work under automation.
import { describe, expect, test } from 'vitest';
import { engines, type Page } from './driver/index.ts';
import { arrived, eventually, LAB, ready, useLab } from './lab.ts';
import { createGate, pieces } from './site.ts';

/** Has `toolchange` written to the log, with what it says. */
const watchChanges = (page: Page) =>
  page.evaluate(() => {
    document.modelContext.addEventListener('toolchange', (event) =>
      lab.log.push(`toolchange ${(event as Event & { ready: boolean }).ready}`),
    );
    // Commands to the worker, as they leave the page.
    const post = MessagePort.prototype.postMessage as (...args: unknown[]) => void;
    MessagePort.prototype.postMessage = function (this: MessagePort, ...args: unknown[]) {
      const [method] = (args[0] as { path?: string[] } | null)?.path ?? [];
      if (method) lab.log.push(method);
      post.apply(this, args);
    } as never;
  });
const changes = (page: Page) =>
  page.evaluate(() => lab.log.filter((entry) => entry.startsWith('toolchange')));
/** Several tasks later: whatever was to be told of the current one has been. */
const tasksLater = (page: Page) =>
  page.evaluate(async () => {
    for (let task = 0; task < 5; task += 1) {
      await new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = resolve;
        port2.postMessage(null);
      });
    }
  });
const addFrame = (page: Page, path: string) =>
  page.evaluate(async (src) => {
    const frame = Object.assign(document.createElement('iframe'), { src });
    const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
    document.body.append(frame);
    await loaded;
  }, path);
/** Lists in the page; how long that took, too. */
const listed = (page: Page, options: Parameters<Document['modelContext']['getTools']>[0] = {}) =>
  page.evaluate(async (options) => {
    const start = performance.now();
    const tools = await document.modelContext.getTools(options);
    return { names: tools.map(({ name }) => name), took: performance.now() - start };
  }, options);

describe.each(engines)('%s', (engine) => {
  const bench = useLab({ engine });

  describe('waitForToolsUntil', () => {
    test('what is settled when the task ends changes nothing and fires nothing', async () => {
      const page = await bench.open();
      await watchChanges(page);
      const same = await page.evaluate(async () => {
        const { modelContext } = document;
        const before = modelContext.toolsReady;
        for (const value of [7, undefined, Promise.resolve(), Promise.reject(new Error('mine'))])
          modelContext.waitForToolsUntil(value as never);
        // biome-ignore lint/suspicious/noThenProperty: a thenable.
        modelContext.waitForToolsUntil({ then: (settle: () => void) => settle() } as never);
        await modelContext.toolsReady;
        await new Promise((resolve) => setTimeout(resolve));
        return before === modelContext.toolsReady;
      });
      await tasksLater(page);
      expect(same).toBe(true);
      expect(await page.evaluate(() => lab.log)).toEqual([]);
    });

    test('one event on losing readiness, one on becoming ready, whatever changes in between', async () => {
      const page = await bench.open();
      await watchChanges(page);
      const renewed = await page.evaluate(async () => {
        const { modelContext } = document;
        const before = modelContext.toolsReady;
        modelContext.waitForToolsUntil(lab.gate('a'));
        const after = modelContext.toolsReady;
        void after.then(() => lab.log.push('ready'));
        await lab.register('one', () => 1);
        await lab.register('two', () => 2);
        return before !== after;
      });
      await tasksLater(page);
      expect(renewed).toBe(true);
      expect(await changes(page)).toEqual(['toolchange false']);
      await page.evaluate(() => lab.open('a'));
      await tasksLater(page);
      expect(await page.evaluate(() => lab.log.filter((entry) => /ready|change/.test(entry)))).toEqual([
        'toolchange false',
        'toolchange true',
        'ready',
      ]);
      expect((await listed(page)).names).toEqual(['one', 'two']);
    });

    test('registrations of a task and its loss of readiness are one event', async () => {
      const page = await bench.open();
      await watchChanges(page);
      await page.evaluate(() => {
        void lab.register('one', () => 1);
        document.modelContext.waitForToolsUntil(lab.gate('a'));
        void lab.register('two', () => 1);
      });
      await tasksLater(page);
      expect(await changes(page)).toEqual(['toolchange false']);
    });

    test.each(['a thenable', 'a promise that is rejected'])('%s counts', async (what) => {
      const page = await bench.open();
      await watchChanges(page);
      await page.evaluate((isThenable) => {
        const promise = lab.gate('a');
        // biome-ignore lint/suspicious/noThenProperty: a thenable.
        const thenable = { then: promise.then.bind(promise) };
        document.modelContext.waitForToolsUntil(isThenable ? (thenable as never) : promise);
      }, what.includes('thenable'));
      await tasksLater(page);
      expect(await changes(page)).toEqual(['toolchange false']);
      await page.evaluate(() => lab.fail('a', 'mine'));
      await tasksLater(page);
      expect(await changes(page)).toEqual(['toolchange false', 'toolchange true']);
    });

    test('a promise whose own then throws, or settles twice, counts once', async () => {
      const page = await bench.open();
      const states = await page.evaluate(async () => {
        const { modelContext } = document;
        const odd = (then: (settle: () => void) => void) => Object.assign(Promise.resolve(), { then });
        const state = async () => (await modelContext.observe({ readyTimeout: 50 })).state;
        modelContext.waitForToolsUntil(
          odd(() => {
            throw new Error('odd');
          }),
        );
        const thrown = await state();
        modelContext.waitForToolsUntil(
          odd((settle) => {
            settle();
            settle();
          }),
        );
        modelContext.waitForToolsUntil(lab.gate('a'));
        return [thrown, await state()];
      });
      expect(states).toEqual(['ready', 'timeout']);
    });

    test('several at once, and new ones while it waits: ready when the last has settled', async () => {
      const page = await bench.open();
      await watchChanges(page);
      const isReady = async () => {
        await tasksLater(page);
        return (await changes(page)).length === 2;
      };
      await page.evaluate(() => {
        document.modelContext.waitForToolsUntil(lab.gate('a'));
        document.modelContext.waitForToolsUntil(lab.gate('b'));
      });
      await page.evaluate(() => lab.open('b'));
      expect(await isReady()).toBe(false);
      await page.evaluate(() => {
        lab.open('a');
        document.modelContext.waitForToolsUntil(lab.gate('c'));
      });
      expect(await isReady()).toBe(false);
      await page.evaluate(() => lab.open('c'));
      expect(await isReady()).toBe(true);
      expect(await changes(page)).toEqual(['toolchange false', 'toolchange true']);
    });

    test('registerTool awaited inside the promise does not lock up, and a hundred and fifty are told of at once', async () => {
      const page = await bench.open();
      await watchChanges(page);
      await page.evaluate(() => {
        document.modelContext.waitForToolsUntil(
          (async () => {
            for (let index = 0; index < 150; index += 1) await lab.register(`tool-${index}`, () => index);
          })(),
        );
        return document.modelContext.toolsReady;
      });
      expect((await listed(page)).names).toHaveLength(150);
      expect((await changes(page)).at(-1)).toBe('toolchange true');
      const commands = await page.evaluate(() => lab.log.filter((entry) => entry === 'announceTools'));
      expect(commands.length).toBeLessThanOrEqual(3);
    });

    test('a document that is not active throws', async () => {
      const page = await bench.open();
      await addFrame(page, '/one');
      const thrown = await page.evaluate(() => {
        const frame = document.querySelector('iframe') as HTMLIFrameElement;
        const { modelContext } = frame.contentDocument as Document;
        frame.remove();
        try {
          return modelContext.waitForToolsUntil(Promise.resolve());
        } catch (error) {
          return (error as { reason: string }).reason;
        }
      });
      expect(thrown).toBe('inactive-document');
    });

    test('a frame’s promise: the tab is not ready; removed with the frame, it holds up nothing', async () => {
      const page = await bench.open();
      await addFrame(page, '/one');
      await watchChanges(page);
      await page.evaluate(() => {
        const { modelContext } = (document.querySelector('iframe') as HTMLIFrameElement)
          .contentDocument as Document;
        modelContext.waitForToolsUntil(new Promise(() => {}));
      });
      await page.waitFor(() => lab.log.includes('toolchange false'));
      expect((await listed(page, { scope: 'document' })).took).toBeLessThan(500);
      const waiting = page.evaluate(async () => {
        const { state, documents } = await document.modelContext.observe({ readyTimeout: 20_000 });
        return [state, documents.length];
      });
      await tasksLater(page);
      await page.evaluate(() => document.querySelector('iframe')?.remove());
      expect(await waiting).toEqual(['ready', 1]);
      await page.waitFor(() => lab.log.includes('toolchange true'));
      expect(await changes(page)).toEqual(['toolchange false', 'toolchange true']);
    });
  });

  describe('getTools waits until all documents in scope are ready', () => {
    test.each(['document', 'traversable', 'group'] as const)('%s: of this document', async (scope) => {
      const page = await bench.open();
      const names = await page.evaluate(async (scope) => {
        document.modelContext.waitForToolsUntil(lab.gate('a'));
        const listing = lab.names(scope);
        await lab.register('late', () => 1);
        lab.open('a');
        return listing;
      }, scope);
      expect(names).toEqual(['late']);
    });

    test('group: of another tab', async () => {
      const { tool, agent } = await bench.pair();
      await tool.evaluate(() => document.modelContext.waitForToolsUntil(lab.gate('a')));
      // Told of in order: a listing that shows the tool has been told of the promise as well.
      await tool.evaluate(() => lab.register('early', () => 1));
      await eventually(async () => (await listed(agent, { scope: 'group', readyTimeout: 0 })).names).toEqual([
        'early',
      ]);
      const listing = listed(agent, { scope: 'group', readyTimeout: 20_000 });
      await tool.evaluate(async () => {
        await lab.register('late', () => 1);
        lab.open('a');
      });
      expect((await listing).names).toEqual(['early', 'late']);
    });

    test('readyTimeout bounds it, and what there is is listed', async () => {
      const { tool, agent } = await bench.pair();
      await tool.evaluate(async () => {
        document.modelContext.waitForToolsUntil(new Promise(() => {}));
        await lab.register('early', () => 1);
      });
      for (const readyTimeout of [0, -1, Number.NaN, 200]) {
        const { names, took } = await listed(tool, { readyTimeout });
        expect(names).toEqual(['early']);
        // Timers of a hidden tab come once a second.
        expect(took).toBeLessThan(2_900);
      }
      await eventually(async () => (await listed(agent, { scope: 'group', readyTimeout: 0 })).names).toEqual([
        'early',
      ]);
      const { took } = await listed(agent, { scope: 'group' });
      expect(took).toBeGreaterThan(2_900);
      expect(took).toBeLessThan(6_000);
    });

    test.each(['traversable', 'group'] as const)('%s: until a document is parsed', async (scope) => {
      const gate = createGate();
      const late = `<script>document.modelContext.registerTool({ name: 'late', description: 'd', execute() {} })</script>`;
      bench.site.page('/slow', () => ({ body: pieces(LAB, gate.opened, late) }));
      const page = scope === 'group' ? (await bench.pair()).agent : await bench.open();
      await page.evaluate((scope) => {
        if (scope === 'group') window.open('/slow');
        else document.body.append(Object.assign(document.createElement('iframe'), { src: '/slow' }));
      }, scope);
      await page.waitFor(async (scope) => {
        const { documents } = await document.modelContext.observe({ scope, readyTimeout: 0 });
        return documents.some(({ url, ready }) => url.endsWith('/slow') && !ready);
      }, scope);
      const listing = listed(page, { scope });
      gate.open();
      expect((await listing).names).toEqual(['late']);
    });

    test('a document that takes for ever to be parsed holds it up for a second, and no event', async () => {
      const gate = createGate();
      bench.site.page('/endless', () => ({ body: pieces(LAB, gate.opened) }));
      const page = await bench.blank();
      await page
        .evaluate((address) => void location.assign(address), `${bench.site.origin}/endless`)
        .catch(() => {});
      await page.waitFor(() => 'lab' in window);
      await watchChanges(page);
      const { took } = await listed(page);
      await page.evaluate(() => lab.register('n', () => 1));
      gate.open();
      expect(took).toBeLessThan(2_500);
      expect(await changes(page)).toEqual(['toolchange true']);
    });
  });

  describe('an agent that lists right after a navigation sees the tools of the new page, and none of the old', () => {
    // Without the Navigation API a document is known to be leaving from `beforeunload`, some milliseconds later.
    const leave = `location.href = '/second';
      if (!window.navigation) await new Promise((resolve) => addEventListener('beforeunload', resolve));
      return 'gone';`;
    const tools = (name: string) =>
      `${LAB}<title>${name}</title><script>document.modelContext.registerTool({ name: '${name}', description: 'd', async execute() { ${leave} } })</script>`;

    test.each([
      ['at once', 0, 0],
      ['slowly', 300, 0],
      ['slowly, its script slower still', 0, 300],
    ])('another tab, which loads %s', async (_, delayMs, pause) => {
      bench.site.page('/first', tools('old'));
      bench.site.page('/second', () => ({ delayMs, body: pieces(' ', pause, tools('new')) }));
      const agent = await bench.open();
      const tool = await bench.join(agent, '/first');
      const [result, names] = await agent.evaluate(async () => {
        const result = await document.modelContext.executeTool(await lab.find('old'));
        return [result, await lab.names('group')];
      });
      expect([result, names]).toEqual(['gone', ['new']]);
      await arrived(tool, '/second');
    });

    test.each([
      ['at once', 0, 0],
      ['slowly', 300, 0],
      ['slowly, its script slower still', 0, 300],
    ])('a frame, which loads %s', async (_, delayMs, pause) => {
      bench.site.page('/first', tools('old'));
      bench.site.page('/second', () => ({ delayMs, body: pieces(' ', pause, tools('new')) }));
      const page = await bench.open();
      await addFrame(page, '/first');
      const lists = await page.evaluate(async () => {
        const [old] = await document.modelContext.getTools();
        await document.modelContext.executeTool(old as never);
        return [await lab.names('traversable'), await lab.names('group')];
      });
      expect(lists).toEqual([['new'], ['new']]);
    });

    test('where no relay comes, it waits for a second', async () => {
      bench.site.page('/first', tools('old'));
      bench.site.page('/second', '<title>bare</title>');
      const agent = await bench.open();
      await bench.join(agent, '/first');
      await agent.evaluate(async () => {
        await document.modelContext.executeTool(await lab.find('old'));
      });
      const { names, took } = await listed(agent, { scope: 'group' });
      expect(names).toEqual([]);
      expect(took).toBeLessThan(2_900);
    });

    test('a navigation that brings no document: the tools are there', async () => {
      bench.site.page('/first', tools('old'));
      bench.site.page('/second', { status: 204 });
      const agent = await bench.open();
      await bench.join(agent, '/first');
      const names = await agent.evaluate(async () => {
        await document.modelContext.executeTool(await lab.find('old'));
        return lab.names('group');
      });
      expect(names).toEqual(['old']);
    });
  });

  describe('once a task', () => {
    const registerMany = (page: Page) =>
      page.evaluate(async () => {
        await Promise.all(
          Array.from({ length: 150 }, (_, index) => lab.register(`tool-${index}`, () => index)),
        );
      });

    test('a hundred and fifty registrations: one event, one announcement', async () => {
      const page = await bench.open();
      await watchChanges(page);
      await registerMany(page);
      await tasksLater(page);
      expect(await page.evaluate(() => lab.log)).toEqual(['toolchange true', 'announceTools']);
    });

    // WebKit's driver hides no window.
    if (engine !== 'webkit') {
      test('in a hidden tab, with timers throttled, too; the agent elsewhere hears of it at once', async () => {
        const agent = await bench.open();
        const tool = await bench.join(agent);
        await agent.evaluate(() => lab.names('group'));
        // Another tab in front hides both.
        await bench.blank();
        await tool.waitFor(() => document.hidden);
        await watchChanges(tool);
        await watchChanges(agent);
        await tool.evaluate(() => {
          document.modelContext.waitForToolsUntil(lab.gate('a'));
        });
        await registerMany(tool);
        await tool.evaluate(() => lab.open('a'));
        await agent.waitFor(() => lab.log.includes('toolchange true'));
        expect(await changes(agent)).toEqual(['toolchange true']);
        expect(await changes(tool)).toEqual(['toolchange false', 'toolchange true']);
        const { names, took } = await listed(agent, { scope: 'group' });
        expect(names).toHaveLength(150);
        expect(took).toBeLessThan(1_000);
      });
    }

    test('a page that loads fires nothing, here or elsewhere', async () => {
      const agent = await bench.open();
      await agent.evaluate(() => lab.names('group'));
      await watchChanges(agent);
      const tool = await bench.join(agent);
      await tool.evaluate(() => lab.names('group'));
      expect(await changes(agent)).toEqual([]);
    });
  });

  describe('observe', () => {
    test('shows every document in scope with its tools, as getTools lists them', async () => {
      const { tool, agent } = await bench.pair();
      await tool.evaluate(() => lab.register('n', () => 1));
      const seen = await agent.evaluate(async () => {
        const { modelContext } = document;
        await lab.find('n');
        const [own] = (await modelContext.observe()).documents;
        const { state, documents } = await modelContext.observe({ scope: 'group' });
        const lists = documents.map(({ tools }) => tools);
        const isSame =
          JSON.stringify(lists.flat()) === JSON.stringify(await modelContext.getTools({ scope: 'group' }));
        return { own: own?.documentId, state, documents, isSame };
      });
      const id = expect.stringMatching(/^[\w-]{22}$/);
      const { origin } = bench.site;
      const facts = { documentId: id, tabId: id, url: `${origin}/lab`, origin, ready: true };
      expect(seen).toEqual({
        own: seen.documents[0]?.documentId,
        state: 'ready',
        documents: [
          { ...facts, tools: [] },
          { ...facts, tools: [expect.objectContaining({ name: 'n', window: null })] },
        ],
        isSame: true,
      });
      expect(seen.documents[0]?.tabId).not.toBe(seen.documents[1]?.tabId);
    });

    test('C15: says who is not ready and what there is; a later one is not held up by the early one', async () => {
      const page = await bench.open();
      const seen = await page.evaluate(async () => {
        const { modelContext } = document;
        const look = async (readyTimeout: number) => {
          const { state, documents } = await modelContext.observe({ readyTimeout });
          return [state, documents.map(({ ready, tools }) => [ready, tools.map(({ name }) => name)])];
        };
        modelContext.waitForToolsUntil(
          (async () => {
            await lab.register('a', () => 1);
            await new Promise((resolve) => setTimeout(resolve, 50));
            await lab.register('b', () => 1);
            await lab.gate('rest');
            await lab.register('c', () => 1);
          })(),
        );
        const early = await look(200);
        lab.open('rest');
        return [early, await look(20_000)];
      });
      expect(seen).toEqual([
        ['timeout', [[false, ['a', 'b']]]],
        ['ready', [[true, ['a', 'b', 'c']]]],
      ]);
    });

    // Firefox runs no reactions to promises of a realm whose window is gone.
    if (engine !== 'firefox') {
      test('gone at once if its frame is removed while it waits', async () => {
        const page = await bench.open();
        await addFrame(page, '/one');
        const [removed, took] = await page.evaluate(async () => {
          const frame = document.querySelector('iframe') as HTMLIFrameElement;
          const { modelContext } = frame.contentDocument as Document;
          modelContext.waitForToolsUntil(new Promise(() => {}));
          const start = performance.now();
          const observing = modelContext.observe({ readyTimeout: 20_000 });
          frame.remove();
          return [await observing, performance.now() - start];
        });
        expect(removed).toEqual({ state: 'gone', documents: [] });
        expect(took).toBeLessThan(1_000);
      });
    }

    test('bad options are rejected', async () => {
      const page = await bench.open();
      const settled = await page.evaluate(() =>
        lab.settled(document.modelContext.observe({ scope: 'planet' } as never)),
      );
      expect(settled).toEqual({ error: { name: 'TypeError' } });
    });
  });

  if (engine !== 'chromium') return;

  describe('the back/forward cache', () => {
    test('settled on the way into the back/forward cache: counts on return', async () => {
      const page = await bench.open();
      await watchChanges(page);
      await page.evaluate(() => {
        addEventListener('pagehide', () => lab.open('a'));
        addEventListener('pageshow', (event) =>
          lab.log.push(`persisted ${(event as PageTransitionEvent).persisted}`),
        );
        document.modelContext.waitForToolsUntil(lab.gate('a'));
      });
      await page.waitFor(() => lab.log.includes('toolchange false'));
      await page.waitForNavigation(() => page.evaluate(() => location.assign('/one')));
      await arrived(page, '/one');
      await page.back();
      await page.waitFor(() => lab.log.includes('persisted true') && lab.log.includes('toolchange true'));
      expect(await changes(page)).toEqual(['toolchange false', 'toolchange true']);
      expect((await listed(page, { scope: 'group' })).took).toBeLessThan(500);
    });

    test('settled after the return from the back/forward cache: held up until then', async () => {
      const page = await bench.open();
      await watchChanges(page);
      await page.evaluate(() => {
        addEventListener('pageshow', (event) =>
          lab.log.push(`persisted ${(event as PageTransitionEvent).persisted}`),
        );
        document.modelContext.waitForToolsUntil(lab.gate('a'));
      });
      await page.waitForNavigation(() => page.evaluate(() => location.assign('/one')));
      await arrived(page, '/one');
      await page.back();
      await page.waitFor(() => lab.log.includes('persisted true'));
      await ready(page);
      const state = await page.evaluate(async () => {
        const { state } = await document.modelContext.observe({ readyTimeout: 50 });
        lab.open('a');
        return state;
      });
      expect(state).toBe('timeout');
      await page.waitFor(() => lab.log.includes('toolchange true'));
    });

    test('observing is over, with gone, if the tab leaves while it waits', async () => {
      const page = await bench.open();
      await page.evaluate(() => {
        addEventListener('pageshow', (event) =>
          lab.log.push(`persisted ${(event as PageTransitionEvent).persisted}`),
        );
        document.modelContext.waitForToolsUntil(new Promise(() => {}));
        void document.modelContext.observe({ readyTimeout: 20_000 }).then(({ state }) => lab.log.push(state));
      });
      await page.waitForNavigation(() => page.evaluate(() => location.assign('/two')));
      await arrived(page, '/two');
      await page.back();
      await page.waitFor(() => lab.log.includes('persisted true'));
      expect(await page.evaluate(() => lab.log.indexOf('gone') < lab.log.indexOf('persisted true'))).toBe(
        true,
      );
    });
  });
});
