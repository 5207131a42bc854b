// What the link promises, as scenarios that run between two ends in Node and between a page and a service worker alike (see
// store.ts for the form).
import { type Link, sayHello } from '../../client/link.ts';
import { type DocumentPeer, HELLO, type Hello } from '../../shared/protocol.ts';
import type { Scenario } from './store.ts';

/** What only the place where the scenarios run can do. */
export interface LinkPlace {
  /** The other end: it does what the `url` of a hello asks for. */
  worker: ServiceWorker;
}

const hello = (url: string): Hello => ({
  type: HELLO,
  versions: [1],
  helloId: 'hello',
  listens: false,
  documentId: 'document',
  tabId: 'tab',
  groupId: 'group',
  top: true,
  url,
  announcement: { tools: [], calls: [], activations: [], resumptions: [] },
});

const pings = { count: 0 };
const peer = {
  async ping() {
    pings.count += 1;
    return pings.count;
  },
  async drop() {
    throw new SyntaxError('of the page');
  },
} as never as DocumentPeer;

/** The coordinator as the scenarios use it: any argument, any answer. */
type Commands = Record<string, (argument?: unknown) => Promise<unknown>>;

const commandsOf = ({ command }: Link) =>
  new Proxy(
    {},
    { get: (_, method) => (argument?: unknown) => command(method as never, argument) },
  ) as Commands;

async function connect(
  { worker }: LinkPlace,
  url = '',
): Promise<{ commands: Commands; link: Link; generation: string; tabId: string }> {
  const link = sayHello(worker, hello(url), peer);
  const answer = await link.answer;
  if (answer === undefined) throw new Error('no answer');
  if (answer.type === 'refused') throw new Error(`refused: ${answer.error.reason}`);
  return { commands: commandsOf(link), link, ...answer };
}

/** How a promise ends; `nothing` if it does not for a while. */
const ending = (promise: Promise<unknown>, wait = 300): Promise<string> =>
  Promise.race([
    promise.then(
      (value) => `gives ${JSON.stringify(value)}`,
      ({ name, message }) => `${name}: ${message}`,
    ),
    new Promise<string>((resolve) => setTimeout(resolve, wait, 'nothing')),
  ]);

/** Says hello by a bare port, and gives the port once it is welcome. */
async function bare({ worker }: LinkPlace): Promise<MessagePort> {
  const { port1, port2 } = new MessageChannel();
  const welcomed = new Promise<void>((resolve) => {
    port1.onmessage = () => resolve();
  });
  worker.postMessage(hello(''), [port2]);
  await welcomed;
  return port1;
}

/** Requests for what is not there: each is answered with an error. */
const UNKNOWN = [
  { type: 'APPLY', id: 'm1', path: ['noSuchMethod'], argumentList: [] },
  { type: 'APPLY', id: 'm2', path: [], argumentList: [] },
  { type: 'APPLY', id: 'm3', path: 7, argumentList: [] },
  { type: 'GET', id: 'm4', path: ['no', 'such', 'member'] },
];

/** No requests of Comlink's at all: they may be dropped, whatever its listener makes of them. */
const GARBAGE = [
  { type: 'CONSTRUCT', id: 'm5', path: ['execute'], argumentList: [] },
  null,
  7,
  'text',
  [],
  {},
  { type: 'LATER', id: 'g1', path: [] },
  { type: 'APPLY', id: 'g2', path: ['execute'], argumentList: 7 },
  {
    type: 'APPLY',
    id: 'g3',
    path: ['execute'],
    argumentList: [{ type: 'HANDLER', name: 'of later versions' }],
  },
];

const CALL = {
  executionId: 'execution',
  callerDocumentId: 'document',
  callerTabId: 'tab',
  groupId: 'group',
  keepalive: false,
  documentId: 'target',
  registrationId: 'registration',
  toolName: 'checkout',
  input: { text: '{}' },
  tabKey: null,
};
const GRANT = {
  activationId: 'a',
  executionId: 'e',
  call: null,
  key: 'k',
  digest: 'd',
  tokenKey: {},
  lifetime: 1,
};
const REPORT = { activationId: 'a', executionId: 'e', key: 'k' };

