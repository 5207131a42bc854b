// The browsers as the tests see them: one interface, three engines, so that one scenario runs in all of them.
// Promises: a launch has a new, empty profile; `close` leaves no process and no profile behind; no operation hangs: each
// resolves, rejects when the document it talks to goes away, or rejects after `timeoutMs`.
import { launchChromium } from './chromium.ts';
import { launchFirefox } from './firefox.ts';
import { launchWebKit } from './webkit.ts';

export const engines = ['chromium', 'firefox', 'webkit'] as const;
export type Engine = (typeof engines)[number];

/** What runs in the page: a function, which sees its arguments only, or an expression. Values cross as JSON. */
export type InPage<Args extends unknown[], Result> = string | ((...args: Args) => Result);

export interface LaunchOptions {
  /** Further command-line arguments (Chromium, Firefox). */
  args?: string[];
  /** Firefox preferences. */
  prefs?: Record<string, string | number | boolean>;
  /** Firefox: stop a worker that had no event for so long (the browser's own default is 30 s, and 30 s more). */
  workerIdleMs?: number;
  /** The bound of every operation; 20 s unless told. */
  timeoutMs?: number;
}

export interface Browser {
  readonly engine: Engine;
  /** A new top-level tab, in the foreground (in WebKit: a window of its own, and none is ever hidden). The first call takes the tab that the browser opened with. */
  newPage(): Promise<Page>;
  /** All tabs and popups that are open. */
  pages(): Promise<Page[]>;
  /** Kills every service worker as a crash would; resolves when they are stopped. Chromium only: elsewhere it rejects. */
  stopWorkers(): Promise<void>;
  close(): Promise<void>;
  /** Puppeteer's browser, or the WebDriver client. */
  readonly raw: unknown;
}

export interface Page {
  /** Resolves when the page has loaded; rejects when nothing could be loaded (WebKit shows a page of its own instead). */
  goto(url: string): Promise<void>;
  /** Awaits what the function gives. Rejects with the page's error (its name, message and own properties). */
  evaluate<Args extends unknown[], Result>(
    run: InPage<Args, Result>,
    ...args: Args
  ): Promise<Awaited<Result>>;
  /** Resolves with the first truthy result. Outlives navigations and errors, and asks from outside the page: the clock of a
   *  hidden tab is throttled. */
  waitFor<Args extends unknown[], Result>(run: InPage<Args, Result>, ...args: Args): Promise<Awaited<Result>>;
  /** Resolves once what `trigger` does has brought a new document, or one from the back/forward cache, and it is loaded. */
  waitForNavigation(trigger: () => unknown): Promise<void>;
  /** Resolves with the window that `trigger` opens, once it has loaded something else than about:blank. */
  waitForPopup(trigger: () => unknown): Promise<Page>;
  url(): Promise<string>;
  /** `ignoreCache` is the reload that bypasses service workers; only Chromium has it, elsewhere it rejects. */
  reload(options?: { ignoreCache?: boolean }): Promise<void>;
  back(): Promise<void>;
  forward(): Promise<void>;
  close(): Promise<void>;
  /** Puppeteer's page, or the WebDriver window handle. */
  readonly raw: unknown;
}

const launchers = { chromium: launchChromium, firefox: launchFirefox, webkit: launchWebKit };

export function launch(engine: Engine, options: LaunchOptions = {}): Promise<Browser> {
  return launchers[engine](options);
}
