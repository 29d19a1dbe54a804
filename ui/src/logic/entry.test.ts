import { describe, expect, it } from "vitest";
import { entryInWords } from "./entry";

describe("an entry in words", () => {
  it("names who said what of which entity", () =>
    expect(
      entryInWords({
        kind: "observation",
        body: { agent: "maria", op: "correct", entity: { type: "loan", key: "42" }, fields: { creditScore: 720 }, reason: "mixed up" },
      }),
    ).toBe("maria: corrected loan/42: credit score 720 (mixed up)"));
  it("says how long a document is instead of showing its bytes", () =>
    expect(entryInWords({ kind: "source", body: { base64: "TmV0LTQ1" } })).toBe("the content of a document, 6 bytes"));
  it("says that a body was erased", () => expect(entryInWords({ kind: "observation", body: null })).toContain("erased"));
  it("shows a kind it does not know as it is", () =>
    expect(entryInWords({ kind: "exported", body: { agent: "ann", rows: 3 } })).toBe('ann: {"agent":"ann","rows":3}'));
});