/** Arguments that the coordinator's methods do not take, beside those that none of them does. */
const MALFORMED: Record<string, unknown[]> = {
  execute: [
    { call: CALL },
    { key: 'k' },
    { call: null, key: 'k' },
    { call: CALL, key: 7 },
    { call: { ...CALL, executionId: undefined }, key: 'k' },
    { call: { ...CALL, keepalive: 'yes' }, key: 'k' },
    { call: { ...CALL, input: '{}' }, key: 'k' },
    { call: { ...CALL, input: { text: null } }, key: 'k' },
  ],
  cancel: [{ executionId: 7 }],
  grant: [
    { ...GRANT, digest: 7 },
    { ...GRANT, call: undefined },
    { ...GRANT, call: { ...CALL, input: '{}' } },
    { ...GRANT, tokenKey: 'k' },
    { ...GRANT, lifetime: '1' },
  ],
  redeem: [{ activationId: 'a' }, { activationId: 'a', token: null }],
  reportEnd: [
    REPORT,
    { ...REPORT, end: null },
    { ...REPORT, end: { type: 'vanished' } },
    { ...REPORT, end: { type: 'returned', value: { text: 7 } } },
    { ...REPORT, end: { type: 'threw', error: { text: '{}' }, reason: 'tool-failed' } },
  ],
  announceTools: [
    { tools: {} },
    { tools: [null] },
    { tools: [{ name: 'checkout' }] },
    { tools: [], readyFrom: 'soon' },
    { tools: [], quiet: 1 },
  ],
  collect: [{ tabSecret: 7 }],
  awaitOutcomes: [{ executionIds: 'execution' }, { executionIds: [7] }],
  watch: [{ on: 1 }],
};

