/** A small router on the history API: the path and the query of the page that is open. */

import type { Component } from "svelte";
import { match, type Params } from "./logic/paths";

type PageComponent = Component<{ params: Params }>;

export interface Route {
  pattern: string;
  /** The file in `pages/` that shows it, without its ending. */
  page: string;
  title: string;
}

export const ROUTES: Route[] = [
  { pattern: "/", page: "Home", title: "Home" },
  { pattern: "/runs", page: "Runs", title: "Runs" },
  { pattern: "/runs/:run", page: "Run", title: "Run" },
  { pattern: "/compare", page: "Compare", title: "Compare" },
  { pattern: "/decisions/:run/:number", page: "Decision", title: "Decision" },
  { pattern: "/entities", page: "Entities", title: "Entities" },
  { pattern: "/entities/*ref", page: "Entity", title: "Entity" },
  { pattern: "/sources", page: "Sources", title: "Documents" },
  { pattern: "/sources/:source", page: "Source", title: "Document" },
  { pattern: "/impact", page: "Impact", title: "Impact" },
  { pattern: "/stale", page: "Stale", title: "Stale decisions" },
  { pattern: "/conflicts", page: "Conflicts", title: "Conflicts" },
  { pattern: "/duplicates", page: "Duplicates", title: "Duplicates" },
  { pattern: "/what-if", page: "WhatIf", title: "What-if" },
  { pattern: "/recall", page: "Recall", title: "Recall" },
  { pattern: "/log", page: "Log", title: "Log" },
  { pattern: "/log/:position", page: "LogEntry", title: "Log entry" },
  { pattern: "/schemas", page: "Schemas", title: "Schemas" },
  { pattern: "/schemas/:type", page: "Schema", title: "Schema" },
  { pattern: "/admin", page: "Admin", title: "Administration" },
  { pattern: "/sign-in", page: "SignIn", title: "Sign in" },
];

const FILES = import.meta.glob<{ default: PageComponent }>("./pages/*.svelte");

/** Return the loader of a page's file; undefined where there is no such file. */
export function pageLoader(page: string): (() => Promise<{ default: PageComponent }>) | undefined {
  return FILES[`./pages/${page}.svelte`];
}

class Router {
  path = $state(location.pathname);
  search = $state(location.search);
  query = $derived(new URLSearchParams(this.search));
  matched = $derived.by(() => {
    for (const route of ROUTES) {
      const params = match(route.pattern, this.path);
      if (params && pageLoader(route.page)) return { route, params };
    }
    return null;
  });

  /** The path with its query, for links back to this page. */
  get here(): string {
    return this.path + this.search;
  }

  go(url: string, options: { replace?: boolean; keepScroll?: boolean } = {}): void {
    const target = new URL(url, location.href);
    if (options.replace) history.replaceState(null, "", target);
    else history.pushState(null, "", target);
    const newPage = target.pathname !== this.path;
    this.read();
    if (newPage && !options.keepScroll) {
      scrollTo(0, 0);
      document.getElementById("main")?.focus({ preventScroll: true });
    }
  }

  /** Change parameters of the query in place; null takes one out. */
  setQuery(changes: Record<string, string | number | null | undefined>, replace = true): void {
    const query = new URLSearchParams(this.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") query.delete(name);
      else query.set(name, String(value));
    }
    const text = query.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%3A", ":");
    this.go(this.path + (text ? `?${text}` : ""), { replace, keepScroll: true });
  }

  read(): void {
    this.path = location.pathname;
    this.search = location.search;
  }
}

export const router = new Router();

/** Follow links inside the app without loading it again. */
export function startRouter(): void {
  addEventListener("popstate", () => router.read());
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
    if (link.origin !== location.origin) return;
    if (!ROUTES.some((route) => match(route.pattern, link.pathname))) return;
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    router.go(link.href);
  });
}
