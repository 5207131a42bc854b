/** What counts as JSON Schema when a tool is registered. */
import { describe, expect, test } from 'vitest';
import { checkSchema } from '../../client/schema.ts';

const at = (keyword: string, value: unknown) => ({ type: 'object', [keyword]: value });

describe('is refused with a TypeError', () => {
  const wrong: Record<string, unknown[]> = {
    type: [7, 'nonsense', null, {}, ['string', 7], ['nonsense'], [['string']]],
    required: ['a', true, [1], {}],
    properties: [[], 'a', 5, null, true, { a: 5 }, { a: { type: 7 } }, { a: [] }],
    patternProperties: [[], { '^a': 'b' }],
    $defs: [[], { a: 1 }],
    definitions: ['a'],
    enum: [{}, 'a', 1],
    pattern: ['(', '[', 7, null],
    items: [5, 'a', [1], [{ type: 7 }]],
    prefixItems: [{}, [1]],
    allOf: [{}, [1]],
    anyOf: [{}, 'a', [{ required: 'a' }]],
    oneOf: [7],
    not: [[], 'a', null],
    if: [1],
    // biome-ignore lint/suspicious/noThenProperty: a keyword
    then: [1],
    else: [1],
    contains: [[]],
    propertyNames: ['a'],
    additionalProperties: ['no', [], null, { type: 'nonsense' }],
    minimum: ['1', true],
    maximum: [null],
    multipleOf: ['2'],
    minLength: ['1'],
    maxLength: [{}],
    minItems: [[]],
    maxItems: ['1'],
    minProperties: ['1'],
    maxProperties: ['1'],
    uniqueItems: ['yes', 1],
  };
  for (const [keyword, values] of Object.entries(wrong)) {
    test.each(values.map((value) => [JSON.stringify(value), value]))(`${keyword}: %s`, (_, value) => {
      expect(() => checkSchema(at(keyword, value))).toThrow(TypeError);
    });
  }

  test.each([[[]], [null], ['a'], [5]])('%j', (value) => {
    expect(() => checkSchema(value)).toThrow(TypeError);
  });

  test('with the innermost keyword and its value in the message', () => {
    const schema = at('properties', { a: { anyOf: [{ items: { type: 'strin' } }] } });
    expect(() => checkSchema(schema)).toThrow('inputSchema: type cannot be "strin".');
  });
});

describe('is accepted', () => {
  const right: Record<string, unknown> = {
    'an empty schema': {},
    'several types': at('type', ['object', 'null']),
    'boolean subschemas': at('properties', { a: true, b: false }),
    'boolean additionalProperties': at('additionalProperties', true),
    'a schema for additionalProperties': at('additionalProperties', { type: 'string' }),
    'references, also ones that lead nowhere': at('properties', {
      a: { $ref: '#/$defs/a' },
      b: { $ref: 'b' },
    }),
    definitions: { $defs: { a: { type: 'string' } }, definitions: { b: true } },
    'any format': at('properties', { a: { format: 'email' }, b: { format: 'colour' } }),
    'unknown keywords': { 'x-order': 7, contentEncoding: 'base64', examples: 5 },
    'keywords that are members of every object': { constructor: 1, toString: 2, valueOf: [] },
    'a keyword __proto__': JSON.parse('{"__proto__": 5}'),
    'properties that are called like keywords': at('properties', {
      type: { type: 'string' },
      enum: {},
      required: true,
    }),
    'a pattern that only the Unicode mode refuses': at('properties', { a: { pattern: '^a\\-b$' } }),
    'items of draft 7': at('items', [{ type: 'string' }, true]),
    'exclusive bounds of draft 4': { exclusiveMinimum: true, minimum: 1 },
    'whatever enum, const and default hold': {
      enum: [{ type: 7 }],
      const: { type: 7 },
      default: { required: 'a' },
    },
  };
  test.each(Object.entries(right))('%s', (_, schema) => {
    expect(() => checkSchema(schema)).not.toThrow();
  });
});
