// Registering, listing and unregistering tools through the public interface, with good input and bad.
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { call, failed, outcome, useLab } from './lab.ts';

const bench = useLab();

const typeError = { error: { name: 'TypeError' } };
const invalid = failed('invalid-tool', 'InvalidStateError', false);
const unavailable = failed('tool-unavailable', 'UnknownError', false);

/** Registers what each source gives; settles all, one after the other. */
const register = (page: Page, sources: string[]) =>
  page.evaluate(async (sources) => {
    const settled = [];
    for (const source of sources) {
      const [tool, options] = new Function(`return [${source}]`)();
      settled.push(await lab.settled(document.modelContext.registerTool(tool, options)));
    }
    return settled;
  }, sources);
const names = (page: Page) => page.evaluate(() => lab.names('document'));
const tool = (members: string) => `{ name: 'n', description: 'd', execute() {}, ${members} }`;

describe('registerTool: bad input', () => {
  test('missing members and wrong types are TypeErrors', async () => {
    const page = await bench.open();
    const bad = [
      '',
      'null',
      '7',
      `'n'`,
      '{}',
      tool('name: undefined'),
      tool('description: undefined'),
      tool('execute: undefined'),
      tool(`execute: 'f'`),
      tool(`name: Symbol('n')`),
      tool(`inputSchema: 'text'`),
      tool('inputSchema: null'),
      tool('inputSchema: 7'),
      tool('annotations: 7'),
      `${tool('')}, { signal: 7 }`,
      `${tool('')}, { signal: {} }`,
      `${tool('')}, 7`,
    ];
    expect(await register(page, bad)).toEqual(bad.map(() => typeError));
    expect(await names(page)).toEqual([]);
  });

  test('names: 1 to 128 of A-Z a-z 0-9 _ . -', async () => {
    const page = await bench.open();
    const bad = [`''`, `'a b'`, `'é'`, `'a/b'`, `'n'.repeat(129)`, `'a\\n'`, `null + ' '`];
    expect(
      await register(
        page,
        bad.map((name) => tool(`name: ${name}`)),
      ),
    ).toEqual(bad.map(() => invalid));
    expect(await register(page, [tool(`description: ''`)])).toEqual([invalid]);
    const good = [`'n'.repeat(128)`, `'A-z_0.9'`, '7', 'null'];
    expect(
      await register(
        page,
        good.map((name) => tool(`name: ${name}`)),
      ),
    ).toEqual(good.map(() => ({})));
    expect(await names(page)).toEqual(['7', 'A-z_0.9', 'n'.repeat(128), 'null']);
  });

  test('schemas that JSON cannot hold are TypeErrors; a throwing getter is the page’s own error', async () => {
    const page = await bench.open();
    const bad = [
      tool('inputSchema: (() => { const a = {}; a.a = a; return a; })()'),
      tool('inputSchema: { default: 1n }'),
      tool('inputSchema: { toJSON: () => undefined }'),
      tool('inputSchema: { toJSON: () => 5 }'),
      tool('inputSchema: () => 1'),
    ];
    expect(await register(page, bad)).toEqual(bad.map(() => typeError));
    const throwing = [
      tool(`inputSchema: { get properties() { throw new RangeError('mine'); } }`),
      tool(`get description() { throw new RangeError('mine'); }`),
      tool(`inputSchema: { toJSON() { throw new RangeError('mine'); } }`),
    ];
    expect(await register(page, throwing)).toEqual(throwing.map(() => ({ error: { name: 'RangeError' } })));
    expect(await names(page)).toEqual([]);
  });

  test('C50: what is over a limit is refused, and says the limit; the rest stays listed', async () => {
    const page = await bench.open();
    const tooLarge = failed('too-large', 'QuotaExceededError', false);
    const schema = (length: number) => `inputSchema: { description: 'x'.repeat(${length}) }`;
    const fits = 256 * 1024 - '{"description":""}'.length;
    const settled = await register(page, [
      tool(`name: 'ok'`),
      tool(`name: 'big', ${schema(2_000_000)}`),
      tool(`name: 'over', ${schema(fits + 1)}`),
      tool(`name: 'at', ${schema(fits)}`),
      tool(`name: 'odd', inputSchema: { default: new Map([[1, 2]]) }`),
    ]);
    expect(settled).toEqual([{}, tooLarge, tooLarge, {}, {}]);
    expect(await names(page)).toEqual(['at', 'odd', 'ok']);
    const message = await page.evaluate(() =>
      document.modelContext
        .registerTool({
          name: 'big',
          description: 'd',
          inputSchema: { description: 'x'.repeat(300_000) },
          execute() {},
        })
        .catch((error) => error.message as string),
    );
    expect(message).toContain('262144');
  });

  test('C50: 1,024 tools a document, and no more; all of them are listed elsewhere', async () => {
    const { tool, agent } = await bench.pair();
    const settled = await tool.evaluate(async () => {
      const all = Array.from({ length: 1_025 }, (_, index) =>
        lab.settled(lab.register(`tool-${String(index).padStart(4, '0')}`, () => index)),
      );
      return (await Promise.all(all)).filter((one) => 'error' in one);
    });
    expect(settled).toEqual([failed('too-many', 'QuotaExceededError', false)]);
    await call(agent, 'a', 'tool-1023');
    expect(await outcome(agent, 'a')).toEqual({ value: '1023' });
    const listed = await agent.evaluate(() => lab.names());
    expect(listed).toHaveLength(1_024);
    expect(listed).toEqual([...listed].sort());
  });

  test('an aborted signal registers nothing', async () => {
    const page = await bench.open();
    const settled = await register(page, [`${tool('')}, { signal: AbortSignal.abort('early') }`]);
    expect(settled).toEqual([{ error: { thrown: 'early' } }]);
    expect(await names(page)).toEqual([]);
  });

  test('a document that is not active registers nothing', async () => {
    const page = await bench.open();
    const refused = await page.evaluate(async () => {
      const frame = Object.assign(document.createElement('iframe'), { src: '/one' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      const { modelContext } = frame.contentDocument as Document;
      frame.remove();
      const name = ({ name, reason }: { name: string; reason: string }) => ({ name, reason });
      return Promise.all([
        modelContext.registerTool({ name: 'n', description: 'd', execute() {} }).catch(name),
        modelContext.getTools().catch(name),
        modelContext.getPendingExecutions().catch(name),
      ]);
    });
    const inactive = { name: 'InvalidStateError', reason: 'inactive-document' };
    expect(refused).toEqual([inactive, inactive, inactive]);
  });
});

describe('getTools and executeTool: bad input', () => {
  test('a scope that there is not', async () => {
    const page = await bench.open();
    const settled = await page.evaluate(() =>
      lab.settled(document.modelContext.getTools({ scope: 'planet' } as never)),
    );
    expect(settled).toEqual(typeError);
  });

  test('entries that are none are TypeErrors', async () => {
    const page = await bench.open();
    const settled = await page.evaluate(() => {
      const entries = [undefined, null, 7, 'n', {}, { name: 'n' }];
      return Promise.all(
        entries.map((entry) => lab.settled(document.modelContext.executeTool(entry as never))),
      );
    });
    expect(settled).toEqual(Array.from({ length: 6 }, () => typeError));
  });

  test('entries that name nothing fail with tool-unavailable', async () => {
    const page = await bench.open();
    const settled = await page.evaluate(async () => {
      await lab.register('n', () => 'ran');
      const entry = await lab.find('n');
      const changed = [
        { ...entry, registrationId: 'x'.repeat(22) },
        { ...entry, documentId: 'x'.repeat(22) },
        { ...entry, origin: 'https://elsewhere.example' },
      ];
      return Promise.all(changed.map((one) => lab.settled(document.modelContext.executeTool(one))));
    });
    expect(settled).toEqual([unavailable, unavailable, unavailable]);
    expect(await page.evaluate(() => lab.log)).toEqual([]);
  });

  test('a plain entry of the specification (name, origin, window) works', async () => {
    const page = await bench.open();
    const result = await page.evaluate(async () => {
      await lab.register('n', () => 'ran');
      const { name, title, description, origin, window } = await lab.find('n');
      return document.modelContext.executeTool({ name, title, description, origin, window } as never);
    });
    expect(result).toBe('ran');
  });

  test('an onoutput that throws breaks nothing', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        await lab.resume(() => 'answer', await invocation.requestToken());
        return 'output';
      }),
    );
    const result = await agent.evaluate(async () => {
      const entry = await lab.find('go');
      return document.modelContext.executeTool(
        entry,
        {},
        {
          onoutput() {
            throw new Error('mine');
          },
        },
      );
    });
    expect(result).toBe('answer');
  });
});

