/**
 * Keeps this document connected to the worker, for as long as anything needs it.
 *
 * Owns: the registration, the current link, the commands that were not acknowledged, the watch over the worker's generation.
 * Kept: a command is sent again on every new link until it is acknowledged (I2); nothing wakes a worker while nothing is
 * pending; every wait has a bound; a page never breaks because the relay could not start.
 */
import type { Bounds } from '../shared/bounds.ts';
import { type ErrorRecord, failure } from '../shared/errors.ts';
import {
  type Call,
  type Coordinator,
  type DocumentPeer,
  GOODBYE,
  type Goodbye,
  type Hello,
  type HelloAnswer,
  LAST_COMMANDS,
  type LastCommand,
  lockName,
  type Reply,
  SUMMONS,
} from '../shared/protocol.ts';
import { type Link, sayHello } from './link.ts';
import { addressOf, controllerOf, findRegistration, type RegistrationOptions } from './registration.ts';
import { within } from './task.ts';

/** A hello that is not answered is said again after this time, in milliseconds: its worker may have been replaced. */
const HELLO_BOUND = 1_500;
/** Where Web Locks are missing, a worker that is needed is asked this often whether it lives. */
const ASKING_INTERVAL = 20_000;
/** After a failure the next attempt comes by itself, each time twice as late. */
const FIRST_RETRY = 5_000;
const LAST_RETRY = 300_000;

export interface ConnectionOptions extends RegistrationOptions {
  bounds: Bounds;
}

/** What the connection asks of the document that it serves. */
export interface ConnectionOwner {
  hello(): Hello;
  peer: DocumentPeer;
  /** Is there anything that a dead worker must be replaced for? */
  isPending(): boolean;
  /** The worker knows this document's tab by that id. */
  connected(tabId: string): void;
  /** Nothing begins before: no connection, no bound. */
  activated: Promise<void>;
}

type Method = keyof Coordinator;
type Argument<M extends Method> = Parameters<Coordinator[M]>[0];

/** A command that was not acknowledged. */
interface Unacknowledged {
  method: Method;
  argument: unknown;
  /** Was it ever on its way to a worker? */
  sent: boolean;
  answer(reply: Reply<never>): void;
}

/** These wait for a worker as long as the document lives; any other has a bound. */
const PATIENT: readonly Method[] = ['reportEnd', 'cancel', 'reportStay'];

export interface Connection {
  status(): { state: 'connecting' | 'shared' | 'alone'; error: ErrorRecord | null };
  /** Settles once the status is no longer `connecting`, within the connecting bound. Never rejects. */
  readonly ready: Promise<void>;
  /** Resolves with the reply, or with an error once the bound has passed. Never rejects. */
  send<M extends Method>(method: M, argument: Argument<M>): ReturnType<Coordinator[M]>;
  /** Does a worker know of this document, as far as can be told? */
  isKnown(): boolean;
  /** Something has become pending: connects if it is not connected. */
  wake(): void;
  /** Says hello again, with everything there is to announce. */
  renew(): void;
  /** The document goes away. `missed`: the worker has something to learn from that. */
  leave(goodbye: { documentId: string; lostCalls: Call[]; missed: boolean }): void;
}

