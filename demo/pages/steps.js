// Owns how a checkout that began on another page goes on: each page of the flow takes the token, resumes the call
// and does its own step. A page that the server shows again with an error fails the call by throwing.

import { errorLine, modelContext, pause } from './relay.js';

const minutes = 60_000;
const form = document.getElementById('step-form');
const banner = document.getElementById('tool-banner');

function tell(text) {
  banner.textContent = text;
  banner.hidden = false;
}

export const steps = {
  async billing(input, { invocation, signal }) {
    tell('A tool is filling in this page.');
    form.elements.billing_address.value = input.billing_address;
    await pause(600, signal);
    const token = await invocation.requestToken();
    // The token travels in the form's address: with a mistake this page comes again under it, else the
    // server's redirect takes it to the next page. `submit()` reads the address at once.
    const plain = form.getAttribute('action');
    form.action = window.webmcpRelay.withToken(plain, token);
    form.submit();
    form.action = plain;
    return 'The billing address is sent; shipping is next.';
  },

  async shipping(input, { invocation, signal }) {
    tell('A tool is filling in this page.');
    form.elements.shipping_address.value = input.shipping_address;
    form.elements.gift_wrap.checked = input.gift_wrap === true;
    form.elements.by_tool.value = 'yes';
    await pause(600, signal);
    // The next page is of another origin, and paying takes minutes: a longer life, and the token waits in
    // this tab's storage, never in a foreign address.
    const token = await invocation.requestToken({ lifetime: 10 * minutes });
    sessionStorage.setItem('webmcp-token', token);
    form.submit();
    return 'The shipping address is sent; the payment is next.';
  },

  confirmation() {
    tell('A tool has placed this order.');
    return JSON.parse(document.getElementById('receipt').textContent);
  },

  cart() {
    throw new Error('The shop led the checkout back to the cart: there is no order under way.');
  },
};

function resume() {
  const step = steps[document.querySelector('main').dataset.step];
  const token = step && window.webmcpRelay.takeToken({ strip: true });
  if (!token) return;
  const mistake = document.getElementById('page-error')?.textContent;
  const callback = (input, options) => {
    if (mistake) throw new Error(mistake);
    return step(input, options);
  };
  modelContext
    .resumeTool(token, callback)
    .catch((error) => tell(`A tool's call could not go on. ${errorLine(error)}`));
}

if (modelContext) {
  modelContext.addEventListener('toolcancel', () => tell('The agent has cancelled its call.'));
  resume();
}
