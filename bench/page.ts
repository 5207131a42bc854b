// What runs in the pages of the bench: rounds of ours and of the bare counterpart in turn, timed where they happen. The pages
// are cross-origin isolated, because the clock of others is too coarse.
import type { RegisteredTool, ToolExecuteCallbackOptions } from '../client/index.ts';
import { BARE_LOCK } from './bare-messages.ts';
import {
  answerBare,
  type Bare,
  connectBare,
  deathOf,
  reconnectBare,
  registerBare,
  useBare,
} from './bare-page.ts';

export interface Samples {
  ours: number[];
  bare: number[];
}

export interface BenchPage {
  /** Resolves once both workers serve this page. */
  ready: Promise<void>;
  /** Offers a tool that answers with its input, and the same over bare ports. */
  offer(): Promise<void>;
  callHere(rounds: number): Promise<Samples>;
  callThere(rounds: number): Promise<Samples>;
  tokens(rounds: number): Promise<{ request: Samples; trips: number[]; resume: Samples }>;
  /** Registers many tools in one task, beside one clone of their list. */
  registerMany(rounds: number): Promise<Samples>;
  /** Offers as many, for good. */
  offerMany(): Promise<void>;
  /** Lists those that another tab offers, beside one clone of the list. */
  listMany(rounds: number): Promise<Samples>;
  /** Waits for the death of the worker, with something pending; then `reconnected` has the figures. */
  awaitDeath(of: 'ours' | 'bare'): Promise<void>;
  /** Milliseconds from the death to the new worker's welcome, and until it has answered a command. */
  reconnected: Promise<{ welcomed: number; served: number }>;
}

declare global {
  var bench: BenchPage;
  /** Called by the page when a port brings a welcome. */
  var onWelcome: () => void;
}

const PAYLOAD = {
  address: { street: '1 Elm Street', city: 'Springfield', postcode: '12345', country: 'US' },
  items: [
    { sku: 'A-1001', quantity: 2 },
    { sku: 'B-2002', quantity: 1 },
  ],
  note: 'Please ring twice, and leave it at the door.',
};
const TEXT = JSON.stringify(PAYLOAD);

/** Microtasks are too quick for any clock: so many of the bare call are timed at once. */
const BATCH = 1_000;
/** Before each timed round: whatever the last one left behind has ended by then. Milliseconds. */
const REST = 5;
/** A worker without events is stopped after half a minute, busy ports or not: after so many rounds it gets one. */
const ROUNDS_AN_EVENT = 50;

const { modelContext } = document;
const name = window.opener === null ? 'first' : 'second';
let registration: ServiceWorkerRegistration;
let bare: Bare;
let barePort: MessagePort;
let welcomed = () => {};

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function start(): Promise<void> {
  registration = await registerBare();
  barePort = await connectBare(registration, name);
  bare = useBare(barePort, name);
  await modelContext.relay.ready;
  if (modelContext.relay.state !== 'shared')
    throw new Error(`The relay is alone: ${modelContext.relay.reason}`);
}

/** Begins from rest: what the last round left behind counts for neither. */
async function timed(run: () => Promise<unknown>): Promise<number> {
  await pause(REST);
  const begin = performance.now();
  await run();
  return performance.now() - begin;
}

/** Rounds of both in turn; which is first changes too. */
async function alternate(
  rounds: number,
  ours: () => Promise<number>,
  counterpart: () => Promise<number>,
): Promise<Samples> {
  const samples: Samples = { ours: [], bare: [] };
  const warm = Math.min(20, rounds);
  for (let round = -warm; round < rounds; round += 1) {
    if (round % ROUNDS_AN_EVENT === 0) await keepAlive();
    const a = round % 2 === 0 ? await ours() : null;
    const b = await counterpart();
    const c = a ?? (await ours());
    if (round < 0) continue;
    samples.ours.push(c);
    samples.bare.push(b);
  }
  return samples;
}

async function keepAlive(): Promise<void> {
  for (const { active } of await navigator.serviceWorker.getRegistrations()) active?.postMessage('stay');
  await pause(REST);
}

async function toolNamed(name: string, scope: 'document' | 'traversable' | 'group'): Promise<RegisteredTool> {
  const tool = (await modelContext.getTools({ scope })).find((tool) => tool.name === name);
  if (tool === undefined) throw new Error(`No tool ${name}`);
  return tool;
}

async function offer(): Promise<void> {
  await modelContext.registerTool({
    name: `echo-${name}`,
    description: 'Answers with its input',
    execute: (input) => input,
  });
  answerBare(barePort);
}

async function callHere(rounds: number): Promise<Samples> {
  const tool = await toolNamed(`echo-${name}`, 'traversable');
  // Two microtasks: one to begin, one to hand over what it gives.
  const call = async (input: object) => {
    await undefined;
    return input;
  };
  return alternate(
    rounds,
    () => timed(() => modelContext.executeTool(tool, PAYLOAD)),
    async () => {
      const ms = await timed(async () => {
        for (let count = 0; count < BATCH; count += 1) await call(PAYLOAD);
      });
      return ms / BATCH;
    },
  );
}

async function callThere(rounds: number): Promise<Samples> {
  const tool = await toolNamed('echo-second', 'group');
  return alternate(
    rounds,
    () => timed(() => modelContext.executeTool(tool, PAYLOAD)),
    () => timed(() => bare.call('second', TEXT)),
  );
}