export function createConnection(options: ConnectionOptions, owner: ConnectionOwner): Connection {
  const { bounds } = options;
  const outbox = new Set<Unacknowledged>();
  /** `lost`: the worker's generation is dead, and nothing has needed another one yet. */
  let state: 'idle' | 'connecting' | 'connected' | 'lost' | 'alone' = 'idle';
  let error: ErrorRecord | null = null;
  let active = false;
  /** Of the latest hello that was said. */
  let helloId = '';
  let served = false;
  let registration: ServiceWorkerRegistration | undefined;
  /** To the worker of the latest hello, answered or not. */
  let link: Link | undefined;
  let generation: string | undefined;
  /** The one attempt to connect that counts. */
  let attempt: object | undefined;
  let unwatch = () => {};
  let retryDelay = FIRST_RETRY;
  let settleReady = () => {};
  const ready = new Promise<void>((resolve) => {
    settleReady = resolve;
  });

  function need(): void {
    if (active && (state === 'idle' || state === 'lost')) void connect();
  }

  async function connect(): Promise<void> {
    const mine = {};
    attempt = mine;
    state = 'connecting';
    const answer = await within(bounds.connecting, reach(mine).catch(refusal));
    if (attempt !== mine) return;
    attempt = undefined;
    if (answer?.type === 'welcome') welcomed(answer);
    else fail(answer?.error ?? whyUnanswered());
  }

  /** Whom to talk to, read anew each time. */
  function worker(): ServiceWorker | null {
    return registration === undefined ? controllerOf(options) : registration.active;
  }

  /** Where another worker controls the page than the registration has by now, that one is the one to talk to. */
  async function find(): Promise<void> {
    const controller = worker();
    registration = observed(await findRegistration(options));
    if (controller !== null && controller !== registration.active) renew();
  }

  /** Says hello until it is answered. What waits goes along: an answer takes long while a page loads. */
  async function reach(mine: object): Promise<HelloAnswer | undefined> {
    const finding = registration === undefined ? find() : undefined;
    if (worker() === null) await finding;
    else finding?.catch(() => {});
    for (let to = worker(); attempt === mine && to !== null; to = worker()) {
      const message = owner.hello();
      ({ helloId } = message);
      link?.close();
      link = sayHello(to, message, owner.peer);
      for (const entry of outbox) perform(entry, link);
      const answer = await within(HELLO_BOUND, link.answer);
      if (answer !== undefined) return answer;
    }
    return undefined;
  }

  function whyUnanswered(): ErrorRecord {
    const { scriptURL } = worker() ?? {};
    const scope = registration?.scope ?? location.href;
    registration = undefined;
    const { href } = addressOf(options);
    if (scriptURL === undefined || (options.register !== false && scriptURL === href)) {
      return failure('worker-unavailable', false, `No worker with the relay in it answers for ${scope}.`);
    }
    const what = options.register === false ? 'include it there' : `${href} was not registered over it`;
    return failure('worker-conflict', false, `${scriptURL} serves ${scope} without the relay: ${what}.`);
  }

  function welcomed(welcome: Extract<HelloAnswer, { type: 'welcome' }>): void {
    served = true;
    retryDelay = FIRST_RETRY;
    state = 'connected';
    ({ generation } = welcome);
    unwatch();
    unwatch = watchGeneration(welcome.generation);
    owner.connected(welcome.tabId);
    settleReady();
  }

  /** The failure of a command: a call may have begun if it was ever on its way. */
  function failed({ method, sent }: Pick<Unacknowledged, 'method' | 'sent'>, why: ErrorRecord): Reply<never> {
    return { ok: false, error: { ...why, started: sent && method === 'execute' } };
  }

  function perform(entry: Unacknowledged, { command }: Link): void {
    const { method, argument, answer } = entry;
    entry.sent = true;
    (command(method, argument) as Promise<Reply<never>>).then(answer, (thrown) =>
      answer(failed(entry, failure('version-mismatch', false, `${thrown}`))),
    );
  }

  function fail(why: ErrorRecord): void {
    drop();
    error = why;
    state = 'alone';
    settleReady();
    console.warn(`webmcp-relay: working without the worker (${why.reason}). ${why.message}`);
    for (const entry of [...outbox]) if (!PATIENT.includes(entry.method)) entry.answer(failed(entry, why));
    // Any other reason does not pass by waiting.
    if (why.reason !== 'worker-unavailable') return;
    setTimeout(() => state === 'alone' && connect(), retryDelay);
    retryDelay = Math.min(retryDelay * 2, LAST_RETRY);
  }

  /**
   * Being granted the lock of a generation means that it is dead. Where there are no locks, or none for us, a command that is
   * not answered in time says so.
   */
  function watchGeneration(generation: string): () => void {
    const withdrawal = new AbortController();
    const { signal } = withdrawal;
    // Without locks, a small question now and then; unanswered, it is a reason for another hello.
    const ask = (): void => void (owner.isPending() && send('awaitOutcomes', { executionIds: [] }));
    const timer = navigator.locks === undefined ? setInterval(ask, ASKING_INTERVAL) : undefined;
    navigator.locks
      ?.request(lockName(generation), { mode: 'shared', signal }, () => died(generation))
      .catch(() => {});
    return () => {
      clearInterval(timer);
      withdrawal.abort();
    };
  }

  function listenForSummons(): void {
    try {
      navigator.serviceWorker?.addEventListener('message', (event) => {
        if ((event.data as { type?: unknown } | null)?.type === SUMMONS) renew();
      });
      navigator.serviceWorker?.startMessages();
    } catch {
      // A sandboxed frame may not even look; registering says so once more.
    }
  }

  function died(dead: string): void {
    if (generation !== dead) return;
    drop();
    state = 'lost';
    if (owner.isPending() || outbox.size > 0) need();
  }

  function drop(): void {
    unwatch();
    unwatch = () => {};
    link?.close();
    link = undefined;
    generation = undefined;
  }

  /** A newer worker that takes over is the one to talk to. */
  function observed(found: ServiceWorkerRegistration): ServiceWorkerRegistration {
    found.addEventListener('updatefound', () => {
      const { installing } = found;
      installing?.addEventListener('statechange', () => {
        if (installing.state === 'activated' && link !== undefined) renew();
      });
    });
    return found;
  }

  function renew(): void {
    if (state !== 'connected' && state !== 'lost') return;
    drop();
    void connect();
  }

  function send(method: Method, argument: unknown): Promise<Reply<never>> {
    if (!active) return owner.activated.then(() => send(method, argument));
    const patient = PATIENT.includes(method);
    if (state === 'alone' && !patient) return Promise.resolve({ ok: false, error: error as ErrorRecord });
    return new Promise((resolve) => {
      const answering = bounds.storage + bounds.acknowledging;
      const late = (): void => answer(failed(entry, failure('worker-unavailable', false)));
      let timer = setTimeout(() => {
        renew();
        if (!patient) timer = setTimeout(late, bounds.connecting);
      }, answering);
      const entry: Unacknowledged = { method, argument, sent: false, answer };
      function answer(reply: Reply<never>): void {
        clearTimeout(timer);
        outbox.delete(entry);
        resolve(reply);
      }
      outbox.add(entry);
      if (link !== undefined) perform(entry, link);
      else need();
    });
  }

  const isKnown = (): boolean => link !== undefined || state === 'connecting';

  function leave({ documentId, lostCalls, missed }: Parameters<Connection['leave']>[0]): void {
    const commands = [...outbox]
      .filter(({ method }) => LAST_COMMANDS.includes(method as never))
      .map(({ method, argument }) => ({ method, argument }) as LastCommand);
    const goodbye: Goodbye = { type: GOODBYE, documentId, helloId, lostCalls, commands };
    if (isKnown() || missed || commands.length > 0) worker()?.postMessage(goodbye);
    attempt = undefined;
    drop();
    state = 'idle';
    for (const entry of [...outbox]) entry.answer(failed(entry, failure('navigated', false)));
  }

  listenForSummons();
  void owner.activated.then(() => {
    active = true;
    need();
  });

  return {
    status() {
      if (state === 'alone') return { state: 'alone', error };
      return { state: served ? 'shared' : 'connecting', error: null };
    },
    ready,
    send: send as Connection['send'],
    isKnown,
    wake: need,
    renew,
    leave,
  };
}

/** What keeps the page from finding a registration. */
function refusal({ message }: Error): HelloAnswer {
  return { type: 'refused', error: failure('no-service-worker', false, message) };
}
