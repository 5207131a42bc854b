// How long the relay's own scripts ran while something went on, in pages and worker together: by the browser's CPU profiler.
import type { Page as PuppeteerPage } from 'puppeteer-core';
import type { Page } from '../tests/browser/driver/index.ts';
import { median } from './table.ts';

/** What is read of a trace. */
interface TraceEvent {
  name: string;
  pid: number;
  id?: string;
  args: { data?: { cpuProfile?: { nodes?: ProfileNode[]; samples?: number[] }; timeDeltas?: number[] } };
}

interface ProfileNode {
  id: number;
  callFrame: { url?: string };
}

/** Milliseconds, with what the browser does in the calls that the scripts make, as far as the profiler counts that to them. */
export async function ownScript(page: Page, act: () => Promise<unknown>): Promise<number> {
  const { tracing } = page.raw as PuppeteerPage;
  await tracing.start({ categories: ['disabled-by-default-v8.cpu_profiler'] });
  await act();
  const trace = await tracing.stop();
  const { traceEvents } = JSON.parse(new TextDecoder().decode(trace)) as { traceEvents: TraceEvent[] };
  const chunks = traceEvents.filter(({ name }) => name === 'ProfileChunk');
  if (chunks.length === 0) throw new Error('The trace has no profile.');
  /** The nodes of all profiles that are ours. */
  const ours = new Set<string>();
  const deltas: number[] = [];
  for (const { pid, id, args } of chunks) {
    const { cpuProfile: { nodes = [], samples = [] } = {}, timeDeltas = [] } = args.data ?? {};
    const nameOf = (node: number): string => `${pid} ${id} ${node}`;
    for (const { id: node, callFrame } of nodes) {
      if (callFrame.url?.includes('/webmcp-relay')) ours.add(nameOf(node));
    }
    samples.forEach((node, index) => {
      if (ours.has(nameOf(node))) deltas.push(timeDeltas[index] ?? 0);
    });
  }
  // The first sample after a rest has the whole rest before it.
  const longest = 2 * median(deltas);
  return deltas.reduce((sum, delta) => sum + Math.min(delta, longest), 0) / 1_000;
}
