/** A recorded run as a pytest test, for the plugin that comes with Woodrat. */

function literal(text: string): string {
  return JSON.stringify(text);
}

/** A name that Python accepts, of the words of a question. */
export function testName(query: string | null, run: string): string {
  const words = (query ?? "").toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 60);
  return `test_${words || run}`.replace(/_+$/, "");
}

export function pytestOf(run: string, query: string | null, tenant: string | null): string {
  const where = tenant && tenant !== "default" ? `, tenant=${literal(tenant)}` : "";
  return [
    "import pytest",
    "",
    "from my_agent import agent  # the function that was recorded: agent(run)",
    "",
    "",
    `@pytest.mark.woodrat_replay("agents.db"${where}, runs=[${literal(run)}])`,
    `def ${testName(query, run)}(woodrat_replay):`,
    "    woodrat_replay(agent)",
    "",
  ].join("\n");
}
