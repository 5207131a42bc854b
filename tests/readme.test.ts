// The README holds what it says: its example runs, its other code parses and compiles, its tables agree with the code.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BOUNDS, DEFAULT_LIFETIME, LONGEST_LIFETIME, SIZES } from '../shared/bounds.ts';
import { ERROR_NAMES } from '../shared/errors.ts';
import { createFolder } from './browser/driver/child.ts';
import { type Browser, launch, type Page } from './browser/driver/index.ts';
import { served } from './browser/pages.ts';
import { type Site, type SiteRequest, startSite } from './browser/site.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');

interface Block {
  language: string;
  /** The word after the language: the name of the file that the block is. */
  file: string;
  code: string;
}

/** The fenced blocks of code, in order. */
const blocks: Block[] = [...readme.matchAll(/^```(\w*) ?(\S*)\n(.*?)^```$/gms)].map(
  ([, language = '', file = '', code = '']) => ({ language, file, code }),
);

/** The cells of every row of a table whose first cell is a word in backquotes: `name` → the other cells. */
const rows = new Map(
  [...readme.matchAll(/^\| `([\w-]+)` +\|(.*)\|$/gm)].map(([, name = '', rest = '']) => [
    name,
    rest.split('|').map((cell) => cell.trim()),
  ]),
);

const isModule = ({ code }: Block) => /^import /m.test(code);

describe('the example', () => {
  let site: Site;
  let browser: Browser;
  const orders: Record<string, string>[] = [];

  /** The shop's server: keeps the addresses, refuses one that is none. */
  function save(name: string) {
    return ({ body }: SiteRequest) => {
      const { address } = JSON.parse(body);
      if (refused.has(name)) return json({ error: `There is no such ${name} address.` }, 400);
      order[name] = address;
      return json({});
    };
  }

  const refused = new Set<string>();
  let order: Record<string, string> = {};
  const json = (value: unknown, status = 200) => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(value),
  });

  beforeAll(async () => {
    site = await startSite();
    for (const { language, file, code } of blocks) {
      if (language === 'html' && file) site.page(`/${file}`, code);
      if (file === 'shop.js') site.route('/shop.js', code);
    }
    site.route('/api/billing', save('billing'));
    site.route('/api/shipping', save('shipping'));
    site.route('/api/order', () => {
      orders.push(order);
      return json({ order: `A-${orders.length}`, ...order });
    });
    browser = await launch('chromium');
  });

  afterAll(async () => {
    await browser?.close();
    await site.close();
  });

  /** Opens the shop, then the agent by the shop's button, and has it buy; resolves with what it logged. */
  async function buy(): Promise<{ log: string[]; shop: Page }> {
    order = {};
    const shop = await browser.newPage();
    await shop.goto(`${site.origin}/billing.html`);
    expect(await served(shop)).toBe('shared');
    const agent = await shop.waitForPopup(() =>
      shop.evaluate(() => document.querySelector('button')?.click()),
    );
    expect(await served(agent)).toBe('shared');
    await agent.evaluate(() => document.getElementById('buy')?.click());
    const log = await agent.waitFor(() => {
      const texts = [...document.querySelectorAll('#log li')].map(({ textContent }) => textContent as string);
      return texts.at(-1)?.startsWith('On the way') === false && texts;
    });
    await agent.close();
    return { log: log as string[], shop };
  }

  test('gives the agent in another tab both outputs and one receipt', async () => {
    const { log, shop } = await buy();
    expect(log).toEqual([
      'On the way: The billing address is saved.',
      'On the way: The shipping address is saved.',
      'Answer: {"order":"A-1","billing":"1 Mill Lane","shipping":"2 Quay Street"}',
    ]);
    expect(orders).toHaveLength(1);
    expect(await shop.evaluate(() => [document.title, location.search])).toEqual(['Confirmation', '']);
  });

  test.each([
    ['billing', []],
    ['shipping', ['On the way: The billing address is saved.']],
  ])('tells the agent why the server refused the %s address', async (name, outputs) => {
    refused.add(name);
    const { log } = await buy();
    refused.delete(name);
    expect(log).toEqual([...outputs, `tool-failed: There is no such ${name} address.`]);
  });
});

