// Owns the payment provider, which lives on another origin: it loads no relay, sees no token, and goes back to
// the shop by a full navigation. It learns of a payment from the shop's server, by an id of no other use.

import { euros, html } from './html.mjs';
import { redirect, sendHtml } from './http.mjs';
import { totalCents } from './store.mjs';

const page = (title, body) =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="/icon.svg">
<link rel="stylesheet" href="/shop.css">
<script type="module" src="/pay.js"></script>
</head>
<body class="foreign">
<header class="bar"><strong>Other Origin Pay</strong></header>
<main>${body}</main>
</body>
</html>`.markup;

const payBody = (payment, shop) => html`
<h1>Pay ${euros(totalCents(payment.lines))}</h1>
<p>To Small Shop (<code>${shop}</code>). This page is of another origin than the shop and has no relay.</p>
<form method="post" id="pay-form" ${payment.byTool ? html`data-goes-on` : ''}>
<p role="status" id="pay-status">${
  payment.byTool
    ? 'A tool is checking out: paying by itself in a moment.'
    : 'No card is needed: this is a demonstration.'
}</p>
<button type="submit" class="primary">Pay</button>
<a href="${shop}/shipping?payment=declined">Do not pay</a>
</form>`;

export function paymentRoutes(site) {
  return async (request, response, url) => {
    const policy = `default-src 'self'; form-action 'self' ${site.origin}; frame-ancestors 'none'`;
    if (url.pathname === '/' && request.method === 'GET') {
      const body = html`<h1>The payment provider</h1><p>The shop is at <a href="${site.origin}/">${site.origin}</a>.</p>`;
      sendHtml(response, 200, page('Other Origin Pay', body), policy);
      return true;
    }
    if (url.pathname !== '/pay') return false;
    const payment = site.store.payment(url.searchParams.get('payment'));
    if (!payment) {
      const body = html`<h1>No such payment</h1><p><a href="${site.origin}/cart">Back to the shop</a></p>`;
      sendHtml(response, 404, page('No such payment', body), policy);
    } else if (request.method === 'POST') {
      site.store.settlePayment(payment);
      redirect(response, `${site.origin}/confirmation`);
    } else {
      sendHtml(response, 200, page('Pay', payBody(payment, site.origin)), policy);
    }
    return true;
  };
}
