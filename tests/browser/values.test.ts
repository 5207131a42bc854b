// One mapping of inputs and results, whichever way a call takes (semantics, Values; C18, C20).
import { beforeEach, describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { arrived, call, failed, ready, type Settled, useLab } from './lab.ts';

const bench = useLab();

/** What tools return, by name; each is written as the page reads it. */
const results: Record<string, [source: string, expected: string | null]> = {
  string: [`'plain'`, 'plain'],
  'empty string': [`''`, ''],
  'string of JSON': [`'{"a":1}'`, '{"a":1}'],
  'string beyond ASCII': [`'naïve ☃ 𝄞 \\u0000'`, 'naïve ☃ 𝄞 \u0000'],
  undefined: [`undefined`, null],
  null: [`null`, 'null'],
  true: [`true`, 'true'],
  number: [`1.5`, '1.5'],
  NaN: [`NaN`, 'null'],
  '-0': [`-0`, '0'],
  BigInt: [`2n ** 70n`, '1180591620717411303424'],
  'BigInt inside': [`({ big: 10n })`, '{"big":"10"}'],
  array: [`[1, undefined, () => 1, 'x']`, '[1,null,null,"x"]'],
  object: [`({ a: { b: [1] }, c: undefined })`, '{"a":{"b":[1]}}'],
  Date: [`new Date(0)`, '"1970-01-01T00:00:00.000Z"'],
  Map: [`new Map([[1, 2]])`, '{}'],
  'typed array': [`new Uint8Array([7, 8])`, '{"0":7,"1":8}'],
  toJSON: [`({ toJSON: () => ({ a: 1 }) })`, '{"a":1}'],
  'nested Proxy': [
    `({ state: new Proxy({ n: 1, list: new Proxy([1], {}) }, {}) })`,
    '{"state":{"n":1,"list":[1]}}',
  ],
  Response: [`new Response('body')`, '{}'],
  'DOM node': [`document.createElement('p')`, '{}'],
  promise: [`Promise.resolve('later')`, 'later'],
  thenable: [`({ then(resolve) { resolve('then'); } })`, 'then'],
};

/** What cannot be a result, and what the message names. */
const refused: Record<string, [source: string, names: string]> = {
  function: [`() => 1`, 'function'],
  symbol: [`Symbol('s')`, 'symbol'],
  cyclic: [`(() => { const a = { b: { c: null } }; a.b.c = a; return a; })()`, '$.b.c'],
  'throwing getter': [`({ list: [1, { get bad() { throw new Error('no'); } }] })`, '$.list.1.bad'],
  'throwing getter, without a text': [`({ get bad() { throw Object.create(null); } })`, '$.bad'],
  'throwing toJSON': [`({ when: { toJSON() { throw new Error('no'); } } })`, '$.when'],
  'toJSON that gives nothing': [`({ toJSON: () => undefined })`, ''],
};

const TOOL = (sources: Record<string, [string, unknown]>) =>
  `const sources = { ${Object.entries(sources)
    .map(([name, [source]]) => `${JSON.stringify(name)}: () => ${source}`)
    .join(', ')} };`;

/** Registers `give`, which returns what its input names; and `later`, which resumes in its own page to return it. */
const registers = (page: Page, frame = false) =>
  page.evaluate(
    async (script, frame) => {
      const place = (frame ? window[0] : window) as unknown as typeof globalThis;
      const run = new (place as unknown as { Function: FunctionConstructor }).Function(
        `${script}
        const give = ({ name }) => sources[name]();
        return Promise.all([
          lab.register('give', give),
          lab.register('later', async (input, { invocation }) => {
            const token = await invocation.requestToken();
            await document.modelContext.resumeTool(token, give);
            return 'output';
          }),
        ]);`,
      );
      await run();
    },
    TOOL({ ...results, ...refused }),
    frame,
  );

type Report = Record<string, Settled<string | null> & { message?: string }>;

/** Calls the tool for each name, one after the other. */
const ask = (agent: Page, tool: string, names: string[]): Promise<Report> =>
  agent.evaluate(
    async (tool, names) => {
      const entry = await lab.find(tool);
      const report: Report = {};
      for (const name of names) {
        const promise = document.modelContext.executeTool(entry, { name });
        const message = promise.then(
          () => undefined,
          (error) => error.message,
        );
        report[name] = { ...(await lab.settled(promise)), message: await message };
      }
      return report;
    },
    tool,
    names,
  );

/** The ways that a call may take: agent and name of the tool. */
const ways: Record<string, () => Promise<[agent: Page, tool: string]>> = {
  'in one document': async () => {
    const page = await bench.open();
    await registers(page);
    return [page, 'give'];
  },
  'to a frame': async () => {
    const page = await bench.open();
    await page.evaluate(async () => {
      const frame = Object.assign(document.createElement('iframe'), { src: '/one' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
    });
    await registers(page, true);
    return [page, 'give'];
  },
  'to another tab': async () => {
    const { tool, agent } = await bench.pair();
    await registers(tool);
    return [agent, 'give'];
  },
  'resumed, in one document': async () => {
    const page = await bench.open();
    await registers(page);
    return [page, 'later'];
  },
  'resumed, in another tab': async () => {
    const { tool, agent } = await bench.pair();
    await registers(tool);
    return [agent, 'later'];
  },
};

describe.each(Object.keys(ways))('results: %s', (way) => {
  let agent: Page;
  let tool: string;

  beforeEach(async () => {
    [agent, tool] = await (ways[way] as (typeof ways)[string])();
  });

  test('what JSON can hold', async () => {
    const report = await ask(agent, tool, Object.keys(results));
    const expected = Object.entries(results).map(([name, [, value]]) => [name, { value }]);
    expect(report).toEqual(Object.fromEntries(expected));
  });

  test('C18: what it cannot hold is not-serialisable, and says where; the next call works', async () => {
    const report = await ask(agent, tool, [...Object.keys(refused), 'string']);
    expect(report.string).toEqual({ value: 'plain' });
    for (const [name, [, names]] of Object.entries(refused)) {
      const { message, ...settled } = report[name] as Report[string];
      expect(settled).toEqual(failed('not-serialisable', 'DataCloneError', true));
      expect(message).toContain(names);
    }
  });
});

describe('results: size', () => {
  test.each(Object.keys(ways))(
    'C32: 4 MiB of text is a result, a byte more is too-large: %s',
    async (way) => {
      results.fits = [`'x'.repeat(4 * 1024 * 1024)`, ''];
      results.exceeds = [`'x'.repeat(4 * 1024 * 1024 + 1)`, ''];
      results['exceeds in bytes'] = [`'é'.repeat(2 * 1024 * 1024 + 1)`, ''];
      results['exceeds as JSON'] = [`['x'.repeat(4 * 1024 * 1024 - 2)]`, ''];
      const [agent, tool] = await (ways[way] as (typeof ways)[string])();
      for (const name of ['fits', 'exceeds', 'exceeds in bytes', 'exceeds as JSON']) delete results[name];
      const settled = await agent.evaluate(async (tool) => {
        const entry = await lab.find(tool);
        const ask = (name: string) => lab.settled(document.modelContext.executeTool(entry, { name }));
        const fits = (await ask('fits')) as { value: string };
        return {
          fits: fits.value?.length,
          rest: [await ask('exceeds'), await ask('exceeds in bytes'), await ask('exceeds as JSON')],
        };
      }, tool);
      const tooLarge = failed('too-large', 'QuotaExceededError', true);
      expect(settled).toEqual({ fits: 4 * 1024 * 1024, rest: [tooLarge, tooLarge, tooLarge] });
    },
  );

  test('one mapping: a lone surrogate is the same on every way', async () => {
    const seen: unknown[] = [];
    results.lone = [`'a\\ud800b'`, ''];
    for (const way of Object.values(ways)) {
      const [agent, tool] = await way();
      seen.push((await ask(agent, tool, ['lone'])).lone);
    }
    delete results.lone;
    expect(new Set(seen.map((value) => JSON.stringify(value))).size).toBe(1);
  });

  test('one mapping: a lone surrogate is the same after a restart', async () => {
    const page = await bench.open();
    const direct = await page.evaluate(async () => {
      await lab.register('direct', () => `a${String.fromCharCode(0xd800)}b`);
      await lab.register('go', async (_input, { invocation }) => {
        location.href = webmcpRelay.withToken('/one', await invocation.requestToken());
      });
      return document.modelContext.executeTool(await lab.find('direct'));
    });
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await page.evaluate(() => lab.resume(() => `a${String.fromCharCode(0xd800)}b`));
    await page.evaluate(() => lab.logged('ended resumed'));
    await page.goto(`${bench.site.origin}/two`);
    await ready(page);
    await bench.browser.stopWorkers();
    await page.evaluate(() => lab.collect());
    const stored = await page.evaluate(() => lab.pending[0]?.outcome);
    expect(JSON.stringify(stored)).toBe(JSON.stringify(direct));
  });
});

describe('inputs', () => {
  const echoes = (page: Page) =>
    page.evaluate(() => lab.register('echo', (input) => ({ input, type: typeof input })));
  const inputsOf = (agent: Page, sources: string[]) =>
    agent.evaluate(async (sources) => {
      const entry = await lab.find('echo');
      const settle = (source: string) =>
        lab.settled(document.modelContext.executeTool(entry, new Function(`return ${source}`)()));
      return Promise.all(sources.map(settle));
    }, sources);
  const pairs: Record<string, () => Promise<{ tool: Page; agent: Page }>> = {
    'in one document': async () => {
      const page = await bench.open();
      return { tool: page, agent: page };
    },
    'to another tab': () => bench.pair(),
  };
  const typeError = { error: { name: 'TypeError' } };

  test.each(Object.keys(pairs))('objects, or the JSON text of one: %s', async (way) => {
    const { tool, agent } = await (pairs[way] as (typeof pairs)[string])();
    await echoes(tool);
    const given = [
      `({ a: [1, { b: 'ü' }] })`,
      `undefined`,
      `'{"a": 1}'`,
      `({ when: new Date(0), not: undefined })`,
      `({ id: 7, type: 'settle', token: 'x', executionId: 'y', ok: true, value: null })`,
    ];
    const seen = await inputsOf(agent, given);
    const values = seen.map((settled) =>
      'value' in settled ? JSON.parse(settled.value as string) : settled,
    );
    expect(values).toEqual(
      [
        { a: [1, { b: 'ü' }] },
        {},
        { a: 1 },
        { when: '1970-01-01T00:00:00.000Z' },
        { id: 7, type: 'settle', token: 'x', executionId: 'y', ok: true, value: null },
      ].map((input) => ({ input, type: 'object' })),
    );
  });

  test.each(Object.keys(pairs))('anything else is a TypeError, and is not sent: %s', async (way) => {
    const { tool, agent } = await (pairs[way] as (typeof pairs)[string])();
    await echoes(tool);
    const bad = [
      `null`,
      `7`,
      `true`,
      `10n`,
      `Symbol('s')`,
      `() => 1`,
      `'plain'`,
      `'7'`,
      `'null'`,
      `''`,
      `({ big: 10n })`,
      `(() => { const a = {}; a.a = a; return a; })()`,
      `({ toJSON: () => 7 })`,
      `({ toJSON: () => undefined })`,
    ];
    expect(await inputsOf(agent, bad)).toEqual(bad.map(() => typeError));
    expect(await tool.evaluate(() => lab.log)).not.toContain('began echo');
  });

  test('C18: a function inside is left out, as JSON does; a throwing getter is the caller’s own error', async () => {
    const page = await bench.open();
    await echoes(page);
    expect(await inputsOf(page, [`({ a: 1, callback: () => 1 })`])).toEqual([
      { value: '{"input":{"a":1},"type":"object"}' },
    ]);
    expect(await inputsOf(page, [`({ get bad() { throw new RangeError('mine'); } })`])).toEqual([
      { error: { name: 'RangeError' } },
    ]);
  });

  test.each(Object.keys(pairs))('an input over 4 MiB is too-large, and is not sent: %s', async (way) => {
    const { tool, agent } = await (pairs[way] as (typeof pairs)[string])();
    await tool.evaluate(() => lab.register('echo', ({ text }) => text.length));
    const fits = `({ text: 'x'.repeat(4 * 1024 * 1024 - 11) })`;
    const exceeds = `({ text: 'x'.repeat(4 * 1024 * 1024 - 10) })`;
    expect(await inputsOf(agent, [fits])).toEqual([{ value: `${4 * 1024 * 1024 - 11}` }]);
    const runs = await tool.evaluate(() => lab.log.length);
    expect(await inputsOf(agent, [exceeds])).toEqual([failed('too-large', 'QuotaExceededError', false)]);
    expect(await tool.evaluate(() => lab.log.filter((entry) => !entry.startsWith('settled')).length)).toBe(
      runs,
    );
  });

  test('a tool gets a copy: neither side sees the other’s changes', async () => {
    const page = await bench.open();
    const seen = await page.evaluate(async () => {
      await lab.register('change', (input) => {
        const was = JSON.stringify(input);
        input.list.push('by the tool');
        return was;
      });
      const entry = await lab.find('change');
      const input = { list: ['first'] };
      const call = document.modelContext.executeTool(entry, input);
      input.list.push('after the call');
      return { result: await call, input };
    });
    expect(seen).toEqual({ result: '{"list":["first"]}', input: { list: ['first', 'after the call'] } });
  });

  test('a resumed callback gets the original input anew', async () => {
    const page = await bench.open();
    const result = await page.evaluate(async () => {
      await lab.register('go', async (input, { invocation }) => {
        input.n = 2;
        await lab.resume((again) => again, await invocation.requestToken());
      });
      const entry = await lab.find('go');
      return document.modelContext.executeTool(entry, { n: 1 });
    });
    expect(result).toBe('{"n":1}');
  });
});
