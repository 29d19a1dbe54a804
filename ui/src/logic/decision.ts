/** Decisions in words: rules, conditions, the choice and its reason. No ids, positions or operator names. */

import type { Schemas } from "../api/client";
import { brief, capital, comparison, requirement, spoken } from "./format";

type Decision = Schemas["Decision"];
type Tried = Schemas["Tried"];
type Region = Schemas["Region"];

/** What was chosen, as text. */
export function chosenWords(chosen: unknown): string {
  if (Array.isArray(chosen)) return chosen.length ? chosen.map((item) => brief(item, 60)).join(", ") : "nothing";
  return brief(chosen, 120);
}

/** `credit score is at least 700 and income is at least 2000`: a rule's conditions as it states them. */
export function ruleWords(when: unknown): string {
  if (!when || typeof when !== "object" || Array.isArray(when)) return "";
  const parts: string[] = [];
  for (const [key, wanted] of Object.entries(when)) {
    if (wanted && typeof wanted === "object" && !Array.isArray(wanted)) {
      for (const [op, operand] of Object.entries(wanted)) parts.push(requirement(key, op, operand));
    } else parts.push(requirement(key, "eq", wanted));
  }
  return parts.join(" and ");
}

/** A rule as a person would say it; of code only its name is known. */
export function triedWords(rule: Pick<Tried, "when" | "predicate">): string {
  return ruleWords(rule.when) || (rule.predicate ? `the function “${rule.predicate}”` : "a condition that is not recorded");
}

/** `credit score 580 is below 600`: what matched; of a default, that nothing did; of a model's choice, its words. */
export function becauseWords(decision: Decision): string {
  if (decision.chosen_by) {
    const by = decision.chosen_by as Record<string, unknown>;
    const who = by.model ? `the model ${brief(by.model, 60)}` : by.agent ? brief(by.agent, 60) : "the agent";
    return decision.rationale ? `${who} chose it: ${brief(decision.rationale, 300)}` : `${who} chose it by itself`;
  }
  const matched = decision.rules.filter((rule) => rule.matched);
  if (!matched.length) return "no rule applied";
  return matched
    .flatMap((rule) => rule.conditions)
    .map((condition) => `${spoken(condition.key)} ${comparison(condition)}`)
    .join(" and ");
}

/** One sentence: `Rejected, because credit score 580 is below 600.` */
export function decisionSentence(decision: Decision): string {
  return `${capital(chosenWords(decision.chosen))}, because ${becauseWords(decision)}.`;
}

/** The values of a fact that would have led elsewhere: `at least 600 and below 700`. */
export function regionWords(region: Region): string {
  if (region.kind === "missing") return "no value at all";
  const WORDS: Record<string, string> = {
    lt: "below",
    lte: "at most",
    gt: "above",
    gte: "at least",
    eq: "",
    ne: "anything but",
    in: "one of",
    not_in: "none of",
  };
  const parts = Object.entries(region.conditions).map(([op, operand]) => {
    const value = Array.isArray(operand) ? operand.map((item) => brief(item, 40)).join(", ") : brief(operand, 60);
    return `${WORDS[op] ?? op} ${value}`.trim();
  });
  for (const pattern of region.matches) parts.push(`text that matches ${pattern}`);
  for (const pattern of region.matches_none) parts.push(`text that does not match ${pattern}`);
  if (parts.length) return parts.join(" and ");
  return region.kind === "number" ? "any number" : region.kind === "text" ? "any text" : "any other value";
}

/** `With a credit score of at least 600 and below 700 instead of 580, it would have been manual-review.` */
export function flipSentence(flip: Schemas["MarginFlip"]): string {
  const changes = flip.facts.map((needed) => {
    const values = needed.to.map(regionWords).join(", or ");
    const was = needed.missing ? "nothing" : brief(needed.was, 60);
    return `${spoken(needed.fact)} had been ${values} (it was ${was})`;
  });
  return `If ${changes.join(" and ")}, the outcome would have been ${chosenWords(flip.chosen)}.`;
}

/** What became of a value, in a word for people. */
export function changeWords(change: string): string {
  const WORDS: Record<string, string> = {
    corrected: "corrected it to",
    retracted: "withdrew it; it is now",
    superseded: "replaced it by",
    deleted: "deleted it",
    stated: "stated",
  };
  return WORDS[change] ?? change;
}
