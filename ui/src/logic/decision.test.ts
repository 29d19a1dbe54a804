import { describe, expect, it } from "vitest";
import type { Schemas } from "../api/client";
import { decisionSentence, flipSentence, regionWords, ruleWords } from "./decision";

const condition = { key: "creditScore", op: "lt", operand: 600, actual: 580, result: true, origin: {}, error: null };
const decision = {
  chosen: "rejected",
  chosen_by: null,
  rationale: null,
  rules: [{ label: "Marginal credit", chosen: "rejected", matched: true, conditions: [condition] }],
} as unknown as Schemas["Decision"];

describe("decisions", () => {
  it("are one sentence", () => {
    expect(decisionSentence(decision)).toBe("Rejected, because credit score 580 is below 600.");
    expect(decisionSentence({ ...decision, chosen: "ask", rules: [] })).toBe("Ask, because no rule applied.");
    const told = { ...decision, rules: [], chosen_by: { model: "small-1" }, rationale: "many writers" };
    expect(decisionSentence(told)).toBe("Rejected, because the model small-1 chose it: many writers.");
  });

  it("say rules in words", () => {
    expect(ruleWords({ creditScore: { gte: 700 }, payment_terms: "Net-30" })).toBe(
      "credit score is at least 700 and payment terms is Net-30",
    );
    expect(ruleWords(null)).toBe("");
  });

  it("say what would have flipped them", () => {
    const region = { kind: "number", conditions: { gte: 600, lt: 700 }, matches: [], matches_none: [] };
    expect(regionWords(region)).toBe("at least 600 and below 700");
    const facts = [{ fact: "creditScore", was: 580, missing: false, to: [region] }];
    expect(flipSentence({ chosen: "manual-review", rule: null, facts, sentence: "" })).toBe(
      "If credit score had been at least 600 and below 700 (it was 580), the outcome would have been manual-review.",
    );
  });
});
