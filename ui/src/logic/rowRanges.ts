/** Two runs side by side with some rows loaded: the differing ones, and equal ones that are unfolded. */

interface Placed {
  /** The place of the row. */
  step: number;
}

export type Part<R extends Placed> =
  | { kind: "row"; row: R }
  /** A range of equal rows: its start, its length, and those of its first rows that are loaded. */
  | { kind: "same"; first: number; count: number; rows: R[] }
  /** Rows that differ, before or after those that are read. */
  | { kind: "unread"; where: "before" | "after"; count: number };

export interface Shown<R extends Placed> {
  /** Rows that differ, one after the other. */
  rows: R[];
  /** Number of differing rows before these. */
  skipped: number;
}

/** Where all rows are read from the start, equal stretches of fewer rows are not folded. */
const STREAK = 4;

/** What a page shows: the gaps between rows that differ are equal stretches. */
export function partsOf<R extends Placed>(
  shown: Shown<R>,
  counts: { total: number; differing: number },
  equal: ReadonlyMap<number, R>,
  whole: boolean,
): Part<R>[] {
  const parts: Part<R>[] = [];
  const stretch = (first: number, end: number) => {
    const rows: R[] = [];
    for (let row = equal.get(first); row && rows.length < end - first; row = equal.get(first + rows.length)) rows.push(row);
    if (whole && rows.length < STREAK) parts.push(...rows.map((row): Part<R> => ({ kind: "row", row })));
    else parts.push({ kind: "same", first, count: end - first, rows });
  };
  if (shown.skipped > 0) parts.push({ kind: "unread", where: "before", count: shown.skipped });
  let next = shown.skipped > 0 ? (shown.rows[0]?.step ?? counts.total) : 0;
  for (const row of shown.rows) {
    if (row.step > next) stretch(next, row.step);
    parts.push({ kind: "row", row });
    next = row.step + 1;
  }
  const rest = counts.differing - shown.skipped - shown.rows.length;
  if (rest > 0) parts.push({ kind: "unread", where: "after", count: rest });
  else if (counts.total > next) stretch(next, counts.total);
  return parts;
}

/** Differing rows with one more page before or after; excess rows are dropped at the other end. */
export function joined<R extends Placed>(shown: Shown<R>, page: R[], where: "before" | "after", max: number): Shown<R> {
  if (where === "before") return { rows: [...page, ...shown.rows].slice(0, max), skipped: shown.skipped - page.length };
  const rows = [...shown.rows, ...page];
  const left = Math.max(0, rows.length - max);
  return { rows: rows.slice(left), skipped: shown.skipped + left };
}
