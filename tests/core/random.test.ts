/**
 * Random sequences: several documents, tabs and groups; calls, tokens and ends in any order; lost, repeated and reordered
 * commands; documents that leave, return, crash; workers that die, also between commit and effect; clocks that jump.
 *
 * After each action what must always hold is checked (here and in `harness.ts`); at the end either everybody goes away and
 * nothing may be left, or everybody behaves and every promise must have settled.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createWorld, type World } from './harness.ts';
import type { PretendDocument } from './pretend-document.ts';

const RUNS = Number(process.env.RUNS ?? 1_500);
/** Under mutation it matters whether a run fails, not how small the failure is. */
const HURRIED = RUNS < 100;
const MOST_DOCUMENTS = 6;
const LIFETIMES = [0, 1_000, 60_000, 3_600_000];
const PAUSES = [1, 400, 2_000, 3_000, 61_000, 601_000, 3_601_000];
const JUMPS = [3_600_000, -3_600_000, -30_000, 5_000];

/** Longer than every bound, after clocks that were set back again and again. */
const LONG = 200 * 3_600_000;

/** How likely each action is, beside the others. */
const WEIGHTS = {
  open: 2,
  call: 4,
  'call directly': 3,
  'read from another tab': 6,
  cancel: 1,
  request: 4,
  redeem: 5,
  return: 4,
  throw: 1,
  'throw while leaving': 1,
  decline: 2,
  read: 14,
  send: 14,
  'send, and the worker dies': 2,
  'send out of turn': 1,
  repeat: 3,
  leave: 2,
  unload: 1,
  return_: 2,
  crash: 1,
  'notice a crash': 2,
  stay: 1,
  collect: 2,
  reconnect: 3,
  'answer summons': 2,
  pause: 2,
  jump: 1,
  wake: 1,
  die: 1,
} as const;

type Kind = keyof typeof WEIGHTS;

interface Action {
  kind: Kind;
  /** Which of those that are there: taken modulo how many there are. */
  which: number;
  other: number;
}

const action: fc.Arbitrary<Action> = fc.record({
  kind: fc.oneof(
    ...Object.entries(WEIGHTS).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as Kind) })),
  ),
  which: fc.nat(23),
  other: fc.nat(23),
});

/** What the test itself remembers of a run. */
interface Story {
  world: World;
  tokens: { digest: string; executionId: string; reply: () => boolean }[];
  /** Which token an activation redeems. */
  redemptions: Map<string, string>;
  returned: Map<string, string[]>;
  /** Their callbacks were not run after all. */
  declined: Set<string>;
  /** A clock that jumps while a command is on its way leaves open whether it is obeyed. */
  uncertain: Set<string>;
}

function pick<T>(from: readonly T[], index: number): T | undefined {
  return from[index % Math.max(1, from.length)];
}

function here({ world }: Story): PretendDocument[] {
  return [...world.pages.values()].filter(({ left }) => !left);
}

function runsOf(pages: PretendDocument[]) {
  return pages.flatMap((page) =>
    [...page.runs.values()].filter(({ state }) => state === 'running').map((run) => ({ page, run })),
  );
}

function act(story: Story, { kind, which, other }: Action): void {
  const { world } = story;
  const page = pick(here(story), which);
  const running = pick(runsOf(here(story)), which);
  switch (kind) {
    case 'open':
      if (world.pages.size < MOST_DOCUMENTS) {
        world.opens({
          tab: `tab ${which % 2}`,
          group: which % 7 === 0 ? 'elsewhere' : 'group',
          top: other % 4 > 0,
        });
      }
      return;
    case 'call': {
      // Pages call by way of the worker what is to outlive them; what would not is the worker's matter all the same.
      const target = pick([...world.pages.values()], other);
      const keepalive = which % 3 > 0 || target?.tabId === page?.tabId;
      if (page && target) page.calls(target, { keepalive });
      return;
    }
    case 'call directly': {
      const target = pick(
        [...world.pages.values()].filter(({ tabId, left }) => !left || tabId !== page?.tabId),
        other,
      );
      if (page && target) page.callsDirectly(target);
      return;
    }
    case 'read from another tab':
      page?.readsPort();
      return;
    case 'cancel': {
      const waiting = page && pick([...page.awaited.values()], other);
      if (page && waiting) page.cancels(waiting.call.executionId);
      return;
    }
    case 'request': {
      if (running === undefined) return;
      const { activationId, executionId } = running.run;
      const request = running.page.requestsToken(activationId, { lifetime: pick(LIFETIMES, other) ?? 0 });
      story.tokens.push({ digest: request.digest, executionId, reply: () => request.reply?.ok === true });
      return;
    }
    case 'redeem': {
      const token = pick(
        story.tokens.filter(({ reply }) => reply()),
        other,
      );
      if (page === undefined || token === undefined) return;
      const { activationId } = page.redeems(token.digest, token.executionId);
      story.redemptions.set(activationId, token.digest);
      return;
    }
    case 'return': {
      if (running === undefined) return;
      const { activationId, executionId } = running.run;
      const text = `from ${activationId}`;
      story.returned.set(executionId, [...(story.returned.get(executionId) ?? []), text]);
      running.page.returns(activationId, text);
      return;
    }
    case 'throw':
    case 'throw while leaving':
      running?.page.throws(running.run.activationId, { leaving: kind !== 'throw' });
      return;
    case 'decline': {
      // It would do so instead of running the callback: one that asked for a token has been run.
      if (running === undefined) return;
      const { activationId, executionId, caller, requests } = running.run;
      const isGranted = caller === null && story.tokens.some((token) => token.executionId === executionId);
      if (activationId !== executionId || isGranted || requests > 0) return;
      story.declined.add(executionId);
      running.page.declines(activationId);
      return;
    }
    case 'read':
      page?.reads();
      return;
    case 'send':
    case 'send, and the worker dies':
    case 'send out of turn': {
      const sender = pick(senders(world), which);
      const index = kind === 'send out of turn' ? other % Math.max(1, sender?.outbox.length ?? 0) : 0;
      sender?.sends(index, { crash: kind === 'send, and the worker dies' });
      return;
    }
    case 'repeat':
      page?.repeats(other % Math.max(1, page.sent.length));
      return;
    case 'leave':
    case 'unload':
      page?.leaves({ destroyed: kind === 'unload', crash: other === 0 });
      return;
    case 'return_':
      pick(
        [...world.pages.values()].filter(({ left, destroyed }) => left && !destroyed),
        which,
      )?.connects();
      return;
    case 'crash':
      page?.crashes();
      return;
    case 'notice a crash':
      world.looksForLostDocuments();
      return;
    case 'stay':
      page?.stays();
      return;
    case 'collect':
      page?.collects();
      return;
    case 'reconnect':
      page?.connects({ crash: other === 0 });
      return;
    case 'answer summons':
      world.answersSummons();
      return;
    case 'pause':
    case 'jump':
      // No message travels as long as that.
      for (const sender of senders(world)) sender.sendsAll();
      for (const reader of here(story)) while (reader.port.length > 0) reader.readsPort();
      world.looksForLostDocuments();
      if (kind === 'pause') {
        world.passes(pick(PAUSES, which) ?? 0);
        return;
      }
      for (const { inbox } of world.pages.values()) {
        for (const command of inbox)
          if (command.type === 'activate') story.uncertain.add(command.executionId);
      }
      world.jumps(pick(JUMPS, which) ?? 0);
      return;
    case 'wake':
      world.happens({ type: 'time-passed' });
      return;
    case 'die':
      world.dies();
      return;
  }
}

