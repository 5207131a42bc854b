/** What an agent is told of an input that does not fit. */
import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../client/validator.ts';

const ask = (schema: unknown, input: unknown) => refusalOf(JSON.stringify(schema), JSON.stringify(input));
const errorsOf = (schema: unknown, input: unknown) => ask(schema, input)?.errors;
const object = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest });

test('an input that fits is not refused', () => {
  expect(ask(object({ a: { type: 'string' } }), { a: 'b', c: 1 })).toBeUndefined();
});

test('a refusal is invalid-input, not started, and its message is the first error as JSON', () => {
  const refusal = ask(object({ age: { type: 'integer' } }), { age: 'old' });
  expect(refusal).toMatchObject({ reason: 'invalid-input', started: false });
  expect(JSON.parse(refusal?.message ?? '')).toEqual({
    path: '/age',
    reason: 'type',
    schemaPath: '/type',
    message: 'Instance type "string" is invalid. Expected "integer".',
  });
});

describe('paths are JSON Pointers', () => {
  test.each<[string, object, object, string[]]>([
    ['the input itself', { minProperties: 1 }, {}, ['']],
    ['a member', object({ a: { type: 'string' } }), { a: 1 }, ['/a']],
    ['a missing member', { required: ['a', 'b'] }, { a: 1 }, ['/b']],
    ['a missing member of a member', object({ a: { required: ['b'] } }), { a: {} }, ['/a/b']],
    ['a member that another one needs', { dependentRequired: { a: ['b'] } }, { a: 1 }, ['/b']],
    ['an unwelcome member', { additionalProperties: false }, { a: 1 }, ['/a']],
    ['a forbidden member', object({ a: false }), { a: 1 }, ['/a']],
    [
      'items of members',
      object({ list: { items: object({ n: { minimum: 1 } }) } }),
      { list: [{ n: 1 }, { n: 0 }, { n: -1 }] },
      ['/list/1/n', '/list/2/n'],
    ],
    ['odd names', object({ 'a/b~c %#"ü': { type: 'string' } }), { 'a/b~c %#"ü': 1 }, ['/a~1b~0c %#"ü']],
    ['odd names that are missing', { required: ['a/"~ü'] }, {}, ['/a~1"~0ü']],
    [
      'a reference',
      object({ a: { $ref: '#/$defs/n' } }, { $defs: { n: { type: 'number' } } }),
      { a: '' },
      ['/a'],
    ],
    ['all of several', { allOf: [{ required: ['a'] }, { required: ['b'] }] }, {}, ['/a', '/b']],
    ['any of several', { anyOf: [{ required: ['a'] }, { required: ['b'] }] }, {}, ['', '/a', '/b']],
  ])('%s', (_, schema, input, paths) => {
    expect(errorsOf(schema, input)?.map(({ path }) => path)).toEqual(paths);
  });
});

test('what is not allowed is said to be so, by the keyword that forbids it', () => {
  const refusal = ask({ additionalProperties: false }, { a: 1 });
  expect(refusal?.errors).toEqual([{ path: '/a', message: 'Nothing is allowed here.' }]);
  expect(JSON.parse(refusal?.message ?? '').reason).toBe('additionalProperties');
});

test('there are 16 errors at most, with messages of bounded length', () => {
  const list = Array.from({ length: 300_000 }, () => 1);
  const few = errorsOf(object({ list: { items: { type: 'string' } } }), { list: list.slice(0, 100) });
  expect(few).toHaveLength(16);
  const long = errorsOf({ required: ['x'.repeat(5_000)] }, {});
  expect(long?.[0]?.message.length).toBe(1_024);
  expect(errorsOf(object({ list: { items: { type: 'string' } } }), { list })?.[0]?.path).toBe('/list/0');
});

describe('a schema is of the draft that it names, else of 2020-12', () => {
  const tuple = { items: [{ type: 'string' }] };
  test.each([
    [
      'draft-04',
      'http://json-schema.org/draft-04/schema#',
      object({ a: { minimum: 1, exclusiveMinimum: true } }),
      { a: 1 },
    ],
    ['draft-06', 'http://json-schema.org/draft-06/schema#', object({ a: tuple }), { a: [1] }],
    ['draft-07', 'http://json-schema.org/draft-07/schema#', object({ a: tuple }), { a: [1] }],
    ['2019-09', 'https://json-schema.org/draft/2019-09/schema', object({ a: tuple }), { a: [1] }],
    ['2020-12', undefined, object({ a: { prefixItems: [{ type: 'string' }] } }), { a: [1] }],
  ])('%s', (_, $schema, schema, input) => {
    expect(errorsOf({ $schema, ...schema }, input)?.[0]?.path).toMatch(/^\/a/);
  });
});

test.each([
  ['a reference that leads nowhere', object({ a: { $ref: '#/$defs/none' } }), { a: 1 }],
  ['a pattern that the Unicode mode refuses', object({ a: { pattern: '^a\\-b$' } }), { a: 'a-b' }],
])('%s: throws, for the schema cannot be applied', (_, schema, input) => {
  expect(() => ask(schema, input)).toThrow();
});
