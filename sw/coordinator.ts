/**
 * What a connected document may ask for: reads a command, turns it into an event, hands back the reply.
 *
 * Kept: a malformed command is answered with an error and changes nothing; what must be sealed is sealed before its event
 * takes its step, in the order of arrival.
 */
import { LONGEST_LIFETIME, type Sizes } from '../shared/bounds.ts';
import { failure } from '../shared/errors.ts';
import type { DocumentId, TokenDigest } from '../shared/ids.ts';
import { conforms, isCall, isEnd, isTool, SHAPES } from '../shared/parse.ts';
import {
  type Announcement,
  type Call,
  type Coordinator,
  type End,
  type EndReport,
  type Grant,
  LAST_COMMANDS,
  type LastCommand,
  type PendingExecution,
  type Redemption,
  type Reply,
} from '../shared/protocol.ts';
import { digestOf, secretOf } from '../shared/seal.ts';
import type { AnnouncedState, Happening, SealedEnd } from './core/event.ts';
import { toolsOfGroup } from './core/registry.ts';
import type { Execution, Value } from './core/state.ts';
import type { Documents } from './documents.ts';
import type { Runtime } from './runtime.ts';
import { type Keyring, sealValue } from './seal.ts';

/** What a coordinator works with. */
export interface Setting {
  runtime: Runtime;
  keyring: Keyring;
  documents: Documents;
  /** Documents that listed their group, and so are told when its tools change. */
  listeners: Set<DocumentId>;
  watchers: Set<DocumentId>;
  sizes: Sizes;
}

export function createCoordinator(documentId: DocumentId, setting: Setting): Coordinator {
  const { runtime, keyring, documents, listeners, watchers, sizes } = setting;
  const facts = () => runtime.state.documents.get(documentId);

  const dispatch = <T>(prepare: Happening | (() => Promise<Happening>)) =>
    runtime.dispatch(prepare) as Promise<Reply<T>>;

  async function execute(call: Call): Promise<Reply> {
    keyring.learn(call.executionId, call.key);
    return dispatch({ type: 'execution-requested', documentId, call });
  }

  async function listTools(): ReturnType<Coordinator['listTools']> {
    listeners.add(documentId);
    await documents.round();
    const groupId = facts()?.groupId ?? '';
    return { ok: true, value: toolsOfGroup(runtime.state, groupId) };
  }

  async function collect({ tabSecret }: { tabSecret: string }): Promise<Reply<PendingExecution[]>> {
    const tabId = facts()?.tabId ?? '';
    const missing = await documents.missing(callersOf(runtime, tabId));
    await Promise.all(missing.map((lost) => dispatch({ type: 'document-lost', documentId: lost })));
    const reply = await dispatch<string[]>({ type: 'outcomes-collected', documentId, tabId });
    if (!reply.ok) return reply;
    const executions = reply.value
      .map((id) => runtime.state.executions.get(id))
      .filter((found) => found !== undefined);
    const pending = await Promise.all(executions.map((execution) => describe(execution, tabSecret, keyring)));
    return { ok: true, value: pending };
  }

  return {
    execute: checked(isCall, execute),
    cancel: checked(shaped('cancel'), ({ executionId }) =>
      dispatch({ type: 'cancel-requested', executionId }),
    ),
    grant: checked(isGrant, (grant) => dispatch(() => requested(documentId, grant, keyring))),
    redeem: checked(shaped('redeem'), (redemption) =>
      dispatch(() => presented(documentId, redemption, keyring)),
    ),
    reportEnd: checked(isEndReport, (report) => dispatch(ended(report, keyring))),
    reportStay: () => dispatch({ type: 'document-stayed', documentId }),
    announceTools: checked(shaped('announceTools'), ({ tools }) =>
      dispatch({ type: 'tools-changed', documentId, tools: tools.filter(isTool).slice(0, sizes.tools) }),
    ),
    listTools,
    collect: checked(shaped('collect'), collect),
    awaitOutcomes: checked(shaped('awaitOutcomes'), ({ executionIds }) =>
      dispatch({ type: 'outcomes-awaited', documentId, executionIds }),
    ),
    watch: checked(shaped('watch'), async ({ on }) => {
      if (on) watchers.add(documentId);
      else watchers.delete(documentId);
      return { ok: true, value: undefined };
    }),
  };
}

/** Lets a well-formed command through, and answers any other. */
function checked<A, T>(
  isWellFormed: (argument: unknown) => boolean,
  act: (argument: A) => Promise<Reply<T>>,
): (argument: A) => Promise<Reply<T>> {
  return async (argument) =>
    isWellFormed(argument)
      ? act(argument)
      : { ok: false, error: failure('version-mismatch', false, 'Malformed command.') };
}

