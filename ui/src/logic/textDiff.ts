/** Text beside text: lines that are the same, lines that differ, and within those the words. */

export interface Piece {
  kind: "same" | "first" | "second";
  text: string;
}

const CELLS_MAX = 4_000_000;

/** The longest common subsequence of two lists, as pieces; lists too long to compare are taken as all different. */
export function compareLists(first: string[], second: string[]): Piece[] {
  let head = 0;
  while (head < first.length && head < second.length && first[head] === second[head]) head += 1;
  let tail = 0;
  while (
    tail < first.length - head &&
    tail < second.length - head &&
    first[first.length - 1 - tail] === second[second.length - 1 - tail]
  ) {
    tail += 1;
  }
  const a = first.slice(head, first.length - tail);
  const b = second.slice(head, second.length - tail);
  const pieces: Piece[] = first.slice(0, head).map((text) => ({ kind: "same", text }));
  pieces.push(...middle(a, b));
  pieces.push(...first.slice(first.length - tail).map((text): Piece => ({ kind: "same", text })));
  return pieces;
}

function middle(a: string[], b: string[]): Piece[] {
  const removed = a.map((text): Piece => ({ kind: "first", text }));
  const added = b.map((text): Piece => ({ kind: "second", text }));
  if (!a.length || !b.length || a.length * b.length > CELLS_MAX) return [...removed, ...added];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const pieces: Piece[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      pieces.push({ kind: "same", text: a[i]! });
      i += 1;
      j += 1;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) pieces.push(removed[i++]!);
    else pieces.push(added[j++]!);
  }
  return [...pieces, ...removed.slice(i), ...added.slice(j)];
}

export interface Line {
  kind: "same" | "first" | "second" | "skipped";
  pieces: Piece[];
}

const CONTEXT = 2;

const words = (text: string) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** Lines of two texts; a changed line is compared word by word, and long stretches that are the same are skipped. */
export function compareTexts(first: string, second: string): Line[] {
  const lines = compareLists(first.split("\n"), second.split("\n"));
  const found: Line[] = [];
  for (let index = 0; index < lines.length; ) {
    if (lines[index]!.kind === "same") {
      found.push({ kind: "same", pieces: [lines[index]!] });
      index += 1;
      continue;
    }
    const removed: string[] = [];
    const added: string[] = [];
    while (index < lines.length && lines[index]!.kind !== "same") {
      (lines[index]!.kind === "first" ? removed : added).push(lines[index]!.text);
      index += 1;
    }
    const paired = Math.min(removed.length, added.length);
    const ofFirst: Line[] = [];
    const ofSecond: Line[] = [];
    for (let place = 0; place < paired; place += 1) {
      const pieces = compareLists(words(removed[place]!), words(added[place]!));
      ofFirst.push({ kind: "first", pieces: pieces.filter((piece) => piece.kind !== "second") });
      ofSecond.push({ kind: "second", pieces: pieces.filter((piece) => piece.kind !== "first") });
    }
    ofFirst.push(...removed.slice(paired).map((text): Line => ({ kind: "first", pieces: [{ kind: "first", text }] })));
    ofSecond.push(...added.slice(paired).map((text): Line => ({ kind: "second", pieces: [{ kind: "second", text }] })));
    found.push(...ofFirst, ...ofSecond);
  }
  return skipSame(found);
}

function skipSame(lines: Line[]): Line[] {
  const near = lines.map((line, index) =>
    lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some((other) => other.kind !== "same"),
  );
  const found: Line[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    if (near[index]) found.push(lines[index]!);
    else if (found.at(-1)?.kind === "skipped") found.at(-1)!.pieces.push(...lines[index]!.pieces);
    else found.push({ kind: "skipped", pieces: [...lines[index]!.pieces] });
  }
  return found;
}
