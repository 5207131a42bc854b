/**
 * The relay for pages: `installModelContext()` gives the document its `modelContext`, `withToken()` and `takeToken()` carry
 * a continuation token from one page to the next.
 */
import { ToolActivatedEvent, ToolCancelEvent, ToolChangeEvent } from './events.ts';
import { expose, OURS } from './interfaces.ts';
import { ModelContextToolInvocation } from './invocation.ts';
import { ModelContext } from './model-context.ts';
import type { RelayOptions } from './relay.ts';

export type { Bounds, Sizes } from '../shared/bounds.ts';
export type { CauseRecord, InputError, Reason } from '../shared/errors.ts';
export type { Snapshot } from '../shared/protocol.ts';
export type { ToolAnnotations } from '../shared/tool.ts';
export type { RelayError } from './errors.ts';
export {
  type EventInterface,
  ToolActivatedEvent,
  type ToolActivatedEventInit,
  ToolCancelEvent,
  type ToolCancelEventInit,
  ToolChangeEvent,
  type ToolChangeEventInit,
} from './events.ts';
export {
  ModelContextToolInvocation,
  type TokenRequestOptions,
  type ToolExecuteCallback,
  type ToolExecuteCallbackOptions,
} from './invocation.ts';
export type {
  ModelContext,
  ModelContextExecuteToolOptions,
  ModelContextGetToolOptions,
  ModelContextRegisterToolOptions,
  Observation,
  ObservedDocument,
  RegisteredTool,
  Scope,
} from './model-context.ts';
export type { PendingExecutionHandle } from './pending.ts';
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
  const modelContext = new ModelContext(OURS, options);
  expose({ ModelContext, ModelContextToolInvocation, ToolActivatedEvent, ToolCancelEvent, ToolChangeEvent });
  const unseen = new WeakMap<object, ModelContext>();
  const attribute = {
    get modelContext(): ModelContext {
      const self = this as object;
      // Throws for what is no document.
      const view: Window | null = Reflect.get(Document.prototype, 'defaultView', self);
      if (self === document) return modelContext;
      // In another window its own script answers; in none, nobody can call it.
      if (view) return (view.document as Document & { modelContext: ModelContext }).modelContext;
      const inactive = unseen.get(self) ?? new ModelContext(OURS);
      unseen.set(self, inactive);
      return inactive;
    },
  };
  Object.defineProperties(Document.prototype, Object.getOwnPropertyDescriptors(attribute));
  return modelContext;
}
