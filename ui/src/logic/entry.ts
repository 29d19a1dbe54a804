/** An entry of the log in one line: its meaning, not its storage. */

import { refInWords } from "./refs";
import { brief, plural, spoken } from "./format";

interface LogEntry {
  kind: string;
  body?: unknown;
}

type Body = Record<string, unknown>;

const text = (value: unknown, max = 80) => brief(value, max);

/** Return the summary of an entry; an erased body says so. */
export function entryInWords(entry: LogEntry): string {
  if (entry.body === null || entry.body === undefined) return "erased: only its place in the tree is left";
  const body = entry.body as Body;
  const by = typeof body.agent === "string" ? `${body.agent}: ` : "";
  switch (entry.kind) {
    case "observation":
      return by + observation(body);
    case "source":
      return `${by}the content of a document${contentBytes(body)}`;
    case "received":
      return `${by}delivered ${text(body.name)}`;
    case "schema":
      return `${by}schema of ${text(body.type ?? (body.schema as Body | undefined)?.title)}`;
    case "tag":
      return `${by}tag @${text(body.name)} at position ${text(body.position)}`;
    case "run.started":
      return `${by}asked “${text(body.query, 160)}”`;
    case "run.read":
      return `${by}read ${text(body.entity ?? body.verb)}`;
    case "run.tool":
      return `${by}called ${text(body.name)}`;
    case "run.model":
      return `${by}asked model ${text(body.model)}`;
    case "run.decided":
      return `${by}decided ${spoken(String(body.stage ?? ""))}: ${text(body.chosen)}`;
    case "run.ended":
      return `${by}${body.answer === undefined ? `ended: ${text(body.status)}` : `answered “${text(body.answer, 160)}”`}`;
    case "run.judged":
      return `${text(body.by ?? body.agent)} judged the run ${text(body.verdict)}`;
    case "interpretation.started":
      return `${by}began to read a document${body.model ? ` with ${text(body.model)}` : ""}`;
    case "interpretation.ended":
      return `${by}read a document to the end${body.status === "done" ? "" : `: ${text(body.status)}`}`;
    default:
      return by + text(body, 160);
  }
}

const OPS: Record<string, string> = {
  assert: "",
  correct: "corrected ",
  retract: "withdrew what was said of ",
  delete: "deleted ",
  restore: "restored ",
};

/** Length of a document's content, which the log stores as base64. */
function contentBytes(body: Body): string {
  const packed = typeof body.base64 === "string" ? body.base64 : null;
  return packed === null ? "" : `, ${plural(Math.floor((packed.replace(/=+$/, "").length * 3) / 4), "byte")}`;
}

function observation(body: Body): string {
  const entity = body.entity as { type?: string; key?: string } | undefined;
  const ref = entity ? refInWords(`${entity.type}/${entity.key}`) : "";
  const fields = body.fields as Body | undefined;
  const values = fields
    ? Object.entries(fields)
        .slice(0, 4)
        .map(([name, value]) => `${spoken(name)} ${text(value, 40)}`)
        .join(", ")
    : "";
  const op = OPS[String(body.op ?? "assert")] ?? `${String(body.op)} `;
  const reason = typeof body.reason === "string" ? ` (${text(body.reason, 100)})` : "";
  return `${op}${ref}${values ? `: ${values}` : ""}${reason}`;
}
