// The part of a page and a browser that all engines share, over the few primitives that each engine has of its own.
import type { Browser, Engine, InPage, Page } from './index.ts';
import { DocumentLeft, describe, fromText, toExpression } from './script.ts';
import { poll, within } from './time.ts';

/** A top-level window, as an engine gives it. */
export interface Tab {
  readonly raw: unknown;
  /** Starts a load; may wait for its end. */
  goto(url: string): Promise<void>;
  /** Evaluates an expression and awaits its text. Rejects when its document goes away. */
  run(expression: string): Promise<string>;
  /** Starts a reload; may wait for its end. */
  reload(ignoreCache: boolean): Promise<void>;
  close(): Promise<void>;
}

export interface Windows {
  readonly engine: Engine;
  readonly raw: unknown;
  open(): Promise<Tab>;
  /** The open windows: always the same record for the same window. */
  tabs(): Promise<Tab[]>;
  stopWorkers(): Promise<void>;
  close(): Promise<void>;
}

// Each document is marked, so that another one in its place (or one from the back/forward cache) is known as such.
const markedBy = (mark: string) => {
  Object.defineProperty(window, Symbol.for('driver.mark'), { value: mark, configurable: true });
  return true;
};
const isOther = (mark: string, href: string | null, isBlank: boolean) =>
  document.readyState === 'complete' &&
  ((window as never)[Symbol.for('driver.mark')] !== mark || (href !== null && location.href !== href)) &&
  // Firefox shows a blank document for a moment when a page changes its process.
  (location.href !== 'about:blank' || isBlank);

let marks = 0;

export function createBrowser(windows: Windows, timeoutMs: number): Browser {
  const pages = new Map<Tab, Page>();

  function pageOf(tab: Tab): Page {
    const page = pages.get(tab) ?? createPage(tab);
    pages.set(tab, page);
    return page;
  }

  function createPage(tab: Tab): Page {
    const evaluate: Page['evaluate'] = async (run, ...args) => {
      const late = `No settlement of ${describe(run as InPage<never[], unknown>)}`;
      return fromText(await within(timeoutMs, late, tab.run(toExpression(run, args)))) as never;
    };

    const waitFor: Page['waitFor'] = (run, ...args) => {
      let lastError: unknown;
      const late = () =>
        `Never true: ${describe(run as InPage<never[], unknown>)}${lastError ? `; ${lastError}` : ''}`;
      return poll(timeoutMs, late, () =>
        evaluate(run, ...args).catch((error) => {
          lastError = error;
          return undefined as never;
        }),
      );
    };

    // A step in the history may stay in the document: then the address tells that it was taken.
    async function anotherDocument(
      trigger: () => unknown,
      orAddress: boolean,
      isBlank = false,
    ): Promise<void> {
      const mark = `${++marks}`;
      await waitFor(markedBy, mark);
      const href = orAddress ? await page.url() : null;
      // The trigger may settle late or never (Puppeteer misses loads in Firefox): only its failure counts.
      const failed = new Promise<never>((_, reject) => {
        Promise.resolve(trigger()).catch((error) => {
          if (!(error instanceof DocumentLeft)) reject(error);
        });
      });
      await Promise.race([failed, waitFor(isOther, mark, href, isBlank)]);
    }

    // By script: no engine's own command tells of a page from the back/forward cache and of a step within a document, and
    // WebKit's skips what was added without a user's gesture.
    const step = (delta: number) =>
      anotherDocument(() => evaluate((delta) => history.go(delta), delta), true);

    const page: Page = {
      raw: tab.raw,
      evaluate,
      waitFor,
      goto: (url) => anotherDocument(() => tab.goto(url), true, url === 'about:blank'),
      url: () => evaluate(() => location.href),
      waitForNavigation: (trigger) => anotherDocument(trigger, false),
      reload: ({ ignoreCache = false } = {}) => anotherDocument(() => tab.reload(ignoreCache), false),
      back: () => step(-1),
      forward: () => step(1),
      close: async () => {
        await within(timeoutMs, 'The page did not close', tab.close());
        pages.delete(tab);
      },
      waitForPopup: async (trigger) => {
        const before = new Set(await windows.tabs());
        await trigger();
        const opened = await poll(
          timeoutMs,
          () => 'No window was opened',
          async () => (await windows.tabs()).find((candidate) => !before.has(candidate)),
        );
        const popup = pageOf(opened);
        await popup.waitFor(() => location.href !== 'about:blank' && document.readyState === 'complete');
        return popup;
      },
    };
    return page;
  }

  return {
    engine: windows.engine,
    raw: windows.raw,
    newPage: async () => pageOf(await within(timeoutMs, 'No new page', windows.open())),
    pages: async () => (await windows.tabs()).map(pageOf),
    stopWorkers: () => within(timeoutMs, 'The workers did not stop', windows.stopWorkers()),
    close: windows.close,
  };
}
