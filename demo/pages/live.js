// Owns the live list: documents, executions and tokens of the group, as `relay.watch` tells them. Deadlines are
// the worker's times, so each is counted down from how far the worker's clock was from ours.

import { modelContext, stateLine } from './relay.js';

function element(name, properties = {}, ...children) {
  const { data, ...rest } = properties;
  const made = Object.assign(document.createElement(name), rest);
  Object.assign(made.dataset, data);
  made.append(...children);
  return made;
}

const short = (id) => (id ? id.slice(0, 6) : '–');

function documentItem({ documentId, tabId, url, top, tools }) {
  const { pathname } = new URL(url, location.href);
  return element(
    'li',
    { data: { documentId } },
    element('strong', {}, pathname),
    ` ${top ? 'page' : 'frame'} ${short(documentId)} in tab ${short(tabId)}`,
    element('span', { className: 'tools' }, tools.length ? tools.join(', ') : 'no tools'),
  );
}

function tokenItem(token, clockOffset) {
  const count = element('span', { className: 'countdown' });
  if (token.state === 'outstanding') {
    if (token.deadline === null) count.textContent = ' (its time begins when the page has ended its part)';
    else count.dataset.until = String(token.deadline - clockOffset);
  }
  return element('li', { data: { tokenState: token.state } }, `token: ${token.state}`, count);
}

function executionItem({ id, toolName, state, outcome, activations, tokens }, clockOffset) {
  const runs = activations.map((run) =>
    element('li', { data: { activationState: run.state } }, `run in ${short(run.documentId)}: ${run.state}`),
  );
  return element(
    'li',
    { data: { executionId: id, executionState: state } },
    element('strong', {}, toolName),
    ` ${short(id)}: ${state}${outcome ? `, ${outcome}` : ''}`,
    element('ul', {}, ...runs, ...tokens.map((token) => tokenItem(token, clockOffset))),
  );
}

function list(title, items, none) {
  const content = items.length ? element('ul', {}, ...items) : element('p', { className: 'quiet' }, none);
  return [element('h3', {}, title), content];
}

/** Shows the list in `place` until `signal` aborts; `onChange` hears of every snapshot. */
export function showLive(place, { signal, onChange }) {
  const state = element('output', { data: { relayState: '' } });
  const generation = element('code', { data: { generation: '' } }, 'not known');
  const lists = element('div', {}, ...list('Documents', [], 'Nothing heard yet.'));
  place.replaceChildren(element('p', {}, 'Relay: ', state, '. Worker generation: ', generation), lists);

  const tick = () => {
    state.textContent = modelContext ? stateLine() : 'not there';
    for (const count of place.querySelectorAll('[data-until]')) {
      const seconds = Math.max(0, Math.ceil((Number(count.dataset.until) - Date.now()) / 1000));
      count.textContent = `, ${seconds} s left`;
    }
  };
  const timer = setInterval(tick, 500);
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  tick();

  const render = (snapshot) => {
    const clockOffset = snapshot.now - Date.now();
    generation.textContent = snapshot.generation;
    lists.replaceChildren(
      ...list('Documents', snapshot.documents.map(documentItem), 'None.'),
      ...list(
        'Calls',
        snapshot.executions.map((each) => executionItem(each, clockOffset)).reverse(),
        'None that the worker knows.',
      ),
    );
    tick();
    onChange?.(snapshot);
  };
  modelContext?.relay.watch(render, { signal });
}
