/**
 * How effects leave the worker: each becomes a command to one document, and what the document acknowledges comes back as
 * an event.
 *
 * Kept: commands to one document leave in the order of their effects; a command that cannot be delivered is dropped (its
 * document is gone, or will announce itself again) and never fails anything else.
 */
import type { DocumentId } from '../shared/ids.ts';
import type { DocumentPeer, Remote } from '../shared/protocol.ts';
import type { Effect, Happening } from './core/event.ts';
import { failed } from './core/execution.ts';
import type { Documents } from './documents.ts';
import type { Runtime } from './runtime.ts';
import { isReadable, type Keyring, plainOf } from './seal.ts';

type Announcement = Extract<Effect, { type: 'announce-tools' }>;
type Command = Exclude<Effect, { type: 'summon' | 'announce-tools' }>;

export function createPerformer(
  documents: Documents,
  keyring: Keyring,
  dispatch: Runtime['dispatch'],
): (effect: Effect) => Promise<void> {
  return async (effect) => {
    if (effect.type === 'summon') return void summon(effect.documentId);
    if (effect.type === 'announce-tools') return void announceTools(effect);
    const peer = documents.get(effect.documentId)?.peer;
    if (peer) send(peer, await unseal(effect));
  };

  /** A document that this generation has not met has one round to say hello. */
  async function summon(documentId: DocumentId): Promise<void> {
    await documents.round();
    if (documents.get(documentId) !== undefined) return;
    if (documents.leftAfter(documentId)) await dispatch({ type: 'document-left', documentId, lostCalls: [] });
    else await dispatch({ type: 'document-lost', documentId });
  }

  /** Those that listen may not have met this worker yet; those that wait have. */
  async function announceTools({ groupId, quiet }: Announcement): Promise<void> {
    if (!quiet) await documents.round();
    for (const [, connection] of documents.all()) {
      if (connection.listens && connection.groupId === groupId) drop(connection.peer.toolsChanged(quiet));
    }
  }

  /** What nobody has brought the key of is no success without a result: the caller is told so. */
  async function unseal(effect: Command): Promise<Command> {
    if (!('executionId' in effect)) return effect;
    if ('token' in effect && effect.token) await keyring.openWithToken(effect.executionId, effect.token);
    await keyring.openAll(effect.executionId, effect).catch(() => {});
    if (isReadable(effect)) return effect;
    if (effect.type !== 'settle') throw new Error(`No key opens what belongs to ${effect.executionId}.`);
    return { ...effect, ending: failed('storage-unavailable', true) };
  }

  function send(peer: Remote<DocumentPeer>, effect: Command): void {
    drop(answered(peer, effect).then((happening) => happening && dispatch(happening)));
  }

  async function answered(peer: Remote<DocumentPeer>, effect: Command): Promise<Happening | undefined> {
    if (effect.type === 'activate') {
      const { token: _, ...command } = plainOf(effect);
      const { executionId, activationId } = command;
      const refused = await peer.activate({ ...command, key: keyring.keyOf(executionId) });
      return { type: 'activation-acknowledged', executionId, activationId, refused };
    }
    const command = plainOf(effect);
    await peer[effect.type](command as never);
    if (effect.type !== 'settle') return undefined;
    const { documentId, executionId } = effect;
    return { type: 'outcome-delivered', executionId, documentId };
  }
}

function drop(delivery: Promise<unknown>): void {
  delivery.catch(() => {});
}
