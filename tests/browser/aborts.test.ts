// A cancel always cancels: before, while and after anything else happens (rule 8; C19).
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { call, eventually, failed, outcome, outputs, useLab } from './lab.ts';

const bench = useLab();

const waits = (page: Page) =>
  page.evaluate(() =>
    lab.register('wait', (_input, { signal }) => {
      signal.addEventListener('abort', () => {
        lab.log.push(`signal ${signal.reason.name}`);
        lab.open('signal');
      });
      return lab.gate('end');
    }),
  );
const asks = (page: Page) =>
  page.evaluate(() =>
    lab.register('go', async (_input, { invocation, signal }) => {
      signal.addEventListener('abort', () => lab.log.push('signal'));
      lab.tokens = [await invocation.requestToken()];
      lab.open('token');
      return lab.gate('end');
    }),
  );
const granted = (page: Page) => page.evaluate(() => lab.gate('token').then(() => lab.tokens[0] as string));
const abort = (page: Page, reason: string) =>
  page.evaluate((reason) => lab.calls.a?.controller.abort(reason), reason);
const aborted = (reason: string) => ({ error: { thrown: reason } });
const theVoid = failed('token-void', 'AbortError', false);
const redeem = (page: Page, token: string) =>
  page.evaluate((token) => lab.settled(lab.resume(() => 'resumed', token)), token);

