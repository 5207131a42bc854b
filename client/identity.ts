/**
 * Who this document is: its own id, and its tab's and group's, which follow the tab through its navigations.
 *
 * The tab's and the group's live in sessionStorage, which same-origin frames share and which is copied to windows opened
 * with an opener. Written at once, so that a window opened the next moment inherits them. Where sessionStorage is refused,
 * the document is a tab and a group of its own.
 */
import { type DocumentId, freshId, freshSecret, type GroupId, type TabId } from '../shared/ids.ts';
import type { Lifetime } from './lifetime.ts';
import { isTop, neighbourOf } from './window-tree.ts';

const STORAGE_KEY = 'webmcp-relay';

export interface Identity {
  readonly documentId: DocumentId;
  readonly tabId: TabId;
  readonly groupId: GroupId;
  /** Opens what the tab's own executions have stored. */
  readonly tabSecret: string;
}

/** What the tab's documents have in common. */
type TabRecord = Omit<Identity, 'documentId'>;

export interface IdentityKeeper {
  readonly current: Identity;
  /** The worker found that this tab is a copy of a live one. */
  adopt(tabId: TabId, tabSecret: string): void;
}

/** `prerendering`: sessionStorage is a copy that will be thrown away; the ids are those of a stranger until `activated`. */
export function createIdentity({ prerendering, activated }: Lifetime): IdentityKeeper {
  const documentId = freshId();
  let record: TabRecord = { tabId: freshId(), groupId: freshId(), tabSecret: freshSecret() };

  function load(): void {
    const stored = readRecord();
    if (stored) record = isCopy(stored) ? { ...record, groupId: stored.groupId } : stored;
    writeRecord(record);
  }

  if (prerendering) void activated.then(load);
  else load();
  return {
    get current() {
      return { documentId, ...record };
    },
    adopt(tabId, tabSecret) {
      record = { ...record, tabId, tabSecret };
      writeRecord(record);
    },
  };
}

/** Was the record copied from the window that opened this one, rather than left by an earlier document of this window? */
function isCopy(stored: TabRecord): boolean {
  if (!isTop() || window.opener === null) return false;
  const opener = neighbourOf(window.opener);
  // An opener that has moved to another origin cannot be asked; only its first document can then be a copy.
  return opener ? opener.identity().tabId === stored.tabId : history.length === 1;
}

function readRecord(): TabRecord | null {
  try {
    const record = JSON.parse(sessionStorage.getItem(STORAGE_KEY) as string) as TabRecord;
    const { tabId, groupId, tabSecret } = record;
    return tabId && groupId && tabSecret ? { tabId, groupId, tabSecret } : null;
  } catch {
    return null;
  }
}

function writeRecord(record: TabRecord): void {
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(record));
  } catch {
    // Refused: the ids live as long as the document.
  }
}
