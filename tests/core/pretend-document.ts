/**
 * A pretend document: a page's half of the protocol, as far as the core can tell it from a real one.
 *
 * It remembers the activations it has seen and drops repeated commands (I2), retains ends until they are released, announces
 * all that it holds when it connects, and keeps what it was not answered to send it again. It counts what the tests assert:
 * how often each callback began, what each caller was told.
 */
import type { ErrorRecord, Reason } from '../../shared/errors.ts';
import { failure } from '../../shared/errors.ts';
import type { Call, DocumentFacts, Reply } from '../../shared/protocol.ts';
import type { ToolDefinition } from '../../shared/tool.ts';
import type { AnnouncedState, Effect, Happening, SealedEnd } from '../../sw/core/event.ts';
import { aValue, boxOf, inWords, returned, textOf, threw } from './records.ts';

/** What the pretend shell offers to its documents. */
export interface Surroundings {
  readonly now: number;
  /** In an automatic world messages travel at once; otherwise the test moves them. */
  readonly automatic: boolean;
  /** `null`: the worker died before it could answer. What it tells documents is on its way, and arrives by {@link travel}. */
  dispatch(happening: Happening, options?: { crash?: boolean }): Reply<unknown> | null;
  travel(): void;
  freshId(kind: string): string;
  began(activationId: string, executionId: string): void;
}

/** A command as the document receives it. */
export type DocumentEffect = Exclude<Effect, { type: 'summon' | 'announce-tools' }>;

/** One run of one callback. */
interface Run {
  readonly activationId: string;
  readonly executionId: string;
  readonly call: Call | null;
  /** Of this tab, and not granted a token yet: the worker has never heard of it. */
  local: boolean;
  stored: boolean;
  granted: boolean;
  end: SealedEnd | null;
  aborted: boolean;
  /** Its document went away while it ran. */
  over: boolean;
  released: boolean;
}

interface Awaited {
  readonly call: Call;
  local: boolean;
  stored: boolean;
  readonly outputs: Map<string, string | null | undefined>;
  outcome: string | null;
}

/** A request on its way to the worker. */
interface Request {
  readonly happening: Happening;
  readonly replied: (reply: Reply<unknown>) => void;
  /** An acknowledgement dies with its connection; a command is sent again. */
  readonly acknowledges: boolean;
}

const ABORTED = 'aborted by the caller';

export type PretendDocument = ReturnType<typeof createDocument>;

