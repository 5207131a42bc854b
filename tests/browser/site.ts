// A web server for the tests: the pages that a test puts up, and the built files of the relay at its root. It answers on two
// origins, `origin` and `other`, which are different sites; both are secure contexts.
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface SiteRequest {
  method: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
  /** The body of a posted form. */
  form: URLSearchParams;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** Text, bytes, or pieces that are sent as they come (see `pieces`). */
  body?: string | Buffer | AsyncIterable<string>;
  delayMs?: number;
}

export type Answer = string | Reply;
export type Responder = Answer | ((request: SiteRequest) => Answer | Promise<Answer>);

export interface Site {
  /** http://localhost:PORT */
  readonly origin: string;
  /** http://127.0.0.1:PORT */
  readonly other: string;
  /** Puts up an HTML page; a string gets a doctype and a charset if it has none. */
  page(path: string, responder: Responder): void;
  /** Puts up anything; the type is told from the path's ending. What was put up last at a path is what is served. */
  route(path: string, responder: Responder): void;
  /** All requests so far, oldest first. */
  readonly requests: SiteRequest[];
  close(): Promise<void>;
}

export function redirect(to: string, status = 303): Reply {
  return { status, headers: { location: to } };
}

/** Something to wait for that a test opens: `await gate.opened` in a responder, or as a piece. */
export function createGate(): { opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** A body that comes in pieces: strings are sent, numbers are milliseconds to wait, promises are waited for. The first string
 *  is padded, because WebKit shows nothing of a page before it has some bytes of it. */
export async function* pieces(...parts: (string | number | Promise<unknown>)[]): AsyncGenerator<string> {
  let padding = ' '.repeat(2048);
  for (const part of parts) {
    if (typeof part === 'string') {
      yield part + padding;
      padding = '';
    } else if (typeof part === 'number') await new Promise((resolve) => setTimeout(resolve, part));
    else await part;
  }
}

const types: Record<string, string> = {
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.json': 'application/json',
  '.map': 'application/json',
  '.css': 'text/css',
  '.txt': 'text/plain',
};

const typeOf = (path: string) => `${types[extname(path)] ?? 'text/html'}; charset=utf-8`;

function withDoctype(html: string): string {
  return /^\s*<!doctype/i.test(html) ? html : `<!doctype html><meta charset="utf-8">${html}`;
}

function builtFiles(folder: string): [string, Buffer][] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => [`/${name}`, readFileSync(join(folder, name))]);
}

async function read(request: IncomingMessage): Promise<SiteRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString();
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://site.invalid');
  return {
    method: request.method ?? 'GET',
    path: pathname,
    query: searchParams,
    headers: request.headers,
    body,
    form: new URLSearchParams(body),
  };
}

async function write(response: ServerResponse, path: string, reply: Reply, isPage: boolean): Promise<void> {
  const { status = 200, headers = {}, body = '', delayMs } = reply;
  if (delayMs) await new Promise((resolve) => setTimeout(resolve, delayMs));
  response.writeHead(status, {
    'content-type': isPage ? typeOf('') : typeOf(path),
    'cache-control': 'no-cache',
    ...headers,
  });
  if (typeof body === 'string') response.end(isPage && body ? withDoctype(body) : body);
  else if (Buffer.isBuffer(body)) response.end(body);
  else {
    response.flushHeaders();
    for await (const piece of body) response.write(piece);
    response.end();
  }
}

/** Serves the files of `dist` as they are now, unless a test puts up its own. */
export async function startSite({
  dist = fileURLToPath(new URL('../../dist', import.meta.url)),
} = {}): Promise<Site> {
  const routes = new Map<string, { responder: Responder; isPage: boolean }>();
  const requests: SiteRequest[] = [];
  for (const [path, body] of builtFiles(dist)) routes.set(path, { responder: { body }, isPage: false });
  routes.set('/favicon.ico', { responder: { status: 204 }, isPage: false });

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await read(incoming);
    requests.push(request);
    const route = routes.get(request.path);
    if (!route) return write(response, '.txt', { status: 404, body: 'Not found' }, false);
    const { responder, isPage } = route;
    const answer = typeof responder === 'function' ? await responder(request) : responder;
    await write(response, request.path, typeof answer === 'string' ? { body: answer } : answer, isPage);
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error) => {
      if (incoming.destroyed && !incoming.complete) return;
      console.error(`${incoming.method} ${incoming.url}:`, error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  return {
    origin: `http://localhost:${port}`,
    other: `http://127.0.0.1:${port}`,
    page: (path, responder) => void routes.set(path, { responder, isPage: true }),
    route: (path, responder) => void routes.set(path, { responder, isPage: false }),
    requests,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
