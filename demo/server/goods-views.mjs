// Owns the pages before the checkout: items, one item, the cart.

import { euros, html } from './html.mjs';
import { catalogue, totalCents } from './store.mjs';

const garments = catalogue
  .filter(({ wear }) => wear)
  .map(({ id }) => id)
  .join(' ');

const swatch = (item) =>
  html`<svg class="swatch" viewBox="0 0 40 40" aria-hidden="true"><rect width="40" height="40" rx="6" fill="${item.colour}"/></svg>`;

const addForm = (item) => html`<form method="post" action="/cart" class="row">
<input type="hidden" name="item_id" value="${item.id}">
<button type="submit" aria-label="Add ${item.name} to the cart">Add to cart</button>
</form>`;

export const home = (items, query) => ({
  title: 'Items',
  scripts: ['checkout'],
  body: html`<h1>Items</h1>
<form method="get" action="/" role="search" class="row"><label>Search <input name="q" type="search" value="${query}"></label> <button type="submit">Search</button></form>
<ul class="cards">${items.map(
    (item) =>
      html`<li>${swatch(item)}<a href="/item/${item.id}">${item.name}</a> <span>${euros(item.cents)}</span>${addForm(item)}</li>`,
  )}</ul>
${items.length ? '' : html`<p>Nothing matches “${query}”.</p>`}`,
});

export const item = (shown) => ({
  title: shown.name,
  scripts: shown.wear ? ['try-on'] : [],
  body: html`<h1>${shown.name}</h1>
<p>${swatch(shown)}</p>
<p>${shown.about}</p>
<p><strong>${euros(shown.cents)}</strong></p>
${addForm(shown)}
${
  shown.wear &&
  html`<p><a id="try-on-link" data-item="${shown.id}" data-garments="${garments}" href="/fitting-room?item=${shown.id}">Try it on</a></p>
<div id="fitting-room" aria-live="polite"></div>`
}`,
});

/** Only where no order is under way does a call that arrives here end here (steps.js). */
export const cart = (lines, draft, error = '') => ({
  title: 'Cart',
  step: draft ? '' : 'cart',
  scripts: ['checkout', 'steps'],
  error,
  body: html`<h1>Cart</h1>
<div id="cart">${
    lines.length === 0
      ? html`<p>The cart is empty. <a href="/">Look at the items</a></p>`
      : html`<table>
<thead><tr><th scope="col">Item</th><th scope="col">Pieces</th><th scope="col">Price</th><th><span class="unseen">Change</span></th></tr></thead>
<tbody>${lines.map(
          (
            line,
          ) => html`<tr><td><a href="/item/${line.id}">${line.name}</a></td><td>${line.quantity}</td><td>${euros(line.cents * line.quantity)}</td>
<td><form method="post" action="/cart"><input type="hidden" name="item_id" value="${line.id}"><input type="hidden" name="quantity" value="-1"><button type="submit" aria-label="One ${line.name} less">−1</button></form></td></tr>`,
        )}</tbody>
<tfoot><tr><th scope="row" colspan="2">Total</th><td colspan="2">${euros(totalCents(lines))}</td></tr></tfoot>
</table>
<form method="post" action="/checkout"><button type="submit" class="primary">Check out</button></form>`
  }</div>`,
});
