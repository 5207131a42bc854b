/**
 * Inputs and results as text: the one mapping, whether a call is direct, relayed or resumed (`semantics.md`, Values).
 */
import { isLonger } from '../shared/bounds.ts';
import { type ErrorRecord, failure } from '../shared/errors.ts';
import { check, objectText } from './check.ts';

/**
 * An agent's input → JSON text of an object. An omitted one is `{}`; a string must be such a text itself.
 * Throws a `TypeError` for anything else, and whatever `JSON.stringify` throws.
 */
export function inputText(input: unknown = {}): string {
  if (typeof input !== 'string') return objectText(input, 'The input');
  check(isObjectText(input), 'The input must be an object, or the JSON text of one.');
  return input;
}

function isObjectText(text: string): boolean {
  try {
    return typeof (JSON.parse(text) ?? '') === 'object';
  } catch {
    return false;
  }
}

/** A tool's result → its text, `null` for `undefined`; or the record of why it cannot have one. */
export function resultText(value: unknown, limit: number): { text: string | null } | ErrorRecord {
  if (value === undefined) return { text: null };
  try {
    const text = typeof value === 'string' ? value : JSON.stringify(value, bigIntAsText);
    if (text === undefined) return unserialisable(`A ${typeof value} has no JSON text.`);
    if (isLonger(text, limit)) return tooLarge('result', text, limit);
    return { text: typeof value === 'bigint' ? String(value) : text };
  } catch (thrown) {
    const path = pathOfOffender(value);
    return unserialisable(`The result cannot be written as JSON${path && ` at ${path}`}: ${String(thrown)}`);
  }
}

export function tooLarge(what: string, text: string, limit: number): ErrorRecord {
  const message = `The ${what} has ${text.length} characters; ${limit} bytes are allowed.`;
  return failure('too-large', what === 'result', message);
}

function unserialisable(message: string): ErrorRecord {
  return failure('not-serialisable', true, message);
}

function bigIntAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

/** Where `JSON.stringify` fails: the path of the first member that throws or closes a cycle; `''` if it is not found. */
function pathOfOffender(value: unknown, path = '$', ancestors: unknown[] = []): string {
  if (typeof value !== 'object' || value === null) return '';
  if (ancestors.includes(value)) return path;
  for (const key of Object.keys(value)) {
    const inner = `${path}.${key}`;
    try {
      const member = Reflect.get(value, key);
      member?.toJSON?.();
      const found = pathOfOffender(member, inner, [...ancestors, value]);
      if (found) return found;
    } catch {
      return inner;
    }
  }
  return '';
}
