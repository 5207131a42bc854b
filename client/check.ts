/** What a page gives us, checked as Web IDL would: what is wrong is a `TypeError`. */

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
