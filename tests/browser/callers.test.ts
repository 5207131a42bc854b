// What becomes of an execution whose caller leaves (semantics, The caller leaves), and of its promise when the caller comes
// back from the back/forward cache. A group of several windows is never cached: there, agent and tool are in one tab.
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { arrived, call, crash, eventually, failed, outcome, ready, useLab } from './lab.ts';

const bench = useLab();

/** Registers `go`: asks for a token, and goes to `url` with it; without a `url` it stays and waits for the test. */
const goes = (page: Page, url: string | null) =>
  page.evaluate(
    (url) =>
      lab.register('go', async (_input, { invocation }) => {
        const token = await invocation.requestToken();
        lab.tokens = [token];
        lab.open('token');
        if (url === null) return lab.gate('end');
        location.href = webmcpRelay.withToken(url, token);
        return 'output';
      }),
    url,
  );
const granted = (page: Page) => page.evaluate(() => lab.gate('token').then(() => lab.tokens[0] as string));
const resumes = (page: Page, value: string) => page.evaluate((value) => lab.resume(() => value), value);
const redeem = (page: Page, token: string) =>
  page.evaluate((token) => lab.settled(lab.resume(() => 'resumed', token)), token);
const collect = (page: Page) => page.evaluate(() => lab.collect());
const collectNow = (page: Page) =>
  page.evaluate(async () =>
    (await document.modelContext.getPendingExecutions()).map(({ toolName }) => toolName),
  );
const collected = (page: Page, index = 0) =>
  page.evaluate((index) => lab.settled((lab.pending[index] as (typeof lab.pending)[0]).outcome), index);
const reload = async (page: Page) => {
  await page.reload();
  await ready(page);
};
const navigated = failed('navigated', 'UnknownError', true);
const theVoid = failed('token-void', 'AbortError', false);
const watchesReturn = (page: Page) =>
  page.evaluate(() => {
    addEventListener('pageshow', (event) =>
      lab.log.push(`persisted ${(event as PageTransitionEvent).persisted}`),
    );
  });
/** Goes back, and proves that the page came out of the cache. */
const goBack = async (page: Page) => {
  await page.back();
  await page.waitFor(() => lab.log.includes('persisted true'));
};
/** Goes on without a tool having to do with it. */
const goTo = async (page: Page, path: string) => {
  await page.waitForNavigation(() => page.evaluate((path) => void location.assign(path), path));
  await arrived(page, path);
};

