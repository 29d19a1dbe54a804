/** The signed-in caller and its permissions. A loopback server without keys has no sessions: then everything is allowed. */

import { problemOf, type ApiProblem } from "./logic/problem";

export type Grant = "read" | "write" | "correct" | "run" | "manage";

interface SessionAnswer {
  keys_required: boolean;
  signed_in: boolean;
  tenant: string | null;
  agent: string | null;
  grants: string[] | null;
  read_only: boolean;
  csrf_token: string | null;
  version: string | null;
}

const OPEN: SessionAnswer = {
  keys_required: false,
  signed_in: true,
  tenant: null,
  agent: null,
  grants: null,
  read_only: false,
  csrf_token: null,
  version: null,
};

class Session {
  answer = $state.raw<SessionAnswer>(OPEN);
  loaded = $state(false);
  problem = $state.raw<ApiProblem | null>(null);

  get keysRequired(): boolean {
    return this.answer.keys_required;
  }

  get signedIn(): boolean {
    return !this.answer.keys_required || this.answer.signed_in;
  }

  get csrfToken(): string | null {
    return this.answer.csrf_token;
  }

  /** Whether a control that needs a grant is to be shown; the server decides again at the call. */
  may(grant: Grant): boolean {
    if (grant === "read") return true;
    if (this.answer.read_only) return false;
    const grants = this.answer.grants;
    if (!this.answer.keys_required || !grants) return true;
    return grants.some((name) => name === grant || name === "*" || name.startsWith(`${grant}:`));
  }

  async load(): Promise<void> {
    try {
      const response = await fetch("/session", { headers: { accept: "application/json" } });
      if (response.status === 404) this.answer = OPEN;
      else if (response.ok) this.answer = (await response.json()) as SessionAnswer;
      else throw await problemOf(response);
      this.problem = null;
    } catch (error) {
      this.problem = await problemOf(error);
    }
    this.loaded = true;
  }

  async signIn(key: string): Promise<void> {
    const response = await fetch("/session", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ key }),
    });
    if (!response.ok) throw await problemOf(response);
    await this.load();
  }

  async signOut(): Promise<void> {
    const headers: Record<string, string> = this.csrfToken ? { "X-CSRF-Token": this.csrfToken } : {};
    await fetch("/session", { method: "DELETE", headers });
    await this.load();
  }

  /** The server no longer knows the session: show the sign-in page. */
  expire(): void {
    if (this.answer.keys_required) this.answer = { ...this.answer, signed_in: false, csrf_token: null };
    else void this.load();
  }
}

export const session = new Session();
