/** Our errors as pages see them: a `DOMException` itself, with own members that say more. */
import {
  type CauseRecord,
  ERROR_NAMES,
  type ErrorRecord,
  failure,
  type InputError,
  type Reason,
} from '../shared/errors.ts';
import type { Reply } from '../shared/protocol.ts';

/** The own members of every DOMException that this runtime rejects with (README, Errors). */
export interface RelayError extends DOMException {
  /** Stable; branch on this. */
  readonly reason: Reason;
  /** Could the tool's callback have begun? `false`: a retry is certainly safe. */
  readonly started: boolean;
  readonly executionId?: string;
  /** The tool's own error. */
  readonly cause?: CauseRecord;
  /** Of `invalid-input`: each part of the input that does not fit the schema. */
  readonly errors?: readonly InputError[];
}

/** Taken while the document lives: the window of a removed frame gives out none any more. */
const { DOMException } = window;

export function relayError(record: ErrorRecord): RelayError {
  const { reason, started, executionId, cause, errors, message } = record;
  const error = new DOMException(
    message || reason.replaceAll('-', ' '),
    ERROR_NAMES[reason] ?? 'UnknownError',
  );
  return Object.assign(
    error,
    { reason, started },
    executionId && { executionId },
    cause && { cause },
    errors && { errors },
  );
}

/** Shorthand for an error that never left this document. */
export function relayFailure(reason: Reason, started = false, message?: string): RelayError {
  return relayError(failure(reason, started, message));
}

/** What a reply brought. Throws its error. */
export function unwrap<T>(reply: Reply<T>): T {
  if (!reply.ok) throw relayError(reply.error);
  return reply.value;
}
