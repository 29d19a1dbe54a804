/** Values beside values: which parts of two JSON values differ, by path. jsondiffpatch finds them. */

import { create, type Delta } from "jsondiffpatch";

export interface FieldDifference {
  path: string;
  before: unknown;
  after: unknown;
  had: boolean;
  has: boolean;
}

const differ = create({
  objectHash: (item) => {
    const named = item as { id?: unknown; key?: unknown; name?: unknown };
    return String(named.id ?? named.key ?? named.name ?? JSON.stringify(item));
  },
  arrays: { detectMove: false },
});

/** Return the parts that differ, in the order of their paths. */
export function compareFields(first: unknown, second: unknown): FieldDifference[] {
  const found: FieldDifference[] = [];
  flatten(differ.diff(first, second), "", found);
  return found;
}

function flatten(delta: Delta, path: string, found: FieldDifference[]): void {
  if (delta === undefined) return;
  if (Array.isArray(delta)) {
    const before: unknown = delta.length === 1 ? undefined : delta[0];
    const after: unknown = delta.length === 1 ? delta[0] : delta.length === 2 ? delta[1] : undefined;
    found.push({ path: path || "value", before, after, had: delta.length !== 1, has: delta.length !== 3 });
    return;
  }
  const inside = delta as Record<string, Delta>;
  const list = inside._t === ("a" as unknown);
  for (const [name, part] of Object.entries(inside)) {
    if (list && name === "_t") continue;
    const place = list ? `[${name.replace("_", "")}]` : path ? `.${name}` : name;
    flatten(part, path + place, found);
  }
}
