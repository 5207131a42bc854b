// The test command. `npm test` gets the browsers, builds, checks format, lint and types, and runs every test;
// `npm test -- browser/navigation` builds and runs the tests whose file matches; `npm run check` leaves the browsers out
// and checks the sizes.
// It ends with `N passed, N failed` (a failed step that is no test counts as one failure; no test at all is a failure) and
// leaves no process and no profile behind: what it starts carries a mark in its environment, by which it is found.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureBrowsers } from './browsers.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const bin = (/** @type {string} */ name) => join(root, 'node_modules', '.bin', name);
const temporary = mkdtempSync(join(tmpdir(), 'relay-test-'));
const mark = `RELAY_TEST_RUN=${process.pid}-${Date.now()}`;
const env = { ...process.env, TMPDIR: temporary, RELAY_TEST_RUN: mark.split('=')[1] };

/** @param {string} command @param {string[]} args @returns {Promise<boolean>} */
function run(command, ...args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
    child.once('error', (error) => {
      console.error(String(error));
      resolve(false);
    });
    child.once('close', (code) => resolve(code === 0));
  });
}

/** @type {[name: string, run: () => Promise<boolean>][]} */
const build = [
  ['bundle', () => run('node', 'esbuild.config.mjs')],
  ['declarations of client', () => run(bin('tsc'), '-p', 'tsconfig.client.json')],
  ['declarations of sw', () => run(bin('tsc'), '-p', 'tsconfig.sw.json')],
];

/** @type {typeof build} */
const checks = [
  ['format and lint', () => run(bin('biome'), 'ci', '--error-on-warnings', '.')],
  ['types', () => run(bin('tsc'), '-p', 'tsconfig.json')],
];

/** @type {typeof build[number]} */
const sizes = ['sizes', () => run('node', 'tests/sizes.mjs')];

/** Returns the names of the steps that failed. @param {typeof build} steps */
async function runSteps(steps) {
  const failed = [];
  for (const [name, step] of steps) {
    console.log(`\n# ${name}`);
    if (!(await step())) failed.push(name);
  }
  return failed;
}

/** @param {string[]} args */
async function runTests(args) {
  console.log('\n# tests');
  const report = join(temporary, 'report.json');
  const ok = await run(
    bin('vitest'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...args,
  );
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0 };
  const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, 'utf8'));
  const none = numPassedTests + numFailedTests === 0;
  // A file that does not load, or an error outside of a test, fails the run and no test.
  const failed = numFailedTests || (ok && !none ? 0 : 1);
  return { passed: numPassedTests, failed, skipped: numPendingTests };
}

/** Kills what this run started and what that started in turn, wherever it went. */
function sweep() {
  if (!existsSync('/proc/self/environ')) return;
  for (let found = true, rounds = 0; found && rounds < 20; rounds++) {
    found = false;
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        if (!readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark)) continue;
        process.kill(Number(pid), 'SIGKILL');
        found = true;
      } catch {
        // It has ended meanwhile, or is someone else's.
      }
    }
  }
}

function cleanUp() {
  sweep();
  rmSync(temporary, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.once(signal, () => {
    cleanUp();
    process.exit(128 + constants.signals[signal]);
  });
}

async function main() {
  const pure = process.argv.includes('--check');
  const filters = process.argv.slice(2).filter((arg) => arg !== '--check');
  const missing = pure ? undefined : ensureBrowsers();
  if (missing) {
    console.error(missing);
    return { passed: 0, failed: 1, skipped: 0, steps: ['browsers'] };
  }

  const unbuilt = await runSteps(build);
  const unsound = filters.length > 0 ? [] : await runSteps(pure ? [...checks, sizes] : checks);
  const steps = [...unbuilt, ...unsound];
  const projects = pure ? ['core', 'contract', 'types'].map((name) => `--project=${name}`) : [];
  const tests = await runTests([...projects, ...filters]);
  return { ...tests, failed: tests.failed + steps.length, steps };
}

try {
  const { passed, failed, skipped, steps } = await main();
  if (steps.length > 0) console.log(`\nFailed steps: ${steps.join(', ')}`);
  console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  process.exitCode = failed === 0 ? 0 : 1;
} finally {
  cleanUp();
}
