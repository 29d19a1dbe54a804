/** Reads that follow their arguments: loading, value and problem as reactive state. */

import { live } from "../live.svelte";
import { ApiProblem, problemOf } from "../logic/problem";

const RETRY_MS = 3000;

/**
 * One read. The fetcher runs at once and again when reactive values it reads before its first `await` change. While it
 * runs again, the last value stays, so that the page does not jump. Make it while a component is set up. Where the server
 * cannot be reached it tries again by itself.
 */
export class Read<T> {
  value = $state.raw<T | undefined>(undefined);
  problem = $state.raw<ApiProblem | null>(null);
  loading = $state(true);
  #again = $state(0);

  constructor(fetcher: (signal: AbortSignal) => Promise<T>, options: { keep?: boolean } = {}) {
    const keep = options.keep ?? true;
    $effect(() => {
      void this.#again;
      const controller = new AbortController();
      let retry: ReturnType<typeof setTimeout> | undefined;
      this.loading = true;
      if (!keep) this.value = undefined;
      fetcher(controller.signal).then(
        (value) => {
          if (controller.signal.aborted) return;
          notePosition(value);
          this.value = value;
          this.problem = null;
          this.loading = false;
        },
        async (error: unknown) => {
          if (controller.signal.aborted) return;
          const problem = await problemOf(error);
          if (controller.signal.aborted) return;
          this.problem = problem;
          if (!problem.unreachable) this.value = undefined;
          else retry = setTimeout(() => this.reload(), RETRY_MS);
          this.loading = false;
        },
      );
      return () => {
        clearTimeout(retry);
        controller.abort();
      };
    });
  }

  reload(): void {
    this.#again += 1;
  }
}

/** Most answers say at which position of the log they were made. */
function notePosition(value: unknown): void {
  const position = (value as { position?: unknown } | null | undefined)?.position;
  if (typeof position === "number") live.note(position);
}

interface Page<T> {
  items: T[];
  cursor?: string | null;
}

/** A list that is read page by page; `more()` reads the next one. */
export class Pages<T> {
  items = $state.raw<T[]>([]);
  problem = $state.raw<ApiProblem | null>(null);
  loading = $state(true);
  next = $state<string | null>(null);
  #again = $state(0);
  #fetcher: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>;
  #controller = new AbortController();

  constructor(fetcher: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>) {
    this.#fetcher = fetcher;
    $effect(() => {
      void this.#again;
      this.#controller = new AbortController();
      const controller = this.#controller;
      this.loading = true;
      void this.#take(undefined, controller);
      return () => controller.abort();
    });
  }

  async #take(cursor: string | undefined, controller: AbortController): Promise<void> {
    try {
      const page = await this.#fetcher(cursor, controller.signal);
      if (controller.signal.aborted) return;
      notePosition(page);
      this.items = cursor === undefined ? page.items : [...this.items, ...page.items];
      this.next = page.cursor ?? null;
      this.problem = null;
    } catch (error) {
      if (controller.signal.aborted) return;
      this.problem = await problemOf(error);
    }
    this.loading = false;
  }

  async more(): Promise<void> {
    if (this.loading || this.next === null) return;
    this.loading = true;
    await this.#take(this.next, this.#controller);
  }

  reload(): void {
    this.#again += 1;
  }
}
