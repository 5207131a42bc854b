// What one would write by hand for one purpose each, with nothing that a relay needs beyond it: a worker that passes messages
// between pages over ports that are set up once, stores a sealed record, and holds a lock that tells of its death.
import { BARE_LOCK, type Command, RECORD_ID, type Sealed } from './bare-messages.ts';

declare const self: ServiceWorkerGlobalScope;

const ports = new Map<string, MessagePort>();

const locked = new Promise<void>((resolve) => {
  navigator.locks.request(BARE_LOCK, () => {
    resolve();
    return new Promise(() => {});
  });
});

self.addEventListener('install', () => void self.skipWaiting());

self.addEventListener('message', (event) => {
  const [port] = event.ports;
  if (port === undefined) return;
  ports.set(event.data.name, port);
  port.onmessage = ({ data }: MessageEvent<Command>) => {
    if (data.type === 'pass') ports.get(data.to)?.postMessage(data);
    else if (data.type === 'store') store(data.text).then((ms) => port.postMessage({ ms }));
    else redeem(data.key).then((text) => port.postMessage({ text }));
  };
  event.waitUntil(locked.then(() => port.postMessage({ welcome: true })));
});

/** Made once, when it is first wanted. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

const key = once(
  () =>
    crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, [
      'encrypt',
      'decrypt',
    ]) as Promise<CryptoKey>,
);

const database = once(
  () =>
    new Promise<IDBDatabase>((resolve, reject) => {
      const opening = indexedDB.open('bare', 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore('records', { keyPath: 'id' });
      opening.onsuccess = () => resolve(opening.result);
      opening.onerror = () => reject(opening.error);
    }),
);

async function begin(): Promise<{ records: IDBObjectStore; done: Promise<void> }> {
  const transaction = (await database()).transaction('records', 'readwrite', { durability: 'strict' });
  const done = new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
  return { records: transaction.objectStore('records'), done };
}

/** One seal and one put; resolves with the milliseconds that they took, measured here. */
async function store(text: string): Promise<number> {
  const [cryptoKey] = await Promise.all([key(), database()]);
  const start = performance.now();
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const box = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, cryptoKey, new TextEncoder().encode(text));
  const { records, done } = await begin();
  records.put({ id: RECORD_ID, state: 'outstanding', sealed: { iv, box } });
  await done;
  return performance.now() - start;
}

/** One transaction that gets the record and puts it back, and one unseal. */
async function redeem(id: string): Promise<string> {
  const { records, done } = await begin();
  const sealed = await new Promise<Sealed>((resolve) => {
    const reading = records.get(id);
    reading.onsuccess = () => {
      const record = reading.result;
      records.put({ ...record, state: 'redeemed' });
      resolve(record.sealed);
    };
  });
  await done;
  const { iv, box } = sealed;
  return new TextDecoder().decode(await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, await key(), box));
}
