/**
 * The live documents, as the shell reaches them: their peers, the way to wake those that a new worker has not met, and
 * whether one still exists.
 *
 * Kept: nothing is posted to a document that said goodbye (it would be thrown out of the back/forward cache); every question
 * has a bound.
 */
import type { Bounds } from '../shared/bounds.ts';
import { type DocumentId, freshId, type GroupId } from '../shared/ids.ts';
import { type DocumentPeer, type Hello, type Remote, SUMMONS } from '../shared/protocol.ts';
import { type Clock, within } from './clock.ts';
import { type AwaitedDocument, rivalOf } from './core/registry.ts';
import type { State } from './core/state.ts';

/** A live holder of a tab's id has this long to say so, in milliseconds. */
const RIVAL_BOUND = 250;
/** A new worker's documents have this long to say hello. */
const ROUND_BOUND = 2_000;

export interface Connection {
  readonly peer: Remote<DocumentPeer>;
  readonly groupId: GroupId;
  /** Of the hello that it began with. */
  readonly helloId: string;
  /** It listed its group, and so is told when the group's tools change. */
  listens: boolean;
  watches?: boolean;
  close(): void;
}

export interface Documents {
  connect(documentId: DocumentId, connection: Connection): void;
  /** The state knows it now: whoever waits for it may look. */
  arrive(clientId: string): void;
  disconnect(documentId: DocumentId): void;
  /** It took this hello back, answered or not; a worker that has just started may not know yet what that ends. */
  leave(documentId: DocumentId, helloId: string): void;
  /** The hello that it took back, if it has left. */
  leftAfter(documentId: DocumentId): string | undefined;
  get(documentId: DocumentId): Connection | undefined;
  all(): Iterable<[DocumentId, Connection]>;
  /** Settles once every client that was open at this worker's first need of them has said hello, is gone, or had its time. */
  round(): Promise<void>;
  /** The tab id that a newcomer goes by: a fresh one if it is a copy of a live window. */
  tabIdFor(hello: Hello, state: State): Promise<string>;
  /** The browser's ids of the documents that exist. */
  live(): Promise<Set<string>>;
  /** Those of the documents that no longer exist, and have not for `grace` milliseconds: a goodbye may be on its way. */
  missing(documents: readonly AwaitedDocument[], grace: number): Promise<DocumentId[]>;
  /** Are there some whose grace has not passed? */
  areInDoubt(): boolean;
}

export function createDocuments(
  clients: Clients,
  clock: Clock,
  { noticing }: Pick<Bounds, 'noticing'>,
): Documents {
  const connections = new Map<DocumentId, Connection>();
  const arrived = new Set<string>();
  const arrivals = new Map<string, () => void>();
  const missingSince = new Map<DocumentId, number>();
  const left = new Map<DocumentId, string>();
  let currentRound: Promise<void> | undefined;

  /** Leaves out what has crashed, closed or gone into the back/forward cache. */
  function liveClients(): Promise<readonly Client[]> {
    const asked = clients.matchAll({ type: 'window', includeUncontrolled: true });
    return within(clock, ROUND_BOUND, asked, () => {
      throw new Error('clients.matchAll is silent');
    });
  }

  async function summonAll(): Promise<void> {
    const unmet = (await liveClients()).filter(({ id }) => !arrived.has(id));
    const arriving = unmet.map(({ id }) => new Promise<void>((resolve) => arrivals.set(id, resolve)));
    for (const client of unmet) client.postMessage({ type: SUMMONS });
    await within(clock, ROUND_BOUND, Promise.all(arriving), () => undefined);
    arrivals.clear();
  }

  async function live(): Promise<Set<string>> {
    return new Set((await liveClients()).map(({ id }) => id));
  }

  async function missing(documents: readonly AwaitedDocument[], grace: number): Promise<DocumentId[]> {
    const ids = await live();
    return documents
      .filter((document) => isMissing(document, ids, grace))
      .map(({ documentId }) => documentId);
  }

  function isMissing({ documentId, clientId }: AwaitedDocument, ids: Set<string>, grace: number): boolean {
    if (clientId !== null && ids.has(clientId)) {
      missingSince.delete(documentId);
      return false;
    }
    const since = missingSince.get(documentId) ?? clock.now();
    missingSince.set(documentId, since);
    const isOver = clock.now() - since >= (clientId === null ? noticing : grace);
    if (isOver) missingSince.delete(documentId);
    return isOver;
  }

  return {
    connect(documentId, connection) {
      connections.get(documentId)?.close();
      connections.set(documentId, connection);
      left.delete(documentId);
      missingSince.delete(documentId);
    },
    arrive(clientId) {
      arrived.add(clientId);
      arrivals.get(clientId)?.();
    },
    disconnect(documentId) {
      connections.get(documentId)?.close();
      connections.delete(documentId);
      missingSince.delete(documentId);
    },
    leave(documentId, helloId) {
      if (left.size > 1_000) left.clear();
      left.set(documentId, helloId);
    },
    leftAfter: (documentId) => left.get(documentId),
    get: (documentId) => connections.get(documentId),
    all: () => connections,
    round() {
      currentRound ??= summonAll().catch(() => {
        currentRound = undefined;
      });
      return currentRound;
    },
    async tabIdFor(hello, state) {
      const rival = rivalOf(state, hello);
      const connection = rival && connections.get(rival.documentId);
      const isCopy =
        connection &&
        // The page before, which said goodbye a moment ago, is none.
        left.get(rival.documentId) !== connection.helloId &&
        (await missing([rival], 0)).length === 0 &&
        (await within(clock, RIVAL_BOUND, connection.peer.ping(), () => false));
      return isCopy ? freshId() : hello.tabId;
    },
    live,
    missing,
    areInDoubt: () => missingSince.size > 0,
  };
}
