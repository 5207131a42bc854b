/**
 * The worker that a site gets who has none: installs the relay and takes over at once. Imported into a site's own worker
 * (`importScripts`), it leaves that worker's life cycle alone.
 */
import { installRelay } from './index.ts';

declare const self: ServiceWorkerGlobalScope;

installRelay(self);

if (self.location.pathname.endsWith('/webmcp-relay-sw.js')) {
  self.addEventListener('install', () => void self.skipWaiting());
}
