// Rules 9, 10 and 11: what an activation's end means for its execution, in all orders, in documents that stay and that go.
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { arrived, call, crash, failed, outcome, outputs, useLab } from './lab.ts';

const bench = useLab();

/** Registers `go`: asks for `tokens` tokens, keeps them as `lab.tokens`, then does what the gates of the test say. */
const asks = (page: Page, tokens: number, lifetime = 60_000) =>
  page.evaluate(
    (tokens, lifetime) =>
      lab.register('go', async (_input, { invocation }) => {
        lab.tokens = [];
        for (let index = 0; index < tokens; index += 1) {
          lab.tokens.push(await invocation.requestToken({ lifetime }));
        }
        lab.open('tokens');
        return lab.gate('end');
      }),
    tokens,
    lifetime,
  );

const granted = (page: Page) => page.evaluate(() => lab.gate('tokens').then(() => lab.tokens));
const returns = (page: Page, value: unknown, gate = 'end') =>
  page.evaluate((gate, value) => lab.open(gate, value), gate, value);
const throws = (page: Page, message: string, gate = 'end') =>
  page.evaluate((gate, message) => lab.fail(gate, message), gate, message);
/** Resumes in the page; the callback does what its gate says. */
const resumes = (page: Page, token: string | undefined, gate: string) =>
  page.evaluate((token, gate) => lab.resume(() => lab.gate(gate), token), token, gate);
const toolFailed = (message: string) =>
  failed('tool-failed', 'UnknownError', true, { name: 'Error', message });
const expired = failed('token-expired', 'TimeoutError', true);
const theVoid = failed('token-void', 'AbortError', false);
const tryToken = (page: Page, token: string | undefined) =>
  page.evaluate((token) => lab.settled(lab.resume(() => 1, token)), token);

describe('rule 9: answers', () => {
  test('no token: the return value is the answer', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 0);
    await call(agent, 'a', 'go');
    await returns(tool, 'plain');
    expect(await outcome(agent, 'a')).toEqual({ value: 'plain' });
    expect(await outputs(agent, 'a')).toEqual([]);
  });

  test('a token: the return value is an output, the resumed one the answer', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 1);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await resumes(tool, token, 'second');
    await returns(tool, 'output');
    await returns(tool, 'answer', 'second');
    expect(await outcome(agent, 'a')).toEqual({ value: 'answer' });
    expect(await outputs(agent, 'a')).toEqual(['output']);
  });

  test('no answer, and the token expires: token-expired', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 1, 200);
    await call(agent, 'a', 'go');
    await granted(tool);
    await returns(tool, 'output');
    expect(await outcome(agent, 'a')).toEqual(expired);
    expect(await outputs(agent, 'a')).toEqual(['output']);
  });

  test('two tokens, one redeemed and answered, one expired: the answer is the result', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 2, 1_500);
    await call(agent, 'a', 'go');
    const [first] = await granted(tool);
    await resumes(tool, first, 'second');
    await returns(tool, 'output');
    await returns(tool, 'answer', 'second');
    await tool.evaluate(() => lab.logged('ended resumed'));
    expect(await agent.evaluate(() => lab.calls.a?.done)).toBe(null);
    expect(await outcome(agent, 'a')).toEqual({ value: 'answer' });
  });

  test('two tokens, both redeemed: the answer that came last is the result', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 2);
    await call(agent, 'a', 'go');
    const [first, second] = await granted(tool);
    await returns(tool, 'output');
    await resumes(tool, first, 'one');
    await resumes(tool, second, 'two');
    await tool.waitFor(() => lab.log.filter((entry) => entry === 'began resumed').length === 2);
    await returns(tool, 'earlier', 'two');
    await returns(tool, 'later', 'one');
    expect(await outcome(agent, 'a')).toEqual({ value: 'later' });
  });

  test('an answer while another callback still runs is not the result yet', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 2);
    await call(agent, 'a', 'go');
    const [first, second] = await granted(tool);
    await returns(tool, 'output');
    await resumes(tool, first, 'one');
    await resumes(tool, second, 'two');
    await returns(tool, 'answered', 'one');
    await tool.evaluate(() => lab.logged('ended resumed'));
    expect(await agent.evaluate(() => lab.calls.a?.done)).toBe(null);
    await throws(tool, 'the other one', 'two');
    expect(await outcome(agent, 'a')).toEqual(toolFailed('the other one'));
  });

  test('a token that is requested and not awaited makes the value an output all the same', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', (_input, { invocation }) => {
        void invocation.requestToken({ lifetime: 300 });
        return 'output';
      }),
    );
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual(expired);
    expect(await outputs(agent, 'a')).toEqual(['output']);
  });

  test('a resumed callback may ask for a token of its own, and gives an output then', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 1);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await returns(tool, 'first');
    await tool.evaluate(
      (token) =>
        lab.resume(async (_input, { invocation }) => {
          lab.tokens = [await invocation.requestToken()];
          lab.open('more');
          return 'second';
        }, token),
      token,
    );
    const next = await tool.evaluate(() => lab.gate('more').then(() => lab.tokens[0]));
    await resumes(tool, next, 'last');
    await returns(tool, 'third', 'last');
    expect(await outcome(agent, 'a')).toEqual({ value: 'third' });
    expect(await outputs(agent, 'a')).toEqual(['first', 'second']);
  });
});

