import { describe, expect, it } from "vitest";
import { compareFields } from "./fieldDiff";
import { compareLists, compareTexts } from "./textDiff";

describe("text beside text", () => {
  it("keeps what is common and rebuilds both", () => {
    const [first, second] = ["a b c d e".split(" "), "a x c e f".split(" ")];
    const pieces = compareLists(first, second);
    expect(pieces.filter((piece) => piece.kind !== "second").map((piece) => piece.text)).toEqual(first);
    expect(pieces.filter((piece) => piece.kind !== "first").map((piece) => piece.text)).toEqual(second);
    expect(pieces.filter((piece) => piece.kind === "same").map((piece) => piece.text)).toEqual(["a", "c", "e"]);
  });

  it("marks the words of a changed line and skips what is far from a change", () => {
    const common = Array.from({ length: 30 }, (_, index) => `line ${index}`);
    const lines = compareTexts([...common, "the score is 580"].join("\n"), [...common, "the score is 640"].join("\n"));
    expect(lines[0]!.kind).toBe("skipped");
    expect(lines[0]!.pieces).toHaveLength(28);
    const changed = lines.filter((line) => line.kind === "first" || line.kind === "second");
    expect(changed.map((line) => line.pieces.filter((piece) => piece.kind !== "same").map((piece) => piece.text))).toEqual([
      ["580"],
      ["640"],
    ]);
  });

  it("does not compare what would take for ever", () => {
    const first = Array.from({ length: 3000 }, (_, index) => `a${index}`);
    const second = Array.from({ length: 3000 }, (_, index) => `b${index}`);
    expect(compareLists(first, second)).toHaveLength(6000);
  });
});

describe("values beside values", () => {
  it("names the parts that differ", () => {
    const first = { score: 580, name: "Jo", tags: ["a", "b"], gone: 1 };
    const second = { score: 640, name: "Jo", tags: ["a", "c"], came: { x: 1 } };
    expect(compareFields(first, second)).toEqual(
      expect.arrayContaining([
        { path: "score", before: 580, after: 640, had: true, has: true },
        { path: "gone", before: 1, after: undefined, had: true, has: false },
        { path: "came", before: undefined, after: { x: 1 }, had: false, has: true },
      ]),
    );
    expect(compareFields(1, 2)).toEqual([{ path: "value", before: 1, after: 2, had: true, has: true }]);
    expect(compareFields({ a: 1 }, { a: 1 })).toEqual([]);
  });
});
