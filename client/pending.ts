/** Executions that lost their caller, as the document that collected them sees them (`decisions/11`). */
import { failure } from '../shared/errors.ts';
import type { ExecutionId } from '../shared/ids.ts';
import type { KeyedCall } from '../shared/protocol.ts';
import type { CallOptions, OutputListener } from './calls.ts';
import { relayError } from './errors.ts';

export interface PendingExecutionHandle {
  readonly id: ExecutionId;
  readonly toolName: string;
  readonly input: unknown;
  readonly state: 'open' | 'settled';
  /** The texts that its activations gave so far, in order. */
  readonly outputs: (string | null)[];
  /** As the promise of `executeTool()` would have settled. */
  readonly outcome: Promise<string | null>;
  onoutput: OutputListener;
  cancel(): void;
}

/** `open`: awaits its outcome. */
export function describePending(
  { call }: KeyedCall,
  open: (options: CallOptions) => Promise<string | null>,
): PendingExecutionHandle {
  const { executionId, toolName, input } = call;
  const controller = new AbortController();
  const handle = {
    id: executionId,
    toolName,
    input: JSON.parse(input.text ?? '{}'),
    state: 'open' as PendingExecutionHandle['state'],
    outputs: [] as (string | null)[],
    outcome: open({
      signal: controller.signal,
      onoutput(text) {
        handle.outputs.push(text);
        handle.onoutput?.(text);
      },
    }),
    onoutput: null as OutputListener,
    cancel: () => controller.abort(relayError({ ...failure('aborted', true), executionId })),
  };
  const settled = (): void => {
    handle.state = 'settled';
  };
  handle.outcome.then(settled, settled);
  return handle;
}
