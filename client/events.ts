/** The events of `ModelContext` (WebMCP, Events; the tool-stability proposal). */

/** WebMCP, dictionaries ToolActivatedEventInit and ToolCancelEventInit. */
export interface ToolActivatedEventInit extends EventInit {
  toolName?: string;
}
export type ToolCancelEventInit = ToolActivatedEventInit;

export interface ToolChangeEventInit extends EventInit {
  ready?: boolean;
}

/** Fired at the target document before a callback runs. */
export interface ToolActivatedEvent extends Event {
  readonly toolName: string;
}

/** Fired at the target document when a running callback is cancelled. */
export interface ToolCancelEvent extends Event {
  readonly toolName: string;
}

/** Fired when tools of this tab, or of the group once listed, changed, or the tab's readiness did. */
export interface ToolChangeEvent extends Event {
  readonly ready: boolean;
}

export interface EventInterface<SomeEvent extends Event, Init extends EventInit> {
  new (type: string, init?: Init): SomeEvent;
  readonly prototype: SomeEvent;
}

/** An event with one attribute more, which its constructor converts from the member of that name. */
function eventWith(attribute: string, convert: (member: unknown) => unknown): never {
  return class extends Event {
    readonly #value: unknown;
    constructor(_type: string, init: EventInit = {}) {
      // As many as were given: without a type it is a TypeError.
      // biome-ignore lint/complexity/noArguments: of a rest parameter the constructor's length would not tell.
      super(...(arguments as unknown as [string]));
      this.#value = convert(Reflect.get(Object(init), attribute));
    }
    get [attribute](): unknown {
      return this.#value;
    }
  } as never;
}

const text = (member: unknown = ''): string => `${member}`;

export const ToolActivatedEvent: EventInterface<ToolActivatedEvent, ToolActivatedEventInit> = eventWith(
  'toolName',
  text,
);
export const ToolCancelEvent: EventInterface<ToolCancelEvent, ToolCancelEventInit> = eventWith(
  'toolName',
  text,
);
export const ToolChangeEvent: EventInterface<ToolChangeEvent, ToolChangeEventInit> = eventWith(
  'ready',
  (member = true) => !!member,
);
