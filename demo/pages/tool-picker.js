// Owns the agent page's choice of a tool: the list of the group's tools, kept current, and the form of the chosen
// one. The choice and what was typed outlive a page that is loaded again, or that is away for a while.

import { errorLine, modelContext } from './relay.js';
import { showFields } from './schema-form.js';

const part = (id) => document.getElementById(id);
const select = part('tool-select');
let tools = [];
/** The tool that was chosen last, whether it is offered at present or not, and its entry of the latest list. */
let wanted = null;
let chosen = null;
let paths = new Map();
let documentsSeen = '';
let listing = false;
let listAgain = false;

/** The entry to call, or null; and what the fields of its form say. */
export const chosenTool = () => chosen;
export let readFields = () => ({});

/** A page loaded again offers the same tool as a new registration: what was typed for it stays. */
const sameForm = (one, other) =>
  one?.name === other.name && JSON.stringify(one.inputSchema) === JSON.stringify(other.inputSchema);

function choose(tool) {
  const keepFields = sameForm(wanted, tool);
  wanted = chosen = tool;
  part('call-button').disabled = false;
  if (keepFields) return;
  part('tool-description').textContent = tool.description;
  readFields = showFields(part('argument-fields'), tool.inputSchema);
  part('raw-json').value = JSON.stringify(readFields(), null, 2);
}

function findWanted() {
  if (!wanted) return tools[0] ?? null;
  return (
    tools.find((tool) => tool.registrationId === wanted.registrationId) ??
    tools.find((tool) => tool.name === wanted.name && tool.tabId === wanted.tabId) ??
    null
  );
}

function showList(entry) {
  const manyTabs = new Set(tools.map((tool) => tool.tabId)).size > 1;
  const place = ({ documentId, origin, tabId }) =>
    `${paths.get(documentId) ?? origin}${manyTabs ? ` (tab ${tabId.slice(0, 6)})` : ''}`;
  select.replaceChildren(...tools.map((tool) => new Option(`${tool.name} – ${place(tool)}`, tool.name)));
  if (!entry && wanted) select.prepend(new Option(`${wanted.name} – not offered at present`, ''));
  select.selectedIndex = entry ? tools.indexOf(entry) : 0;
  select.disabled = tools.length === 0;
}

function emptyHint() {
  if (tools.length > 0) return '';
  if (window.opener) {
    return (
      'No tools at present: the shop is between two pages or on a page of another origin, or its window is ' +
      'closed. A call that waits goes on.'
    );
  }
  return (
    'This page was opened by hand, so it is a group of its own and sees no tools of the shop. Open the shop and ' +
    'press “Open the agent page” there.'
  );
}

export function tellHint(text) {
  part('agent-hint').textContent = text;
  part('agent-hint').hidden = text === '';
}

async function listTools() {
  tools = await modelContext.getTools({ scope: 'group' });
  const entry = findWanted();
  showList(entry);
  tellHint(emptyHint());
  chosen = entry;
  if (entry) choose(entry);
  else part('call-button').disabled = true;
}

/** One listing at a time; what asks meanwhile gets one more after it. */
export async function refreshTools() {
  listAgain = true;
  if (listing) return;
  listing = true;
  while (listAgain) {
    listAgain = false;
    await listTools().catch((error) => tellHint(`The tools could not be listed. ${errorLine(error)}`));
  }
  listing = false;
}

/** The listing follows the documents and their tools, not every step of every call. */
export function noteDocuments({ documents }) {
  const seen = JSON.stringify(documents);
  if (seen === documentsSeen) return;
  documentsSeen = seen;
  paths = new Map(documents.map(({ documentId, url }) => [documentId, new URL(url, location.href).pathname]));
  refreshTools();
}

select.addEventListener('change', () => {
  // The line for a tool that is not offered stands before the others, if it is there.
  const entry = tools[select.selectedIndex - (select.options.length - tools.length)];
  if (entry) choose(entry);
});
