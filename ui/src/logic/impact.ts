/** The graph of the dependents of something, from an answer of `/v1/impact`. */

import type { components } from "../api/schema";
import type { GraphEdge, GraphNode } from "./layers";
import { to } from "./paths";
import { refInWords } from "./refs";
import { brief, spoken } from "./format";

type Impact = components["schemas"]["Impact"];

const START = "start";

/** Return boxes and lines from the origin through fields and runs to decisions and exports. */
export function impactGraph(impact: Impact, name: string): { nodes: GraphNode[]; edges: GraphEdge[] } {
  const nodes: GraphNode[] = [{ id: START, kind: impact.kind, label: name, tone: "changed" }];
  const edges: GraphEdge[] = [];
  const entities = new Map<string, string>();
  for (const field of impact.fields) {
    const id = `entity ${field.entity}`;
    const names = entities.get(id);
    entities.set(id, names === undefined ? spoken(field.field) : `${names}, ${spoken(field.field)}`);
    if (names === undefined) nodes.push({ id, kind: "entity", label: refInWords(field.entity), href: to.entity(field.entity) });
    if (field.distance === 0 && names === undefined) edges.push({ from: START, to: id });
  }
  for (const node of nodes) if (entities.has(node.id)) node.note = entities.get(node.id);
  const runs = new Set(impact.runs.map((run) => run.run));
  for (const run of impact.runs) {
    nodes.push({ id: run.run, kind: `run · ${run.agent ?? "agent"}`, label: run.query ?? run.run, href: to.run(run.run) });
    const before = run.through_run && runs.has(run.through_run) ? run.through_run : null;
    const read = run.reads.map((one) => `entity ${one.read.entity}`).find((id) => entities.has(id));
    edges.push({ from: before ?? read ?? START, to: run.run });
    for (const { decision } of run.decisions) {
      const id = `${run.run} ${decision.position}`;
      nodes.push({ id, kind: spoken(decision.stage), label: brief(decision.chosen, 60), href: to.decision(run.run, decision.step), tone: "bad" });
      edges.push({ from: run.run, to: id });
    }
  }
  for (const exported of impact.exports) {
    nodes.push({ id: exported.id, kind: "training export", label: exported.sentence });
    for (const run of exported.runs) edges.push({ from: run, to: exported.id });
  }
  return { nodes, edges };
}
