/**
 * The callbacks that run in this document, whoever called for them.
 *
 * Kept: I3, an activation id begins at most once here, however often it is commanded; an activation whose document goes
 * away is over for good, even if the document returns; an end is kept until whoever must have it has it.
 */
import type { Sizes } from '../shared/bounds.ts';
import { causeOf, type ErrorRecord, failure } from '../shared/errors.ts';
import type { ActivationId } from '../shared/ids.ts';
import type { AnnouncedActivation, End, Grant, KeyedCall, Reply } from '../shared/protocol.ts';
import type { Connection } from './connection.ts';
import { ModelContextToolInvocation, type ToolExecuteCallback } from './invocation.ts';
import type { Lifetime } from './lifetime.ts';
import { nextTask, remember } from './task.ts';
import { resultText } from './values.ts';
import type { LocalCaller } from './window-tree.ts';

/** What an activation is, before it begins. A first one has the id of its execution. */
export interface ActivationOrder extends KeyedCall {
  readonly id: ActivationId;
  /** The caller in this tab; `null` if the worker commanded it. */
  readonly caller: LocalCaller | null;
}

interface ActivationHere extends ActivationOrder {
  readonly controller: AbortController;
  state: 'queued' | 'running' | 'over';
  /** The worker has it in storage: it was granted a token, or is a resumed one. */
  stored: boolean;
  end: End | null;
  readonly requests: Set<Promise<unknown>>;
}

/** What activations need of the document around them. */
export interface ActivationSurroundings {
  sizes: Sizes;
  lifetime: Lifetime;
  fire(type: 'toolactivated' | 'toolcancel', toolName: string): void;
  /** Makes a continuation token and has it stored; resolves with it. */
  requestToken(
    grant: Pick<Grant, 'activationId' | 'executionId' | 'call' | 'key' | 'lifetime'>,
  ): Promise<Reply<string>>;
  send: Connection['send'];
}

export interface Activations {
  /** `here`: it runs, or its end is kept. `over`: it was begun here once. */
  stateOf(id: ActivationId): 'unknown' | 'here' | 'over';
  /** Begins it in a task of its own, once `after` has settled. `find` gives the callback when the task has come, or `null` if there is none any more. */
  begin(order: ActivationOrder, find: () => ToolExecuteCallback | null, after?: Promise<unknown>): void;
  /** Nobody wants what it may still give: aborts it if it runs, forgets its end. */
  drop(id: ActivationId, reason: unknown): void;
  /** The document goes away. */
  leave(): void;
  announced(): AnnouncedActivation[];
  isPending(): boolean;
}

