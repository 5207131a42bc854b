// Owns what every route needs of HTTP: reading small bodies, cookies, and the few kinds of answer.

const largestBody = 64 * 1024;

export function refusal(status, message) {
  return Object.assign(new Error(message), { status });
}

async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > largestBody) throw refusal(413, 'That is too much.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

export async function readForm(request) {
  return new URLSearchParams(await readBody(request));
}

export async function readJson(request) {
  try {
    const value = JSON.parse((await readBody(request)) || '{}');
    if (value && typeof value === 'object' && !Array.isArray(value)) return value;
  } catch (error) {
    if (error.status) throw error;
  }
  throw refusal(400, 'The body is not a JSON object.');
}

export function readCookie(request, name) {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [key, value] = pair.trim().split('=');
    if (key === name) return value;
  }
  return null;
}

export function sendHtml(response, status, page, policy) {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy': policy,
    'referrer-policy': 'strict-origin-when-cross-origin',
    'x-content-type-options': 'nosniff',
  });
  response.end(page);
}

export function sendJson(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(value));
}

export function sendText(response, status, text) {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
  response.end(`${text}\n`);
}

/** 303, so that a form that was posted is followed by a plain GET. */
export function redirect(response, to) {
  response.writeHead(303, { location: String(to), 'cache-control': 'no-store' });
  response.end();
}
