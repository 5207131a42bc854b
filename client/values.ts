/**
 * Inputs and results as text: the one mapping, whether a call is direct, relayed or resumed (README, Values).
 */
import { isLonger } from '../shared/bounds.ts';
import { asText, type ErrorRecord, failure } from '../shared/errors.ts';
import { check, checkObject, objectText } from './check.ts';

/**
 * An agent's input → JSON text of an object. A string must be such a text itself.
 * Throws a `TypeError` for anything else, and whatever `JSON.stringify` throws.
 */
export function inputText(input: unknown): string {
  if (typeof input !== 'string') return objectText(input, 'The input');
  checkObject(parsed(input), 'The input, read as JSON,');
  return input;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A tool's result → its text, `null` for `undefined`; or the record of why it cannot have one. */
export function resultText(value: unknown, limit: number): { text: string | null } | ErrorRecord {
  if (value === undefined) return { text: null };
  try {
    const plain = bigIntAsText('', value);
    const text = typeof plain === 'string' ? plain : JSON.stringify(plain, bigIntAsText);
    check(text !== undefined, `A ${typeof value} has no JSON text.`);
    if (isLonger(text, limit)) return tooLarge('result', limit);
    return { text };
  } catch (thrown) {
    const path = pathOfOffender(value);
    const message = `The result cannot be JSON${path && ` at ${path}`}: ${asText(thrown)}`;
    return failure('not-serialisable', true, message);
  }
}

export function tooLarge(what: string, limit: number): ErrorRecord {
  return failure('too-large', what === 'result', `The ${what} is longer than ${limit} bytes.`);
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