describe('rule 10: throws in a document that stays', () => {
  test('no token: the execution fails at once', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 0);
    await call(agent, 'a', 'go');
    await throws(tool, 'broken');
    expect(await outcome(agent, 'a')).toEqual(toolFailed('broken'));
  });

  test('an outstanding token: the execution fails at once, the token is void', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 1);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await throws(tool, 'broken');
    expect(await outcome(agent, 'a')).toEqual(toolFailed('broken'));
    expect(await tryToken(tool, token)).toEqual(theVoid);
  });

  test('two tokens, one redeemed: the throw counts, the other token is void, the resumption never runs', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 2);
    await call(agent, 'a', 'go');
    const [first, second] = await granted(tool);
    await resumes(tool, first, 'one');
    await throws(tool, 'broken');
    expect(await outcome(agent, 'a')).toEqual(toolFailed('broken'));
    expect(await tryToken(tool, second)).toEqual(theVoid);
    expect(await tool.evaluate(() => lab.log)).not.toContain('began resumed');
  });

  test('all its tokens redeemed: the throw changes nothing, and is on the console', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 1);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await tool.evaluate(() => {
      const { warn } = console;
      console.warn = (...parts) => {
        warn(...parts);
        lab.log.push(parts.join(' '));
      };
    });
    await resumes(tool, token, 'one');
    await throws(tool, 'too late');
    await returns(tool, 'goes on', 'one');
    expect(await outcome(agent, 'a')).toEqual({ value: 'goes on' });
    expect(await tool.evaluate(() => lab.log.find((entry) => entry.includes('too late')))).toContain('go');
  });

  test('a resumed callback that throws fails the execution', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 1);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await returns(tool, 'output');
    await resumes(tool, token, 'one');
    await throws(tool, 'on the second page', 'one');
    expect(await outcome(agent, 'a')).toEqual(toolFailed('on the second page'));
    expect(await outputs(agent, 'a')).toEqual(['output']);
  });

  test('a throw with no token after an answer of another callback: the throw is the outcome', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 2);
    await call(agent, 'a', 'go');
    const [first, second] = await granted(tool);
    await returns(tool, 'output');
    await resumes(tool, first, 'one');
    await returns(tool, 'answer', 'one');
    await tool.evaluate(() => lab.logged('ended resumed'));
    await resumes(tool, second, 'two');
    await throws(tool, 'after all', 'two');
    expect(await outcome(agent, 'a')).toEqual(toolFailed('after all'));
  });

  test('a throw whose token request failed is a throw without a token', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', (_input, { invocation }) => invocation.requestToken({ lifetime: -1 })),
    );
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toMatchObject({
      error: { name: 'UnknownError', reason: 'tool-failed', started: true, cause: { name: 'TypeError' } },
    });
  });
});

