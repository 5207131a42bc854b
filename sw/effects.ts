/**
 * How effects leave the worker: each becomes a command to one document, and what the document acknowledges comes back as
 * an event.
 *
 * Kept: commands to one document leave in the order of their effects; a command that cannot be delivered is dropped (its
 * document is gone, or will announce itself again) and never fails anything else.
 */
import { failure } from '../shared/errors.ts';
import type { DocumentId } from '../shared/ids.ts';
import type { Call, DocumentPeer, Outcome } from '../shared/protocol.ts';
import type { Effect } from './core/event.ts';
import type { Ending, Execution, State } from './core/state.ts';
import type { Documents } from './documents.ts';
import type { Runtime } from './runtime.ts';
import type { Keyring } from './seal.ts';

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
    peer: DocumentPeer,
    effect: Exclude<Effect, { type: 'summon' | 'announce-tools' }>,
  ): void | Promise<void> {
    switch (effect.type) {
      case 'activate':
        return activate(peer, effect);
      case 'abort':
        return drop(peer.abort({ activationId: effect.activationId }));
      case 'withdraw':
        return drop(peer.withdraw({ activationId: effect.activationId, error: effect.error }));
      case 'settle':
        return settle(peer, effect);
      case 'deliver-output':
        return deliverOutput(peer, effect);
      case 'release':
        return drop(peer.release({ activationIds: effect.activationIds }));
    }
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

  function activate(peer: DocumentPeer, effect: EffectOf<'activate'>): void | Promise<void> {
    const { text } = effect.execution.input;
    if (typeof text === 'string') return send(peer, effect, text);
    return unsealInput(effect.execution).then((input) => send(peer, effect, input));
  }

  async function unsealInput(execution: Execution): Promise<string> {
    await keyring.openWithToken(execution);
    return (await keyring.read(execution.id, execution.input)) ?? '{}';
  }

  function send(
    peer: DocumentPeer,
    { execution, activationId, refuseAfter }: EffectOf<'activate'>,
    input: string,
  ): void {
    const { id: executionId, toolName } = execution;
    const key = keyring.keyOf(executionId);
    const call = activationId === executionId ? callOf(execution, input, key) : null;
    peer.activate({ activationId, executionId, call, toolName, input, key, refuseAfter }).then(
      (answer) => {
        const refused = answer.accepted ? null : failure(answer.reason, false, answer.message);
        void dispatch({ type: 'activation-acknowledged', executionId, activationId, refused });
      },
      () => {},
    );
  }

  function settle(peer: DocumentPeer, effect: EffectOf<'settle'>): void | Promise<void> {
    const { documentId, executionId, ending } = effect;
    const deliver = (outcome: Outcome) => {
      peer.settle({ executionId, outcome }).then(
        () => void dispatch({ type: 'outcome-delivered', executionId, documentId }),
        () => {},
      );
    };
    const value = ending.type === 'result' ? ending.value : ending.detail;
    if (value === null || value.text !== undefined)
      return deliver(outcomeOf(executionId, ending, value?.text ?? null));
    return keyring
      .read(executionId, value)
      .then((text) => deliver(outcomeOf(executionId, ending, text ?? null)));
  }

  async function deliverOutput(peer: DocumentPeer, effect: EffectOf<'deliver-output'>): Promise<void> {
    const { executionId, activationId, value } = effect;
    const text = (await keyring.read(executionId, value)) ?? null;
    drop(peer.deliverOutput({ executionId, output: { activationId, text } }));
  }
}

function drop(delivery: Promise<void> | undefined): void {
  delivery?.catch(() => {});
}

function outcomeOf(executionId: string, ending: Ending, text: string | null): Outcome {
  if (ending.type === 'result') return { type: 'result', text };
  const { reason, started } = ending;
  const error = text === null ? failure(reason, started) : { ...JSON.parse(text), reason, started };
  return { type: 'failed', error: { ...error, executionId } };
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
