// Several tabs of one group: whose tool runs, who is who, and what is left of tabs that are gone.
import { describe, expect, test } from 'vitest';
import type { Page } from './driver/index.ts';
import { arrived, call, crash, eventually, failed, LAB, outcome, ready, useLab } from './lab.ts';
import { served } from './pages.ts';

const bench = useLab();

const identity = (page: Page) =>
  page.evaluate(() => {
    const { tabId: tab, groupId: group } = JSON.parse(sessionStorage.getItem('webmcp-relay') as string);
    return { tab, group } as { tab: string; group: string };
  });
const names = (page: Page) => page.evaluate(() => lab.names());
const whoami = (page: Page, name: string) =>
  page.evaluate((name) => lab.register('whoami', () => name), name);
/** The entries of `whoami`, by what they answer: 'who' or the reason why not. */
const askAll = (agent: Page) =>
  agent.evaluate(async () => {
    const tools = await document.modelContext.getTools({ scope: 'group' });
    const answers = tools.map((tool) =>
      document.modelContext.executeTool(tool).catch(({ reason }) => reason),
    );
    return (await Promise.all(answers)).sort();
  });
/** A tab that has the other's sessionStorage and no opener, as a duplicated one has. */
async function duplicate(page: Page, path = '/lab'): Promise<Page> {
  const record = await page.evaluate(() => sessionStorage.getItem('webmcp-relay') as string);
  bench.site.page('/blank', '<title>blank</title>');
  const copy = await bench.blank();
  await copy.goto(`${bench.site.origin}/blank`);
  await copy.evaluate((record) => sessionStorage.setItem('webmcp-relay', record), record);
  await copy.goto(bench.site.origin + path);
  await ready(copy);
  return copy;
}

describe('C16: a call runs in the document that the agent chose', () => {
  test('two tabs and a frame with the same tool', async () => {
    const { tool, agent } = await bench.pair();
    await whoami(tool, 'tab one');
    await whoami(agent, 'tab two');
    await tool.evaluate(async () => {
      const frame = Object.assign(document.createElement('iframe'), { src: '/one' });
      const loaded = new Promise((resolve) => frame.addEventListener('load', resolve));
      document.body.append(frame);
      await loaded;
      await (frame.contentWindow as unknown as typeof globalThis).lab.register('whoami', () => 'frame');
    });
    await eventually(() => names(agent)).toHaveLength(3);
    expect(await askAll(agent)).toEqual(['frame', 'tab one', 'tab two']);
    const owners = await agent.evaluate(async () => {
      const tools = await document.modelContext.getTools({ scope: 'group' });
      const owners = tools.map(async (tool) => ({
        answer: await document.modelContext.executeTool(tool),
        here: tool.window === window,
        elsewhere: tool.window === null,
        ids: [typeof tool.documentId, typeof tool.registrationId, typeof tool.tabId],
      }));
      return (await Promise.all(owners)).sort((a, b) => (`${a.answer}` < `${b.answer}` ? -1 : 1));
    });
    const ids = ['string', 'string', 'string'];
    expect(owners).toEqual([
      { answer: 'frame', here: false, elsewhere: true, ids },
      { answer: 'tab one', here: false, elsewhere: true, ids },
      { answer: 'tab two', here: true, elsewhere: false, ids },
    ]);
  });

  test('an entry of a page that was reloaded, or closed, fails fast and runs nowhere', async () => {
    const { tool, agent } = await bench.pair();
    const third = await bench.join(tool);
    await whoami(tool, 'reloaded');
    await whoami(third, 'closed');
    await eventually(() => names(agent)).toHaveLength(2);
    await agent.evaluate(async () => {
      Object.assign(window, { old: await document.modelContext.getTools({ scope: 'group' }) });
    });
    await tool.reload();
    await ready(tool);
    await whoami(tool, 'anew');
    await third.close();
    const old = await agent.evaluate(() => {
      const { old } = window as unknown as { old: Parameters<Document['modelContext']['executeTool']>[0][] };
      return Promise.all(old.map((tool) => lab.settled(document.modelContext.executeTool(tool))));
    });
    const unavailable = failed('tool-unavailable', 'UnknownError', false);
    expect(old).toEqual([unavailable, unavailable]);
    await eventually(() => names(agent)).toHaveLength(1);
    expect(await askAll(agent)).toEqual(['anew']);
  });

  test('an entry that was not listed for the group does not reach another tab', async () => {
    const { tool, agent } = await bench.pair();
    await whoami(tool, 'other tab');
    const settled = await agent.evaluate(async () => {
      const { tabId: _, ...entry } = await lab.find('whoami');
      return lab.settled(document.modelContext.executeTool(entry));
    });
    expect(settled).toEqual(failed('tool-unavailable', 'UnknownError', false));
    expect(await agent.evaluate(() => lab.names('traversable'))).toEqual([]);
  });

  test('a bare name reaches no other tab: which one is for the agent to say', async () => {
    const { tool, agent } = await bench.pair();
    await whoami(tool, 'chosen by nobody');
    const settled = await agent.evaluate(async () => {
      const { name, title, description, origin } = await lab.find('whoami');
      const bare = { name, title, description, origin, window: null };
      return lab.settled(document.modelContext.executeTool(bare as never));
    });
    expect(settled).toEqual(failed('tool-unavailable', 'UnknownError', false));
    expect(await tool.evaluate(() => lab.log)).toEqual([]);
  });

  test('C07: the result comes after the list that it implies', async () => {
    bench.site.page(
      '/b',
      `${LAB}<script>
        lab.register('of-b', () => 'b');
        lab.resume(() => 'moved');
      </script>`,
    );
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => {
      void lab.register('of-a', () => 'a');
      return lab.register('move', async (_input, { invocation }) => {
        location.href = webmcpRelay.withToken('/b', await invocation.requestToken());
      });
    });
    const { result, after, stale } = await agent.evaluate(async () => {
      const [move, old] = [await lab.find('move'), await lab.find('of-a')];
      const result = await document.modelContext.executeTool(move);
      const after = await lab.names();
      return { result, after, stale: await lab.settled(document.modelContext.executeTool(old)) };
    });
    expect({ result, after }).toEqual({ result: 'moved', after: ['of-b'] });
    expect(stale).toEqual(failed('tool-unavailable', 'UnknownError', false));
  });

  test('C07: the same within one page', async () => {
    const { tool, agent } = await bench.pair();
    await tool.evaluate(() => {
      const old = new AbortController();
      void lab.register('of-a', () => 'a', old.signal).catch(() => {});
      return lab.register('swap', () => {
        old.abort();
        void lab.register('of-b', () => 'b');
        return 'swapped';
      });
    });
    const after = await agent.evaluate(async () => {
      const [swap] = [await lab.find('swap'), await lab.find('of-a')];
      await document.modelContext.executeTool(swap);
      return lab.names();
    });
    expect(after).toEqual(['of-b', 'swap']);
  });
});

