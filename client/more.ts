/** What most pages never need: a file of its own, imported by whatever needs a part of it. */
export { createDirectPorts } from './direct-ports.ts';
export { describePending } from './pending.ts';
export { obtainRegistration } from './register.ts';
export { copyScriptTag } from './srcdoc.ts';
