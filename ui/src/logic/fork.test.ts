import { expect, test } from "vitest";
import { editableAt, forkCommand, forkTest, python, typedValue } from "./fork";

const FORK = { run: "run_x", step: 2, path: "fields.terms", value: "Net-45", query: "How is kline to pay?" };

test("what a step recorded can be edited, by the names that forks and rules use", () => {
  const fields = { terms: { observation: "obs_1", value: "Net-30" }, id: "kline" };
  expect(editableAt("run.read", { entity: "contract/kline", fields })).toEqual([
    { path: "fields.terms", label: "terms", value: "Net-30", fact: "contract/kline#terms" },
    { path: "fields.id", label: "id", value: "kline", fact: "contract/kline#id" },
  ]);
  expect(editableAt("run.tool", { result: { credit_limit: 5 } })).toEqual([
    { path: "result.credit_limit", label: "credit limit", value: 5, fact: "credit_limit" },
  ]);
  expect(editableAt("run.tool", { result: [1] })).toEqual([{ path: "result", label: "result", value: [1], fact: null }]);
  expect(editableAt("run.tool", { error: "late" })).toEqual([]);
  expect(editableAt("run.started", { inputs: { amount: 9 } })[0]?.path).toBe("inputs.amount");
  expect(editableAt("run.decided", { chosen: "a" })).toEqual([]);
});

test("what is typed keeps the kind of what was recorded", () => {
  expect(typedValue("45", "Net-30")).toBe("45");
  expect(typedValue("45", 30)).toBe(45);
  expect(typedValue("none of it", 30)).toBe("none of it");
});

test("the command and the test carry the edited value", () => {
  expect(forkCommand(FORK)).toBe("woodrat runs fork run_x --at 2 --set fields.terms=Net-45 --with my_agent:agent");
  expect(forkCommand({ ...FORK, value: "45" })).toContain(`--set 'fields.terms="45"'`);
  expect(forkCommand({ ...FORK, value: 45 })).toContain("--set fields.terms=45");
  const code = forkTest({ ...FORK, value: [true, null, { a: 'x"y' }] }, "demo");
  expect(code).toContain("def test_how_is_kline_to_pay_forked():");
  expect(code).toContain(`woodrat.open("agents.db", tenant="demo")`);
  expect(code).toContain(`edited = {"fields.terms": [True, None, {"a": "x\\"y"}]}`);
  expect(python("é")).toBe('"é"');
});
