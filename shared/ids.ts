/**
 * Names for the things that both sides speak of, and where fresh ones come from.
 *
 * Every id is an unguessable random string, so that an id names one thing across
 * worker generations, and a stray or forged one names nothing.
 */

/** One page load. */
export type DocumentId = string;
/** A top-level window with its frames, through all its navigations. */
export type TabId = string;
/** Tabs that stand in for a browsing context group. */
export type GroupId = string;
/** One `executeTool()`, seen from the agent. */
export type ExecutionId = string;
/** One run of one callback in one document. */
export type ActivationId = string;
/** One call of `registerTool()`. */
export type RegistrationId = string;
/** One start of the worker. */
export type Generation = string;
/** SHA-256 of a continuation token, base64url: what the worker knows a token by. */
export type TokenDigest = string;

/** A fresh id: 132 random bits, base64url. */
export function freshId(): string {
  return random(22);
}

/** A fresh secret (a continuation token, an execution's key, a tab's secret): 258 random bits, base64url, of which 256 count. */
export function freshSecret(): string {
  return random(43);
}

let supply = '';

/** Random base64url. The browser takes as long for few bits as for many. */
function random(length: number): string {
  if (supply.length < length) supply = toBase64Url(crypto.getRandomValues(new Uint8Array(1_536)));
  const text = supply.slice(0, length);
  supply = supply.slice(length);
  return text;
}

/** Bytes → base64url without padding. Inverse of {@link fromBase64Url}. */
export function toBase64Url(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** Base64url → bytes. Throws an `InvalidCharacterError` for anything else. Inverse of {@link toBase64Url}. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
