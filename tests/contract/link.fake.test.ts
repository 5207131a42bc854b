// The link's promises between two ends in Node: its MessageChannel is the fake.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linkScenarios, runLinkScenario } from './link.ts';
import { serve } from './link-worker.ts';

const ports = new Set<MessagePort>();

const worker = {
  postMessage(hello: never, [port]: [MessagePort]) {
    ports.add(port);
    serve({ data: structuredClone(hello), ports: [port] });
  },
} as never as ServiceWorker;

const UNCAUGHT = 'uncaughtException';
const reporters = process.listeners(UNCAUGHT);

/** Garbage may throw in Comlink's own listener, which nobody hears of in a browser; anything else is a failure here too. */
function report(error: Error, origin: NodeJS.UncaughtExceptionOrigin): void {
  if (error.stack?.includes('/comlink/')) return;
  for (const reporter of reporters) reporter(error, origin);
}

beforeEach(() => {
  process.removeAllListeners(UNCAUGHT);
  process.on(UNCAUGHT, report);
});

afterEach(() => {
  process.removeAllListeners(UNCAUGHT);
  for (const reporter of reporters) process.on(UNCAUGHT, reporter);
  for (const port of ports) port.close();
  ports.clear();
});

test.each(Object.entries(linkScenarios))('%s', async (name, { expected }) => {
  expect(await runLinkScenario(name, { worker })).toBe(expected);
});
