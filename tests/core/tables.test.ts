/**
 * The two tables of the core: what may become of an activation and of a token. Each is written twice, in the header of its
 * file for readers and in the code, and must say the same; whatever is not in it changes nothing.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  ACTIVATION_TABLE,
  type ActivationEvent,
  isActive,
  isOpen,
  moveActivation,
} from '../../sw/core/execution.ts';
import type { ActivationState, TokenState } from '../../sw/core/state.ts';
import { isOutstanding, moveToken, TOKEN_TABLE, type TokenEvent } from '../../sw/core/token.ts';
import { anActivation, aToken } from './records.ts';

type Rows = Record<string, Record<string, string>>;

/** The table in a file's header: a row of events, then rows of states; `.` says that nothing changes. */
function headerTable(file: string, firstEvent: string): Rows {
  const header = readFileSync(new URL(`../../sw/core/${file}`, import.meta.url), 'utf8').split('*/')[0] ?? '';
  const lines = header.split('\n').map((line) => line.replace(/^ \*\s*/, '').split(/\s+/));
  const start = lines.findIndex(([first]) => first === firstEvent);
  const events = lines[start] ?? [];
  const rows: Rows = {};
  for (const [state = '', ...cells] of lines.slice(start + 1)) {
    if (cells.length !== events.length) break;
    rows[state] = Object.fromEntries(events.map((event, index) => [event, cells[index] ?? '']));
  }
  return rows;
}

/** The same table from the code, for the states that have a row in the header. */
function codeTable(table: Rows, like: Rows): Rows {
  return Object.fromEntries(
    Object.entries(like).map(([state, row]) => [
      state,
      Object.fromEntries(Object.keys(row).map((event) => [event, table[state]?.[event] ?? '.'])),
    ]),
  );
}

const ACTIVATION_STATES = Object.keys(ACTIVATION_TABLE) as ActivationState[];
const ACTIVATION_EVENTS: ActivationEvent[] = [
  'command',
  'begin',
  'return',
  'throw',
  'hold',
  'refuse',
  'stay',
  'discard',
  'lose',
  'withdraw',
];
const TOKEN_STATES = Object.keys(TOKEN_TABLE) as TokenState[];
const TOKEN_EVENTS: TokenEvent[] = ['redeem', 'restore', 'expire', 'void'];

describe('activations', () => {
  const header = headerTable('execution.ts', 'command');

  test('the header names every event', () => {
    expect(Object.keys(header.waiting ?? {})).toEqual(ACTIVATION_EVENTS);
  });

  test('the table in the header is the table in the code', () => {
    expect(codeTable(ACTIVATION_TABLE, header)).toEqual(header);
  });

  test('a state without a row is final', () => {
    const final = ACTIVATION_STATES.filter((state) => !(state in header));
    expect(final).toEqual(['returned', 'threw', 'discarded', 'lost', 'withdrawn']);
    for (const state of final) expect(ACTIVATION_TABLE[state]).toEqual({});
  });

  for (const state of ACTIVATION_STATES) {
    for (const event of ACTIVATION_EVENTS) {
      const next = header[state]?.[event] ?? '.';
      test(`${state}, ${event}: ${next === '.' ? 'nothing changes' : next}`, () => {
        const activation = anActivation({ state });
        expect(moveActivation(activation, event)).toBe(next !== '.');
        expect(activation).toEqual(anActivation({ state: (next === '.' ? state : next) as ActivationState }));
      });
    }
  }

  test('what was told to run and is not over is active; what waits is open too', () => {
    const active = ACTIVATION_STATES.filter((state) => isActive(anActivation({ state })));
    expect(active).toEqual(['commanded', 'running']);
    const open = ACTIVATION_STATES.filter((state) => isOpen(anActivation({ state })));
    expect(open).toEqual(['waiting', 'commanded', 'running']);
  });
});

describe('tokens', () => {
  const header = headerTable('token.ts', 'redeem');

  test('the header names every state and event', () => {
    expect(Object.keys(header).sort()).toEqual([...TOKEN_STATES].sort());
    expect(Object.keys(header.outstanding ?? {})).toEqual(TOKEN_EVENTS);
  });

  test('the table in the header is the table in the code', () => {
    expect(codeTable(TOKEN_TABLE, header)).toEqual(header);
  });

  for (const state of TOKEN_STATES) {
    for (const event of TOKEN_EVENTS) {
      const next = header[state]?.[event] ?? '.';
      test(`${state}, ${event}: ${next === '.' ? 'nothing changes' : next}`, () => {
        const token = aToken({ state });
        expect(moveToken(token, event)).toBe(next !== '.');
        const keyless = next === 'expired' || next === 'void' ? { key: null } : {};
        expect(token).toEqual(aToken({ state: (next === '.' ? state : next) as TokenState, ...keyless }));
      });
    }
  }

  test('only an outstanding one is outstanding', () => {
    expect(TOKEN_STATES.filter((state) => isOutstanding(aToken({ state })))).toEqual(['outstanding']);
  });
});