describe('the code', () => {
  const scripts = blocks.flatMap(({ language, file, code }) => {
    if (language === 'html')
      return [...code.matchAll(/<script>(.*?)<\/script>/gs)].map(([, inner]) => [file, inner]);
    return language === 'js' ? [[file, code]] : [];
  });

  test.each(scripts as [string, string][])('%s parses', async (_file, code) => {
    await expect(transform(code, { loader: 'js', format: 'esm', target: 'es2022' })).resolves.toBeTruthy();
  });

  test('compiles against the package’s types where it is a module', { timeout: 120_000 }, () => {
    const folder = createFolder('readme');
    try {
      const modules = blocks.filter(
        (block) => (block.language === 'ts' || block.language === 'js') && isModule(block),
      );
      expect(modules.map(({ file }) => file)).toEqual(['page.js', 'sw.js', 'globals.ts', 'build.js']);
      mkdirSync(join(folder.path, 'node_modules'));
      symlinkSync(root, join(folder.path, 'node_modules/webmcp-relay'));
      symlinkSync(join(root, 'node_modules/workbox-build'), join(folder.path, 'node_modules/workbox-build'));
      writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }');
      for (const { file, code } of modules) {
        const lib = file === 'sw.js' ? ['es2024', 'webworker'] : ['es2024', 'dom', 'dom.iterable'];
        compile(folder.path, file, file === 'sw.js' ? asWorker(code) : code, lib);
      }
    } finally {
      folder.remove();
    }
  });

  /** What a worker's script is told of its global by its author. */
  const asWorker = (code: string) =>
    code.replace(
      'installRelay(self)',
      'installRelay(/** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self)))',
    );

  function compile(folder: string, file: string, code: string, lib: string[]): void {
    writeFileSync(join(folder, file), code);
    const compilerOptions = {
      target: 'es2024',
      module: 'nodenext',
      strict: true,
      checkJs: true,
      noImplicitAny: false,
      skipLibCheck: true,
      noEmit: true,
      types: [],
      lib,
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }));
    try {
      execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { encoding: 'utf8' });
    } catch (error) {
      throw new Error(`${file}: ${(error as { stdout: string }).stdout}`);
    }
  }

  test('is in languages that are looked at', () => {
    expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(['sh', 'js', 'ts', 'html']));
  });

  test('calls commands that are there', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const commands = blocks
      .filter(({ language }) => language === 'sh')
      .flatMap(({ code }) => code.split(/&&|\n/));
    const named = commands.map((command) => command.trim()).filter((command) => command !== '');
    expect(named).toEqual(['npm ci', 'npm start', 'npm ci', 'npm test']);
    expect(scripts).toMatchObject({ start: expect.any(String), test: expect.any(String) });
  });
});

describe('the tables', () => {
  test('have every reason with its name', () => {
    const reasons = Object.keys(ERROR_NAMES);
    const told = reasons.map((reason) => [reason, rows.get(reason)?.[0]]);
    expect(Object.fromEntries(told)).toEqual(ERROR_NAMES);
    for (const reason of reasons) {
      const [, when, started] = rows.get(reason) ?? [];
      expect(when, reason).not.toBe('');
      expect(started, reason).toMatch(/`(true|false)`/);
    }
  });

  test('have no reason that is none', () => {
    const names = new Set<string>(Object.values(ERROR_NAMES));
    const told = [...rows].filter(([, [name = '']]) => names.has(name)).map(([reason]) => reason);
    expect(told.sort()).toEqual(Object.keys(ERROR_NAMES).sort());
  });

  test.each(Object.entries({ ...BOUNDS, ...SIZES }))('have %s as %d', (name, value) => {
    expect(rows.get(name)?.[0]).toBe(value.toLocaleString('en-US'));
  });

  test('have the lifetimes', () => {
    expect(readme).toContain(`${DEFAULT_LIFETIME.toLocaleString('en-US')} ms unless`);
    expect(readme).toContain(`${LONGEST_LIFETIME.toLocaleString('en-US')} ms at most`);
  });
});

describe('the links', () => {
  const decisions = readdirSync(join(root, 'decisions')).filter((name) => /^\d/.test(name));

  /** The targets of a text's links that are no addresses of the web. */
  const localLinks = (text: string) =>
    [...text.matchAll(/\]\(([^)]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !target.startsWith('https:'));

  test.each(['README.md', 'decisions/README.md'])('of %s lead somewhere', (name) => {
    const text = readFileSync(join(root, name), 'utf8');
    const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(
      ([, heading = '']) => `#${heading.toLowerCase().replaceAll(' ', '-')}`,
    );
    for (const target of localLinks(text)) {
      const isThere = headings.includes(target) || existsSync(join(root, dirname(name), target));
      expect(isThere, target).toBe(true);
    }
  });

  test('name every decision, in the README and in the index', () => {
    const index = readFileSync(join(root, 'decisions/README.md'), 'utf8');
    for (const decision of decisions) {
      expect(readme).toContain(`(decisions/${decision})`);
      expect(index).toContain(`(${decision})`);
    }
  });
});