export function createActivations(surroundings: ActivationSurroundings): Activations {
  const here = new Map<ActivationId, ActivationHere>();
  const begun = new Set<ActivationId>();

  function begin(
    order: ActivationOrder,
    find: () => ToolExecuteCallback | null,
    after?: Promise<unknown>,
  ): void {
    const activation: ActivationHere = {
      ...order,
      controller: new AbortController(),
      state: 'queued',
      stored: order.id !== order.call.executionId,
      end: null,
      requests: new Set(),
    };
    here.set(order.id, activation);
    remember(begun, order.id);
    const start = (): void =>
      nextTask(() => {
        if (activation.state !== 'queued') return;
        const callback = find();
        if (callback !== null) void run(activation, callback);
        else fail(activation, failure('tool-unavailable', false));
      });
    if (after === undefined) start();
    else void after.then(start);
  }

  async function run(activation: ActivationHere, callback: ToolExecuteCallback): Promise<void> {
    activation.state = 'running';
    surroundings.fire('toolactivated', activation.call.toolName);
    const { signal } = activation.controller;
    const departures = surroundings.lifetime.departures();
    const invocation = new ModelContextToolInvocation((lifetime) => requestToken(activation, lifetime));
    let end: End;
    try {
      const value = await callback(JSON.parse(activation.call.input.text ?? '{}'), { signal, invocation });
      end = endOf(resultText(value, surroundings.sizes.value), departures);
    } catch (thrown) {
      console.warn(`webmcp-relay: the tool ${activation.call.toolName} threw`, thrown);
      const cause = causeOf(thrown);
      const message = `${activation.call.toolName} threw ${cause.name}: ${cause.message}`;
      end = threw({ ...failure('tool-failed', true, message), cause }, departures);
    }
    // Whether it gave an answer or an output is known once its requests are answered.
    while (activation.requests.size > 0) await Promise.allSettled(activation.requests);
    finish(activation, end);
  }

  function endOf(result: ReturnType<typeof resultText>, departures: number): End {
    return 'error' in result ? threw(result.error, departures) : { type: 'returned', value: result };
  }

  function threw(error: ErrorRecord, departures: number): End {
    const { reason } = error;
    return {
      type: 'threw',
      error: { text: JSON.stringify(error) },
      reason,
      leaving: surroundings.lifetime.isLeaving(departures),
    };
  }

  function finish(activation: ActivationHere, end: End): void {
    const { id, caller, stored } = activation;
    if (activation.state !== 'running') return;
    activation.state = 'over';
    activation.end = end;
    if (stored || caller === null) void report(activation, end);
    else {
      here.delete(id);
      caller.ended(end);
    }
  }

  /** Tells the worker. What it has stored is safe; any other end is kept until its caller has it. */
  async function report({ id, call, key, stored }: ActivationHere, end: End): Promise<void> {
    const reply = await surroundings.send('reportEnd', {
      activationId: id,
      executionId: call.executionId,
      key,
      end,
    });
    if (stored || !reply.ok) here.delete(id);
  }

  function fail(activation: ActivationHere, error: ErrorRecord): void {
    activation.state = 'over';
    here.delete(activation.id);
    activation.caller?.failed(error);
  }

  async function requestToken(activation: ActivationHere, lifetime: number): Promise<Reply<string>> {
    if (activation.state !== 'running' || !surroundings.lifetime.isActive()) {
      return { ok: false, error: failure('not-running', true) };
    }
    const { id, call, key, stored, caller } = activation;
    const { executionId } = call;
    caller?.tokenRequested();
    const grant = { activationId: id, executionId, call: stored ? null : call, key, lifetime };
    const request = surroundings.requestToken(grant);
    activation.requests.add(request);
    try {
      const reply = await request;
      if (reply.ok) {
        activation.stored = true;
        caller?.stored();
      }
      return reply;
    } finally {
      activation.requests.delete(request);
    }
  }

  function drop(id: ActivationId, reason: unknown): void {
    const activation = here.get(id);
    const isRunning = activation?.state === 'running';
    if (activation !== undefined) activation.state = 'over';
    here.delete(id);
    if (!isRunning) return;
    activation.controller.abort(reason);
    surroundings.fire('toolcancel', activation.call.toolName);
  }

  function leave(): void {
    for (const activation of [...here.values()]) {
      const { caller, controller, stored, state } = activation;
      here.delete(activation.id);
      if (state === 'over') continue;
      activation.state = 'over';
      controller.abort(new DOMException('The document went away.', 'AbortError'));
      if (!stored) caller?.failed(failure('navigated', state === 'running'));
    }
  }

  return {
    stateOf: (id) => (here.has(id) ? 'here' : begun.has(id) ? 'over' : 'unknown'),
    begin,
    drop,
    leave,
    announced: () => [...here.values()].filter(isWorkersConcern).map(announcedOf),
    isPending: () => [...here.values()].some(isWorkersConcern),
  };
}

function isWorkersConcern({ caller, stored, requests }: ActivationHere): boolean {
  return caller === null || stored || requests.size > 0;
}

function announcedOf({ id, key, stored, call, end }: ActivationHere): AnnouncedActivation {
  const { executionId } = call;
  return { activationId: id, executionId, key, stored, call: stored ? null : call, end };
}
