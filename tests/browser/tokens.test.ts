// Rules 1 to 8, 12 and 13: what a continuation token is good for, how long, and for whom.
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { arrived, call, eventually, failed, LAB, outcome, outputs, ready, useLab } from './lab.ts';

const bench = useLab();

/** Registers `go`: asks for tokens of these lifetimes, and ends when the test says. */
const asks = (page: Page, ...lifetimes: number[]) =>
  page.evaluate(
    (lifetimes) =>
      lab.register('go', async (_input, { invocation }) => {
        lab.tokens = [];
        for (const lifetime of lifetimes) lab.tokens.push(await invocation.requestToken({ lifetime }));
        lab.open('tokens');
        return lab.gate('end');
      }),
    lifetimes,
  );
const granted = (page: Page) => page.evaluate(() => lab.gate('tokens').then(() => lab.tokens));
const ends = (page: Page, gate = 'end') => page.evaluate((gate) => lab.open(gate, gate), gate);
const redeem = (page: Page, token: string | undefined, gate = 'resumed') =>
  page.evaluate((token, gate) => lab.settled(lab.resume(() => lab.gate(gate), token)), token, gate);

/** Everything in the relay's database, as one text. */
const storedText = (page: Page) =>
  page.evaluate(
    () =>
      new Promise<string>((resolve, reject) => {
        const opening = indexedDB.open('webmcp-relay');
        opening.onerror = reject;
        opening.onsuccess = () => {
          const database = opening.result;
          const reading = database.transaction('executions').objectStore('executions').getAll();
          reading.onerror = reject;
          reading.onsuccess = () => {
            database.close();
            const readable = (_key: string, value: unknown) =>
              value instanceof ArrayBuffer ? new TextDecoder('latin1').decode(value) : value;
            resolve(JSON.stringify(reading.result, readable));
          };
        };
      }),
  );

const accepted = {};
const refusals = {
  redeemed: failed('token-redeemed', 'InvalidStateError', false),
  void: failed('token-void', 'AbortError', false),
  expired: failed('token-expired', 'TimeoutError', false),
  unknown: failed('token-unknown', 'NotFoundError', false),
};
const expired = failed('token-expired', 'TimeoutError', true);
const notRunning = failed('not-running', 'InvalidStateError', true);

describe('rule 1: who may ask', () => {
  test('not after the callback has ended', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('go', () => 'ended'));
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual({ value: 'ended' });
    expect(await tool.evaluate(() => lab.settled(lab.last.invocation.requestToken()))).toEqual(notRunning);
  });

  test('not after the execution was cancelled', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool);
    await call(agent, 'a', 'go');
    await tool.evaluate(() => lab.logged('began go'));
    await agent.evaluate(() => lab.calls.a?.controller.abort());
    await tool.evaluate(() => lab.logged('toolcancel go'));
    expect(await tool.evaluate(() => lab.settled(lab.last.invocation.requestToken()))).toEqual(notRunning);
  });

  test('not in a document that is not active', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      document.body.append(Object.assign(document.createElement('iframe'), { src: '/one' })),
    );
    await tool.waitFor(
      () => (window[0] as Window | undefined)?.location.pathname === '/one' && 'lab' in (window[0] as object),
    );
    await tool.evaluate(() => {
      const frame = window[0] as unknown as typeof globalThis;
      return frame.lab.register('framed', () => new Promise(() => {}));
    });
    await call(agent, 'a', 'framed');
    const late = await tool.evaluate(async () => {
      const frame = window[0] as unknown as typeof globalThis;
      await frame.lab.logged('began framed');
      const { last } = frame.lab;
      document.querySelector('iframe')?.remove();
      return last.invocation.requestToken().then(
        () => 'granted',
        ({ name, reason }) => ({ name, reason }),
      );
    });
    expect(late).toEqual({ name: 'InvalidStateError', reason: 'not-running' });
  });

  test('sixteen tokens an execution, and no more', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const settled = await Promise.all(
          Array.from({ length: 17 }, () => lab.settled(invocation.requestToken({ lifetime: 400 }))),
        );
        lab.open('settled', settled);
      }),
    );
    await call(agent, 'a', 'go');
    const settled = await tool.evaluate(() => lab.gate('settled') as Promise<object[]>);
    expect(settled.filter((token) => 'value' in token)).toHaveLength(16);
    expect(settled.filter((token) => 'error' in token)).toEqual([
      failed('too-many', 'QuotaExceededError', true),
    ]);
    expect(await outcome(agent, 'a')).toEqual(expired);
  });

  test('a lifetime is a number from 1 to an hour', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const kinds = [];
        for (const lifetime of [0, -1, 3_600_001, Number.NaN, 'long', {}, 1, 3_600_000]) {
          kinds.push(await lab.settled(invocation.requestToken({ lifetime } as never)));
        }
        return kinds.map((kind) => ('error' in kind ? kind.error.name : typeof kind.value));
      }),
    );
    await call(agent, 'a', 'go');
    const bad = Array.from({ length: 6 }, () => 'TypeError');
    await eventually(() => outputs(agent, 'a')).toEqual([JSON.stringify([...bad, 'string', 'string'])]);
  });
});

