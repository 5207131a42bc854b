/**
 * What the relay puts on the global, declared for TypeScript. For pages that want it: `import type {} from
 * 'webmcp-relay/global'`.
 */
import type {
  ToolActivatedEvent as Activated,
  ToolCancelEvent as Cancel,
  ToolChangeEvent as Change,
  EventInterface,
  ToolActivatedEventInit,
  ToolCancelEventInit,
  ToolChangeEventInit,
} from './events.ts';
import type { ModelContextToolInvocation as Invocation } from './invocation.ts';
import type { ModelContext as Context } from './model-context.ts';

/** An interface that pages cannot construct. */
type Unconstructible<T> = (abstract new (...args: never) => T) & { readonly prototype: T };

declare global {
  interface Document {
    readonly modelContext: Context;
  }
  interface ModelContext extends Context {}
  interface ModelContextToolInvocation extends Invocation {}
  interface ToolActivatedEvent extends Activated {}
  interface ToolCancelEvent extends Cancel {}
  interface ToolChangeEvent extends Change {}

  var ModelContext: Unconstructible<ModelContext>;
  var ModelContextToolInvocation: Unconstructible<ModelContextToolInvocation>;
  var ToolActivatedEvent: EventInterface<ToolActivatedEvent, ToolActivatedEventInit>;
  var ToolCancelEvent: EventInterface<ToolCancelEvent, ToolCancelEventInit>;
  var ToolChangeEvent: EventInterface<ToolChangeEvent, ToolChangeEventInit>;
}
