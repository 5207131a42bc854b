// Documents that were written as `srcdoc` and load no script of ours: the page's script tag is put there too.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, engines, launch, type Page } from './driver/index.ts';
import { RELAY, served } from './pages.ts';
import { type Site, startSite } from './site.ts';

let site: Site;

/** Registers `framed` once there is a relay. */
const FRAMED = `<script>
  (function look() {
    if (!document.modelContext) return setTimeout(look, 10);
    document.modelContext.registerTool({ name: 'framed', description: 'd', execute: ({ n }) => location.href + n });
  })();
</script>`;

beforeAll(async () => {
  site = await startSite();
  const more = `<script>window.more = () => import('/webmcp-relay-more.js')</script>`;
  site.page('/page', `${RELAY}${more}<title>page</title><body>`);
  const headers = { 'content-security-policy': "script-src 'nonce-abc' 'unsafe-eval'" };
  const tag =
    '<script nonce="abc" src="/webmcp-relay.js" data-scope="/shop/" data-register="false"></script>';
  site.page('/strict', { headers, body: `${tag}<title>strict</title><body>` });
  const bundle = '<script src="/app.js"></script>';
  site.route('/app.js', async () => (await fetch(`${site.origin}/webmcp-relay.js`)).text());
  site.page('/bundle', `${bundle}${more}<title>bundle</title><body>`);
});

afterAll(() => site.close());

describe.each(engines)('%s', (engine) => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await launch(engine);
    page = await browser.newPage();
  });

  afterAll(() => browser?.close());

  async function goto(path: string): Promise<void> {
    await page.goto(site.origin + path);
    await served(page);
  }

  /**
   * Adds a frame, and says of the document that it loads which scripts it has once what copies the tag is there, as far as the
   * page's policy lets the test know; `null` where it cannot be seen.
   */
  const addFrame = (attributes: Record<string, string>) =>
    page.evaluate(async (attributes) => {
      const frame = document.createElement('iframe');
      for (const [name, value] of Object.entries(attributes)) frame.setAttribute(name, value);
      const errors: string[] = [];
      addEventListener('error', ({ message }) => errors.push(message));
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      await (window as { more?: () => Promise<unknown> }).more?.();
      await new Promise((resolve) => setTimeout(resolve));
      const scripts = [...(frame.contentDocument?.scripts ?? [])].map(({ src, nonce, dataset }) => ({
        src,
        nonce,
        data: { ...dataset },
      }));
      return { scripts: frame.contentDocument && scripts.filter(({ src }) => src), errors };
    }, attributes);

  test('its tools are listed and called by the page that it is in', async () => {
    await goto('/page');
    const { scripts, errors } = await addFrame({ srcdoc: FRAMED });
    expect(scripts).toEqual([{ src: `${site.origin}/webmcp-relay.js`, nonce: '', data: {} }]);
    await page.waitFor(async () => (await document.modelContext.getTools()).length > 0);
    const result = await page.evaluate(async () => {
      const [tool] = await document.modelContext.getTools();
      const isInFrame = tool?.window === document.querySelector('iframe')?.contentWindow;
      return [isInFrame, await document.modelContext.executeTool(tool as never, { n: 1 })];
    });
    expect(result).toEqual([true, 'about:srcdoc1']);
    expect(errors).toEqual([]);
  });

  test('with the options of the page’s script tag, and its nonce: a policy that asks for one lets it run', async () => {
    await goto('/strict');
    await addFrame({ srcdoc: '<p>no script of its own' });
    await page.waitFor(() => {
      const { contentDocument } = document.querySelector('iframe') as HTMLIFrameElement;
      return contentDocument?.modelContext !== undefined;
    });
    const tag = await page.evaluate(() => {
      const [copy] = (document.querySelector('iframe') as HTMLIFrameElement).contentDocument?.scripts ?? [];
      return copy && { src: copy.src, nonce: copy.nonce, data: { ...copy.dataset } };
    });
    const data = { scope: '/shop/', register: 'false' };
    expect(tag).toEqual({ src: `${site.origin}/webmcp-relay.js`, nonce: 'abc', data });
  });

  test.each([
    ['a blank document', {}, []],
    ['a document of the site', { src: '/bare' }, []],
    ['a sandbox of another origin', { srcdoc: FRAMED, sandbox: 'allow-scripts' }, null],
    ['one with a modelContext', { srcdoc: '<script>document.modelContext = {}</script>' }, []],
    ['one without a head', { srcdoc: '<script>document.head.remove()</script>' }, []],
  ])('left alone: %s', async (_, attributes, scripts) => {
    site.page('/bare', '<title>bare</title>');
    await goto('/page');
    expect(await addFrame(attributes as never)).toEqual({ scripts, errors: [] });
  });

  test('left alone: every one, by a bundle with the relay in it, which would run there as a whole', async () => {
    await goto('/bundle');
    expect(await addFrame({ srcdoc: '<p>text' })).toEqual({ scripts: [], errors: [] });
  });
});
