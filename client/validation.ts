/**
 * Does a call's input fit its tool's schema? Decided before the callback runs, by a validator in a file of its own.
 *
 * Kept: a page without schemas never loads it; a call waits for it within the bound; where it cannot be had, or cannot apply
 * the schema, the callback runs all the same, and the console says so once.
 */
import type { ErrorRecord } from '../shared/errors.ts';
import { within } from './task.ts';

export interface Validation {
  /** There is a schema: loads the validator. */
  prepare(): void;
  /** Why the input is refused; nothing if it is not. Never rejects. */
  refusalOf(schema: string, input: string): Promise<ErrorRecord | undefined>;
}

export function createValidation(bound: number): Validation {
  let validator: typeof import('./validator.ts') | undefined;
  let loading: Promise<void> | undefined;
  let warned = false;

  async function load(): Promise<void> {
    // Relative to this script, whatever kind of script it is.
    validator = await import('./validator.ts');
  }

  return {
    prepare() {
      loading ??= within(bound, load());
      loading.catch(() => {});
    },
    async refusalOf(schema, input) {
      if (!schema || !loading) return undefined;
      try {
        await loading;
        if (validator) return validator.refusalOf(schema, input);
        throw new Error('The validator does not load.');
      } catch (thrown) {
        if (!warned) console.warn('webmcp-relay: an input was not validated.', thrown);
        warned = true;
        return undefined;
      }
    },
  };
}
