/**
 * The script tag: `<script src="/webmcp-relay.js"></script>` installs `document.modelContext` at once and registers
 * `webmcp-relay-sw.js` beside it. `data-worker`, `data-scope`, `data-register="false"` and `data-validate="false"` are
 * the options of the same names. `withToken` and `takeToken` are at `webmcpRelay`.
 */
import { installModelContext, takeToken, withToken } from './index.ts';

const script = document.currentScript as HTMLScriptElement | null;
const { worker, scope, register, validate } = script?.dataset ?? {};

installModelContext({
  worker: worker ?? new URL('webmcp-relay-sw.js', script?.src || document.baseURI),
  scope,
  register: register !== 'false',
  validate: validate !== 'false',
});

// A frame has loaded: these events do not bubble.
document.addEventListener(
  'load',
  ({ target }) => {
    const frame = target as HTMLIFrameElement;
    if (!script || !frame.srcdoc) return;
    import('./more.ts').then(({ copyScriptTag }) => copyScriptTag(frame, script)).catch(() => {});
  },
  true,
);

Object.assign(window, { webmcpRelay: { takeToken, withToken } });
