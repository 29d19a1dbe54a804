/**
 * Where the log ends, as it grows: reads that look at `live.changes` follow it.
 *
 * The server streams the log while the page is in view. Where the stream breaks, the end of the log is asked for every
 * few seconds until a stream can be had again. A log that is being filled is asked too: nobody reads so many entries.
 */

import { answer, client } from "./api/client";

const FIRST_MS = 1500;
/** Number of first answers to wait for, which usually include the log's head, before asking for it. */
const FIRST_WAITS = 6;
const POLL_MS = 3000;
/** Time during which changes are collected, so that a burst of entries causes one read. */
const GATHER_MS = 250;
/** More entries in a second than this are not taken one by one. */
const BURST = 200;
const BURST_PAUSE_MS = 30_000;

class Live {
  /** The last position seen; undefined before the first answer. */
  head = $state<number | undefined>(undefined);
  /** Number of times the log has grown since the page was opened. */
  changes = $state(0);
  /** Whether the server answered last time. */
  connected = $state(true);
  #stream: EventSource | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #gather: ReturnType<typeof setTimeout> | undefined;
  #streamAfter = 0;
  #second = 0;
  #taken = 0;

  /** Note the head of the log at a read, so that writes before the first poll count too. */
  note(position: number): void {
    this.head ??= position;
  }

  /** Begin to follow; return how to stop. */
  follow(): () => void {
    const seen = () => {
      this.#stop();
      if (document.visibilityState === "visible") void this.#ask();
    };
    document.addEventListener("visibilitychange", seen);
    this.#begin(FIRST_WAITS);
    return () => {
      document.removeEventListener("visibilitychange", seen);
      this.#stop();
    };
  }

  /** Have the stream once it is known where the log ends. */
  #begin(waits: number): void {
    this.#timer = setTimeout(() => {
      if (this.head !== undefined) this.#open();
      else if (waits) this.#begin(waits - 1);
      else void this.#ask();
    }, FIRST_MS);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#stream?.close();
    this.#stream = undefined;
  }

  #grown(position: number): void {
    if (position === this.head) return;
    this.head = position;
    this.#gather ??= setTimeout(() => {
      this.#gather = undefined;
      this.changes += 1;
    }, GATHER_MS);
  }

  /** Ask where the log ends, then have its stream from there on; where that fails, ask again later. */
  async #ask(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const { position } = await answer(client.GET("/v1/position"));
      this.connected = true;
      if (this.head === undefined) this.head = position;
      else this.#grown(position);
      if (document.visibilityState !== "visible") return;
      if (performance.now() >= this.#streamAfter) return this.#open();
    } catch {
      this.connected = false;
    }
    this.#timer = setTimeout(() => void this.#ask(), POLL_MS);
  }

  #open(): void {
    if (document.visibilityState !== "visible") return;
    this.#stream?.close();
    const stream = new EventSource(`/v1/log?after=${this.head ?? -1}`);
    this.#stream = stream;
    stream.onopen = () => (this.connected = true);
    stream.addEventListener("entry", (event) => {
      const second = Math.floor(performance.now() / 1000);
      this.#taken = second === this.#second ? this.#taken + 1 : 1;
      this.#second = second;
      this.#grown(Number(event.lastEventId));
      if (this.#taken > BURST) this.#fallBack(BURST_PAUSE_MS);
    });
    // The browser would try again by itself, but it cannot say why it failed: a question tells.
    stream.onerror = () => this.#fallBack(POLL_MS);
  }

  #fallBack(pause: number): void {
    this.#stop();
    this.#streamAfter = performance.now() + pause;
    void this.#ask();
  }
}

export const live = new Live();
