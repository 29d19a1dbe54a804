import { expect, it } from "vitest";
import { knownStops, stopOf, trueStops } from "./moments";

const step = (position: number, agent: string, from: string, fields: string[], op = "assert") => ({
  position,
  deleted: false,
  observation: { agent, observed_at: from, valid_from: from, op },
  changes: fields.map((field) => ({ field })),
});
const steps = [
  step(3, "crm", "2026-01-05T09:00:00Z", ["city", "name"]),
  step(7, "web", "2026-03-01T12:00:00Z", ["city"]),
  step(9, "crm", "2026-02-10T08:00:00Z", []),
  step(12, "ann", "2026-03-01T12:00:00Z", ["city"], "correct"),
];

it("stops at what was said, in the order of the log", () => {
  expect(knownStops(steps).map((stop) => [stop.value, stop.label])).toEqual([
    ["3", "crm stated city, name, seen 5 Jan 2026, 09:00 UTC"],
    ["7", "web stated city, seen 1 Mar 2026, 12:00 UTC"],
    ["9", "crm said something that changed nothing, seen 10 Feb 2026, 08:00 UTC"],
    ["12", "ann corrected city, seen 1 Mar 2026, 12:00 UTC"],
  ]);
});

it("stops at times from which something is true, by time", () => {
  expect(trueStops(steps).map((stop) => stop.value)).toEqual([
    "2026-01-05T09:00:00Z",
    "2026-02-10T08:00:00Z",
    "2026-03-01T12:00:00Z",
  ]);
});

it("finds the stop of a moment that was asked for", () => {
  const stops = knownStops(steps);
  expect(stopOf(stops, null)).toBe(4);
  expect(stopOf(stops, "7")).toBe(1);
  expect(stopOf(stops, "8")).toBe(1);
  expect(stopOf(stops, "0")).toBe(0);
});