describe('an agent on the page that navigates', () => {
  test('the execution lives on; the next page collects it', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await call(page, 'a', 'go', { n: 1 });
    await arrived(page, '/one');
    expect(await collect(page)).toEqual([{ toolName: 'go', input: { n: 1 }, state: 'open' }]);
    await resumes(page, 'answer');
    expect(await collected(page)).toEqual({ value: 'answer' });
    expect(
      await page.evaluate(() => {
        const [{ id, state, outputs } = {} as never] = lab.pending as never[];
        return { id: typeof id, state, outputs };
      }),
    ).toEqual({ id: 'string', state: 'settled', outputs: ['output'] });
    expect(await collectNow(page)).toEqual([]);
  });

  test('a settled outcome is kept for whoever collects it', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await resumes(page, 'answer');
    await page.evaluate(() => lab.logged('ended resumed'));
    await goTo(page, '/two');
    await page.waitFor(() => lab.collect().then(([first]) => first?.state === 'settled' || true));
    expect(await collected(page)).toEqual({ value: 'answer' });
  });

  test('an agent in a frame of the page', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await page.evaluate(async () => {
      const frame = Object.assign(document.createElement('iframe'), { src: '/three' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      await (frame.contentWindow as unknown as typeof globalThis).lab.call('a', 'go', { from: 'frame' });
    });
    await arrived(page, '/one');
    expect(await collect(page)).toEqual([{ toolName: 'go', input: { from: 'frame' }, state: 'open' }]);
    await resumes(page, 'answer');
    expect(await collected(page)).toEqual({ value: 'answer' });
  });

  test('outputs before and after the collection', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await collect(page);
    await page.evaluate(() => {
      const [handle] = lab.pending;
      if (handle) handle.onoutput = (text) => lab.log.push(`output ${text}`);
      return lab.resume(async (_input, { invocation }) => {
        lab.tokens = [await invocation.requestToken()];
        return 'second output';
      });
    });
    await page.waitFor(() => lab.log.includes('output second output'));
    await page.evaluate(() => lab.resume(() => 'answer', lab.tokens[0] as string));
    expect(await collected(page)).toEqual({ value: 'answer' });
    expect(await page.evaluate(() => lab.pending[0]?.outputs)).toEqual(['output', 'second output']);
  });

  test('a failure is an outcome too', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await collect(page);
    await page.evaluate(() =>
      lab.resume(() => {
        throw new RangeError('sold out');
      }),
    );
    expect(await collected(page)).toEqual(
      failed('tool-failed', 'UnknownError', true, { name: 'RangeError', message: 'sold out' }),
    );
  });

  test('first come, first served; free again when the collector leaves', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    const token = await page.evaluate(() => webmcpRelay.takeToken() as string);
    const inFrame = await page.evaluate(async () => {
      const frame = Object.assign(document.createElement('iframe'), { src: '/three' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      return (frame.contentWindow as unknown as typeof globalThis).lab.collect();
    });
    expect(inFrame.map(({ toolName }) => toolName)).toEqual(['go']);
    expect(await collectNow(page)).toEqual([]);
    await page.evaluate(() => document.querySelector('iframe')?.remove());
    expect((await collect(page)).map(({ toolName }) => toolName)).toEqual(['go']);
    await goTo(page, '/two');
    expect((await collect(page)).map(({ toolName }) => toolName)).toEqual(['go']);
    await redeem(page, token);
    expect(await collected(page)).toEqual({ value: 'resumed' });
  });

  test('two calls at once to one document: one of them has it', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await resumes(page, 'answer');
    const both = await page.evaluate(async () => {
      await lab.logged('ended resumed');
      const lists = await Promise.all([
        document.modelContext.getPendingExecutions(),
        document.modelContext.getPendingExecutions(),
      ]);
      const handles = new Set(lists.flat());
      return Promise.all([...handles].map(({ outcome }) => outcome));
    });
    expect(both).toEqual(['answer']);
  });

  test('other tabs of the group do not see it', async () => {
    const tool = await bench.open();
    const other = await bench.join(tool);
    await goes(tool, '/one');
    await call(tool, 'a', 'go');
    await arrived(tool, '/one');
    expect(await collectNow(other)).toEqual([]);
    expect((await collect(tool)).map(({ toolName }) => toolName)).toEqual(['go']);
    await resumes(tool, 'answer');
    expect(await collected(tool)).toEqual({ value: 'answer' });
  });

  test('cancel() of a pending execution cancels', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await collect(page);
    await page.evaluate(() => lab.resume(() => new Promise(() => {})));
    await page.evaluate(() => lab.logged('began resumed'));
    await page.evaluate(() => lab.pending[0]?.cancel());
    expect(await collected(page)).toMatchObject({ error: { name: 'AbortError' } });
    await page.evaluate(() => lab.logged('toolcancel go'));
    expect(await page.evaluate(() => lab.last.signal.aborted)).toBe(true);
  });

  test('a caller that is still there does not see its own calls', async () => {
    const { tool, agent } = await bench.pair();
    await goes(tool, null);
    await call(agent, 'a', 'go');
    await granted(tool);
    expect(await collectNow(agent)).toEqual([]);
    expect(await collectNow(tool)).toEqual([]);
  });

  test('a call without a token dies with its page; the next page learns it', async () => {
    const page = await bench.open();
    await page.evaluate(() =>
      lab.register('plain', () => {
        location.href = '/one';
        return new Promise(() => {});
      }),
    );
    await call(page, 'a', 'plain', { n: 2 });
    await arrived(page, '/one');
    expect(await collect(page)).toEqual([expect.objectContaining({ toolName: 'plain', input: { n: 2 } })]);
    expect(await collected(page)).toEqual(navigated);
    expect(await collectNow(page)).toEqual([]);
  });

  test('the same after a reload in mid-call', async () => {
    const page = await bench.open();
    await page.evaluate(() => lab.register('plain', () => new Promise(() => {})));
    await call(page, 'a', 'plain');
    await page.evaluate(() => lab.logged('began plain'));
    await reload(page);
    await collect(page);
    expect(await collected(page)).toEqual(navigated);
  });

  test('a worker that died meanwhile makes no difference to a call with a token', async () => {
    const page = await bench.open();
    await goes(page, '/one');
    await call(page, 'a', 'go', { n: 3 });
    await arrived(page, '/one');
    await bench.browser.stopWorkers();
    expect(await collect(page)).toEqual([{ toolName: 'go', input: { n: 3 }, state: 'open' }]);
    await bench.browser.stopWorkers();
    await resumes(page, 'answer');
    expect(await collected(page)).toEqual({ value: 'answer' });
    expect(await page.evaluate(() => lab.pending[0]?.outputs)).toEqual(['output']);
  });
});

