/** Moments of one entity: the stops of its two time sliders. */

import { when } from "./format";

export interface Stop {
  /** What the read is asked with: a position, or a time. */
  value: string;
  /** When it was: an entry of the log, or a time. */
  at: string;
  /** The agent of an observation, and its changes. */
  label: string;
}

interface HistoryStep {
  position: number;
  deleted: boolean;
  observation: { agent: string; observed_at: string; valid_from?: unknown; op: string; reason?: unknown };
  changes: { field: string }[];
}

/** Stops of *known at*: one for each observation, in the order the log got them. */
export function knownStops(steps: HistoryStep[]): Stop[] {
  return steps.map((step) => ({
    value: String(step.position),
    at: `entry ${step.position}`,
    label: `${step.observation.agent} ${said(step)}, seen ${when(step.observation.observed_at)}`,
  }));
}

function said(step: HistoryStep): string {
  const names = step.changes.map((change) => change.field);
  if (step.observation.op === "delete") return "deleted it";
  if (step.observation.op === "restore") return "restored it";
  if (step.observation.op === "retract") return "withdrew something";
  if (!names.length) return "said something that changed nothing";
  const shown = names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
  return `${step.observation.op === "correct" ? "corrected" : "stated"} ${shown}`;
}

/** Stops of *true at*: each time from which something is true, once, by time. */
export function trueStops(steps: HistoryStep[]): Stop[] {
  const times = new Map<string, string>();
  for (const step of steps) {
    const from = typeof step.observation.valid_from === "string" ? step.observation.valid_from : step.observation.observed_at;
    const names = step.changes.map((change) => change.field).slice(0, 3).join(", ");
    times.set(from, [times.get(from), names].filter(Boolean).join(", ") || "nothing new");
  }
  return [...times]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([value, names]) => ({ value, at: value, label: `from then on: ${names}` }));
}

/** The position of a slider for the requested value; the end by default. */
export function stopOf(stops: Stop[], asked: string | null): number {
  if (asked === null) return stops.length;
  const exact = stops.findIndex((stop) => stop.value === asked);
  if (exact >= 0) return exact;
  const number = /^\d+$/.test(asked) ? Number(asked) : null;
  let place = -1;
  stops.forEach((stop, index) => {
    const before = number === null ? stop.value <= asked : Number(stop.value) <= number;
    if (before) place = index;
  });
  return Math.max(0, place);
}
