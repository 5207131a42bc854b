// A call goes on while its tab goes from page to page, in Chromium: every way to get from one page to the next.
import type { Page as PuppeteerPage } from 'puppeteer-core';
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { arrived, call, failed, LAB, type LabInPage, outcome, outputs, ready, useLab } from './lab.ts';
import { createGate, pieces, redirect } from './site.ts';

const bench = useLab();

/** Registers `go`, which hands its token to `url` and gives an output. */
const goesTo = (page: Page, url: string) =>
  page.evaluate(
    (url) =>
      lab.register('go', async (_input, { invocation }) => {
        location.href = webmcpRelay.withToken(url, await invocation.requestToken());
        return `left for ${url}`;
      }),
    url,
  );

/** The page takes its token and answers. */
const answers = (page: Page, text: string) =>
  page.evaluate((text) => lab.resume((input) => ({ text, input })), text);

const answer = (text: string, input: object = {}) => ({ value: JSON.stringify({ text, input }) });

describe('from page to page', () => {
  test('three pages by full loads, each with its output', async () => {
    const { tool, agent } = await bench.pair();
    await goesTo(tool, '/one');
    await call(agent, 'a', 'go', { n: 1 });
    await arrived(tool, '/one');
    await tool.evaluate(() =>
      lab.resume(async (input, { invocation }) => {
        location.href = webmcpRelay.withToken('/two', await invocation.requestToken());
        return input;
      }),
    );
    await arrived(tool, '/two');
    await answers(tool, 'done');
    expect(await outcome(agent, 'a')).toEqual(answer('done', { n: 1 }));
    expect(await outputs(agent, 'a')).toEqual(['left for /one', '{"n":1}']);
  });

  test('takeToken takes the token from the address and removes it there', async () => {
    const { tool, agent } = await bench.pair();
    await goesTo(tool, '/one?kept=1#part');
    await call(agent, 'a', 'go');
    await arrived(tool, '/one');
    expect(await tool.evaluate(() => location.search)).toMatch(/^\?kept=1&webmcp-token=[\w-]{43}$/);
    await answers(tool, 'done');
    expect(await tool.evaluate(() => location.search + location.hash)).toBe('?kept=1#part');
    expect(await outcome(agent, 'a')).toEqual(answer('done'));
  });

  test('a posted form, then a redirect (303)', async () => {
    bench.site.page('/pay', ({ form }) => redirect(`/two?webmcp-token=${form.get('webmcp-token')}`));
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const token = await invocation.requestToken();
        document.body.innerHTML = '<form method="post" action="/pay"><input name="webmcp-token"></form>';
        const form = document.forms[0] as HTMLFormElement;
        (form.elements[0] as HTMLInputElement).value = token;
        form.submit();
        return 'posted';
      }),
    );
    await call(agent, 'a', 'go');
    await arrived(tool, '/two');
    await answers(tool, 'paid');
    expect(await outcome(agent, 'a')).toEqual(answer('paid'));
    expect(await outputs(agent, 'a')).toEqual(['posted']);
  });

  test('a reload', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        sessionStorage.setItem('webmcp-token', await invocation.requestToken());
        location.reload();
      }),
    );
    await tool.waitForNavigation(() => call(agent, 'a', 'go'));
    await arrived(tool, '/lab');
    await answers(tool, 'reloaded');
    expect(await outcome(agent, 'a')).toEqual(answer('reloaded'));
    expect(await outputs(agent, 'a')).toEqual([null]);
  });

  test('rule 7: pages of another origin in between', async () => {
    bench.site.page('/bank', '<title>bank</title>');
    const { tool, agent } = await bench.pair();
    await tool.evaluate(
      (bank) =>
        lab.register('go', async (_input, { invocation }) => {
          sessionStorage.setItem('webmcp-token', await invocation.requestToken());
          location.href = bank;
          return 'to the bank';
        }),
      `${bench.site.other}/bank`,
    );
    await call(agent, 'a', 'go');
    await tool.waitFor(() => document.title === 'bank');
    await tool.goto(`${bench.site.other}/bank?again`);
    await tool.goto(`${bench.site.origin}/two`);
    await answers(tool, 'paid');
    expect(await outcome(agent, 'a')).toEqual(answer('paid'));
  });

  test('many rounds: twelve pages in a row', async () => {
    bench.site.page(
      '/hop',
      `${LAB}<script>
        lab.resume(async (input, { invocation }) => {
          const hops = Number(new URLSearchParams(location.search).get('hops'));
          if (hops === 12) return hops;
          location.href = webmcpRelay.withToken('/hop?hops=' + (hops + 1), await invocation.requestToken());
          return 'hop ' + hops;
        });
      </script>`,
    );
    const { tool, agent } = await bench.pair();
    await goesTo(tool, '/hop?hops=1');
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual({ value: '12' });
    expect(await outputs(agent, 'a')).toEqual([
      'left for /hop?hops=1',
      ...Array.from({ length: 11 }, (_, index) => `hop ${index + 1}`),
    ]);
  });
});

