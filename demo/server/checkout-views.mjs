// Owns the pages of the checkout. A form that was posted with a mistake shows its page again, with `error`.

import { euros, html, jsonBlock } from './html.mjs';
import { totalCents } from './store.mjs';

export const billing = (draft, error = '') => ({
  title: 'Billing',
  step: 'billing',
  scripts: ['checkout', 'steps'],
  error,
  body: html`<h1>Billing</h1>
<p>Step 1 of 3. The items come to ${euros(totalCents(draft.lines))}.</p>
<form method="post" action="/billing" id="step-form">
<label>Billing address <input name="billing_address" required autocomplete="billing street-address" value="${draft.billing}"></label>
<button type="submit" class="primary">Go on to shipping</button>
</form>`,
});

export const shipping = (draft, error = '') => ({
  title: 'Shipping',
  step: 'shipping',
  scripts: ['steps'],
  error,
  body: html`<h1>Shipping</h1>
<p>Step 2 of 3. Billed to ${draft.billing}.</p>
<form method="post" action="/shipping" id="step-form">
<label>Shipping address <input name="shipping_address" required autocomplete="shipping street-address" value="${draft.shipping}"></label>
<label class="check"><input type="checkbox" name="gift_wrap" ${draft.giftWrap ? html`checked` : ''}> Gift wrap (€3.50)</label>
<input type="hidden" name="by_tool" value="">
<button type="submit" class="primary">Go on to payment</button>
</form>`,
});

export const confirmation = (receipt) => ({
  title: 'Thank you',
  step: 'confirmation',
  scripts: ['steps'],
  body: html`<h1>Thank you</h1>
<p>Order <strong id="order">${receipt.order}</strong> is paid.</p>
<ul>${receipt.items.map((line) => html`<li>${line.quantity} × ${line.name}, ${euros(line.price * line.quantity * 100)}</li>`)}</ul>
<dl><dt>Total</dt><dd>${euros(receipt.total * 100)}</dd><dt>Billed to</dt><dd>${receipt.billing_address}</dd><dt>Sent to</dt><dd>${receipt.shipping_address}</dd></dl>
<p><a href="/">Back to the items</a></p>
<script type="application/json" id="receipt">${jsonBlock(receipt)}</script>`,
});
