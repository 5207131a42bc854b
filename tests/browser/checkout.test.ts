// The main job, in every engine: one call, three pages, one receipt.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { PendingExecutionHandle } from '../../client/index.ts';
import { type Browser, engines, launch, type Page } from './driver/index.ts';
import { checkoutPages, served } from './pages.ts';
import { type Site, startSite } from './site.ts';

let site: Site;

beforeAll(async () => {
  site = await startSite();
  checkoutPages(site);
});

afterAll(() => site.close());

describe.each(engines)('%s', (engine) => {
  let browser: Browser;
  let shop: Page;

  beforeAll(async () => {
    browser = await launch(engine);
    shop = await browser.newPage();
  });

  afterEach(async () => {
    await shop.goto('about:blank');
  });

  afterAll(() => browser?.close());

  test('an agent in another tab gets the receipt, and the outputs before it', async () => {
    await shop.goto(`${site.origin}/billing`);
    expect(await served(shop)).toBe('shared');
    const agent = await shop.waitForPopup(() => shop.evaluate(() => void window.open('/agent')));
    expect(await served(agent)).toBe('shared');
    const answer = await agent.evaluate(async () => {
      const [tool] = (await document.modelContext.getTools({ scope: 'group' })) as never[];
      const outputs: (string | null)[] = [];
      const onoutput = (text: string | null) => outputs.push(text);
      const result = await document.modelContext.executeTool(
        tool as never,
        { address: 'Elm 1' },
        { onoutput },
      );
      return { result, outputs };
    });
    expect(answer).toEqual({ result: '{"receipt":"Elm 1"}', outputs: ['billed Elm 1', 'shipped Elm 1'] });
    expect(await shop.evaluate(() => location.pathname + location.search)).toBe('/confirmation');
    await agent.close();
  });

  test('an agent on the page that navigates collects the receipt on the last page', async () => {
    await shop.goto(`${site.origin}/billing`);
    await served(shop);
    await shop.waitForNavigation(() =>
      shop.evaluate(async () => {
        const [tool] = (await document.modelContext.getTools()) as never[];
        void document.modelContext.executeTool(tool as never, { address: 'Oak 2' }).catch(() => {});
      }),
    );
    await shop.waitFor(() => document.title === 'confirmation');
    const collected = await shop.evaluate(async () => {
      const [execution] = (await document.modelContext.getPendingExecutions()) as [PendingExecutionHandle];
      return { toolName: execution.toolName, input: execution.input, outcome: await execution.outcome };
    });
    expect(collected).toEqual({
      toolName: 'checkout',
      input: { address: 'Oak 2' },
      outcome: '{"receipt":"Oak 2"}',
    });
  });
});
