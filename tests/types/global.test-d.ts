// `webmcp-relay/global` declares what the relay puts on the global.
import { expectTypeOf, test } from 'vitest';
import type {} from '../../client/global.ts';
import type * as relay from '../../client/index.ts';

test('document.modelContext', () => {
  expectTypeOf<Document['modelContext']>().toEqualTypeOf<relay.ModelContext>();
  // @ts-expect-error: an attribute that is only read
  document.modelContext = {} as relay.ModelContext;
});

test('the interfaces', () => {
  const value: unknown = document.modelContext;
  if (value instanceof ModelContext) expectTypeOf(value.getTools).toBeFunction();
  if (value instanceof ModelContextToolInvocation) expectTypeOf(value.requestToken).toBeFunction();
  if (value instanceof ToolChangeEvent) expectTypeOf(value.ready).toBeBoolean();
  expectTypeOf(new ToolActivatedEvent('toolactivated').toolName).toBeString();
  expectTypeOf(new ToolCancelEvent('toolcancel').toolName).toBeString();
  expectTypeOf<ModelContext>().toExtend<relay.ModelContext>();
  // @ts-expect-error: pages do not construct it
  new ModelContext();
  // @ts-expect-error: pages do not construct it
  new ModelContextToolInvocation();
});
