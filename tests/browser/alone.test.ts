// Where no worker can serve the page: its tab's tools work all the same, and what needs the worker says why not
// (semantics, Without a worker; C09, C36, C49). Each test has an origin of its own, with no worker yet.
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { call, failed, LAB, outcome, useLab } from './lab.ts';
import { served } from './pages.ts';

const bench = useLab({ args: ['--host-resolver-rules=MAP insecure.test 127.0.0.1'] });

let origins = 0;
/** An origin that no test has used. */
const freshOrigin = () => bench.site.origin.replace('localhost', `o${++origins}.localhost`);

/** Opens a page of that content in a fresh tab of a fresh origin. */
async function visit(html: string, origin = freshOrigin()): Promise<Page> {
  const path = `/alone${++origins}`;
  bench.site.page(path, html);
  const page = await bench.blank();
  await page.goto(origin + path);
  await page.waitFor(() => 'lab' in window);
  return page;
}

/** What works, and what rejects with the reason that there is no worker. */
async function expectAlone(page: Page, reason: string, name: string): Promise<void> {
  expect(await served(page)).toBe(`alone${reason}`);
  const refused = failed(reason, name, false);
  await page.evaluate(async () => {
    await lab.register('plain', (input) => `plain ${input.n}`);
    await lab.register('asks', async (_input, { invocation }) => {
      const settled = await lab.settled(invocation.requestToken());
      return { settled };
    });
  });
  const report = await page.evaluate(async () => {
    const { modelContext } = document;
    const tools = await modelContext.getTools();
    const [asks, plain] = tools as [(typeof tools)[0], (typeof tools)[0]];
    return {
      names: tools.map((tool) => tool.name),
      plain: await modelContext.executeTool(plain, { n: 1 }),
      asks: JSON.parse((await modelContext.executeTool(asks)) as string),
      group: await lab.settled(modelContext.getTools({ scope: 'group' })),
      resume: await lab.settled(modelContext.resumeTool('A'.repeat(43), () => 1)),
      pending: await lab.settled(modelContext.getPendingExecutions()),
      ready: await modelContext.relay.ready.then(() => 'ready'),
    };
  });
  expect(report).toEqual({
    names: ['asks', 'plain'],
    plain: 'plain 1',
    asks: { settled: { error: { ...refused.error, started: expect.any(Boolean) } } },
    group: refused,
    resume: refused,
    pending: refused,
    ready: 'ready',
  });
}

