// The link's promises between two ends in Node: its MessageChannel is the fake.
import { afterEach, expect, test } from 'vitest';
import { linkScenarios, runLinkScenario } from './link.ts';
import { serve } from './link-worker.ts';

const ports = new Set<MessagePort>();

const worker = {
  postMessage(hello: never, [port]: [MessagePort]) {
    ports.add(port);
    serve({ data: structuredClone(hello), ports: [port] });
  },
} as never as ServiceWorker;

afterEach(() => {
  for (const port of ports) port.close();
  ports.clear();
});

test.each(Object.entries(linkScenarios))('%s', async (name, { expected }) => {
  expect(await runLinkScenario(name, { worker })).toBe(expected);
});
