/**
 * Errors as data: what can go wrong, what each is called, and how it crosses from one document to another.
 *
 * `reason` is stable and is what code should branch on; the `name` is the specification's where it has one.
 */
import type { ExecutionId } from './ids.ts';

/** Each reason with the `name` of the DOMException that carries it (README, Errors). */
export const ERROR_NAMES = {
  'duplicate-name': 'InvalidStateError',
  'invalid-tool': 'InvalidStateError',
  'inactive-document': 'InvalidStateError',
  'not-running': 'InvalidStateError',
  'token-redeemed': 'InvalidStateError',
  'token-unknown': 'NotFoundError',
  'token-expired': 'TimeoutError',
  'document-unresponsive': 'TimeoutError',
  'worker-unavailable': 'TimeoutError',
  aborted: 'AbortError',
  'token-void': 'AbortError',
  'other-group': 'NotAllowedError',
  policy: 'NotAllowedError',
  'invalid-origin': 'SecurityError',
  'no-service-worker': 'NotSupportedError',
  'opaque-origin': 'NotSupportedError',
  'version-mismatch': 'NotSupportedError',
  'worker-conflict': 'NotSupportedError',
  'invalid-input': 'DataError',
  'not-serialisable': 'DataCloneError',
  'too-large': 'QuotaExceededError',
  'too-many': 'QuotaExceededError',
  'storage-full': 'QuotaExceededError',
  'tool-failed': 'UnknownError',
  'tool-unavailable': 'UnknownError',
  navigated: 'UnknownError',
  'document-lost': 'UnknownError',
  'storage-unavailable': 'UnknownError',
} as const;

export type Reason = keyof typeof ERROR_NAMES;

/** What a tool threw, as far as it can cross: no class, no stack, no extras. */
export interface CauseRecord {
  name: string;
  message: string;
  code?: string;
  cause?: CauseRecord;
}

/** What is wrong with one part of an input. */
export interface InputError {
  /** JSON Pointer into the input: `/items/0/amount`, `''` for the input itself; of a missing member, where it should be. */
  path: string;
  message: string;
}

/** One of our errors on its way to whoever awaits it. */
export interface ErrorRecord {
  reason: Reason;
  message: string;
  /** Could the tool's callback have begun? `false` only where a retry is certainly safe. */
  started: boolean;
  executionId?: ExecutionId;
  cause?: CauseRecord;
  /** Of an input: what in it does not fit the schema. */
  errors?: InputError[];
}

/** The record of one of our own errors. Without a message it says what its reason says. */
export function failure(reason: Reason, started: boolean, message = ''): ErrorRecord {
  return { reason, started, message };
}

const CAUSE_DEPTH = 3;
const TEXT_LIMIT = 4096;

/** Whatever was thrown → a record that is safe to send. Never throws, whatever the value does when it is read. */
export function causeOf(thrown: unknown, depth = CAUSE_DEPTH): CauseRecord {
  if (typeof thrown !== 'object' || thrown === null) return { name: 'Error', message: asText(thrown) };
  const record: CauseRecord = {
    name: asText(read(thrown, 'name') ?? 'Error'),
    message: asText(read(thrown, 'message') ?? ''),
  };
  const code = read(thrown, 'code');
  if (typeof code === 'string') record.code = asText(code);
  const cause = read(thrown, 'cause');
  if (cause !== undefined && depth > 1) record.cause = causeOf(cause, depth - 1);
  return record;
}

function read(object: object, member: string): unknown {
  try {
    return Reflect.get(object, member);
  } catch {
    return undefined;
  }
}

/** As `String()` has it; `''` where that throws. */
export function asText(value: unknown): string {
  try {
    return String(value).slice(0, TEXT_LIMIT);
  } catch {
    return '';
  }
}
