/**
 * A pretend shell around the core, and the pretend documents it serves: whole stories in a few readable lines, without a
 * browser, a database or a real clock.
 *
 * It applies changes as the real shell does. What is stored survives a restart of the worker, without the plain text of its
 * values; everything else must come back from the documents (I4). Whatever the story, each step is checked: it is pure,
 * tells nothing to documents that are not connected, never settles twice, leaves nothing running in what is settled, and
 * revisions grow. An activation begins once (I3).
 */
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { ACKNOWLEDGEMENT_GRACE, BOUNDS, SIZES, type Sizes } from '../../shared/bounds.ts';
import type { Reply } from '../../shared/protocol.ts';
import type { ToolDefinition } from '../../shared/tool.ts';
import type { Effect, Event, Happening, Step } from '../../sw/core/event.ts';
import { isDue, REMAINS_KEPT } from '../../sw/core/execution.ts';
import { withRecords } from '../../sw/core/recover.ts';
import { documentsInQuestion } from '../../sw/core/registry.ts';
import type { ConnectedDocument, Execution, State } from '../../sw/core/state.ts';
import { step } from '../../sw/core/step.ts';
import { createDocument, type PretendDocument, type Surroundings } from './pretend-document.ts';
import { deepFreeze, START } from './records.ts';

/** While there are executions, the shell lets time pass for them this often. */
const PULSE = 500;

export type World = ReturnType<typeof createWorld>;

export interface WorldOptions {
  /** Do messages travel at once? Otherwise the test moves each of them. */
  automatic?: boolean;
  sizes?: Partial<Sizes>;
}

interface Identity {
  tab?: string;
  group?: string;
  top?: boolean;
  tools?: ToolDefinition[];
}

