// What crosses into a page and back: source text and JSON. A page's error comes back as an error of the same name,
// message and own properties.
import type { InPage } from './index.ts';

export class PageError extends Error {
  constructor(name: string, message: string, properties: object) {
    super(message);
    Object.assign(this, properties);
    this.name = name;
  }
}

/** An expression whose value is a promise of JSON text and which never rejects. */
export function toExpression<Args extends unknown[], Result>(run: InPage<Args, Result>, args: Args): string {
  const call = typeof run === 'string' ? `(${run})` : `(${run})(...${JSON.stringify(args)})`;
  return `(async () => {
    try {
      return JSON.stringify({ value: await ${call} });
    } catch (error) {
      if (!(error instanceof Object)) return JSON.stringify({ error: { name: 'Thrown', message: String(error) } });
      const { name, message, stack, ...properties } = error;
      return JSON.stringify({ error: { name: error.name, message: error.message, properties } });
    }
  })()`;
}

export function fromText(text: string): unknown {
  const { error, value } = JSON.parse(text);
  if (error) throw new PageError(error.name, error.message, error.properties ?? {});
  return value;
}

/** A few words of the function, for messages. */
export function describe(run: InPage<never[], unknown>): string {
  const text = String(run).replace(/\s+/g, ' ');
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