describe('listing', () => {
  test('an entry says what was registered, and is a copy', async () => {
    const page = await bench.open();
    const [entry] = await page.evaluate(async () => {
      const inputSchema = { type: 'object', properties: { n: { type: 'number' } } };
      await document.modelContext.registerTool({
        name: 'full',
        title: 'Title',
        description: 'Words',
        inputSchema,
        annotations: { readOnlyHint: true },
        execute() {},
      });
      inputSchema.type = 'changed';
      const [first] = await document.modelContext.getTools();
      (first?.inputSchema as { type: string }).type = 'changed too';
      return (await document.modelContext.getTools()).map(({ window: place, ...rest }) => ({
        ...rest,
        here: place === window,
      }));
    });
    expect(entry).toEqual({
      name: 'full',
      title: 'Title',
      description: 'Words',
      inputSchema: { type: 'object', properties: { n: { type: 'number' } } },
      annotations: {
        readOnlyHint: true,
        untrustedContentHint: false,
        consequentialHint: false,
        debugging: false,
      },
      origin: bench.site.origin,
      documentId: expect.stringMatching(/^[\w-]{22}$/),
      registrationId: expect.stringMatching(/^[\w-]{22}$/),
      here: true,
    });
  });

  test('sorted by code units, in every scope', async () => {
    const page = await bench.open();
    const lists = await page.evaluate(async () => {
      for (const name of ['b', 'a.', 'a', 'B', '_', '10', '9', 'a-']) await lab.register(name, () => 1);
      return Promise.all([lab.names('document'), lab.names('traversable'), lab.names('group')]);
    });
    const sorted = ['10', '9', 'B', '_', 'a', 'a-', 'a.', 'b'];
    expect(lists).toEqual([sorted, sorted, sorted]);
  });

  test('scopes: this document, this tab, the group', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(async () => {
      const frame = Object.assign(document.createElement('iframe'), { src: '/one' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      await (frame.contentWindow as unknown as typeof globalThis).lab.register('in-frame', () => 1);
      await lab.register('in-page', () => 1);
    });
    await agent.evaluate(() => lab.register('elsewhere', () => 1));
    await tool.evaluate(() => lab.find('elsewhere'));
    expect(await tool.evaluate(() => lab.names('document'))).toEqual(['in-page']);
    expect(await tool.evaluate(() => lab.names('traversable'))).toEqual(['in-frame', 'in-page']);
    expect(await tool.evaluate(() => lab.names('group'))).toEqual(['elsewhere', 'in-frame', 'in-page']);
  });
});

describe('C05: unregistering while a call runs', () => {
  const ways = {
    '(a) within the callback': `controller.abort(); return 'a';`,
    '(b) a task later, while it is pending': `setTimeout(() => { controller.abort(); resolve(); }); await pending; return 'a';`,
    '(c) right after it resolved': `queueMicrotask(() => setTimeout(() => controller.abort())); return 'a';`,
  };

  test.each(Object.keys(ways))('%s: the result is delivered; the tool is gone', async (way) => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(
      (body) => {
        const controller = new AbortController();
        const { promise: pending, resolve } = Promise.withResolvers();
        const run = new Function('controller', 'pending', 'resolve', `return (async () => { ${body} })();`);
        void lab.register('once', () => run(controller, pending, resolve), controller.signal).catch(() => {});
      },
      ways[way as keyof typeof ways],
    );
    const [result, again] = await agent.evaluate(async () => {
      const entry = await lab.find('once');
      const result = await document.modelContext.executeTool(entry);
      for (;;) {
        const listed = await document.modelContext.getTools({ scope: 'group' });
        if (listed.length === 0) break;
      }
      return [result, await lab.settled(document.modelContext.executeTool(entry))];
    });
    expect(result).toBe('a');
    expect(again).toEqual(unavailable);
    expect(await tool.evaluate(() => lab.log.filter((entry) => entry === 'began once'))).toHaveLength(1);
  });

  test('a call that had not begun is refused, not run', async () => {
    const page = await bench.open();
    const settled = await page.evaluate(async () => {
      const controller = new AbortController();
      await lab.register('never', () => 'ran', controller.signal).catch(() => {});
      const entry = await lab.find('never');
      const call = lab.settled(document.modelContext.executeTool(entry));
      controller.abort();
      return call;
    });
    expect(settled).toEqual(unavailable);
    expect(await page.evaluate(() => lab.log)).not.toContain('began never');
  });

  test('an entry never runs a later tool of the same name', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => {
      const controller = new AbortController();
      Object.assign(window, { controller });
      void lab.register('same', () => 'old', controller.signal).catch(() => {});
    });
    await agent.evaluate(async () => Object.assign(window, { entry: await lab.find('same') }) && undefined);
    await tool.evaluate(() => {
      (window as unknown as { controller: AbortController }).controller.abort();
      return lab.register('same', () => 'new');
    });
    const settled = await agent.evaluate(() =>
      lab.settled(
        document.modelContext.executeTool(
          (window as unknown as { entry: Parameters<Document['modelContext']['executeTool']>[0] }).entry,
        ),
      ),
    );
    expect(settled).toEqual(unavailable);
    await call(agent, 'a', 'same');
    expect(await outcome(agent, 'a')).toEqual({ value: 'new' });
  });
});

