// Builds the four published scripts into `outdir`. Run as a command it writes to dist/; tests may call `build` to write
// elsewhere or with other definitions.
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';

const root = dirname(fileURLToPath(import.meta.url));

/** @type {{ name: string, entry: string, format: esbuild.Format }[]} */
const outputs = [
  { name: 'webmcp-relay', entry: 'client/auto.ts', format: 'iife' },
  { name: 'webmcp-relay-sw', entry: 'sw/standalone.ts', format: 'iife' },
  { name: 'index', entry: 'client/index.ts', format: 'esm' },
  { name: 'sw', entry: 'sw/index.ts', format: 'esm' },
];

export async function build({ outdir = join(root, 'dist'), define = {} } = {}) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  await Promise.all(
    outputs.map(({ name, entry, format }) =>
      esbuild.build({
        absWorkingDir: root,
        entryPoints: { [name]: entry },
        outdir,
        format,
        bundle: true,
        minify: true,
        sourcemap: 'linked',
        // The oldest of the engines that the tests run: Safari 17, Firefox ESR.
        target: 'es2022',
        define: { __RELAY_VERSION__: JSON.stringify(version), ...define },
        logLevel: 'warning',
      }),
    ),
  );
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  await build().catch(() => process.exit(1));
}
