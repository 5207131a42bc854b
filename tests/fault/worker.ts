// The worker of the fault tests: it wraps what the relay uses, then imports the built relay, unmodified. Once armed it stops
// the world at one chosen point: from then on this worker says nothing, hears nothing and commits nothing, and tells the
// test's server so, which then has it killed for good. A new start is not armed.

/** Where to stop. `turn`: at which of the places of that kind, from 0. */
export interface Fault {
  at: /** A transaction that wrote has completed; nothing of it was said yet. */
    | 'after-commit'
    /** The write is requested; its transaction never completes. */
    | 'before-commit'
    /** A command to a page is about to be sent. */
    | `command ${string}`
    /** A page's reply to a command, or a command of a page, arrives. */
    | `reply ${string}`
    | `asked ${string}`;
  turn: number;
}

/** Runs in the worker, alone: it sees nothing of this module. */
function install(): void {
  const scope = globalThis as unknown as ServiceWorkerGlobalScope;
  let fault: Fault | null = null;
  let isStopped = false;
  /** What the commands under way are, by their ids: the method, or what an end says. */
  const commands = new Map<string, string>();
  const seen = new WeakSet<Event>();
  const wrote = new WeakSet<IDBTransaction>();

  const report = (what: string, of = '') =>
    void fetch(`/fault/${what}?of=${encodeURIComponent(of)}`, { keepalive: true });

  /** Is this the place? Then the world stops here. */
  function stopsAt(place: Fault['at'], matches = fault?.at === place): boolean {
    if (isStopped) return true;
    if (fault === null || !matches) return false;
    if (fault.turn > 0) {
      fault.turn -= 1;
      return false;
    }
    isStopped = true;
    report('stopped');
    return true;
  }

  scope.addEventListener('install', () => void scope.skipWaiting());
  scope.addEventListener('message', (event) => {
    if (isStopped) event.stopImmediatePropagation();
    else if (event.data?.type === 'test:arm') {
      fault = event.data.fault;
      event.ports[0]?.postMessage('armed');
    }
  });

  const { transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.transaction = function (...args) {
    if (isStopped) throw new DOMException('stopped', 'InvalidStateError');
    const opened = transaction.apply(this, args);
    opened.addEventListener('complete', () => {
      if (wrote.has(opened)) stopsAt('after-commit');
    });
    return opened;
  };

  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = function (...args) {
    const request = put.apply(this, args);
    wrote.add(this.transaction);
    if (stopsAt('before-commit')) {
      const linger = () => {
        this.count().onsuccess = linger;
      };
      linger();
    }
    return request;
  };

  const { postMessage, addEventListener } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function (message, ...rest: never[]) {
    const method = message?.type === 'APPLY' ? String(message.path) : '';
    if (method !== '') commands.set(message.id, method);
    if (stopsAt(`command ${method}`)) return;
    postMessage.call(this, message, ...rest);
    const ended = commands.get(message?.id);
    if (ended?.startsWith('end: ')) report('ended', ended.slice('end: '.length));
  };
  MessagePort.prototype.addEventListener = function (type: string, listener: never, ...rest: never[]) {
    const wrapped = (event: MessageEvent) => {
      if (seen.has(event) ? !isStopped : hears(event)) (listener as (event: Event) => void).call(this, event);
    };
    addEventListener.call(this, type, type === 'message' ? (wrapped as never) : listener, ...rest);
  };

  /** Each port has two listeners: only the first one's hearing counts. */
  function hears(event: MessageEvent): boolean {
    seen.add(event);
    const { type, id, path, argumentList } = event.data ?? {};
    if (type !== 'APPLY') return !stopsAt(`reply ${commands.get(id)}`);
    const end = argumentList[0]?.value?.end;
    if (end) commands.set(id, `end: ${end.value?.text}`);
    return !stopsAt(`asked ${path}`);
  }

  scope.importScripts('/webmcp-relay-sw.js');
}

export const faultWorker = `(${install})();`;