describe('a slow server, and a throw while leaving (rule 10)', () => {
  test('a fetch in flight: its rejection changes nothing', async () => {
    bench.site.page('/slow', () => ({ body: `${LAB}<title>slow</title>`, delayMs: 3_000 }));
    bench.site.route('/never', () => ({ body: pieces('', createGate().opened) }));
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        location.href = webmcpRelay.withToken('/slow', await invocation.requestToken());
        return (await fetch('/never')).text();
      }),
    );
    await call(agent, 'a', 'go');
    await arrived(tool, '/slow');
    await answers(tool, 'slow but here');
    expect(await outcome(agent, 'a')).toEqual(answer('slow but here'));
    expect(await outputs(agent, 'a')).toEqual([]);
  });

  /** `go` starts a navigation that the server lets wait, and throws. */
  const throwsWhileLeaving = (page: Page, path: string, lifetime = 60_000) =>
    page.evaluate(
      (path, lifetime) =>
        lab.register('go', async (_input, { invocation }) => {
          location.href = webmcpRelay.withToken(path, await invocation.requestToken({ lifetime }));
          throw new TypeError('Failed to fetch');
        }),
      path,
      lifetime,
    );
  const reported = failed('tool-failed', 'UnknownError', true, {
    name: 'TypeError',
    message: 'Failed to fetch',
  });

  test('redemption discards the throw', async () => {
    bench.site.page('/held', () => ({ body: `${LAB}<title>held</title>`, delayMs: 500 }));
    const { tool, agent } = await bench.pair();
    await throwsWhileLeaving(tool, '/held');
    await call(agent, 'a', 'go');
    await arrived(tool, '/held');
    await answers(tool, 'arrived');
    expect(await outcome(agent, 'a')).toEqual(answer('arrived'));
  });

  test('expiry reports the throw', async () => {
    bench.site.page('/gone', '<title>gone</title>');
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        await invocation.requestToken({ lifetime: 300 });
        location.href = '/gone';
        throw new TypeError('Failed to fetch');
      }),
    );
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual(reported);
  });

  /** The answer never comes, or brings no document: the document stays, and works on. */
  async function stays(tool: Page, agent: Page): Promise<void> {
    expect(await outcome(agent, 'a')).toEqual(reported);
    expect(await tool.evaluate(() => lab.log.filter((entry) => entry === 'began go'))).toEqual(['began go']);
    await tool.evaluate(() => lab.register('here', () => 'still here'));
    await call(agent, 'b', 'here');
    expect(await outcome(agent, 'b')).toEqual({ value: 'still here' });
  }

  /** By itself: a tool of the test's reaches no page whose navigation is pending. */
  const stopsSoonAfter = (page: Page) =>
    page.evaluate(() => void lab.logged('ended go').then(() => setTimeout(() => window.stop(), 200)));

  test('window.stop() reports the throw', async () => {
    bench.site.page('/stopped', () => new Promise(() => {}));
    const { tool, agent } = await bench.pair();
    await throwsWhileLeaving(tool, '/stopped');
    await stopsSoonAfter(tool);
    await call(agent, 'a', 'go');
    await stays(tool, agent);
  });

  // Chromium tells a page nothing of a navigation that brings no document, so expiry is what reports the throw at the latest.
  test('an answer without content (204): the throw is reported', async () => {
    bench.site.page('/nothing', () => ({ status: 204, delayMs: 300 }));
    const { tool, agent } = await bench.pair();
    await throwsWhileLeaving(tool, '/nothing', 1_000);
    await call(agent, 'a', 'go');
    await stays(tool, agent);
  });

  test('after an answer without content a later throw is reported at once', async () => {
    const asked = createGate();
    bench.site.page('/nothing', () => {
      asked.open();
      return { status: 204 };
    });
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        await invocation.requestToken();
        throw new Error('of its own');
      }),
    );
    await tool.evaluate(() => void location.assign('/nothing'));
    await asked.opened;
    await tool.evaluate(() => 'settled');
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual(
      failed('tool-failed', 'UnknownError', true, { name: 'Error', message: 'of its own' }),
    );
  });

  test('a download: the throw is reported', async () => {
    const headers = { 'content-disposition': 'attachment; filename="receipt.txt"' };
    bench.site.route('/file', () => ({ headers, body: 'receipt', delayMs: 300 }));
    const { tool, agent } = await bench.pair();
    await throwsWhileLeaving(tool, '/file', 1_000);
    await call(agent, 'a', 'go');
    await stays(tool, agent);
  });

  test('C40: a prompt before unloading that is answered with stay', async () => {
    const { tool, agent } = await bench.pair();
    const raw = tool.raw as PuppeteerPage;
    raw.removeAllListeners('dialog');
    const asked: string[] = [];
    raw.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void dialog.dismiss();
    });
    await raw.bringToFront();
    await raw.mouse.click(5, 5);
    await tool.evaluate(() => addEventListener('beforeunload', (event) => event.preventDefault()));
    await throwsWhileLeaving(tool, '/two');
    await call(agent, 'a', 'go');
    await stays(tool, agent);
    expect(asked).toEqual(['beforeunload']);
    expect(await agent.evaluate(() => lab.names())).toEqual(['go', 'here']);
    await tool.evaluate(() => {
      window.onbeforeunload = null;
    });
  });

  test('a document that stays although it threw: what it asks for then is refused', async () => {
    bench.site.page('/stopped', () => new Promise(() => {}));
    const { tool, agent } = await bench.pair();
    await throwsWhileLeaving(tool, '/stopped');
    await stopsSoonAfter(tool);
    await call(agent, 'a', 'go');
    expect(await outcome(agent, 'a')).toEqual(reported);
    const late = await tool.evaluate(() => lab.settled(lab.last.invocation.requestToken()));
    expect(late).toEqual(failed('not-running', 'InvalidStateError', true));
  });
});

