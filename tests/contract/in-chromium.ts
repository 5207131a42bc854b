// Runs a suite of scenarios on the real thing: bundles its module and loads it in a page of Chromium.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { comlinkTrimmed } from '../../esbuild.config.mjs';
import { type Browser, launch, type Page } from '../browser/driver/index.ts';
import { type Site, startSite } from '../browser/site.ts';

export interface ChromiumPlace {
  browser: Browser;
  site: Site;
  /** Has the module's exports at `suite`. */
  page: Page;
  close(): Promise<void>;
}

export async function bundle(module: string, globalName?: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(module, import.meta.url))],
    bundle: true,
    // As it is published.
    plugins: [comlinkTrimmed],
    write: false,
    format: 'iife',
    ...(globalName !== undefined && { globalName }),
  });
  return (outputFiles[0] as { text: string }).text;
}

/** `scripts` are put up beside the page: a worker, say. */
export async function openInChromium(
  module: string,
  scripts: Record<string, string> = {},
): Promise<ChromiumPlace> {
  const site = await startSite();
  site.route('/suite.js', await bundle(module, 'suite'));
  for (const [path, script] of Object.entries(scripts)) site.route(path, script);
  site.page('/', '<script src="/suite.js"></script>');
  const browser = await launch('chromium');
  const page = await browser.newPage();
  await page.goto(`${site.origin}/`);
  return {
    browser,
    site,
    page,
    async close() {
      await browser.close();
      await site.close();
    },
  };
}
