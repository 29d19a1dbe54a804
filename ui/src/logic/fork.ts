/** Forks: the editable values of a step, and the command and the test that run the agent again with the edited value. */

import { testName } from "./pytest";
import { shell } from "./shell";
import { cutValue, spoken } from "./format";

export interface Editable {
  /** What a fork calls it: `fields.city`, `result.score`, `inputs.amount`, `response`. */
  path: string;
  label: string;
  value: unknown;
  /** Its name in what-if: `type/key#field`, or the name of a fact; none if no rule can look at it. */
  fact: string | null;
}

type Body = Record<string, unknown>;

/** Return the editable values of a step of a run, given the entry that recorded it. */
export function editableAt(kind: string, body: Body): Editable[] {
  if (kind === "run.started") return below("inputs", body.inputs);
  if (kind === "run.tool") return "result" in body ? below("result", body.result) : [];
  if (kind === "run.model") return [{ path: "response", label: "response", value: body.response, fact: null }];
  if (kind !== "run.read" || typeof body.entity !== "string") return [];
  return Object.entries((body.fields ?? {}) as Body).map(([name, item]) => ({
    path: `fields.${name}`,
    label: spoken(name),
    value: item && typeof item === "object" && "value" in item ? item.value : item,
    fact: `${body.entity as string}#${name}`,
  }));
}

function below(head: string, value: unknown): Editable[] {
  if (!value || typeof value !== "object" || Array.isArray(value) || cutValue(value)) {
    return value === undefined ? [] : [{ path: head, label: head, value, fact: null }];
  }
  return Object.entries(value).map(([name, item]) => ({ path: `${head}.${name}`, label: spoken(name), value: item, fact: name }));
}

/** What was typed: text where text was recorded, else JSON where it reads as JSON. */
export function typedValue(text: string, was: unknown): unknown {
  if (typeof was === "string") return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** A value as a command line takes it: text unchanged, unless it would be read as JSON. */
function argument(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  try {
    JSON.parse(value);
    return JSON.stringify(value);
  } catch {
    return value;
  }
}

export interface Fork {
  run: string;
  step: number;
  path: string;
  value: unknown;
  query: string | null;
}

export function forkCommand({ run, step, path, value }: Fork): string {
  return shell("woodrat", "runs", "fork", run, "--at", step, "--set", `${path}=${argument(value)}`, "--with", "my_agent:agent");
}

/** A value as Python writes it. */
export function python(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${python(item)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

export function forkTest(fork: Fork, tenant: string | null): string {
  const where = tenant && tenant !== "default" ? `, tenant=${python(tenant)}` : "";
  return [
    "import woodrat",
    "",
    "from my_agent import agent  # the function that was recorded: agent(run)",
    "",
    "",
    `def ${testName(fork.query, fork.run)}_forked():`,
    `    with woodrat.open("agents.db"${where}) as ledger:`,
    `        edited = {${python(fork.path)}: ${python(fork.value)}}`,
    `        fork = ledger.runs.fork(${python(fork.run)}, agent, at=${fork.step}, set=edited)`,
    "        assert fork.stopped is None",
    "        assert fork.answer == ...  # what it should answer with the edited value",
    "",
  ].join("\n");
}
