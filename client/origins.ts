/** Origins: our own, and those that pages name, for whom a tool is or whose tools they want. */
import { relayFailure } from './errors.ts';

/** Our own; `null` as text where it is opaque. */
export const OWN_ORIGIN = globalThis.origin;

/**
 * Did the site ask for `document.domain`, by which a document takes another origin? Chromium then refuses WebMCP. Elsewhere
 * every page may do so unless its site says otherwise, and nobody would be served.
 */
export const MAY_CHANGE_ORIGIN =
  'userAgentData' in navigator && (window as { originAgentCluster?: boolean }).originAgentCluster === false;

/** The origin of an address, `null` as text for an opaque one and for what is no address. */
export function originOf(address: string): string {
  // Nearly always, and without the work of reading an address.
  if (address === OWN_ORIGIN) return address;
  return URL.canParse(address) ? new URL(address).origin : 'null';
}

/** Secure Contexts, potentially trustworthy, as far as script can tell. */
const TRUSTWORTHY = /^(http|ws)(s:|:\/\/((.+\.)?localhost|127(\.\d+){3}|\[::1])(:\d+)?$)/;

/** Throws a `SecurityError` unless each of them is the address of a trustworthy origin. */
export function checkTrustworthy(addresses: string[]): void {
  for (const address of addresses) {
    if (!TRUSTWORTHY.test(originOf(address))) throw relayFailure('invalid-origin', false, address);
  }
}
