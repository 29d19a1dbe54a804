/** A JSON Schema of a type as people read it: its fields, its identity, how claims merge. */

type Json = Record<string, unknown>;

export interface Field {
  name: string;
  type: string;
  merge: string;
  required: boolean;
  indexed: boolean;
  searched: boolean;
  description: string;
}

const MERGES: Record<string, string> = {
  latest: "the latest wins",
  first: "the first wins",
  highest_priority: "the highest priority wins",
  min: "the smallest wins",
  max: "the largest wins",
  sum: "they are added up",
  union: "all elements are kept",
  append: "all are kept, in order of time",
  by_key: "objects merge by their key",
};

/** How claims on a field merge, in words; a policy of one's own keeps its name. */
export function mergeInWords(policy: unknown): string {
  const name = typeof policy === "string" ? policy : typeof policy === "object" && policy ? String(Object.values(policy)[0] ?? "") : "latest";
  return MERGES[name] ?? name;
}

/** Return the fields of a schema, by name. */
export function fieldsOf(schema: Json): Field[] {
  const required = new Set(Array.isArray(schema.required) ? (schema.required as string[]) : []);
  return Object.entries((schema.properties ?? {}) as Record<string, Json>)
    .map(([name, field]) => ({
      name,
      type: typeInWords(field),
      merge: mergeInWords(field["x-woodrat-merge"]),
      required: required.has(name),
      indexed: field["x-woodrat-index"] === true,
      searched: field["x-woodrat-text"] === true,
      description: typeof field.description === "string" ? field.description : "",
    }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function typeInWords(field: Json): string {
  if (Array.isArray(field.enum)) return `one of ${field.enum.map(String).join(", ")}`;
  const type = Array.isArray(field.type) ? field.type.join(" or ") : typeof field.type === "string" ? field.type : "any";
  return typeof field.format === "string" ? `${type} (${field.format})` : type;
}

/** Return the identity rules of a schema as sentences, the first that applies first. */
export function identityInWords(schema: Json): string[] {
  const rules = Array.isArray(schema["x-woodrat-identity"]) ? (schema["x-woodrat-identity"] as unknown[]) : [];
  return rules.map((rule, index) => {
    const fields = (Array.isArray(rule) ? rule : [rule]).map((part) =>
      typeof part === "string" ? part : String((part as Json | null)?.field ?? JSON.stringify(part)),
    );
    return `${index === 0 ? "Two records are the same if they share" : "or, where that is not stated, they share"} ${fields.join(" and ")}`;
  });
}