describe('windows and frames', () => {
  test('a frame that the tool creates (try-on)', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const frame = document.createElement('iframe');
        frame.src = webmcpRelay.withToken('/two', await invocation.requestToken());
        document.body.append(frame);
        return 'trying on';
      }),
    );
    await call(agent, 'a', 'go', { size: 'M' });
    await tool.waitFor(() => window[0] !== undefined && 'lab' in (window[0] as Window));
    await tool.evaluate(() => {
      const { lab } = window[0] as unknown as { lab: LabInPage };
      return lab.resume((input) => `fits ${input.size}`);
    });
    expect(await outcome(agent, 'a')).toEqual({ value: 'fits M' });
    expect(await outputs(agent, 'a')).toEqual(['trying on']);
  });

  test('the same with the agent in the page', async () => {
    const tool = await bench.open();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const frame = document.createElement('iframe');
        frame.src = webmcpRelay.withToken('/two', await invocation.requestToken());
        document.body.append(frame);
        return 'trying on';
      }),
    );
    await call(tool, 'a', 'go', { size: 'L' });
    await tool.waitFor(() => window[0] !== undefined && 'lab' in (window[0] as Window));
    await tool.evaluate(() => {
      const { lab } = window[0] as unknown as { lab: LabInPage };
      return lab.resume((input) => `fits ${input.size}`);
    });
    expect(await outcome(tool, 'a')).toEqual({ value: 'fits L' });
    expect(await outputs(tool, 'a')).toEqual(['trying on']);
  });

  const inFrame = async (page: Page) => {
    await page.evaluate(() => {
      document.body.append(Object.assign(document.createElement('iframe'), { src: '/one' }));
    });
    await page.waitFor(
      () =>
        window[0] !== undefined &&
        'lab' in (window[0] as Window) &&
        (window[0] as Window).location.pathname === '/one',
    );
  };

  test('a frame with a running tool is removed: the agent in the page learns it', async () => {
    const tool = await bench.open();
    await inFrame(tool);
    await tool.evaluate(() => {
      const { lab } = window[0] as unknown as { lab: LabInPage };
      return lab.register('go', () => new Promise(() => {}));
    });
    await call(tool, 'a', 'go');
    await tool.evaluate(async () => {
      const frame = document.querySelector('iframe') as HTMLIFrameElement;
      await (window[0] as unknown as { lab: LabInPage }).lab.logged('began go');
      frame.remove();
    });
    expect(await outcome(tool, 'a')).toEqual(failed('navigated', 'UnknownError', true));
  });

  test('a frame with a running tool is removed: the agent in another tab learns it', async () => {
    const { tool, agent } = await bench.pair();
    await inFrame(tool);
    await tool.evaluate(() => {
      const { lab } = window[0] as unknown as { lab: LabInPage };
      return lab.register('go', () => new Promise(() => {}));
    });
    await call(agent, 'a', 'go');
    await tool.evaluate(async () => {
      const frame = document.querySelector('iframe') as HTMLIFrameElement;
      await (window[0] as unknown as { lab: LabInPage }).lab.logged('began go');
      frame.remove();
    });
    expect(await outcome(agent, 'a')).toEqual(failed('navigated', 'UnknownError', true));
    expect(await agent.evaluate(() => lab.names())).toEqual([]);
  });

  test('rule 11: a frame that was granted a token is removed: the token lives on', async () => {
    const { tool, agent } = await bench.pair();
    await inFrame(tool);
    await tool.evaluate(() => {
      const { lab } = window[0] as unknown as { lab: LabInPage };
      return lab.register('go', async (_input, { invocation }) => {
        sessionStorage.setItem('webmcp-token', await invocation.requestToken());
        lab.log.push('token');
        lab.open('token');
        await new Promise(() => {});
      });
    });
    await call(agent, 'a', 'go');
    await tool.evaluate(async () => {
      const { lab } = window[0] as unknown as { lab: LabInPage };
      await lab.gate('token');
      document.querySelector('iframe')?.remove();
    });
    await answers(tool, 'the page goes on');
    expect(await outcome(agent, 'a')).toEqual(answer('the page goes on'));
    expect(await outputs(agent, 'a')).toEqual([]);
  });

  /** `go` asks for a token and opens a window with it. */
  const opens = (page: Page, path: string, features: string) =>
    page.evaluate(
      (path, features) =>
        lab.register('go', async (_input, { invocation }) => {
          window.open(webmcpRelay.withToken(path, await invocation.requestToken()), '', features);
          return 'opened';
        }),
      path,
      features,
    );

  test('a popup with an opener goes on', async () => {
    const { tool, agent } = await bench.pair();
    await opens(tool, '/two', '');
    const popup = await tool.waitForPopup(() => call(agent, 'a', 'go'));
    await ready(popup);
    await answers(popup, 'from the popup');
    expect(await outcome(agent, 'a')).toEqual(answer('from the popup'));
    expect(await outputs(agent, 'a')).toEqual(['opened']);
  });

  test('C51 (a): a window without an opener is another group', async () => {
    const { tool, agent } = await bench.pair();
    await opens(tool, '/two', 'noopener');
    const popup = await tool.waitForPopup(() => call(agent, 'a', 'go'));
    await ready(popup);
    const token = await popup.evaluate(() => webmcpRelay.takeToken());
    const refused = await popup.evaluate((token) => lab.settled(lab.resume(() => 1, token)), token);
    expect(refused).toEqual(failed('other-group', 'NotAllowedError', false));
    // Refused, not lost: the right group may still redeem it.
    await tool.evaluate((token) => lab.resume(() => 'mine', token), token);
    expect(await outcome(agent, 'a')).toEqual({ value: 'mine' });
  });

  test('a window that a click on target=_blank opens is another group', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        const href = webmcpRelay.withToken('/two', await invocation.requestToken());
        Object.assign(document.createElement('a'), { href, target: '_blank' }).click();
      }),
    );
    const popup = await tool.waitForPopup(() => call(agent, 'a', 'go'));
    await ready(popup);
    const refused = await popup.evaluate(() => lab.settled(lab.resume(() => 1)));
    expect(refused).toEqual(failed('other-group', 'NotAllowedError', false));
  });
});

