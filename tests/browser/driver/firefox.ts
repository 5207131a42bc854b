// Firefox over WebDriver BiDi. It is started here and not by puppeteer, whose preferences turn off the partitioning of
// storage and put all sites into one process.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import puppeteer, { type Page as PuppeteerPage } from 'puppeteer-core';
import { pathOf } from '../../browsers.mjs';
import { createFolder, start } from './child.ts';
import type { Browser, LaunchOptions } from './index.ts';
import { runByAsking } from './script.ts';
import { createBrowser, type Tab } from './tab.ts';
import { defaultTimeoutMs, within } from './time.ts';

const basePrefs = {
  'app.normandy.enabled': false,
  'app.update.disabledForTesting': true,
  'browser.aboutwelcome.enabled': false,
  'browser.safebrowsing.downloads.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'browser.startup.page': 0,
  'browser.tabs.warnOnClose': false,
  'browser.warnOnQuit': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'dom.disable_open_during_load': false,
  'extensions.update.enabled': false,
  'media.gmp-manager.updateEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,',
  'toolkit.telemetry.enabled': false,
};

function userJs(prefs: object): string {
  return Object.entries(prefs)
    .map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`)
    .join('');
}

export async function launchFirefox(options: LaunchOptions): Promise<Browser> {
  const { args = [], prefs = {}, workerIdleMs, timeoutMs = defaultTimeoutMs } = options;
  const idle = workerIdleMs && {
    'dom.serviceWorkers.idle_timeout': workerIdleMs,
    'dom.serviceWorkers.idle_extended_timeout': workerIdleMs,
  };
  const profile = createFolder('firefox');
  writeFileSync(join(profile.path, 'user.js'), userJs({ ...basePrefs, ...idle, ...prefs }));
  const child = start(pathOf('firefox'), [
    '--headless',
    '--remote-debugging-port=0',
    '--profile',
    profile.path,
    ...args,
    'about:blank',
  ]);
  const end = async () => {
    await child.kill();
    profile.remove();
  };

  try {
    const [, endpoint] = await within(
      timeoutMs,
      'Firefox does not listen',
      child.printed(/WebDriver BiDi listening on (ws:\S+)/),
    );
    return await connect(`${endpoint}/session`, timeoutMs, end);
  } catch (error) {
    await end();
    throw error;
  }
}

async function connect(endpoint: string, timeoutMs: number, end: () => Promise<void>): Promise<Browser> {
  const browser = await puppeteer.connect({
    browserWSEndpoint: endpoint,
    protocol: 'webDriverBiDi',
    defaultViewport: null,
  });
  const known = new WeakMap<PuppeteerPage, Tab>();
  function tabOf(page: PuppeteerPage): Tab {
    const tab = known.get(page) ?? createTab(page, timeoutMs);
    known.set(page, tab);
    return tab;
  }

  let [unused] = await browser.pages();
  return createBrowser(
    {
      engine: 'firefox',
      raw: browser,
      open: async () => {
        const page = unused ?? (await browser.newPage());
        unused = undefined;
        return tabOf(page);
      },
      tabs: async () => (await browser.pages()).filter((page) => page !== unused).map(tabOf),
      stopWorkers: async () => {
        throw new Error('Firefox has no command that stops workers: launch it with workerIdleMs');
      },
      close: async () => {
        await browser.disconnect();
        await end();
      },
    },
    timeoutMs,
  );
}

function createTab(page: PuppeteerPage, timeoutMs: number): Tab {
  page.setDefaultTimeout(timeoutMs);
  page.on('dialog', (dialog) => dialog.accept());
  return {
    raw: page,
    goto: async (url) => {
      await page.goto(url, { waitUntil: 'load' });
    },
    run: (expression) => runByAsking((now) => within(1_000, 'No answer', page.evaluate(now)), expression),
    reload: async (ignoreCache) => {
      if (ignoreCache) throw new Error('Firefox has no command that reloads without the cache');
      await page.reload();
    },
    close: () => page.close(),
  };
}
