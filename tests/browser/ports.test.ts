// What a call to another tab needs of the worker, and what becomes of it where the worker is lost or does not answer any more.
import { expect, test } from 'vitest';
import { arrived, call, eventually, failed, outcome, useLab } from './lab.ts';

const bench = useLab();

test.each(['first', 'not first', 'keepalive'])(
  'the worker does not answer any more: a call to a tab that it has not put through is refused (%s)',
  async (which) => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('listed', () => 'tool'));
    const other = await bench.join(agent);
    await other.evaluate(() => lab.register('called', () => 'other'));
    const settled = await agent.evaluate(async (which) => {
      const tool = await lab.find('listed');
      const called = await lab.find('called');
      if (which !== 'first') await document.modelContext.executeTool(called);
      ServiceWorker.prototype.postMessage = () => {};
      // As a new worker asks: the page says hello again.
      const summons = new MessageEvent('message', { data: { type: 'webmcp-relay:summons' } });
      navigator.serviceWorker.dispatchEvent(summons);
      while (document.modelContext.relay.state !== 'alone') await new Promise((go) => setTimeout(go, 100));
      return Promise.race([
        lab.settled(document.modelContext.executeTool(tool, {}, { keepalive: which === 'keepalive' })),
        new Promise((resolve) => setTimeout(resolve, 8_000, 'never')),
      ]);
    }, which);
    expect(settled).toEqual(failed('worker-unavailable', 'TimeoutError', false));
    expect(await tool.evaluate(() => lab.log)).toEqual([]);
  },
);

test('a document that was unresponsive three times, and answers again: one port is left', async () => {
  const { tool, agent } = await bench.pair({ apart: true });
  await tool.evaluate(() => lab.register('whoami', () => 'tool'));
  const locks = () =>
    agent.evaluate(async () => {
      const { held = [], pending = [] } = await navigator.locks.query();
      const [ours, theirs] = [held, pending].map((locks) =>
        locks.filter(({ name }) => name?.startsWith('webmcp-relay-port:')),
      );
      return [ours?.length, theirs?.length];
    });
  const unresponsive = failed('document-unresponsive', 'TimeoutError', false);
  for (let round = 0; round < 3; round += 1) {
    await tool.evaluate(() => {
      setTimeout(() => {
        for (const until = Date.now() + 3_500; Date.now() < until; );
      });
    });
    const settled = await agent.evaluate(async () => {
      const [tool] = await document.modelContext.getTools({ scope: 'group', readyTimeout: 0 });
      const calls = [1, 2].map(() => document.modelContext.executeTool(tool as never));
      return Promise.all(calls.map((call) => lab.settled(call)));
    });
    expect(settled).toEqual([unresponsive, unresponsive]);
    await tool.evaluate(() => {});
  }
  await call(agent, 'a', 'whoami');
  expect(await outcome(agent, 'a')).toEqual({ value: 'tool' });
  // Each end holds a lock and waits for the other's.
  await eventually(locks).toEqual([2, 2]);
  expect(await tool.evaluate(() => lab.log.filter((entry) => entry === 'began whoami'))).toHaveLength(1);
});

test('an execution that went on in the tab of its caller, collected after the worker’s death: its input and outputs are there', async () => {
  const { tool, agent } = await bench.pair();
  await tool.evaluate(() =>
    lab.register('go', async (_input, { invocation }) => {
      lab.tokens.push(await invocation.requestToken());
      lab.open('token');
      return 'output';
    }),
  );
  await call(agent, 'a', 'go', { n: 1 });
  const token = await tool.evaluate(() => lab.gate('token').then(() => lab.tokens[0] as string));
  await tool.evaluate(() => lab.logged('ended go'));
  await agent.evaluate(
    (token) =>
      lab.resume(async (_input, { invocation }) => {
        location.href = webmcpRelay.withToken('/two', await invocation.requestToken());
      }, token),
    token,
  );
  await arrived(agent, '/two');
  await bench.browser.stopWorkers();
  expect((await agent.evaluate(() => lab.collect())).map(({ input }) => input)).toEqual([{ n: 1 }]);
  expect(await agent.evaluate(() => lab.pending[0]?.outputs)).toEqual(['output', null]);
  await agent.evaluate(() => lab.resume(() => 'answer'));
  expect(await agent.evaluate(() => lab.pending[0]?.outcome)).toBe('answer');
});

test('tools that a new worker hears of, and the group had heard of before, are no news', async () => {
  const { tool, agent } = await bench.pair();
  await tool.evaluate(() => lab.register('known', () => 'known'));
  await agent.evaluate(() => lab.find('known'));
  await agent.evaluate(() => {
    document.modelContext.addEventListener('toolchange', () => lab.log.push('toolchange'));
  });
  await bench.browser.stopWorkers();
  expect(await agent.evaluate(() => lab.names())).toEqual(['known']);
  // What an event would take to arrive.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await agent.evaluate(() => lab.log)).toEqual([]);
});

test('a tool that is registered while the worker is dead is told of once', async () => {
  const { tool, agent } = await bench.pair();
  await agent.evaluate(() => lab.names());
  await bench.browser.stopWorkers();
  await agent.evaluate(() => {
    document.modelContext.addEventListener('toolchange', () => lab.log.push('toolchange'));
  });
  await tool.evaluate(() => lab.register('late', () => 'late'));
  await agent.evaluate(() => lab.find('late'));
  // What a second one would take to arrive.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await agent.evaluate(() => lab.log)).toEqual(['toolchange']);
});
