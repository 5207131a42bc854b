// Owns turning text into HTML safely: `html` escapes every value but markup that `html` itself made.

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const escapeText = (text) => String(text).replace(/[&<>"']/g, (character) => entities[character]);

function render(value) {
  if (value === null || value === undefined || value === false) return '';
  if (Array.isArray(value)) return value.map(render).join('');
  return typeof value === 'object' ? value.markup : escapeText(value);
}

export function html(strings, ...values) {
  const markup = strings
    .map((text, index) => (index === 0 ? text : render(values[index - 1]) + text))
    .join('');
  return { markup };
}

/** A value as JSON for a `<script type="application/json">`, in which `<` must not appear. */
export const jsonBlock = (value) => ({ markup: JSON.stringify(value).replaceAll('<', '\\u003c') });

export const euros = (cents) => `€${(cents / 100).toFixed(2)}`;
