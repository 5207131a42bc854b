// Where the browsers are that the tests drive, and how they come to be there. `findBrowsers` only looks;
// `ensureBrowsers` installs what is missing where it may (root on Debian) and otherwise says what to do.
// CHROMIUM, FIREFOX, WEBKIT_DRIVER and WEBKIT_BROWSER name other executables.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** @typedef {'chromium' | 'firefox' | 'webkitDriver' | 'webkitBrowser' | 'xvfb'} Program */

/** @type {Record<Program, { variable?: string, names: string[], debian: string }>} */
const programs = {
  chromium: {
    variable: 'CHROMIUM',
    names: ['chromium', 'chromium-browser', 'google-chrome'],
    debian: 'chromium',
  },
  firefox: { variable: 'FIREFOX', names: ['firefox-esr', 'firefox'], debian: 'firefox-esr' },
  webkitDriver: { variable: 'WEBKIT_DRIVER', names: ['WebKitWebDriver'], debian: 'webkit2gtk-driver' },
  webkitBrowser: { variable: 'WEBKIT_BROWSER', names: ['MiniBrowser'], debian: 'webkit2gtk-driver' },
  xvfb: { names: ['Xvfb'], debian: 'xvfb' },
};

// MiniBrowser is not on the path: Debian keeps it at /usr/lib/<architecture>/webkit2gtk-4.1/MiniBrowser.
function webkitFolders() {
  return below('/usr/lib', /-linux-gnu/).flatMap((folder) => below(folder, /^webkit2gtk-4\./));
}

/** @param {string} folder @param {RegExp} name */
function below(folder, name) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((entry) => name.test(entry))
    .map((entry) => join(folder, entry));
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @param {Program} program */
function locate(program) {
  const { variable, names } = programs[program];
  const named = variable && process.env[variable];
  if (named) return isExecutable(named) ? named : undefined;
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...webkitFolders()];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

/** @returns {Partial<Record<Program, string>>} */
export function findBrowsers() {
  const found = Object.keys(programs).map((name) => [name, locate(/** @type {Program} */ (name))]);
  return Object.fromEntries(found.filter(([, path]) => path));
}

/** @param {Program} program */
export function pathOf(program) {
  const path = findBrowsers()[program];
  if (!path) throw new Error(`${program} is missing: ${remedy([program])}`);
  return path;
}

/** @param {Program[]} missing */
function remedy(missing) {
  const wrong = missing.map((name) => programs[name].variable).filter((name) => name && process.env[name]);
  if (wrong.length > 0) return `${wrong.join(', ')} must name an executable`;
  return `apt-get install ${[...new Set(missing.map((name) => programs[name].debian))].join(' ')}`;
}

function missingPrograms() {
  const found = findBrowsers();
  return /** @type {Program[]} */ (Object.keys(programs)).filter((name) => !found[name]);
}

/** @param {string[]} args */
function aptGet(args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  return spawnSync('apt-get', args, { env, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0;
}

/** Returns undefined when all is there, else one line that says what is missing and how to get it. */
export function ensureBrowsers() {
  const missing = missingPrograms();
  if (missing.length === 0) return undefined;
  const packages = missing
    .filter((name) => !process.env[programs[name].variable ?? ''])
    .map((name) => programs[name].debian);
  if (process.getuid?.() === 0 && existsSync('/etc/debian_version') && packages.length > 0) {
    console.log(`Installing ${[...new Set(packages)].join(', ')} ...`);
    aptGet(['update', '-q']);
    aptGet(['install', '-q', '-y', '--no-install-recommends', ...new Set(packages)]);
  }
  const still = missingPrograms();
  return still.length === 0 ? undefined : `Missing: ${still.join(', ')}. To get it: ${remedy(still)}`;
}
