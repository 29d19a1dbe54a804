import { describe, expect, it } from "vitest";
import { match, to } from "./paths";
import { curl, get, post, shell } from "./shell";

describe("paths", () => {
  it("matches words, names and the rest", () => {
    expect(match("/", "/")).toEqual({});
    expect(match("/runs/:run", "/runs/run_1")).toEqual({ run: "run_1" });
    expect(match("/runs/:run", "/runs")).toBeNull();
    expect(match("/runs", "/runs/run_1")).toBeNull();
    expect(match("/entities/*ref", "/entities/repo/org/na%2Fme")).toEqual({ ref: "repo/org/na/me" });
    expect(match("/entities/*ref", "/entities/contact/100%")).toEqual({ ref: "contact/100%" });
  });

  it("makes addresses that come back as they were", () => {
    for (const ref of ["contact/Ana Rivera", "repo/org/name", "contact/a?b#c&d", "contact/مرحبا 🐀"]) {
      const address = new URL(to.entity(ref, { as_of: 12 }), "http://127.0.0.1");
      expect(match("/entities/*ref", address.pathname)).toEqual({ ref });
      expect(address.searchParams.get("as_of")).toBe("12");
    }
    expect(to.compare(["a", "b"])).toBe("/compare?runs=a,b");
  });
});

describe("shell", () => {
  it("quotes what a shell would split", () => {
    expect(shell("woodrat", "show", "contact/Ana Rivera")).toBe("woodrat show 'contact/Ana Rivera'");
    expect(shell("woodrat", "show", "contact/O'Neil", "--as-of", 3, null)).toBe(
      `woodrat show 'contact/O'"'"'Neil' --as-of 3`,
    );
  });

  it("writes calls for curl", () => {
    expect(curl(get("/v1/runs", { limit: 5, agent: null }), "http://h", false)).toBe("curl 'http://h/v1/runs?limit=5'");
    expect(curl(post("/v1/runs/diff", { first: "a" }), "http://h", true)).toBe(
      `curl -H "Authorization: Bearer $WOODRAT_TOKEN" -H 'Content-Type: application/json' -d '{"first":"a"}' http://h/v1/runs/diff`,
    );
  });
});
