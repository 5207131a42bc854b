// The loop around the core, with a store that can be held and broken, a clock that is turned by hand, and a shell that only
// writes down what it is told.
import { IDBFactory } from 'fake-indexeddb';
import 'fake-indexeddb/auto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BOUNDS, SIZES } from '../../shared/bounds.ts';
import type { Announcement } from '../../shared/protocol.ts';
import type { Clock } from '../../sw/clock.ts';
import type { Effect, Happening } from '../../sw/core/event.ts';
import type { Execution } from '../../sw/core/state.ts';
import { createRuntime, type Runtime } from '../../sw/runtime.ts';
import { createStore, type Store } from '../../sw/store.ts';
import {
  aCall,
  aDocument,
  aGrant,
  anActivation,
  anExecution,
  answer,
  aToken,
  aValue,
  START,
} from '../core/records.ts';

const NOTHING = { tools: [], calls: [], activations: [], resumptions: [] };
/** What the documents say of themselves: the caller waits for its call, the target runs its activation. */
const ANNOUNCED: Record<string, Announcement> = {
  caller: { ...NOTHING, calls: [{ executionId: 'execution', key: 'key' }] },
  target: {
    ...NOTHING,
    activations: [
      {
        activationId: 'activation',
        executionId: 'execution',
        key: 'key',
        stored: true,
        end: null,
      },
    ],
  },
};

beforeEach(() => {
  globalThis.indexedDB = new IDBFactory();
  vi.spyOn(console, 'warn').mockImplementation(() => {});
  vi.spyOn(console, 'error').mockImplementation(() => {});
});

afterEach(() => vi.restoreAllMocks());

