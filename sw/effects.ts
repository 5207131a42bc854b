/**
 * How effects leave the worker: each becomes a command to one document, and what the document acknowledges comes back as
 * an event.
 *
 * Kept: commands to one document leave in the order of their effects; a command that cannot be delivered is dropped (its
 * document is gone, or will announce itself again) and never fails anything else.
 */
import type { DocumentId } from '../shared/ids.ts';
import type { Activate, Call, DocumentPeer, Remote } from '../shared/protocol.ts';
import type { Effect } from './core/event.ts';
import type { Execution, State } from './core/state.ts';
import type { Documents } from './documents.ts';
import type { Runtime } from './runtime.ts';
import { isOpen, type Keyring, plainOf } from './seal.ts';

interface Surroundings {
  documents: Documents;
  keyring: Keyring;
  /** Documents that want to know when their group's tools change. */
  listeners: ReadonlySet<DocumentId>;
  dispatch: Runtime['dispatch'];
  state: () => State;
}

type EffectOf<T extends Effect['type']> = Extract<Effect, { type: T }>;

export function createPerformer(surroundings: Surroundings): (effect: Effect) => void | Promise<void> {
  const { documents, keyring, listeners, dispatch, state } = surroundings;

  return (effect) => {
    if (effect.type === 'summon') return void summon(effect.documentId);
    if (effect.type === 'announce-tools') return announceTools(effect.groupId);
    const peer = documents.peer(effect.documentId);
    if (peer !== undefined) return tell(peer, effect);
  };

  function tell(
    peer: Remote<DocumentPeer>,
    effect: Exclude<Effect, { type: 'summon' | 'announce-tools' }>,
  ): void | Promise<void> {
    switch (effect.type) {
      case 'activate':
        return opened(effect.execution, effect.execution.input, () => activate(peer, effect));
      case 'settle':
        return opened(effect.executionId, effect.ending, () => settle(peer, effect));
      case 'deliver-output':
        return opened(effect.executionId, effect.value, () => drop(peer.deliverOutput(plainOf(effect))));
      case 'abort':
        return drop(peer.abort(effect));
      case 'withdraw':
        return drop(peer.withdraw(effect));
      case 'release':
        return drop(peer.release(effect));
    }
  }

  /** Goes on at once if nothing in `data` has to be unsealed: a call that is not stored waits for no cipher. */
  function opened(of: Execution | string, data: unknown, act: () => void): void | Promise<void> {
    if (isOpen(data)) return act();
    return unseal(of, data).then(act);
  }

  async function unseal(of: Execution | string, data: unknown): Promise<void> {
    if (typeof of !== 'string') await keyring.openWithToken(of);
    await keyring.openAll(typeof of === 'string' ? of : of.id, data);
  }

  /** A document that this generation has not met has one round to say hello. */
  async function summon(documentId: DocumentId): Promise<void> {
    await documents.round();
    if (documents.peer(documentId) === undefined) await dispatch({ type: 'document-lost', documentId });
  }

  function announceTools(groupId: string): void {
    for (const documentId of listeners) {
      if (state().documents.get(documentId)?.groupId === groupId)
        drop(documents.peer(documentId)?.toolsChanged());
    }
  }

  function activate(
    peer: Remote<DocumentPeer>,
    { execution, activationId, refuseAfter }: EffectOf<'activate'>,
  ): void {
    const { id: executionId, toolName, input } = execution;
    const key = keyring.keyOf(executionId);
    const call = activationId === executionId ? callOf(execution, key) : null;
    const command: Activate = {
      activationId,
      executionId,
      call,
      toolName,
      input: input.text ?? '{}',
      key,
      refuseAfter,
    };
    peer.activate(command).then(
      (refused) => void dispatch({ type: 'activation-acknowledged', executionId, activationId, refused }),
      () => {},
    );
  }

  function settle(peer: Remote<DocumentPeer>, { documentId, executionId, ending }: EffectOf<'settle'>): void {
    peer.settle({ executionId, ending: plainOf(ending) }).then(
      () => void dispatch({ type: 'outcome-delivered', executionId, documentId }),
      () => {},
    );
  }
}

function drop(delivery: Promise<void> | undefined): void {
  delivery?.catch(() => {});
}

/** The call as its target may have to announce it to another generation. */
function callOf(execution: Execution, key: string): Call {
  const { id, callerTabId, groupId, keepalive, registrationId, toolName, activations, tabKey, input } =
    execution;
  return {
    executionId: id,
    callerDocumentId: execution.callerDocumentId ?? '',
    callerTabId,
    groupId,
    keepalive,
    documentId: activations[0]?.documentId ?? '',
    registrationId,
    toolName,
    input: input.text ?? '{}',
    key,
    tabKey,
  };
}
