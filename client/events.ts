/** The events of `ModelContext` (WebMCP, Events). */

/** Fired when tools of this tab, or readiness, changed. */
export class ToolChangeEvent extends Event {
  readonly ready: boolean;
  constructor(type: string, { ready = true, ...init }: EventInit & { ready?: boolean } = {}) {
    super(type, init);
    this.ready = ready;
  }
}

/** Fired at the target document before a callback runs. */
export class ToolActivatedEvent extends Event {
  readonly toolName: string;
  constructor(type: string, { toolName = '', ...init }: EventInit & { toolName?: string } = {}) {
    super(type, init);
    this.toolName = toolName;
  }
}

/** Fired at the target document when a running callback is cancelled. */
export class ToolCancelEvent extends Event {
  readonly toolName: string;
  constructor(type: string, { toolName = '', ...init }: EventInit & { toolName?: string } = {}) {
    super(type, init);
    this.toolName = toolName;
  }
}
