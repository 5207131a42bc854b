/**
 * The relay's half of a service worker.
 *
 * Owns: the worker's message listener, its generation and its lock, the greeting and the goodbye, who is presumed to follow a
 * document that left, and the pulse: while there are executions, time passes for them and it is asked who still exists. It
 * installs no `fetch` listener (a site pays nothing on a navigation) and claims no clients; until the first message of ours
 * arrives it does nothing at all, so that a waiting worker touches nothing.
 */
import { BOUNDS, type Bounds, PRESUMPTION, SIZES, type Sizes } from '../shared/bounds.ts';
import { failure } from '../shared/errors.ts';
import { freshId } from '../shared/ids.ts';
import { fits, PATTERNS } from '../shared/parse.ts';
import {
  type Announcement,
  GOODBYE,
  type Goodbye,
  HELLO,
  type Hello,
  lockName,
  PROTOCOL_VERSIONS,
} from '../shared/protocol.ts';
import { systemClock } from './clock.ts';
import { createCoordinator, performLast, type Setting } from './coordinator.ts';
import type { Change } from './core/event.ts';
import { documentsInQuestion, snapshotOf } from './core/registry.ts';
import type { ConnectedDocument } from './core/state.ts';
import { createDocuments } from './documents.ts';
import { createPerformer } from './effects.ts';
import { refuse, welcome } from './link.ts';
import { createRuntime, type Runtime } from './runtime.ts';
import { createKeyring } from './seal.ts';
import { createStore } from './store.ts';

export interface RelayOptions {
  /** Milliseconds; defaults in the README. */
  bounds?: Partial<Bounds>;
  sizes?: Partial<Sizes>;
}

/**
 * While there are executions, time passes for them this often, in milliseconds, and it is asked whether the documents that they
 * await still exist. Timers only wake: what has become of a deadline the step judges (I5).
 */
const PULSE = 500;
/** The goodbye of a document that is gone has this long to arrive, in milliseconds. */
const GOODBYE_GRACE = 2_000;
/** Watchers are told at most this often, in milliseconds. */
const WATCH_INTERVAL = 50;

/**
 * Makes a service worker the coordinator of its origin's documents. Call it while the worker's script is first evaluated
 * (not after an await): a message may be what wakes the worker. Lives beside a site's own listeners; looks at messages
 * whose `type` is one of ours and at nothing else.
 */
export function installRelay(worker: ServiceWorkerGlobalScope, options: RelayOptions = {}): void {
  let relay: ReturnType<typeof startRelay> | undefined;
  worker.addEventListener('message', (event) => {
    const { type } = (event.data ?? {}) as { type?: unknown };
    if (type !== HELLO && type !== GOODBYE) return;
    relay ??= startRelay(worker, options);
    event.waitUntil(type === HELLO ? relay.greet(event) : relay.bid(event.data));
  });
}

