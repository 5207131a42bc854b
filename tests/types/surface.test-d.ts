// The public types have the specification's names, and take what it takes.
import { expectTypeOf, test } from 'vitest';
import {
  installModelContext,
  type ModelContext,
  type ModelContextExecuteToolOptions,
  type ModelContextGetToolOptions,
  type ModelContextRegisterToolOptions,
  type ModelContextTool,
  type ModelContextToolInvocation,
  type PendingExecutionHandle,
  type RegisteredTool,
  type RelayError,
  ToolActivatedEvent,
  type ToolActivatedEventInit,
  type ToolAnnotations,
  ToolCancelEvent,
  type ToolCancelEventInit,
  ToolChangeEvent,
  type ToolExecuteCallback,
  type ToolExecuteCallbackOptions,
} from '../../client/index.ts';

declare const context: ModelContext;

test('the methods of ModelContext', () => {
  expectTypeOf(installModelContext).returns.toEqualTypeOf<ModelContext>();
  expectTypeOf(context).toExtend<EventTarget>();
  expectTypeOf(context.registerTool).parameters.toEqualTypeOf<
    [tool: ModelContextTool, options?: ModelContextRegisterToolOptions | undefined]
  >();
  expectTypeOf(context.registerTool).returns.toEqualTypeOf<Promise<void>>();
  expectTypeOf(context.getTools).parameters.toEqualTypeOf<
    [options?: ModelContextGetToolOptions | undefined]
  >();
  expectTypeOf(context.getTools).returns.toEqualTypeOf<Promise<RegisteredTool[]>>();
  expectTypeOf(context.executeTool).parameters.toEqualTypeOf<
    [
      tool: RegisteredTool,
      input?: object | string | undefined,
      options?: ModelContextExecuteToolOptions | undefined,
    ]
  >();
  expectTypeOf(context.executeTool).returns.toEqualTypeOf<Promise<string | null>>();
  expectTypeOf(context.resumeTool).parameters.toEqualTypeOf<[token: string, callback: ToolExecuteCallback]>();
  expectTypeOf(context.getPendingExecutions).returns.toEqualTypeOf<Promise<PendingExecutionHandle[]>>();
});

test('a tool', () => {
  const annotations: ToolAnnotations = { readOnlyHint: true };
  const tool: ModelContextTool = {
    name: 'n',
    title: 't',
    description: 'd',
    inputSchema: { type: 'object' },
    annotations,
    execute: async (input, { signal, invocation }) => {
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(invocation).toEqualTypeOf<ModelContextToolInvocation>();
      expectTypeOf(invocation.requestToken).returns.toEqualTypeOf<Promise<string>>();
      return input;
    },
  };
  expectTypeOf(tool.execute).toEqualTypeOf<ToolExecuteCallback>();
  expectTypeOf<ToolExecuteCallbackOptions>().toHaveProperty('signal');
  void context.registerTool({ name: 'n', description: 'd', execute: () => 'sync' });
  void context.registerTool(tool, { signal: new AbortController().signal, exposedTo: ['https://a.example'] });
});

test('an entry of a listing', () => {
  expectTypeOf<RegisteredTool['window']>().toEqualTypeOf<Window | null>();
  expectTypeOf<RegisteredTool['inputSchema']>().toEqualTypeOf<object | undefined>();
  expectTypeOf<NonNullable<RegisteredTool['annotations']>>().toExtend<ToolAnnotations>();
  expectTypeOf<RegisteredTool['title']>().toEqualTypeOf<string>();
});

test('events', () => {
  expectTypeOf(
    new ToolActivatedEvent('toolactivated', { toolName: 'n', bubbles: true }).toolName,
  ).toBeString();
  expectTypeOf(new ToolCancelEvent('toolcancel').toolName).toBeString();
  expectTypeOf(new ToolChangeEvent('toolchange', { ready: false }).ready).toBeBoolean();
  expectTypeOf<ToolActivatedEventInit>().toExtend<EventInit>();
  expectTypeOf<ToolCancelEventInit>().toExtend<EventInit>();
  context.ontoolactivated = ({ toolName }) => void expectTypeOf(toolName).toBeString();
  context.ontoolchange = function ({ ready }) {
    expectTypeOf(ready).toBeBoolean();
    expectTypeOf(this).toEqualTypeOf<ModelContext>();
  };
  context.ontoolcancel = null;
});

test('errors', () => {
  const error = {} as RelayError;
  expectTypeOf(error).toExtend<DOMException>();
  expectTypeOf(error.started).toBeBoolean();
  if (error.reason === 'tool-failed') expectTypeOf(error.cause?.message).toEqualTypeOf<string | undefined>();
});

test('what must not compile', () => {
  const execute = () => 1;
  // @ts-expect-error: a name is required
  void context.registerTool({ description: 'd', execute });
  // @ts-expect-error: a description is required
  void context.registerTool({ name: 'n', execute });
  // @ts-expect-error: execute is required
  void context.registerTool({ name: 'n', description: 'd' });
  // @ts-expect-error: a schema is an object
  void context.registerTool({ name: 'n', description: 'd', execute, inputSchema: '{}' });
  // @ts-expect-error: there is no such hint
  void context.registerTool({ name: 'n', description: 'd', execute, annotations: { harmless: true } });
  // @ts-expect-error: a signal, not its controller
  void context.registerTool({ name: 'n', description: 'd', execute }, { signal: new AbortController() });
  // @ts-expect-error: a list of origins
  void context.registerTool({ name: 'n', description: 'd', execute }, { exposedTo: 'https://a.example' });
  // @ts-expect-error: there is no such scope
  void context.getTools({ scope: 'planet' });
  // @ts-expect-error: an entry, not a name
  void context.executeTool('n');
  // @ts-expect-error: the input is an object
  void context.executeTool({} as RegisteredTool, 7);
  // @ts-expect-error: a token is a text
  void context.resumeTool(null, execute);
  // @ts-expect-error: milliseconds are a number
  void ({} as ModelContextToolInvocation).requestToken({ lifetime: '60 s' });
  // @ts-expect-error: an attribute that is only read
  context.relay = {} as never;
  // @ts-expect-error: an attribute that is only read
  new ToolActivatedEvent('x').toolName = 'n';
  // @ts-expect-error: an event has a type
  new ToolCancelEvent();
  // @ts-expect-error: there is no such reason
  void (({} as RelayError).reason === 'bad-luck');
});
