/**
 * Documents of other tabs, as callees. What speaks with them is a part of `more`: a page that calls no other tab, and is
 * called from none, loads nothing for it.
 */
import { failure } from '../shared/errors.ts';
import type { DocumentId } from '../shared/ids.ts';
import type { DirectSurroundings } from './direct-ports.ts';
import type { Callee } from './window-tree.ts';

export interface Direct {
  /** A document of another tab, whether it can be reached or not. */
  to(documentId: DocumentId): Callee;
  /** Another document wants to call tools of this one. */
  meet(introduction: { port: MessagePort }): void;
  /** The document goes away. */
  leave(): void;
}

export function createDirect(surroundings: DirectSurroundings): Direct {
  let ports: Direct | undefined;

  /** Loads it until it is there: a browser that was offline may be online again. */
  async function load(): Promise<Direct> {
    const { createDirectPorts } = await import('./more.ts');
    ports ??= createDirectPorts(surroundings);
    return ports;
  }

  return {
    to(documentId) {
      if (ports) return ports.to(documentId);
      let reached: Promise<Callee> | undefined;
      return {
        window: null,
        activate(command, caller) {
          reached ??= load().then(({ to }) => to(documentId));
          reached
            .then(({ activate }) => activate(command, caller))
            .catch((thrown) => failure('tool-unavailable', false, `${thrown}`))
            .then((refusal) => refusal && caller.failed(refusal));
          return null;
        },
        abort(activationId) {
          reached?.then(({ abort }) => abort(activationId)).catch(() => {});
        },
      };
    },
    meet(introduction) {
      load()
        .then(({ meet }) => meet(introduction))
        .catch(() => introduction.port.postMessage(['bye']));
    },
    leave() {
      ports?.leave();
    },
  };
}