describe('rule 10: throws in a document that is leaving', () => {
  /** `go` asks for tokens, starts a navigation to `/two` that takes a while, and throws. */
  const throwsLeaving = (page: Page, tokens: number, lifetime = 60_000) =>
    page.evaluate(
      (tokens, lifetime) =>
        lab.register('go', async (_input, { invocation }) => {
          const made: string[] = [];
          for (let index = 0; index < tokens; index += 1)
            made.push(await invocation.requestToken({ lifetime }));
          sessionStorage.setItem('made', JSON.stringify(made));
          location.href = '/two';
          await new Promise((resolve) => setTimeout(resolve));
          throw new Error('cut short');
        }),
      tokens,
      lifetime,
    );
  const made = (page: Page) =>
    page.evaluate(() => JSON.parse(sessionStorage.getItem('made') as string) as string[]);

  test('no token: it fails at once', async () => {
    const { tool, agent } = await bench.pair();
    await throwsLeaving(tool, 0);
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual(toolFailed('cut short'));
    await arrived(tool, '/two');
  });

  test('redeemed on the next page: discarded', async () => {
    const { tool, agent } = await bench.pair();
    await throwsLeaving(tool, 1);
    await call(agent, 'a', 'go');
    await arrived(tool, '/two');
    const [token] = await made(tool);
    await resumes(tool, token, 'end');
    await returns(tool, 'arrived');
    expect(await outcome(agent, 'a')).toEqual({ value: 'arrived' });
  });

  test('one of two redeemed and answered, the other expires: the answer', async () => {
    const { tool, agent } = await bench.pair();
    await throwsLeaving(tool, 2, 4_000);
    await call(agent, 'a', 'go');
    await arrived(tool, '/two');
    const [token] = await made(tool);
    await resumes(tool, token, 'end');
    await returns(tool, 'arrived');
    expect(await outcome(agent, 'a')).toEqual({ value: 'arrived' });
  });

  test('never redeemed: the throw is reported when the token expires', async () => {
    const { tool, agent } = await bench.pair();
    await throwsLeaving(tool, 1, 300);
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual(toolFailed('cut short'));
  });

  test('redeemed in another document before the throw: it changes nothing', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        lab.tokens = [await invocation.requestToken()];
        lab.open('tokens');
        await lab.gate('leave');
        location.href = '/two';
        throw new Error('cut short');
      }),
    );
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await resumes(agent, token, 'end');
    await tool.waitForNavigation(() => tool.evaluate(() => lab.open('leave')));
    await returns(agent, 'in the other tab');
    expect(await outcome(agent, 'a')).toEqual({ value: 'in the other tab' });
  });
});

describe('rule 11: the document goes away', () => {
  test('C04: without a token the call fails: navigated', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', () => {
        location.href = '/two';
        return new Promise(() => {});
      }),
    );
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual(failed('navigated', 'UnknownError', true));
    await arrived(tool, '/two');
  });

  test('C04: a crash is told from a navigation: document-lost', async () => {
    const { tool, agent } = await bench.pair({ apart: true });
    await asks(tool, 0);
    await call(agent, 'a', 'go');
    await tool.evaluate(() => lab.logged('began go'));
    await crash(tool);
    expect(await outcome(agent, 'a')).toEqual(failed('document-lost', 'UnknownError', true));
    expect(await agent.evaluate(() => lab.names())).toEqual([]);
  });

  test('C04: null is a success', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => lab.register('nothing', () => null));
    await call(agent, 'a', 'nothing');
    expect(await outcome(agent, 'a')).toEqual({ value: 'null' });
  });

  test('a crash after a token was granted: the token lives on', async () => {
    const { tool, agent } = await bench.pair({ apart: true });
    await asks(tool, 1);
    await call(agent, 'a', 'go');
    const [token] = await granted(tool);
    await crash(tool);
    await resumes(agent, token, 'end');
    await returns(agent, 'after the crash');
    expect(await outcome(agent, 'a')).toEqual({ value: 'after the crash' });
  });

  test('a window that is closed says goodbye: navigated', async () => {
    const { tool, agent } = await bench.pair();
    await asks(tool, 0);
    await call(agent, 'a', 'go');
    await tool.evaluate(() => lab.logged('began go'));
    await tool.close();
    expect(await outcome(agent, 'a')).toEqual(failed('navigated', 'UnknownError', true));
  });

  test("the callback's signal aborts when its document goes away", async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { signal, invocation }) => {
        signal.addEventListener('abort', () => localStorage.setItem('seen', signal.reason.name));
        location.href = webmcpRelay.withToken('/two', await invocation.requestToken());
        await new Promise(() => {});
      }),
    );
    await call(agent, 'a', 'go');
    await arrived(tool, '/two');
    expect(await tool.evaluate(() => localStorage.getItem('seen'))).toBe('AbortError');
    await tool.evaluate(() => lab.resume(() => 'on'));
    expect(await outcome(agent, 'a')).toEqual({ value: 'on' });
  });

  test('C05: a callback is run once, however its page goes', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => {
      localStorage.setItem('runs', '0');
      return lab.register('count', () => {
        localStorage.setItem('runs', `${Number(localStorage.getItem('runs')) + 1}`);
        location.reload();
        return new Promise(() => {});
      });
    });
    await tool.waitForNavigation(() => call(agent, 'a', 'count'));
    expect(await outcome(agent, 'a')).toEqual(failed('navigated', 'UnknownError', true));
    await arrived(tool, '/lab');
    expect(await tool.evaluate(() => localStorage.getItem('runs'))).toBe('1');
  });
});
