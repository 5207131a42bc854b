/**
 * Reading what came from outside: is it shaped as the protocol says?
 *
 * A pattern is an example: what fits it has members of the same types, and of a list each item fits the one item of the
 * example. A function in a pattern is a test of its own. Members that a pattern does not name are ignored (newer versions may
 * add some). Reading never throws, whatever the value does when it is read.
 */
export function fits(value: unknown, pattern: unknown): boolean {
  try {
    return matches(value, pattern);
  } catch {
    return false;
  }
}

function matches(value: unknown, pattern: unknown): boolean {
  if (typeof pattern === 'function') return pattern(value);
  if (typeof value !== typeof pattern) return false;
  if (typeof pattern !== 'object') return true;
  if (value === null) return false;
  if (Array.isArray(pattern)) return (value as unknown[]).every((item) => matches(item, pattern[0]));
  return Object.entries(pattern as object).every(([name, member]) =>
    matches(Reflect.get(value as object, name), member),
  );
}

const orNull = (pattern: unknown) => (value: unknown) => value === null || matches(value, pattern);
const orAbsent = (pattern: unknown) => (value: unknown) => value === undefined || matches(value, pattern);

const CALL = {
  executionId: '',
  callerDocumentId: '',
  callerTabId: '',
  groupId: '',
  documentId: '',
  registrationId: '',
  toolName: '',
  keepalive: true,
  input: { text: '' },
};

const isSchema = (text: unknown) => text === '' || JSON.parse(text as string);

const TOOL = { registrationId: '', name: '', title: '', description: '', inputSchema: isSchema };

function isEnd(value: unknown): boolean {
  const { type } = value as { type?: unknown };
  if (type === 'returned') return matches(value, { value: { text: orNull('') } });
  return type === 'threw' && matches(value, { error: { text: '' }, reason: '', leaving: true });
}

/** The patterns of what a page sends, by the name of the command. */
export const PATTERNS = {
  hello: {
    versions: [0],
    helloId: '',
    documentId: '',
    tabId: '',
    groupId: '',
    top: true,
    url: '',
    listens: orAbsent(true),
    announcement: {
      tools: [TOOL],
      readyFrom: orAbsent(0),
      quiet: orAbsent(true),
      calls: [{ executionId: '', key: '' }],
      activations: [{ activationId: '', executionId: '', key: '', stored: true, end: orNull(isEnd) }],
      resumptions: [{ activationId: '', executionId: '', token: '' }],
    },
  },
  goodbye: { documentId: '', helloId: '', lostCalls: [CALL], commands: [{ method: '', argument: {} }] },
  execute: { call: CALL, key: '' },
  cancel: { executionId: '' },
  grant: {
    activationId: '',
    executionId: '',
    call: orNull(CALL),
    key: '',
    digest: '',
    tokenKey: {},
    lifetime: Number.isFinite,
  },
  redeem: { activationId: '', token: '' },
  reportEnd: { activationId: '', executionId: '', key: '', end: isEnd },
  reportStay: {},
  announceTools: { tools: [TOOL], readyFrom: orAbsent(0), quiet: orAbsent(true) },
  introduce: { documentId: '' },
  listTools: {},
  collect: { tabSecret: '' },
  awaitOutcomes: { executionIds: [''], tabKey: orAbsent(orNull({})) },
  watch: { on: true },
};
