/** The typed client: paths, parameters and answers are those of the OpenAPI document (`schema.d.ts`). */

import createClient from "openapi-fetch";
import { ApiProblem, fromDocument, problemOf } from "../logic/problem";
import { session } from "../session.svelte";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** Reads that travel as POST; they need a CSRF token all the same, and change nothing. */
async function send(request: Request): Promise<Response> {
  if (request.method !== "GET" && session.csrfToken) request.headers.set("X-CSRF-Token", session.csrfToken);
  const response = await fetch(request);
  if (response.status === 401) session.expire();
  return response;
}

export const client = createClient<paths>({ baseUrl: location.origin, fetch: send });

/** Return the answer of a call of `client`; throw an `ApiProblem` if it failed. */
export async function answer<T>(
  call: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<NonNullable<T>> {
  let outcome;
  try {
    outcome = await call;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw await problemOf(error);
  }
  if (!outcome.response.ok) throw fromDocument(outcome.error, outcome.response.status);
  return outcome.data as NonNullable<T>;
}

/** A key for one write, so that a call sent twice is written once. */
export function writeKey(): Record<string, string> {
  return { "Idempotency-Key": crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` };
}

export { ApiProblem };
