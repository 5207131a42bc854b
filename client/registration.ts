/**
 * The service worker's registration: makes it, or finds the site's own, and waits until a worker of it is active.
 *
 * Kept: a registration of the site's own is never replaced; every wait is bounded by the caller's signal.
 */
import { Workbox } from 'workbox-window';
import { relayFailure } from './errors.ts';

export interface RegistrationOptions {
  /** Address of the worker's script, against the document's. */
  worker: string | URL;
  /** Default: the folder of the script. */
  scope?: string | undefined;
  /** `false`: the site registers its own worker, which includes the relay. */
  register?: boolean | undefined;
}

export interface FoundRegistration {
  registration: ServiceWorkerRegistration;
  /** The worker is not the one that was asked for: it serves us only if it includes the relay. */
  foreign: boolean;
}

/** Rejects with a RelayError: `no-service-worker` where there can be none, `worker-unavailable` if the signal aborts first. */
export async function findRegistration(
  options: RegistrationOptions,
  signal: AbortSignal,
): Promise<FoundRegistration> {
  const { serviceWorker } = navigator as { serviceWorker?: ServiceWorkerContainer };
  if (serviceWorker === undefined) throw relayFailure('no-service-worker', false, whyNone());
  const found = await obtain(serviceWorker, options, signal);
  if (!location.href.startsWith(found.registration.scope)) {
    const message = `The page is out of the worker's scope, ${found.registration.scope}.`;
    throw relayFailure('no-service-worker', false, message);
  }
  await orAborted(signal, active(found.registration));
  return found;
}

function whyNone(): string {
  return isSecureContext
    ? 'This browser offers no service worker here.'
    : 'Service workers need a secure context: https, or localhost.';
}

async function obtain(
  container: ServiceWorkerContainer,
  { worker, scope, register }: RegistrationOptions,
  signal: AbortSignal,
): Promise<FoundRegistration> {
  const address = new URL(worker, document.baseURI);
  const wanted = new URL(scope ?? './', scope === undefined ? address : document.baseURI).href;
  if (register === false) {
    return { registration: await orAborted(signal, registered(container)), foreign: false };
  }
  const existing = await orAborted(signal, container.getRegistration(wanted));
  if (existing?.scope === wanted && !isScript(existing, address))
    return { registration: existing, foreign: true };
  const workbox = new Workbox(address.href, { scope: wanted });
  const registration = await orAborted(signal, refusable(workbox.register({ immediate: true })));
  if (registration === undefined) throw relayFailure('no-service-worker');
  return { registration, foreign: false };
}

/** Waits for the site's own registration. `ready` may never settle; the caller's bound ends the wait. */
async function registered(container: ServiceWorkerContainer): Promise<ServiceWorkerRegistration> {
  return (await container.getRegistration()) ?? container.ready;
}

async function refusable<T>(registering: Promise<T>): Promise<T> {
  try {
    return await registering;
  } catch (error) {
    throw relayFailure('no-service-worker', false, `The worker could not be registered: ${String(error)}`);
  }
}

function isScript({ active, waiting, installing }: ServiceWorkerRegistration, address: URL): boolean {
  const worker = active ?? waiting ?? installing;
  if (worker === null) return true;
  const { origin, pathname } = new URL(worker.scriptURL);
  return origin === address.origin && pathname === address.pathname;
}

/** Resolves once the registration has an active worker. */
function active(registration: ServiceWorkerRegistration): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (registration.active !== null) resolve();
      else for (const worker of [registration.installing, registration.waiting]) watch(worker);
    };
    const watch = (worker: ServiceWorker | null): void =>
      worker?.addEventListener('statechange', check, { once: true });
    registration.addEventListener('updatefound', check);
    check();
  });
}

function orAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(relayFailure('worker-unavailable', false));
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    promise.then(resolve, reject);
  });
}
