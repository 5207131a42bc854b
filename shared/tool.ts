/**
 * A tool as it crosses documents: the specification's *tool definition*, as plain data.
 */
import type { DocumentId, RegistrationId, TabId } from './ids.ts';

/** WebMCP, dictionary ToolAnnotations. */
export interface ToolAnnotations {
  readOnlyHint?: boolean;
  untrustedContentHint?: boolean;
  consequentialHint?: boolean;
  debugging?: boolean;
}

/** One tool of one document. `inputSchema` is JSON text, `''` when none was given. */
export interface ToolDefinition {
  registrationId: RegistrationId;
  name: string;
  title: string;
  description: string;
  inputSchema: string;
  annotations: Required<ToolAnnotations> | null;
}

/** One document and its tools, as a listing of the group carries them. */
export interface ToolOwner {
  documentId: DocumentId;
  tabId: TabId;
  url: string;
  ready: boolean;
  tools: ToolDefinition[];
}
