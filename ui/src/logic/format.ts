/** Words for people: dates, durations, counts, ids, comparisons and values. */

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const TIME = /^\d{4}-\d\d-\d\d/;
/** Read a time from the server; null for anything else. */
function read(moment: string): Date | null {
  const time = new Date(moment);
  return TIME.test(moment) && !Number.isNaN(time.getTime()) ? time : null;
}
const two = (n: number) => String(n).padStart(2, "0");

/** `16 Nov 2026, 15:56 UTC`; text that is not a time unchanged. */
export function when(moment: string | null | undefined): string {
  if (!moment) return "";
  const time = read(moment);
  if (!time) return moment;
  return `${day(moment)}, ${two(time.getUTCHours())}:${two(time.getUTCMinutes())} UTC`;
}

/** `16 Nov 2026`. */
export function day(moment: string): string {
  const time = read(moment);
  if (!time) return moment;
  return `${time.getUTCDate()} ${MONTHS[time.getUTCMonth()]} ${time.getUTCFullYear()}`;
}

/** `3 min ago`, for lists of recent items. */
export function ago(moment: string | null | undefined, now: number = Date.now()): string {
  if (!moment) return "";
  const seconds = Math.round((now - new Date(moment).getTime()) / 1000);
  if (Number.isNaN(seconds)) return moment;
  if (seconds < 0) return when(moment);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  if (seconds < 86400 * 30) return plural(Math.floor(seconds / 86400), "day") + " ago";
  return day(moment);
}

/** `12 ms`, `3.4 s`, `2 min 5 s`. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "";
  if (ms < 1) return "under 1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `12,345`. */
export function count(n: number): string {
  return n.toLocaleString("en-US");
}

/** `1 run`, `2 runs`, `0 runs`. */
export function plural(n: number, noun: string, many = `${noun}s`): string {
  return `${count(n)} ${n === 1 ? noun : many}`;
}

/** `run_agq6vz7b…`: the kind and enough of an id to tell it apart by eye. */
export function shortId(id: string): string {
  const cut = id.indexOf("_");
  const head = cut < 0 ? 0 : cut + 1;
  return id.length > head + 12 ? `${id.slice(0, head + 8)}…` : id;
}

/** The end of a run's id tells runs of one second apart better than its beginning. */
export function shortRun(id: string): string {
  return id.length > 16 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id;
}

/** The part of `loan/42` that people say: `42`. */
export function keyOf(ref: string): string {
  const cut = ref.indexOf("/");
  return cut < 0 ? ref : ref.slice(cut + 1);
}

export function typeOf(ref: string): string {
  const cut = ref.indexOf("/");
  return cut < 0 ? "" : ref.slice(0, cut);
}

/** `creditScore`, `credit_score` and `credit-score` as `credit score`. */
export function spoken(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[_-]+/g, " ")
    .toLowerCase();
}

/** A sentence begins with a capital. */
export function capital(text: string): string {
  return text ? text[0]!.toUpperCase() + text.slice(1) : text;
}

/** A value that the recorder cut because it was long: the remaining part, and its full length. */
export function cutValue(value: unknown): { preview: string; bytes: number | null } | null {
  if (!value || typeof value !== "object" || Array.isArray(value) || Object.keys(value).length !== 1) return null;
  const told = (value as { $truncated?: unknown }).$truncated;
  if (!told || typeof told !== "object") return null;
  const { preview, bytes } = told as { preview?: unknown; bytes?: unknown };
  return { preview: typeof preview === "string" ? preview : "", bytes: typeof bytes === "number" ? bytes : null };
}

/** An error as it was recorded: `TimeoutError: no answer within 30 s` where it has a kind and a message. */
export function errorWords(error: unknown): string {
  const told = error as { type?: unknown; message?: unknown } | null;
  const both = told && typeof told === "object" && typeof told.type === "string" && typeof told.message === "string";
  return both ? `${told.type as string}: ${told.message as string}` : brief(error, 400);
}

const VALUE_MAX = 200;

/** A value in one line, cut where it is long. */
export function brief(value: unknown, max = VALUE_MAX): string {
  if (value === null || value === undefined) return "nothing";
  if (value === true) return "yes";
  if (value === false) return "no";
  const text = typeof value === "string" ? value : (cutValue(value)?.preview ?? JSON.stringify(value));
  const line = text.slice(0, max * 4).replace(/\s+/g, " ");
  return line.length > max ? `${line.slice(0, max)}…` : line;
}

/** A value as it can be read in full: text as text, everything else as JSON. */
export function whole(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "nothing");
}

const HOLDS: Record<string, string> = {
  lt: "is below",
  lte: "is at most",
  gt: "is above",
  gte: "is at least",
  eq: "is",
  ne: "is not",
  in: "is one of",
  not_in: "is none of",
  contains: "contains",
  matches: "matches",
  starts_with: "begins with",
  ends_with: "ends with",
};
const FAILS: Record<string, string> = {
  lt: "is not below",
  lte: "is above",
  gt: "is not above",
  gte: "is below",
  eq: "is not",
  ne: "is",
  in: "is none of",
  not_in: "is one of",
  contains: "does not contain",
  matches: "does not match",
  starts_with: "does not begin with",
  ends_with: "does not end with",
};

function operandText(operand: unknown): string {
  return Array.isArray(operand) ? operand.map((item) => brief(item, 60)).join(", ") : brief(operand, 80);
}

export interface Compared {
  key: string;
  op: string;
  operand?: unknown;
  actual?: unknown;
  result: boolean | null;
}

/** `580 is below 600`, `the credit score is unknown`: the result of a comparison. */
export function comparison({ key, op, operand, actual, result }: Compared): string {
  if (result === null) {
    return actual === null || actual === undefined
      ? `${spoken(key)} is unknown`
      : `${brief(actual, 80)} cannot be compared with ${operandText(operand)}`;
  }
  if (op === "exists") {
    const present = actual !== null && actual !== undefined;
    return present ? `there is a ${spoken(key)}` : `there is no ${spoken(key)}`;
  }
  if (op === "") return brief(actual, 80);
  const words = (result ? HOLDS : FAILS)[op] ?? `${result ? "" : "does not hold for "}${op}`;
  return `${brief(actual, 80)} ${words} ${operandText(operand)}`;
}

/** `credit score below 600`: a condition without a value. */
export function requirement(key: string, op: string, operand: unknown): string {
  if (op === "exists") return operand === false ? `no ${spoken(key)}` : `a ${spoken(key)}`;
  return `${spoken(key)} ${HOLDS[op] ?? op} ${operandText(operand)}`;
}
