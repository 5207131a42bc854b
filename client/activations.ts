/**
 * The callbacks that run in this document, whoever called for them.
 *
 * Kept: I3, an activation id begins at most once here, however often it is commanded; an activation whose document goes
 * away is over for good, even if the document returns; an end is kept until the worker has it.
 */
import { causeOf, type ErrorRecord, failure } from '../shared/errors.ts';
import type { ActivationId, ExecutionId } from '../shared/ids.ts';
import type {
  Acknowledgement,
  Activate,
  AnnouncedActivation,
  Call,
  End,
  EndReport,
  Grant,
  Reply,
} from '../shared/protocol.ts';
import type { Connection } from './connection.ts';
import { ToolActivatedEvent, ToolCancelEvent } from './events.ts';
import { OURS } from './interfaces.ts';
import { ModelContextToolInvocation, type ToolExecuteCallback } from './invocation.ts';
import type { Lifetime } from './lifetime.ts';
import { nextTask, remember } from './task.ts';
import { resultText } from './values.ts';
import type { Caller } from './window-tree.ts';

/** It is here while it waits and runs, and until whoever is told of its end has it. */
interface ActivationHere {
  readonly facts: Omit<AnnouncedActivation, 'stored'>;
  readonly call: Call;
  /** Who is told of its end; `null` if that is the worker: it has the call. */
  caller: Caller | null;
  /** Once it has started. */
  controller?: AbortController;
  /** Not answered yet. */
  readonly requests: Set<Promise<unknown>>;
}

/** What activations need of the document around them. */
export interface ActivationSurroundings {
  /** The longest result. */
  limit: number;
  lifetime: Lifetime;
  fire(event: Event): void;
  /** Makes a continuation token and has it stored; resolves with it. `isOwn`: the caller is of this tab. */
  requestToken(
    grant: Pick<Grant, 'activationId' | 'executionId' | 'call' | 'key' | 'lifetime'>,
    isOwn?: boolean,
  ): Promise<Reply<string>>;
  send: Connection['send'];
}

export interface Activations {
  /** The answer to a command that is repeated; `undefined` if the activation never began here. */
  acknowledged(id: ActivationId): Acknowledgement | undefined;
  /**
   * Begins it once it is ready, in a task of its own, unless its input is refused; a first one has the id of its execution.
   * `find` gives the callback when the time has come, if it is still there.
   */
  begin(
    command: Omit<Activate, 'refuseAfter'>,
    caller: Caller | null,
    find: () => ToolExecuteCallback | undefined,
    ready: Promise<ErrorRecord | undefined>,
  ): void;
  /** Nobody wants what it may still give: aborts it if it runs, forgets its end. */
  drop(id: ActivationId): void;
  /** Its direct caller has cancelled it, and may not know that the worker has it. */
  cancel(id: ExecutionId): void;
  /** The document goes away. */
  leave(): void;
  announced(): AnnouncedActivation[];
}

export function createActivations({
  limit,
  lifetime,
  fire,
  requestToken,
  send,
}: ActivationSurroundings): Activations {
  const here = new Map<ActivationId, ActivationHere>();
  const begun = new Set<ActivationId>();

  const begin: Activations['begin'] = ({ activationId, call, key }, caller, find, ready) => {
    const { executionId, input } = call;
    const activation: ActivationHere = {
      facts: { activationId, executionId, key, end: null },
      call,
      caller,
      requests: new Set(),
    };
    here.set(activationId, activation);
    remember(begun, activationId);
    void ready.then((refusal) => {
      if (!here.has(activationId)) return;
      const callback = find();
      if (callback && !refusal) return run(activation, callback, input.text ?? '{}');
      const end = endOf((callback && refusal) || failure('tool-unavailable', false));
      // After the `toolchange` that its unregistering brings.
      if (callback) finish(activation, end);
      else nextTask(() => finish(activation, end));
    });
  };

  async function run(
    activation: ActivationHere,
    callback: ToolExecuteCallback,
    input: string,
  ): Promise<void> {
    const { facts, requests } = activation;
    const { toolName } = activation.call;
    fire(new ToolActivatedEvent('toolactivated', { toolName }));
    // A listener may have removed the frame.
    if (!here.has(facts.activationId)) return;
    const controller = new AbortController();
    activation.controller = controller;
    const isLeaving = lifetime.watchDeparture();
    const invocation = new ModelContextToolInvocation(OURS, (lifetime: number) =>
      request(activation, lifetime),
    );
    let result: ReturnType<typeof resultText>;
    try {
      result = resultText(
        await callback(JSON.parse(input), { signal: controller.signal, invocation }),
        limit,
      );
    } catch (thrown) {
      const what = `${toolName} threw`;
      console.warn(`webmcp-relay: ${what}`, thrown);
      const cause = causeOf(thrown);
      result = { ...failure('tool-failed', true, `${what} ${cause.name}: ${cause.message}`), cause };
    }
    const end = endOf(result, isLeaving());
    // Whether it gave an answer or an output is known once its requests are answered.
    while (requests.size > 0) await Promise.allSettled(requests);
    if (here.has(facts.activationId)) finish(activation, end);
  }

  /** Its end goes to the worker, or straight to its caller. */
  async function finish({ facts, caller }: ActivationHere, end: End): Promise<void> {
    facts.end = end;
    if (!caller) await send('reportEnd', facts as EndReport);
    here.delete(facts.activationId);
    caller?.ended(end);
  }

  async function request(activation: ActivationHere, lifetimeOfToken: number): Promise<Reply<string>> {
    const { facts, call, caller, requests } = activation;
    const { end, ...asking } = facts;
    if (!here.has(facts.activationId) || end || !lifetime.isActive()) {
      return { ok: false, error: failure('not-running', true) };
    }
    caller?.tokenRequested();
    const request = requestToken(
      { ...asking, call: caller && call, lifetime: lifetimeOfToken },
      caller?.isOwn,
    );
    requests.add(request);
    try {
      const reply = await request;
      if (reply.ok && caller) {
        activation.caller = null;
        caller.stored();
        // Cancelled meanwhile: who did so may not have been able to tell a worker that had not heard of the call.
        if (!here.has(facts.activationId) && lifetime.isActive()) {
          void send('cancel', { executionId: facts.executionId });
        }
      }
      return reply;
    } finally {
      requests.delete(request);
    }
  }

  function drop(id: ActivationId): void {
    const activation = here.get(id);
    here.delete(id);
    if (!activation?.controller || activation.facts.end) return;
    const { controller, call } = activation;
    controller.abort();
    fire(new ToolCancelEvent('toolcancel', call));
  }

  return {
    acknowledged: (id) => (here.has(id) ? null : begun.has(id) ? failure('navigated', true) : undefined),
    begin,
    drop,
    cancel(executionId) {
      if (here.get(executionId)?.caller === null) void send('cancel', { executionId });
      drop(executionId);
    },
    leave() {
      for (const [id, { facts, caller, controller }] of here) {
        here.delete(id);
        if (facts.end) continue;
        controller?.abort(new DOMException('The document went away.', 'AbortError'));
        caller?.failed(failure('navigated', controller !== undefined));
      }
    },
    announced: () =>
      [...here.values()]
        .filter(({ caller, requests }) => !caller || requests.size > 0)
        .map(({ caller, facts }) => ({ ...facts, stored: !caller })),
  };
}

function endOf(result: ReturnType<typeof resultText>, leaving = false): End {
  if ('text' in result) return { type: 'returned', value: result };
  const { reason, started } = result;
  return { type: 'threw', error: { text: JSON.stringify(result) }, reason, leaving, started };
}
