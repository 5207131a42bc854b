// What a rejection looks like, whichever way a call takes (semantics, Errors; C31).
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { call, failed, outcome, useLab } from './lab.ts';

const bench = useLab();

/** What tools throw, and what arrives as the cause. */
const thrown: Record<string, [source: string, cause: object]> = {
  'a plain Error': [`new Error('plain')`, { name: 'Error', message: 'plain' }],
  'a subclass with code and cause': [
    `Object.assign(new (class PaymentError extends Error { name = 'PaymentError' })('declined', { cause: new RangeError('limit') }), { code: 'E_CARD', secret: 1 })`,
    {
      name: 'PaymentError',
      message: 'declined',
      code: 'E_CARD',
      cause: { name: 'RangeError', message: 'limit' },
    },
  ],
  'a code that is no string': [`Object.assign(new Error('n'), { code: 7 })`, { name: 'Error', message: 'n' }],
  'a DOMException': [`new DOMException('gone', 'NotFoundError')`, { name: 'NotFoundError', message: 'gone' }],
  'an AggregateError': [
    `new AggregateError([new Error('one'), new Error('two')], 'both')`,
    { name: 'AggregateError', message: 'both' },
  ],
  'a string': [`'just text'`, { name: 'Error', message: 'just text' }],
  undefined: [`undefined`, { name: 'Error', message: 'undefined' }],
  null: [`null`, { name: 'Error', message: 'null' }],
  'a number': [`42`, { name: 'Error', message: '42' }],
  'a symbol': [`Symbol('odd')`, { name: 'Error', message: 'Symbol(odd)' }],
  'an error that holds a DOM node': [
    `Object.assign(new Error('node'), { node: document.body, cause: document.body })`,
    { name: 'Error', message: 'node', cause: expect.objectContaining({ name: 'Error' }) },
  ],
  'a chain of five': [
    `new Error('1', { cause: new Error('2', { cause: new Error('3', { cause: new Error('4', { cause: new Error('5') }) }) }) })`,
    {
      name: 'Error',
      message: '1',
      cause: { name: 'Error', message: '2', cause: { name: 'Error', message: '3' } },
    },
  ],
  'a cause that is its own': [
    `(() => { const error = new Error('loop'); error.cause = error; return error; })()`,
    {
      name: 'Error',
      message: 'loop',
      cause: { name: 'Error', message: 'loop', cause: { name: 'Error', message: 'loop' } },
    },
  ],
  'an error that throws when it is read': [
    `({ get name() { throw 1; }, get message() { throw 2; }, get cause() { throw 3; }, get code() { throw 4; } })`,
    { name: 'Error', message: '' },
  ],
  'an error that passes itself off as one of ours': [
    `Object.assign(new DOMException('no such token', 'NotFoundError'), { reason: 'token-unknown', started: false })`,
    { name: 'NotFoundError', message: 'no such token' },
  ],
};

const TOOL = `const sources = { ${Object.entries(thrown)
  .map(([name, [source]]) => `${JSON.stringify(name)}: () => ${source}`)
  .join(', ')} };
  const fail = async ({ name }) => { throw sources[name](); };
  return Promise.all([
    lab.register('fail', fail),
    lab.register('later', async (input, { invocation }) => {
      await document.modelContext.resumeTool(await invocation.requestToken(), fail);
    }),
  ]);`;

const registers = (page: Page) => page.evaluate(async (script) => void (await new Function(script)()), TOOL);

const ways: Record<string, () => Promise<[agent: Page, tool: string]>> = {
  'in one document': async () => {
    const page = await bench.open();
    await registers(page);
    return [page, 'fail'];
  },
  'to another tab': async () => {
    const { tool, agent } = await bench.pair();
    await registers(tool);
    return [agent, 'fail'];
  },
  'resumed, in another tab': async () => {
    const { tool, agent } = await bench.pair();
    await registers(tool);
    return [agent, 'later'];
  },
};

