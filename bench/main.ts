// One run: a site, a browser, the lines one after the other, the table.
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { type Browser, launch } from '../tests/browser/driver/index.ts';
import { type Line, lines } from './lines.ts';
import { startBenchSite } from './site.ts';
import { type Measured, remarks, table } from './table.ts';

export interface BenchOptions {
  root: string;
  /** Rounds of the quick lines; the slow ones take a fraction of it. */
  rounds: number;
  /** Only the lines whose name contains this. */
  only: string | undefined;
  json: string | undefined;
}

export async function bench({ root, rounds, only = '', json }: BenchOptions): Promise<void> {
  const chosen = lines.filter(({ name }) => name.includes(only));
  const site = await startBenchSite(root);
  const measured: Measured[] = [];
  let version = '';
  try {
    for (const line of chosen) {
      const browser = await launch('chromium', { timeoutMs: 600_000 });
      try {
        version = await versionOf(browser);
        measured.push(...(await run(line, { site, browser, rounds: Math.ceil(rounds * line.share) })));
      } finally {
        await browser.close();
      }
    }
  } finally {
    await site.close();
  }
  console.log(`\n${version}, load ${loadavg()[0]?.toFixed(1)}; milliseconds; ratios are of medians\n`);
  console.log(table(measured));
  for (const remark of remarks(measured)) console.log(remark);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(measured, null, 1)}\n`);
}

async function run(line: Line, setting: Parameters<Line['measure']>[0]): Promise<Measured[]> {
  process.stderr.write(`${line.name}, ${setting.rounds} rounds ...\n`);
  return line.measure(setting);
}

async function versionOf(browser: Browser): Promise<string> {
  return (browser.raw as { version(): Promise<string> }).version();
}