export function createWorld({ automatic = true, sizes = {} }: WorldOptions = {}) {
  const pages = new Map<string, PretendDocument>();
  const storage = new Map<string, Execution>();
  const summoned = new Set<string>();
  /** Every activation that began, with its execution. */
  const begun = new Map<string, string>();
  const endings = new Map<string, string>();
  let documents = new Map<string, ConnectedDocument>();
  let executions = new Map<string, Execution>();
  let now = START;
  let generation = 1;
  let count = 0;
  let reading = false;

  const surroundings: Surroundings = {
    get now() {
      return now;
    },
    automatic,
    dispatch: (happening, options) => dispatch(happening, options),
    travel: () => travel(),
    freshId(kind) {
      count += 1;
      return `${kind} ${count}`;
    },
    began(activationId, executionId) {
      expect(begun.has(activationId), `I3: ${activationId} began twice`).toBe(false);
      begun.set(activationId, executionId);
    },
  };

  const world = {
    pages,
    storage,
    summoned,
    begun,
    /** The effects of the latest event. */
    effects: [] as Effect[],
    get now() {
      return now;
    },
    get state(): State {
      const bounds = BOUNDS;
      return { generation: `${generation}`, bounds, sizes: { ...SIZES, ...sizes }, documents, executions };
    },
    /** A document loads and says hello. */
    opens({ tab = 'tab', group = 'group', top = true, tools = [] }: Identity = {}): PretendDocument {
      const documentId = surroundings.freshId('document');
      const facts = {
        documentId,
        tabId: tab,
        groupId: group,
        top,
        url: `https://shop.example/${documentId}`,
      };
      const page = createDocument(surroundings, facts, tools);
      pages.set(documentId, page);
      page.connects();
      return page;
    },
    /** The tab goes to its next document. */
    navigates(page: PretendDocument): PretendDocument {
      page.leaves();
      return world.opens({ tab: page.tabId, group: page.groupId });
    },
    /** Tells the core of an event; what it wants done arrives at once in an automatic world. */
    happens(happening: Happening): Reply<unknown> | null {
      const reply = dispatch(happening);
      travel();
      return reply;
    },
    execution(id: string): Execution {
      const execution = executions.get(id);
      if (execution === undefined) throw new Error(`no execution ${id}`);
      return execution;
    },
    activation(id: string) {
      const activations = [...executions.values()].flatMap((execution) => execution.activations);
      const activation = activations.findLast((candidate) => candidate.id === id);
      if (activation === undefined) throw new Error(`no activation ${id}`);
      return activation;
    },
    token(digest: string) {
      const tokens = [...executions.values()].flatMap((execution) => execution.tokens);
      const token = tokens.find((candidate) => candidate.digest === digest);
      if (token === undefined) throw new Error(`no token ${digest}`);
      return token;
    },
    /** How an execution ended, or `open`, or `forgotten`. */
    stateOf(id: string): string {
      const execution = executions.get(id);
      return execution === undefined ? 'forgotten' : (execution.settled?.as ?? 'open');
    },
    /**
     * Time passes: the worker's first pulse, one at each moment at which it has something to do, and one at the end. At those
     * moments something must be due, between them nothing, and after a pulse nothing any more.
     */
    passes(milliseconds: number): void {
      const end = now + milliseconds;
      pulse(Math.min(end, now + PULSE, Math.max(now, nextDue())));
      for (let next = nextDue(); next <= end; next = nextDue()) {
        expectNothingDue(next - 1);
        pulse(next);
      }
      expectNothingDue(end);
      pulse(end);
    },
    /** The system's clock is set; what it means is seen when time next passes for the worker. */
    jumps(milliseconds: number): void {
      now += milliseconds;
      if (automatic) world.happens({ type: 'time-passed' });
    },
    /** The worker dies; another one loads what is stored. Documents do not know yet. */
    dies(): void {
      generation += 1;
      documents = new Map();
      executions = withRecords(
        new Map(),
        [...storage.values()].map((record) => deepFreeze(structuredClone(record))),
      );
      summoned.clear();
      for (const page of pages.values()) page.losesPort();
      world.happens({ type: 'worker-started' });
    },
    /** The worker dies, and every document that lives says hello to the next one. */
    restarts(): void {
      const connected = [...pages.values()].filter((page) => page.connected);
      world.dies();
      for (const page of connected) if (!page.destroyed) page.connects();
    },
    /** The shell asks the browser which documents still exist, and hears of those that do not. */
    looksForLostDocuments(): void {
      for (const { documentId } of documentsInQuestion(world.state)) {
        const page = pages.get(documentId);
        if (page === undefined || page.destroyed) world.happens({ type: 'document-lost', documentId });
      }
    },
    /** What the shell does about documents that it was to summon. */
    answersSummons(): void {
      for (const documentId of summoned) {
        summoned.delete(documentId);
        const page = pages.get(documentId);
        if (documents.has(documentId)) continue;
        if (page === undefined || page.destroyed) world.happens({ type: 'document-lost', documentId });
        else page.connects();
      }
    },
  };

  function pulse(time: number): void {
    now = time;
    for (const execution of executions.values()) {
      if (dueAt(execution) <= now && !isDue(execution, now))
        expect.fail(`${execution.id} is due and says no`);
    }
    world.happens({ type: 'time-passed' });
    expectNothingDue(now);
  }

  function nextDue(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...[...executions.values()].map(dueAt));
  }

  function expectNothingDue(time: number): void {
    for (const execution of executions.values()) {
      if (isDue(execution, time)) expect.fail(`time passes for ${execution.id}, and it has nothing to do`);
    }
  }

  function dispatch(happening: Happening, { crash = false } = {}): Reply<unknown> | null {
    const event: Event = deepFreeze({ ...structuredClone(happening), now });
    const done = pureStep(world.state, event);
    check(world.state, event, done);
    apply(done);
    if (crash) {
      world.dies();
      return null;
    }
    world.effects = done.effects;
    for (const effect of done.effects) perform(effect);
    return done.reply;
  }

  function apply({ changes }: Step): void {
    documents = new Map(documents);
    executions = new Map(executions);
    for (const change of changes) {
      if (change.type === 'connect') documents.set(change.document.documentId, change.document);
      else if (change.type === 'disconnect') documents.delete(change.documentId);
      else if (change.type === 'remove') {
        executions.delete(change.execution.id);
        storage.delete(change.execution.id);
        endings.delete(change.execution.id);
      } else {
        executions.set(change.execution.id, deepFreeze(change.execution));
        if (change.type === 'put' && change.execution.stored)
          storage.set(change.execution.id, withoutText(structuredClone(change.execution)));
      }
    }
  }

  function perform(effect: Effect): void {
    if (effect.type === 'summon') summoned.add(effect.documentId);
    else if (effect.type !== 'announce-tools') {
      const page = pages.get(effect.documentId);
      if (page?.connected && !page.destroyed) page.inbox.push(effect);
    }
  }

  function travel(): void {
    if (reading || !automatic) return;
    reading = true;
    const isBusy = ({ connected, inbox }: PretendDocument) => connected && inbox.length > 0;
    for (let rounds = 0; rounds < 100; rounds += 1) {
      for (const page of pages.values()) if (isBusy(page)) page.readsAll();
      world.answersSummons();
    }
    reading = false;
  }

  function check(before: State, { type }: Event, { changes, effects }: Step): void {
    const connected = new Set(before.documents.keys());
    for (const change of changes) {
      if (change.type === 'connect') connected.add(change.document.documentId);
      if (change.type === 'disconnect') connected.delete(change.documentId);
      if (change.type === 'put' || change.type === 'remove') checkExecution(before, change.execution);
    }
    for (const effect of effects) {
      if (effect.type === 'summon' || effect.type === 'announce-tools') continue;
      const isKnown = connected.has(effect.documentId);
      if (!isKnown)
        expect.fail(`${type}: ${effect.type} is addressed to ${effect.documentId}, which is not connected`);
    }
  }

  function checkExecution(before: State, execution: Execution): void {
    const { id, revision, settled } = execution;
    const old = before.executions.get(id);
    if (old && revision <= old.revision) expect.fail(`${id}: revision ${revision} after ${old.revision}`);
    if (old?.settled && old.settled.as !== settled?.as) expect.fail(`I6: ${id} settled twice`);
    if (settled === null) return;
    if (settled.ending === null) {
      for (const { digest, deadline } of execution.tokens)
        if (settled.keepUntil < (deadline ?? now) + REMAINS_KEPT)
          expect.fail(`${digest} is forgotten too soon`);
    }
    const running = execution.activations.filter(({ state }) =>
      ['waiting', 'commanded', 'running'].includes(state),
    );
    if (running.length > 0) expect.fail(`${id} is settled, ${running[0]?.id} is ${running[0]?.state}`);
    const outstanding = execution.tokens.filter(({ state }) => state === 'outstanding');
    if (outstanding.length > 0) expect.fail(`${id} is settled, ${outstanding[0]?.digest} is outstanding`);
  }

  return world;
}