function senders(world: World): PretendDocument[] {
  return [...world.pages.values()].filter(({ outbox, reachesWorker }) => reachesWorker && outbox.length > 0);
}

/** What holds at every moment. */
function check({ world, redemptions, returned, declined, uncertain }: Story): void {
  const begunBy = new Map<string, string>();
  const begun = new Set([...world.begun.values()].filter((id) => !declined.has(id)));
  for (const activationId of world.begun.keys()) {
    const digest = redemptions.get(activationId);
    if (digest === undefined) continue;
    if (begunBy.has(digest)) expect.fail(`I3: ${digest} began ${begunBy.get(digest)} and ${activationId}`);
    begunBy.set(digest, activationId);
  }
  for (const page of world.pages.values()) {
    // One that is obeyed after all, and whose drop is lost with its worker, is answered twice.
    const contradictions = page.contradictions.filter((told) => !uncertain.has(told.split(':', 1)[0] ?? ''));
    if (contradictions.length > 0) expect.fail(`${page.documentId} was told ${contradictions}`);
    for (const { outcome, call } of page.awaited.values()) {
      const denied = outcome?.includes('not started') && !uncertain.has(call.executionId);
      if (denied && begun.has(call.executionId)) {
        expect.fail(`${call.executionId} began, and is said to be ${outcome}`);
      }
      const text = outcome?.startsWith('result: ') ? outcome.slice('result: '.length) : null;
      if (text !== null && !returned.get(call.executionId)?.includes(text)) {
        expect.fail(`${call.executionId} has the result ${text}, which none of its callbacks returned`);
      }
    }
  }
}

/** Every document goes away without a word, and a long time passes. */
function everybodyGoes({ world }: Story): void {
  for (const page of world.pages.values()) page.crashes();
  world.answersSummons();
  world.looksForLostDocuments();
  world.passes(LONG);
  expect([...world.state.executions.keys()]).toEqual([]);
  expect([...world.storage.keys()]).toEqual([]);
}

/** Every document that still exists is there, reads, answers, and ends what it runs. */
function everybodyBehaves(story: Story): void {
  const { world } = story;
  for (const page of world.pages.values()) if (!page.destroyed && !page.connected) page.connects();
  for (let round = 0; round < 50; round += 1) {
    world.answersSummons();
    world.looksForLostDocuments();
    for (const page of here(story)) {
      page.sendsAll();
      page.readsAll();
      page.readsPort();
    }
    check(story);
    for (const { page, run } of runsOf(here(story))) {
      const text = `from ${run.activationId}`;
      story.returned.set(run.executionId, [...(story.returned.get(run.executionId) ?? []), text]);
      page.returns(run.activationId, text);
    }
    if (round === 25) world.passes(LONG);
  }
  expect(here(story).flatMap((page) => page.holds())).toEqual([]);
  const open = [...world.state.executions.values()].filter(({ settled }) => settled === null);
  expect(open.map(({ id }) => id)).toEqual([]);
  everybodyGoes(story);
}

function play(actions: readonly Action[], finale: (story: Story) => void): void {
  const world = createWorld({ automatic: false });
  const story: Story = {
    world,
    tokens: [],
    redemptions: new Map(),
    returned: new Map(),
    declined: new Set(),
    uncertain: new Set(),
  };
  world.opens({ tab: 'tab 0' });
  world.opens({ tab: 'tab 1' });
  for (const next of actions) {
    act(story, next);
    check(story);
  }
  finale(story);
  check(story);
}

for (const finale of [everybodyGoes, everybodyBehaves]) {
  test(`random sequences, at whose end ${finale === everybodyGoes ? 'everybody goes' : 'everybody behaves'}`, () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80, size: 'max' }), (actions) => play(actions, finale)),
      { numRuns: RUNS, endOnFailure: HURRIED },
    );
  }, 600_000);
}
