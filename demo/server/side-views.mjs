// Owns the two documents that are no shop page: the agent page (a window of its own) and the fitting room (a
// frame of an item page). The fitting room takes the relay as an ES module, all other pages the classic script.

import { html } from './html.mjs';
import { moduleScript, relayScript } from './layout.mjs';

const garments = {
  body: (colour) =>
    html`<path d="M62 82 L40 96 L48 122 L60 116 V178 H120 V116 L132 122 L140 96 L118 82 Q90 98 62 82 Z" fill="${colour}"/>`,
  head: (colour) =>
    html`<path d="M46 40 H134 L128 46 H52 Z M66 40 V20 Q90 8 114 20 V40 Z" fill="${colour}"/>`,
  neck: (colour) => html`<path d="M66 76 H114 V90 H66 Z M98 88 H114 V150 H98 Z" fill="${colour}"/>`,
};

export const fittingRoom = (item) => ({
  title: 'Fitting room',
  bare: [moduleScript('fitting-room')],
  body: html`<body class="fitting-room">
<main data-item="${item.id}" data-wear="${item.wear}">
<svg viewBox="0 0 180 240" role="img" aria-label="A figure wearing the ${item.name}">
<circle cx="90" cy="48" r="24" class="skin"/><path d="M80 68 H100 V84 H80 Z" class="skin"/><path d="M64 84 H116 V170 H64 Z" class="vest"/>
<path d="M64 170 H88 V234 H66 Z M92 170 H116 L114 234 H92 Z" class="trousers"/>${garments[item.wear](item.colour)}
</svg>
<p role="status" id="fit">${item.name}: looks right.</p>
</main>
</body>`,
});

export const agent = () => ({
  title: 'Agent',
  bare: [relayScript, moduleScript('agent')],
  body: html`<body>
<header class="bar"><strong>Agent</strong> <span>relay: <output id="agent-state">not there</output></span></header>
<div class="columns">
<main>
<p id="agent-hint" class="banner" role="status">This page needs the relay's script, which was not found.</p>
<form id="agent-form" novalidate>
<h1>Call a tool</h1>
<label>Tool <select id="tool-select" disabled></select></label>
<p id="tool-description"></p>
<fieldset id="arguments"><legend>Arguments</legend><div id="argument-fields"></div></fieldset>
<label class="check"><input type="checkbox" id="use-raw"> Write the arguments as JSON</label>
<label id="raw-label" hidden>JSON <textarea id="raw-json" rows="6" spellcheck="false"></textarea></label>
<label class="check"><input type="checkbox" id="keepalive"> <span>Go on when this page leaves (<code>keepalive</code>)</span></label>
<p id="form-error" class="error" role="alert" hidden></p>
<p class="row"><button type="submit" class="primary" id="call-button" disabled>Call</button>
<button type="button" id="refresh-tools">List the tools again</button></p>
</form>
<section aria-labelledby="calls-title"><h2 id="calls-title">Calls</h2><div id="calls"><p class="quiet">None yet.</p></div></section>
</main>
<aside aria-labelledby="live-title">
<h2 id="live-title">What the relay knows</h2>
<div id="live"></div>
<p class="quiet">A page cannot stop the worker. The browser's tools can: <code>about:serviceworker-internals</code> or
DevTools → Application in Chromium, <code>about:debugging#/runtime/this-firefox</code> in Firefox. The generation
changes when a new worker has taken over; a call that waits goes on.</p>
</aside>
</div>
</body>`,
});
