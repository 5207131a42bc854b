/**
 * Sealing: what is stored cannot be read without a key that is not stored (`decisions/06`).
 *
 * One primitive, AES-GCM with a random nonce. Three keys use it: an execution's own, one derived from a continuation
 * token, and a tab's secret.
 */
import { fromBase64Url, toBase64Url } from './ids.ts';

/** Ciphertext with its nonce. */
export interface Sealed {
  iv: Uint8Array<ArrayBuffer>;
  box: ArrayBuffer;
}

/** Text → sealed. `secret` is 256 bits, base64url. Inverse of {@link unseal}. */
export async function seal(text: string, secret: string): Promise<Sealed> {
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const key = await importKey(secret, 'encrypt');
  return {
    iv,
    box: await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, new TextEncoder().encode(text)),
  };
}

/** Sealed → text. Rejects with an `OperationError` if the key is not the one that it was sealed with. */
export async function unseal(sealed: Sealed, secret: string): Promise<string> {
  const key = await importKey(secret, 'decrypt');
  return new TextDecoder().decode(
    await crypto.subtle.decrypt({ name: 'AES-GCM', iv: sealed.iv }, key, sealed.box),
  );
}

function importKey(secret: string, use: 'encrypt' | 'decrypt'): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', fromBase64Url(secret), 'AES-GCM', false, [use]);
}

/** What the worker knows a token by: it finds the record, and redeems nothing. */
export function digestOf(token: string): Promise<string> {
  return hash('webmcp-relay token digest ', token);
}

/** The secret that a token opens; it cannot be had from the digest. */
export function secretOf(token: string): Promise<string> {
  return hash('webmcp-relay token secret ', token);
}

/** A token is 256 random bits, so one hash, told apart by its purpose, is a sound derivation. */
async function hash(purpose: string, token: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(purpose + token));
  return toBase64Url(new Uint8Array(digest));
}