describe('rule 2: what it looks like', () => {
  test('256 bits, base64url, a new one each time; storage and listings do not hold it', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000, 60_000);
    await call(agent, 'a', 'go', { card: '4111-1111' });
    const tokens = await granted(tool);
    expect(tokens).toEqual([expect.stringMatching(/^[\w-]{43}$/), expect.stringMatching(/^[\w-]{43}$/)]);
    expect(new Set(tokens).size).toBe(2);
    const stored = await storedText(tool);
    expect(stored).toContain('"go"');
    expect(stored).not.toContain(tokens[0]);
    expect(stored).not.toContain('4111-1111');
  });

  test('its digest redeems nothing, nor does anything else that is stored', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    const alike = (await storedText(tool)).match(/(?<=")[\w-]{43}(?=")/g) ?? [];
    expect(alike.length).toBeGreaterThan(0);
    const refused = await Promise.all(alike.map((text) => redeem(tool, text)));
    expect(refused).toEqual(alike.map(() => refusals.unknown));
    await ends(tool);
    expect(await redeem(tool, token)).toEqual(accepted);
    await ends(tool, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });
});

describe('rule 3: who may redeem', () => {
  test('once', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    expect(await redeem(tool, token)).toEqual(accepted);
    expect(await redeem(tool, token, 'again')).toEqual(refusals.redeemed);
    expect(await redeem(agent, token, 'again')).toEqual(refusals.redeemed);
    await ends(tool);
    await ends(tool, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
    expect(await redeem(agent, token, 'again')).toEqual(refusals.redeemed);
  });

  test('any tab of the group, but no other group', async () => {
    const { tool, agent } = await bench.pair();
    const stranger = await bench.open();
    await asks(tool, 60_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    expect(await redeem(stranger, token)).toEqual(failed('other-group', 'NotAllowedError', false));
    expect(await redeem(agent, token)).toEqual(accepted);
    await ends(tool);
    await ends(agent, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });

  test('no token at all, no string, no token of ours', async () => {
    const page = await bench.open();
    const settled = await page.evaluate(() => {
      const strange = [
        undefined,
        null,
        7,
        {},
        '',
        'short',
        'A'.repeat(43),
        `${'A'.repeat(42)}!`,
        'A'.repeat(100_000),
      ];
      return Promise.all(strange.map((token) => lab.settled(lab.resume(() => 1, token as never))));
    });
    for (const refusal of settled.slice(1)) expect(refusal).toEqual(refusals.unknown);
    const symbol = await page.evaluate(() =>
      lab.settled(document.modelContext.resumeTool(Symbol('token') as never, () => 1)),
    );
    expect(symbol).toEqual({ error: { name: 'TypeError' } });
    const none = await page.evaluate(() =>
      lab.settled(document.modelContext.resumeTool('A'.repeat(43), undefined as never)),
    );
    expect(none).toEqual({ error: { name: 'TypeError' } });
  });

  test('not from a document that is not active', async () => {
    const page = await bench.open();
    const refused = await page.evaluate(async () => {
      const frame = Object.assign(document.createElement('iframe'), { src: '/one' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      const { modelContext } = frame.contentDocument as Document;
      frame.remove();
      return modelContext.resumeTool('A'.repeat(43), () => 1).catch(({ name, reason }) => ({ name, reason }));
    });
    expect(refused).toEqual({ name: 'InvalidStateError', reason: 'inactive-document' });
  });

  test('200 races of two tabs: one winner each', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => invocation.requestToken()),
    );
    // Both tabs hear of a token at the same moment, from a channel, and write down how they fared; every other time the
    // agent's tab is a message ahead.
    const race = (name: string) => {
      const here: Record<string, string> = {};
      const redeem = async (token: string) => {
        here[token] = 'asked';
        const settled = await lab.settled(document.modelContext.resumeTool(token, () => name));
        here[token] = 'error' in settled ? (settled.error.reason as string) : 'won';
      };
      new BroadcastChannel('race').onmessage = ({ data: token }) => {
        if (!(token in here)) void redeem(token);
      };
      Object.assign(window, { here, redeem });
    };
    await tool.evaluate(race, 'tool');
    await agent.evaluate(race, 'agent');
    const results: [string, string][] = [];
    for (let part = 0; part < 4; part += 1) {
      const fifty = await agent.evaluate(async () => {
        const starter = new BroadcastChannel('race');
        const { redeem } = window as unknown as { redeem(token: string): Promise<void> };
        const tool = await lab.find('go');
        const results: [string, string][] = [];
        for (let round = 0; round < 50; round += 1) {
          let token = '';
          const onoutput = (text: string | null) => {
            token = text as string;
            if (round % 2 === 0) void redeem(token);
            starter.postMessage(token);
          };
          const winner = await document.modelContext.executeTool(tool, {}, { onoutput });
          results.push([token, winner as string]);
        }
        return results;
      });
      results.push(...fifty);
    }
    const fared = (page: Page) =>
      page.evaluate(() => (window as unknown as { here: Record<string, string> }).here);
    await eventually(async () => Object.keys(await fared(tool)).length).toBe(200);
    const [inTool, inAgent] = [await fared(tool), await fared(agent)];
    for (const [token, winner] of results) {
      expect({ tool: inTool[token], agent: inAgent[token] }).toEqual(
        winner === 'tool'
          ? { tool: 'won', agent: 'token-redeemed' }
          : { tool: 'token-redeemed', agent: 'won' },
      );
    }
    expect(results).toHaveLength(200);
    expect(new Set(results.map(([, winner]) => winner)).size).toBe(2);
  });
});

describe('rule 4: redeeming while the issuing activation runs', () => {
  test('in the issuing document: the callback waits for its end', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    expect(await redeem(tool, token)).toEqual(accepted);
    expect(await tool.evaluate(() => lab.log)).toEqual(['toolactivated go', 'began go']);
    await ends(tool);
    await tool.evaluate(() => lab.logged('began resumed'));
    await ends(tool, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
    expect(await tool.evaluate(() => lab.log)).toEqual([
      'toolactivated go',
      'began go',
      'ended go',
      'toolactivated go',
      'began resumed',
      'ended resumed',
    ]);
  });

  test('in another document: likewise, with the original input and fresh options', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000);
    await call(agent, 'a', 'go', { n: [1, { deep: true }] });
    const [token] = await granted(tool);
    expect(await redeem(agent, token)).toEqual(accepted);
    expect(await agent.evaluate(() => lab.log)).not.toContain('began resumed');
    await ends(tool);
    await agent.evaluate(() => lab.logged('began resumed'));
    expect(
      await agent.evaluate(() => ({
        input: lab.last.input,
        aborted: lab.last.signal.aborted,
        invocation: lab.last.invocation.constructor.name.length > 0,
      })),
    ).toEqual({ input: { n: [1, { deep: true }] }, aborted: false, invocation: true });
    await ends(agent, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });

  test('the issuing page leaves: the callback begins', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    expect(await redeem(agent, token)).toEqual(accepted);
    await tool.goto(`${bench.site.origin}/two`);
    await agent.evaluate(() => lab.logged('began resumed'));
    await ends(agent, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });
});

