// Owns trying an item on: the tool `try_on` makes a frame on demand, and the call goes on in there
// (fitting-room.js). By hand the link opens the same frame.

import { modelContext, offerTool } from './relay.js';

const link = document.getElementById('try-on-link');

function openRoom(address) {
  const frame = document.createElement('iframe');
  frame.title = 'Fitting room';
  frame.src = address;
  document.getElementById('fitting-room').replaceChildren(frame);
}

const addressOf = (itemId) => `/fitting-room?item=${encodeURIComponent(itemId)}`;

link.addEventListener('click', (event) => {
  event.preventDefault();
  openRoom(addressOf(link.dataset.item));
});

if (modelContext) {
  offerTool({
    name: 'try_on',
    title: 'Try an item on',
    description:
      'Tries a garment on in a fitting room inside the page and says which size fits, and how it looks.',
    inputSchema: {
      type: 'object',
      properties: {
        item_id: {
          type: 'string',
          enum: link.dataset.garments.split(' '),
          default: link.dataset.item,
          description: 'The garment',
        },
      },
      required: ['item_id'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true },
    async execute({ item_id }, { invocation }) {
      const token = await invocation.requestToken();
      openRoom(window.webmcpRelay.withToken(addressOf(item_id), token));
      return 'The fitting room is open.';
    },
  });
}
