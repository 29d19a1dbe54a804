import { describe, expect, it } from "vitest";
import { linesOf, markedLines, placeInWords } from "./locator";

const LINES = linesOf("Iberia Credit Bureau\r\nApplicant: Ana\nCredit score: 580\n");

describe("the lines a locator names", () => {
  it("are counted from one", () => expect([...markedLines(LINES, { line: 3 })]).toEqual([2]));
  it("may be several", () => expect([...markedLines(LINES, { line: 2, end_line: 9 })]).toEqual([1, 2]));
  it("are those of a quote, across lines too", () =>
    expect([...markedLines(LINES, { quote: "Ana\nCredit" })]).toEqual([1, 2]));
  it("are none where the text has no such place", () => {
    expect(markedLines(LINES, { quote: "720" }).size).toBe(0);
    expect(markedLines(LINES, { line: 40 }).size).toBe(0);
    expect(markedLines(LINES, { page: 2 }).size).toBe(0);
  });
});

describe("a place in words", () => {
  it("names what it has", () => {
    expect(placeInWords({ page: 2, line: 3 })).toBe("page 2, line 3");
    expect(placeInWords({ line: 3, end_line: 5 })).toBe("lines 3 to 5");
    expect(placeInWords({ pointer: "/score", quote: "580" })).toBe("at /score");
    expect(placeInWords({ quote: "580" })).toBe("");
  });
});
