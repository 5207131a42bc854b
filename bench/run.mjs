// `npm run bench` measures the built files in a real Chromium, each figure beside a bare counterpart written by hand, in one
// run and in alternating rounds; so the ratios say something on any machine, and the milliseconds only on this one.
//
//   npm run bench -- --rounds 1000 --only "another tab" --json bench.json
//
// Nothing is asserted: it ends with code 0 whatever it measured, and with another one only if it could not measure.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import * as esbuild from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, 'node_modules', '.cache', 'webmcp-relay-bench');

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '300' },
    only: { type: 'string' },
    json: { type: 'string' },
  },
});

/** The driver and the bench are TypeScript, which Node does not run everywhere. */
async function bundle() {
  mkdirSync(cache, { recursive: true });
  const outfile = join(cache, 'main.mjs');
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['bench/main.ts'],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    logLevel: 'warning',
  });
  return outfile;
}

const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1) throw new TypeError('--rounds takes a whole number.');
process.env.WDIO_LOG_LEVEL = 'silent';
const { bench } = await import(pathToFileURL(await bundle()).href);
await bench({ root, rounds, only: values.only, json: values.json });
