/** Command lines and REST calls that give the same answer as a page. */

/** Quote words for a POSIX shell. */
export function shell(...words: (string | number | null | undefined)[]): string {
  return words
    .filter((word): word is string | number => word !== null && word !== undefined && word !== "")
    .map((word) => quote(String(word)))
    .join(" ");
}

function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

export interface Call {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
}

/** `GET /v1/…` with a query; values that are missing are left out. */
export function get(path: string, query: Record<string, string | number | boolean | null | undefined> = {}): Call {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return { method: "GET", path: text ? `${path}?${text}` : path };
}

export function post(path: string, body: unknown): Call {
  return { method: "POST", path, body };
}

/** A call as a `curl` command; with keys it reads the key from the environment. */
export function curl(call: Call, origin: string, keysRequired: boolean): string {
  const parts = ["curl"];
  if (keysRequired) parts.push(`-H "Authorization: Bearer $WOODRAT_TOKEN"`);
  if (call.method === "POST") parts.push("-H 'Content-Type: application/json'", "-d", quote(JSON.stringify(call.body)));
  parts.push(quote(origin + call.path));
  return parts.join(" ");
}
