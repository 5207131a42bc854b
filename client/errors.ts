/** Our errors as pages see them: a `DOMException` itself, with own members that say more. */
import { type CauseRecord, ERROR_NAMES, type ErrorRecord, failure, type Reason } from '../shared/errors.ts';

/** The own members of every DOMException that this runtime rejects with (`semantics.md`, Errors). */
export interface RelayError extends DOMException {
  /** Stable; branch on this. */
  readonly reason: Reason;
  /** Could the tool's callback have begun? `false`: a retry is certainly safe. */
  readonly started: boolean;
  readonly executionId?: string;
  /** The tool's own error. */
  readonly cause?: CauseRecord;
}

/** What a reason does not say by itself. */
const MESSAGES: Partial<Record<Reason, string>> = {
  'not-running': 'The callback has settled, or its document went away.',
  'token-void': 'The execution of the token was cancelled or failed.',
  'other-group': 'The token belongs to another browsing context group.',
  'version-mismatch': 'Page and worker are of versions that do not fit: reload the page.',
  'tool-unavailable': 'The tool, or its document, is gone.',
  navigated: 'The document navigated away with no token outstanding.',
  'document-lost': 'The document is gone without a word.',
};

export function relayError(record: ErrorRecord): RelayError {
  const { reason, started, executionId, cause, message } = record;
  const error = new DOMException(
    message || MESSAGES[reason] || reason,
    ERROR_NAMES[reason] ?? 'UnknownError',
  );
  for (const [member, value] of Object.entries({ reason, started, executionId, cause })) {
    if (value !== undefined)
      Object.defineProperty(error, member, { value, enumerable: true, configurable: true });
  }
  return error as RelayError;
}

/** Shorthand for an error that never left this document. */
export function relayFailure(reason: Reason, started = false, message?: string): RelayError {
  return relayError(failure(reason, started, message));
}
