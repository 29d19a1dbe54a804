/** Where the log ends, asked every few seconds while the page is in view: reads that look at `live.changes` follow it. */

import { answer, client } from "./api/client";

const FIRST_MS = 10_000;
const EVERY_MS = 5000;

class Live {
  /** The last position seen; undefined before the first answer. */
  head = $state<number | undefined>(undefined);
  /** How often the log was seen to have grown since the page was opened. */
  changes = $state(0);
  /** Whether the last question was answered. */
  connected = $state(true);
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Note where the log ended when something was read, so that what is written before the first question counts too. */
  note(position: number): void {
    this.head ??= position;
  }

  /** Begin to ask; return how to stop. */
  follow(): () => void {
    const ask = async () => {
      if (document.visibilityState === "visible") {
        try {
          const { position } = await answer(client.GET("/v1/position"));
          if (this.head !== undefined && position !== this.head) this.changes += 1;
          this.head = position;
          this.connected = true;
        } catch {
          this.connected = false;
        }
      }
      this.#timer = setTimeout(ask, EVERY_MS);
    };
    this.#timer = setTimeout(ask, FIRST_MS);
    return () => clearTimeout(this.#timer);
  }
}

export const live = new Live();