/** A clock that stands still until it is turned or set; `set` moves the time alone, as a system's clock is set. */
function createClock(): Clock & { turn(ms: number): void; set(ms: number): void; pending(): number } {
  let now = START;
  let elapsed = 0;
  const timers = new Set<{ at: number; callback(): void }>();
  return {
    now: () => now,
    after(delay, callback) {
      const timer = { at: elapsed + delay, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    turn(ms) {
      now += ms;
      elapsed += ms;
      for (const timer of [...timers].filter(({ at }) => at <= elapsed)) {
        timers.delete(timer);
        timer.callback();
      }
    },
    set(ms) {
      now += ms;
    },
    pending: () => timers.size,
  };
}

/** A store in memory. `hold` makes the next step wait for its release, `fail` breaks all steps until it is undone. */
function createMemory(records: Execution[] = []) {
  const kept = new Map(records.map((record) => [record.id, record]));
  let held: Promise<void> | undefined;
  let failure: DOMException | undefined;
  const log: string[] = [];
  const step = async () => {
    await held;
    if (failure !== undefined) throw failure;
  };
  const store: Store = {
    async load() {
      await step();
      log.push('load');
      return [...kept.values()];
    },
    async transact({ ids, digest }, decide) {
      await step();
      const found = [...kept.values()].filter(
        ({ id, tokens }) => ids.includes(id) || tokens.some((token) => token.digest === digest),
      );
      const decision = decide(found);
      for (const execution of decision.put) kept.set(execution.id, execution);
      for (const id of decision.remove) kept.delete(id);
      log.push(`wrote ${decision.put.map(({ id }) => id).join()}`);
      return decision;
    },
    close() {},
  };
  return {
    store,
    kept,
    log,
    hold(): () => void {
      let release = () => {};
      held = new Promise((resolve) => {
        release = () => {
          held = undefined;
          resolve();
        };
      });
      return release;
    },
    fail(reason: 'storage-full' | 'storage-unavailable' | null) {
      const name = reason === 'storage-full' ? 'QuotaExceededError' : 'UnknownError';
      failure = reason === null ? undefined : new DOMException('broken by the test', name);
    },
  };
}

function start(
  store: Store,
  clock: Clock = createClock(),
  perform?: (effect: Effect) => void | Promise<void>,
) {
  const effects: Effect[] = [];
  const turns: string[] = [];
  const runtime: Runtime = createRuntime(
    { generation: 'generation', bounds: BOUNDS, sizes: SIZES },
    store,
    clock,
    {
      seal: async () => {},
      async perform(effect) {
        effects.push(effect);
        return perform?.(effect);
      },
      changed: (changes) => void turns.push(changes.map(({ type }) => type).join()),
    },
  );
  const connect = (documentId: string, known = ANNOUNCED) =>
    runtime.dispatch({
      type: 'document-connected',
      facts: aDocument(documentId),
      clientId: `client of ${documentId}`,
      announcement: documentId in known ? (known[documentId] as Announcement) : NOTHING,
    });
  const kinds = () => effects.map(({ type }) => type);
  return { runtime, effects, kinds, turns, connect };
}

/** Lets everything that can go on without the clock or the store go on. */
const rest = () => new Promise((resolve) => setTimeout(resolve, 5));

/** An execution whose only activation is over and has left one token. */
const suspended = (facts: Partial<Execution> = {}) =>
  anExecution({
    activations: [anActivation({ state: 'returned' })],
    tokens: [aToken({ deadline: START + 60_000 })],
    ...facts,
  });

const presented = (activationId: string, documentId = 'shipping'): Happening => ({
  type: 'token-presented',
  documentId,
  activationId,
  digest: 'digest',
});

const ended: Happening = {
  type: 'activation-ended',
  executionId: 'execution',
  activationId: 'activation',
  end: { type: 'returned', value: aValue('done') },
};

describe('commit precedes effect (I1)', () => {
  test('neither answer nor effect leaves before the transaction is over', async () => {
    const memory = createMemory([suspended()]);
    const { runtime, kinds, connect } = start(memory.store);
    await connect('shipping');
    const release = memory.hold();
    let answered = false;
    const reply = runtime.dispatch(presented('redeemer'));
    void reply.then(() => {
      answered = true;
    });
    await rest();
    expect({ answered, effects: kinds() }).toEqual({ answered: false, effects: [] });
    release();
    expect(answer(await reply)).toBe('ok');
    await rest();
    expect(kinds()).toEqual(['activate']);
    expect(memory.kept.get('execution')?.tokens[0]?.state).toBe('redeemed');
  });

  test('a call is stored before it is told to its document, and removed once its outcome is delivered', async () => {
    const memory = createMemory();
    const { runtime, kinds, connect } = start(memory.store);
    await connect('caller', {});
    await connect('target', {});
    const call = aCall();
    expect(answer(await runtime.dispatch({ type: 'execution-requested', documentId: 'caller', call }))).toBe(
      'ok',
    );
    await runtime.dispatch({ ...ended, activationId: 'execution' } as Happening);
    await runtime.dispatch({ type: 'outcome-delivered', executionId: 'execution', documentId: 'caller' });
    expect(kinds()).toEqual(['activate', 'settle', 'drop']);
    expect(memory.log.slice(0, 2)).toEqual(['load', 'wrote execution']);
    expect(memory.kept.size).toBe(0);
  });

  test('documents that come, offer tools and go touch no storage (I7)', async () => {
    const memory = createMemory();
    const { runtime, connect } = start(memory.store);
    await connect('caller', {});
    await runtime.dispatch({ type: 'tools-changed', documentId: 'caller', tools: [] });
    await runtime.dispatch({ type: 'document-left', documentId: 'caller', lostCalls: [aCall()] });
    expect(memory.log).toEqual(['load']);
  });
});

describe('one event at a time, in the order of arrival', () => {
  test('though the first is slow to be prepared, slow to commit and slow to leave', async () => {
    const memory = createMemory([suspended()]);
    const order: string[] = [];
    let leave = () => {};
    const { runtime, connect } = start(memory.store, createClock(), (effect) => {
      order.push(effect.type);
      if (effect.type === 'activate')
        return new Promise((resolve) => {
          leave = resolve;
        });
    });
    await connect('shipping');
    await connect('caller');
    let prepare = (_: Happening) => {};
    const slow = new Promise<Happening>((resolve) => {
      prepare = resolve;
    });
    const first = runtime.dispatch(slow).then(() => order.push('first answered'));
    const second = runtime
      .dispatch({ type: 'cancel-requested', executionId: 'execution' })
      .then(() => order.push('second answered'));
    await rest();
    expect(order).toEqual([]);
    const release = memory.hold();
    prepare(presented('redeemer'));
    await rest();
    expect(order).toEqual([]);
    release();
    await first;
    await rest();
    expect([...order].sort()).toEqual(['activate', 'first answered']);
    leave();
    await second;
    await rest();
    expect(order.slice(2)).toContain('second answered');
    expect(order.slice(2)).toContain('drop');
  });

  test('records come first, however slow they are', async () => {
    const memory = createMemory([suspended()]);
    const release = memory.hold();
    const { runtime, connect } = start(memory.store);
    const connected = connect('shipping');
    await rest();
    expect(runtime.state.documents.size).toBe(0);
    release();
    await connected;
    expect([...runtime.state.executions.keys()]).toEqual(['execution']);
  });

  test('an event that fails to be prepared, or to be taken, takes nothing along', async () => {
    const memory = createMemory();
    const { runtime, connect } = start(memory.store);
    const failed = runtime.dispatch(Promise.reject(new Error('no digest')));
    const monstrous = runtime.dispatch({ type: 'document-connected' } as never);
    expect((await failed).ok).toBe(false);
    expect((await monstrous).ok).toBe(false);
    expect((await connect('target')).ok).toBe(true);
    expect([...runtime.state.documents.keys()]).toEqual(['target']);
  });

  test('an effect that fails takes no other effect along', async () => {
    const memory = createMemory([
      anExecution({ activations: [anActivation({ state: 'running' })], tokens: [aToken()] }),
    ]);
    const { runtime, kinds, turns, connect } = start(memory.store, createClock(), () => {
      throw new Error('cannot be sent');
    });
    await connect('target');
    await connect('caller');
    const before = turns.length;
    await runtime.dispatch({ type: 'cancel-requested', executionId: 'execution' });
    await rest();
    expect(kinds().filter((kind) => kind === 'drop')).toHaveLength(2);
    expect(turns.length).toBe(before + 1);
  });
});

describe('a commit that fails', () => {
  const grant: Happening = {
    type: 'token-requested',
    documentId: 'target',
    ...aGrant({ digest: 'another digest', lifetime: 60_000 }),
  };

  test.each([
    ['a redemption', presented('redeemer'), suspended()],
    ['a grant', grant, anExecution({ activations: [anActivation()] })],
  ])('refuses %s and changes nothing', async (_, happening, record) => {
    const memory = createMemory([record]);
    const { runtime, effects, connect } = start(memory.store);
    await connect('shipping');
    await connect('target');
    const before = structuredClone(runtime.state.executions.get('execution'));
    effects.length = 0;
    memory.fail('storage-full');
    expect(answer(await runtime.dispatch(happening))).toBe('storage-full');
    await rest();
    expect(effects).toEqual([]);
    expect(runtime.state.executions.get('execution')).toEqual(before);
    memory.fail(null);
    expect(answer(await runtime.dispatch(happening))).toBe('ok');
  });

  test('lets anything else take effect, and writes it with the next one that succeeds', async () => {
    const memory = createMemory([
      anExecution({ activations: [anActivation()], tokens: [aToken()] }),
      suspended({ id: 'other', tokens: [aToken({ digest: 'other digest', deadline: START + 60_000 })] }),
    ]);
    const { runtime, kinds, connect } = start(memory.store);
    await connect('target');
    await connect('caller');
    memory.fail('storage-unavailable');
    expect(answer(await runtime.dispatch(ended))).toBe('ok');
    expect(kinds()).toContain('deliverOutput');
    expect(memory.kept.get('execution')?.outputs).toEqual([]);
    memory.fail(null);
    await runtime.dispatch({ type: 'cancel-requested', executionId: 'other' });
    expect(memory.kept.get('execution')?.outputs.map(({ value }) => value.text)).toEqual(['done']);
    expect(memory.kept.get('other')?.settled?.as).toBe('aborted');
  });

  test('of the records, at the start, is made good when storage is back', async () => {
    const memory = createMemory([suspended(), suspended({ id: 'other', tokens: [] })]);
    memory.fail('storage-unavailable');
    const { runtime, connect } = start(memory.store);
    await connect('shipping');
    expect(runtime.state.executions.size).toBe(0);
    memory.fail(null);
    expect(answer(await runtime.dispatch(presented('redeemer')))).toBe('ok');
    await rest();
    expect([...runtime.state.executions.keys()].sort()).toEqual(['execution', 'other']);
  });
});

describe('time (I5)', () => {
  const passed: Happening = { type: 'time-passed' };

  test('time passes, and the deadline is judged then', async () => {
    const clock = createClock();
    const memory = createMemory([suspended()]);
    const { runtime, kinds, connect } = start(memory.store, clock);
    await connect('caller');
    clock.turn(59_999);
    await runtime.dispatch(passed);
    expect(runtime.state.executions.get('execution')?.settled).toBe(null);
    clock.turn(1);
    await runtime.dispatch(passed);
    await rest();
    expect(runtime.state.executions.get('execution')?.settled?.as).toBe('token-expired');
    expect(kinds()).toEqual(['settle']);
  });

  test('it passes once for the records of earlier generations, before anything else happens', async () => {
    const memory = createMemory([suspended({ tokens: [aToken({ deadline: START })] })]);
    const { runtime } = start(memory.store);
    await rest();
    expect(runtime.state.executions.get('execution')?.settled?.as).toBe('token-expired');
    expect(memory.kept.get('execution')?.settled?.as).toBe('token-expired');
  });

  test('while nothing is due it touches no storage, and the runtime sets no timers', async () => {
    const clock = createClock();
    const tokens = [aToken({ state: 'redeemed', deadline: START - 1 }), aToken({ digest: 'other' })];
    const running = anExecution({ activations: [anActivation()], tokens });
    const memory = createMemory([running]);
    const { runtime, connect } = start(memory.store, clock);
    await connect('target');
    await connect('caller');
    const before = [...memory.log];
    for (let pulse = 0; pulse < 10; pulse += 1) {
      clock.turn(500);
      await runtime.dispatch(passed);
    }
    expect(memory.log).toEqual(before);
    expect(clock.pending()).toBe(0);
  });

  test('whatever comes first after the deadline judges it, though no timer has fired', async () => {
    const clock = createClock();
    const { runtime, connect } = start(createMemory([suspended()]).store, clock);
    await connect('shipping');
    clock.set(60_000);
    expect(answer(await runtime.dispatch(presented('redeemer')))).toBe('token-expired');
  });

  test('time that passes too early, by a clock that was set back, changes nothing and is judged again', async () => {
    const clock = createClock();
    const { runtime, connect } = start(createMemory([suspended()]).store, clock);
    await connect('caller');
    clock.set(-30_000);
    clock.turn(60_000);
    await runtime.dispatch(passed);
    expect(runtime.state.executions.get('execution')?.settled).toBe(null);
    clock.turn(60_000);
    await runtime.dispatch(passed);
    expect(runtime.state.executions.get('execution')?.settled?.as).toBe('token-expired');
  });

  test('no clock but the injected one is read', async () => {
    const forbidden = vi.spyOn(Date, 'now').mockImplementation(() => {
      throw new Error('the wrong clock');
    });
    const { runtime, connect } = start(createMemory([suspended()]).store);
    await connect('shipping');
    expect(answer(await runtime.dispatch(presented('redeemer')))).toBe('ok');
    expect(forbidden).not.toHaveBeenCalled();
  });
});

describe('two workers on one database', () => {
  const both = () => [0, 1].map(() => start(createStore(createClock(), 1_000))) as [Started, Started];
  type Started = ReturnType<typeof start>;

  async function put(...executions: Execution[]): Promise<void> {
    await createStore(createClock(), 1_000).transact({ ids: [], digest: null }, () => ({
      put: executions,
      remove: [],
    }));
  }
  const stored = async () => (await createStore(createClock(), 1_000).load())[0];

  test('of two redemptions in the same instant one wins, a hundred times', async () => {
    for (let round = 0; round < 100; round += 1) {
      globalThis.indexedDB = new IDBFactory();
      await put(suspended());
      const workers = both();
      await Promise.all(workers.map(({ connect }) => connect('shipping')));
      const answers = await Promise.all(
        workers.map(({ runtime }, worker) => runtime.dispatch(presented(`redeemer ${worker}`))),
      );
      expect(answers.map(answer).sort()).toEqual(['ok', 'token-redeemed']);
      await rest();
      const activated = workers.flatMap(({ kinds }) => kinds()).filter((kind) => kind === 'activate');
      expect(activated).toEqual(['activate']);
    }
  }, 30_000);

  test('what one has stored the other takes in before it decides', async () => {
    await put(suspended());
    const [older, newer] = both();
    await older.connect('shipping');
    await newer.connect('shipping');
    await newer.runtime.dispatch({ type: 'cancel-requested', executionId: 'execution' });
    expect(answer(await older.runtime.dispatch(presented('redeemer')))).toBe('token-void');
  });

  test('what one could not write does not undo what the other wrote since', async () => {
    const other = suspended({
      id: 'other',
      tokens: [aToken({ digest: 'other digest', deadline: START + 60_000 })],
    });
    await put(anExecution({ activations: [anActivation()], tokens: [aToken()] }), other);
    const real = createStore(createClock(), 1_000);
    let isBroken = false;
    const flaky: Store = {
      ...real,
      async transact(query, decide) {
        if (isBroken) throw new DOMException('broken by the test', 'UnknownError');
        return real.transact(query, decide);
      },
    };
    const older = start(flaky);
    const newer = start(createStore(createClock(), 1_000));
    await older.connect('target');
    await newer.connect('shipping');
    isBroken = true;
    await older.runtime.dispatch(ended);
    isBroken = false;
    expect(answer(await newer.runtime.dispatch(presented('redeemer')))).toBe('ok');
    await older.runtime.dispatch({ type: 'cancel-requested', executionId: 'other' });
    const execution = await stored();
    expect(execution?.tokens[0]?.state).toBe('redeemed');
    expect(execution?.activations[1]).toMatchObject({ id: 'redeemer', resumes: 'digest' });
  });
});
