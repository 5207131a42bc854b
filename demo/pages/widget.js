// Owns the agent that lives on the shop's pages. It calls `checkout` of its own page, is carried away with that
// page, and on the next one finds the call again by `getPendingExecutions()`. In sessionStorage it keeps the lines
// of its log and nothing else: the call, its outputs and its outcome are the relay's.

import { errorLine, modelContext, relayState } from './relay.js';

const logKey = 'shop-agent-log';
const part = (name) => document.getElementById(`widget-${name}`);
const call = part('call');
const cancel = part('cancel');
const hint = part('hint');
let running = null;

const storedLog = () => JSON.parse(sessionStorage.getItem(logKey) ?? '[]');

function showLog(lines) {
  part('log').replaceChildren(
    ...lines.map(({ kind, text }) => {
      const item = document.createElement('li');
      item.dataset.kind = kind;
      item.textContent = text;
      return item;
    }),
  );
}

function log(kind, text) {
  const lines = [...storedLog(), { kind, text }].slice(-30);
  sessionStorage.setItem(logKey, JSON.stringify(lines));
  showLog(lines);
}

/** An output may be heard on the page that it came from and again on the next: it is logged once. */
function logOutput(text) {
  const lines = storedLog();
  const sinceCall = lines.slice(lines.findLastIndex((line) => line.kind === 'call') + 1);
  if (!sinceCall.some((line) => line.kind === 'output' && line.text === text)) log('output', text);
}

async function follow(outcome, stop) {
  running = { stop };
  cancel.hidden = false;
  await showAvailability();
  try {
    const text = await outcome;
    const { order, total } = JSON.parse(text);
    log('result', `Order ${order} placed, €${total.toFixed(2)}.`);
    part('result').textContent = JSON.stringify(JSON.parse(text), null, 2);
    part('result').hidden = false;
  } catch (error) {
    log('error', errorLine(error));
  }
  running = null;
  cancel.hidden = true;
  await showAvailability();
}

async function findCheckout() {
  const tools = await modelContext.getTools({ scope: 'document' });
  return tools.find((tool) => tool.name === 'checkout') ?? null;
}

async function showAvailability() {
  const offered = Boolean(await findCheckout());
  call.disabled = running !== null || !offered;
  const where = offered
    ? 'This page offers checkout.'
    : 'Checkout is offered on the items, cart and billing pages.';
  hint.textContent = running ? 'A call is under way.' : `${where} Relay: ${await relayState()}.`;
}

async function callCheckout(event) {
  event.preventDefault();
  const tool = await findCheckout();
  if (!tool || running) return;
  const { billing_address, shipping_address, gift_wrap } = event.target.elements;
  const input = {
    billing_address: billing_address.value,
    shipping_address: shipping_address.value,
    gift_wrap: gift_wrap.checked,
  };
  part('result').hidden = true;
  log('call', `Called checkout on ${location.pathname}.`);
  const controller = new AbortController();
  const outcome = modelContext.executeTool(tool, input, { signal: controller.signal, onoutput: logOutput });
  await follow(outcome, () => controller.abort(new DOMException('Cancelled by the customer.', 'AbortError')));
}

async function collect() {
  for (const pending of await modelContext.getPendingExecutions()) {
    log('found', `Found the call again on ${location.pathname}.`);
    pending.onoutput = logOutput;
    pending.outputs.forEach(logOutput);
    follow(pending.outcome, () => pending.cancel());
  }
}

async function start() {
  showLog(storedLog());
  part('form').addEventListener('submit', callCheckout);
  part('clear').addEventListener('click', () => {
    sessionStorage.removeItem(logKey);
    showLog([]);
  });
  cancel.addEventListener('click', () => running?.stop());
  modelContext.addEventListener('toolchange', showAvailability);
  await showAvailability();
  await collect().catch((error) => {
    // A page that is left before it has an answer leaves the call to the next one.
    if (error.reason !== 'navigated') log('error', errorLine(error));
  });
}

// Opened with an opener, so that the window belongs to this tab's group.
document
  .getElementById('open-agent')
  .addEventListener('click', () => window.open('/agent', '_blank', 'popup,width=980,height=860'));
if (modelContext) start();
