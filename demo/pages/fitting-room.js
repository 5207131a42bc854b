// Owns the fitting room, a frame of an item page: takes the token from its address and gives the call's answer.
// It uses the relay as an ES module, as a site with its own bundle would.

import { installModelContext, takeToken } from '/webmcp-relay/index.js';
import { pause } from './relay.js';

const { item, wear } = document.querySelector('main').dataset;
const fit = document.getElementById('fit');

const verdicts = {
  body: { size: 'M', note: 'Good at the shoulders, sleeves a finger long.' },
  head: { size: '57', note: 'Sits straight; the brim shades the eyes.' },
  neck: { size: 'one size', note: 'Goes round twice.' },
};

installModelContext({ worker: '/webmcp-relay-sw.js' });

const token = takeToken({ strip: true });
if (token) {
  fit.textContent = 'Measuring…';
  const measure = async (_input, { signal }) => {
    await pause(800, signal);
    const { size, note } = verdicts[wear];
    fit.textContent = `Size ${size}. ${note}`;
    return { item_id: item, size, note };
  };
  document.modelContext.resumeTool(token, measure).catch((error) => {
    fit.textContent = `The call could not go on: ${error.message}`;
  });
}
