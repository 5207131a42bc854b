// Owns the agent page's calls: takes the chosen tool and the arguments (tool-picker.js), calls, and shows each
// call. The group is the tab that opened this window and the windows beside it.

import { callCard } from './call-card.js';
import { showLive } from './live.js';
import { errorLine, modelContext, relayState } from './relay.js';
import { chosenTool, noteDocuments, readFields, refreshTools, tellHint } from './tool-picker.js';

const part = (id) => document.getElementById(id);

function showCall(call) {
  const { card, showOutput } = callCard(call);
  part('calls').querySelector('.quiet')?.remove();
  part('calls').prepend(card);
  return showOutput;
}

function readInput() {
  const problem = part('form-error');
  problem.hidden = true;
  try {
    return part('use-raw').checked ? JSON.parse(part('raw-json').value) : readFields();
  } catch (error) {
    problem.textContent = `That is not JSON: ${error.message}`;
    problem.hidden = false;
    return undefined;
  }
}

function callTool(event) {
  event.preventDefault();
  const tool = chosenTool();
  const input = readInput();
  if (!tool || input === undefined) return;
  const controller = new AbortController();
  const cancel = () => controller.abort(new DOMException('Cancelled on the agent page.', 'AbortError'));
  let showOutput = () => {};
  const outcome = modelContext.executeTool(tool, input, {
    signal: controller.signal,
    keepalive: part('keepalive').checked,
    onoutput: (text) => showOutput(text),
  });
  showOutput = showCall({ toolName: tool.name, input, outcome, cancel });
}

/** Calls with keepalive that an earlier load of this page had made. */
async function collect() {
  for (const pending of await modelContext.getPendingExecutions()) {
    const { toolName, input, outcome } = pending;
    const showOutput = showCall({ toolName, input, outcome, cancel: () => pending.cancel() });
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
  part('agent-form').addEventListener('submit', callTool);
  part('use-raw').addEventListener('change', useRaw);
  part('refresh-tools').addEventListener('click', refreshTools);
  modelContext.addEventListener('toolchange', refreshTools);
  showLive(part('live'), { signal: new AbortController().signal, onChange: noteDocuments });
  part('agent-state').textContent = await relayState();
  refreshTools();
  await collect().catch((error) => tellHint(errorLine(error)));
}

if (modelContext) start();
