// Owns the shop's addresses: pages, the forms they post (303 to the next page, or the same page again with an
// error) and the small JSON interface that the tools use.
//
// A continuation token is the pages' affair; the server does one thing for it: where an address has one, a
// redirect within the shop takes it along (`within`). It never goes into a foreign address.

import { billing, confirmation, shipping } from './checkout-views.mjs';
import { cart, home, item } from './goods-views.mjs';
import { readCookie, readForm, readJson, redirect, refusal, sendHtml, sendJson } from './http.mjs';
import { layout } from './layout.mjs';
import { agent, fittingRoom } from './side-views.mjs';
import { addToCart, beginCheckout, cartLines, findItem, searchItems, totalCents } from './store.mjs';

const tokenParameter = 'webmcp-token';

function within(url, path) {
  const next = new URL(path, url);
  const token = url.searchParams.get(tokenParameter);
  if (token) next.searchParams.set(tokenParameter, token);
  return `${next.pathname}${next.search}`;
}

const cartAsJson = (session) => {
  const lines = cartLines(session);
  return {
    items: lines.map(({ id, name, quantity, cents }) => ({
      item_id: id,
      name,
      quantity,
      price: cents / 100,
    })),
    total: totalCents(lines) / 100,
  };
};

const pages = {
  'GET /': ({ url }) => {
    const query = url.searchParams.get('q') ?? '';
    return home(searchItems(query), query);
  },
  'GET /cart': ({ session }) => cart(cartLines(session), session.draft),
  'GET /billing': ({ session, go }) => (session.draft ? billing(session.draft) : go('/cart')),
  'GET /shipping': ({ session, url, go }) => {
    if (!session.draft) return go('/cart');
    if (!session.draft.billing) return go('/billing');
    const declined = url.searchParams.get('payment') === 'declined';
    return shipping(session.draft, declined ? 'The payment was declined.' : '');
  },
  'GET /confirmation': ({ session, go }) => (session.receipt ? confirmation(session.receipt) : go('/cart')),
  'GET /agent': () => agent(),
  'GET /fitting-room': ({ url }) => {
    const worn = findItem(url.searchParams.get('item'));
    if (!worn?.wear) throw refusal(404, 'That cannot be tried on.');
    return fittingRoom(worn);
  },
};

const forms = {
  'POST /cart': ({ session, form, go }) => {
    const problem = addToCart(session, form.get('item_id'), Number(form.get('quantity') ?? 1));
    if (problem) throw refusal(400, problem);
    return go('/cart');
  },
  'POST /checkout': ({ session, go }) => {
    const problem = beginCheckout(session);
    return problem ? cart(cartLines(session), session.draft, problem) : go('/billing');
  },
  'POST /billing': ({ session, form, go }) => {
    if (!session.draft) return go('/cart');
    session.draft.billing = form.get('billing_address')?.trim() ?? '';
    return session.draft.billing ? go('/shipping') : billing(session.draft, 'The billing address is empty.');
  },
  'POST /shipping': ({ session, form, site, go }) => {
    if (!session.draft?.billing) return go('/billing');
    session.draft.shipping = form.get('shipping_address')?.trim() ?? '';
    session.draft.giftWrap = form.has('gift_wrap');
    if (!session.draft.shipping) return shipping(session.draft, 'The shipping address is empty.');
    const payment = site.store.newPayment(session, form.get('by_tool') === 'yes');
    return { redirect: `${site.paymentOrigin}/pay?payment=${payment.id}` };
  },
};

const calls = {
  'GET /api/items': ({ url }) => ({
    items: searchItems(url.searchParams.get('query') ?? '').map(({ id, name, cents, about, wear }) => {
      return { item_id: id, name, price: cents / 100, about, can_be_tried_on: wear !== null };
    }),
  }),
  'GET /api/cart': ({ session }) => cartAsJson(session),
  'POST /api/cart': ({ session, input }) => {
    const problem = addToCart(session, input.item_id, input.quantity);
    if (problem) throw refusal(400, problem);
    return cartAsJson(session);
  },
  'POST /api/checkout': ({ session }) => {
    const problem = beginCheckout(session);
    if (problem) throw refusal(409, problem);
    return { next: '/billing' };
  },
};

function sessionOf(request, response, store) {
  const known = store.session(readCookie(request, 'shop-session'));
  if (known) return known;
  const session = store.newSession();
  response.setHeader('set-cookie', `shop-session=${session.id}; Path=/; HttpOnly; SameSite=Lax`);
  return session;
}

/** A page to show, or a redirect. A form that comes back with an error says so by its status too. */
function sendPage(response, made, { session, form }, policy) {
  if (made.redirect) redirect(response, made.redirect);
  else sendHtml(response, made.error && form ? 422 : 200, layout(made, session), policy);
}

export function shopRoutes(site) {
  return async (request, response, url) => {
    const address = `${request.method} ${url.pathname}`;
    const shown = request.method === 'GET' && findItem(/^\/item\/([\w-]+)$/.exec(url.pathname)?.[1]);
    const route = shown ? () => item(shown) : (pages[address] ?? forms[address] ?? calls[address]);
    if (!route) return false;

    const session = sessionOf(request, response, site.store);
    const context = { session, site, url, go: (path) => ({ redirect: within(url, path) }) };
    if (calls[address]) {
      if (request.method === 'POST') context.input = await readJson(request);
      try {
        sendJson(response, 200, route(context));
      } catch (error) {
        if (!error.status) throw error;
        sendJson(response, error.status, { error: error.message });
      }
      return true;
    }
    if (forms[address]) context.form = await readForm(request);
    // A form's redirect to the payment page counts for form-action, so that origin is named too.
    const policy = `default-src 'self'; form-action 'self' ${site.paymentOrigin}; frame-ancestors 'self'`;
    sendPage(response, route(context), context, policy);
    return true;
  };
}
