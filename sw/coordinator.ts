/**
 * What a connected document may ask for: reads a command, turns it into an event, hands back the reply.
 *
 * Kept: a malformed command is answered with an error and changes nothing; commands take their steps in the order of
 * arrival.
 */
import { failure } from '../shared/errors.ts';
import type { DocumentId, ExecutionId } from '../shared/ids.ts';
import { fits, PATTERNS } from '../shared/parse.ts';
import {
  type Coordinator,
  LAST_COMMANDS,
  type LastCommand,
  type PendingExecution,
  type Reply,
} from '../shared/protocol.ts';
import type { Clock } from './clock.ts';
import type { Happening } from './core/event.ts';
import { toolsOfGroup } from './core/registry.ts';
import type { ConnectedDocument, Execution } from './core/state.ts';
import type { Documents } from './documents.ts';
import { handingOver } from './link.ts';
import type { Runtime } from './runtime.ts';
import { type Keyring, plainOf } from './seal.ts';

/** What a coordinator works with. */
export interface Setting {
  clock: Clock;
  /** The documents that said goodbye a moment ago: others are presumed to follow. */
  arriving: Set<ConnectedDocument>;
  runtime: Runtime;
  keyring: Keyring;
  documents: Documents;
  /** Finds out which awaited documents are gone. */
  sweep(grace?: number): Promise<void>;
  tellWatchers(): void;
}

export function createCoordinator(documentId: DocumentId, setting: Setting): Coordinator {
  const { clock, arriving, runtime, keyring, documents, sweep, tellWatchers } = setting;

  const dispatch = <T>(happening: Happening | Promise<Happening>) =>
    runtime.dispatch(happening) as Promise<Reply<T>>;

  /** A command that is the event itself, in other words. It may bring a key along. */
  const tellOf = (type: Happening['type']) => (command: object) => {
    keyring.learnFrom(command);
    return dispatch<undefined>({ ...command, documentId, type } as Happening);
  };

  /** Commands come in their turn, after the hello's own event: by then the state knows who asks. */
  const inTurn = () => dispatch({ type: 'time-passed' });

  async function describe(execution: Execution, tabSecret: string): Promise<PendingExecution> {
    const { id, call, outputs } = execution;
    await keyring.openWithTab(execution, tabSecret).catch(() => {});
    await keyring.openAll(id, [call, outputs]).catch(() => {});
    return { key: keyring.keyOf(id), ...plainOf({ call, outputs }) };
  }

  const coordinator: Coordinator = {
    execute: tellOf('execution-requested'),
    cancel: tellOf('cancel-requested'),
    grant: tellOf('token-requested'),
    reportEnd: tellOf('activation-ended'),
    reportStay: tellOf('document-stayed'),
    announceTools: tellOf('tools-changed'),
    awaitOutcomes: tellOf('outcomes-awaited'),
    async redeem({ activationId, token }) {
      const offered = keyring.offer(token);
      const reply = await dispatch<{ executionId: ExecutionId }>(
        offered.then((digest) => ({
          type: 'token-presented',
          documentId,
          activationId,
          digest,
        })),
      );
      if (!reply.ok) keyring.withdrawOffer(await offered);
      return reply;
    },
    async introduce({ documentId: other }) {
      await inTurn();
      await documents.round();
      const live = await documents.live();
      const [asker, target] = [documentId, other].map((id) => runtime.state.documents.get(id));
      const peer = documents.get(other)?.peer;
      if (!peer || target?.groupId !== asker?.groupId || !live.has(target?.clientId ?? '')) {
        return { ok: false, error: failure('tool-unavailable', false) };
      }
      const { port1, port2 } = new MessageChannel();
      peer.meet(handingOver(port1, { port: port1 })).catch(() => {});
      return handingOver(port2, { ok: true, value: port2 });
    },
    async listTools() {
      await inTurn();
      Object.assign(documents.get(documentId) ?? {}, { listens: true });
      await documents.round();
      void sweep();
      const live = await documents.live();
      const { state } = runtime;
      const groupId = state.documents.get(documentId)?.groupId ?? '';
      return { ok: true, value: toolsOfGroup(state, arriving, groupId, clock.now(), live) };
    },
    async collect({ tabSecret }) {
      await inTurn();
      await sweep(0);
      const reply = await dispatch<Execution[]>({ type: 'outcomes-collected', documentId });
      if (!reply.ok) return reply;
      const described = reply.value.map((execution) => describe(execution, tabSecret));
      return { ok: true, value: await Promise.all(described) };
    },
    async watch({ on }) {
      Object.assign(documents.get(documentId) ?? {}, { watches: on });
      tellWatchers();
      return { ok: true, value: undefined };
    },
  };
  return checked(coordinator);
}

/** Lets well-formed commands through, and answers any other. */
function checked(coordinator: Coordinator): Coordinator {
  const methods = Object.entries(coordinator).map(([method, act]) => [
    method,
    async (argument: unknown) =>
      fits(argument, PATTERNS[method as keyof Coordinator])
        ? act(argument as never)
        : { ok: false, error: failure('version-mismatch', false, `Malformed command: ${method}`) },
  ]);
  return Object.fromEntries(methods);
}

/** The commands that a page could not see acknowledged before it left. */
export function performLast(
  documentId: DocumentId,
  commands: readonly LastCommand[],
  setting: Setting,
): void {
  const coordinator = createCoordinator(documentId, setting);
  for (const { method, argument } of commands) {
    if (LAST_COMMANDS.includes(method)) void coordinator[method](argument as never);
  }
}
