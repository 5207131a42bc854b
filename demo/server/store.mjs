// Owns the shop's state, all in memory: the catalogue, one session a cookie (cart, draft order, last receipt)
// and the payments under way. Knows nothing of HTTP. Money is in cents here, in euros in what leaves.

import { randomUUID } from 'node:crypto';

const mostSessions = 1000;
const mostPieces = 99;
const giftWrap = { id: 'gift-wrap', name: 'Gift wrap', cents: 350 };

export const catalogue = [
  {
    id: 'linen-shirt',
    name: 'Linen shirt',
    cents: 4900,
    colour: '#6b8fb5',
    wear: 'body',
    about: 'Light, loose, made for warm days.',
  },
  {
    id: 'rain-jacket',
    name: 'Rain jacket',
    cents: 8900,
    colour: '#d2a03d',
    wear: 'body',
    about: 'Waxed cotton with a hood. Keeps out a day of drizzle.',
  },
  {
    id: 'felt-hat',
    name: 'Felt hat',
    cents: 3900,
    colour: '#7d5a4a',
    wear: 'head',
    about: 'A wide brim of pressed wool.',
  },
  {
    id: 'wool-scarf',
    name: 'Wool scarf',
    cents: 2900,
    colour: '#a8505a',
    wear: 'neck',
    about: 'Two metres of soft merino.',
  },
  {
    id: 'canvas-tote',
    name: 'Canvas tote',
    cents: 1900,
    colour: '#8a9a5b',
    wear: null,
    about: 'Carries the shopping, and the cat.',
  },
  {
    id: 'enamel-mug',
    name: 'Enamel mug',
    cents: 1400,
    colour: '#5f7f86',
    wear: null,
    about: 'For tea on the hearth or in the hills.',
  },
];

export const findItem = (id) => catalogue.find((item) => item.id === id) ?? null;

export function searchItems(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return catalogue.filter((item) => {
    const text = `${item.id} ${item.name} ${item.about}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export const totalCents = (lines) => lines.reduce((sum, line) => sum + line.cents * line.quantity, 0);

export const cartLines = (session) =>
  [...session.cart].map(([id, quantity]) => ({ ...findItem(id), quantity }));

/** Adds `quantity` pieces (a negative number takes away), and says what is wrong if it cannot. */
export function addToCart(session, id, quantity) {
  if (!findItem(id)) return `There is no item "${id}".`;
  if (!Number.isInteger(quantity)) return 'The quantity is not a whole number.';
  const pieces = (session.cart.get(id) ?? 0) + quantity;
  if (pieces > mostPieces) return `No more than ${mostPieces} pieces of one item.`;
  if (pieces > 0) session.cart.set(id, pieces);
  else session.cart.delete(id);
  return null;
}

/** Freezes the cart into a draft order. */
export function beginCheckout(session) {
  if (session.cart.size === 0) return 'The cart is empty: add an item first.';
  session.draft = { lines: cartLines(session), billing: '', shipping: '', giftWrap: false };
  session.receipt = null;
  return null;
}

export function createStore() {
  const sessions = new Map();
  const payments = new Map();
  let lastOrder = 1000;

  return {
    session(id) {
      return sessions.get(id) ?? null;
    },
    newSession() {
      if (sessions.size >= mostSessions) sessions.delete(sessions.keys().next().value);
      const session = { id: randomUUID(), cart: new Map(), draft: null, receipt: null };
      sessions.set(session.id, session);
      return session;
    },
    payment(id) {
      return payments.get(id) ?? null;
    },
    newPayment(session, byTool) {
      if (payments.size >= mostSessions) payments.delete(payments.keys().next().value);
      const { draft } = session;
      const lines = draft.giftWrap ? [...draft.lines, { ...giftWrap, quantity: 1 }] : draft.lines;
      const payment = { id: randomUUID(), session, draft, lines, byTool, paid: false };
      payments.set(payment.id, payment);
      return payment;
    },
    /** What the provider tells the shop; told twice it is one order all the same. */
    settlePayment(payment) {
      if (payment.paid) return;
      payment.paid = true;
      lastOrder += 1;
      payment.session.receipt = {
        order: `A-${lastOrder}`,
        items: payment.lines.map(({ id, name, quantity, cents }) => ({
          item_id: id,
          name,
          quantity,
          price: cents / 100,
        })),
        total: totalCents(payment.lines) / 100,
        billing_address: payment.draft.billing,
        shipping_address: payment.draft.shipping,
      };
      for (const { id, quantity } of payment.draft.lines) addToCart(payment.session, id, -quantity);
      payment.session.draft = null;
    },
  };
}
