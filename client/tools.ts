/**
 * The tools that this document has registered (WebMCP, registerTool).
 *
 * Kept: an entry goes with its own registration and no other (a late clean-up never removes a later tool of the same name).
 */
import { isLonger, type Sizes } from '../shared/bounds.ts';
import type { Reason } from '../shared/errors.ts';
import { freshId, type RegistrationId } from '../shared/ids.ts';
import type { ToolAnnotations, ToolDefinition } from '../shared/tool.ts';
import { check, checkObject, objectText } from './check.ts';
import { relayError, relayFailure } from './errors.ts';
import type { ToolExecuteCallback } from './invocation.ts';
import { checkSchema } from './schema.ts';
import { tooLarge } from './values.ts';

/** WebMCP, dictionary ModelContextTool. */
export interface ModelContextTool {
  /** 1 to 128 of `[A-Za-z0-9_.-]`, one a document. */
  name: string;
  title?: string;
  description: string;
  /** A JSON Schema, as far as JSON can hold it. A call whose input does not fit it is refused. */
  inputSchema?: object;
  execute: ToolExecuteCallback;
  annotations?: Partial<ToolAnnotations>;
}

export interface ToolEntry extends ToolDefinition {
  readonly execute: ToolExecuteCallback;
}

export interface Tools {
  /** Throws a `TypeError`, a RelayError, or whatever reading the tool throws. */
  register(tool: ModelContextTool): ToolEntry;
  /** Says whether it was there. */
  unregister(id: RegistrationId): boolean;
  find(id: RegistrationId): ToolEntry | undefined;
  list(): ToolDefinition[];
}

const NAME_PATTERN = /^[\w.-]{1,128}$/;

export function createTools(sizes: Sizes): Tools {
  const entries = new Map<RegistrationId, ToolEntry>();
  const list = (): ToolDefinition[] =>
    [...entries.values()].map(({ execute: _, ...definition }) => definition);

  function register(tool: ModelContextTool): ToolEntry {
    const entry = convert(tool, sizes.schema);
    const { name, description, registrationId } = entry;
    const refuse = (reason: Reason, message: string): void => {
      throw relayFailure(reason, false, message);
    };
    if (list().some((other) => other.name === name))
      refuse('duplicate-name', `There is a tool ${name} already.`);
    if (!NAME_PATTERN.test(name)) refuse('invalid-tool', `The name must match ${NAME_PATTERN}.`);
    if (description === '') refuse('invalid-tool', 'The description is empty.');
    if (entries.size >= sizes.tools) refuse('too-many', `There are ${sizes.tools} tools already.`);
    entries.set(registrationId, entry);
    return entry;
  }

  return { register, unregister: (id) => entries.delete(id), find: (id) => entries.get(id), list };
}

/** Reads the members in the order of Web IDL, each once. */
function convert(tool: ModelContextTool, limit: number): ToolEntry {
  checkObject(tool, 'A tool');
  const annotations = convertAnnotations(tool.annotations);
  const description = required('description', tool.description);
  const { execute } = tool;
  check(typeof execute === 'function', 'execute must be a function.');
  const { inputSchema } = tool;
  const name = required('name', tool.name);
  const { title = '' } = tool;
  return {
    registrationId: freshId(),
    name,
    title: String(title).toWellFormed(),
    description,
    inputSchema: inputSchema === undefined ? '' : schemaText(inputSchema, limit),
    annotations,
    execute,
  };
}

function required(member: string, value: unknown): string {
  check(value !== undefined, `${member} is required.`);
  return `${value}`;
}

function convertAnnotations(annotations: Partial<ToolAnnotations> | undefined): ToolAnnotations | null {
  if (annotations === undefined || annotations === null) return null;
  checkObject(annotations, 'annotations');
  const hints = ['consequentialHint', 'debugging', 'readOnlyHint', 'untrustedContentHint'] as const;
  return Object.fromEntries(hints.map((hint) => [hint, !!annotations[hint]])) as never;
}

function schemaText(schema: object, limit: number): string {
  const text = objectText(schema, 'inputSchema');
  if (isLonger(text, limit)) throw relayError(tooLarge('input schema', limit));
  checkSchema(JSON.parse(text));
  return text;
}
