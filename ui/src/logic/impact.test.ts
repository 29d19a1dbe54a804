import { describe, expect, it } from "vitest";
import { impactGraph } from "./impact";

const read = { entity: "loan/42" };
const decision = { stage: "classify-risk", chosen: "rejected", position: 7, step: 2 };
const IMPACT = {
  kind: "source",
  id: "src_a",
  fields: [
    { entity: "loan/42", field: "creditScore", distance: 0 },
    { entity: "loan/42", field: "applicant", distance: 0 },
  ],
  runs: [
    { run: "run_1", agent: "officer", query: "Approve?", reads: [{ read }], decisions: [{ decision }], through_run: null },
    { run: "run_2", agent: "support", query: "Why?", reads: [], decisions: [], through_run: "run_1" },
  ],
  exports: [{ id: "exp_1", sentence: "1 row for TRL", runs: ["run_2"] }],
} as never;

describe("the graph of an impact", () => {
  const { nodes, edges } = impactGraph(IMPACT, "report.txt");
  it("has one box for each entity, with its fields", () =>
    expect(nodes.filter((node) => node.kind === "entity").map((node) => node.note)).toEqual(["credit score, applicant"]));
  it("leads from the origin through what was read to the decision and the export", () =>
    expect(edges).toEqual([
      { from: "start", to: "entity loan/42" },
      { from: "entity loan/42", to: "run_1" },
      { from: "run_1", to: "run_1 7" },
      { from: "run_1", to: "run_2" },
      { from: "run_2", to: "exp_1" },
    ]));
});
