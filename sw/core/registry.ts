/**
 * Who is connected, and which tools they offer; who is presumed to follow.
 *
 * Kept: a document that said goodbye or is gone offers no tools; a tab's id is held by one live window (`decisions/12`).
 */
import type { GroupId } from '../../shared/ids.ts';
import type { DocumentFacts, Snapshot } from '../../shared/protocol.ts';
import type { ToolOwner } from '../../shared/tool.ts';
import { isOpen } from './execution.ts';
import type { ConnectedDocument, Execution, State } from './state.ts';

/**
 * A group's documents and their tools, as they last announced them. Of those that do not live any more, there are the ones that
 * another is presumed to follow, until it has. `left`: said goodbye a moment ago.
 */
export function toolsOfGroup(
  { documents }: State,
  left: Iterable<ConnectedDocument>,
  groupId: GroupId,
  now: number,
  live: ReadonlySet<string>,
): ToolOwner[] {
  const all = [...documents.values(), ...left].filter((document) => document.groupId === groupId);
  return all.flatMap(({ documentId, tabId, url, clientId, tools, readyFrom = 0 }) => {
    const ready = now >= readyFrom;
    if (live.has(clientId)) return { documentId, tabId, url, ready, tools };
    const isFollowed = all.some((other) => other.top && other.tabId === tabId && live.has(other.clientId));
    return ready || isFollowed ? [] : { documentId, tabId, url, ready, tools: [] };
  });
}

/** The live document of another top-level window that goes by the same tab id, if there is one: one of the two is a copy. */
export function rivalOf(state: State, newcomer: DocumentFacts): ConnectedDocument | undefined {
  return [...state.documents.values()].find(
    ({ documentId, tabId, top }) =>
      top && newcomer.top && tabId === newcomer.tabId && documentId !== newcomer.documentId,
  );
}

/** A document that something pending waits for. */
export interface AwaitedDocument {
  documentId: string;
  /** `null` where the browser's id of it was never learnt. */
  clientId: string | null;
}

/** The documents that are connected, or that open executions wait for: worth asking the browser whether they still exist. */
export function documentsInQuestion(state: State): AwaitedDocument[] {
  const awaited = new Map<string, AwaitedDocument>(state.documents);
  for (const { callerDocumentId, settled, activations, met } of state.executions.values()) {
    const ids = activations.filter(isOpen).map(({ documentId }) => documentId);
    if (callerDocumentId && settled?.ending !== null) ids.push(callerDocumentId);
    for (const documentId of ids) {
      const { clientId } = awaited.get(documentId) ?? {};
      awaited.set(documentId, { documentId, clientId: clientId ?? met.get(documentId)?.clientId ?? null });
    }
  }
  return [...awaited.values()];
}

/** What one group may see of the state: no input, no result, no token. */
export function snapshotOf(state: State, groupId: GroupId, now: number): Snapshot {
  const documents = [...state.documents.values()]
    .filter((document) => document.groupId === groupId)
    .map(({ clientId: _, readyFrom: __, tools, ...facts }) => ({
      ...facts,
      tools: tools.map(({ name }) => name),
    }));
  const executions = [...state.executions.values()]
    .filter((execution) => execution.call.groupId === groupId)
    .map(summaryOf);
  return { generation: state.generation, now, documents, executions };
}

function summaryOf(execution: Execution): Snapshot['executions'][number] {
  return {
    id: execution.id,
    toolName: execution.call.toolName,
    state: execution.settled === null ? 'open' : 'settled',
    callerDocumentId: execution.callerDocumentId,
    activations: execution.activations.map(({ id, documentId, state }) => ({ id, documentId, state })),
    tokens: execution.tokens.map(({ state, deadline }) => ({ state, deadline })),
    outcome: execution.settled?.as ?? null,
  };
}
