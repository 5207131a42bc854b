/**
 * The service worker's registration: makes it, or finds the site's own, and waits until a worker of it is active. Until it is
 * found, the worker that controls the page may stand for it.
 *
 * Kept: a registration of the site's own is never replaced. Waits are bounded by whoever asks.
 */
import { relayFailure } from './errors.ts';

export interface RegistrationOptions {
  /** Address of the worker's script, against the document's. */
  worker: string | URL;
  /** Default: the folder of the script. */
  scope?: string | undefined;
  /** `false`: the site registers its own worker, which includes the relay. */
  register?: boolean | undefined;
}

/**
 * Resolves once the registration has an active worker, which may be never. Rejects with a RelayError, `no-service-worker`, where
 * there can be none.
 */
export async function findRegistration(options: RegistrationOptions): Promise<ServiceWorkerRegistration> {
  const { serviceWorker } = navigator as { serviceWorker?: ServiceWorkerContainer };
  if (serviceWorker === undefined) throw relayFailure('no-service-worker', false, whyNone());
  return whenActive(await obtain(serviceWorker, options));
}

function whyNone(): string {
  return isSecureContext ? 'There is no service worker here.' : 'Service workers need https, or localhost.';
}

/** The address of the worker that is to be registered. */
export function addressOf({ worker }: RegistrationOptions): URL {
  return new URL(worker, document.baseURI);
}

/**
 * The worker that controls the page, if it is the one meant: known at once, while finding the registration takes
 * milliseconds on every page.
 */
export function controllerOf(options: RegistrationOptions): ServiceWorker | null {
  try {
    const { controller } = navigator.serviceWorker;
    const isMeant = options.register === false || controller?.scriptURL === addressOf(options).href;
    return isMeant ? controller : null;
  } catch {
    // There is none, or a sandboxed frame may not even look.
    return null;
  }
}

async function obtain(
  container: ServiceWorkerContainer,
  options: RegistrationOptions,
): Promise<ServiceWorkerRegistration> {
  const registration = await (options.register === false ? findOwn(container) : register(container, options));
  if (location.href.startsWith(registration.scope)) return registration;
  throw relayFailure(
    'no-service-worker',
    false,
    `The page is out of the worker's scope, ${registration.scope}.`,
  );
}

/** The site's own registration. `ready` may never settle; the caller's bound ends the wait. */
async function findOwn(container: ServiceWorkerContainer): Promise<ServiceWorkerRegistration> {
  return (await container.getRegistration()) ?? container.ready;
}

async function register(
  container: ServiceWorkerContainer,
  options: RegistrationOptions,
): Promise<ServiceWorkerRegistration> {
  const { href } = addressOf(options);
  const scope = new URL(options.scope ?? '.', options.scope === undefined ? href : document.baseURI).href;
  try {
    const existing = await container.getRegistration(scope);
    // Another worker at our scope stays: it serves us if it includes the relay. The browser itself keeps ours up to date.
    if (existing?.scope === scope && existing.active) return existing;
    const { registerWorker } = await import('./register.ts');
    return (await registerWorker(href, scope)) as ServiceWorkerRegistration;
  } catch (error) {
    throw relayFailure('no-service-worker', false, `The worker could not be registered: ${error}`);
  }
}

function whenActive(registration: ServiceWorkerRegistration): Promise<ServiceWorkerRegistration> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (registration.active !== null) resolve(registration);
      const next = registration.installing ?? registration.waiting;
      next?.addEventListener('statechange', check, { once: true });
    };
    registration.addEventListener('updatefound', check);
    check();
  });
}
