// Owns the tools that every shop page offers and that end on the page where they began: search, cart.

import { askShop, offerTool } from './relay.js';

/** After a change the page shows it: the count in the header, and the table where there is one. */
async function showCart({ items }) {
  document.getElementById('cart-count').textContent = items.reduce((sum, item) => sum + item.quantity, 0);
  const table = document.getElementById('cart');
  if (!table) return;
  const page = await (await fetch('/cart')).text();
  table.replaceWith(new DOMParser().parseFromString(page, 'text/html').getElementById('cart'));
}

offerTool({
  name: 'search_items',
  title: 'Search the items',
  description:
    'Finds items of the shop by words of their name or description. Gives id, name, price in euros and whether ' +
    'the item can be tried on. An empty query lists everything.',
  inputSchema: {
    type: 'object',
    properties: { query: { type: 'string', description: 'Words to look for, for example "wool"' } },
    required: ['query'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
  execute: ({ query }, { signal }) => askShop(`/api/items?query=${encodeURIComponent(query)}`, { signal }),
});

offerTool({
  name: 'add_to_cart',
  title: 'Add to the cart',
  description: 'Puts pieces of one item into the cart and gives the cart as it is then.',
  inputSchema: {
    type: 'object',
    properties: {
      item_id: { type: 'string', description: 'An item id as search_items gives it' },
      quantity: { type: 'integer', minimum: 1, maximum: 99, default: 1, description: 'How many pieces' },
    },
    required: ['item_id', 'quantity'],
    additionalProperties: false,
  },
  async execute({ item_id, quantity }, { signal }) {
    const cart = await askShop('/api/cart', { input: { item_id, quantity }, signal });
    await showCart(cart);
    return cart;
  },
});

offerTool({
  name: 'view_cart',
  title: 'View the cart',
  description: 'Gives the items in the cart, with quantity and price in euros, and their total.',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  annotations: { readOnlyHint: true },
  execute: (_input, { signal }) => askShop('/api/cart', { signal }),
});
