// Counts the worker's starts while pages that have registered tools idle: `npm run idle [minutes]` (10 unless told). Nothing
// is pending then, so the browser lets the worker go, and nothing may start it again: 0 is what is wanted, and the exit code
// is 1 for anything else. Needs the built files; not part of the tests, because it waits.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import puppeteer from 'puppeteer-core';
import { ensureBrowsers, pathOf } from './browsers.mjs';

const minutes = Number(process.argv[2] ?? 10);
const PAGES = 5;
const TOOLS = 3;

const missing = ensureBrowsers();
if (missing) throw new Error(missing);

/** @param {string} name */
const built = (name) => readFileSync(new URL(`../dist/${name}`, import.meta.url));

/** Each evaluation of the worker's script is a start; it tells the server of its own. */
let starts = 0;
const page = `<!doctype html><script src="/webmcp-relay.js" data-worker="/counted-sw.js"></script><script>
  for (let tool = 0; tool < ${TOOLS}; tool++)
    document.modelContext.registerTool({ name: 'tool' + tool, description: 'Idles', execute() {} });
</script>`;
/** @type {Record<string, [type: string, body: string | Buffer]>} */
const files = {
  '/': ['text/html', page],
  '/webmcp-relay.js': ['text/javascript', built('webmcp-relay.js')],
  '/webmcp-relay-more.js': ['text/javascript', built('webmcp-relay-more.js')],
  '/webmcp-relay-sw.js': ['text/javascript', built('webmcp-relay-sw.js')],
  '/counted-sw.js': [
    'text/javascript',
    `addEventListener('install', () => skipWaiting()); fetch('/started'); importScripts('/webmcp-relay-sw.js');`,
  ],
};
const server = createServer(({ url = '/' }, response) => {
  const [path = '/'] = url.split('?');
  if (path === '/started') starts += 1;
  const [type, body] = files[path] ?? ['text/plain', ''];
  response.writeHead(200, { 'content-type': type }).end(body);
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());

const browser = await puppeteer.launch({
  executablePath: pathOf('chromium'),
  ignoreDefaultArgs: true,
  args: [
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    '--headless=new',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-quic',
    'about:blank',
  ],
  pipe: true,
  // An attached debugger would keep the worker alive.
  targetFilter: (target) => target.type() !== 'service_worker',
});

/** @returns {Promise<number>} workers that are alive, by the locks that they hold; asking wakes nobody */
async function alive() {
  const [tab] = await browser.pages();
  return tab?.evaluate(async () => (await navigator.locks.query()).held?.length ?? 0) ?? 0;
}

/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

try {
  for (let count = 0; count < PAGES; count += 1) {
    const tab = (count === 0 && (await browser.pages())[0]) || (await browser.newPage());
    await tab.goto(`http://localhost:${port}/`);
    await tab.evaluate('document.modelContext.relay.ready');
  }
  if ((await alive()) === 0) throw new Error('No worker serves the pages.');
  const atFirst = starts;
  const since = Date.now();
  let stoppedAfter = 0;
  while (Date.now() - since < minutes * 60_000) {
    await pause(5_000);
    if (stoppedAfter === 0 && (await alive()) === 0) stoppedAfter = Date.now() - since;
  }
  const stopped = stoppedAfter === 0 ? 'never' : `after ${Math.round(stoppedAfter / 1_000)} s`;
  console.log(
    `${PAGES} pages of ${TOOLS} tools idled for ${minutes} minutes: the worker stopped ${stopped},`,
  );
  console.log(`and was started ${starts - atFirst} times.`);
  process.exitCode = starts === atFirst && stoppedAfter > 0 ? 0 : 1;
} finally {
  await browser.close();
  server.close();
}