describe('an agent in another tab', () => {
  test('C29: it is closed while the tool runs: the tool is cancelled, others are not', async () => {
    const { tool, agent } = await bench.pair();
    const second = await bench.join(tool);
    await tool.evaluate(() => lab.register('wait', (input) => lab.gate(input.gate)));
    await call(agent, 'a', 'wait', { gate: 'a' });
    await tool.evaluate(() => lab.logged('began wait'));
    await call(second, 'b', 'wait', { gate: 'b' });
    await tool.waitFor(() => lab.log.filter((entry) => entry === 'began wait').length === 2);
    await agent.close();
    await tool.evaluate(() => lab.logged('toolcancel wait'));
    await tool.evaluate(() => lab.open('a', 'dropped'));
    await tool.evaluate(() => lab.open('b', 'delivered'));
    expect(await outcome(second, 'b')).toEqual({ value: 'delivered' });
    await call(second, 'c', 'wait', { gate: 'b' });
    expect(await outcome(second, 'c')).toEqual({ value: 'delivered' });
    expect(await tool.evaluate(() => lab.log.filter((entry) => entry === 'toolcancel wait'))).toHaveLength(1);
  });

  test('it crashes: the tool is cancelled', async () => {
    const agent = await bench.open();
    const tool = await bench.join(agent, '/apart');
    await tool.evaluate(() => lab.register('wait', () => new Promise(() => {})));
    await call(agent, 'a', 'wait');
    await tool.evaluate(() => lab.logged('began wait'));
    await crash(agent);
    await tool.evaluate(() => lab.logged('toolcancel wait'));
  });

  test('C29: it is reloaded: its old call is not delivered to the new document', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('wait', () => lab.gate('end')));
    await call(agent, 'a', 'wait');
    await tool.evaluate(() => lab.logged('began wait'));
    await reload(agent);
    await tool.evaluate(() => lab.logged('toolcancel wait'));
    await tool.evaluate(() => lab.open('end', 'late'));
    expect(await agent.evaluate(() => Object.keys(lab.calls))).toEqual([]);
    await collect(agent);
    expect(await collected(agent)).toEqual(navigated);
  });

  test('it leaves while a token is outstanding: cancelled, the token is void', async () => {
    const { tool, agent } = await bench.pair();
    await goes(tool, null);
    await call(agent, 'a', 'go');
    const token = await granted(tool);
    await tool.evaluate(() => lab.open('end', 'output'));
    await agent.waitFor(() => lab.calls.a?.outputs.length === 1);
    await agent.close();
    await eventually(() => redeem(tool, token)).toEqual(theVoid);
  });

  test('keepalive: it is reloaded, and collects', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('wait', () => lab.gate('end')));
    await call(agent, 'a', 'wait', { n: 4 }, { keepalive: true });
    await tool.evaluate(() => lab.logged('began wait'));
    await reload(agent);
    expect(await collect(agent)).toEqual([{ toolName: 'wait', input: { n: 4 }, state: 'open' }]);
    await tool.evaluate(() => lab.open('end', 'kept'));
    expect(await collected(agent)).toEqual({ value: 'kept' });
    expect(await tool.evaluate(() => lab.log)).not.toContain('toolcancel wait');
  });

  test('keepalive: settled while nobody was there', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('wait', () => lab.gate('end')));
    await call(agent, 'a', 'wait', {}, { keepalive: true });
    await tool.evaluate(() => lab.logged('began wait'));
    await agent.goto('about:blank');
    await tool.evaluate(() => lab.open('end', 'kept'));
    await tool.evaluate(() => lab.logged('ended wait'));
    await agent.goto(`${bench.site.origin}/two`);
    await ready(agent);
    await collect(agent);
    expect(await collected(agent)).toEqual({ value: 'kept' });
  });

  test('keepalive: a cancel always cancels', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('wait', () => lab.gate('end')));
    await call(agent, 'a', 'wait', {}, { keepalive: true });
    await tool.evaluate(() => lab.logged('began wait'));
    await agent.evaluate(() => lab.calls.a?.controller.abort('enough'));
    expect(await outcome(agent, 'a')).toEqual({ error: { thrown: 'enough' } });
    await tool.evaluate(() => lab.logged('toolcancel wait'));
    await reload(agent);
    expect(await collectNow(agent)).toEqual([]);
  });

  test('the tool went on in the tab of the caller: then the caller may leave', async () => {
    const { tool, agent } = await bench.pair();
    await goes(tool, null);
    await call(agent, 'a', 'go');
    const token = await granted(tool);
    await tool.evaluate(() => lab.open('end', 'output'));
    await agent.evaluate(
      (token) =>
        lab.resume(async (_input, { invocation }) => {
          location.href = webmcpRelay.withToken('/two', await invocation.requestToken());
        }, token),
      token,
    );
    await arrived(agent, '/two');
    expect((await collect(agent)).map(({ toolName }) => toolName)).toEqual(['go']);
    await resumes(agent, 'answer');
    expect(await collected(agent)).toEqual({ value: 'answer' });
  });
});

