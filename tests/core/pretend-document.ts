/**
 * A pretend document: a page's half of the protocol, as far as the core can tell it from a real one.
 *
 * It remembers the activations it has seen and drops repeated commands (I2), announces all that the worker has when it
 * connects, and keeps what it was not answered to send it again. A direct call meets the worker only once a token is asked
 * for; between tabs, what its two ends tell each other takes a while. It counts what the tests assert: how often each
 * callback began, what each caller was told.
 */
import { type ErrorRecord, failure, type Reason } from '../../shared/errors.ts';
import type { Announcement, Call, DocumentFacts, End, Grant, Reply } from '../../shared/protocol.ts';
import type { ToolDefinition } from '../../shared/tool.ts';
import type { Effect, Happening } from '../../sw/core/event.ts';
import type { Execution } from '../../sw/core/state.ts';
import { aValue, boxOf, declined, inWords, returned, textOf, threw } from './records.ts';

/** What the pretend shell offers to its documents. */
export interface Surroundings {
  readonly now: number;
  /** In an automatic world messages travel at once; otherwise the test moves them. */
  readonly automatic: boolean;
  /** `null`: the worker died before it could answer. What it tells documents arrives by {@link travel}. */
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
  readonly call: Call;
  /** Who is told of its end; `null` if that is the worker: it has the call. */
  caller: DirectCaller | null;
  /** Requests for a token that are not answered. */
  requests: number;
  /** `ending`: it returned or threw, and its requests are not answered. `over`: dropped, or its page left. */
  state: 'running' | 'ending' | 'ended' | 'over';
  end: End | null;
  aborted: boolean;
}

/** How a callback reaches its caller without the worker. */
interface DirectCaller {
  asked(): void;
  stored(): void;
  ended(end: End): void;
  /** Its document is gone. */
  lost(): void;
  /** Its document was gone before it read of the call. */
  missed(): void;
}

interface DirectTarget extends DocumentFacts {
  runsFor(call: Call, caller: DirectCaller): void;
  isCancelled(executionId: string): void;
  /** Its caller is gone: nobody else knows of what is not stored. */
  dropsUnstored(activationId: string): void;
  hears(word: Word, isOwn: boolean): void;
}

/** What a document of another tab tells this one. */
interface Word {
  act(): void;
  /** This document went before it read it. */
  unread?(): void;
}

/** A call, or what was collected. */
interface Awaited {
  readonly call: Call;
  readonly target: DirectTarget | null;
  /** What the worker knows of it: nothing, perhaps something, the call, all of it. */
  known: 'no' | 'maybe' | 'sent' | 'stored';
  readonly outputs: Map<string, string | null | undefined>;
  outcome: string | null;
  /** What the worker said first. */
  told: string | null;
}

/** A message on its way to the worker. */
interface Message {
  readonly happening: Happening;
  readonly replied: (reply: Reply<unknown>) => void;
  /** An acknowledgement dies with its connection; anything else is sent again. */
  readonly acknowledges: boolean;
}

/** A command that is not answered is sent again for so long, in milliseconds. */
const SEND_BOUND = 10_000;

/** What a document is told of an execution that is not its own, or not to be had any more. */
const NAVIGATED = 'failed: navigated, started';
const ABORTED = 'aborted by the caller';

export type PretendDocument = ReturnType<typeof createDocument>;

