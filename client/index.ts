/**
 * The relay for pages: `installModelContext()` gives the document its `modelContext`, `withToken()` and `takeToken()` carry
 * a continuation token from one page to the next.
 */
import { ModelContext } from './model-context.ts';
import type { RelayOptions } from './relay.ts';

export type { Bounds, Sizes } from '../shared/bounds.ts';
export type { CauseRecord, Reason } from '../shared/errors.ts';
export type { Snapshot } from '../shared/protocol.ts';
export type { ToolAnnotations } from '../shared/tool.ts';
export type { PendingExecutionHandle } from './calls.ts';
export type { RelayError } from './errors.ts';
export { ToolActivatedEvent, ToolCancelEvent, ToolChangeEvent } from './events.ts';
export {
  ModelContextToolInvocation,
  type TokenRequestOptions,
  type ToolExecuteCallback,
  type ToolExecuteCallbackOptions,
} from './invocation.ts';
export type {
  ExecuteToolOptions,
  GetToolsOptions,
  ModelContext,
  Observation,
  ObservedDocument,
  RegisteredTool,
  RegisterToolOptions,
  Scope,
} from './model-context.ts';
export type { RelayOptions, RelayStatus } from './relay.ts';
export { takeToken, withToken } from './token.ts';
export type { ModelContextTool } from './tools.ts';

/**
 * Installs `document.modelContext` and returns it; a second call returns what the first installed. Registers the worker, or
 * finds the site's own, in the background: `modelContext.relay` says how that went. Throws nothing: a page never breaks
 * because the relay could not start.
 */
export function installModelContext(options: RelayOptions = {}): ModelContext {
  const present = (document as { modelContext?: ModelContext }).modelContext;
  if (present !== undefined) return present;
  const modelContext = new ModelContext(options);
  Object.defineProperty(Document.prototype, 'modelContext', {
    get(this: Document) {
      return this === document ? modelContext : undefined;
    },
    configurable: true,
    enumerable: true,
  });
  return modelContext;
}