/** When time alone next changes an execution, by a clock that is not set: `semantics.md`, rules 5, 6, 12 and 13. */
function dueAt({ settled, callerDocumentId, tokens, activations }: Execution): number {
  const never = Number.POSITIVE_INFINITY;
  if (settled !== null)
    return settled.ending === null || callerDocumentId === null ? settled.keepUntil : never;
  return Math.min(
    never,
    ...tokens.map(({ state, deadline }) => (state === 'outstanding' ? (deadline ?? never) : never)),
    ...activations.map(({ state, refuseAfter }) =>
      state === 'commanded' ? refuseAfter + ACKNOWLEDGEMENT_GRACE + 1 : never,
    ),
  );
}

/** Takes the step twice, on a state that cannot be changed, and insists that both are the same. */
function pureStep(state: State, event: Event): Step {
  const frozen = { ...state, documents: frozenMap(state.documents), executions: frozenMap(state.executions) };
  const done = step(frozen, event);
  if (!isDeepStrictEqual(step(frozen, event), done)) expect.fail(`${event.type}: two steps differ`);
  return done;
}

function frozenMap<K, V>(map: ReadonlyMap<K, V>): ReadonlyMap<K, V> {
  const copy = new Map(map);
  for (const value of copy.values()) deepFreeze(value);
  const refuse = () => {
    throw new Error('the state was changed');
  };
  return Object.assign(copy, { set: refuse, delete: refuse, clear: refuse });
}

/** What is in the database of an execution: its values without their plain text. */
function withoutText(execution: Execution): Execution {
  const { call, answer, outputs, activations, settled } = execution;
  const ending = settled?.ending ?? null;
  const values = [
    call.input,
    answer,
    ...outputs.map(({ value }) => value),
    ...activations.map(({ held }) => held?.error),
    ending?.type === 'result' ? ending.value : ending?.detail,
  ];
  for (const value of values) if (value) delete value.text;
  return execution;
}
