/** References as people read them: a relation is named by its ends. */

import { brief } from "./words";

/** `loan/42 → contact/Ana Rivera` for a relation, whose key is its two ends; any other reference as it is. */
export function refInWords(ref: string, max = 100): string {
  const cut = ref.indexOf("/");
  const key = ref.slice(cut + 1);
  if (key.startsWith("[")) {
    try {
      const ends: unknown = JSON.parse(key);
      if (Array.isArray(ends) && ends.length === 2 && ends.every((end) => typeof end === "string")) {
        return brief(`${ref.slice(0, cut)}: ${ends[0]} → ${ends[1]}`, max);
      }
    } catch {
      // A key may begin with a bracket and be no list.
    }
  }
  return brief(ref, max);
}