describe('no service worker', () => {
  test('a browser without', async () => {
    const page = await visit(`<script>delete Navigator.prototype.serviceWorker;</script>${LAB}`);
    await expectAlone(page, 'no-service-worker', 'NotSupportedError');
  });

  test('frames of the tab reach each other all the same', async () => {
    const without = '<script>delete Navigator.prototype.serviceWorker;</script>';
    bench.site.page(
      '/frame',
      `${without}${LAB}<script>lab.register('framed', () => location.pathname);</script>`,
    );
    const page = await visit(`${without}${LAB}<iframe src="/frame"></iframe>`);
    await page.waitFor(() => window[0] && 'lab' in (window[0] as object));
    const result = await page.evaluate(async () => {
      const [tool] = await document.modelContext.getTools();
      return document.modelContext.executeTool(tool as never);
    });
    expect(result).toBe('/frame');
  });

  test('a call whose tool is refused a token, and whose frame then goes, is told so', async () => {
    const without = '<script>delete Navigator.prototype.serviceWorker;</script>';
    bench.site.page(
      '/asking',
      `${without}${LAB}<script>
        lab.register('asks', async (_input, { invocation }) => {
          await invocation.requestToken().catch(({ reason }) => parent.postMessage(reason));
          await new Promise(() => {});
        });
      </script>`,
    );
    const page = await visit(`${without}${LAB}<iframe src="/asking"></iframe>`);
    await page.waitFor(() => window[0] && 'lab' in (window[0] as object));
    const told = await page.evaluate(async () => {
      const refused = new Promise((resolve) => addEventListener('message', ({ data }) => resolve(data)));
      const [tool] = await document.modelContext.getTools();
      const settled = lab.settled(document.modelContext.executeTool(tool as never));
      const reason = await refused;
      document.querySelector('iframe')?.remove();
      return [reason, await settled];
    });
    expect(told).toMatchObject(['no-service-worker', { error: { reason: 'navigated', started: true } }]);
  });

  test('an origin that is not secure', async () => {
    const page = await visit(LAB, bench.site.origin.replace('localhost', 'insecure.test'));
    expect(await page.evaluate(() => isSecureContext)).toBe(false);
    await expectAlone(page, 'no-service-worker', 'NotSupportedError');
  });

  test('a registration that the browser refuses', async () => {
    const page = await visit(
      `<script>
        ServiceWorkerContainer.prototype.register = async () => {
          throw new DOMException('Denied', 'SecurityError');
        };
      </script>${LAB}`,
    );
    await expectAlone(page, 'no-service-worker', 'NotSupportedError');
  });

  test('a worker script that is not there (404)', async () => {
    const page = await visit(
      LAB.replace(
        '<script src="/webmcp-relay.js">',
        '<script src="/webmcp-relay.js" data-worker="/missing.js">',
      ),
    );
    await expectAlone(page, 'no-service-worker', 'NotSupportedError');
  });

  test('a worker script that throws', async () => {
    bench.site.route('/broken.js', 'throw new Error("broken")');
    const page = await visit(
      LAB.replace(
        '<script src="/webmcp-relay.js">',
        '<script src="/webmcp-relay.js" data-worker="/broken.js">',
      ),
    );
    await expectAlone(page, 'no-service-worker', 'NotSupportedError');
  });

  test('C36 (b): a page out of the worker’s scope', async () => {
    const page = await visit(
      LAB.replace(
        '<script src="/webmcp-relay.js">',
        '<script src="/webmcp-relay.js" data-scope="/elsewhere/">',
      ),
    );
    await expectAlone(page, 'no-service-worker', 'NotSupportedError');
    const message = await page.evaluate(() =>
      document.modelContext.getTools({ scope: 'group' }).catch((error) => error.message as string),
    );
    expect(message).toContain('scope');
  });

  test('C46: a sandboxed frame without an origin', async () => {
    bench.site.page(
      '/sandboxed',
      `${LAB}<script>
      document.modelContext.relay.ready.then(async () => {
        await lab.register('inside', () => 'inside');
        const [tool] = await document.modelContext.getTools();
        parent.postMessage({
          state: document.modelContext.relay.state,
          reason: document.modelContext.relay.reason,
          names: [tool && tool.name],
        }, '*');
      });
    </script>`,
    );
    const page = await bench.open();
    const report = await page.evaluate(
      () =>
        new Promise((resolve) => {
          addEventListener('message', ({ data }) => resolve(data));
          const frame = document.createElement('iframe');
          frame.setAttribute('sandbox', 'allow-scripts');
          frame.src = '/sandboxed';
          document.body.append(frame);
        }),
    );
    expect(report).toEqual({
      state: 'alone',
      reason: expect.stringMatching(/^(no-service-worker|opaque-origin)$/),
      names: ['inside'],
    });
  });

  test('sessionStorage that is refused: the worker serves the page as a group of its own', async () => {
    const page = await visit(
      `<script>
        Object.defineProperty(window, 'sessionStorage', {
          get() { throw new DOMException('Denied', 'SecurityError'); },
        });
      </script>${LAB}`,
    );
    expect(await served(page)).toBe('shared');
    await page.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        await lab.resume(() => 'resumed', await invocation.requestToken());
      }),
    );
    await call(page, 'a', 'go');
    expect(await outcome(page, 'a')).toEqual({ value: 'resumed' });
    expect(await page.evaluate(() => webmcpRelay.takeToken())).toBe(null);
  });
});

