import { describe, expect, it } from "vitest";
import { joined, partsOf } from "./rowRanges";

const rows = (...steps: number[]) => steps.map((step) => ({ step }));
const read = (...steps: number[]) => new Map(rows(...steps).map((row) => [row.step, row]));
const brief = (parts: ReturnType<typeof partsOf>) =>
  parts.map((part) =>
    part.kind === "row" ? part.row.step : part.kind === "same" ? `${part.count} from ${part.first}` : `${part.count} ${part.where}`,
  );

describe("partsOf", () => {
  it("folds the gaps between rows that differ", () => {
    const shown = { rows: rows(3, 4, 9), skipped: 0 };
    expect(brief(partsOf(shown, { total: 20, differing: 3 }, new Map(), false))).toEqual(["3 from 0", 3, 4, "4 from 5", 9, "10 from 10"]);
  });

  it("is one stretch where nothing differs, and nothing where nothing is equal", () => {
    expect(brief(partsOf({ rows: [], skipped: 0 }, { total: 7, differing: 0 }, new Map(), false))).toEqual(["7 from 0"]);
    expect(brief(partsOf({ rows: rows(0, 1), skipped: 0 }, { total: 2, differing: 2 }, new Map(), false))).toEqual([0, 1]);
  });

  it("says how many differences are not read, and folds nothing there", () => {
    const shown = { rows: rows(50, 60), skipped: 4 };
    expect(brief(partsOf(shown, { total: 100, differing: 9 }, new Map(), false))).toEqual(["4 before", 50, "9 from 51", 60, "3 after"]);
  });

  it("shows short stretches where all rows are read", () => {
    const parts = partsOf({ rows: rows(2, 7), skipped: 0 }, { total: 8, differing: 2 }, read(0, 1, 3, 4, 5, 6), true);
    expect(brief(parts)).toEqual([0, 1, 2, "4 from 3", 7]);
  });

  it("keeps what is read of a stretch from its beginning, and folds it however short it is", () => {
    const parts = partsOf({ rows: rows(1), skipped: 0 }, { total: 9, differing: 1 }, read(0, 2, 3, 5), false);
    expect(brief(parts)).toEqual(["1 from 0", 1, "7 from 2"]);
    expect(parts[0]).toMatchObject({ rows: rows(0) });
    expect(parts[2]).toMatchObject({ rows: rows(2, 3) });
  });
});

describe("joined", () => {
  it("adds a page at either end", () => {
    expect(joined({ rows: rows(5, 6), skipped: 2 }, rows(1, 2), "before", 9)).toEqual({ rows: rows(1, 2, 5, 6), skipped: 0 });
    expect(joined({ rows: rows(5, 6), skipped: 2 }, rows(7), "after", 9)).toEqual({ rows: rows(5, 6, 7), skipped: 2 });
  });

  it("never holds more than it may, and knows what it left out", () => {
    expect(joined({ rows: rows(5, 6), skipped: 2 }, rows(7, 8), "after", 3)).toEqual({ rows: rows(6, 7, 8), skipped: 3 });
    expect(joined({ rows: rows(5, 6), skipped: 2 }, rows(3, 4), "before", 3)).toEqual({ rows: rows(3, 4, 5), skipped: 0 });
  });
});
