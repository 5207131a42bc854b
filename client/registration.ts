/**
 * The service worker's registration, found at once where the site has been visited before; anything else is the matter of
 * `register`, for which such a page loads nothing. Until it is found, the worker that controls the page may stand for it.
 */
export interface RegistrationOptions {
  /** Address of the worker's script, against the document's. */
  worker: string | URL;
  /** Default: the folder of the script. */
  scope?: string | undefined;
  /** `false`: the site registers its own worker, which includes the relay. */
  register?: boolean | undefined;
}

/**
 * Resolves with one that has an active worker, which may be never. Rejects with an error whose message says why there can be
 * none.
 */
export async function findRegistration(options: RegistrationOptions): Promise<ServiceWorkerRegistration> {
  const { serviceWorker } = navigator as { serviceWorker?: ServiceWorkerContainer };
  const found = await serviceWorker?.getRegistration();
  if (found?.active && (options.register === false || found.scope === scopeOf(options))) return found;
  const { obtainRegistration } = await import('./more.ts');
  return obtainRegistration(options);
}

/** The address of the worker that is to be registered. */
export function addressOf({ worker }: RegistrationOptions): URL {
  return new URL(worker, document.baseURI);
}

/** The address below which the worker is to serve. */
export function scopeOf(options: RegistrationOptions): string {
  const { scope } = options;
  return (scope === undefined ? new URL('.', addressOf(options)) : new URL(scope, document.baseURI)).href;
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