describe('rule 5: accepted but not begun', () => {
  test('its page leaves before its turn: the token is outstanding again', async () => {
    const { tool, agent } = await bench.pair();
    const third = await bench.join(tool);
    await asks(tool, 60_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    expect(await redeem(third, token)).toEqual(accepted);
    expect(await redeem(agent, token)).toEqual(refusals.redeemed);
    await third.goto(`${bench.site.origin}/two`);
    await ready(third);
    expect(await redeem(third, token)).toEqual(accepted);
    await ends(tool);
    await ends(third, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });

  test('a frame that accepted is removed: the token is outstanding again', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await tool.evaluate(async (token) => {
      const frame = Object.assign(document.createElement('iframe'), { src: '/one' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      await (frame.contentWindow as unknown as typeof globalThis).lab.resume(() => 'never', token);
      frame.remove();
    }, token);
    await eventually(() => redeem(tool, token)).toEqual(accepted);
    await ends(tool);
    await ends(tool, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });
});

describe('rule 6: its lifetime', () => {
  test('counts from the end of the issuing activation', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 1_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await tool.evaluate(() => new Promise((resolve) => setTimeout(resolve, 1_500)));
    expect(await agent.evaluate(() => lab.calls.a?.done)).toBe(null);
    expect(await redeem(tool, token)).toEqual(accepted);
    await ends(tool);
    await ends(tool, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });

  test('rule 12: the caller learns of the expiry in time', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 700);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    // A timer of the same length beside it, from the output on, says how slow the machine is.
    const late = agent.evaluate(async () => {
      const { outputs, settled } = lab.calls.a as (typeof lab.calls)[string];
      while (outputs.length === 0) await new Promise((resolve) => setTimeout(resolve));
      const at = (promise: Promise<unknown>) => promise.then(() => performance.now());
      const timer = new Promise((resolve) => setTimeout(resolve, 700));
      const [timerAt, settledAt] = await Promise.all([at(timer), at(settled)]);
      return settledAt - timerAt;
    });
    await ends(tool);
    expect(await late).toBeLessThanOrEqual(1_000);
    expect(await outcome(agent, 'a')).toEqual(expired);
    expect(await redeem(tool, token)).toEqual(refusals.expired);
  });

  test('two tokens of one activation expire each by itself', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 300, 60_000);
    await call(agent, 'a', 'go');
    const [short, long] = await granted(tool);
    await ends(tool);
    await tool.evaluate(() => new Promise((resolve) => setTimeout(resolve, 400)));
    expect(await redeem(tool, short)).toEqual(refusals.expired);
    expect(await agent.evaluate(() => lab.calls.a?.done)).toBe(null);
    expect(await redeem(tool, long)).toEqual(accepted);
    await ends(tool, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
  });
});

describe('rule 8: void', () => {
  test('the caller cancels: every token is void, before and after', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000, 60_000);
    await call(agent, 'a', 'go');
    const tokens = await granted(tool);
    await agent.evaluate(() => lab.calls.a?.controller.abort('enough'));
    expect(await outcome(agent, 'a')).toEqual({ error: { thrown: 'enough' } });
    await tool.evaluate(() => lab.logged('toolcancel go'));
    for (const token of tokens) expect(await redeem(tool, token)).toEqual(refusals.void);
  });

  test('void stays void across a restart of the worker', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await agent.evaluate(() => lab.calls.a?.controller.abort());
    await tool.evaluate(() => lab.logged('toolcancel go'));
    await bench.browser.stopWorkers();
    expect(await redeem(tool, token)).toEqual(refusals.void);
  });

  test('rule 13: redeemed and expired are told apart across a restart too', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 60_000, 300);
    await call(agent, 'a', 'go');
    const [first, second] = await granted(tool);
    await redeem(tool, first);
    await ends(tool);
    await ends(tool, 'resumed');
    expect(await outcome(agent, 'a')).toEqual({ value: 'resumed' });
    await bench.browser.stopWorkers();
    expect(await redeem(tool, first)).toEqual(refusals.redeemed);
    expect(await redeem(tool, second)).toEqual(refusals.expired);
  });
});