describe('who is who', () => {
  test('a tab keeps its ids through navigations and foreign pages', async () => {
    bench.site.page('/bank', '<title>bank</title>');
    const page = await bench.open();
    const before = await identity(page);
    await page.goto(`${bench.site.origin}/one`);
    await ready(page);
    expect(await identity(page)).toEqual(before);
    await page.goto(`${bench.site.other}/bank`);
    await page.goto(`${bench.site.origin}/two`);
    await ready(page);
    expect(await identity(page)).toEqual(before);
  });

  test('a window with an opener: the same group, another tab; without: another group', async () => {
    const page = await bench.open();
    const own = await identity(page);
    const joined = await identity(await bench.join(page));
    const stranger = await identity(await bench.open());
    const noopener = await identity(await bench.join(page, '/lab', 'noopener'));
    expect(joined.group).toBe(own.group);
    expect(joined.tab).not.toBe(own.tab);
    expect(stranger.group).not.toBe(own.group);
    expect(stranger.tab).not.toBe(own.tab);
    expect(noopener.group).not.toBe(own.group);
  });

  test('a duplicated tab takes a new tab id and keeps the group', async () => {
    const page = await bench.open();
    await whoami(page, 'original');
    const before = await identity(page);
    const copy = await duplicate(page);
    await whoami(copy, 'copy');
    const [original, copied] = [await identity(page), await identity(copy)];
    expect(original).toEqual(before);
    expect(copied.group).toBe(before.group);
    expect(copied.tab).not.toBe(before.tab);
    await eventually(() => names(page)).toHaveLength(2);
    expect(await askAll(page)).toEqual(['copy', 'original']);
    const tabs = await page.evaluate(async () => {
      const tools = await document.modelContext.getTools({ scope: 'group' });
      return new Set(tools.map(({ tabId }) => tabId)).size;
    });
    expect(tabs).toBe(2);
  });

  test('a call that a duplicated tab made before it knew its id is its own: its next page goes on with it', async () => {
    bench.site.page(
      '/early',
      `${LAB}<script>
        lab.register('early', async (input, { invocation }) => {
          lab.tokens = [await invocation.requestToken()];
          lab.open('token');
          return new Promise(() => {});
        });
        document.modelContext
          .getTools({ scope: 'document', readyTimeout: 0 })
          .then(([tool]) => document.modelContext.executeTool(tool, { n: 1 }))
          .catch(() => {});
      </script>`,
    );
    const page = await bench.open();
    const copy = await duplicate(page, '/early');
    const token = await copy.evaluate(() => lab.gate('token').then(() => lab.tokens[0] as string));
    await copy.goto(`${bench.site.origin}/one`);
    await ready(copy);
    const gone = await page.evaluate(async () => (await document.modelContext.getPendingExecutions()).length);
    const outcome = await copy.evaluate(async (token) => {
      const [pending] = await document.modelContext.getPendingExecutions();
      await document.modelContext.resumeTool(token, (input) => `resumed ${input.n}`);
      return pending?.outcome;
    }, token);
    expect([gone, outcome]).toEqual([0, 'resumed 1']);
  });

  test('a duplicated tab does not collect what is the original tab’s', async () => {
    const page = await bench.open();
    await page.evaluate(() =>
      lab.register('go', async (_input, { invocation }) => {
        location.href = webmcpRelay.withToken('/one', await invocation.requestToken());
      }),
    );
    await call(page, 'a', 'go');
    await arrived(page, '/one');
    const copy = await duplicate(page);
    expect(await copy.evaluate(async () => (await document.modelContext.getPendingExecutions()).length)).toBe(
      0,
    );
    await page.evaluate(() => lab.collect());
    await page.evaluate(() => lab.resume(() => 'mine'));
    expect(await page.evaluate(() => lab.pending[0]?.outcome)).toBe('mine');
  });

  test('whoever comes for a tab that crashed takes its id over', async () => {
    const witness = await bench.open();
    const page = await bench.join(witness, '/apart');
    await whoami(page, 'crashed');
    const before = await identity(page);
    const record = await page.evaluate(() => sessionStorage.getItem('webmcp-relay') as string);
    await crash(page);
    bench.site.page('/blank', '<title>blank</title>');
    const restored = await bench.blank();
    await restored.goto(`${bench.site.origin}/blank`);
    await restored.evaluate((record) => sessionStorage.setItem('webmcp-relay', record), record);
    await restored.goto(`${bench.site.origin}/lab`);
    await ready(restored);
    await whoami(restored, 'restored');
    expect(await identity(restored)).toEqual(before);
    await eventually(() => askAll(witness)).toEqual(['restored']);
  });

  test('a group of three levels', async () => {
    const first = await bench.open();
    const second = await bench.join(first);
    const third = await bench.join(second);
    await whoami(third, 'grandchild');
    await call(first, 'a', 'whoami');
    expect(await outcome(first, 'a')).toEqual({ value: 'grandchild' });
  });

  test('another group sees nothing', async () => {
    const page = await bench.open();
    await whoami(page, 'mine');
    const stranger = await bench.open();
    const entry = await page.evaluate(async () => {
      const { window: _, ...entry } = await lab.find('whoami');
      return entry;
    });
    expect(await names(stranger)).toEqual([]);
    const settled = await stranger.evaluate(
      (entry) => lab.settled(document.modelContext.executeTool({ ...entry, window: null } as never)),
      entry,
    );
    expect(settled).toEqual(failed('tool-unavailable', 'UnknownError', false));
  });
});

