// Holds the two script-tag files to their size: 12,000 bytes after gzip each, and says how far the aim is.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const aim = 9_000;
const limit = 12_000;
const beside = ['more', 'validator'].map((part) => `webmcp-relay-${part}.js`);
const files = ['webmcp-relay.js', 'webmcp-relay-sw.js', ...beside, 'index.js', 'sw.js'];
const limited = files.slice(0, 2);

const rows = files.map((file) => {
  const bytes = readFileSync(new URL(`../dist/${file}`, import.meta.url));
  const gzip = gzipSync(bytes, { level: 9 }).length;
  return { file, minified: bytes.length, gzip, over: limited.includes(file) && gzip > limit };
});

console.log(
  `${'file'.padEnd(26)}${'minified'.padStart(10)}${'gzip'.padStart(8)}   aim ${aim}, limit ${limit}`,
);
for (const { file, minified, gzip, over } of rows) {
  const verdict = over ? 'OVER' : limited.includes(file) ? 'ok' : '';
  console.log(`${file.padEnd(26)}${String(minified).padStart(10)}${String(gzip).padStart(8)}   ${verdict}`);
}
process.exitCode = rows.some(({ over }) => over) ? 1 : 0;
