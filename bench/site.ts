// What the bench measures on. Each line has a host of its own: `isolated.localhost` is cross-origin isolated, for its clock;
// the others are plain, as sites are.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as esbuild from 'esbuild';
import { type Reply, type Site, type SiteRequest, startSite } from '../tests/browser/site.ts';

export interface BenchSite extends Site {
  /** The origin of that name; every name has one. */
  on(name: string): string;
}

const RELAY = '<script src="/webmcp-relay.js"></script>';

/** Tells the page of every welcome that one of its channels brings. Must come before the relay. */
const WATCH_WELCOME = `<script>
  window.MessageChannel = class extends MessageChannel {
    constructor() {
      super();
      this.port1.addEventListener('message', ({ data }) => data?.type === 'welcome' && onWelcome());
    }
  };
</script>`;

export async function startBenchSite(root: string): Promise<BenchSite> {
  const site = await startSite({ dist: join(root, 'dist') });
  const put = (path: string, body: string, isPage: boolean) =>
    site[isPage ? 'page' : 'route'](path, (request) => reply(request, body, isPage));

  // Scripts are kept by the browser, as a site would have it.
  for (const file of ['', '-sw', '-more', '-validator'].map((part) => `webmcp-relay${part}.js`)) {
    put(`/${file}`, readFileSync(join(root, 'dist', file), 'utf8'), false);
  }
  for (const name of ['page', 'bare-worker']) put(`/${name}.js`, await script(root, name), false);

  put('/bench', `${RELAY}<script src="/page.js"></script>`, true);
  put('/bench-reconnect', `${WATCH_WELCOME}${RELAY}<script src="/page.js"></script>`, true);
  for (const [path, body] of Object.entries(checkout)) put(path, `<title>${path}</title>${body}`, true);
  for (const [path, body] of Object.entries(catalogue)) put(path, body, true);
  for (const [path, body] of Object.entries(firstVisit)) put(path, body, true);

  const { port } = new URL(site.origin);
  return { ...site, on: (name) => `http://${name}.localhost:${port}` };
}

function reply({ headers }: SiteRequest, body: string, isPage: boolean): Reply {
  const isolated = headers.host?.startsWith('isolated.');
  return {
    body,
    headers: {
      'cache-control': isPage ? 'no-cache' : 'max-age=3600',
      ...(isolated && {
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-embedder-policy': 'require-corp',
      }),
    },
  };
}

async function script(root: string, name: string): Promise<string> {
  const { outputFiles } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: [`bench/${name}.ts`],
    bundle: true,
    format: 'iife',
    target: 'es2022',
    write: false,
    logLevel: 'warning',
  });
  return outputFiles[0]?.text ?? '';
}

// Three navigations, with the relay and without. The agent is the opener and is told by both at the end.
const checkout = {
  '/agent': RELAY,
  '/cart': `${RELAY}<script>
    document.modelContext.registerTool({
      name: 'checkout',
      description: 'Buys what is in the cart',
      async execute(input, { invocation }) {
        location.href = webmcpRelay.withToken('/billing', await invocation.requestToken());
      },
    });
  </script>`,
  '/billing': resumed('/shipping'),
  '/shipping': resumed('/confirmation'),
  '/confirmation': `${RELAY}<script>
    document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input) => ({ receipt: input.address }));
  </script>`,
  '/bare-agent': '',
  '/bare-cart': `<script>addEventListener('message', () => { location.href = '/bare-billing'; });</script>`,
  '/bare-billing': `<script>location.href = '/bare-shipping';</script>`,
  '/bare-shipping': `<script>location.href = '/bare-confirmation';</script>`,
  '/bare-confirmation': `<script>opener.postMessage('done', origin);</script>`,
};

function resumed(next: string): string {
  return `${RELAY}<script>
    document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input, { invocation }) => {
      location.href = webmcpRelay.withToken('${next}', await invocation.requestToken());
    });
  </script>`;
}

// One page of a catalogue, with the relay and without: of the same weight but for the relay and its tool, which goes by the
// page's query.
const WARES = Array.from(
  { length: 200 },
  (_, index) =>
    `<li><a href="/ware-${index}">Ware ${index}</a>: in stock, and sent today if ordered before noon</li>`,
);
const SHELF = `<script>
  // Milliseconds since the epoch; 0 as long as it is not known.
  function parsedAt() {
    const [{ domContentLoadedEventStart: parsed }] = performance.getEntriesByType('navigation');
    return parsed && performance.timeOrigin + parsed;
  }
</script><ul>${WARES.join('')}</ul>`;
const catalogue = {
  '/catalogue': `${RELAY}<script>
    document.modelContext.registerTool({
      name: 'show-' + location.search.slice(1),
      description: 'Shows a ware of this page',
      execute: (input) => input,
    });
  </script>${SHELF}`,
  '/bare-catalogue': `${SHELF}<script>
    addEventListener('DOMContentLoaded', () => opener.postMessage(parsedAt(), origin));
  </script>`,
};

// A shop that nobody has visited opens the agent's window; the agent calls the shop's tool as soon as it can.
const firstVisit = {
  '/shop': `${RELAY}<script>
    document.modelContext.registerTool({ name: 'ping', description: 'Answers', execute: () => 'pong' });
    addEventListener('message', ({ data }) => { window.callable = data - performance.timeOrigin; });
    window.open('/first-agent', '', 'popup');
  </script>`,
  '/first-agent': `${RELAY}<script>
    async function callWhenListed() {
      for (;;) {
        const changed = new Promise((resolve) => {
          document.modelContext.addEventListener('toolchange', resolve, { once: true });
          setTimeout(resolve, 100);
        });
        const [tool] = await document.modelContext.getTools({ scope: 'group' });
        if (tool) return document.modelContext.executeTool(tool);
        await changed;
      }
    }
    callWhenListed().then(() => opener.postMessage(performance.timeOrigin + performance.now(), origin));
  </script>`,
};