describe.each(Object.keys(ways))('C31: what a tool throws: %s', (way) => {
  test('tool-failed, with the cause', async () => {
    const [agent, tool] = await (ways[way] as (typeof ways)[string])();
    const report = await agent.evaluate(
      async (tool, names) => {
        const entry = await lab.find(tool);
        const report: Record<string, unknown> = {};
        for (const name of names)
          report[name] = await lab.settled(document.modelContext.executeTool(entry, { name }));
        return report;
      },
      tool,
      Object.keys(thrown),
    );
    const expected = Object.entries(thrown).map(([name, [, cause]]) => [
      name,
      failed('tool-failed', 'UnknownError', true, cause),
    ]);
    expect(report).toEqual(Object.fromEntries(expected));
  });

  test('C18: a DOMException itself, with own properties and a message', async () => {
    const [agent, tool] = await (ways[way] as (typeof ways)[string])();
    const error = await agent.evaluate(async (tool) => {
      const entry = await lab.find(tool);
      const error = await document.modelContext
        .executeTool(entry, { name: 'a plain Error' })
        .catch((error) => error);
      return {
        constructor: error.constructor === DOMException,
        instance: error instanceof DOMException && error instanceof Error,
        tag: Object.prototype.toString.call(error),
        own: Object.keys(error).sort(),
        executionId: typeof error.executionId,
        message: error.message.length > 0,
      };
    }, tool);
    expect(error).toEqual({
      constructor: true,
      instance: true,
      tag: '[object DOMException]',
      own: ['cause', 'executionId', 'reason', 'started'],
      executionId: 'string',
      message: true,
    });
  });
});

describe('reasons and names', () => {
  test('an error of ours that a tool lets through is its cause, not its reason', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('go', () => lab.resume(() => 1, 'A'.repeat(43))));
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual(
      failed('tool-failed', 'UnknownError', true, {
        name: 'NotFoundError',
        message: expect.stringContaining('token'),
      }),
    );
  });

  test('each of two calls at once gets its own error', async () => {
    const { tool, agent } = await bench.pair();
    await registers(tool);
    const messages = await agent.evaluate(async () => {
      const entry = await lab.find('fail');
      const calls = ['a plain Error', 'a string', 'a number'].map((name) =>
        document.modelContext.executeTool(entry, { name }).catch(({ cause }) => cause.message),
      );
      return Promise.all(calls);
    });
    expect(messages).toEqual(['plain', 'just text', '42']);
  });

  test('C42: answers never cross: 300 calls at once, settled in reverse order', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => {
      const waiting: (() => void)[] = [];
      return lab.register(
        'echo',
        ({ id }) =>
          new Promise((resolve) => {
            waiting.push(() => resolve(`answer ${id}`));
            if (waiting.length === 300) for (const answer of waiting.reverse()) answer();
          }),
      );
    });
    const wrong = await agent.evaluate(async () => {
      const entry = await lab.find('echo');
      const calls = Array.from({ length: 300 }, (_, id) =>
        document.modelContext.executeTool(entry, { id, type: 'settle', executionId: 'none' }),
      );
      return (await Promise.all(calls)).filter((answer, id) => answer !== `answer ${id}`);
    });
    expect(wrong).toEqual([]);
  });

  test('C42: execution ids are unguessable and never come again, also after a restart of the worker', async () => {
    const { tool, agent } = await bench.pair();
    await registers(tool);
    const ids = () =>
      agent.evaluate(async () => {
        const entry = await lab.find('fail');
        const ids: string[] = [];
        for (let index = 0; index < 5; index += 1)
          await document.modelContext.executeTool(entry, { name: 'a string' }).catch((error) => {
            ids.push(error.executionId);
          });
        return ids;
      });
    const first = await ids();
    await bench.browser.stopWorkers();
    const all = [...first, ...(await ids())];
    expect(new Set(all).size).toBe(10);
    for (const id of all) expect(id).toMatch(/^[\w-]{22}$/);
  });
});