describe('in another tab', () => {
  test('C19 (a): before it is sent: it never runs', async () => {
    const { tool, agent } = await bench.pair();
    await waits(tool);
    const rejected = await agent.evaluate(async () => {
      const signal = AbortSignal.abort('never mind');
      const entry = await lab.find('wait');
      return lab.settled(document.modelContext.executeTool(entry, {}, { signal }));
    });
    expect(rejected).toEqual(aborted('never mind'));
    await tool.evaluate(() => lab.register('after', () => 'after'));
    await call(agent, 'b', 'after');
    expect(await outcome(agent, 'b')).toEqual({ value: 'after' });
    expect(await tool.evaluate(() => lab.log)).not.toContain('began wait');
  });

  test('while its worker starts: it is not sent any more', async () => {
    const { tool, agent } = await bench.pair();
    await waits(tool);
    await tool.evaluate(() => lab.register('after', () => 'after'));
    const entries = await agent.evaluate(async () => {
      // A window cannot be copied, and these have none.
      return Promise.all([lab.find('wait'), lab.find('after')]);
    });
    await bench.browser.stopWorkers();
    const settled = await agent.evaluate(async ([wait, after]) => {
      const { modelContext } = document;
      const controller = new AbortController();
      const call = modelContext.executeTool(wait as never, {}, { signal: controller.signal });
      await Promise.resolve();
      controller.abort('never mind');
      return [
        await lab.settled(call),
        // Sent behind it: had that been sent, it would have begun by now.
        await lab.settled(modelContext.executeTool(after as never)),
      ];
    }, entries);
    expect(settled).toEqual([aborted('never mind'), { value: 'after' }]);
    expect(await tool.evaluate(() => lab.log)).not.toContain('began wait');
  });

  test('while it is queued: it rejects at once, and what began is told', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register(
        'wait',
        (_input, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          }),
      ),
    );
    const rejected = await agent.evaluate(async () => {
      const entry = await lab.find('wait');
      const kinds = new Set<unknown>();
      for (let round = 0; round < 50; round += 1) {
        const controller = new AbortController();
        const call = document.modelContext.executeTool(entry, {}, { signal: controller.signal });
        if (round % 2 === 0) await Promise.resolve();
        if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve));
        controller.abort('queued');
        kinds.add(await call.catch((reason) => reason));
      }
      return [...kinds];
    });
    expect(rejected).toEqual(['queued']);
    await tool.evaluate(() => lab.register('after', () => 'after'));
    await call(agent, 'b', 'after');
    expect(await outcome(agent, 'b')).toEqual({ value: 'after' });
    const log = await tool.evaluate(() => lab.log.filter((entry) => entry.endsWith('wait')));
    const count = (entry: string) => log.filter((logged) => logged === entry).length;
    await eventually(() => count('ended wait')).toBe(count('began wait'));
    expect(count('toolcancel wait')).toBe(count('began wait'));
  });

  test('C19 (b): while it runs: its signal fires once, toolcancel once, the caller gets its own reason', async () => {
    const { tool, agent } = await bench.pair();
    await waits(tool);
    await call(agent, 'a', 'wait');
    await tool.evaluate(() => lab.logged('began wait'));
    await abort(agent, 'enough');
    expect(await outcome(agent, 'a')).toEqual(aborted('enough'));
    await tool.evaluate(() => lab.logged('toolcancel wait'));
    await abort(agent, 'again');
    await tool.evaluate(() => lab.open('end', 'late'));
    await tool.evaluate(() => lab.logged('ended wait'));
    expect(await tool.evaluate(() => lab.log)).toEqual([
      'toolactivated wait',
      'began wait',
      'signal AbortError',
      'toolcancel wait',
      'ended wait',
    ]);
    expect(await outcome(agent, 'a')).toEqual(aborted('enough'));
  });

  test('the reason is the very value that the caller gave', async () => {
    const { tool, agent } = await bench.pair();
    await waits(tool);
    const same = await agent.evaluate(async () => {
      const entry = await lab.find('wait');
      const reasons = [new Error('mine'), { any: 'thing' }, undefined, null, 0];
      const checks = reasons.map(async (reason) => {
        const controller = new AbortController();
        const { signal } = controller;
        const call = document.modelContext.executeTool(entry, {}, { signal });
        controller.abort(reason);
        const given = signal.reason;
        return call.then(
          () => false,
          (thrown) => thrown === given && (reason === undefined || thrown === reason),
        );
      });
      return Promise.all(checks);
    });
    expect(same).toEqual([true, true, true, true, true]);
  });

  test('a timeout is a reason like any other (C42): the late answer is dropped, the next call works', async () => {
    const { tool, agent } = await bench.pair();
    await waits(tool);
    const late = await agent.evaluate(async () => {
      const entry = await lab.find('wait');
      const call = document.modelContext.executeTool(entry, {}, { signal: AbortSignal.timeout(300) });
      return call.catch(({ name }) => name);
    });
    expect(late).toBe('TimeoutError');
    await tool.evaluate(() => lab.open('end', 'too late'));
    await tool.evaluate(() => lab.logged('ended wait'));
    await tool.evaluate(() => lab.register('next', () => 'next'));
    await call(agent, 'b', 'next');
    expect(await outcome(agent, 'b')).toEqual({ value: 'next' });
  });

  test('C19 (c): after the result: no effect', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('quick', () => 'done'));
    await call(agent, 'a', 'quick');
    expect(await outcome(agent, 'a')).toEqual({ value: 'done' });
    await abort(agent, 'too late');
    expect(await outcome(agent, 'a')).toEqual({ value: 'done' });
    expect(await tool.evaluate(() => lab.log)).toEqual(['toolactivated quick', 'began quick', 'ended quick']);
  });

  test('running with a token: all at once', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool);
    await call(agent, 'a', 'go');
    const token = await granted(tool);
    await abort(agent, 'enough');
    expect(await outcome(agent, 'a')).toEqual(aborted('enough'));
    await tool.evaluate(() => lab.logged('toolcancel go'));
    expect(await redeem(tool, token)).toEqual(theVoid);
  });

  test('suspended: a token outstanding and nothing running', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool);
    await call(agent, 'a', 'go');
    const token = await granted(tool);
    await tool.evaluate(() => lab.open('end', 'output'));
    await agent.waitFor(() => lab.calls.a?.outputs.length === 1);
    await abort(agent, 'enough');
    expect(await outcome(agent, 'a')).toEqual(aborted('enough'));
    await eventually(() => redeem(tool, token)).toEqual(theVoid);
    expect(await tool.evaluate(() => lab.log)).toEqual(['toolactivated go', 'began go', 'ended go']);
  });

  test('a resumption that waits for its turn never runs', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool);
    await call(agent, 'a', 'go');
    const token = await granted(tool);
    expect(await redeem(agent, token)).toEqual({});
    await abort(agent, 'enough');
    expect(await outcome(agent, 'a')).toEqual(aborted('enough'));
    await tool.evaluate(() => lab.logged('toolcancel go'));
    await tool.evaluate(() => lab.open('end'));
    expect(await redeem(tool, token)).toEqual(failed('token-redeemed', 'InvalidStateError', false));
    expect(await agent.evaluate(() => lab.log)).not.toContain('began resumed');
  });

  test('a resumed callback that runs in a third tab is cancelled there', async () => {
    const { tool, agent } = await bench.pair();
    const third = await bench.join(tool);
    await asks(tool);
    await call(agent, 'a', 'go');
    const token = await granted(tool);
    await tool.evaluate(() => lab.open('end', 'output'));
    await third.evaluate((token) => lab.resume(() => lab.gate('never'), token), token);
    await third.evaluate(() => lab.logged('began resumed'));
    await abort(agent, 'enough');
    await third.evaluate(() => lab.logged('toolcancel go'));
    expect(await third.evaluate(() => lab.last.signal.aborted)).toBe(true);
    expect(await outcome(agent, 'a')).toEqual(aborted('enough'));
  });

  // The token reaches the tool's tab over a channel; the caller aborts right before or right after it is sent.
  test.each(['before', 'after'])('at the instant of redemption, %s it: 60 rounds', async (order) => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => {
      const rounds: { settled: unknown; began: boolean; signal: boolean }[] = [];
      const channel = new BroadcastChannel('rounds');
      channel.onmessage = async ({ data: token }) => {
        const round = { settled: null as unknown, began: false, signal: false };
        rounds.push(round);
        const callback = (_input: object, { signal }: { signal: AbortSignal }) => {
          round.began = true;
          signal.addEventListener('abort', () => {
            round.signal = true;
          });
          return new Promise(() => {});
        };
        round.settled = await lab.settled(document.modelContext.resumeTool(token, callback));
        channel.postMessage('next');
      };
      Object.assign(window, { rounds });
      return lab.register('go', (_input, { invocation }) => invocation.requestToken());
    });
    const reasons = await agent.evaluate(async (order) => {
      const channel = new BroadcastChannel('rounds');
      const entry = await lab.find('go');
      const reasons: unknown[] = [];
      for (let round = 0; round < 60; round += 1) {
        const next = new Promise((resolve) => {
          channel.onmessage = resolve;
        });
        const controller = new AbortController();
        const onoutput = (token: string | null) => {
          if (order === 'before') controller.abort(round);
          channel.postMessage(token);
          if (order === 'after') controller.abort(round);
        };
        const { signal } = controller;
        reasons.push(
          await document.modelContext.executeTool(entry, {}, { signal, onoutput }).catch((it) => it),
        );
        await next;
      }
      return reasons;
    }, order);
    expect(reasons).toEqual(Array.from({ length: 60 }, (_, round) => round));
    const read = () =>
      tool.evaluate(
        () =>
          (window as unknown as { rounds: { settled: object; began: boolean; signal: boolean }[] }).rounds,
      );
    await eventually(async () => (await read()).filter(({ began, signal }) => began !== signal)).toEqual([]);
    const rounds = await read();
    expect(rounds).toHaveLength(60);
    for (const { settled, began, signal } of rounds) {
      expect([{}, theVoid]).toContainEqual(settled);
      expect(signal).toBe(began);
      if ('error' in settled) expect(began).toBe(false);
    }
  });

  test('C19: no port and no listener is left after 300 calls with one signal', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('quick', () => 'done'));
    const left = await agent.evaluate(async () => {
      const entry = await lab.find('quick');
      let channels = 0;
      const { MessageChannel: Original } = window;
      window.MessageChannel = class extends Original {
        constructor() {
          super();
          channels += 1;
        }
      };
      const { signal } = new AbortController();
      let listeners = 0;
      const { addEventListener, removeEventListener } = signal;
      signal.addEventListener = (...args: unknown[]) => {
        listeners += 1;
        addEventListener.apply(signal, args as never);
      };
      signal.removeEventListener = (...args: unknown[]) => {
        listeners -= 1;
        removeEventListener.apply(signal, args as never);
      };
      for (let round = 0; round < 300; round += 1) {
        await document.modelContext.executeTool(entry, {}, { signal });
      }
      return { channels, listeners };
    });
    expect(left).toEqual({ channels: 0, listeners: 0 });
  });
});

