// The worker's end of the link as the link's scenarios meet it: what a hello asks for in its `url` is done.
import { failure } from '../../shared/errors.ts';
import type { Coordinator, Hello } from '../../shared/protocol.ts';
import { createCoordinator, type Setting } from '../../sw/coordinator.ts';
import type { Connection } from '../../sw/documents.ts';
import { refuse, welcome } from '../../sw/link.ts';

/** What of a message event is used. */
export interface HelloEvent {
  data: Hello;
  ports: readonly MessagePort[];
}

const JUNK = [null, 7, 'welcome', [], {}, { type: 'a kind of later versions', generation: 'x', tabId: 'x' }];

/** Commands under the names of the coordinator's, which do what the scenarios need. */
function coordinatorFor(connection: () => Connection): Coordinator {
  const order: unknown[] = [];
  const commands = {
    /** Keeps the order of arrival. */
    async cancel(number: unknown) {
      order.push(number);
    },
    async listTools() {
      return order.join();
    },
    async execute(argument: unknown) {
      return argument;
    },
    async grant() {
      throw Object.assign(new RangeError('out of range'), { reason: 'extra' });
    },
    async reportStay() {
      return () => {};
    },
    /** Says what the page said. */
    redeem: () => connection().peer.ping(),
    async collect() {
      const peer = connection().peer as never as Record<string, () => Promise<unknown>>;
      return peer.noSuchMethod?.().catch((error) => `${error.name}`);
    },
    async watch() {
      return connection()
        .peer.drop({ activationId: 'x' })
        .then(
          () => 'done',
          ({ name, message }) => `${name}: ${message}`,
        );
    },
    async awaitOutcomes() {
      connection().close();
    },
  };
  return commands as never;
}

/** The worker's own, with nothing behind it: whoever gets past its checks fails otherwise. */
function strictCoordinator(): Coordinator {
  return createCoordinator('document', {} as Setting);
}

export function serve({ data, ports: [port] }: HelloEvent): void {
  if (port === undefined || data.url === 'silence') return;
  if (data.url === 'refusal') {
    refuse(port, failure('version-mismatch', false, 'of another time'));
    return;
  }
  if (data.url === 'junk') for (const junk of JUNK) port.postMessage(junk);
  const answer = { type: 'welcome', version: 1, generation: 'generation', tabId: 'tab' } as const;
  const connection = welcome(
    port,
    answer,
    data.url === 'coordinator' ? strictCoordinator() : coordinatorFor(() => connection),
    { groupId: 'group', helloId: data.helloId, listens: false },
  );
}
