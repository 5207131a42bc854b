/** What a page gives us, checked and converted as Web IDL would: what is wrong is a `TypeError`. */

export function check(holds: boolean, complaint: string): asserts holds {
  if (!holds) throw new TypeError(complaint);
}

export function checkObject(value: unknown, what: string): void {
  check(Object(value) === value, `${what} must be an object.`);
}

/** JSON text of an object, which must be one as JSON too. What `JSON.stringify` throws, it throws. */
export function objectText(value: unknown, what: string): string {
  const text = JSON.stringify(value);
  check(/^[[{]/.test(text), `${what} must be an object.`);
  return text;
}

/** How a member is converted; it may throw. */
export type Conversion = (value: never, member: string) => unknown;

/**
 * Members of a dictionary, each read once, in the order of their names, and converted before the next is read. `null` is an
 * empty one.
 */
export function converted<T extends object>(
  value: object | null | undefined,
  conversions: { [Member in keyof T]-?: Conversion },
): T {
  const members = value ?? {};
  checkObject(members, 'A dictionary');
  const convert = (member: keyof T & string): [string, unknown] => [
    member,
    conversions[member](members[member as never], member),
  ];
  return Object.fromEntries((Object.keys(conversions).sort() as (keyof T & string)[]).map(convert)) as T;
}

/** A member that must be there. */
export function given<T>(value: T, member: string): T {
  check(value !== undefined, `${member} is required.`);
  return value;
}

/** A member that must be there, as text. */
export function required(value: unknown, member: string): string {
  return `${given(value, member)}`;
}

/** A signal, of whatever realm: anything else would leave a tool or a call behind. */
export function asSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  // The getter throws for what is none.
  if (signal !== undefined) Reflect.get(AbortSignal.prototype, 'aborted', signal);
  return signal;
}

/** Anything, as it is. */
export const asGiven = (value: unknown): unknown => value;

/** A sequence of texts; an empty one if it is left out. */
export function texts(values: Iterable<unknown> = []): string[] {
  checkObject(values, 'A sequence');
  return [...values].map((value) => `${value}`);
}