/** An agent on the page that runs the tool: one token, redeemed in the same page, so that nothing else is timed. */
async function tokens(rounds: number): ReturnType<BenchPage['tokens']> {
  let token = '';
  let asked = 0;
  const ended = new AbortController();
  const ask = {
    name: 'ask',
    description: 'Asks for a token',
    execute: async (_input: unknown, { invocation }: ToolExecuteCallbackOptions) => {
      asked = await timed(async () => {
        token = await invocation.requestToken();
      });
    },
  };
  const registered = modelContext.registerTool(ask, { signal: ended.signal });
  registered.catch(() => {});
  const tool = await toolNamed('ask', 'traversable');
  const resume: Samples = { ours: [], bare: [] };
  /** As long as the bare request takes for a page, which has to send it and hear of its end. */
  const trips: number[] = [];
  const request = await alternate(
    rounds,
    async () => {
      let result: Promise<unknown> = Promise.resolve();
      // The issuing activation's end is stored once its output is here.
      await new Promise<unknown>((resolve) => {
        result = modelContext.executeTool(tool, PAYLOAD, { onoutput: resolve });
      });
      resume.ours.push(await timed(() => modelContext.resumeTool(token, () => 'done')));
      await result;
      return asked;
    },
    async () => {
      await pause(REST);
      let ms = 0;
      trips.push(
        await timed(async () => {
          ms = await bare.store(TEXT);
        }),
      );
      resume.bare.push(await timed(() => bare.redeem()));
      return ms;
    },
  );
  ended.abort();
  return {
    request,
    trips: trips.slice(-rounds),
    resume: { ours: resume.ours.slice(-rounds), bare: resume.bare.slice(-rounds) },
  };
}

function toolAt(index: number) {
  return {
    name: `find-ware-${index}`,
    description: `Finds wares on shelf ${index}: the cheapest first, and those in stock only unless asked otherwise.`,
    inputSchema: {
      type: 'object',
      properties: {
        text: { type: 'string', description: 'Words that the name must contain' },
        most: { type: 'integer', minimum: 1, maximum: 50 },
        stock: { type: 'boolean' },
      },
      required: ['text'],
    },
    execute: (input: unknown) => input,
  };
}

const MANY = Array.from({ length: 1_000 }, (_, index) => toolAt(index));

async function registerAll(signal?: AbortSignal): Promise<void> {
  const options = signal && { signal };
  await Promise.all(MANY.map((tool) => modelContext.registerTool(tool, options)));
}

async function listAll(scope: 'document' | 'group'): Promise<RegisteredTool[]> {
  const tools = await modelContext.getTools({ scope });
  if (tools.length !== MANY.length) throw new Error(`Listed are ${tools.length} tools.`);
  return tools;
}

const cloneOf = (tools: RegisteredTool[]) => timed(async () => structuredClone(tools));

async function registerMany(rounds: number): Promise<Samples> {
  let tools: RegisteredTool[] = [];
  return alternate(
    rounds,
    async () => {
      const ended = new AbortController();
      const ms = await timed(() => registerAll(ended.signal));
      // A window cannot be cloned; from another tab there is none.
      tools = (await listAll('document')).map((tool) => ({ ...tool, window: null }));
      ended.abort();
      // Once it is answered, the worker has done with all that it was told before.
      await modelContext.getTools({ scope: 'group' });
      return ms;
    },
    () => cloneOf(tools),
  );
}

async function listMany(rounds: number): Promise<Samples> {
  const tools = await listAll('group');
  return alternate(
    rounds,
    () => timed(() => listAll('group')),
    () => cloneOf(tools),
  );
}

async function awaitDeath(of: 'ours' | 'bare'): Promise<void> {
  if (of === 'bare') {
    await connectBare(registration, name);
    const answered = reconnectBare(registration);
    const died = deathOf(BARE_LOCK);
    bench.reconnected = Promise.all([died, answered]).then(([begin, end]) => ({
      welcomed: end - begin,
      served: end - begin,
    }));
  } else {
    const finish = await beginPending();
    const { held = [] } = await navigator.locks.query();
    const lock = held.find(({ name }) => name?.startsWith('webmcp-relay:'))?.name ?? '';
    const welcome = new Promise<number>((resolve) => {
      welcomed = () => resolve(performance.now());
    });
    bench.reconnected = deathOf(lock).then(async (begin) => {
      const served = modelContext.getPendingExecutions().then(() => performance.now());
      const welcomed = (await welcome) - begin;
      const result = { welcomed, served: (await served) - begin };
      await finish();
      return result;
    });
  }
  await pause(50);
}

/** A tool of this page that was granted a token and still runs. */
async function beginPending(): Promise<() => Promise<unknown>> {
  const controller = new AbortController();
  const ended = new AbortController();
  await new Promise<void>((resolve, reject) => {
    const execute: Parameters<typeof modelContext.registerTool>[0]['execute'] = async (_input, options) => {
      await options.invocation.requestToken();
      resolve();
      await new Promise((resolve) => options.signal.addEventListener('abort', resolve));
    };
    modelContext
      .registerTool({ name: 'stay', description: 'Stays', execute }, { signal: ended.signal })
      .catch(reject);
    toolNamed('stay', 'document').then((tool) => {
      modelContext.executeTool(tool, PAYLOAD, { signal: controller.signal }).catch(() => {});
    }, reject);
  });
  return async () => {
    controller.abort();
    ended.abort();
    await pause(50);
  };
}

globalThis.onWelcome = () => welcomed();
globalThis.bench = {
  ready: start(),
  offer,
  callHere,
  callThere,
  tokens,
  registerMany,
  offerMany: registerAll,
  listMany,
  awaitDeath,
  reconnected: new Promise(() => {}),
};
