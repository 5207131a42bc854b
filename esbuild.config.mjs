// Builds the six published scripts into `outdir`. Run as a command it writes to dist/; tests may call `build` to write
// elsewhere or with other definitions.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';
import { minify } from 'terser';

const root = dirname(fileURLToPath(import.meta.url));

/** @typedef {{ name: string, entry: string, format: esbuild.Format }} Output */

/** @type {Output[]} */
const outputs = [
  { name: 'webmcp-relay', entry: 'client/auto.ts', format: 'iife' },
  { name: 'webmcp-relay-sw', entry: 'sw/standalone.ts', format: 'iife' },
  { name: 'index', entry: 'client/index.ts', format: 'esm' },
  { name: 'sw', entry: 'sw/index.ts', format: 'esm' },
  { name: 'webmcp-relay-validator', entry: 'client/validator.ts', format: 'esm' },
  { name: 'webmcp-relay-more', entry: 'client/more.ts', format: 'esm' },
];

/** workbox-window's modern build: its default one is for browsers that have no service workers to speak of. */
const alias = { 'workbox-window': 'workbox-window/Workbox.mjs' };

/**
 * What most pages never need is a file beside the one that imports it, whatever kind of script that is.
 * @type {esbuild.Plugin}
 */
const filesBeside = {
  name: 'files-beside',
  setup({ onResolve }) {
    onResolve({ filter: /\/(more|validator)\.ts$/ }, ({ kind, path }) =>
      kind === 'dynamic-import'
        ? { path: `./webmcp-relay-${basename(path, '.ts')}.js`, external: true }
        : undefined,
    );
  },
};

/**
 * Comlink can do more than commands to the methods of one object: its source is bundled without the rest. A part that is not
 * found as it was ends the build: then a newer Comlink has to be read again.
 */
const UNUSED_OF_COMLINK = [
  // Requests other than method calls.
  ...['GET', 'SET', 'CONSTRUCT', 'ENDPOINT', 'RELEASE'].map((type) =>
    RegExp(`case "${type}".*?break;\\n`, 's'),
  ),
  /if \(type === "RELEASE".*?\n {12}\}\n/s,
  /const r = requestResponseMessage.*?r\.then\.bind\(r\);/s,
  /if \(last === createEndpoint\).*?\n {12}\}\n/s,
  /if \(last === "bind"\).*?\n {12}\}\n/s,
  / {8}set\(_target, prop, rawValue\) \{.*?\n {8}\},\n/s,
  / {8}construct\(_target, rawArgumentList\) \{.*?\n {8}\},\n/s,
  // Objects that stay where they are, and letting go of them.
  /\["proxy", proxyTransferHandler\],/,
  /if \(prop === releaseProxy\) \{.*?\n {12}\}\n/s,
  /throwIfProxyReleased\(isProxyReleased\);/g,
  // Windows of other origins.
  /if \(!isAllowedOrigin.*?\n {8}\}\n/s,
];

/** @type {esbuild.Plugin} */
export const comlinkTrimmed = {
  name: 'comlink-trimmed',
  setup({ onLoad }) {
    onLoad({ filter: /comlink\.mjs$/ }, ({ path }) => ({
      contents: UNUSED_OF_COMLINK.reduce(without, readFileSync(path, 'utf8')),
    }));
  },
};

/** What esbuild puts before a script for modules that there are none of may go, once it says so. @param {string} script */
function droppable(script) {
  return script.replace(/^( {2}var __\w+ = )(Object\.[\w.]+);$/gm, '$1/* @__PURE__ */ (() => $2)();');
}

/** @param {string} source @param {RegExp} part */
function without(source, part) {
  const rest = source.replace(part, '');
  if (rest === source) throw new Error(`Comlink has changed: ${part} is not in it.`);
  return rest;
}

/** Members that only the libraries know of: workbox-window's private ones, its events', Comlink's handlers'. */
const LIBRARIES_OWN =
  /^(_.*|canHandle|(de)?serialize|isExternal|isUpdate|originalEvent|wasWaiting.*|messageS.*|getSW)$/;

/** What libraries set up as they load and we use nothing of: calls whose results nobody needs may go. */
const unused = [
  // idb: shortcuts and iterators, as properties of its wrappers.
  'replaceTraps',
  // Comlink: letting go of an endpoint once its proxy is collected. The worker keeps its proxies, and closes its ports.
  'registerProxy',
  'unregisterProxy',
  'FinalizationRegistry',
];

/** @param {{ outdir?: string, define?: Record<string, string> }} options */
export async function build({ outdir = join(root, 'dist'), define = {} } = {}) {
  const defined = { 'process.env.NODE_ENV': '"production"', ...define };
  mkdirSync(outdir, { recursive: true });
  await Promise.all(outputs.map((output) => buildOne(output, outdir, defined)));
  writeFileSync(join(outdir, 'licenses.txt'), licenses());
}

/** The licences of what is bundled, beside the files instead of in each. */
function licenses() {
  const names = Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies);
  return names.map((name) => `${name}\n\n${licenceOf(join(root, 'node_modules', name))}`).join('\n\n');
}

/** A package that brings no text of its licence says at least which one it is, and whose. @param {string} folder */
function licenceOf(folder) {
  const file = join(folder, 'LICENSE');
  if (existsSync(file)) return readFileSync(file, 'utf8');
  const { name, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (license !== 'MIT') throw new Error(`${name} is under ${license}, without its text`);
  return readFileSync(join(root, 'LICENSE'), 'utf8').replace(/^Copyright.*$/m, `Copyright (c) ${author}`);
}

/**
 * esbuild bundles; terser, which knows more ways to be brief, minifies.
 * @param {Output} output @param {string} outdir @param {Record<string, string>} define
 */
async function buildOne({ name, entry, format }, outdir, define) {
  const bundle = await esbuild.build({
    absWorkingDir: root,
    entryPoints: { [name]: entry },
    outdir,
    format,
    bundle: true,
    write: false,
    sourcemap: 'external',
    // The oldest of the engines that the tests run: Safari 17, Firefox ESR.
    target: 'es2022',
    alias,
    plugins: [filesBeside, comlinkTrimmed],
    define,
    logLevel: 'warning',
  });
  const textOf = (/** @type {string} */ end) =>
    bundle.outputFiles.find(({ path }) => path.endsWith(end))?.text ?? '';
  const { code = '', map } = await minify(droppable(textOf('.js')), {
    ecma: 2020,
    module: format === 'esm',
    toplevel: true,
    compress: {
      passes: 5,
      inline: 1,
      keep_fargs: false,
      lhs_constants: false,
      // Nothing but classes is constructed, so any other function may be an arrow or a method.
      unsafe_arrows: true,
      unsafe_methods: true,
      pure_funcs: unused,
    },
    mangle: { properties: { regex: LIBRARIES_OWN } },
    format: { comments: false },
    sourceMap: { content: textOf('.js.map'), url: `${name}.js.map`, filename: `${name}.js` },
  });
  writeFileSync(join(outdir, `${name}.js`), code);
  writeFileSync(join(outdir, `${name}.js.map`), String(map));
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  await build();
}
