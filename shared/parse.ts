/**
 * Reading what came from outside: is it shaped as the protocol says?
 *
 * A shape names the members that must be there and their types; members that it does not name are ignored (newer versions
 * may add some). Reading never throws, whatever the value does when it is read.
 */

/** `'string?'` is a string or `null`. `'array'` and `'object'` say nothing of what is inside. */
export type Shape = Readonly<
  Record<string, 'string' | 'number' | 'boolean' | 'array' | 'object' | 'object?' | 'string?'>
>;

export function conforms(value: unknown, shape: Shape): boolean {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return Object.entries(shape).every(([member, type]) => isOfType(Reflect.get(value, member), type));
  } catch {
    return false;
  }
}

function isOfType(value: unknown, type: Shape[string]): boolean {
  if (type.endsWith('?')) return value === null || isOfType(value, type.slice(0, -1) as Shape[string]);
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null;
  if (type === 'number') return Number.isFinite(value);
  return typeof value === type;
}

const CALL: Shape = {
  executionId: 'string',
  callerDocumentId: 'string',
  callerTabId: 'string',
  groupId: 'string',
  keepalive: 'boolean',
  documentId: 'string',
  registrationId: 'string',
  toolName: 'string',
  input: 'string',
  key: 'string',
};

/** The shapes of everything that a page sends, by the name of the command. */
export const SHAPES = {
  hello: {
    versions: 'array',
    documentId: 'string',
    tabId: 'string',
    groupId: 'string',
    top: 'boolean',
    url: 'string',
    announcement: 'object',
  },
  announcement: { tools: 'array', calls: 'array', activations: 'array', resumptions: 'array' },
  goodbye: { documentId: 'string', lostCalls: 'array', commands: 'array' },
  command: { method: 'string', argument: 'object' },
  cancel: { executionId: 'string' },
  grant: {
    activationId: 'string',
    executionId: 'string',
    call: 'object?',
    key: 'string',
    digest: 'string',
    tokenKey: 'object',
    lifetime: 'number',
  },
  redeem: { activationId: 'string', token: 'string' },
  reportEnd: {
    activationId: 'string',
    executionId: 'string',
    key: 'string',
    stored: 'boolean',
    end: 'object',
  },
  announceTools: { tools: 'array' },
  collect: { tabSecret: 'string' },
  awaitOutcomes: { executionIds: 'array' },
  watch: { on: 'boolean' },
} as const satisfies Record<string, Shape>;

const TOOL: Shape = {
  registrationId: 'string',
  name: 'string',
  title: 'string',
  description: 'string',
  inputSchema: 'string',
  annotations: 'object?',
};
const ANNOUNCED_ACTIVATION: Shape = {
  activationId: 'string',
  executionId: 'string',
  key: 'string',
  stored: 'boolean',
  call: 'object?',
  end: 'object?',
};
const RESUMPTION: Shape = { activationId: 'string', executionId: 'string', token: 'string' };
const LOST_CALL: Shape = {
  executionId: 'string',
  callerTabId: 'string',
  groupId: 'string',
  toolName: 'string',
  input: 'string',
};

type Members = Record<string, unknown>;

export function isCall(value: unknown): boolean {
  return conforms(value, CALL);
}

export function isTool(value: unknown): boolean {
  return conforms(value, TOOL);
}

export function isLostCall(value: unknown): boolean {
  return conforms(value, LOST_CALL);
}

/** Is it the end of a callback? */
export function isEnd(value: unknown): boolean {
  if (conforms(value, { type: 'string', text: 'string?' })) return (value as Members).type === 'returned';
  if (!conforms(value, { type: 'string', error: 'object', leaving: 'boolean' })) return false;
  const { type, error } = value as Members;
  return type === 'threw' && conforms(error, { reason: 'string', message: 'string' });
}

export function isAnnouncement(value: unknown): boolean {
  if (!conforms(value, SHAPES.announcement)) return false;
  const { tools, calls, activations, resumptions } = value as Record<string, unknown[]>;
  return (
    every(tools, isTool) &&
    every(
      calls,
      (item) => conforms(item, { call: 'object', stored: 'boolean' }) && isCall((item as Members).call),
    ) &&
    every(activations, isAnnouncedActivation) &&
    every(resumptions, (item) => conforms(item, RESUMPTION))
  );
}

function isAnnouncedActivation(value: unknown): boolean {
  if (!conforms(value, ANNOUNCED_ACTIVATION)) return false;
  const { call, end } = value as Members;
  return (call === null || isCall(call)) && (end === null || isEnd(end));
}

function every(items: unknown[] | undefined, test: (item: unknown) => boolean): boolean {
  return items?.every(test) ?? false;
}
