// Starts the demo shop. Run directly it prints the address; tests call `startShop`.
// One server, two origins: `localhost` is the shop, `127.0.0.1` (same port) is the payment provider, because
// a browser takes the two names for two origins.

import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { serveFile } from './server/files.mjs';
import { sendText } from './server/http.mjs';
import { listenOnLoopback } from './server/listen.mjs';
import { paymentRoutes } from './server/payment.mjs';
import { shopRoutes } from './server/routes.mjs';
import { createStore } from './server/store.mjs';

const builtPackage = fileURLToPath(new URL('../dist/', import.meta.url));

/** Starts the shop on `port` (0 for any free one), with the package's built files from the folder `dist`. */
export async function startShop({ port = 0, dist = builtPackage } = {}) {
  const site = { origin: '', paymentOrigin: '', store: createStore() };
  const hosts = { shop: shopRoutes(site), payment: paymentRoutes(site) };

  const answer = async (request, response) => {
    const host = request.headers.host?.startsWith('127.0.0.1') ? 'payment' : 'shop';
    const url = new URL((host === 'shop' ? site.origin : site.paymentOrigin) + request.url);
    if (await hosts[host](request, response, url)) return;
    if (request.method === 'GET' && (await serveFile(response, url.pathname, dist))) return;
    sendText(response, 404, 'There is no such page.');
  };
  const newServer = () =>
    createServer((request, response) => {
      answer(request, response).catch((error) => {
        if (!error.status) console.error(error);
        if (response.headersSent) response.destroy();
        else sendText(response, error.status ?? 500, error.status ? error.message : 'The shop has failed.');
      });
    });

  const listening = await listenOnLoopback(newServer, port);
  site.origin = `http://localhost:${listening.port}`;
  site.paymentOrigin = `http://127.0.0.1:${listening.port}`;
  return { origin: site.origin, paymentOrigin: site.paymentOrigin, close: listening.close };
}

async function main() {
  const wanted = process.env.PORT;
  if (wanted !== undefined && !/^\d{1,5}$/.test(wanted)) throw new Error(`PORT is not a port: ${wanted}`);
  const shop = await startShop({ port: Number(wanted ?? 8080) }).catch((error) => {
    if (error.code !== 'EADDRINUSE') throw error;
    if (wanted !== undefined) throw new Error(`Port ${wanted} is taken.`);
    return startShop({ port: 0 });
  });
  if (!existsSync(new URL('webmcp-relay.js', pathToFileURL(builtPackage)))) {
    console.log('The package is not built, so the shop works by hand only: run `npm run build`.');
  }
  console.log(`Shop: ${shop.origin}/`);
  console.log(`Payment provider (another origin): ${shop.paymentOrigin}/`);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
