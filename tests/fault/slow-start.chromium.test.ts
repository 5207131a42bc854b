// A new worker whose records are slow to come knows nobody for a while. Whoever asks it in that time gets the same answer,
// only later.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Rig, startRig } from './rig.ts';

/** Lets the first reading of all records come late. Runs in the worker. */
function delayRecords(): void {
  const { getAll } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.getAll = function (...args: []) {
    const request = getAll.apply(this, args);
    const { addEventListener } = request;
    request.addEventListener = (type: string, listener: (event: Event) => void) => {
      addEventListener.call(request, type, (event) => setTimeout(() => listener.call(request, event), 500));
    };
    return request;
  };
}

let rig: Rig;

beforeAll(async () => {
  rig = await startRig(`(${delayRecords})();`);
});

afterAll(() => rig.close());

test('the tools of the group are listed', async () => {
  await rig.open('listed', '/plain');
  await rig.kill();
  const titles = await rig.agent.evaluate(async () => {
    const tools = await document.modelContext.getTools({ scope: 'group' });
    return tools.map(({ title }) => title);
  });
  expect(titles).toEqual(['listed']);
});

test('an outcome is collected', async () => {
  await rig.open('collected');
  // The agent's own page leaves, and the checkout goes on.
  const shipping = rig.hold('/pass/shipping');
  const input = { address: 'Elm collected' };
  await rig.shop.evaluate(async (input) => {
    const [tool] = await document.modelContext.getTools();
    void document.modelContext.executeTool(tool as never, input).catch(() => {});
  }, input);
  await shipping.reached;
  await rig.kill();
  const outcome = rig.shop.evaluate(async () => {
    const [execution] = await document.modelContext.getPendingExecutions();
    return execution?.input;
  });
  expect(await outcome).toEqual(input);
  shipping.open();
});