describe('in the same page', () => {
  test('aborted in the task of the call: it rejects at once; it begins in its turn and is cancelled (WebMCP, cancel)', async () => {
    const page = await bench.open();
    await waits(page);
    const reason = await page.evaluate(async () => {
      const entry = await lab.find('wait');
      const controller = new AbortController();
      const call = document.modelContext.executeTool(entry, {}, { signal: controller.signal });
      controller.abort('never mind');
      const reason = await call.catch((thrown) => thrown);
      const before = lab.log.length;
      await lab.logged('toolcancel wait');
      return [reason, before];
    });
    expect(reason).toEqual(['never mind', 0]);
    expect(await page.evaluate(() => lab.log)).toEqual([
      'toolactivated wait',
      'began wait',
      'signal AbortError',
      'toolcancel wait',
    ]);
  });

  test('while it runs: the signal and toolcancel, once', async () => {
    const page = await bench.open();
    await waits(page);
    await call(page, 'a', 'wait');
    await page.evaluate(() => lab.logged('began wait'));
    await page.evaluate(() => {
      const reason = new DOMException('Enough', 'AbortError');
      lab.calls.a?.controller.abort(reason);
    });
    expect(await outcome(page, 'a')).toEqual({ error: { name: 'AbortError' } });
    await page.evaluate(() => lab.logged('toolcancel wait'));
    expect(await page.evaluate(() => lab.log.filter((entry) => !entry.startsWith('settled')))).toEqual([
      'toolactivated wait',
      'began wait',
      'signal AbortError',
      'toolcancel wait',
    ]);
    // The caller's reason is the caller's: the tool learns of none, here as in another tab.
    expect(
      await page.evaluate(() => {
        const { reason } = lab.last.signal;
        return [reason instanceof DOMException, reason.name, reason.message === 'Enough'];
      }),
    ).toEqual([true, 'AbortError', false]);
  });

  test('while its tool waits for a token: the token is void', async () => {
    const page = await bench.open();
    await page.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const request = lab.settled(invocation.requestToken());
        lab.calls.a?.controller.abort('meanwhile');
        lab.open('request', await request);
      }),
    );
    await call(page, 'a', 'go');
    expect(await outcome(page, 'a')).toEqual(aborted('meanwhile'));
    const request = (await page.evaluate(() => lab.gate('request'))) as { value?: string };
    if (request.value === undefined)
      expect(request).toEqual(failed('not-running', 'InvalidStateError', true));
    else await eventually(() => redeem(page, request.value as string)).toEqual(theVoid);
  });

  test('suspended: the token is void', async () => {
    const page = await bench.open();
    await asks(page);
    await call(page, 'a', 'go');
    const token = await granted(page);
    await page.evaluate(() => lab.open('end', 'output'));
    await page.waitFor(() => lab.calls.a?.outputs.length === 1);
    await abort(page, 'enough');
    expect(await outcome(page, 'a')).toEqual(aborted('enough'));
    await eventually(() => redeem(page, token)).toEqual(theVoid);
    expect(await outputs(page, 'a')).toEqual(['output']);
  });
});