export const linkScenarios: Record<string, Scenario<LinkPlace>> = {
  'a welcome gives a link with the generation and the tab': {
    async run(place) {
      const { generation, tabId } = await connect(place);
      return `${generation} ${tabId}`;
    },
    expected: 'generation tab',
  },
  'what is sent before the answer is taken up after it': {
    async run({ worker }) {
      const commands = commandsOf(sayHello(worker, hello(''), peer));
      return ending(commands.execute?.(1) as Promise<unknown>);
    },
    expected: 'gives 1',
  },
  'a refusal arrives whole': {
    async run({ worker }) {
      const answer = await sayHello(worker, hello('refusal'), peer).answer;
      if (answer?.type !== 'refused') return 'welcomed';
      const { reason, started, message } = answer.error;
      return `${reason}, ${started}, ${message}`;
    },
    expected: 'version-mismatch, false, of another time',
  },
  'a hello that nobody answers stays open, and is given up without a trace': {
    async run({ worker }) {
      const { answer, close } = sayHello(worker, hello('silence'), peer);
      const before = await ending(answer.then(() => 'answered'));
      close();
      return `${before}, then ${await answer}`;
    },
    expected: 'nothing, then undefined',
  },
  'answers of kinds that are not known are no welcome (C14)': {
    async run(place) {
      const { generation, commands } = await connect(place, 'junk');
      return `${generation}, ${await ending(commands.execute?.(1) as Promise<unknown>)}`;
    },
    expected: 'generation, gives 1',
  },
  'commands go both ways': {
    async run(place) {
      const { commands } = await connect(place);
      pings.count = 0;
      const answers = [await commands.execute?.({ deep: [1, { x: null }] }), await commands.redeem?.()];
      return JSON.stringify(answers);
    },
    expected: '[{"deep":[1,{"x":null}]},1]',
  },
  'commands arrive in the order in which they were sent': {
    async run(place) {
      const { commands } = await connect(place);
      const numbers = Array.from({ length: 200 }, (_, number) => number);
      await Promise.all(numbers.map((number) => commands.cancel?.(number)));
      return `${(await commands.listTools?.()) === numbers.join()}`;
    },
    expected: 'true',
  },
  'what a method throws rejects its caller, and the link goes on': {
    async run(place) {
      const { commands } = await connect(place);
      const thrown = await ending(commands.grant?.() as Promise<unknown>);
      return `${thrown}; ${await commands.watch?.()}; ${await ending(commands.execute?.(1) as Promise<unknown>)}`;
    },
    expected: 'RangeError: out of range; SyntaxError: of the page; gives 1',
  },
  'a method that the other version has not is an error at the caller, either way': {
    async run(place) {
      const { commands } = await connect(place);
      const there = (await ending(commands.noSuchMethod?.() as Promise<unknown>)).split(':')[0];
      return `${there} ${await commands.collect?.()} ${await ending(commands.execute?.(1) as Promise<unknown>)}`;
    },
    expected: 'TypeError TypeError gives 1',
  },
  'an argument that cannot be cloned rejects at once, and the link goes on': {
    async run(place) {
      const { commands } = await connect(place);
      const failed = (await ending(commands.execute?.({ call() {} }) as Promise<unknown>)).split(':')[0];
      return `${failed}, ${await ending(commands.execute?.(1) as Promise<unknown>)}`;
    },
    expected: 'DataCloneError, gives 1',
  },
  'an answer that cannot be cloned rejects, and the link goes on': {
    async run(place) {
      const { commands } = await connect(place);
      const failed = await ending(commands.reportStay?.() as Promise<unknown>);
      return `${failed}, ${await ending(commands.execute?.(1) as Promise<unknown>)}`;
    },
    expected: 'TypeError: Unserializable return value, gives 1',
  },
  'four megabytes go through': {
    async run(place) {
      const { commands } = await connect(place);
      const text = 'x'.repeat(4 * 1024 * 1024);
      return `${(await commands.execute?.(text)) === text}`;
    },
    expected: 'true',
  },
  'two links of one document do not mix': {
    async run(place) {
      const [one, other] = await Promise.all([connect(place), connect(place)]);
      await Promise.all([one.commands.cancel?.('one'), other.commands.cancel?.('other')]);
      return `${await one.commands.listTools?.()} ${await other.commands.listTools?.()}`;
    },
    expected: 'one other',
  },
  'a link that was closed carries nothing, and leaves the others alone': {
    async run(place) {
      const [one, other] = await Promise.all([connect(place), connect(place)]);
      one.link.close();
      return `${await ending(one.commands.execute?.(1) as Promise<unknown>)}, ${await ending(other.commands.execute?.(1) as Promise<unknown>)}`;
    },
    expected: 'nothing, gives 1',
  },
  'a connection that the worker closed carries nothing': {
    async run(place) {
      const { commands } = await connect(place);
      await ending(commands.awaitOutcomes?.() as Promise<unknown>);
      return ending(commands.execute?.(1) as Promise<unknown>);
    },
    expected: 'nothing',
  },
  'messages that are malformed or of unknown kinds are answered with an error or dropped, and the link goes on (C14)':
    {
      async run(place) {
        const port = await bare(place);
        const unanswered = new Set(UNKNOWN.map(({ id }) => id));
        const answered = new Promise<string>((resolve) => {
          port.onmessage = ({ data }) => {
            if (data?.name === 'throw') unanswered.delete(data.id);
            if (data?.id === 'good') resolve(data.value);
          };
        });
        for (const message of [...UNKNOWN, ...GARBAGE, ...UNKNOWN]) port.postMessage(message);
        const argumentList = [{ type: 'RAW', value: 'good' }];
        port.postMessage({ type: 'APPLY', id: 'good', path: ['execute'], argumentList });
        const outcome = await ending(answered);
        port.close();
        return `${outcome}, unanswered: ${[...unanswered].join() || 'none'}`;
      },
      expected: 'gives "good", unanswered: none',
    },
  'malformed arguments of the coordinator’s own methods are answered with an error (C14)': {
    async run(place) {
      const { commands } = await connect(place, 'coordinator');
      const wrong: string[] = [];
      for (const [method, own] of Object.entries(MALFORMED)) {
        for (const argument of [undefined, null, 7, 'text', [], {}, ...own]) {
          const ended = await ending(commands[method]?.(argument) as Promise<unknown>);
          const isRefused = ended.startsWith('gives {"ok":false') && ended.includes('"version-mismatch"');
          if (!isRefused) wrong.push(`${method} ${JSON.stringify(argument)} ${ended}`);
        }
      }
      return wrong.join('; ') || 'all refused';
    },
    expected: 'all refused',
  },
};

export function runLinkScenario(name: string, place: LinkPlace): Promise<string> {
  const { run } = linkScenarios[name] as Scenario<LinkPlace>;
  return run(place).catch((error) => `threw ${error}`);
}
