// Calls every method of Neotoma's TypeScript client at a server, and prints the names of the methods in their order.
// Arguments: the client's module and the base URL.
const [, , module, baseUrl] = process.argv;
const { NeotomaClient } = await import(module);
const client = new NeotomaClient({ transport: "http", baseUrl, token: "dev-local" });

const ana = { entity_type: "contact", name: "Ana Rivera", email: "ana@example.org" };
const task = { entity_type: "task", title: "Ship", status: "todo", due_date: "2026-03-01" };
const stored = await client.store({ entities: [ana, task], idempotency_key: "k" });
const [first, second] = stored.entities.map((item: { entity_id: string }) => item.entity_id);
const link = { relationship_type: "REFERS_TO", source_entity_id: first, target_entity_id: second };

const calls: [string, ...unknown[]][] = [
  ["retrieveEntities", { entity_type: "contact", limit: 5 }],
  ["retrieveEntityByIdentifier", { identifier: "Ana Rivera" }],
  ["retrieveEntitySnapshot", { entity_id: first }],
  ["listObservations", { entity_id: first }],
  ["listTimelineEvents", { limit: 5 }],
  ["retrieveRelatedEntities", { entity_id: first }],
  ["createRelationship", link],
  ["createRelationships", { relationships: [{ ...link, relationship_type: "PART_OF" }] }],
  ["correct", { entity_id: first, corrections: { role: "cook" } }],
  ["listEntityTypes", { search: "task" }],
  ["getEntityTypeCounts", {}],
  ["executeTool", "list_relationships", { entity_id: first }],
];
for (const [name, ...given] of calls) {
  try {
    await client[name](...given);
  } catch (error) {
    // The status is in the recording.
  }
}
await client.dispose();
console.log(JSON.stringify(["store", ...calls.map(([name]) => name)]));