describe('C41: registering, aborting and registering again', () => {
  test('a true duplicate is refused, and changes nothing', async () => {
    const page = await bench.open();
    const settled = await page.evaluate(async () => {
      const first = lab.settled(lab.register('same', () => 'first'));
      const second = lab.settled(lab.register('same', () => 'second'));
      return Promise.all([first, second]);
    });
    expect(settled).toEqual([{}, failed('duplicate-name', 'InvalidStateError', false)]);
    await call(page, 'a', 'same');
    expect(await outcome(page, 'a')).toEqual({ value: 'first' });
  });

  test('a schema that registers a tool of the same name as it is read: the first to be there stays', async () => {
    const page = await bench.open();
    const settled = await page.evaluate(async () => {
      const { modelContext } = document;
      let inner: Promise<unknown> = Promise.resolve();
      const inputSchema = {
        toJSON() {
          inner = lab.settled(lab.register('same', () => 'inner'));
          return { type: 'object' };
        },
      };
      const tool = { name: 'same', description: 'd', inputSchema, execute: () => 'outer' };
      const outer = await lab.settled(modelContext.registerTool(tool));
      return [await inner, outer, await lab.names('document')];
    });
    expect(settled).toEqual([{}, failed('duplicate-name', 'InvalidStateError', false), ['same']]);
    await call(page, 'a', 'same');
    expect(await outcome(page, 'a')).toEqual({ value: 'inner' });
  });

  test('within one task: the last one is listed and callable', async () => {
    const { tool, agent } = await bench.pair();
    const settled = await tool.evaluate(async () => {
      const promises: Promise<unknown>[] = [];
      for (let round = 0; round < 5; round += 1) {
        const controller = new AbortController();
        promises.push(lab.settled(lab.register('same', () => round, controller.signal)));
        if (round < 4) controller.abort(`round ${round}`);
        // An old signal that aborts again, and again, removes nothing of a later one.
        else promises.push(Promise.resolve(controller.signal.aborted));
      }
      return Promise.all(promises);
    });
    const aborted = [0, 1, 2, 3].map((round) => ({ error: { thrown: `round ${round}` } }));
    expect(settled).toEqual([...aborted, {}, false]);
    expect(await names(tool)).toEqual(['same']);
    await call(agent, 'a', 'same');
    expect(await outcome(agent, 'a')).toEqual({ value: '4' });
  });

  test('a refused duplicate’s signal removes nothing', async () => {
    const page = await bench.open();
    const left = await page.evaluate(async () => {
      await lab.register('same', () => 'first');
      const controller = new AbortController();
      await lab.register('same', () => 'second', controller.signal).catch(() => {});
      controller.abort();
      return lab.names('document');
    });
    expect(left).toEqual(['same']);
  });

  test('one toolchange for a task’s changes, before registerTool resolves', async () => {
    const page = await bench.open();
    const log = await page.evaluate(async () => {
      const log: string[] = [];
      document.modelContext.addEventListener('toolchange', () => log.push('toolchange'));
      await Promise.all(
        ['a', 'b', 'c'].map((name) => lab.register(name, () => 1).then(() => log.push(name))),
      );
      return log;
    });
    expect(log).toEqual(['toolchange', 'a', 'b', 'c']);
  });

  test('ontoolchange: set, replaced, removed', async () => {
    const page = await bench.open();
    const log = await page.evaluate(async () => {
      const { modelContext } = document;
      const log: string[] = [String(modelContext.ontoolchange)];
      modelContext.ontoolchange = (event) =>
        log.push(`one ${event.type} ${(event as never as { ready: boolean }).ready}`);
      await lab.register('a', () => 1);
      modelContext.ontoolchange = () => log.push('two');
      await lab.register('b', () => 1);
      modelContext.ontoolchange = null;
      await lab.register('c', () => 1);
      modelContext.ontoolchange = 7 as never;
      log.push(String(modelContext.ontoolchange));
      return log;
    });
    expect(log).toEqual(['null', 'one toolchange true', 'two', 'null']);
  });
});