describe('C10: a token that is navigated with at once is never lost', () => {
  const page = (path: string, next: string) =>
    bench.site.page(
      path,
      `${LAB}<title>${path}</title><script>
        const parameters = new URLSearchParams(location.search);
        lab.resume(async (input, { invocation }) => {
          const left = Number(parameters.get('left'));
          if (left === 0) return input.text.length;
          location.href = webmcpRelay.withToken('${next}?left=' + (left - 1), await invocation.requestToken());
        }).catch((error) => localStorage.setItem('lost', error.reason));
      </script>`,
    );

  // An execution has 16 tokens at most, so twenty chains of ten.
  test('200 navigations, none lost', async () => {
    page('/hop', '/hop2');
    page('/hop2', '/hop');
    const { tool, agent } = await bench.pair();
    for (let chain = 0; chain < 20; chain += 1) {
      await tool.evaluate(() =>
        lab.register('go', async (_input, { invocation }) => {
          location.href = webmcpRelay.withToken('/hop?left=9', await invocation.requestToken());
        }),
      );
      await call(agent, 'a', 'go', { text: 'x' });
      expect(await outcome(agent, 'a')).toEqual({ value: '1' });
      expect(await outputs(agent, 'a')).toEqual(Array.from({ length: 10 }, () => null));
      await ready(tool);
    }
    expect(await tool.evaluate(() => localStorage.getItem('lost'))).toBe(null);
  }, 180_000);

  test('with an input of 1 MB', async () => {
    page('/hop', '/hop2');
    page('/hop2', '/hop');
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        location.href = webmcpRelay.withToken('/hop?left=9', await invocation.requestToken());
      }),
    );
    await agent.evaluate(() => lab.call('a', 'go', { text: 'x'.repeat(1_000_000) }));
    expect(await outcome(agent, 'a')).toEqual({ value: '1000000' });
  });

  test('without waiting for anything: a tool that navigates while its request is under way', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const request = invocation.requestToken({ lifetime: 500 });
        location.href = '/two';
        sessionStorage.setItem('webmcp-token', await request);
      }),
    );
    await call(agent, 'a', 'go');
    await arrived(tool, '/two');
    if (await tool.evaluate(() => sessionStorage.getItem('webmcp-token') !== null)) {
      await tool.evaluate(() => lab.resume(() => 'in time'));
      expect(await outcome(agent, 'a')).toEqual({ value: 'in time' });
    } else {
      // Granted or not, the caller is told.
      expect([failed('navigated', 'UnknownError', true), expired]).toContainEqual(await outcome(agent, 'a'));
    }
  });
});
