/** Problems: every failed call becomes one of these, whether the server said why or did not answer at all. */

export interface Fault {
  path: string;
  problem: string;
  remedy?: string;
}

/** The problem, its subject, the effect on the data, the remedy: as far as the server gives them. */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    readonly detail: string,
    readonly faults: Fault[] = [],
    readonly details: Record<string, unknown> = {},
    readonly instance: string | null = null,
  ) {
    super(detail || title);
  }

  get missing(): boolean {
    return this.code === "not_found";
  }

  /** Whether the server could not be reached; a later try may succeed. */
  get unreachable(): boolean {
    return this.code === "unreachable";
  }
}

const UNREACHABLE = new ApiProblem(
  0,
  "unreachable",
  "The server does not answer.",
  "The call did not reach the server. Nothing was changed. Check that `woodrat serve` is running; this page tries again by itself.",
);

/** Make a problem of a response that is not 2xx, of its parsed body, or of whatever was thrown. */
export async function problemOf(cause: unknown): Promise<ApiProblem> {
  if (cause instanceof ApiProblem) return cause;
  if (cause instanceof Response) {
    const text = await cause.text().catch(() => "");
    try {
      return fromDocument(JSON.parse(text), cause.status);
    } catch {
      return gatewayProblem(cause.status, text);
    }
  }
  if (cause instanceof TypeError) return UNREACHABLE;
  const text = cause instanceof Error ? cause.message : String(cause);
  return new ApiProblem(0, "internal", "This page could not be shown.", text);
}

export function fromDocument(body: unknown, status: number): ApiProblem {
  if (!body || typeof body !== "object") return gatewayProblem(status, String(body ?? ""));
  const document = body as Record<string, unknown>;
  const details = (document.details ?? {}) as Record<string, unknown>;
  const faults = Array.isArray(details.faults) ? (details.faults as Fault[]) : [];
  const string = (name: string) => (typeof document[name] === "string" ? (document[name] as string) : "");
  if (!string("title") && !string("detail")) return gatewayProblem(status, "");
  return new ApiProblem(
    status,
    string("code") || "unavailable",
    string("title"),
    string("detail"),
    faults,
    details,
    string("instance") || null,
  );
}

function gatewayProblem(status: number, text: string): ApiProblem {
  if (status === 0 || status === 502 || status === 503 || status === 504) return UNREACHABLE;
  return new ApiProblem(status, "unavailable", `The server answered with status ${status}.`, text.slice(0, 2000));
}
