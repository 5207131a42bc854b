// What crosses into a page and back: source text and JSON. A page's error comes back as an error of the same name,
// message and own properties.
import type { InPage } from './index.ts';
import { poll, TimeUp } from './time.ts';

export class PageError extends Error {
  constructor(name: string, message: string, properties: object) {
    super(message);
    Object.assign(this, properties);
    this.name = name;
  }
}

/** The document that a script ran in, or was to run in, is there no longer. */
export class DocumentLeft extends Error {
  override name = 'DocumentLeft';
  constructor(cause?: unknown) {
    super('The document was left', { cause });
  }
}

/** An expression that never throws or rejects: its value is JSON text, or a promise of one if the function gave a promise. */
export function toExpression<Args extends unknown[], Result>(run: InPage<Args, Result>, args: Args): string {
  const call = typeof run === 'string' ? `(${run})` : `(${run})(...${JSON.stringify(args)})`;
  return `(() => {
    const succeed = (value) => JSON.stringify({ value });
    const fail = (error) => {
      if (!(error instanceof Object)) return JSON.stringify({ error: { name: 'Thrown', message: String(error) } });
      const { name, message } = error;
      return JSON.stringify({ error: { name, message, properties: { ...error } } });
    };
    try {
      const value = ${call};
      return typeof value?.then === 'function' ? value.then(succeed).catch(fail) : succeed(value);
    } catch (error) {
      return fail(error);
    }
  })()`;
}

const startRun = (id: number, expression: string) => `(() => {
  const texts = (window[Symbol.for('driver.texts')] ??= new Map());
  const keep = (text) => (texts.set(${id}, text), text);
  texts.set(${id}, '');
  const text = ${expression};
  return typeof text === 'string' ? keep(text) : (text.then(keep), '');
})()`;

const askRun = (id: number) => `window[Symbol.for('driver.texts')]?.get(${id}) ?? 'gone'`;

let runs = 0;

/** Runs an expression where the engine cannot await it, or leaves questions open when a document is left: starts it, then
 *  asks for its text until it is there. It is started once; another document does not know the question. */
export async function runByAsking(evaluateNow: (expression: string) => Promise<unknown>, expression: string) {
  const id = ++runs;
  const evaluate = (expression: string) =>
    evaluateNow(expression).catch((error) => {
      if (error instanceof TimeUp) return '';
      throw new DocumentLeft(error);
    });
  const early = await evaluate(startRun(id, expression));
  const text = early || (await poll(Number.POSITIVE_INFINITY, String, () => evaluate(askRun(id))));
  if (text === 'gone') throw new DocumentLeft();
  return String(text);
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
