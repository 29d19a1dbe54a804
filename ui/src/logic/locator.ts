/** Where in a text something was read: the lines that a locator names. */

export interface Locator {
  page?: number;
  line?: number;
  end_line?: number;
  quote?: string;
  pointer?: string;
}

/** Split a text into lines as editors do. */
export function linesOf(text: string): string[] {
  return text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n");
}

/** Return the indexes of the lines in a locator; none if the text does not have that place. */
export function markedLines(lines: string[], locator: Locator): Set<number> {
  if (locator.line !== undefined) return range(lines, locator.line - 1, (locator.end_line ?? locator.line) - 1);
  if (locator.quote) {
    const text = lines.join("\n");
    const found = text.indexOf(locator.quote);
    if (found >= 0) return ofCharacters(lines, found, found + locator.quote.length);
  }
  return new Set();
}

function range(lines: string[], first: number, last: number): Set<number> {
  const marked = new Set<number>();
  for (let index = Math.max(first, 0); index <= Math.min(last, lines.length - 1); index += 1) marked.add(index);
  return marked;
}

function ofCharacters(lines: string[], start: number, end: number): Set<number> {
  const marked = new Set<number>();
  let offset = 0;
  for (const [index, line] of lines.entries()) {
    if (offset < end && offset + line.length >= start) marked.add(index);
    offset += line.length + 1;
    if (offset >= end) break;
  }
  return marked;
}

/** `page 2, line 3`: a place in words; empty if the locator has only a quote. */
export function placeInWords(locator: Locator): string {
  const parts: string[] = [];
  if (locator.page !== undefined) parts.push(`page ${locator.page}`);
  if (locator.line !== undefined) {
    const many = locator.end_line !== undefined && locator.end_line !== locator.line;
    parts.push(many ? `lines ${locator.line} to ${locator.end_line}` : `line ${locator.line}`);
  }
  if (locator.pointer !== undefined) parts.push(locator.pointer === "" ? "the whole document" : `at ${locator.pointer}`);
  return parts.join(", ");
}