describe('back and forward, from the back/forward cache', () => {
  test('the promise gets the outcome if nobody collected it', async () => {
    const page = await bench.open();
    await watchesReturn(page);
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await resumes(page, 'answer');
    await page.evaluate(() => lab.logged('ended resumed'));
    await goBack(page);
    expect(await outcome(page, 'a')).toEqual({ value: 'answer' });
    expect(await page.evaluate(() => lab.calls.a?.outputs)).toEqual(['output']);
  });

  test('the same while the execution is still under way', async () => {
    const page = await bench.open();
    await watchesReturn(page);
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    const token = await page.evaluate(() => webmcpRelay.takeToken() as string);
    await goBack(page);
    await redeem(page, token);
    expect(await outcome(page, 'a')).toEqual({ value: 'resumed' });
  });

  test('the promise rejects if somebody collected it', async () => {
    const page = await bench.open();
    await watchesReturn(page);
    await goes(page, '/one');
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    await collect(page);
    await resumes(page, 'answer');
    expect(await collected(page)).toEqual({ value: 'answer' });
    await goBack(page);
    expect(await outcome(page, 'a')).toEqual(navigated);
  });

  test('a call without a token is over', async () => {
    const page = await bench.open();
    await watchesReturn(page);
    await page.evaluate(() => lab.register('wait', () => lab.gate('end')));
    await call(page, 'a', 'wait');
    await page.evaluate(() => lab.logged('began wait'));
    await goTo(page, '/one');
    await goBack(page);
    expect(await outcome(page, 'a')).toEqual(navigated);
    expect(await page.evaluate(() => lab.last.signal.aborted)).toBe(true);
  });

  test('rule 11: the activation is over for good: a late settlement is dropped, a request is refused', async () => {
    const page = await bench.open();
    await watchesReturn(page);
    await page.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const token = await invocation.requestToken();
        location.href = webmcpRelay.withToken('/one', token);
        return lab.gate('end');
      }),
    );
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    const token = await page.evaluate(() => webmcpRelay.takeToken() as string);
    await goBack(page);
    expect(await page.evaluate(() => lab.settled(lab.last.invocation.requestToken()))).toEqual(
      failed('not-running', 'InvalidStateError', true),
    );
    expect(await page.evaluate(() => lab.last.signal.aborted)).toBe(true);
    await page.evaluate(() => lab.open('end', 'late'));
    await page.evaluate(() => lab.logged('ended go'));
    expect(await redeem(page, token)).toEqual({});
    expect(await outcome(page, 'a')).toEqual({ value: 'resumed' });
    expect(await page.evaluate(() => lab.calls.a?.outputs)).toEqual([]);
  });

  test('its tools are listed and callable again; forward too', async () => {
    const page = await bench.open();
    await watchesReturn(page);
    await page.evaluate(() => lab.register('here', () => location.pathname));
    await goTo(page, '/one');
    await watchesReturn(page);
    await page.evaluate(() => lab.register('here', () => location.pathname));
    expect(await page.evaluate(() => lab.names())).toEqual(['here']);
    await goBack(page);
    expect(await page.evaluate(() => lab.names())).toEqual(['here']);
    await call(page, 'b', 'here');
    expect(await outcome(page, 'b')).toEqual({ value: '/lab' });
    await page.forward();
    await page.waitFor(() => lab.log.includes('persisted true') && location.pathname === '/one');
    expect(await page.evaluate(() => lab.names())).toEqual(['here']);
    await call(page, 'c', 'here');
    expect(await outcome(page, 'c')).toEqual({ value: '/one' });
  });

  test('a page that comes back may resume with a token that a later page was given', async () => {
    const page = await bench.open();
    await watchesReturn(page);
    await goTo(page, '/one');
    await page.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        sessionStorage.setItem('webmcp-token', await invocation.requestToken());
        history.back();
        return 'back';
      }),
    );
    await page.waitForNavigation(() => call(page, 'a', 'go', { n: 5 }));
    await page.waitFor(() => lab.log.includes('persisted true'));
    expect(await collect(page)).toEqual([{ toolName: 'go', input: { n: 5 }, state: 'open' }]);
    await resumes(page, 'on the page before');
    expect(await collected(page)).toEqual({ value: 'on the page before' });
  });

  test('a page with a held token and a port to the worker is cached all the same, three times', async () => {
    const page = await bench.open();
    await watchesReturn(page);
    for (let round = 1; round <= 3; round += 1) {
      await goTo(page, '/one');
      await page.back();
      await page.waitFor(
        (round) => lab.log.filter((entry) => entry === 'persisted true').length === round,
        round,
      );
      await page.evaluate(() => document.modelContext.getTools({ scope: 'group' }));
    }
    expect(await page.evaluate(() => document.modelContext.relay.state)).toBe('shared');
  });
});
