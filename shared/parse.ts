/**
 * Reading what came from outside: is it shaped as the protocol says?
 *
 * A shape names the members that must be there, by what they must be; members that it does not name are ignored (newer
 * versions may add some). Reading never throws, whatever the value does when it is read.
 */

/** Names of members, separated by spaces, under the name of the test that each must pass. */
export type Shape = Readonly<Partial<Record<string, string>>>;

export function conforms(value: unknown, shape: Shape): boolean {
  try {
    return Object.entries(shape).every(([test, names = '']) =>
      names.split(' ').every((name) => TESTS[test]?.(Reflect.get(value as object, name))),
    );
  } catch {
    return false;
  }
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;
const shaped = (shape: Shape) => (value: unknown) => conforms(value, shape);
const orNull = (test: (value: unknown) => boolean) => (value: unknown) => value === null || test(value);
const each = (test: (value: unknown) => boolean) => (value: unknown) =>
  Array.isArray(value) && value.every(test);
const typed = (type: string) => (value: unknown) => typeof value === type;

const CALL: Shape = {
  string: 'executionId callerDocumentId callerTabId groupId documentId registrationId toolName input key',
  boolean: 'keepalive',
};

const isTool = shaped({ string: 'registrationId name title description inputSchema' });

const TESTS: Record<string, (value: unknown) => boolean> = {
  string: typed('string'),
  number: Number.isFinite,
  boolean: typed('boolean'),
  object: isObject,
  call: shaped(CALL),
  callOrNull: orNull(shaped(CALL)),
  value: (value) => orNull(typed('string'))((value as { text?: unknown }).text),
  end: isEnd,
  endOrNull: orNull(isEnd),
  strings: each(typed('string')),
  numbers: each(Number.isFinite),
  tools: each(isTool),
  calls: each(shaped({ call: 'call', boolean: 'stored' })),
  activations: each(
    shaped({
      string: 'activationId executionId key',
      boolean: 'stored',
      callOrNull: 'call',
      endOrNull: 'end',
    }),
  ),
  resumptions: each(shaped({ string: 'activationId executionId token' })),
  announcement: shaped({
    tools: 'tools',
    calls: 'calls',
    activations: 'activations',
    resumptions: 'resumptions',
  }),
  lostCalls: each(shaped({ string: 'executionId callerTabId groupId toolName input' })),
  commands: each(shaped({ string: 'method', object: 'argument' })),
};

function isEnd(value: unknown): boolean {
  const { type } = value as { type?: unknown };
  if (type === 'returned') return conforms(value, { value: 'value' });
  return type === 'threw' && conforms(value, { value: 'error', string: 'reason', boolean: 'leaving' });
}

/** The shapes of what a page sends, by the name of the command. */
export const SHAPES = {
  hello: {
    numbers: 'versions',
    string: 'documentId tabId groupId url',
    boolean: 'top',
    announcement: 'announcement',
  },
  goodbye: { string: 'documentId', lostCalls: 'lostCalls', commands: 'commands' },
  execute: CALL,
  cancel: { string: 'executionId' },
  grant: {
    string: 'activationId executionId key digest',
    callOrNull: 'call',
    object: 'tokenKey',
    number: 'lifetime',
  },
  redeem: { string: 'activationId token' },
  reportEnd: { string: 'activationId executionId key', end: 'end' },
  reportStay: {},
  announceTools: { tools: 'tools' },
  listTools: {},
  collect: { string: 'tabSecret' },
  awaitOutcomes: { strings: 'executionIds' },
  watch: { boolean: 'on' },
} as const satisfies Record<string, Shape>;