function shaped(command: keyof typeof SHAPES): (argument: unknown) => boolean {
  return (argument) => conforms(argument, SHAPES[command]);
}

function isGrant(argument: unknown): boolean {
  if (!conforms(argument, SHAPES.grant)) return false;
  const { call } = argument as Grant;
  return call === null || isCall(call);
}

function isEndReport(argument: unknown): boolean {
  return conforms(argument, SHAPES.reportEnd) && isEnd((argument as EndReport).end);
}

/** The commands that a page could not see acknowledged before it left. */
export function performLast(
  documentId: DocumentId,
  commands: readonly LastCommand[],
  setting: Setting,
): void {
  const coordinator = createCoordinator(documentId, setting);
  for (const { method, argument } of commands) {
    if (LAST_COMMANDS.includes(method)) void coordinator[method](argument as never);
  }
}

async function requested(documentId: DocumentId, grant: Grant, keyring: Keyring): Promise<Happening> {
  const { activationId, executionId, call, digest, tokenKey, key } = grant;
  keyring.learn(executionId, key);
  const lifetime = Math.min(Math.max(grant.lifetime, 0), LONGEST_LIFETIME);
  const input = call === null ? null : await sealValue(call.input, key);
  const sealed = { activationId, executionId, call, input, digest, key: tokenKey, lifetime };
  return { type: 'token-requested', documentId, grant: sealed };
}

async function presented(
  documentId: DocumentId,
  { activationId, token }: Redemption,
  keyring: Keyring,
): Promise<Happening> {
  const digest = await offer(token, keyring);
  return { type: 'token-presented', documentId, activationId, digest, executionId: null };
}

async function offer(token: string, keyring: Keyring): Promise<TokenDigest> {
  const [digest, secret] = await Promise.all([digestOf(token), secretOf(token)]);
  keyring.offer(digest, secret);
  return digest;
}

/** An end that will not be stored waits for no cipher. */
function ended(report: EndReport, keyring: Keyring): Happening | (() => Promise<Happening>) {
  const { activationId, executionId, end, key, stored } = report;
  keyring.learn(executionId, key);
  const happening = { type: 'activation-ended', activationId, executionId } as const;
  if (!stored) return { ...happening, end: plainEnd(end) };
  return async () => ({ ...happening, end: await sealedEnd(end, key) });
}

/** Reads an announcement: learns the keys that it brings, seals the ends that will be stored. */
export async function sealAnnouncement(
  announcement: Announcement,
  keyring: Keyring,
): Promise<AnnouncedState> {
  for (const { call } of announcement.calls) keyring.learn(call.executionId, call.key);
  const activations = announcement.activations.map(async (activation) => {
    const { executionId, key, stored, end } = activation;
    keyring.learn(executionId, key);
    return { ...activation, end: end && (stored ? await sealedEnd(end, key) : plainEnd(end)) };
  });
  for (const { token } of announcement.resumptions) await offer(token, keyring);
  return { ...announcement, activations: await Promise.all(activations) };
}

function plainEnd(end: End): SealedEnd {
  if (end.type === 'returned') return { type: 'returned', value: { text: end.text } };
  const { error, leaving } = end;
  return { type: 'threw', error: { text: JSON.stringify(error) }, reason: error.reason, leaving };
}

async function sealedEnd(end: End, key: string): Promise<SealedEnd> {
  const plain = plainEnd(end);
  if (plain.type === 'returned') return { ...plain, value: await sealed(plain.value, key) };
  return { ...plain, error: await sealed(plain.error, key) };
}

function sealed({ text = null }: Value, key: string): Promise<Value> {
  return sealValue(text, key);
}

/** The documents that seem to hold executions of a tab. */
function callersOf({ state }: Runtime, tabId: string): { documentId: string; clientId: string | null }[] {
  return [...state.executions.values()]
    .filter((execution) => execution.callerTabId === tabId && execution.callerDocumentId !== null)
    .map(({ callerDocumentId, callerClientId }) => ({
      documentId: callerDocumentId as string,
      clientId: callerClientId,
    }));
}

async function describe(
  execution: Execution,
  tabSecret: string,
  keyring: Keyring,
): Promise<PendingExecution> {
  await keyring.openWithTab(execution, tabSecret).catch(() => {});
  const outputs = execution.outputs.map(async ({ activationId, value }) => ({
    activationId,
    text: (await keyring.read(execution.id, value)) ?? null,
  }));
  return {
    executionId: execution.id,
    toolName: execution.toolName,
    input: (await keyring.read(execution.id, execution.input)) ?? '{}',
    key: keyring.keyOf(execution.id),
    outputs: await Promise.all(outputs),
  };
}
