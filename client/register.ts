/**
 * Makes the service worker's registration, or finds the site's own where it takes longer, and waits until a worker of it is
 * active. Needed on a first visit, and by a page that cannot be served, and so a part of `more`. The one place where a page
 * meets workbox-window.
 *
 * Kept: a registration of the site's own is never replaced. Waits are bounded by whoever asks.
 */
import { Workbox } from 'workbox-window';
import { addressOf, type RegistrationOptions, scopeOf } from './registration.ts';

/**
 * Resolves once the registration has an active worker, which may be never. Rejects with an error whose message says why there
 * can be none.
 */
export async function obtainRegistration(options: RegistrationOptions): Promise<ServiceWorkerRegistration> {
  const { serviceWorker } = navigator as { serviceWorker?: ServiceWorkerContainer };
  if (serviceWorker === undefined) throw new Error(whyNone());
  const registration = await (options.register === false ? findOwn : register)(serviceWorker, options);
  if (location.href.startsWith(registration.scope)) return whenActive(registration);
  throw new Error(`The page is out of the worker's scope, ${registration.scope}.`);
}

function whyNone(): string {
  return isSecureContext ? 'There is no service worker here.' : 'Service workers need https, or localhost.';
}

/** The site's own. `ready` may never settle; the caller's bound ends the wait. */
async function findOwn(container: ServiceWorkerContainer): Promise<ServiceWorkerRegistration> {
  return (await container.getRegistration()) ?? container.ready;
}

async function register(
  container: ServiceWorkerContainer,
  options: RegistrationOptions,
): Promise<ServiceWorkerRegistration> {
  const scope = scopeOf(options);
  try {
    const existing = await container.getRegistration(scope);
    // Another worker at our scope stays: it serves us if it includes the relay. The browser itself keeps ours up to date.
    if (existing?.scope === scope && existing.active) return existing;
    const workbox = new Workbox(addressOf(options).href, { scope });
    return (await workbox.register({ immediate: true })) as ServiceWorkerRegistration;
  } catch (error) {
    throw new Error(`The worker could not be registered: ${error}`);
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