function startRelay(worker: ServiceWorkerGlobalScope, options: RelayOptions) {
  const generation = freshId();
  const bounds = { ...BOUNDS, ...options.bounds };
  const sizes = { ...SIZES, ...options.sizes };
  const clock = systemClock;
  const locked = holdLock(generation);
  const documents = createDocuments(worker.clients, clock, bounds);
  const keyring = createKeyring();
  const store = createStore(clock, bounds.storage);
  const runtime: Runtime = createRuntime({ generation, bounds, sizes }, store, clock, {
    seal: keyring.sealAll,
    perform: createPerformer(documents, keyring, (happening) => runtime.dispatch(happening)),
    changed,
  });
  const pulse = atMostEvery(PULSE, async () => {
    await sweep();
    await runtime.dispatch({ type: 'time-passed' });
  });
  const tellWatchers = atMostEvery(WATCH_INTERVAL, () => {
    for (const [, { watches, groupId, peer }] of documents.all()) {
      if (watches) peer.observe(snapshotOf(runtime.state, groupId, clock.now())).catch(() => {});
    }
  });
  const arriving: Setting['arriving'] = new Set();
  const setting: Setting = { clock, arriving, runtime, keyring, documents, sweep, tellWatchers };

  function changed(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === 'remove') keyring.forget(change.execution.id);
      if (change.type === 'disconnect') documents.disconnect(change.documentId);
    }
    if (runtime.state.executions.size > 0) pulse();
    if (changes.length > 0) tellWatchers();
  }

  async function sweep(grace = GOODBYE_GRACE): Promise<void> {
    const missing = await documents.missing(documentsInQuestion(runtime.state), grace).catch(() => []);
    await Promise.all(missing.map((documentId) => runtime.dispatch({ type: 'document-lost', documentId })));
    if (documents.areInDoubt()) pulse();
  }

  /** Called however often, `act` happens once in that many milliseconds. */
  function atMostEvery(interval: number, act: () => void): () => void {
    let due = false;
    return () => {
      if (due) return;
      due = true;
      clock.after(interval, () => {
        due = false;
        act();
      });
    };
  }

  async function greet(event: ExtendableMessageEvent): Promise<void> {
    const [port] = event.ports;
    if (port === undefined) return;
    const hello = event.data as Hello;
    const version =
      fits(hello, PATTERNS.hello) && PROTOCOL_VERSIONS.find((ours) => hello.versions.includes(ours));
    if (!version) {
      refuse(port, failure('version-mismatch', false, 'Reload the page: its version does not fit.'));
      return;
    }
    const clientId = (event.source as Client | null)?.id ?? '';
    await locked;
    const tabId = await documents.tabIdFor(hello, runtime.state);
    const { documentId, groupId, top, url, helloId, listens } = hello;
    // It has left while it was looked at.
    if (documents.leftAfter(documentId) === helloId) {
      await runtime.dispatch({ type: 'document-left', documentId, lostCalls: [] });
      return;
    }
    const coordinator = createCoordinator(documentId, setting);
    const answer = { type: 'welcome', version, generation, tabId } as const;
    documents.connect(
      documentId,
      welcome(port, answer, coordinator, { groupId, helloId, listens: Boolean(listens) }),
    );
    const facts = { documentId, tabId, groupId, top, url };
    const { announcement } = hello;
    await runtime.dispatch(
      learn(announcement).then(() => ({ type: 'document-connected', facts, clientId, announcement })),
    );
    documents.arrive(clientId);
  }

  /** Takes the keys that a document brings along. */
  async function learn({ calls, activations, resumptions }: Announcement): Promise<void> {
    for (const part of [...calls, ...activations]) keyring.learnFrom(part);
    for (const { token } of resumptions) await keyring.offer(token);
  }

  async function bid(goodbye: Goodbye): Promise<void> {
    if (!fits(goodbye, PATTERNS.goodbye)) return;
    const { documentId, helloId, lostCalls, commands } = goodbye;
    performLast(documentId, commands, setting);
    documents.leave(documentId, helloId);
    const left = runtime.state.documents.get(documentId);
    if (left?.top) presume(left);
    // What a document said on its way into the back/forward cache may arrive when it is back.
    if ((documents.get(documentId)?.helloId ?? helloId) !== helloId) return;
    await runtime.dispatch({ type: 'document-left', documentId, lostCalls });
  }

  /** Another document of its tab is about to follow: as it is none yet, no client stands for it. */
  function presume(left: ConnectedDocument): void {
    const next = { ...left, clientId: '', readyFrom: clock.now() + PRESUMPTION };
    arriving.add(next);
    clock.after(PRESUMPTION, () => arriving.delete(next));
  }

  return { greet, bid };
}

/**
 * Resolves once this generation holds its lock, which it does until it dies: pages that queue for the lock learn of the
 * death by getting it. Where there are no locks it resolves at once.
 */
function holdLock(generation: string): Promise<void> {
  return new Promise((resolve) => {
    const hold = (): Promise<never> => {
      resolve();
      return new Promise(() => {});
    };
    if (navigator.locks) navigator.locks.request(lockName(generation), hold).catch(() => resolve());
    else resolve();
  });
}
