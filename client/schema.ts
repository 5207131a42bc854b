/**
 * Is it JSON Schema? Decided when a tool is registered, without the validator.
 *
 * Looks at the keywords whose wrong values would make a schema senseless; any other may have any value.
 */
import { check } from './check.ts';

type Test = (value: unknown) => boolean;

const isList = (value: unknown, test: Test): boolean => Array.isArray(value) && value.every(test);

const isBoolean: Test = (value) => typeof value === 'boolean';
const isNumber: Test = (value) => typeof value === 'number';
const isText: Test = (value) => typeof value === 'string';
const isType: Test = (value) =>
  isText(value) && /^(array|boolean|integer|null|number|object|string)$/.test(value as string);
const isRecord: Test = (value) => Object(value) === value && !Array.isArray(value);
const isSchemas: Test = (value) => isList(value, isSchema);
const isNamedSchemas: Test = (value) => isRecord(value) && Object.values(value as object).every(isSchema);

/** The exclusive bounds are not among them: they were booleans once. */
const NUMBERS = /^(multipleOf|(min|max)(imum|Length|Items|Properties))$/;

/** What the values of other keywords must be. */
const TESTS: Partial<Record<string, Test>> = {
  __proto__: null as never,
  type: (value) => [value].flat().every(isType),
  enum: Array.isArray,
  required: (value) => isList(value, isText),
  pattern: isPattern,
  uniqueItems: isBoolean,
  allOf: isSchemas,
  anyOf: isSchemas,
  oneOf: isSchemas,
  prefixItems: isSchemas,
  items: (value) => isSchemas(value) || isSchema(value),
  additionalProperties: isSchema,
  propertyNames: isSchema,
  contains: isSchema,
  not: isSchema,
  if: isSchema,
  // biome-ignore lint/suspicious/noThenProperty: never awaited
  then: isSchema,
  else: isSchema,
  properties: isNamedSchemas,
  patternProperties: isNamedSchemas,
  definitions: isNamedSchemas,
  $defs: isNamedSchemas,
};

function isPattern(value: unknown): boolean {
  try {
    new RegExp(value as string);
    return isText(value);
  } catch {
    return false;
  }
}

function isSchema(value: unknown): boolean {
  if (!isRecord(value)) return isBoolean(value);
  for (const [keyword, argument] of Object.entries(value as object)) {
    if ((NUMBERS.test(keyword) ? isNumber : TESTS[keyword])?.(argument) === false)
      check(false, `inputSchema: ${keyword} cannot be ${JSON.stringify(argument)}.`);
  }
  return true;
}

/** Throws a `TypeError` unless the value, read from JSON, is an object that is a schema. */
export function checkSchema(schema: unknown): void {
  check(isSchema(schema), 'inputSchema must be a JSON Schema.');
}
