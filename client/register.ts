/**
 * Registers the worker: on a first visit, and never again. A file of its own, which no other page loads.
 * The one place where a page meets workbox-window.
 */
import { Workbox } from 'workbox-window';

/** Resolves with the registration; rejects as `register()` of the browser does. */
export function registerWorker(
  script: string,
  scope: string,
): Promise<ServiceWorkerRegistration | undefined> {
  return new Workbox(script, { scope }).register({ immediate: true });
}
