/**
 * Inputs and results as text: the one mapping, whether a call is direct, relayed or resumed (`semantics.md`, Values).
 */
import { isLonger } from '../shared/bounds.ts';
import { type ErrorRecord, failure } from '../shared/errors.ts';

/**
 * An agent's input → JSON text of an object. An omitted one is `{}`; a string must be such a text itself.
 * Throws a `TypeError` for anything else, and whatever `JSON.stringify` throws.
 */
export function inputText(input: unknown): string {
  if (input === undefined) return '{}';
  if (typeof input === 'string') return checkedText(input);
  if (typeof input !== 'object' || input === null) throw new TypeError('The input must be an object.');
  return objectText(input, 'The input');
}

/** JSON text of an object. Throws a `TypeError` if it would be that of anything else, and what `JSON.stringify` throws. */
export function objectText(value: object, what: string): string {
  const text = JSON.stringify(value);
  if (!/^[[{]/.test(text)) throw new TypeError(`${what} must be an object in JSON too.`);
  return text;
}

function checkedText(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null) {
    throw new TypeError('The input must be an object, or the JSON text of one.');
  }
  return text;
}

/** A tool's result → text, `null` for `undefined`; or the record of why it cannot be one. */
export function resultText(value: unknown, limit: number): { text: string | null } | { error: ErrorRecord } {
  if (value === undefined) return { text: null };
  try {
    const text = typeof value === 'string' ? value : JSON.stringify(value, bigIntAsText);
    if (text === undefined) return { error: unserialisable(`A ${typeof value} has no JSON text.`) };
    if (isLonger(text, limit)) return { error: tooLarge('result', text, limit) };
    return { text: typeof value === 'bigint' ? String(value) : text };
  } catch (thrown) {
    const path = pathOfOffender(value);
    const where = path === null ? '' : ` at ${path}`;
    return { error: unserialisable(`The result cannot be written as JSON${where}: ${String(thrown)}`) };
  }
}

export function tooLarge(what: string, text: string, limit: number): ErrorRecord {
  return failure(
    'too-large',
    what === 'result',
    `The ${what} has ${text.length} characters; ${limit} bytes are allowed.`,
  );
}

function unserialisable(message: string): ErrorRecord {
  return failure('not-serialisable', true, message);
}

function bigIntAsText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

/** Where `JSON.stringify` fails: the path of the first member that throws or closes a cycle; `null` if it is not found. */
function pathOfOffender(value: unknown, path = '$', ancestors: unknown[] = []): string | null {
  if (typeof value !== 'object' || value === null) return null;
  if (ancestors.includes(value)) return path;
  for (const key of Object.keys(value)) {
    const inner = `${path}.${key}`;
    try {
      const member = Reflect.get(value, key);
      member?.toJSON?.();
      const found = pathOfOffender(member, inner, [...ancestors, value]);
      if (found !== null) return found;
    } catch {
      return inner;
    }
  }
  return null;
}
