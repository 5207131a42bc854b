// Owns the folded live list of a shop page: it listens only while it is open, so that an idle page stays idle.

import { showLive } from './live.js';

const panel = document.getElementById('live-panel');
let watching = null;

function follow() {
  watching?.abort();
  watching = null;
  if (!panel.open) return;
  watching = new AbortController();
  showLive(document.getElementById('live'), { signal: watching.signal });
}

panel.addEventListener('toggle', follow);
if (panel.open) follow();
