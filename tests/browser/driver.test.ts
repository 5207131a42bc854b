// The driver's own test: what the other browser tests build on holds in each engine.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, engines, launch, type Page } from './driver/index.ts';
import { createGate, pieces, redirect, type Site, startSite } from './site.ts';

const worker = `
  const start = Math.random();
  addEventListener('install', () => skipWaiting());
  addEventListener('message', ({ data, ports }) => ports[0].postMessage({ start, data }));
`;

const register = async () => {
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
};

/** The number that this start of the worker chose, which another start would not choose. */
const askWorker = async () => {
  const { active } = await navigator.serviceWorker.ready;
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise<{ start: number; data: string }>((resolve) => {
    port1.onmessage = ({ data }) => resolve(data);
  });
  active?.postMessage('hello', [port2]);
  return answer;
};

let site: Site;

beforeAll(async () => {
  site = await startSite();
  site.page('/a', '<title>A</title>');
  site.page('/b', '<title>B</title>');
  site.route('/worker.js', worker);
});

afterAll(() => site.close());

describe.each(engines)('%s', (engine) => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await launch(engine, engine === 'firefox' ? { workerIdleMs: 500 } : {});
    page = await browser.newPage();
  });

  afterAll(() => browser?.close());

  const goto = (path: string) => page.goto(site.origin + path);
  const title = () => page.evaluate(() => document.title);

  test('evaluates, awaits and passes JSON', async () => {
    await goto('/a');
    expect(await page.evaluate((a, b) => Promise.resolve({ sum: a + b }), 1, 2)).toEqual({ sum: 3 });
    expect(await page.evaluate('document.title')).toBe('A');
    expect(await page.evaluate(() => undefined)).toBeUndefined();
  });

  test('gives back the error of the page', async () => {
    await goto('/a');
    const failing = page.evaluate(() => {
      throw Object.assign(new DOMException('no', 'NotFoundError'), { reason: 'token-unknown' });
    });
    await expect(failing).rejects.toMatchObject({
      name: 'NotFoundError',
      message: 'no',
      reason: 'token-unknown',
    });
  });

  test('rejects an evaluation whose document is left', async () => {
    await goto('/a');
    const lost = page.evaluate(() => new Promise(() => {}));
    lost.catch(() => {});
    await goto('/b');
    await expect(lost).rejects.toThrow();
    expect(await title()).toBe('B');
  });

  test('reloads, goes back and forward', async () => {
    await goto('/a');
    await goto('/b');
    const loads = () => site.requests.filter(({ path }) => path === '/b').length;
    const before = loads();
    await page.reload();
    expect(loads()).toBe(before + 1);
    await page.back();
    expect(await page.url()).toBe(`${site.origin}/a`);
    expect(await title()).toBe('A');
    await page.forward();
    expect(await title()).toBe('B');
  });

  test('steps within a document', async () => {
    await goto('/a');
    await page.evaluate(() => history.pushState(null, '', '#x'));
    await page.back();
    expect(await page.url()).toBe(`${site.origin}/a`);
  });

  if (engine === 'chromium') {
    test('reloads past the worker', async () => {
      await goto('/a');
      await page.evaluate(register);
      await page.reload();
      const controlled = () => page.evaluate(() => navigator.serviceWorker.controller !== null);
      expect(await controlled()).toBe(true);
      await page.reload({ ignoreCache: true });
      expect(await controlled()).toBe(false);
    });
  }

  if (engine !== 'webkit') {
    test('tells a failed load and goes on', async () => {
      await expect(page.goto('http://localhost:1/')).rejects.toThrow();
      await goto('/a');
      expect(await title()).toBe('A');
    });
  }

  test('waits for what the page does, over navigations', async () => {
    await goto('/a');
    await page.waitForNavigation(() => page.evaluate(() => location.assign('/b')));
    expect(await title()).toBe('B');
    await page.evaluate(() => void setTimeout(() => location.assign('/a'), 100));
    await page.waitFor(() => document.title === 'A');
  });

  test('works in two tabs at once', async () => {
    await goto('/a');
    const second = await browser.newPage();
    await second.goto(`${site.origin}/b`);
    const heard = page.evaluate(
      () =>
        new Promise((resolve) => {
          new BroadcastChannel('x').onmessage = ({ data }) => resolve(data);
        }),
    );
    await second.evaluate(() => {
      const channel = new BroadcastChannel('x');
      (window as never as { timer: unknown }).timer = setInterval(() => channel.postMessage('from b'), 20);
    });
    expect(await heard).toBe('from b');
    expect(await browser.pages()).toEqual([page, second]);
    await second.close();
    expect(await browser.pages()).toEqual([page]);
  });

  test('finds a popup', async () => {
    await goto('/a');
    await page.evaluate(() => sessionStorage.setItem('copied', 'yes'));
    const popup = await page.waitForPopup(() => page.evaluate(() => void window.open('/b')));
    expect(await popup.evaluate(() => document.title)).toBe('B');
    expect(await popup.evaluate(() => window.opener !== null)).toBe(true);
    expect(await popup.evaluate(() => sessionStorage.getItem('copied'))).toBe('yes');
    await popup.close();
    const stranger = await page.waitForPopup(() =>
      page.evaluate(() => void window.open('/b', '', 'noopener')),
    );
    expect(await stranger.evaluate(() => window.opener)).toBe(null);
    await stranger.close();
  });

  test('talks to a service worker', async () => {
    await goto('/a');
    await page.evaluate(register);
    expect(await page.evaluate(askWorker)).toMatchObject({ data: 'hello' });
  });

  test('goes through forms, redirects, slow and held answers', async () => {
    const gate = createGate();
    site.page('/slow', () => ({
      body: pieces('<title>Half</title>', gate.opened, '<p id=end>'),
      delayMs: 10,
    }));
    site.page('/post', ({ form }) => redirect(`/slow?${form}`));
    await goto('/a');
    const navigation = page.waitForNavigation(() =>
      page.evaluate(() => {
        document.body.innerHTML = '<form method=post action=/post><input name=x value=1></form>';
        document.forms[0]?.submit();
      }),
    );
    await page.waitFor(() => document.title === 'Half' && document.readyState === 'loading');
    gate.open();
    await navigation;
    expect(await page.url()).toBe(`${site.origin}/slow?x=1`);
  });

  test('restores a page from the back/forward cache', async () => {
    await goto('/a');
    await page.evaluate(() => {
      window.addEventListener('pageshow', ({ persisted }) => {
        document.title = `persisted: ${persisted}`;
      });
    });
    await page.waitForNavigation(() => page.evaluate(() => location.assign('/b')));
    await page.back();
    await page.waitFor(() => document.title === 'persisted: true');
  });

  if (engine === 'chromium') {
    test('kills workers, and only then', async () => {
      await goto('/a');
      await page.evaluate(register);
      const first = await page.evaluate(askWorker);
      expect(await page.evaluate(askWorker)).toEqual(first);
      await browser.stopWorkers();
      expect(await page.evaluate(askWorker)).not.toEqual(first);
    });
  }

  if (engine === 'firefox') {
    test('lets idle workers stop', async () => {
      await goto('/a');
      await page.evaluate(register);
      const first = await page.evaluate(askWorker);
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      expect(await page.evaluate(askWorker)).not.toEqual(first);
    });
  }

  if (engine !== 'webkit') {
    test('throttles hidden tabs', async () => {
      await goto('/a');
      const second = await browser.newPage();
      const count = () =>
        new Promise<number>((resolve) => {
          let ticks = 0;
          setInterval(() => ticks++, 10);
          setTimeout(() => resolve(ticks), 2_000);
        });
      expect(await page.evaluate(count)).toBeLessThan(20);
      await second.close();
    });
  }

  test('partitions the storage of frames by their top-level site', async () => {
    site.page('/frame', `<script>parent.postMessage(localStorage.getItem('x'), '*')</script>`);
    await goto('/a');
    await page.evaluate(() => localStorage.setItem('x', 'of the top level'));
    await page.goto(`${site.other}/a`);
    const seenInFrame = await page.evaluate(
      (source) =>
        new Promise((resolve) => {
          window.addEventListener('message', ({ data }) => resolve(data));
          document.body.append(Object.assign(document.createElement('iframe'), { src: source }));
        }),
      `${site.origin}/frame`,
    );
    expect(seenInFrame).toBe(null);
  });
});
