/**
 * The tools that this document has registered (WebMCP, registerTool).
 *
 * Kept: an entry goes with its own registration and no other (a late clean-up never removes a later tool of the same name).
 */
import { isLonger, type Sizes } from '../shared/bounds.ts';
import type { Reason } from '../shared/errors.ts';
import { freshId, type RegistrationId } from '../shared/ids.ts';
import type { ToolAnnotations, ToolDefinition } from '../shared/tool.ts';
import { check, checkObject, converted, objectText, required } from './check.ts';
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
    const checkRoom = (): void => {
      if (names.has(name)) refuse('duplicate-name', `There is a tool ${name} already.`);
      if (entries.size >= sizes.tools) refuse('too-many', `There are ${sizes.tools} tools already.`);
    };
    checkRoom();
    if (!NAME_PATTERN.test(name)) refuse('invalid-tool', `The name must match ${NAME_PATTERN}.`);
    if (description === '') refuse('invalid-tool', 'The description is empty.');
    const schema = inputSchema === undefined ? '' : schemaText(inputSchema, sizes.schema);
    // Reading the schema may have run script that registers tools itself.
    checkRoom();
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

/** What a tool to be registered and one that was listed have in common. */
export const TOOL_MEMBERS = {
  annotations: (annotations?: ToolAnnotations): ToolDefinition['annotations'] =>
    annotations === undefined
      ? null
      : converted<Required<ToolAnnotations>>(annotations, {
          consequentialHint: Boolean,
          debugging: Boolean,
          readOnlyHint: Boolean,
          untrustedContentHint: Boolean,
        }),
  description: required,
  inputSchema(schema: unknown, member: string): unknown {
    if (schema !== undefined) checkObject(schema, member);
    return schema;
  },
  name: required,
  title: (title = ''): string => `${title}`.toWellFormed(),
};

/** Throws a `TypeError`, or whatever reading the members throws. */
export function toolOf(tool: ModelContextTool): ToolDraft {
  const members = converted<Omit<ToolDraft, 'registrationId'>>(tool, {
    ...TOOL_MEMBERS,
    execute(callback: unknown, member) {
      check(typeof callback === 'function', `${member} must be a function.`);
      return callback;
    },
  });
  return { ...members, registrationId: freshId() };
}

function schemaText(schema: object, limit: number): string {
  const text = objectText(schema, 'inputSchema');
  if (isLonger(text, limit)) throw relayError(tooLarge('input schema', limit));
  checkSchema(JSON.parse(text));
  return text;
}
