/** References as people read them: a relation is named by its ends. */

import { brief, keyOf, typeOf } from "./format";

/** The two ends of a relation, which form its key; none for any other entity. */
function endsOf(key: string): [string, string] | null {
  if (!key.startsWith("[")) return null;
  try {
    const ends: unknown = JSON.parse(key);
    return Array.isArray(ends) && ends.length === 2 && ends.every((end) => typeof end === "string") ? (ends as [string, string]) : null;
  } catch {
    return null; // a key may begin with a bracket and be no list
  }
}

/** `applicant: loan/42 → contact/Ana Rivera` for a relation; any other reference unchanged. */
export function refInWords(ref: string, max = 100): string {
  const ends = endsOf(keyOf(ref));
  return brief(ends ? `${typeOf(ref)}: ${ends[0]} → ${ends[1]}` : ref, max);
}

/** The name of an entity beside its type: a relation by its ends, a note by its text, else its key. */
export function entityName(ref: string, fields: Record<string, unknown> = {}, max = 80): string {
  const ends = endsOf(keyOf(ref));
  if (ends) return brief(`${ends[0]} → ${ends[1]}`, max);
  return brief(typeOf(ref) === "note" && typeof fields.text === "string" ? `“${fields.text}”` : keyOf(ref), max);
}

/** The values that tell more than the name of an entity does. */
export function tellingFields(ref: string, fields: Record<string, unknown>): [string, unknown][] {
  const said = endsOf(keyOf(ref)) ? ["from", "to"] : typeOf(ref) === "note" ? ["text"] : [];
  return Object.entries(fields).filter(([name, value]) => !said.includes(name) && value !== keyOf(ref));
}
