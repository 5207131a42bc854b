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

const adopt = ({ target }: Event): void => {
  const tag = script as HTMLScriptElement;
  // Whatever the frame is, and whatever its page allows: it is no worse off than without us.
  try {
    const { URL, head, modelContext } = (target as HTMLIFrameElement).contentDocument ?? ({} as Document);
    // A bundle with this in it is not ours to run once more.
    if (URL === 'about:srcdoc' && !modelContext && /webmcp-relay[^/]*$/.test(tag.src)) {
      const copy = document.createElement('script');
      Object.assign(copy.dataset, tag.dataset);
      copy.nonce = tag.nonce;
      copy.src = tag.src;
      head.append(copy);
    }
  } catch {}
};

// These events do not bubble.
document.addEventListener('load', adopt, true);

Object.assign(window, { webmcpRelay: { takeToken, withToken } });
