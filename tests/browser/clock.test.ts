// How long things are kept (rules 6 and 13; The caller leaves; C38): the worker's clock is the test's, the pages' is not.
import { readFileSync } from 'node:fs';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { arrived, call, eventually, failed, outcome, ready, useLab } from './lab.ts';

const bench = useLab();

const shim = `{
  const now = Date.now.bind(Date);
  let offset = 0;
  Date.now = () => now() + offset;
  addEventListener('message', ({ data, ports: [port] }) => {
    if (typeof data?.jump !== 'number') return;
    offset += data.jump;
    port.postMessage('jumped');
  });
}`;

beforeAll(() => {
  const built = readFileSync(new URL('../../dist/webmcp-relay-sw.js', import.meta.url), 'utf8');
  bench.site.route('/webmcp-relay-sw.js', `${shim}\n${built}`);
});

// A new worker has the right time.
beforeEach(() => bench.browser.stopWorkers());

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Sets the worker's clock forward (or back). */
const jump = (page: Page, by: number) =>
  page.evaluate(async (by) => {
    const { port1, port2 } = new MessageChannel();
    const jumped = new Promise((resolve) => {
      port1.onmessage = resolve;
    });
    (await navigator.serviceWorker.ready).active?.postMessage({ jump: by }, [port2]);
    await jumped;
  }, by);
/** Registers `go`, which asks for a token of that lifetime and ends. */
const asks = (page: Page, lifetime?: number) =>
  page.evaluate(
    (options) =>
      lab.register('go', async (_input, { invocation }) => {
        lab.tokens = [await invocation.requestToken(options)];
        return 'output';
      }),
    lifetime === undefined ? {} : { lifetime },
  );
const suspended = async (tool: Page, agent: Page) => {
  await call(agent, 'a', 'go');
  await agent.waitFor(() => lab.calls.a?.outputs.length === 1);
  return tool.evaluate(() => lab.tokens[0] as string);
};
const redeem = (page: Page, token: string) =>
  page.evaluate((token) => lab.settled(lab.resume(() => 'resumed', token)), token);
const pendingOf = (page: Page) =>
  page.evaluate(async () =>
    (await document.modelContext.getPendingExecutions()).map(({ toolName }) => toolName),
  );

const expired = failed('token-expired', 'TimeoutError', true);
const tooLate = failed('token-expired', 'TimeoutError', false);

describe('rule 6: a token’s lifetime', () => {
  test('60 s if nothing is said: 50 s later it is good', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool);
    const token = await suspended(tool, agent);
    await jump(tool, 50 * SECOND);
    expect(await redeem(tool, token)).toEqual({});
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });

  test('61 s later it is not, and the agent is told', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool);
    const token = await suspended(tool, agent);
    await jump(tool, 61 * SECOND);
    expect(await redeem(tool, token)).toEqual(tooLate);
    expect(await outcome(agent, 'a')).toEqual(expired);
  });

  test('an hour, if asked for', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, HOUR);
    const token = await suspended(tool, agent);
    await jump(tool, 58 * MINUTE);
    expect(await redeem(tool, token)).toEqual({});
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });

  test('C38: a clock that jumps back an hour does not keep it alive for an hour', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 1_000);
    const token = await suspended(tool, agent);
    await jump(tool, -HOUR);
    expect(await outcome(agent, 'a')).toEqual(expired);
    expect(await redeem(tool, token)).toEqual(tooLate);
  });
});

describe('rule 13: what is remembered of a settled execution', () => {
  test('how its token ended, until a minute after the last deadline; then token-unknown', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool);
    const token = await suspended(tool, agent);
    expect(await redeem(tool, token)).toEqual({});
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
    const redeemed = failed('token-redeemed', 'InvalidStateError', false);
    expect(await redeem(tool, token)).toEqual(redeemed);
    await jump(tool, MINUTE + 50 * SECOND);
    expect(await redeem(tool, token)).toEqual(redeemed);
    await jump(tool, 15 * SECOND);
    expect(await redeem(tool, token)).toEqual(failed('token-unknown', 'NotFoundError', false));
  });
});

describe('what nobody has collected', () => {
  /** The execution's page goes on to `/one`, which settles it, and on to `/two`. */
  const settledUncollected = async (page: Page) => {
    await page.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        location.href = webmcpRelay.withToken('/one', await invocation.requestToken());
      }),
    );
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await page.evaluate(() => lab.resume(() => 'answer'));
    await page.evaluate(() => lab.logged('ended resumed'));
    await page.goto(`${bench.site.origin}/two`);
    await ready(page);
  };

  test('an outcome is kept for ten minutes: after nine it is there', async () => {
    const page = await bench.open();
    await settledUncollected(page);
    await jump(page, 9 * MINUTE);
    await page.evaluate(() => lab.collect());
    expect(await page.evaluate(() => lab.pending[0]?.outcome)).toBe('answer');
  });

  test('after ten it is not', async () => {
    const page = await bench.open();
    await settledUncollected(page);
    await jump(page, 10 * MINUTE + SECOND);
    expect(await pendingOf(page)).toEqual([]);
  });

  /** A call without a token dies with its page. */
  const died = async (page: Page) => {
    await page.evaluate(() => lab.register('wait', () => new Promise(() => {})));
    await call(page, 'a', 'wait');
    await page.evaluate(() => lab.logged('began wait'));
    await page.goto(`${bench.site.origin}/two`);
    await ready(page);
  };

  test('a call that died with its page is told of for a minute: after 50 s it is there', async () => {
    const page = await bench.open();
    await died(page);
    await jump(page, 50 * SECOND);
    await eventually(() => pendingOf(page)).toEqual(['wait']);
  });

  test('after 61 s it is not', async () => {
    const page = await bench.open();
    await died(page);
    await jump(page, 61 * SECOND);
    expect(await pendingOf(page)).toEqual([]);
  });
});