export function createDocument(world: Surroundings, facts: DocumentFacts, tools: ToolDefinition[]) {
  const { documentId } = facts;
  const runs = new Map<string, Run>();
  const awaited = new Map<string, Awaited>();
  const resumptions = new Map<string, { executionId: string; token: string }>();
  /** Redemptions that are not answered. */
  const redemptions = new Set<string>();
  const withdrawn: string[] = [];
  const contradictions: string[] = [];
  const inbox: DocumentEffect[] = [];
  const outbox: Message[] = [];
  const port: Word[] = [];
  const sent: (Message & { at: number })[] = [];
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
    /** Gone for good; a document that merely left may return from the back/forward cache. */
    destroyed: false,
    runs,
    awaited,
    inbox,
    outbox,
    /** What documents of other tabs have told it, unread. */
    port,
    sent,
    /** Accepted resumptions that it was told to forget. */
    withdrawn,
    /** Outcomes that it was told beside another one for the same execution. */
    contradictions,

    // What a caller does.

    /** `executeTool()`, by way of the worker. Answers with the execution's id. */
    calls(target: DocumentFacts, options: Partial<Call> = {}): string {
      const call = callTo(target, options);
      const waiting = awaits(call, null, 'sent');
      post({ type: 'execution-requested', documentId, call }, (reply) => {
        if (!reply.ok) waiting.outcome ??= `failed: ${reply.error.reason}, not started`;
        else waiting.known = 'stored';
        if (reply.ok && waiting.outcome !== null && waiting.told === null) {
          post({ type: 'cancel-requested', executionId: call.executionId });
        }
      });
      return call.executionId;
    },
    /** `executeTool()`, without the worker. */
    callsDirectly(target: DirectTarget, options: Partial<Call> = {}): string {
      const call = callTo(target, options);
      const { executionId } = call;
      const waiting = awaits(call, target, 'no');
      const isOwn = target.tabId === facts.tabId;
      const hears = (act: () => void) => self.hears({ act }, isOwn);
      const caller: DirectCaller = {
        asked: () =>
          hears(() => {
            if (waiting.known === 'no') waiting.known = 'maybe';
          }),
        stored: () =>
          hears(() => {
            waiting.known = 'stored';
            if (waiting.outcome !== null) post({ type: 'cancel-requested', executionId });
          }),
        ended: (end) =>
          hears(() => {
            if (waiting.known !== 'no') post({ type: 'cancel-requested', executionId });
            waiting.outcome ??= endInWords(end);
          }),
        lost: () =>
          hears(() => {
            if (waiting.known === 'no') waiting.outcome ??= NAVIGATED;
            if (waiting.outcome !== null || waiting.known === 'stored') return;
            waiting.known = 'stored';
            post({ type: 'outcomes-awaited', documentId, executionIds: [executionId] });
          }),
        missed: () =>
          hears(() => {
            waiting.outcome ??= 'failed: tool-unavailable, not started';
          }),
      };
      const act = () => target.runsFor(call, caller);
      target.hears({ act, unread: caller.missed }, isOwn);
      return executionId;
    },
    /** The signal of the call aborts. */
    cancels(executionId: string): void {
      const waiting = awaited.get(executionId);
      if (waiting === undefined || waiting.outcome !== null) return;
      waiting.outcome = ABORTED;
      tellTarget(waiting, 'isCancelled');
      if (waiting.known !== 'no') post({ type: 'cancel-requested', executionId });
    },
    /** `getPendingExecutions()`. Answers with the ids, once the worker has. */
    collects(): string[] {
      const ids: string[] = [];
      post({ type: 'outcomes-collected', documentId }, (reply) => {
        // Its own calls are no news to it.
        const listed = reply.ok ? (reply.value as Execution[]).map(({ id }) => id) : [];
        ids.push(...listed.filter((id) => !isAwaited(id) || awaited.get(id)?.known === 'stored'));
        for (const id of ids) if (!isAwaited(id)) awaits(callTo(facts, { executionId: id }), null, 'stored');
        post({ type: 'outcomes-awaited', documentId, executionIds: ids });
      });
      return ids;
    },
    /** What the caller was told, in words; `null` while it waits. */
    outcomeOf: (executionId: string): string | null => awaited.get(executionId)?.outcome ?? null,
    outputsOf: (executionId: string) => [...(awaited.get(executionId)?.outputs.values() ?? [])],

    // What a callback does.

    runsFor(call: Call, caller: DirectCaller): void {
      begin({ activationId: call.executionId, executionId: call.executionId, call, caller });
    },
    returns(activationId: string, text: string | null = 'done'): void {
      end(activationId, returned(text));
    },
    throws(activationId: string, { leaving = false, message = 'it broke' } = {}): void {
      end(activationId, threw(message, { leaving }));
    },
    /** It acknowledged, and does not run the callback after all. */
    declines(activationId: string): void {
      end(activationId, declined('it does not fit'));
    },
    /** `requestToken()`. The reply comes with the worker's. */
    requestsToken(activationId: string, { digest = world.freshId('token'), lifetime = 60_000 } = {}) {
      const result: { digest: string; reply: Reply<unknown> | undefined } = { digest, reply: undefined };
      const run = runs.get(activationId);
      if (run === undefined) throw new Error(`${activationId} never ran in ${documentId}`);
      const { executionId } = run;
      const { caller } = run;
      const call = caller && run.call;
      const tokenKey = boxOf('key');
      const grant: Grant = { activationId, executionId, call, key: 'key', digest, tokenKey, lifetime };
      run.requests += 1;
      caller?.asked();
      post({ type: 'token-requested', documentId, ...grant }, (reply) => {
        result.reply = reply;
        run.requests -= 1;
        if (reply.ok) {
          run.caller = null;
          caller?.stored();
          cancelsIfOver(run);
        }
        finish(run);
      });
      return result;
    },
    /** `resumeTool()`. */
    redeems(digest: string, executionId: string | null, activationId = world.freshId('activation')) {
      const result: { activationId: string; reply: Reply<unknown> | undefined } = {
        activationId,
        reply: undefined,
      };
      redemptions.add(activationId);
      post({ type: 'token-presented', documentId, activationId, digest }, (reply) => {
        result.reply = reply;
        const waits = redemptions.delete(activationId) && !runs.has(activationId);
        if (reply.ok && executionId !== null && waits)
          resumptions.set(activationId, { executionId, token: digest });
      });
      return result;
    },
    /** Whatever it still gives, nobody wants: it is aborted, its end is forgotten. */
    drops(activationId: string): void {
      const run = runs.get(activationId);
      if (run === undefined) return;
      run.aborted ||= run.state === 'running' || run.state === 'ending';
      run.state = 'over';
    },
    /** Its direct caller may not know that the worker has the call. */
    isCancelled(executionId: string): void {
      if (runs.get(executionId)?.caller === null) post({ type: 'cancel-requested', executionId });
      self.drops(executionId);
    },
    dropsUnstored(activationId: string): void {
      if (runs.get(activationId)?.caller) self.drops(activationId);
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
      self.losesPort();
      if (self.left) returns();
      self.left = false;
      self.connected = true;
      self.reachesWorker = true;
      const announcement = structuredClone(announce());
      const clientId = `client of ${documentId}`;
      world.dispatch({ type: 'document-connected', facts, clientId, announcement }, { crash });
      world.travel();
      if (world.automatic) self.sendsAll();
    },
    /** The port is dead: what was on its way to the page is lost, what was not answered is kept. */
    losesPort(): void {
      self.connected = false;
      self.reachesWorker = false;
      inbox.length = 0;
      keepInOutbox(({ acknowledges }) => !acknowledges);
    },
    /** `pagehide`: whatever runs in it is over for good. */
    leaves({ destroyed = false, crash = false } = {}): void {
      const lost = [...awaited.values()].filter(
        ({ known, outcome }) => known !== 'stored' && outcome === null,
      );
      for (const waiting of lost)
        if (waiting.target?.documentId !== documentId) tellTarget(waiting, 'isCancelled');
      leavesTargets();
      for (const waiting of lost) waiting.outcome = NAVIGATED;
      for (const { happening, replied } of outbox.filter(isLast)) {
        const reply = world.dispatch(happening);
        if (reply !== null) replied(reply);
      }
      keepInOutbox((message) => !isLast(message));
      leavesCallers();
      leavesUnread();
      resumptions.clear();
      redemptions.clear();
      inbox.length = 0;
      self.connected = false;
      self.left = true;
      if (destroyed) self.crashes();
      const lostCalls = lost.flatMap(({ call, known }) => (known === 'no' || call.keepalive ? call : []));
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
      leavesTargets();
      leavesCallers();
      leavesUnread();
    },
    /** The browser says that it is gone. */
    isMissed(): void {
      self.connected = false;
      world.dispatch({ type: 'document-lost', documentId });
      world.travel();
    },
    /** Its navigation ended without a new document. */
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
    /** A document tells it something: what comes from another tab it reads later. */
    hears(word: Word, isOwn: boolean): void {
      if (!isOwn && !world.automatic && !self.left) port.push(word);
      else if (self.left) word.unread?.();
      else word.act();
    },
    /** Reads the next word of another tab's document, if there is one. */
    readsPort(): void {
      port.shift()?.act();
    },
    /** Brings a waiting message to the worker. `crash`: the worker dies once it has committed, and nobody is answered. */
    sends(index = 0, { crash = false } = {}): void {
      const [message] = outbox.splice(index, 1);
      if (message === undefined || !isWanted(message)) return;
      const reply = world.dispatch(message.happening, { crash });
      if (reply === null) {
        if (!message.acknowledges) outbox.unshift(message);
        return;
      }
      if (!message.acknowledges) sent.push({ ...message, at: world.now });
      message.replied(reply);
      world.travel();
    },
    sendsAll(): void {
      while (outbox.length > 0) self.sends();
    },
    /** Sends once more what the worker has just answered; a collection is a new one each time. */
    repeats(index: number): void {
      const message = sent.filter(
        ({ happening, at }) => happening.type !== 'outcomes-collected' && world.now - at < SEND_BOUND,
      )[index];
      if (message === undefined) return;
      const { happening } = message;
      // As if the first reply had been lost with its worker.
      const replied = (reply: Reply<unknown>) => {
        if (happening.type === 'token-requested' && reply.ok) cancelsIfOver(happening);
      };
      outbox.push({ ...message, replied });
    },
    /** What it would wake the worker for. */
    holds(): string[] {
      return [
        ...[...awaited.values()].filter(isPending).map(({ call }) => `call ${call.executionId}`),
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
      input: aValue('{"item":1}'),
      tabKey: boxOf('key'),
      ...options,
    };
  }

  function awaits(call: Call, target: DirectTarget | null, known: Awaited['known']): Awaited {
    const waiting: Awaited = { call, target, known, outputs: new Map(), outcome: null, told: null };
    awaited.set(call.executionId, waiting);
    return waiting;
  }

  function tellTarget({ target, call }: Awaited, what: 'isCancelled' | 'dropsUnstored'): void {
    target?.hears({ act: () => target[what](call.executionId) }, target.tabId === facts.tabId);
  }

  /** The documents that run something for it learn that it is gone, those of its own tab by the worker alone. */
  function leavesTargets(): void {
    for (const waiting of awaited.values()) {
      if (waiting.target?.tabId !== facts.tabId) tellTarget(waiting, 'dropsUnstored');
    }
  }

  function leavesUnread(): void {
    for (const { unread } of port.splice(0)) unread?.();
  }

  function isAwaited(executionId: string): boolean {
    return awaited.get(executionId)?.outcome === null;
  }

  function post(happening: Happening, replied: Message['replied'] = () => {}, acknowledges = false): void {
    outbox.push({ happening, replied, acknowledges });
    if (world.automatic && self.connected) self.sendsAll();
  }

  /** It was cancelled while its token was asked for: who did so may not have been able to tell the worker. */
  function cancelsIfOver({ activationId, executionId }: { activationId: string; executionId: string }): void {
    const isOver = runs.get(activationId)?.state === 'over';
    if (isOver && !self.left) post({ type: 'cancel-requested', executionId });
  }

  function keepInOutbox(isKept: (message: Message) => boolean): void {
    outbox.splice(0, outbox.length, ...outbox.filter(isKept));
  }

  /** A call whose outcome is known is not made again. */
  function isWanted({ happening }: Message): boolean {
    if (happening.type !== 'execution-requested') return true;
    const waiting = awaited.get(happening.call.executionId);
    return waiting?.known === 'sent' && waiting.outcome === null;
  }

  /** Back from the back/forward cache: only what is stored can still be answered. */
  function returns(): void {
    for (const waiting of awaited.values()) if (waiting.known !== 'stored') waiting.outcome ??= NAVIGATED;
    keepInOutbox(isWanted);
  }

  function leavesCallers(): void {
    for (const run of runs.values()) {
      const isLost = run.state === 'running' || run.state === 'ending';
      run.state = 'over';
      if (isLost) run.caller?.lost();
    }
  }

  function begin(run: Pick<Run, 'activationId' | 'executionId' | 'call' | 'caller'>): void {
    const { activationId, executionId } = run;
    const fresh = { requests: 0, end: null, aborted: false };
    runs.set(activationId, { ...run, ...fresh, state: 'running' });
    resumptions.delete(activationId);
    redemptions.delete(activationId);
    world.began(activationId, executionId);
  }

  function end(activationId: string, how: End): void {
    const run = runs.get(activationId);
    if (run?.state !== 'running') return;
    run.end = how;
    run.state = 'ending';
    finish(run);
  }

  /** Whether it gives an answer or an output is known once its requests are answered. */
  function finish(run: Run): void {
    if (run.state !== 'ending' || run.requests > 0 || run.end === null) return;
    run.state = 'ended';
    const { executionId, activationId, end: how, caller } = run;
    if (caller !== null) {
      run.state = 'over';
      caller.ended(how);
      return;
    }
    post({ type: 'activation-ended', executionId, activationId, end: how }, () => {
      run.state = 'over';
    });
  }

  function read(command: DocumentEffect): void {
    switch (command.type) {
      case 'activate':
        activate(command);
        return;
      case 'drop': {
        const { activationId } = command;
        const waits = [redemptions.delete(activationId), resumptions.delete(activationId)].includes(true);
        if (waits) withdrawn.push(activationId);
        self.drops(activationId);
        return;
      }
      case 'settle':
        if (takesOutcome(command.executionId, inWords(command.ending))) {
          const { executionId } = command;
          post({ type: 'outcome-delivered', executionId, documentId }, () => {}, true);
        }
        return;
      case 'deliverOutput': {
        const waiting = awaited.get(command.executionId);
        waiting?.outputs.set(command.activationId, textOf(command.value));
        return;
      }
    }
  }

  /** Does it await the outcome that it is told, or has it had it? */
  function takesOutcome(executionId: string, outcome: string): boolean {
    const waiting = awaited.get(executionId);
    if (waiting === undefined) return false;
    const { told } = waiting;
    // Of a call that it cancelled itself it awaits nothing, whatever a worker without memory makes of its callback's end.
    const isOver = told?.startsWith('failed: aborted') ?? true;
    if (!isOver && told !== outcome && told !== NAVIGATED && outcome !== NAVIGATED) {
      contradictions.push(`${executionId}: ${told}, then ${outcome}`);
    }
    waiting.told ??= outcome;
    waiting.outcome ??= outcome;
    return true;
  }

  function activate(command: DocumentEffect & { type: 'activate' }): void {
    const { activationId, executionId, call, refuseAfter } = command;
    const first = activationId === executionId;
    let refused: ErrorRecord | null = null;
    if (!runs.has(activationId)) {
      const isExpected = first || resumptions.has(activationId) || redemptions.has(activationId);
      if (world.now > refuseAfter) refused = failure('document-unresponsive', false);
      else if (refusal !== null) refused = failure(refusal, false);
      else if (!isExpected) refused = failure('tool-unavailable', false);
      else begin({ activationId, executionId, call, caller: null });
    } else if (runs.get(activationId)?.state === 'over') refused = failure('navigated', true);
    post({ type: 'activation-acknowledged', executionId, activationId, refused }, () => {}, true);
  }

  function announce(): Announcement {
    return {
      tools,
      calls: [...awaited.values()]
        .filter(isPending)
        .map(({ call: { executionId } }) => ({ executionId, key: 'key' })),
      activations: [...runs.values()].filter(isHeld).map((run) => {
        const { activationId, executionId, caller, state } = run;
        const end = state === 'ended' ? run.end : null;
        return { activationId, executionId, key: 'key', stored: caller === null, end };
      }),
      resumptions: [...resumptions].map(([activationId, resumption]) => ({ activationId, ...resumption })),
    };
  }

  return self;
}

function endInWords(end: End): string {
  if (end.type === 'returned') return inWords({ type: 'result', value: end.value });
  return inWords({ type: 'failed', reason: end.reason, started: true, detail: end.error });
}

/** What a goodbye carries along, lest it be lost. */
function isLast({ happening: { type } }: Message): boolean {
  return type === 'token-requested' || type === 'activation-ended' || type === 'cancel-requested';
}

/** A call that the worker has, and has not answered. */
function isPending({ known, outcome }: Awaited): boolean {
  return known === 'stored' && outcome === null;
}

/** A run of such a call, or of one that may be such. */
function isHeld({ caller, requests, state }: Run): boolean {
  return state !== 'over' && (caller === null || requests > 0);
}
