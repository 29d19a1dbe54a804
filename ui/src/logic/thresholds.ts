/** What can be moved in a decision: the operands of its rules and the facts it looked at. */

import type { components } from "../api/schema";

type Decision = components["schemas"]["Decision"];

export interface Slider {
  /** Its name in what-if: `stage.fact.operator`, or the name of a fact. */
  name: string;
  fact: string;
  op: string | null;
  value: number;
  min: number;
  max: number;
  step: number;
}

interface Tried {
  conditions: { key: string; op: string; operand?: unknown }[];
  when?: unknown;
}

const COMPARED = new Set(["lt", "lte", "gt", "gte", "eq", "ne"]);

/** A range around a value, in steps that a person would choose. */
export function around(value: number): { min: number; max: number; step: number } {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size <= 20) return { min: Math.min(0, value - 10), max: Math.max(20, value + 20), step: 1 };
  const magnitude = 10 ** Math.floor(Math.log10(size || 1));
  const step = Number.isInteger(value) ? Math.max(1, magnitude / 100) : magnitude / 100;
  const low = value - size / 2;
  const high = value + size / 2;
  return { min: Math.floor(low / step) * step, max: Math.ceil(high / step) * step, step };
}

/** A fact that is no number: it is typed, not slid. */
export interface Wording {
  name: string;
  value: unknown;
}

/** Return a slider for each number that the rules of a decision compare with, and for each number it looked at. */
export function slidersOf(decision: Decision): { thresholds: Slider[]; facts: Slider[]; wordings: Wording[] } {
  const thresholds = new Map<string, Slider>();
  const rules = [...decision.rules, ...((decision.untried as Tried[] | null | undefined) ?? [])] as Tried[];
  for (const rule of rules) {
    for (const { key, op, operand } of conditionsOf(rule)) {
      if (typeof operand !== "number" || !COMPARED.has(op)) continue;
      const name = `${decision.stage}.${key}.${op}`;
      if (!thresholds.has(name)) thresholds.set(name, { name, fact: key, op, value: operand, ...around(operand) });
    }
  }
  const facts: Slider[] = [];
  const wordings: Wording[] = [];
  for (const [fact, value] of Object.entries(decision.facts)) {
    if (typeof value === "string" || typeof value === "boolean") wordings.push({ name: fact, value });
    if (typeof value === "number") facts.push({ name: fact, fact, op: null, value, ...around(value) });
  }
  return { thresholds: [...thresholds.values()], facts, wordings };
}

/** The conditions of a rule that was tried; for an untried rule, the conditions in its `when`. */
function conditionsOf(rule: Tried): { key: string; op: string; operand?: unknown }[] {
  if (rule.conditions.length) return rule.conditions;
  const found: { key: string; op: string; operand?: unknown }[] = [];
  if (rule.when && typeof rule.when === "object") {
    for (const [key, test] of Object.entries(rule.when)) {
      if (test && typeof test === "object" && !Array.isArray(test)) {
        for (const [op, operand] of Object.entries(test)) found.push({ key, op, operand });
      } else found.push({ key, op: "eq", operand: test });
    }
  }
  return found;
}
