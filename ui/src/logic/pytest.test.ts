import { expect, it } from "vitest";
import { pytestOf, testName } from "./pytest";

it("makes a test of a run", () => {
  expect(testName("Should we approve application #42?", "run_1")).toBe("test_should_we_approve_application_42");
  expect(testName("何", "run_1")).toBe("test_run_1");
  expect(pytestOf("run_1", "Approve?", "lending")).toContain(
    '@pytest.mark.woodrat_replay("agents.db", tenant="lending", runs=["run_1"])\ndef test_approve(woodrat_replay):',
  );
});
