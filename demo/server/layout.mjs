// Owns what stands around every shop page: the header, the relay's script, the embedded agent and the folded
// live list. A view gives { title, step, scripts, body, error }; every page works without script.
// A `bare` view (the agent page, the fitting room) gives its own body and says which scripts it loads.

import { html } from './html.mjs';

export const moduleScript = (name) => html`<script type="module" src="/${name}.js"></script>\n`;

const head = (title, scripts) => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – Small Shop</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/shop.css">
${scripts}</head>`;

/** First in the head and not deferred: `document.modelContext` is there before any script of the page. */
export const relayScript = html`<script src="/webmcp-relay.js"></script>\n`;

const widget = html`
<aside class="widget" aria-labelledby="widget-title">
<details id="widget" open>
<summary id="widget-title">Agent on this page</summary>
<p>It calls <code>checkout</code> of the page that it lives on, and collects the one answer on whatever page the call has reached.</p>
<form id="widget-form">
<label>Billing address <input name="billing_address" value="1 Mill Lane, Ely" autocomplete="off"></label>
<label>Shipping address <input name="shipping_address" value="2 Quay Street, Deal" autocomplete="off"></label>
<label class="check"><input type="checkbox" name="gift_wrap"> Gift wrap</label>
<p class="row"><button type="submit" class="primary" id="widget-call" disabled>Check out for me</button>
<button type="button" id="widget-cancel" hidden>Cancel</button></p>
</form>
<p id="widget-hint" role="status">The relay is not there: the shop works by hand.</p>
<ol id="widget-log" aria-label="What the agent did"></ol>
<pre id="widget-result" hidden></pre>
<p class="row"><button type="button" id="widget-clear">Clear the log</button>
<button type="button" id="open-agent">Open the agent page</button></p>
</details>
<details id="live-panel">
<summary>What the relay knows</summary>
<div id="live"></div>
</details>
</aside>`;

export function layout(page, session) {
  if (page.bare) return html`${head(page.title, page.bare)}\n${page.body}\n</html>`.markup;
  const pieces = [...session.cart.values()].reduce((sum, quantity) => sum + quantity, 0);
  const scripts = ['tools', 'widget', 'live-panel', ...page.scripts].map(moduleScript);
  return html`${head(page.title, [relayScript, ...scripts])}
<body>
<header class="bar"><a class="brand" href="/">Small Shop</a>
<nav aria-label="Shop"><a href="/">Items</a> <a href="/cart">Cart (<span id="cart-count">${pieces}</span>)</a></nav></header>
<div class="columns">
<main data-step="${page.step ?? ''}">
<p id="tool-banner" class="banner" role="status" hidden></p>
${page.error ? html`<p id="page-error" class="error" role="alert">${page.error}</p>` : ''}
${page.body}
</main>
${widget}
</div>
</body>
</html>`.markup;
}
