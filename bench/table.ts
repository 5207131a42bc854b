// From samples to a table.

export interface Measured {
  name: string;
  /** Milliseconds, a sample a round. */
  ours: number[];
  /** `null`: there is nothing to compare with. */
  bare: number[] | null;
  /** What the figure that is aimed at should not exceed. */
  aim?: number;
  /** The figure is not a ratio but the milliseconds that ours takes longer, divided by this. */
  extraPer?: number;
}

/** A tail longer than this, in medians, wants an explanation. */
const LONGEST_TAIL = 5;

export function quantile(samples: readonly number[], q: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

export const median = (samples: readonly number[]): number => quantile(samples, 0.5);
const p99 = (samples: readonly number[]): number => quantile(samples, 0.99);
const tail = ({ ours }: Measured): number => p99(ours) / median(ours);

/** The ratio of medians, or the extra milliseconds; `null` where there is nothing to compare with. */
function figure({ ours, bare, extraPer }: Measured): number | null {
  if (bare === null) return null;
  return extraPer === undefined ? median(ours) / median(bare) : (median(ours) - median(bare)) / extraPer;
}

const HEAD = ['ratio', 'aim', 'ours', 'p99', 'p99/median', 'bare', 'p99', 'rounds', ''];

export function table(measured: readonly Measured[]): string {
  const rows = [HEAD, ...measured.map(row)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  const last = HEAD.length - 1;
  const pad = (cell: string, column: number) =>
    column === last ? cell : cell.padStart(widths[column] as number);
  return rows.map((cells) => cells.map(pad).join('  ').trimEnd()).join('\n');
}

function row(line: Measured): string[] {
  const { name, ours, bare, aim, extraPer } = line;
  const value = figure(line);
  const unit = extraPer === undefined ? '' : ' ms';
  return [
    value === null ? '-' : short(value) + unit,
    aim === undefined ? '-' : `${aim}${unit}`,
    short(median(ours)),
    short(p99(ours)),
    tail(line).toFixed(1),
    bare === null ? '-' : short(median(bare)),
    bare === null ? '-' : short(p99(bare)),
    String(ours.length),
    name,
  ];
}

/** Three digits, as far as they say something. */
function short(value: number): string {
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return Math.abs(value) >= 1 ? value.toPrecision(3) : value.toFixed(value < 0.01 ? 5 : 3);
}

export function remarks(measured: readonly Measured[]): string[] {
  return measured.flatMap((line) => {
    const value = figure(line);
    const over = value !== null && line.aim !== undefined && value > line.aim;
    return [
      ...(over ? [`over aim: ${line.name}: ${short(value)}, aim ${line.aim}`] : []),
      ...(tail(line) > LONGEST_TAIL
        ? [`long tail: ${line.name}: p99 is ${tail(line).toFixed(1)} medians`]
        : []),
    ];
  });
}
