/**
 * How effects leave the worker: each becomes a command to one document, and what the document acknowledges comes back as
 * an event.
 *
 * Kept: commands to one document leave in the order of their effects; a command that cannot be delivered is dropped (its
 * document is gone, or will announce itself again) and never fails anything else.
 */
import type { DocumentId } from '../shared/ids.ts';
import type { Call, DocumentPeer, Remote } from '../shared/protocol.ts';
import type { Effect } from './core/event.ts';
import type { Execution } from './core/state.ts';
import type { Documents } from './documents.ts';
import type { Runtime } from './runtime.ts';
import { isOpen, type Keyring, plainOf } from './seal.ts';

type EffectOf<T extends Effect['type']> = Extract<Effect, { type: T }>;

export function createPerformer(
  documents: Documents,
  keyring: Keyring,
  dispatch: Runtime['dispatch'],
): (effect: Effect) => void | Promise<void> {
  return (effect) => {
    if (effect.type === 'summon') return void summon(effect.documentId);
    if (effect.type === 'announce-tools') return announceTools(effect.groupId);
    const peer = documents.get(effect.documentId)?.peer;
    if (peer !== undefined) return tell(peer, effect);
  };

  /** A document that this generation has not met has one round to say hello. */
  async function summon(documentId: DocumentId): Promise<void> {
    await documents.round();
    if (documents.get(documentId) === undefined) await dispatch({ type: 'document-lost', documentId });
  }

  function announceTools(groupId: string): void {
    for (const [, connection] of documents.all()) {
      if (connection.listens && connection.groupId === groupId) drop(connection.peer.toolsChanged());
    }
  }

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
    return isOpen(data) ? act() : unseal(of, data).then(act);
  }

  async function unseal(of: Execution | string, data: unknown): Promise<void> {
    if (typeof of !== 'string') await keyring.openWithToken(of);
    await keyring.openAll(typeof of === 'string' ? of : of.id, data);
  }

  function activate(
    peer: Remote<DocumentPeer>,
    { execution, activationId, refuseAfter }: EffectOf<'activate'>,
  ): void {
    const { id: executionId, toolName } = execution;
    const input = execution.input.text ?? '{}';
    const key = keyring.keyOf(executionId);
    const call = activationId === executionId ? callOf(execution, input, key) : null;
    const acknowledge = peer.activate({ activationId, executionId, call, toolName, input, key, refuseAfter });
    drop(
      acknowledge.then(
        (refused) => void dispatch({ type: 'activation-acknowledged', executionId, activationId, refused }),
      ),
    );
  }

  function settle(peer: Remote<DocumentPeer>, effect: EffectOf<'settle'>): void {
    const { documentId, executionId, ending } = effect;
    const delivered = () => void dispatch({ type: 'outcome-delivered', executionId, documentId });
    drop(peer.settle({ executionId, ending: plainOf(ending) }).then(delivered));
  }
}

function drop(delivery: Promise<void>): void {
  delivery.catch(() => {});
}

/** The call as its target may have to announce it to another generation. */
function callOf(execution: Execution, input: string, key: string): Call {
  const { id, callerTabId, groupId, keepalive, registrationId, toolName, activations, tabKey } = execution;
  return {
    executionId: id,
    callerDocumentId: execution.callerDocumentId ?? '',
    callerTabId,
    groupId,
    keepalive,
    documentId: activations[0]?.documentId ?? '',
    registrationId,
    toolName,
    input,
    key,
    tabKey,
  };
}