describe('COOP: same-origin (C51)', () => {
  const headers = { 'cross-origin-opener-policy': 'same-origin' };
  const putUp = () => {
    for (const path of ['/coop', '/coop2'])
      bench.site.page(path, { headers, body: `${LAB}<title>${path}</title>` });
  };

  /** The agent's window is cut off from the page's, and is of its group all the same. */
  async function pair() {
    putUp();
    const tool = await bench.open();
    const agent = await bench.join(tool);
    await tool.goto(`${bench.site.origin}/coop`);
    await ready(tool);
    return { tool, agent };
  }

  test('(a) noopener is refused at once', async () => {
    const { tool, agent } = await pair();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        window.open(webmcpRelay.withToken('/coop2', await invocation.requestToken()), '', 'noopener');
      }),
    );
    const popup = await tool.waitForPopup(() => call(agent, 'a', 'go'));
    await ready(popup);
    const refused = await popup.evaluate(() => lab.settled(lab.resume(() => 1)));
    expect(refused).toEqual(failed('other-group', 'NotAllowedError', false));
  });

  test('(b) in its own tab', async () => {
    const { tool, agent } = await pair();
    await goesTo(tool, '/coop2');
    await call(agent, 'a', 'go');
    await arrived(tool, '/coop2');
    await answers(tool, 'same tab');
    expect(await outcome(agent, 'a')).toEqual(answer('same tab'));
  });

  test('(c) by way of a sign-in page of another origin', async () => {
    bench.site.page('/signin', '<title>sign in</title>');
    const { tool, agent } = await pair();
    await tool.evaluate(
      (signin) =>
        lab.register('go', async (_input, { invocation }) => {
          sessionStorage.setItem('webmcp-token', await invocation.requestToken());
          location.href = signin;
        }),
      `${bench.site.other}/signin`,
    );
    await call(agent, 'a', 'go');
    await tool.waitFor(() => document.title === 'sign in');
    await tool.evaluate((back) => void location.assign(back), `${bench.site.origin}/coop2`);
    await arrived(tool, '/coop2');
    await answers(tool, 'signed in');
    expect(await outcome(agent, 'a')).toEqual(answer('signed in'));
  });

  test('without a token there is nothing to resume', async () => {
    putUp();
    const page = await bench.open('/coop');
    const token = 'A'.repeat(43);
    const refused = await page.evaluate((token) => lab.settled(lab.resume(() => 1, token)), token);
    expect(refused).toEqual(failed('token-unknown', 'NotFoundError', false));
  });

  test('a popup that the policy cuts off keeps the group, and is a tab of its own', async () => {
    putUp();
    const tool = await bench.open();
    await tool.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        window.open(webmcpRelay.withToken('/coop', await invocation.requestToken()));
      }),
    );
    const popup = await tool.waitForPopup(() => call(tool, 'a', 'go'));
    await ready(popup);
    expect(await popup.evaluate(() => window.opener)).toBe(null);
    await answers(popup, 'cut off');
    expect(await outcome(tool, 'a')).toEqual(answer('cut off'));
    const tab = (page: Page) =>
      page.evaluate(() => JSON.parse(sessionStorage.getItem('webmcp-relay') as string));
    const [first, second] = [await tab(tool), await tab(popup)];
    expect(first.tabId).toMatch(/^[\w-]{22}$/);
    expect(second.groupId).toBe(first.groupId);
    expect(second.tabId).not.toBe(first.tabId);
  });
});
