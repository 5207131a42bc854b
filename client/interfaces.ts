/**
 * Our classes as pages would see interfaces of the browser's own (Web IDL).
 *
 * Kept: what is on the global, and on prototypes, looks as it would if the browser had put it there.
 */
import { check } from './check.ts';

/** Known to us alone: it constructs what pages cannot. */
export const OURS = Symbol();

/** Throws unless we are the ones who construct. */
export function checkOurs(key: unknown): void {
  check(key === OURS, 'Illegal constructor');
}

/** Puts interfaces on the global, under their names. */
export function expose(interfaces: Record<string, { readonly prototype: object }>): void {
  for (const [name, ours] of Object.entries(interfaces)) {
    const { prototype } = ours;
    const { constructor: _, ...members } = Object.getOwnPropertyDescriptors(prototype);
    for (const member of Object.values(members)) member.enumerable = true;
    const named = { value: name, configurable: true };
    Object.defineProperties(prototype, { ...members, [Symbol.toStringTag]: named });
    // Minified, a class has lost its name.
    Object.defineProperty(ours, 'name', named);
    Object.defineProperty(window, name, { value: ours, writable: true, configurable: true });
  }
}
