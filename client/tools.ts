/**
 * The tools that this document has registered (WebMCP, registerTool).
 *
 * Kept: an entry goes with its own registration and no other (a late clean-up never removes a later tool of the same name).
 */
import { isLonger, type Sizes } from '../shared/bounds.ts';
import { freshId, type RegistrationId } from '../shared/ids.ts';
import type { ToolAnnotations, ToolDefinition } from '../shared/tool.ts';
import { relayError, relayFailure } from './errors.ts';
import type { ToolExecuteCallback } from './invocation.ts';
import { objectText, tooLarge } from './values.ts';

/** WebMCP, dictionary ModelContextTool. */
export interface ModelContextTool {
  /** 1 to 128 of `[A-Za-z0-9_.-]`, one a document. */
  name: string;
  title?: string;
  description: string;
  /** A JSON Schema; anything that JSON can hold. */
  inputSchema?: object;
  execute: ToolExecuteCallback;
  annotations?: Partial<ToolAnnotations>;
}

interface Entry {
  readonly definition: ToolDefinition;
  readonly execute: ToolExecuteCallback;
}

export interface Tools {
  /** Throws a `TypeError`, a RelayError, or whatever reading the tool throws. */
  register(tool: ModelContextTool): RegistrationId;
  /** Says whether it was there. */
  unregister(id: RegistrationId): boolean;
  find(id: RegistrationId): Entry | undefined;
  list(): ToolDefinition[];
}

const NAME_PATTERN = /^[A-Za-z0-9_.-]{1,128}$/;

export function createTools(sizes: Sizes): Tools {
  const entries = new Map<RegistrationId, Entry>();
  const byName = new Map<string, RegistrationId>();

  function register(tool: ModelContextTool): RegistrationId {
    const { definition, execute } = convert(tool, sizes);
    const { name, description, registrationId } = definition;
    if (byName.has(name))
      throw relayFailure('duplicate-name', false, `A tool named ${name} is registered already.`);
    if (!NAME_PATTERN.test(name)) {
      throw relayFailure(
        'invalid-tool',
        false,
        'A tool name has 1 to 128 characters of A-Z, a-z, 0-9, _, . and -.',
      );
    }
    if (description === '') throw relayFailure('invalid-tool', false, 'A tool needs a description.');
    if (entries.size >= sizes.tools) {
      throw relayFailure('too-many', false, `A document may have ${sizes.tools} tools at most.`);
    }
    entries.set(registrationId, { definition, execute });
    byName.set(name, registrationId);
    return registrationId;
  }

  return {
    register,
    unregister(id) {
      const entry = entries.get(id);
      if (entry === undefined) return false;
      entries.delete(id);
      byName.delete(entry.definition.name);
      return true;
    },
    find: (id) => entries.get(id),
    list: () => [...entries.values()].map(({ definition }) => definition),
  };
}

/** Reads the members in the order of Web IDL, each once. */
function convert(tool: ModelContextTool, sizes: Sizes): Entry {
  if ((typeof tool !== 'object' && typeof tool !== 'function') || tool === null) {
    throw new TypeError('A tool must be an object.');
  }
  const annotations = convertAnnotations(tool.annotations);
  const description = required('description', tool.description);
  const execute = tool.execute;
  if (typeof execute !== 'function') throw new TypeError('execute must be a function.');
  const { inputSchema } = tool;
  const name = required('name', tool.name);
  const { title } = tool;
  const definition = {
    registrationId: freshId(),
    name,
    title: title === undefined ? '' : String(title).toWellFormed(),
    description,
    inputSchema: schemaText(inputSchema, sizes),
    annotations,
  };
  return { definition, execute };
}

function required(member: string, value: unknown): string {
  if (value === undefined) throw new TypeError(`${member} is required.`);
  return `${value as string}`;
}

function convertAnnotations(annotations: Partial<ToolAnnotations> | undefined): ToolAnnotations | null {
  if (annotations === undefined || annotations === null) return null;
  if (typeof annotations !== 'object') throw new TypeError('annotations must be an object.');
  const hints = ['consequentialHint', 'debugging', 'readOnlyHint', 'untrustedContentHint'] as const;
  const read = hints.map((hint) => [hint, Boolean(annotations[hint])]);
  return Object.fromEntries(read) as ToolAnnotations;
}

function schemaText(schema: unknown, sizes: Sizes): string {
  if (schema === undefined) return '';
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) {
    throw new TypeError('inputSchema must be an object.');
  }
  const text = objectText(schema, 'inputSchema');
  if (isLonger(text, sizes.schema)) throw relayError(tooLarge('input schema', text, sizes.schema));
  return text;
}
