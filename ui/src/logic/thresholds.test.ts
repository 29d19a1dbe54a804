import { describe, expect, it } from "vitest";
import { around, slidersOf } from "./thresholds";

const DECISION = {
  stage: "classify-risk",
  facts: { creditScore: 580, applicant: "Ana" },
  rules: [{ conditions: [{ key: "creditScore", op: "lt", operand: 600 }] }],
  untried: [{ conditions: [], when: { creditScore: { gte: 700 }, country: "ES" } }],
} as never;

describe("what can be moved in a decision", () => {
  it("is every number its rules compare with, tried or not", () =>
    expect(slidersOf(DECISION).thresholds.map((slider) => [slider.name, slider.value])).toEqual([
      ["classify-risk.creditScore.lt", 600],
      ["classify-risk.creditScore.gte", 700],
    ]));
  it("is every number it looked at", () =>
    expect(slidersOf(DECISION).facts.map((slider) => [slider.name, slider.value])).toEqual([["creditScore", 580]]));
  it("is every word it looked at", () => expect(slidersOf(DECISION).wordings).toEqual([{ name: "applicant", value: "Ana" }]));
});

describe("the range around a value", () => {
  it("holds the value", () => {
    for (const value of [0, 1, 3, 580, -40, 0.25, 50_000]) {
      const { min, max, step } = around(value);
      expect(min).toBeLessThanOrEqual(value);
      expect(max).toBeGreaterThanOrEqual(value);
      expect(step).toBeGreaterThan(0);
    }
  });
  it("goes in whole steps for whole numbers", () => expect(around(580).step).toBe(1));
});
