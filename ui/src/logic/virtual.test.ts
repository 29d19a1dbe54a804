import { describe, expect, it } from "vitest";
import { RowHeights } from "./virtual";

describe("row heights", () => {
  it("finds rows by height, guessed and measured", () => {
    const rows = new RowHeights(10_000, 40);
    expect(rows.total).toBe(400_000);
    expect(rows.at(0)).toBe(0);
    expect(rows.at(40)).toBe(1);
    expect(rows.at(1e9)).toBe(9_999);
    expect(rows.set(2, 140)).toBe(true);
    expect(rows.set(2, 140.2)).toBe(false);
    expect(rows.offset(3)).toBe(220);
    expect(rows.at(219)).toBe(2);
    expect(rows.total).toBe(400_100);
  });

  it("never gives more rows than asked for", () => {
    const rows = new RowHeights(10_000, 1);
    const { first, end } = rows.window(5_000, 9_000, 5, 120);
    expect([first, end - first]).toEqual([4_995, 120]);
    expect(new RowHeights(0, 40).window(0, 900, 5, 120)).toEqual({ first: 0, end: 0 });
  });
});
