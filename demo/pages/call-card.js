// Owns one call's card on the agent page: what was asked, outputs as they come, then the one result or the error.

import { errorLine } from './relay.js';

function add(parent, name, properties = {}) {
  const made = Object.assign(document.createElement(name), properties);
  parent.append(made);
  return made;
}

/** JSON text is shown indented, any other text as it is. */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return String(text);
  }
}

function showError(card, error) {
  const shown = add(card, 'p', { className: 'call-error error', textContent: errorLine(error) });
  shown.setAttribute('role', 'alert');
  if (error?.reason) shown.dataset.reason = error.reason;
  if (Object(error).started !== undefined) shown.dataset.started = String(error.started);
  for (const { path, message } of error?.errors ?? []) {
    add(card, 'p', { className: 'error', textContent: `${path || 'input'}: ${message}` });
  }
}

/** `outcome` is the call's promise; gives the card and what takes an output. */
export function callCard({ toolName, input, outcome, cancel }) {
  const card = Object.assign(document.createElement('article'), { className: 'call' });
  card.dataset.callState = 'running';
  card.dataset.tool = toolName;
  const heading = add(card, 'h3', { textContent: toolName });
  const state = add(heading, 'output', { className: 'call-state', textContent: 'running' });
  add(card, 'pre', { className: 'call-input', textContent: JSON.stringify(input) });
  const outputs = add(card, 'ol', { className: 'call-outputs' });
  outputs.setAttribute('aria-label', 'Outputs');
  const stop = add(card, 'button', { type: 'button', className: 'call-cancel', textContent: 'Cancel' });
  stop.addEventListener('click', cancel);

  const end = (how) => {
    card.dataset.callState = state.textContent = how;
    stop.remove();
  };
  outcome.then(
    (text) => {
      end('result');
      add(card, 'pre', {
        className: 'call-result',
        textContent: text === null ? 'No text (null).' : readable(text),
      });
    },
    (error) => {
      end('error');
      showError(card, error);
    },
  );
  return { card, showOutput: (text) => void add(outputs, 'li', { textContent: readable(text) }) };
}
