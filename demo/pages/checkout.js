// Owns the tool `checkout`, offered where a checkout can begin: items, cart, billing. It begins here and goes on
// in steps.js of the pages that follow; its one answer is the receipt of the last of them.

import { askShop, modelContext, offerTool } from './relay.js';

async function begin(_input, { invocation, signal }) {
  // Before there is a token a throw is the plain answer: an empty cart ends the call here.
  const { next } = await askShop('/api/checkout', { input: {}, signal });
  const token = await invocation.requestToken();
  location.assign(window.webmcpRelay.withToken(next, token));
  return 'The order is drawn up; the billing address is next.';
}

/** On the billing page the checkout has begun already: the tool does what a resumed call would do there. */
async function execute(input, options) {
  if (document.querySelector('main').dataset.step !== 'billing') return begin(input, options);
  const { steps } = await import('./steps.js');
  return steps.billing(input, options);
}

if (modelContext) {
  offerTool({
    name: 'checkout',
    title: 'Check out',
    description:
      'Buys what is in the cart: fills in the addresses, pays, and gives the receipt {order, items, total, ' +
      'billing_address, shipping_address}. It leads through several pages and takes some seconds; what happens ' +
      'on the way arrives as output. The cart must hold at least one item (add_to_cart).',
    inputSchema: {
      type: 'object',
      properties: {
        billing_address: { type: 'string', description: 'Street, number and place; must not be empty' },
        shipping_address: { type: 'string', description: 'Street, number and place; must not be empty' },
        gift_wrap: { type: 'boolean', description: 'Wrap it as a gift, for €3.50', default: false },
      },
      required: ['billing_address', 'shipping_address'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false },
    execute,
  });
}