describe('pages that come and go', () => {
  test('C40: a page that is reloaded keeps its new tools, twenty times', async () => {
    bench.site.page('/tool', `${LAB}<script>lab.register('whoami', () => performance.timeOrigin);</script>`);
    const { tool, agent } = await bench.pair();
    await tool.goto(`${bench.site.origin}/tool`);
    for (let round = 0; round < 20; round += 1) {
      await tool.reload();
      await tool.waitFor(() => 'lab' in window);
      const origin = await tool.evaluate(() => `${performance.timeOrigin}`);
      await eventually(() => askAll(agent)).toEqual([origin]);
    }
  });

  test('C40: the old page’s goodbye comes after the new page’s hello', async () => {
    // The page's last words are held back and said by the next page.
    const late = `<script>
      const { postMessage } = ServiceWorker.prototype;
      const held = sessionStorage.getItem('goodbye');
      ServiceWorker.prototype.postMessage = function (message, transfer) {
        if (message.type !== 'webmcp-relay:goodbye') return postMessage.call(this, message, transfer);
        sessionStorage.setItem('goodbye', JSON.stringify(message));
      };
      window.sayItNow = async () => {
        const { active } = await navigator.serviceWorker.ready;
        postMessage.call(active, JSON.parse(held));
      };
    </script>`;
    bench.site.page(
      '/tool',
      `${late}${LAB}<script>lab.register('whoami', () => performance.timeOrigin);</script>`,
    );
    const { tool, agent } = await bench.pair();
    await tool.goto(`${bench.site.origin}/tool`);
    await ready(tool);
    await tool.reload();
    await ready(tool);
    await tool.evaluate(() => (window as unknown as { sayItNow(): Promise<void> }).sayItNow());
    const origin = await tool.evaluate(() => `${performance.timeOrigin}`);
    await eventually(() => askAll(agent)).toEqual([origin]);
  });

  test('C13: a page that was force-reloaded is served without a controller', async () => {
    const { tool, agent } = await bench.pair();
    await tool.reload({ ignoreCache: true });
    await ready(tool);
    expect(await tool.evaluate(() => navigator.serviceWorker.controller)).toBe(null);
    await whoami(tool, 'uncontrolled');
    await call(agent, 'a', 'whoami');
    expect(await outcome(agent, 'a')).toEqual({ value: 'uncontrolled' });
    const requests = bench.site.requests.filter(({ path }) => path === '/lab').length;
    await names(tool);
    expect(bench.site.requests.filter(({ path }) => path === '/lab')).toHaveLength(requests);
  });

  test('C30: the list names only tools of live documents', async () => {
    const agent = await bench.open();
    const tabs: Page[] = [];
    for (let index = 0; index < 8; index += 1) {
      const tab = await bench.join(agent, index % 2 === 0 ? '/apart' : '/lab');
      await tab.evaluate(async (index) => {
        for (const letter of ['a', 'b', 'c'])
          await lab.register(`t${index}${letter}`, () => new Promise(() => {}));
      }, index);
      tabs.push(tab);
    }
    await eventually(() => names(agent)).toHaveLength(24);
    for (const index of [0, 1, 3]) await call(agent, `call ${index}`, `t${index}a`);
    const [first, second, third, fourth] = tabs as [Page, Page, Page, Page];
    await first.evaluate(() => lab.logged('began t0a'));
    await second.evaluate(() => lab.logged('began t1a'));
    await fourth.evaluate(() => lab.logged('began t3a'));
    await crash(first);
    await second.close();
    // Not the one under COOP: its goodbye may die with the process that such a navigation leaves behind.
    await fourth.goto('about:blank');
    await third.close();
    // One that nobody has called is noticed too.
    await crash(tabs[4] as Page);
    const live = ['t5', 't6', 't7'].flatMap((name) => [`${name}a`, `${name}b`, `${name}c`]);
    await eventually(() => names(agent)).toEqual(live);
    expect(await outcome(agent, 'call 0')).toEqual(failed('document-lost', 'UnknownError', true));
    expect(await outcome(agent, 'call 1')).toEqual(failed('navigated', 'UnknownError', true));
    expect(await outcome(agent, 'call 3')).toEqual(failed('navigated', 'UnknownError', true));
    const documents = await agent.evaluate(
      () =>
        new Promise<number>((resolve) => {
          const stop = new AbortController();
          document.modelContext.relay.watch(
            ({ documents }) => {
              if (documents.length > 4) return;
              stop.abort();
              resolve(documents.length);
            },
            { signal: stop.signal },
          );
        }),
    );
    expect(documents).toBe(4);
  });
});

describe('C36: the first visit', () => {
  test('a tool that the first script registers is callable from another tab, without a reload or a controller', async () => {
    // An origin of its own that has no worker yet.
    const origin = bench.site.origin.replace('localhost', 'first.localhost');
    bench.site.page(
      '/first',
      `${LAB}<script>
        lab.register('first', () => navigator.serviceWorker.controller === null);
        for (let index = 0; index < 5; index += 1) lab.call('call ' + index, 'first');
      </script>`,
    );
    const page = await bench.blank();
    await page.goto(`${origin}/first`);
    expect(await served(page)).toBe('shared');
    for (let index = 0; index < 5; index += 1) {
      await page.waitFor((id) => id in lab.calls, `call ${index}`);
      expect(await outcome(page, `call ${index}`)).toEqual({ value: 'true' });
    }
    const agent = await bench.join(page);
    await call(agent, 'a', 'first');
    expect(await outcome(agent, 'a')).toEqual({ value: 'true' });
    expect(bench.site.requests.filter(({ path }) => path === '/first')).toHaveLength(1);
  });
});
