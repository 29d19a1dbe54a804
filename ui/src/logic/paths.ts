/** URLs of the inspector: one function per noun, and matching a path against a pattern. */

export type Params = Record<string, string>;

const segment = encodeURIComponent;

/** Encode a reference such as `repo/org/name`, keeping its slashes. */
export function refPath(ref: string): string {
  return ref.split("/").map(segment).join("/");
}

function withQuery(path: string, query: Record<string, string | number | undefined | null>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const text = search.toString().replaceAll("%2C", ",").replaceAll("%2F", "/");
  return text ? `${path}?${text}` : path;
}

export const to = {
  home: () => "/",
  runs: (query: { subject?: string; agent?: string; status?: string; verdict?: string } = {}) => withQuery("/runs", query),
  run: (run: string, step?: number | null) => withQuery(`/runs/${segment(run)}`, { step }),
  compare: (runs: string[]) => withQuery("/compare", { runs: runs.join(",") }),
  decision: (run: string, number: number) => `/decisions/${segment(run)}/${number}`,
  entities: (query: { q?: string; type?: string } = {}) => withQuery("/entities", query),
  entity: (ref: string, query: { as_of?: string | number | null; valid_at?: string | null; field?: string } = {}) =>
    withQuery(`/entities/${refPath(ref)}`, query),
  sources: () => "/sources",
  source: (source: string, query: { quote?: string; line?: number } = {}) =>
    withQuery(`/sources/${segment(source)}`, query),
  impact: (of?: string) => withQuery("/impact", { of }),
  stale: () => "/stale",
  conflicts: () => "/conflicts",
  duplicates: () => "/duplicates",
  whatIf: (run?: string) => withQuery("/what-if", { run }),
  recall: (q?: string) => withQuery("/recall", { q }),
  log: (position?: number) => (position === undefined ? "/log" : `/log/${position}`),
  schemas: () => "/schemas",
  schema: (type: string) => `/schemas/${segment(type)}`,
  admin: () => "/admin",
  signIn: (next?: string) => withQuery("/sign-in", { next }),
};

/** Match a path against a pattern of words, `:name` for one segment and `*name` for the rest; null when it differs. */
export function match(pattern: string, path: string): Params | null {
  const wanted = pattern.split("/").filter(Boolean);
  const given = path.split("/").filter(Boolean);
  const params: Params = {};
  for (const [index, part] of wanted.entries()) {
    if (part.startsWith("*")) {
      if (given.length <= index) return null;
      params[part.slice(1)] = given.slice(index).map(decode).join("/");
      return params;
    }
    const actual = given[index];
    if (actual === undefined) return null;
    if (part.startsWith(":")) params[part.slice(1)] = decode(actual);
    else if (part !== actual) return null;
  }
  return wanted.length === given.length ? params : null;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
