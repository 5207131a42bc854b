/**
 * The tools that this document has registered (WebMCP, registerTool).
 *
 * Kept: an entry goes with its own registration and no other (a late clean-up never removes a later tool of the same name).
 */
import { isLonger, type Sizes } from '../shared/bounds.ts';
import type { Reason } from '../shared/errors.ts';
import { freshId, type RegistrationId } from '../shared/ids.ts';
import type { ToolAnnotations, ToolDefinition } from '../shared/tool.ts';
import { check, checkObject, dictionary, objectText, required } from './check.ts';
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
  annotations?: ToolAnnotations;
}

/** A tool as it was read. */
export interface ToolDraft extends Omit<ToolDefinition, 'inputSchema'> {
  readonly inputSchema: object | undefined;
  readonly execute: ToolExecuteCallback;
}

export interface ToolEntry extends ToolDefinition {
  readonly execute: ToolExecuteCallback;
}

export interface Tools {
  /** Throws a RelayError, whatever reading the schema throws, or at last what `admit` does. */
  register(draft: ToolDraft, admit: () => void): ToolEntry;
  unregister(id: RegistrationId): void;
  find(id: RegistrationId): ToolEntry | undefined;
  list(): ToolDefinition[];
}

const NAME_PATTERN = /^[\w.-]{1,128}$/;

export function createTools(sizes: Sizes): Tools {
  const entries = new Map<RegistrationId, ToolEntry>();
  const names = new Set<string>();
  const list = (): ToolDefinition[] =>
    [...entries.values()].map(({ execute: _, ...definition }) => definition);

  function register({ inputSchema, ...draft }: ToolDraft, admit: () => void): ToolEntry {
    const { name, description, registrationId } = draft;
    const refuse = (reason: Reason, message: string): void => {
      throw relayFailure(reason, false, message);
    };
    if (names.has(name)) refuse('duplicate-name', `There is a tool ${name} already.`);
    if (!NAME_PATTERN.test(name)) refuse('invalid-tool', `The name must match ${NAME_PATTERN}.`);
    if (description === '') refuse('invalid-tool', 'The description is empty.');
    if (entries.size >= sizes.tools) refuse('too-many', `There are ${sizes.tools} tools already.`);
    const schema = inputSchema === undefined ? '' : schemaText(inputSchema, sizes.schema);
    admit();
    const entry = { ...draft, inputSchema: schema };
    entries.set(registrationId, entry);
    names.add(name);
    return entry;
  }

  function unregister(id: RegistrationId): void {
    names.delete(entries.get(id)?.name ?? '');
    entries.delete(id);
  }

  return { register, unregister, find: (id) => entries.get(id), list };
}

/** Reads the members in the order of Web IDL, each once. Throws a `TypeError`, or whatever reading them throws. */
export function toolOf(tool: ModelContextTool): ToolDraft {
  const members = dictionary(tool);
  const annotations = annotationsOf(members.annotations);
  const description = required('description', members.description);
  const { execute } = members;
  check(typeof execute === 'function', 'execute must be a function.');
  const { inputSchema } = members;
  if (inputSchema !== undefined) checkObject(inputSchema, 'inputSchema');
  const name = required('name', members.name);
  const { title = '' } = members;
  return {
    registrationId: freshId(),
    name,
    title: `${title}`.toWellFormed(),
    description,
    inputSchema,
    annotations,
    execute,
  };
}

function annotationsOf(annotations: ToolAnnotations | undefined): ToolDefinition['annotations'] {
  if (annotations === undefined) return null;
  const members = dictionary(annotations);
  const hints = ['consequentialHint', 'debugging', 'readOnlyHint', 'untrustedContentHint'] as const;
  return Object.fromEntries(hints.map((hint) => [hint, !!members[hint]])) as never;
}

function schemaText(schema: object, limit: number): string {
  const text = objectText(schema, 'inputSchema');
  if (isLonger(text, limit)) throw relayError(tooLarge('input schema', limit));
  checkSchema(JSON.parse(text));
  return text;
}
