/**
 * Does an input fit its schema? A script of its own, loaded by `validation`; it evaluates no code, so any policy will do.
 *
 * Owns: what an agent is told. Paths are JSON Pointers; of a missing or unwelcome member it is the member's.
 */
import { type OutputUnit, type SchemaDraft, Validator } from '@cfworker/json-schema';
import { type ErrorRecord, failure } from '../shared/errors.ts';

/** More would not help anybody. */
const MOST_ERRORS = 16;
/** A message may quote the schema. */
const LONGEST_MESSAGE = 1_024;

/** Keywords whose errors only say that there are errors below them. */
const APPLIES =
  /^(\$(recursiveR|r)ef|allOf|if|properties|patternProperties|propertyNames|items|prefixItems|(additional|unevaluated)(Items|Properties)|dependentSchemas)$/;

/**
 * Nothing if the input fits. The message is the first error as JSON: `path`, the keyword as `reason`, `message`, and that
 * keyword's place within its own schema as `schemaPath`. Throws where the schema cannot be applied, such as for a reference that
 * leads nowhere.
 */
export function refusalOf(schemaText: string, inputText: string): ErrorRecord | undefined {
  const schema = JSON.parse(schemaText);
  const input = JSON.parse(inputText);
  const units = unitsOf(schema, input);
  if (units.length === 0) return undefined;
  const found = units.flatMap((unit, index) =>
    APPLIES.test(unit.keyword) ? [] : explain(unit, units[index - 1]),
  );
  const errors = found.slice(0, MOST_ERRORS);
  return {
    ...failure('invalid-input', false, JSON.stringify(errors[0])),
    errors: errors.map(({ path, message }) => ({ path, message })),
  };
}

/** All that is wrong; of an input with so much wrong that the validator gives up, the first. */
function unitsOf(schema: object, input: unknown): OutputUnit[] {
  const draft = draftOf(schema);
  try {
    return new Validator(schema, draft, false).validate(input).errors;
  } catch {
    return new Validator(schema, draft, true).validate(input).errors;
  }
}

function draftOf({ $schema }: { $schema?: unknown }): SchemaDraft {
  const [, draft] = /draft-0([467])|2019-09/.exec(String($schema)) ?? ['', '2020-12'];
  if (draft === undefined) return '2019-09';
  return draft === '6' ? '7' : (draft as SchemaDraft);
}

/** In the validator's words, but with the member itself named, and `false` told apart by the keyword that it stands at. */
function explain({ instanceLocation, keyword, error }: OutputUnit, before: OutputUnit | undefined) {
  const [, missing] =
    /^Instance (?:does not have required property "|has .* but does not have ")(.*)"\.$/s.exec(error) ?? [];
  const path =
    decodeURIComponent(instanceLocation.slice(1)) + (missing === undefined ? '' : `/${escaped(missing)}`);
  const isFalse = keyword === 'false';
  const reason = isFalse ? (before?.keyword ?? keyword) : keyword;
  const message = (isFalse ? 'Nothing is allowed here.' : error).slice(0, LONGEST_MESSAGE);
  return { path, reason, schemaPath: `/${reason}`, message };
}

/** One step of a JSON Pointer. */
function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
