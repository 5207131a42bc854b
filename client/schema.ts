/**
 * Is it JSON Schema? Decided when a tool is registered, without the validator.
 *
 * Looks at the keywords whose wrong values would make a schema senseless; any other may have any value.
 */
import { check } from './check.ts';

type Test = (value: unknown) => boolean;

const ofType =
  (type: string): Test =>
  (value) =>
    typeof value === type;
const isCount = ofType('number');
const text = ofType('string');
const list =
  (test: Test): Test =>
  (value) =>
    Array.isArray(value) && value.every(test);
const schemas = list(isSchema);

const isType: Test = (value) =>
  text(value) && /^(array|boolean|integer|null|number|object|string)$/.test(value as string);

const named: Test = (value) => isRecord(value) && schemas(Object.values(value as object));

const isRecord: Test = (value) => Object(value) === value && !Array.isArray(value);

/** What the values of keywords must be. The exclusive bounds are numbers now and were booleans once. */
const TESTS: Partial<Record<string, Test>> = {
  __proto__: null as never,
  type: (value) => list(isType)([value].flat()),
  enum: Array.isArray,
  required: list(text),
  pattern: isPattern,
  uniqueItems: ofType('boolean'),
  multipleOf: isCount,
  minimum: isCount,
  maximum: isCount,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  allOf: schemas,
  anyOf: schemas,
  oneOf: schemas,
  prefixItems: schemas,
  items: (value) => schemas(value) || isSchema(value),
  additionalProperties: isSchema,
  propertyNames: isSchema,
  contains: isSchema,
  not: isSchema,
  if: isSchema,
  // biome-ignore lint/suspicious/noThenProperty: never awaited
  then: isSchema,
  else: isSchema,
  properties: named,
  patternProperties: named,
  definitions: named,
  $defs: named,
};

function isPattern(value: unknown): boolean {
  try {
    return text(value) && !!new RegExp(value as string);
  } catch {
    return false;
  }
}

function isSchema(value: unknown): boolean {
  if (!isRecord(value)) return typeof value === 'boolean';
  for (const [keyword, argument] of Object.entries(value as object))
    check(
      TESTS[keyword]?.(argument) !== false,
      `inputSchema: ${keyword} cannot be ${JSON.stringify(argument)}.`,
    );
  return true;
}

/** Throws a `TypeError` unless the value, read from JSON, is an object that is a schema. */
export function checkSchema(schema: unknown): void {
  check(isSchema(schema), 'inputSchema must be a JSON Schema.');
}