describe('a worker of somebody else’s', () => {
  const foreign = `addEventListener('install', () => skipWaiting()); addEventListener('message', () => {});`;
  const registerFirst = async (origin: string, script: string) => {
    bench.site.page('/before', '<title>before</title>');
    const page = await bench.blank();
    await page.goto(`${origin}/before`);
    await page.evaluate(async (script) => {
      await navigator.serviceWorker.register(script);
      await navigator.serviceWorker.ready;
    }, script);
    await page.close();
  };

  test('C09: it is not replaced: worker-conflict, which names both scripts; ten loads change nothing', async () => {
    bench.site.route('/foreign.js', foreign);
    const origin = freshOrigin();
    await registerFirst(origin, '/foreign.js');
    const page = await visit(LAB, origin);
    await expectAlone(page, 'worker-conflict', 'NotSupportedError');
    const message = await page.evaluate(() =>
      document.modelContext.getTools({ scope: 'group' }).catch((error) => error.message as string),
    );
    expect(message).toContain(`${origin}/foreign.js`);
    expect(message).toContain(`${origin}/webmcp-relay-sw.js`);
    for (let load = 0; load < 9; load += 1) await page.reload();
    expect(await served(page)).toBe('aloneworker-conflict');
    expect(
      await page.evaluate(async () => {
        const registrations = await navigator.serviceWorker.getRegistrations();
        return registrations.map(({ active, waiting, installing }) => [
          active?.scriptURL,
          waiting?.scriptURL,
          installing?.scriptURL,
        ]);
      }),
    ).toEqual([[`${origin}/foreign.js`, null, null].map((url) => url ?? null)]);
    const path = new URL(await page.url()).pathname;
    expect(bench.site.requests.filter((request) => request.path === path)).toHaveLength(10);
  });

  test('C09: one that includes the relay serves the page', async () => {
    bench.site.route('/host.js', `${foreign} importScripts('/webmcp-relay-sw.js');`);
    const origin = freshOrigin();
    await registerFirst(origin, '/host.js');
    const page = await visit(LAB, origin);
    expect(await served(page)).toBe('shared');
    const registered = await page.evaluate(
      async () => (await navigator.serviceWorker.getRegistration())?.active?.scriptURL,
    );
    expect(registered).toBe(`${origin}/host.js`);
  });

  test('register: false, and the site registers later', async () => {
    const page = await visit(
      `${LAB.replace('<script src="/webmcp-relay.js">', '<script src="/webmcp-relay.js" data-register="false">')}
      <script>addEventListener('load', () => navigator.serviceWorker.register('/webmcp-relay-sw.js'));</script>`,
    );
    expect(await served(page)).toBe('shared');
  });

  test('register: false, and nobody registers: worker-unavailable within the bound', async () => {
    const page = await visit(
      LAB.replace('<script src="/webmcp-relay.js">', '<script src="/webmcp-relay.js" data-register="false">'),
    );
    await expectAlone(page, 'worker-unavailable', 'TimeoutError');
  });
});

describe('C49: a worker whose install never settles', () => {
  test('the page works within the bound, twice; a later attempt succeeds when the queue is clear', async () => {
    const hung = `addEventListener('install', (event) => event.waitUntil(new Promise(() => {})));`;
    let script = hung;
    bench.site.route('/slow-sw.js', () => script);
    const html = LAB.replace(
      '<script src="/webmcp-relay.js">',
      '<script src="/webmcp-relay.js" data-worker="/slow-sw.js">',
    );
    const page = await visit(html);
    await expectAlone(page, 'worker-unavailable', 'TimeoutError');
    await page.reload();
    await page.waitFor(() => 'lab' in window);
    await expectAlone(page, 'worker-unavailable', 'TimeoutError');
    script = `importScripts('/webmcp-relay-sw.js');`;
    await bench.browser.stopWorkers();
    await page.waitFor(() => document.modelContext.relay.state === 'shared');
    expect(await page.evaluate(() => lab.names())).toEqual(['asks', 'plain']);
  });

  test('the bound is an option: calls that wait for the worker reject with it', async () => {
    bench.site.route(
      '/hung-sw.js',
      `addEventListener('install', (event) => event.waitUntil(new Promise(() => {})));`,
    );
    const page = await visit(
      `<script type="module">
        import { installModelContext, takeToken, withToken } from '/index.js';
        window.webmcpRelay = { takeToken, withToken };
        installModelContext({ worker: '/hung-sw.js', bounds: { connecting: 300 } });
        await import('/lab.js');
      </script>`,
    );
    const refused = await page.evaluate(() =>
      lab.settled(document.modelContext.getTools({ scope: 'group' })),
    );
    expect(refused).toEqual(failed('worker-unavailable', 'TimeoutError', false));
    expect(await served(page)).toBe('aloneworker-unavailable');
  });
});
