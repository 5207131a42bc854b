// Owns the one question "is the relay there?" and what every script of the demo says the same way:
// offering a tool, asking the shop's server, waiting, and putting an error into words.
// Without the relay nothing here fails: no tool is offered and the pages work by hand.

const context = document.modelContext;

/** `document.modelContext` with the relay's members, or null. */
export const modelContext = context && 'relay' in context ? context : null;

/** Resolves once the relay's state is settled, with a line to show. */
export async function relayState() {
  if (!modelContext) return 'not there';
  await modelContext.relay.ready.catch(() => {});
  return stateLine();
}

export function stateLine() {
  const { state, reason } = modelContext.relay;
  return state === 'alone' && reason ? `alone (${reason?.reason ?? reason})` : state;
}

export async function offerTool(tool) {
  if (!modelContext) return;
  try {
    await modelContext.registerTool(tool);
  } catch (error) {
    console.error(`The tool ${tool.name} could not be offered:`, error);
  }
}

/** The shop's JSON interface. What the server refuses is thrown as a readable error. */
export async function askShop(path, { input, signal } = {}) {
  const posted = input && {
    method: 'POST',
    body: JSON.stringify(input),
    headers: { 'content-type': 'application/json' },
  };
  const response = await fetch(path, { ...posted, signal });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** A moment in which a person can see what a tool filled in; ends at once when the call is cancelled. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(resolve, milliseconds);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener('abort', stop, { once: true });
  });
}

export function errorLine(error) {
  const name = error?.name ?? 'Error';
  const told = [
    error?.reason && `reason ${error.reason}`,
    'started' in Object(error) && `started ${error.started}`,
  ];
  const notes = told.filter(Boolean).join(', ');
  const cause = error?.cause?.message;
  const message =
    cause && !error.message.includes(cause) ? `${error.message} – ${cause}` : (error?.message ?? error);
  return `${name}: ${message}${notes && ` (${notes})`}`;
}
