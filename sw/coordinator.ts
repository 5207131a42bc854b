/**
 * What a connected document may ask for: reads a command, turns it into an event, hands back the reply.
 *
 * Kept: a malformed command is answered with an error and changes nothing; commands take their steps in the order of
 * arrival.
 */
import { LONGEST_LIFETIME, type Sizes } from '../shared/bounds.ts';
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
import type { ToolOwner } from '../shared/tool.ts';
import type { Happening } from './core/event.ts';
import { toolsOfGroup } from './core/registry.ts';
import type { Documents } from './documents.ts';
import type { Runtime } from './runtime.ts';
import { type Keyring, plainOf } from './seal.ts';

/** What a coordinator works with. */
export interface Setting {
  runtime: Runtime;
  keyring: Keyring;
  documents: Documents;
  /** Finds out which awaited documents are gone. */
  sweep(grace?: number): Promise<void>;
  tellWatchers(): void;
  sizes: Sizes;
}

export function createCoordinator(documentId: DocumentId, setting: Setting): Coordinator {
  const { runtime, keyring, documents, sweep, tellWatchers, sizes } = setting;

  const facts = () => runtime.state.documents.get(documentId);
  const dispatch = <T>(happening: Happening | Promise<Happening>) =>
    runtime.dispatch(happening) as Promise<Reply<T>>;

  /** Commands come in their turn, after the hello's own event: by then the state knows who asks. */
  const introduced = () => dispatch({ type: 'time-passed' });

  async function describe(executionId: ExecutionId, tabSecret: string): Promise<PendingExecution[]> {
    const execution = runtime.state.executions.get(executionId);
    if (execution === undefined) return [];
    const { call, outputs } = execution;
    await keyring.openWithTab(execution, tabSecret).catch(() => {});
    await keyring.openAll(executionId, [call, outputs]).catch(() => {});
    return [{ key: keyring.keyOf(executionId), ...plainOf({ call, outputs }) }];
  }

  const coordinator: Coordinator = {
    execute({ call, key }) {
      keyring.learn(call.executionId, key);
      return dispatch({ type: 'execution-requested', documentId, call });
    },
    cancel: (request) => dispatch({ type: 'cancel-requested', ...request }),
    grant(grant) {
      keyring.learn(grant.executionId, grant.key);
      const lifetime = Math.min(Math.max(grant.lifetime, 0), LONGEST_LIFETIME);
      return dispatch({ type: 'token-requested', documentId, ...grant, lifetime });
    },
    async redeem({ activationId, token }) {
      const offered = keyring.offer(token);
      const reply = await dispatch<{ executionId: ExecutionId }>(
        offered.then((digest) => ({
          type: 'token-presented',
          documentId,
          activationId,
          digest,
          executionId: null,
        })),
      );
      if (!reply.ok) keyring.withdrawOffer(await offered);
      return reply;
    },
    reportEnd(report) {
      keyring.learn(report.executionId, report.key);
      return dispatch({ type: 'activation-ended', ...report });
    },
    reportStay: () => dispatch({ type: 'document-stayed', documentId }),
    announceTools: ({ tools }) =>
      dispatch({ type: 'tools-changed', documentId, tools: tools.slice(0, sizes.tools) }),
    async listTools() {
      await introduced();
      Object.assign(documents.get(documentId) ?? {}, { listens: true });
      await documents.round();
      await sweep();
      const live = await documents.live();
      const isLive = ({ documentId: owner }: ToolOwner) =>
        live.has(runtime.state.documents.get(owner)?.clientId ?? '');
      return { ok: true, value: toolsOfGroup(runtime.state, facts()?.groupId ?? '').filter(isLive) };
    },
    async collect({ tabSecret }) {
      await introduced();
      await sweep(0);
      const reply = await dispatch<ExecutionId[]>({
        type: 'outcomes-collected',
        documentId,
        tabId: facts()?.tabId ?? '',
      });
      if (!reply.ok) return reply;
      const pending = await Promise.all(reply.value.map((id) => describe(id, tabSecret)));
      return { ok: true, value: pending.flat() };
    },
    awaitOutcomes: ({ executionIds }) => dispatch({ type: 'outcomes-awaited', documentId, executionIds }),
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
