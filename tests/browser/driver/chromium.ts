// Chromium over the DevTools protocol, started with the arguments below and none of puppeteer's own: those turn off the
// back/forward cache, timer throttling and other things that a relay has to live with. Nothing attaches to a service
// worker, because an attached debugger keeps it alive.
import puppeteer, { type CDPSession, type Page as PuppeteerPage } from 'puppeteer-core';
import { pathOf } from '../../browsers.mjs';
import type { Browser, LaunchOptions } from './index.ts';
import { DocumentLeft } from './script.ts';
import { createBrowser, type Tab } from './tab.ts';
import { defaultTimeoutMs, pause } from './time.ts';

const baseArgs = [
  '--headless=new',
  '--disable-background-networking',
  '--disable-breakpad',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-dev-shm-usage',
  '--disable-extensions',
  '--disable-popup-blocking',
  '--disable-quic',
  '--disable-sync',
  '--mute-audio',
  '--no-default-browser-check',
  '--no-first-run',
  '--password-store=basic',
  'about:blank',
];

export async function launchChromium({
  args = [],
  timeoutMs = defaultTimeoutMs,
}: LaunchOptions): Promise<Browser> {
  const asRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await puppeteer.launch({
    executablePath: pathOf('chromium'),
    ignoreDefaultArgs: true,
    args: [...asRoot, ...args, ...baseArgs],
    pipe: true,
    defaultViewport: null,
    targetFilter: (target) => target.type() !== 'service_worker',
    timeout: timeoutMs,
  });

  const known = new WeakMap<PuppeteerPage, Promise<Tab>>();
  function tabOf(page: PuppeteerPage): Promise<Tab> {
    const tab = known.get(page) ?? createTab(page, timeoutMs);
    known.set(page, tab);
    return tab;
  }

  const [initial] = await browser.pages();
  let unused = initial;
  return createBrowser(
    {
      engine: 'chromium',
      raw: browser,
      open: async () => {
        const page = unused ?? (await browser.newPage());
        unused = undefined;
        return tabOf(page);
      },
      tabs: async () => Promise.all((await browser.pages()).filter((page) => page !== unused).map(tabOf)),
      stopWorkers: async () => {
        const [page] = await browser.pages();
        if (page) await stopWorkers(await page.createCDPSession());
      },
      close: () => browser.close(),
    },
    timeoutMs,
  );
}

const isOfLeaving = (error: unknown) => /context|navigat|closed|detached|crashed/i.test(String(error));

async function createTab(page: PuppeteerPage, timeoutMs: number): Promise<Tab> {
  page.setDefaultTimeout(timeoutMs);
  page.on('dialog', (dialog) => dialog.accept());
  const session = await page.createCDPSession();
  await session.send('Page.enable');

  // The protocol leaves an evaluation unanswered when its document goes into the back/forward cache.
  const pending = new Set<() => void>();
  const left = async () => {
    const rejects = [...pending];
    await pause(100); // The protocol's own answer, if there is one, is already under way.
    for (const reject of rejects) reject();
  };
  session.on('Page.frameNavigated', ({ frame }) => {
    if (!frame.parentId) left();
  });
  session.on('Inspector.targetCrashed', left);
  page.on('close', left);

  return {
    raw: page,
    goto: async (url) => {
      await page.goto(url, { waitUntil: 'load' });
    },
    run: (expression) =>
      new Promise((resolve, reject) => {
        const gone = () => {
          pending.delete(gone);
          reject(new DocumentLeft());
        };
        pending.add(gone);
        page
          .evaluate(expression)
          .then(
            (text) => resolve(text as string),
            (error) => reject(isOfLeaving(error) ? new DocumentLeft(error) : error),
          )
          .finally(() => pending.delete(gone));
      }),
    reload: async (ignoreCache) => {
      await session.send('Page.reload', { ignoreCache });
    },
    close: () => page.close(),
  };
}

async function stopWorkers(session: CDPSession): Promise<void> {
  const running = new Set<string>();
  let stopped = () => {};
  session.on('ServiceWorker.workerVersionUpdated', ({ versions }) => {
    for (const { versionId, runningStatus } of versions) {
      if (runningStatus === 'stopped') running.delete(versionId);
      else running.add(versionId);
    }
    if (running.size === 0) stopped();
  });
  await session.send('ServiceWorker.enable');
  const all = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  await session.send('ServiceWorker.stopAllWorkers');
  if (running.size > 0) await all;
  await session.detach();
}