export function createDocument(world: Surroundings, facts: DocumentFacts, tools: ToolDefinition[]) {
  const { documentId } = facts;
  const runs = new Map<string, Run>();
  const awaited = new Map<string, Awaited>();
  const resumptions = new Map<string, { executionId: string; token: string }>();
  const redemptions = new Set<string>();
  const collected = new Set<string>();
  const withdrawn: string[] = [];
  const contradictions: string[] = [];
  const inbox: DocumentEffect[] = [];
  const outbox: Request[] = [];
  const sent: Request[] = [];
  let refusal: Reason | null = null;
  let frozen = false;

  const self = {
    ...facts,
    /** Said hello to the worker's present generation, and has not gone since. */
    connected: false,
    /** Its port reaches the worker: also after a goodbye, which is faster than what was sent before it. */
    reachesWorker: false,
    /** Between `pagehide` and `pageshow`, or gone with it. */
    left: false,
    /** Destroyed for good; a document that merely left may return from the back/forward cache. */
    destroyed: false,
    runs,
    awaited,
    resumptions,
    collected,
    withdrawn,
    /** Outcomes that it was told beside another one for the same execution. */
    contradictions,
    inbox,
    outbox,
    sent,

    // What a caller does.

    /** `executeTool()`, by way of the worker. Answers with the execution's id. */
    calls(target: DocumentFacts, options: Partial<Call> = {}): string {
      const call = callTo(target, options);
      awaited.set(call.executionId, {
        call,
        local: false,
        stored: false,
        outputs: new Map(),
        outcome: null,
      });
      post({ type: 'execution-requested', documentId, call }, (reply) => {
        const waiting = awaited.get(call.executionId);
        if (!reply.ok && waiting) waiting.outcome ??= `failed: ${reply.error.reason}, not started`;
      });
      return call.executionId;
    },
    /** `executeTool()` of a tool of the same tab: the worker hears of it once it is granted a token. */
    callsInTab(
      target: DocumentFacts & { runsLocally(call: Call): void },
      options: Partial<Call> = {},
    ): string {
      const call = callTo(target, options);
      awaited.set(call.executionId, { call, local: true, stored: false, outputs: new Map(), outcome: null });
      target.runsLocally(call);
      return call.executionId;
    },
    /** The signal of the call aborts. */
    cancels(executionId: string): void {
      const waiting = awaited.get(executionId);
      if (waiting) waiting.outcome ??= ABORTED;
      post({ type: 'cancel-requested', executionId });
    },
    /** `getPendingExecutions()`. Answers with their ids. */
    collects(): string[] {
      let ids: string[] = [];
      post({ type: 'outcomes-collected', documentId, tabId: facts.tabId }, (reply) => {
        if (reply.ok) ids = reply.value as string[];
        for (const id of ids) adopt(id);
      });
      return ids;
    },
    /** What the caller was told, in words; `null` while it waits. */
    outcomeOf: (executionId: string): string | null => awaited.get(executionId)?.outcome ?? null,
    outputsOf: (executionId: string) => [...(awaited.get(executionId)?.outputs.values() ?? [])],

    // What a callback does.

    runsLocally(call: Call): void {
      begin({ activationId: call.executionId, executionId: call.executionId, call, local: true });
    },
    returns(activationId: string, text: string | null = 'done'): void {
      end(activationId, returned(text));
    },
    throws(activationId: string, { leaving = false, message = 'it broke' } = {}): void {
      end(activationId, threw(message, { leaving }));
    },
    /** `requestToken()`. Answers as the worker does, or `undefined` while it has not. */
    requestsToken(
      activationId: string,
      { digest = world.freshId('token'), lifetime = 60_000 } = {},
    ): { digest: string; reply: Reply<unknown> | undefined } {
      const result: { digest: string; reply: Reply<unknown> | undefined } = { digest, reply: undefined };
      const run = runs.get(activationId);
      const { executionId = activationId, call = null } = run ?? {};
      const input = call === null ? null : aValue(call.input);
      const grant = { activationId, executionId, call, input, digest, key: boxOf('key'), lifetime };
      post({ type: 'token-requested', documentId, grant }, (reply) => {
        result.reply = reply;
        if (!reply.ok || run === undefined) return;
        run.granted = true;
        run.stored = true;
        run.local = false;
      });
      return result;
    },
    /** `resumeTool()`. */
    redeems(
      digest: string,
      executionId: string | null,
      activationId = world.freshId('activation'),
    ): { activationId: string; reply: Reply<unknown> | undefined } {
      const result: { activationId: string; reply: Reply<unknown> | undefined } = {
        activationId,
        reply: undefined,
      };
      redemptions.add(activationId);
      post({ type: 'token-presented', documentId, activationId, digest, executionId }, (reply) => {
        result.reply = reply;
        const accepted = reply.ok && executionId !== null && !runs.has(activationId);
        if (accepted && redemptions.has(activationId))
          resumptions.set(activationId, { executionId, token: digest });
        redemptions.delete(activationId);
      });
      return result;
    },
    /** Every command to activate is refused from now on. */
    refuses(reason: Reason): void {
      refusal = reason;
    },
    /** Reads no command until it thaws. */
    freezes(): void {
      frozen = true;
    },
    thaws(): void {
      frozen = false;
      self.readsAll();
    },

    // How it comes and goes.

    connects({ crash = false } = {}): void {
      if (self.destroyed) throw new Error(`${documentId} is gone`);
      self.disconnected();
      self.connected = true;
      self.reachesWorker = true;
      self.left = false;
      const announcement = structuredClone(announce());
      const clientId = `client of ${documentId}`;
      world.dispatch({ type: 'document-connected', facts, clientId, announcement }, { crash });
      world.travel();
      if (world.automatic) self.sendsAll();
    },
    /** The port is dead: what was on its way to the page is lost, what was not answered is kept. */
    disconnected(): void {
      self.connected = false;
      self.reachesWorker = false;
      inbox.length = 0;
      outbox.splice(0, outbox.length, ...outbox.filter(({ acknowledges }) => !acknowledges));
    },
    /** `pagehide`: whatever runs in it is over for good. */
    leaves({ destroyed = false, crash = false } = {}): void {
      for (const run of runs.values()) if (run.end === null) run.over = true;
      resumptions.clear();
      redemptions.clear();
      const lostCalls = [...awaited.values()]
        .filter(({ local, outcome }) => local && outcome === null)
        .map(({ call: { executionId, callerTabId, groupId, toolName, input } }) => ({
          executionId,
          callerTabId,
          groupId,
          toolName,
          input,
        }));
      for (const { executionId } of lostCalls) awaited.delete(executionId);
      self.connected = false;
      self.left = true;
      inbox.length = 0;
      self.destroyed ||= destroyed;
      world.dispatch({ type: 'document-left', documentId, lostCalls }, { crash });
      world.travel();
    },
    /** It is gone, and the worker does not know yet. */
    crashes(): void {
      self.destroyed = true;
      self.left = true;
      self.reachesWorker = false;
      inbox.length = 0;
      outbox.length = 0;
    },
    /** The browser says that it is gone. */
    isMissed({ crash = false } = {}): void {
      self.connected = false;
      world.dispatch({ type: 'document-lost', documentId }, { crash });
      world.travel();
    },
    stays(): void {
      post({ type: 'document-stayed', documentId });
    },

    // How messages travel.

    /** Reads the next command, if there is one. */
    reads(): void {
      const command = inbox.shift();
      if (command !== undefined) read(command);
    },
    readsAll(): void {
      while (inbox.length > 0 && !frozen) self.reads();
    },
    /** Brings a waiting request to the worker. `crash`: the worker dies once it has committed, and nobody is answered. */
    sends(index = 0, { crash = false } = {}): void {
      const [request] = outbox.splice(index, 1);
      if (request === undefined) return;
      const reply = world.dispatch(request.happening, { crash });
      if (reply === null) {
        if (!request.acknowledges) outbox.unshift(request);
        return;
      }
      if (!request.acknowledges) sent.push(request);
      request.replied(reply);
      world.travel();
    },
    sendsAll(): void {
      while (outbox.length > 0) self.sends();
    },
    /** Sends once more what the worker has answered already. */
    repeats(index: number): void {
      const request = sent[index];
      if (request !== undefined) outbox.push({ ...request, replied: () => {} });
    },
    /** Does it hold anything that it would wake the worker for? */
    holds(): string[] {
      return [
        ...[...awaited.values()].filter(awaits).map(({ call }) => `call ${call.executionId}`),
        ...[...runs.values()].filter(isHeld).map(({ activationId }) => `activation ${activationId}`),
        ...[...resumptions.keys()].map((activationId) => `resumption ${activationId}`),
      ];
    },
  };

  function callTo(target: DocumentFacts, options: Partial<Call>): Call {
    return {
      executionId: world.freshId('execution'),
      callerDocumentId: documentId,
      callerTabId: facts.tabId,
      groupId: facts.groupId,
      keepalive: false,
      documentId: target.documentId,
      registrationId: 'registration',
      toolName: 'checkout',
      input: '{"item":1}',
      key: 'key',
      tabKey: boxOf('key'),
      ...options,
    };
  }

  function post(happening: Happening, replied: Request['replied'] = () => {}, acknowledges = false): void {
    outbox.push({ happening, replied, acknowledges });
    if (world.automatic && self.connected) self.sendsAll();
  }

  function begin(run: Pick<Run, 'activationId' | 'executionId' | 'call' | 'local'>): void {
    const { activationId, executionId, call } = run;
    const fresh = { stored: call === null, granted: false, end: null, aborted: false, over: false };
    runs.set(activationId, { ...run, ...fresh, released: false });
    resumptions.delete(activationId);
    redemptions.delete(activationId);
    world.began(activationId, executionId);
  }

  function end(activationId: string, how: SealedEnd): void {
    const run = runs.get(activationId);
    if (run === undefined || run.end !== null) throw new Error(`${activationId} does not run`);
    run.end = how;
    if (run.local || run.released) return;
    const { executionId } = run;
    post({ type: 'activation-ended', executionId, activationId, end: how }, (reply) => {
      if (!reply.ok) run.released = true;
    });
  }

  function adopt(executionId: string): void {
    if (awaited.has(executionId)) return;
    collected.add(executionId);
    const call = callTo(facts, { executionId });
    awaited.set(executionId, { call, local: false, stored: true, outputs: new Map(), outcome: null });
  }

  function read(command: DocumentEffect): void {
    switch (command.type) {
      case 'activate':
        activate(command);
        return;
      case 'abort': {
        const run = runs.get(command.activationId);
        if (run !== undefined) run.aborted = true;
        return;
      }
      case 'withdraw':
        withdrawn.push(command.activationId);
        redemptions.delete(command.activationId);
        resumptions.delete(command.activationId);
        return;
      case 'settle': {
        const waiting = awaited.get(command.executionId);
        if (waiting !== undefined) isTold(waiting, inWords(command.ending));
        const { executionId } = command;
        post({ type: 'outcome-delivered', executionId, documentId }, () => {}, true);
        return;
      }
      case 'deliver-output': {
        const waiting = awaited.get(command.executionId);
        waiting?.outputs.set(command.activationId, textOf(command.value));
        if (waiting !== undefined) waiting.stored = true;
        return;
      }
      case 'release':
        for (const id of command.activationIds) {
          const run = runs.get(id);
          if (run !== undefined) run.released = true;
        }
        return;
    }
  }

  function isTold(waiting: Awaited, outcome: string): void {
    const { outcome: before } = waiting;
    waiting.outcome ??= outcome;
    const contradicts = before !== null && before !== outcome && before !== ABORTED;
    if (contradicts) contradictions.push(`${waiting.call.executionId}: ${before}, then ${outcome}`);
  }

  function activate({ activationId, execution, refuseAfter }: DocumentEffect & { type: 'activate' }): void {
    const { id: executionId } = execution;
    const first = activationId === executionId;
    let refused: ErrorRecord | null = null;
    if (!runs.has(activationId)) {
      const expected = first || resumptions.has(activationId) || redemptions.has(activationId);
      if (world.now > refuseAfter) refused = failure('document-unresponsive', false);
      else if (refusal !== null) refused = failure(refusal, false);
      else if (!expected) refused = failure('tool-unavailable', false);
      else begin({ activationId, executionId, call: first ? callOf(execution) : null, local: false });
    }
    post({ type: 'activation-acknowledged', executionId, activationId, refused }, () => {}, true);
  }

  function callOf(execution: (DocumentEffect & { type: 'activate' })['execution']): Call {
    const { id: executionId, callerTabId, groupId, keepalive, toolName, registrationId } = execution;
    const callerDocumentId = execution.callerDocumentId ?? '';
    const input = textOf(execution.input) ?? '{}';
    const named = { executionId, callerDocumentId, callerTabId, groupId, toolName, registrationId };
    return callTo(facts, { ...named, keepalive, input });
  }

  function announce(): AnnouncedState {
    return {
      tools,
      calls: [...awaited.values()]
        .filter((waiting) => awaits(waiting) && !collected.has(waiting.call.executionId))
        .map(({ call, stored }) => ({ call, stored })),
      activations: [...runs.values()].filter(isHeld).map((run) => {
        const { activationId, executionId, stored, call, end: how } = run;
        return { activationId, executionId, key: 'key', stored, call, end: how };
      }),
      resumptions: [...resumptions].map(([activationId, resumption]) => ({ activationId, ...resumption })),
    };
  }

  return self;
}

function awaits({ local, outcome }: Awaited): boolean {
  return !local && outcome === null;
}

function isHeld({ local, released, over, end }: Run): boolean {
  return !local && !released && (end !== null || !over);
}
