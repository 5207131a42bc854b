// Pages that several browser tests put up, and what tests do in them as agents.
import type { Page } from './driver/index.ts';
import type { Site } from './site.ts';

export const RELAY = '<script src="/webmcp-relay.js"></script>';

/** The three pages of the explainer's checkout: billing asks for a token and navigates, so does shipping, confirmation answers. */
export function checkoutPages(site: Site): void {
  site.page(
    '/billing',
    `${RELAY}<title>billing</title><script>
    document.modelContext.registerTool({
      name: 'checkout',
      description: 'Buys what is in the cart',
      inputSchema: { type: 'object', properties: { address: { type: 'string' } } },
      async execute(input, { invocation }) {
        const token = await invocation.requestToken();
        location.href = webmcpRelay.withToken('/shipping', token);
        return 'billed ' + input.address;
      },
    });
  </script>`,
  );
  site.page(
    '/shipping',
    `${RELAY}<title>shipping</title><script>
    document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input, { invocation }) => {
      const token = await invocation.requestToken();
      location.href = webmcpRelay.withToken('/confirmation', token);
      return 'shipped ' + input.address;
    });
  </script>`,
  );
  site.page(
    '/confirmation',
    `${RELAY}<title>confirmation</title><script>
    document.modelContext.resumeTool(webmcpRelay.takeToken(), async (input) => ({ receipt: input.address }));
  </script>`,
  );
  site.page('/agent', `${RELAY}<title>agent</title>`);
}

/** Resolves once the worker serves the page. */
export async function served(page: Page): Promise<string> {
  await page.waitFor(() => document.modelContext !== undefined);
  return page.evaluate(async () => {
    const { relay } = document.modelContext;
    await relay.ready;
    return relay.state + (relay.reason ?? '');
  });
}
