/**
 * The loop around the core: one event at a time, the step, the commit if anything stored changed, then the effects.
 *
 * Kept: I1 commit precedes effect, but for an acknowledged activation, which is written with the next commit (told counts as
 * started, acknowledged or not); I7 calls that the worker does not have touch no storage. A commit that fails refuses a call,
 * a token's grant or its redemption outright; anything else takes effect all the same, and is written with the next commit.
 */
import type { ExecutionId } from '../shared/ids.ts';
import type { Reply } from '../shared/protocol.ts';
import type { Clock } from './clock.ts';
import type { Change, Effect, Event, Happening, Step } from './core/event.ts';
import { announcedIds, withRecords } from './core/recover.ts';
import type { ConnectedDocument, Execution, State } from './core/state.ts';
import { concerned, step } from './core/step.ts';
import { type Store, storageFailure } from './store.ts';

export interface Runtime {
  readonly state: State;
  /**
   * Takes an event; one that is a promise keeps its place in the order of arrival. Resolves with the step's reply once it is
   * committed.
   */
  dispatch(happening: Happening | Promise<Happening>): Promise<Reply<unknown>>;
}

export interface Shell {
  /** Seals the values in an event that storage is about to keep. */
  seal(event: Event): Promise<void>;
  perform(effect: Effect): Promise<void>;
  /** Called after each turn with the changes it made. */
  changed(changes: readonly Change[]): void;
}

interface MutableState extends State {
  documents: Map<string, ConnectedDocument>;
  executions: Map<ExecutionId, Execution>;
}

export function createRuntime(
  { generation, bounds, sizes }: Pick<State, 'generation' | 'bounds' | 'sizes'>,
  store: Store,
  clock: Clock,
  shell: Shell,
): Runtime {
  const state: MutableState = { generation, bounds, sizes, documents: new Map(), executions: new Map() };
  /** Changed here since they were last written: a record keeps its revision until it is. */
  const unsaved = new Set<ExecutionId>();
  let latest: Promise<unknown> = Promise.resolve();
  let loaded = false;

  function dispatch(happening: Happening | Promise<Happening>): Promise<Reply<unknown>> {
    const before = latest;
    return new Promise((answer) => {
      latest = before.then(() => take(happening, answer));
    });
  }

  async function take(
    happening: Happening | Promise<Happening>,
    answer: (reply: Reply<unknown>) => void,
  ): Promise<void> {
    try {
      const { changes, effects, reply } = await turn(await happening);
      answer(reply);
      // One that fails takes no other along.
      for (const effect of effects) await shell.perform(effect).catch(report);
      shell.changed(changes);
    } catch (error) {
      report(error);
      answer({ ok: false, error: { ...storageFailure(error), started: true } });
    }
  }

  function turn(happening: Happening): Step | Promise<Step> {
    const event: Event = { ...happening, now: clock.now() };
    if (!touchesStorage(event)) return apply(step(state, event));
    // Told counts as started, acknowledged or not: nothing depends on when this is written.
    if (event.type === 'activation-acknowledged' && event.refused === null)
      return applyUnsaved(step(state, event));
    return commit(event).then(apply, (error) => withoutCommit(event, error));
  }

  function touchesStorage(event: Event): boolean {
    if (isForGood(event) || announces(event)) return true;
    return concerned(state, event).some((id) => state.executions.get(id)?.stored);
  }

  async function commit(event: Event): Promise<Step> {
    await shell.seal(event);
    const ids = concerned(state, event).filter((id) => state.executions.get(id)?.stored !== false);
    const query = {
      ids: [...new Set([...ids, ...unsaved])],
      digest: event.type === 'token-presented' ? event.digest : null,
      strict: isForGood(event),
      isNews: ({ id, revision }: Execution) => revision > (state.executions.get(id)?.revision ?? -1),
    };
    const { done } = await store.transact(query, (records) => {
      const executions = withRecords(state.executions, records);
      const done = step({ ...state, executions }, event);
      return { done, ...writesOf(withUnsaved(done.changes, executions)) };
    });
    unsaved.clear();
    if (!loaded) void dispatch(load());
    return done;
  }

  /** Adds what could not be written before, unless another worker has written since: then that stands. */
  function withUnsaved(changes: Change[], executions: Map<ExecutionId, Execution>): readonly Change[] {
    const changed = new Set(changes.map((change) => 'execution' in change && change.execution.id));
    for (const id of unsaved) {
      const execution = executions.get(id);
      if (execution === undefined || changed.has(id)) continue;
      const isOurs = execution === state.executions.get(id);
      changes.push({
        type: 'put',
        execution: { ...execution, revision: execution.revision + Number(isOurs) },
      });
    }
    return changes;
  }

  function withoutCommit(event: Event, error: unknown): Step {
    report(error);
    if (isForGood(event)) {
      return { changes: [], effects: [], reply: { ok: false, error: storageFailure(error) } };
    }
    return applyUnsaved(step(state, event));
  }

  /** Takes effect now, and is written with the next commit. */
  function applyUnsaved(done: Step): Step {
    for (const change of done.changes) {
      if (change.type !== 'put' || !change.execution.stored) continue;
      change.execution.revision -= 1;
      unsaved.add(change.execution.id);
    }
    return apply(done);
  }

  function apply(done: Step): Step {
    for (const change of done.changes) {
      if (change.type === 'connect') state.documents.set(change.document.documentId, change.document);
      else if (change.type === 'disconnect') state.documents.delete(change.documentId);
      else if (change.type === 'remove') state.executions.delete(change.execution.id);
      else state.executions.set(change.execution.id, change.execution);
    }
    return done;
  }

  /** Takes in the records of earlier generations, and lets happen what is due of them. */
  async function load(): Promise<Happening> {
    try {
      state.executions = withRecords(state.executions, await store.load());
      loaded = true;
    } catch (error) {
      report(error);
    }
    return { type: 'worker-started' };
  }

  // Comes first, so that whatever happens happens to them too.
  void dispatch(load());
  return { state, dispatch };
}

/** Whoever asked has been told: this is for whoever looks for the cause. */
function report(error: unknown): void {
  console.error('webmcp-relay: the worker goes on after', error);
}

/** Calls, grants and redemptions count only once they are stored. */
function isForGood({ type }: Event): boolean {
  return type === 'execution-requested' || type.startsWith('token-');
}

function announces(event: Event): boolean {
  return event.type === 'document-connected' && announcedIds(event.announcement).length > 0;
}

function writesOf(changes: readonly Change[]): { put: Execution[]; remove: ExecutionId[] } {
  const of = (type: Change['type']): Execution[] =>
    changes.flatMap((change) =>
      'execution' in change && change.type === type && change.execution.stored ? [change.execution] : [],
    );
  return { put: of('put'), remove: of('remove').map(({ id }) => id) };
}
