// WebKitGTK's MiniBrowser under WebKitWebDriver, in a virtual display; one driver and one display a launch. WebDriver
// commands wait for each other, so none of them may last: one command starts an evaluation and others ask for its
// result, and a load is looked for in the page instead of being waited for by the driver.
import { createServer } from 'node:net';
import WebDriver, { type Client } from 'webdriver';
import { pathOf } from '../../browsers.mjs';
import { type Child, createFolder, start } from './child.ts';
import type { Browser, LaunchOptions } from './index.ts';
import { runByAsking } from './script.ts';
import { createBrowser, type Tab } from './tab.ts';
import { defaultTimeoutMs, poll, within } from './time.ts';

const miniBrowserArgs = ['--automation', '--javascript-can-open-windows-automatically=true'];

export async function launchWebKit({ timeoutMs = defaultTimeoutMs }: LaunchOptions): Promise<Browser> {
  const home = createFolder('webkit');
  const children: Child[] = [];
  const end = async () => {
    await Promise.all(children.map((child) => child.kill()));
    home.remove();
  };

  try {
    const xvfb = start(pathOf('xvfb'), [
      '-displayfd',
      '1',
      '-screen',
      '0',
      '1280x800x24',
      '-nolisten',
      'tcp',
    ]);
    children.push(xvfb);
    const [display] = await within(timeoutMs, 'Xvfb did not start', xvfb.printed(/^\d+(?=\n)/m));
    const port = await freePort();
    children.push(start(pathOf('webkitDriver'), [`--port=${port}`], environment(`:${display}`, home.path)));
    await poll(
      timeoutMs,
      () => 'WebKitWebDriver did not start',
      () => isListening(port),
    );
    const client = await newSession(port, timeoutMs);
    return await createWindows(client, timeoutMs, async () => {
      await within(2_000, 'The session did not end', client.deleteSession()).catch(() => {});
      await end();
    });
  } catch (error) {
    await end();
    throw error;
  }
}

function environment(display: string, home: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    DISPLAY: display,
    GDK_BACKEND: 'x11',
    HOME: home,
    XDG_CACHE_HOME: home,
    XDG_CONFIG_HOME: home,
    XDG_DATA_HOME: home,
    LIBGL_ALWAYS_SOFTWARE: '1',
    WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1',
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

function isListening(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/status`).then(
    (response) => response.ok,
    () => false,
  );
}

function newSession(port: number, timeoutMs: number): Promise<Client> {
  return WebDriver.newSession({
    hostname: '127.0.0.1',
    port,
    logLevel: 'silent',
    connectionRetryCount: 0,
    connectionRetryTimeout: timeoutMs,
    capabilities: {
      pageLoadStrategy: 'none',
      unhandledPromptBehavior: 'accept',
      'wdio:enforceWebDriverClassic': true,
      'webkitgtk:browserOptions': { binary: pathOf('webkitBrowser'), args: miniBrowserArgs },
    } as WebdriverIO.Capabilities,
  });
}

/** One command at a time; `on` makes a window the current one before its commands. */
function createQueue(client: Client) {
  let tail: Promise<unknown> = Promise.resolve();
  let current: string | undefined;

  function enqueue<T>(command: () => Promise<T>): Promise<T> {
    const result = tail.then(command);
    tail = result.catch(() => {});
    return result;
  }
  function on<T>(handle: string, command: () => Promise<T>): Promise<T> {
    return enqueue(async () => {
      if (current !== handle) {
        current = undefined;
        await client.switchToWindow(handle);
        current = handle;
      }
      return command();
    });
  }
  const forget = () => {
    current = undefined;
  };
  return { enqueue, on, forget };
}

async function createWindows(client: Client, timeoutMs: number, end: () => Promise<void>): Promise<Browser> {
  const queue = createQueue(client);
  const known = new Map<string, Tab>();
  function tabOf(handle: string): Tab {
    const tab = known.get(handle) ?? createTab(client, queue, handle);
    known.set(handle, tab);
    return tab;
  }

  let unused: string | undefined = await queue.enqueue(() => client.getWindowHandle());
  return createBrowser(
    {
      engine: 'webkit',
      raw: client,
      open: async () => {
        const [any = ''] = await queue.enqueue(() => client.getWindowHandles());
        // By way of a window that is open: the current one may be closed by now. Not as a tab: a tab's page may open no popups.
        const handle = unused ?? (await queue.on(any, () => client.createWindow('window'))).handle;
        unused = undefined;
        return tabOf(handle);
      },
      tabs: async () => {
        const handles = await queue.enqueue(() => client.getWindowHandles());
        for (const handle of handles) if (handle !== unused) tabOf(handle);
        return [...known].filter(([handle]) => handles.includes(handle)).map(([, tab]) => tab);
      },
      stopWorkers: async () => {
        throw new Error('WebKit has no command that stops workers');
      },
      close: end,
    },
    timeoutMs,
  );
}

function createTab(client: Client, { on, forget }: ReturnType<typeof createQueue>, handle: string): Tab {
  return {
    raw: handle,
    goto: (url) => on(handle, async () => void (await client.navigateTo(url))),
    // A script gets no answer if its document enters the back/forward cache meanwhile.
    run: (expression) =>
      runByAsking(
        (now) => on(handle, () => within(1_000, 'No answer', client.executeScript(`return ${now}`, []))),
        expression,
      ),
    reload: async (ignoreCache) => {
      if (ignoreCache) throw new Error('WebKit has no command that reloads without the cache');
      await on(handle, () => client.refresh());
    },
    close: async () => {
      await on(handle, () => client.closeWindow());
      forget();
    },
  };
}
