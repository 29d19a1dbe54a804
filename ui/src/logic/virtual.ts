/** Which rows of a long list to render: heights are guessed until they are measured. */

export class RowHeights {
  #heights: Float64Array;
  #offsets: Float64Array;
  #dirty = 0;

  constructor(
    readonly count: number,
    readonly guess: number,
  ) {
    this.#heights = new Float64Array(count).fill(guess);
    this.#offsets = new Float64Array(count + 1);
  }

  /** Note a row's measured height; return whether it is another than before. */
  set(row: number, height: number): boolean {
    if (row < 0 || row >= this.count || Math.abs(this.#heights[row]! - height) < 0.5) return false;
    this.#heights[row] = height;
    this.#dirty = Math.min(this.#dirty, row);
    return true;
  }

  #settle(): void {
    for (let row = this.#dirty; row < this.count; row += 1) {
      this.#offsets[row + 1] = this.#offsets[row]! + this.#heights[row]!;
    }
    this.#dirty = this.count;
  }

  /** Where a row begins; of the row after the last, how high all are together. */
  offset(row: number): number {
    this.#settle();
    return this.#offsets[Math.max(0, Math.min(row, this.count))]!;
  }

  get total(): number {
    return this.offset(this.count);
  }

  /** The row at a height. */
  at(height: number): number {
    this.#settle();
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#offsets[middle + 1]! <= height) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, Math.max(0, this.count - 1));
  }

  /** The rows between two heights and some more on both sides, never more than `max`. */
  window(top: number, bottom: number, more: number, max: number): { first: number; end: number } {
    if (!this.count) return { first: 0, end: 0 };
    const first = Math.max(0, this.at(Math.max(0, top)) - more);
    const end = Math.min(this.count, this.at(Math.max(0, bottom)) + 1 + more);
    return { first, end: Math.min(end, first + max) };
  }
}
