import { expect, test } from "vitest";
import { eventsOf, type ServerEvent } from "./events";

async function all(...parts: string[]): Promise<ServerEvent[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
      controller.close();
    },
  });
  const found: ServerEvent[] = [];
  for await (const event of eventsOf(body)) found.push(event);
  return found;
}

test("events are whole wherever the parts are cut", async () => {
  const text = 'event: progress\ndata: {"done":1}\n\n: still here\n\nevent: result\ndata: {"a":"é"}\ndata: more\n\n';
  const wanted = [
    { event: "progress", data: '{"done":1}' },
    { event: "result", data: '{"a":"é"}\nmore' },
  ];
  expect(await all(text)).toEqual(wanted);
  expect(await all(...text.split(""))).toEqual(wanted);
});

test("an event that the end cuts off is none", async () => {
  expect(await all("data: 1\n\ndata: 2\n")).toEqual([{ event: "message", data: "1" }]);
});
