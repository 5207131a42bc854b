// Owns the agent page: lists the tools of its group, makes the form of the chosen one, calls, and shows each call.
// The group is the tab that opened this window and the windows beside it; opened by hand it is a group of its own.

import { callCard } from './call-card.js';
import { showLive } from './live.js';
import { errorLine, modelContext, relayState } from './relay.js';
import { showFields } from './schema-form.js';

const part = (id) => document.getElementById(id);
const select = part('tool-select');
let tools = [];
let chosen = null;
let readFields = () => ({});
let urls = new Map();
let listing = null;
let listAgain = false;

function tell(place, text) {
  place.textContent = text;
  place.hidden = text === '';
}

function hintFor() {
  if (tools.length > 0) return '';
  if (window.opener) return 'No tools at present. Is the shop still open in the window that opened this one?';
  return (
    'This page was opened by hand, so it is a group of its own and sees no tools of the shop. Open the shop and ' +
    'press “Open the agent page” there.'
  );
}

function choose() {
  const before = chosen;
  chosen = tools[select.selectedIndex] ?? null;
  part('call-button').disabled = chosen === null;
  part('tool-description').textContent = chosen?.description ?? '';
  // The same registration listed anew keeps what was typed.
  if (chosen?.registrationId === before?.registrationId && before) return;
  readFields = showFields(part('argument-fields'), chosen?.inputSchema);
  part('raw-json').value = JSON.stringify(readFields(), null, 2);
}

async function listTools() {
  tools = await modelContext.getTools({ scope: 'group' });
  const wanted = chosen;
  const same = tools.findIndex((tool) => tool.registrationId === wanted?.registrationId);
  const alike = tools.findIndex((tool) => tool.name === wanted?.name && tool.tabId === wanted?.tabId);
  const place = (tool) => urls.get(tool.documentId) ?? tool.origin;
  select.replaceChildren(...tools.map((tool) => new Option(`${tool.name} – ${place(tool)}`, tool.name)));
  select.disabled = tools.length === 0;
  select.selectedIndex = Math.max(same, same < 0 ? alike : same, tools.length ? 0 : -1);
  tell(part('agent-hint'), hintFor());
  choose();
}

/** One listing at a time; what asks meanwhile gets one more after it. */
function refresh() {
  if (listing) {
    listAgain = true;
    return;
  }
  listing = listTools()
    .catch((error) => tell(part('agent-hint'), `The tools could not be listed. ${errorLine(error)}`))
    .finally(() => {
      listing = null;
      if (listAgain) {
        listAgain = false;
        refresh();
      }
    });
}

function showCall(call) {
  const { card, showOutput } = callCard(call);
  part('calls').querySelector('.quiet')?.remove();
  part('calls').prepend(card);
  return showOutput;
}

function callTool(event) {
  event.preventDefault();
  let input;
  try {
    input = part('use-raw').checked ? JSON.parse(part('raw-json').value) : readFields();
    tell(part('form-error'), '');
  } catch (error) {
    tell(part('form-error'), `That is not JSON: ${error.message}`);
    return;
  }
  const controller = new AbortController();
  let showOutput = () => {};
  const outcome = modelContext.executeTool(chosen, input, {
    signal: controller.signal,
    keepalive: part('keepalive').checked,
    onoutput: (text) => showOutput(text),
  });
  showOutput = showCall({ toolName: chosen.name, input, outcome, cancel: () => controller.abort() });
}

/** Calls with keepalive that an earlier load of this page had made. */
async function collect() {
  for (const pending of await modelContext.getPendingExecutions()) {
    const showOutput = showCall({ ...pending, outcome: pending.outcome, cancel: () => pending.cancel() });
    pending.onoutput = showOutput;
    pending.outputs.forEach(showOutput);
  }
}

function useRaw() {
  const raw = part('use-raw').checked;
  if (raw) part('raw-json').value = JSON.stringify(readFields(), null, 2);
  part('raw-label').hidden = !raw;
  part('arguments').disabled = raw;
}

async function start() {
  select.addEventListener('change', choose);
  part('agent-form').addEventListener('submit', callTool);
  part('use-raw').addEventListener('change', useRaw);
  part('refresh-tools').addEventListener('click', refresh);
  modelContext.addEventListener('toolchange', refresh);
  const onChange = (snapshot) => {
    urls = new Map(
      snapshot.documents.map(({ documentId, url }) => [documentId, new URL(url, location.href).pathname]),
    );
    refresh();
  };
  showLive(part('live'), { signal: new AbortController().signal, onChange });
  part('agent-state').textContent = await relayState();
  refresh();
  await collect().catch((error) => tell(part('agent-hint'), errorLine(error)));
}

if (modelContext) start();
