import { describe, expect, it } from "vitest";
import { ago, brief, comparison, duration, plural, shortId, spoken, when } from "./format";

describe("words", () => {
  it("says dates as people write them", () => {
    expect(when("2026-11-16T15:56:07.123456Z")).toBe("16 Nov 2026, 15:56 UTC");
    expect(when("yesterday")).toBe("yesterday");
    expect(when("entry 4")).toBe("entry 4");
    expect(when(null)).toBe("");
  });

  it("says how long ago", () => {
    const now = Date.parse("2026-11-16T15:56:00Z");
    expect(ago("2026-11-16T15:55:30Z", now)).toBe("just now");
    expect(ago("2026-11-16T13:00:00Z", now)).toBe("2 h ago");
    expect(ago("2026-11-15T13:00:00Z", now)).toBe("1 day ago");
    expect(ago("2026-01-01T00:00:00Z", now)).toBe("1 Jan 2026");
  });

  it("says comparisons in words, held or not", () => {
    expect(comparison({ key: "creditScore", op: "lt", operand: 600, actual: 580, result: true })).toBe(
      "580 is below 600",
    );
    expect(comparison({ key: "creditScore", op: "gte", operand: 700, actual: 640, result: false })).toBe(
      "640 is below 700",
    );
    expect(comparison({ key: "creditScore", op: "lt", operand: 600, actual: null, result: null })).toBe(
      "credit score is unknown",
    );
    expect(comparison({ key: "city", op: "in", operand: ["Oslo", "Bergen"], actual: "Oslo", result: true })).toBe(
      "Oslo is one of Oslo, Bergen",
    );
  });

  it("keeps values short and plain", () => {
    expect(brief("a\n b")).toBe("a b");
    expect(brief("x".repeat(1_000_000)).length).toBe(201);
    expect(brief(false)).toBe("no");
    expect(brief({ a: 1 })).toBe('{"a":1}');
    expect(brief({ $truncated: { preview: "zzz", bytes: 300008, digest: "c3" } })).toBe("zzz");
  });

  it("shortens ids, splits names, counts", () => {
    expect(shortId("obs_d2fjsh5trd3wfuioa2iscubxg2")).toBe("obs_d2fjsh5t…");
    expect(spoken("creditScore")).toBe("credit score");
    expect(spoken("payment_terms")).toBe("payment terms");
    expect(plural(1, "run")).toBe("1 run");
    expect(plural(2000, "run")).toBe("2,000 runs");
    expect(duration(0.2)).toBe("under 1 ms");
    expect(duration(3400)).toBe("3.4 s");
    expect(duration(125_000)).toBe("2 min 5 s");
  });
});
