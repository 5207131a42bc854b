// Owns the files that are served as they are: the demo's own, and the built package where a site would put it.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ownFiles = fileURLToPath(new URL('../pages/', import.meta.url));

const types = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  map: 'application/json',
  svg: 'image/svg+xml',
};

/** The relay's script and its worker lie at the root, so that the worker's scope is the whole shop. */
function locate(pathname, dist) {
  const name = /^\/((?:[\w-]+\/)*[\w.-]+\.(css|js|json|map|svg))$/.exec(pathname);
  if (!name || name[1].includes('..')) return null;
  const type = types[name[2]];
  if (/^webmcp-relay(-sw|-more|-validator)?\.js(\.map)?$/.test(name[1]))
    return { path: join(dist, name[1]), type };
  if (name[1].startsWith('webmcp-relay/')) return { path: join(dist, name[1].slice(13)), type };
  return { path: join(ownFiles, name[1]), type };
}

export async function serveFile(response, pathname, dist) {
  const file = locate(pathname, dist);
  if (!file) return false;
  let content;
  try {
    content = await readFile(file.path);
  } catch {
    return false;
  }
  response.writeHead(200, {
    'content-type': file.type,
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
  });
  response.end(content);
  return true;
}
