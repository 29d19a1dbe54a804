#!/usr/bin/env node
// woodrat-verify: check a Woodrat capsule, proof or checkpoint offline, and say in plain words what is proven.
//
//     node woodrat-verify.mjs FILE --key VKEY [--checkpoint NOTE] [--json]
//
// The second verifier. It needs Node 18 or newer and nothing else, was written from docs/formats/ as the first one was
// (woodrat_verify.py), and gives the same verdict, code, record and words on every file.
//
// Exit code 0: proven. 1: refused, with a code and the record at fault. 2: the command line is wrong.

import { createHash, createPublicKey, verify as signed } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const FORMAT = 0;
const DEPTH_MAX = 100;
const REDACTED = "[REDACTED]";
const RANKED = ["latest", "highest_priority", "first", "max", "min"];

class Broken extends Error {
  constructor(code, record, message) {
    super(message);
    Object.assign(this, { code, record });
  }
}

function broken(code, record, message) {
  throw new Broken(code, record, message);
}

const sha256 = (...parts) => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isText = (value) => typeof value === "string";
const has = (value, key) => isObject(value) && Object.hasOwn(value, key);
const get = (value, key) => (has(value, key) ? value[key] : null);
const isInt = Number.isSafeInteger;
const sameKeys = (value, keys) => isObject(value) && spell(Object.keys(value).sort()) === spell([...keys].sort());

// ---------------------------------------------------------------------------------------------- canonical JSON (JCS)

function spell(value, depth = 0) {
  if (depth > DEPTH_MAX) throw new RangeError("too deep");
  if (value === null || typeof value === "boolean") return String(value);
  if (isText(value)) return spellText(value);
  if (typeof value === "number") {
    if (Number.isInteger(value) && !isInt(value) && Math.abs(value) < 1e21) throw new RangeError("too large");
    return String(value);
  }
  if (Array.isArray(value)) return "[" + value.map((item) => spell(item, depth + 1)).join(",") + "]";
  const keys = Object.keys(value).sort();
  return "{" + keys.map((key) => spellText(key) + ":" + spell(value[key], depth + 1)).join(",") + "}";
}

const SHORT = { '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r" };

function spellText(text) {
  const escaped = (sign) => SHORT[sign] ?? "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0");
  return '"' + text.replace(/["\\\u0000-\u001f]/g, escaped) + '"';
}

function utf8(data) {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
}

function readJson(data, record) {
  let value = null;
  let good = false;
  try {
    const text = utf8(data);
    value = JSON.parse(text);
    good = spell(value) + "\n" === text;
  } catch {
    good = false;
  }
  return good ? value : broken("form", record, "the file is not canonical JSON with one line feed at its end");
}

function hexed(value, count) {
  return isText(value) && value.length === 2 * count && /^[0-9a-f]*$/.test(value) ? Buffer.from(value, "hex") : null;
}

function based(text) {
  if (!isText(text)) return null;
  const data = Buffer.from(text, "base64");
  return data.toString("base64") === text ? data : null;
}

// ------------------------------------------------------------------------------------------------ Ed25519 (RFC 8032)

const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const EIGHTH = 2707385501144840649318225287225658788936804267575313519463743609750303021417n;
const SMALL = [0n, 1n, P - 1n, EIGHTH, P - EIGHTH]; // y of the points of small order

function little(data) {
  return BigInt("0x" + (Buffer.from(data).reverse().toString("hex") || "0"));
}

function ed25519(key, message, signature) {
  if (key.length !== 32 || signature.length !== 64) return false;
  const y = little(key) & (2n ** 255n - 1n);
  // Node decodes a key leniently; whatever has two spellings or a small order is refused here.
  if (y >= P || SMALL.includes(y) || little(signature.subarray(32)) >= ORDER) return false;
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key]);
  try {
    return signed(null, message, createPublicKey({ key: der, format: "der", type: "spki" }), signature);
  } catch {
    return false;
  }
}

// --------------------------------------------------------------------------------------- notes and checkpoints (C2SP)

const SPACES = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const CONTROLS = /[\u0000-\u0009\u000b-\u001f]/;
const isName = (name) => name !== "" && !name.includes("+") && !SPACES.test(name) && !CONTROLS.test(name);

function splitOnce(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function readKey(text) {
  const [name, rest] = splitOnce(text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, ""), "+");
  const [stated, encoded] = rest === undefined ? [] : splitOnce(rest, "+");
  const data = based(encoded);
  if (data === null || data.length !== 33 || data[0] !== 1 || !isName(name))
    broken("key", "key", "the key is not name+hash+base64 of an Ed25519 key");
  const hash = sha256(name + "\n", data).subarray(0, 4);
  if (hash.toString("hex") !== stated) broken("key", "key", "the hash of the key is not that of its name and bytes");
  return { name, hash, public: data.subarray(1), id: name + "+" + stated };
}

function readNote(note, record, key) {
  const not = "it is not a signed note: ";
  if (!isText(note) || CONTROLS.test(note) || /[\ud800-\udfff]/u.test(note))
    broken("note", record, not + "text without control characters is expected");
  if (Buffer.byteLength(note) > 1_000_000) broken("note", record, not + "it is longer than 1000000 bytes");
  const at = note.lastIndexOf("\n\n");
  const tail = note.slice(at + 2);
  if (at < 0 || !tail.endsWith("\n"))
    broken("note", record, not + "text, an empty line and signature lines are expected");
  const text = note.slice(0, at + 1);
  const lines = tail.slice(0, -1).split("\n");
  if (lines.length > 100) broken("note", record, not + "it has more than 100 signatures");
  const good = lines.map((line) => {
    const parts = line.startsWith("\u2014 ") ? splitOnce(line.slice(2), " ") : [];
    const data = parts.length === 2 && isName(parts[0]) ? based(parts[1]) : null;
    if (data === null || data.length < 5) broken("note", record, not + "a line is not a signature line");
    return [parts[0], data];
  });
  let found = false;
  for (const [name, data] of good) {
    if (name !== key.name || !data.subarray(0, 4).equals(key.hash)) continue;
    if (!ed25519(key.public, Buffer.from(text), data.subarray(4)))
      broken("signature", record, "the signature of " + key.id + " is not one of this text");
    found = true;
  }
  return found ? text : broken("signer", record, "it is not signed by " + key.id);
}

function readCheckpoint(note, record, key) {
  const lines = readNote(note, record, key).split("\n").slice(0, -1);
  const root = lines.length >= 3 ? based(lines[2]) : null;
  const sized = root !== null && /^(0|[1-9][0-9]{0,15})$/.test(lines[1]) && BigInt(lines[1]) < 2n ** 53n;
  if (!sized || root.length !== 32 || lines.includes(""))
    broken("checkpoint", record, "the note is signed, and its text is not origin, size and root");
  return { origin: lines[0], size: Number(lines[1]), root, extensions: lines.slice(3) };
}

function told(point, key) {
  const more = point.extensions.map((line) => ", " + line).join("");
  const root = point.root.toString("hex");
  return `${key.id} signed that log ${point.origin} had ${point.size} entries, root ${root}${more}.`;
}

// ----------------------------------------------------------------------------------------------------- tree (RFC 6962)

const node = (left, right) => sha256(Buffer.from([1]), left, right);

function sidesOf(start, end, size) {
  const sides = [];
  let [low, high] = [0, size];
  while (low !== start || high !== end) {
    let half = 1;
    while (half * 2 < high - low) half *= 2;
    sides.push(end > low + half);
    if (end <= low + half) high = low + half;
    else low += half;
  }
  return sides.reverse();
}

function included(leaf, index, size, proof, root) {
  if (index < 0 || index >= size) return false;
  const sides = sidesOf(index, index + 1, size);
  if (sides.length !== proof.length) return false;
  const found = sides.reduce((hash, left, at) => (left ? node(proof[at], hash) : node(hash, proof[at])), leaf);
  return found.equals(root);
}

function consistent(old, recent, proof) {
  if (old.size > recent.size) return false;
  if (old.size === recent.size) return proof.length === 0 && old.root.equals(recent.root);
  if (old.size === 0) return proof.length === 0 && old.root.equals(sha256(""));
  const start = Number(BigInt(old.size) & (BigInt(old.size) - 1n));
  const sides = sidesOf(start, old.size, recent.size);
  const hashes = start ? proof : [old.root, ...proof];
  if (hashes.length !== sides.length + 1) return false;
  let [first, second] = [hashes[0], hashes[0]];
  sides.forEach((left, at) => {
    const sibling = hashes[at + 1];
    if (left) first = node(sibling, first);
    second = left ? node(sibling, second) : node(second, sibling);
  });
  return first.equals(old.root) && second.equals(recent.root);
}

// ------------------------------------------------------------------------------------------------------------- entries

const HEADER = ["commitment", "envelope", "format", "kind", "log", "position", "recorded_at"];

function hashesOf(value, record) {
  const found = Array.isArray(value) ? value.map((item) => hexed(item, 32)) : [null];
  return found.includes(null) ? broken("shape", record, "its proof is not a list of hashes") : found;
}

function readEntry(entry, place, point) {
  if (!sameKeys(entry, [...HEADER, "body", "nonce", "proof"]) || !isInt(entry.position))
    broken("shape", place, "it is not an entry with its proof");
  const record = `entry ${entry.position}`;
  const commitment = hexed(entry.commitment, 32);
  const nonce = hexed(entry.nonce, 16);
  const proof = hashesOf(entry.proof, record);
  if (commitment === null || (entry.nonce !== null && nonce === null) || !isText(entry.kind))
    broken("shape", record, "it is not an entry with its proof");
  const kind = entry.kind;
  let body = null;
  if (nonce === null && entry.body !== null) broken("shape", record, "it has a body and no nonce");
  if (nonce !== null) {
    if (kind === "source") body = sameKeys(entry.body, ["base64"]) ? based(entry.body.base64) : null;
    else body = Buffer.from(spell(entry.body));
    if (body === null) broken("shape", record, "the content of the source is not base64");
    if (!sha256(nonce, body).equals(commitment))
      broken("body", record, `the content of this ${kind} is not what the log committed to`);
  }
  const header = Object.fromEntries(HEADER.map((name) => [name, entry[name]]));
  const leaf = sha256(Buffer.from([0]), spell(header));
  if (!included(leaf, entry.position, point.size, proof, point.root))
    broken("inclusion", record, "its proof does not lead to the root that was signed");
  const digest = body !== null && ["observation", "source"].includes(kind) ? digestOf(kind, body) : null;
  return {
    position: entry.position,
    kind,
    log: entry.log,
    body: body === null || kind === "source" ? null : entry.body,
    digest,
    name: digest === null ? null : named(kind, digest),
    bytes: body === null ? null : body.length,
    record,
  };
}

const digestOf = (kind, body) => sha256(`woodrat/${kind}/${FORMAT}\n`, body);

function named(kind, digest) {
  let bits = BigInt("0x" + digest.toString("hex")) << 4n; // 256 bits and four of padding make 52 characters
  let text = "";
  for (let count = 0; count < 52; count++, bits >>= 5n) text = "abcdefghijklmnopqrstuvwxyz234567"[Number(bits & 31n)] + text;
  return { observation: "obs_", source: "src_" }[kind] + text;
}

const short = (name) => name.slice(0, 30);

// ---------------------------------------------------------------------------------------------- what a document claims

export function verify(data, keyText, against = null) {
  const key = readKey(keyText);
  const hold = (point) => (against === null ? [] : [compared(point, readCheckpoint(against, "other checkpoint", key))]);
  if (data[0] !== 0x7b) {
    let note = null;
    try {
      note = utf8(data);
    } catch {
      broken("note", "checkpoint", "it is not a signed note: it is not UTF-8");
    }
    const point = readCheckpoint(note, "checkpoint", key);
    return [told(point, key), ...hold(point)];
  }
  const document = readJson(data, "file");
  const kind = get(document, "woodrat");
  if (get(document, "format") !== FORMAT) broken("shape", "file", "it is not of format 0");
  if (kind === "consistency") return [...growth(document, key), ...hold(readCheckpoint(document.to, "to", key))];
  const keys = {
    capsule: ["checkpoint", "claim", "entries", "format", "woodrat"],
    proof: ["checkpoint", "entry", "format", "proof", "woodrat"],
  };
  if (!isText(kind) || !Object.hasOwn(keys, kind) || !sameKeys(document, keys[kind]))
    broken("shape", "file", "it is not a capsule, a proof or a checkpoint of Woodrat");
  const point = readCheckpoint(document.checkpoint, "checkpoint", key);
  const lines = [told(point, key), ...hold(point)];
  if (kind === "proof") {
    const given = document.entry;
    const entry = readEntry(isObject(given) ? { ...given, proof: document.proof } : null, "entry", point);
    return [...lines, `${entry.record} is in that log, byte for byte: ${summary(entry)}`];
  }
  return [...lines, ...capsule(document)(point)];
}

function compared(point, other) {
  if (point.origin !== other.origin)
    broken("origin", "checkpoint", `it is of log ${point.origin}, and the other one of log ${other.origin}`);
  if (point.size < other.size) {
    const gone = other.size - point.size;
    broken("truncated", "checkpoint", `it covers ${gone} entries less than the checkpoint you hold (${other.size})`);
  }
  if (point.size === other.size && !point.root.equals(other.root)) {
    const problem = "it has another root than the checkpoint you hold, at the same size";
    broken("forked", "checkpoint", `${problem} ${other.size}`);
  }
  if (point.size === other.size) return "It is the same as the checkpoint you hold.";
  return `It is longer than the checkpoint you hold (${other.size} entries); only a consistency proof joins the two.`;
}

function growth(document, key) {
  if (!sameKeys(document, ["format", "from", "proof", "to", "woodrat"]))
    broken("shape", "file", "it is not a consistency proof of Woodrat");
  const old = readCheckpoint(document.from, "from", key);
  const recent = readCheckpoint(document.to, "to", key);
  if (old.origin !== recent.origin)
    broken("origin", "to", `it is of log ${recent.origin}, and from is of log ${old.origin}`);
  if (!consistent(old, recent, hashesOf(document.proof, "proof")))
    broken("consistency", "proof", "it does not show that the newer log goes on from the older one");
  const last = `The first ${old.size} entries of the newer log are those of the older one.`;
  return [told(old, key), told(recent, key), last];
}

const capsule = (document) => (point) => {
  const { claim, entries: given } = document;
  if (!Array.isArray(given) || !given.length) broken("shape", "entries", "there are none");
  const listed = get(claim, "positions");
  if (!Array.isArray(listed) || !listed.every(isInt))
    broken("shape", "claim", "its positions are not a list of numbers");
  const held = given.map((entry) => get(entry, "position"));
  held.forEach((item, index) => isInt(item) || broken("shape", `entries/${index}`, "it has no position"));
  if (held.some((item, index) => index > 0 && item <= held[index - 1]))
    broken("order", "entries", "they are not in the order of the log, each once");
  if (spell(held) !== spell(listed)) {
    const without = (some, others) => some.filter((item) => !others.includes(item)).sort((a, b) => a - b);
    const gone = [...without(listed, held), ...without(held, listed), 0];
    broken("entries", `entry ${gone[0]}`, "the entries of the capsule are not those that its claim lists");
  }
  const entries = given.map((entry, index) => readEntry(entry, `entries/${index}`, point));
  const lines = [`${entries.length} entries of that log are in this capsule, byte for byte, each in its place.`];
  const logs = entries.map((entry) => textOf(entry.log));
  for (const log of [...new Set(logs)].filter((name) => name !== point.origin).sort()) {
    const count = logs.filter((name) => name === log).length;
    lines.push(`${count} of them were written under the name of log ${log}, which this log goes on from.`);
  }
  for (const entry of entries)
    if (entry.bytes === null)
      lines.push(`${entry.record} (${entry.kind}): its place is proven; its content was erased or left out.`);
  const kinds = { observation: observed, field: fieldOf, run: runOf, decision: runOf };
  const kind = get(claim, "kind");
  if (!isText(kind) || !Object.hasOwn(kinds, kind))
    broken("shape", "claim", "it is not about an observation, a field, a run or a decision");
  lines.push(...kinds[kind](claim, entries));
  lines.push("Not proven: that what was said is true, and that nothing else was said.");
  return lines;
};

function claimed(claim, ...names) {
  if (!sameKeys(claim, ["kind", "positions", ...names]))
    broken("shape", "claim", "it has other parts than a claim of its kind");
  return names.map((name) => claim[name]);
}

const ofKind = (entries, ...kinds) => entries.filter((entry) => kinds.includes(entry.kind) && isObject(entry.body));
const textOf = (value) => (isText(value) ? value : spell(value));
const refOf = (body) => `${textOf(get(get(body, "entity"), "type"))}/${textOf(get(get(body, "entity"), "key"))}`;
const typeOf = (ref) => ref.split("/")[0];

function summary(entry) {
  const body = entry.body;
  if (entry.bytes === null) return `a ${entry.kind} whose content was erased or left out.`;
  if (entry.kind === "source") return `source ${short(entry.name)} of ${entry.bytes} bytes.`;
  if (entry.kind !== "observation" || !isObject(body)) return `a ${entry.kind}: ${spell(body)}`;
  const said = get(body, "fields");
  const what = said === null ? "" : ` ${spell(said)}`;
  const [agent, when, op] = ["agent", "observed_at", "op"].map((name) => textOf(get(body, name)));
  return `${short(entry.name)}, in which ${agent} said of ${refOf(body)} at ${when}: ${op}${what}.`;
}

function lineage(entries, observation) {
  const lines = [];
  const reading = get(observation.body, "interpretation");
  if (reading !== null)
    for (const entry of ofKind(entries, "interpretation.started", "interpretation.ended"))
      if (get(entry.body, "interpretation") === reading)
        lines.push(`  ${entry.record}: ${entry.kind} ${spell(entry.body)}`);
  const source = get(observation.body, "source");
  if (source !== null) {
    const content = entries.find((entry) => entry.name === source);
    if (content) lines.push(`  ${content.record}: ${summary(content)}`);
    else lines.push(`  The content of its source ${short(textOf(source))} is not in this capsule.`);
    for (const entry of ofKind(entries, "received"))
      if (get(entry.body, "source") === source) {
        const by = textOf(get(entry.body, "agent"));
        lines.push(`  ${entry.record}: ${by} delivered that source as ${spell(get(entry.body, "name"))}.`);
      }
  }
  return lines;
}

function observed(claim, entries) {
  const [name] = claimed(claim, "observation");
  const entry = ofKind(entries, "observation").find((one) => one.name === name);
  if (!entry) broken("claim", "claim", "the observation it names is not among the entries");
  return [`${entry.record}: ${summary(entry)}`, ...lineage(entries, entry)];
}

// ------------------------------------------------------------------------------------------ a field, merged once more

function kindOf(value) {
  if (value === null) return 0;
  if (typeof value === "boolean") return value ? 2 : 1;
  if (typeof value === "number") return 3;
  if (isText(value)) return 4;
  return Array.isArray(value) ? 5 : 6;
}

const plainly = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function order(a, b) {
  const kinds = [kindOf(a), kindOf(b)];
  if (kinds[0] !== kinds[1]) return plainly(...kinds);
  if (kinds[0] === 3) return plainly(a, b);
  if (kinds[0] === 4) return Buffer.compare(Buffer.from(a), Buffer.from(b));
  if (kinds[0] === 5) {
    for (let at = 0; at < a.length && at < b.length; at++) {
      const found = order(a[at], b[at]);
      if (found) return found;
    }
    return plainly(a.length, b.length);
  }
  return kinds[0] === 6 ? Buffer.compare(Buffer.from(spell(a)), Buffer.from(spell(b))) : 0;
}

const byTime = (a, b) => plainly(a.at, b.at);
const byTrust = (a, b) => plainly(a.priority, b.priority);
const byValue = (a, b) => order(a.value, b.value);
const latest = (a, b) => byTime(a, b) || byTrust(a, b) || byValue(a, b);
const RANKS = {
  latest,
  highest_priority: (a, b) => byTrust(a, b) || byTime(a, b) || byValue(a, b),
  first: (a, b) => byTime(b, a) || byTrust(a, b) || byValue(a, b),
  max: byValue,
  min: (a, b) => byValue(b, a),
};
const DECIMAL = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/;

class Fold {
  constructor(members, entries, field = "", policy = "latest", misfits = []) {
    Object.assign(this, { members, field, policy, said: new Map(), named: new Map() });
    for (const { body, name, digest, position } of entries) {
      const ref = refOf(body);
      if (members.has(ref) && (typeOf(ref) !== "audit_event" || body.op === "assert"))
        this.said.set(name, { body, ref, digest, misfit: misfits.includes(position) });
    }
    for (const [name, { body }] of this.said)
      for (const target of get(body, "replaces") ?? [])
        this.named.set(target, [...(this.named.get(target) ?? []), name]);
    const withdraws = (by, name) => this.op(by) === "retract" && this.ref(by) === this.ref(name);
    this.live = this.settle(withdraws, (by, found) => found.get(by), true);
  }

  ref(name) {
    return this.said.get(name).ref;
  }

  op(name) {
    return this.said.get(name).body.op;
  }

  settle(counts, holds, negate = false) {
    const found = new Map();
    const todo = [...this.said.keys()];
    while (todo.length) {
      const name = todo.pop();
      if (found.has(name)) continue;
      const by = (this.named.get(name) ?? []).filter((other) => counts(other, name));
      const waiting = by.filter((other) => !found.has(other));
      if (waiting.length) todo.push(name, ...waiting);
      else found.set(name, by.some((other) => holds(other, found)) !== negate);
    }
    return found;
  }

  deleted() {
    const marker = (name) => ["delete", "restore"].includes(this.op(name));
    const marks = (by, name) => marker(by) && marker(name) && this.ref(by) === this.ref(name);
    const replaced = this.settle(marks, (by, found) => this.live.get(by) || found.get(by));
    const standing = [...this.said.keys()].filter((name) => this.live.get(name) && !replaced.get(name));
    return new Set(standing.filter((name) => this.op(name) === "delete").map((name) => this.ref(name)));
  }

  exists() {
    return [...this.said.keys()].some((name) => this.live.get(name) && this.op(name) !== "retract");
  }

  part(name, part) {
    return get(this.said.get(name).body, part);
  }

  states(name, element = null) {
    if (!["assert", "correct"].includes(this.op(name))) return false;
    if (element === null) return has(this.part(name, "fields"), this.field) || has(this.part(name, "remove"), this.field);
    return this.elements(name, "fields").includes(element) || this.elements(name, "remove").includes(element);
  }

  elements(name, part) {
    const found = get(this.part(name, part), this.field);
    return Array.isArray(found) ? found.map((item) => spell(item)) : [];
  }

  fits(name) {
    const values = this.part(name, "fields");
    const value = get(values, this.field);
    if (this.said.get(name).misfit) return false;
    if (has(this.part(name, "remove"), this.field) && this.policy !== "union") return false;
    if (!has(values, this.field) || RANKED.includes(this.policy)) return true;
    if (this.policy === "sum") return isInt(value) || (isText(value) && value.length <= 400 && DECIMAL.test(value));
    return Array.isArray(value);
  }

  claim(name) {
    const { body, digest } = this.said.get(name);
    return { name, digest, at: body.observed_at, priority: body.priority, value: get(get(body, "fields"), this.field) };
  }

  standing(among, element = null) {
    const group = new Set(among);
    const corrects = (by) =>
      group.has(by) && this.op(by) === "correct" && this.states(by, element) && this.fits(by);
    const replaced = this.settle(corrects, (by, found) => this.live.get(by) || found.get(by));
    const live = [...group].filter((n) => this.live.get(n) && this.fits(n) && this.states(n, element));
    const corrections = live.filter((n) => this.op(n) === "correct" && !replaced.get(n));
    return [corrections, live.filter((n) => this.op(n) === "assert")];
  }

  best(names, rank) {
    const claims = names.map((name) => this.claim(name)).sort((a, b) => Buffer.compare(a.digest, b.digest));
    return claims.reduce((top, claim) => (rank(claim, top) > 0 ? claim : top));
  }

  value() {
    const gone = this.deleted();
    if ([...this.members].every((ref) => gone.has(ref))) return [false, null, null];
    const stating = [...this.said.keys()].filter((name) => this.states(name) && !gone.has(this.ref(name)));
    if (this.policy === "union") return this.union(stating);
    if (["sum", "append"].includes(this.policy)) return this.contributions(stating);
    const [corrections, assertions] = this.standing(stating);
    if (!corrections.length && !assertions.length) return [false, null, null];
    const found = corrections.length ? this.best(corrections, latest) : this.best(assertions, RANKS[this.policy]);
    return [true, found.value, found.name];
  }

  union(stating) {
    const live = stating.filter((name) => this.live.get(name) && this.fits(name));
    const spoken = new Set(stating.flatMap((n) => [...this.elements(n, "fields"), ...this.elements(n, "remove")]));
    const inside = [];
    for (const element of spoken) {
      const [corrections, assertions] = this.standing(stating, element);
      const deciding = corrections.length ? corrections : assertions;
      const ranked = deciding
        .map((name) => ({ ...this.claim(name), inside: this.elements(name, "fields").includes(element) }))
        .sort((a, b) => byTime(a, b) || byTrust(a, b) || a.inside - b.inside);
      if (ranked.length && ranked.at(-1).inside) inside.push(JSON.parse(element));
    }
    return [live.length > 0, inside.sort(order), null];
  }

  contributions(stating) {
    const originals = stating.filter((name) => this.op(name) === "assert").map((name) => this.claim(name));
    const corrected = new Map(originals.map(({ name }) => [name, []]));
    for (const name of stating) {
      const meant = (this.part(name, "replaces") ?? []).filter((one) => corrected.has(one));
      if (this.op(name) === "correct" && meant.length === 1) corrected.get(meant[0]).push(name);
    }
    originals.sort((a, b) => byTime(a, b) || byValue(a, b) || Buffer.compare(a.digest, b.digest));
    const found = [];
    for (const { name, value } of originals) {
      const [corrections] = this.standing(corrected.get(name));
      if (corrections.length) found.push(this.best(corrections, latest).value);
      else if (this.live.get(name) && this.fits(name)) found.push(value);
    }
    return [found.length > 0, this.policy === "append" ? found.flat() : total(found), null];
  }
}

function groupOf(entity, entries) {
  const edges = [];
  for (const ref of new Set(entries.map((entry) => refOf(entry.body)))) {
    const [type, key] = splitOnce(ref, "/");
    let ends = null;
    try {
      ends = type === "same_as" ? JSON.parse(key) : null;
    } catch {
      ends = null;
    }
    if (!Array.isArray(ends) || ends.length !== 2 || !ends.every(isText)) continue;
    const sound = spell(ends) === key && typeOf(ends[0]) === typeOf(ends[1]) && typeOf(ends[0]) !== "same_as";
    const fold = new Fold(new Set([ref]), entries);
    if (sound && order(ends[0], ends[1]) < 0 && fold.exists() && !fold.deleted().size) edges.push(ends);
  }
  const found = new Set([entity]);
  for (let before = 0; found.size > before; ) {
    before = found.size;
    for (const ends of edges) if (ends.some((end) => found.has(end))) ends.forEach((end) => found.add(end));
  }
  return found;
}

function total(values) {
  const terms = values.map((value) => splitOnce(textOf(value), ".").concat("").slice(0, 2));
  const places = Math.max(0, ...terms.map(([, fraction]) => fraction.length));
  const number = terms.reduce((sum, [whole, fraction]) => sum + BigInt(whole + fraction.padEnd(places, "0")), 0n);
  const least = number < 0n ? -number : number;
  if (!values.some(isText) && least < 2n ** 53n) return Number(number);
  const digits = least.toString().padStart(places + 1, "0");
  const fraction = digits.slice(digits.length - places).replace(/0+$/, "");
  const whole = digits.slice(0, digits.length - places);
  return (number < 0n ? "-" : "") + whole + (places && fraction ? "." + fraction : "");
}

function policyOf(entries, type, field) {
  let best = null;
  for (const entry of ofKind(entries, "schema")) {
    const version = get(get(entry.body, "schema"), "x-woodrat-version");
    if (get(entry.body, "type") !== type || !isInt(version)) continue;
    const digest = digestOf("schema", spell(entry.body));
    if (best === null || (plainly(version, best.version) || Buffer.compare(digest, best.digest)) > 0)
      best = { version, digest, entry };
  }
  if (best === null) return ["latest", null];
  const policy = get(get(get(get(best.entry.body, "schema"), "properties"), field), "x-woodrat-merge");
  return [policy === null ? "latest" : isText(policy) ? policy : "of the user's own", best.entry];
}

function fieldOf(claim, entries) {
  const [entity, field, value, misfits] = claimed(claim, "entity", "field", "value", "misfits");
  if (!isText(entity) || !isText(field) || !Array.isArray(misfits))
    broken("shape", "claim", "it is not about a field of an entity");
  const said = ofKind(entries, "observation");
  const places = new Map(said.map((entry) => [entry.position, entry]));
  for (const item of misfits)
    if (!isInt(item) || !places.has(item))
      broken("claim", "claim", "it sets aside an entry that is not an observation here");
  const [policy, schema] = policyOf(entries, typeOf(entity), field);
  if (![...RANKED, "union", "sum", "append"].includes(policy))
    broken("claim", "claim", `its policy ${policy} cannot be followed without its code`);
  const members = groupOf(entity, said);
  const fold = new Fold(members, said, field, policy, misfits);
  const [there, found, winner] = fold.value();
  if (!there || spell(found) !== spell(value)) {
    const seen = there ? spell(found) : "no value";
    broken("claim", "claim", `the observations here merge to ${seen} under ${policy}, not to ${spell(value)}`);
  }
  const known = schema === null ? "no schema of it is here" : `schema in ${schema.record}`;
  const lines = [
    `${entity}#${field} = ${spell(value)} follows from the ${fold.said.size} observations of it in this capsule, ` +
      `under policy ${policy} (${known}), as of the checkpoint.`,
  ];
  const others = [...members].filter((ref) => ref !== entity).sort(order);
  for (const other of others) lines.push(`It is one with ${other}, by same_as relations in this capsule.`);
  for (const item of misfits)
    lines.push(`${places.get(item).record} was set aside as not fitting the schema; that was not checked.`);
  for (const entry of said) {
    const mark = entry.name === winner ? " This one set the value." : "";
    lines.push(`${entry.record}: ${summary(entry)}${mark}`, ...lineage(entries, entry));
  }
  return lines;
}

// -------------------------------------------------------------------------------------------- a run and its decisions

function isWhole(value) {
  if (Array.isArray(value)) return value.every(isWhole);
  if (isObject(value))
    return !has(value, "$truncated") && !has(value, "$unserialisable") && Object.values(value).every(isWhole);
  return value !== REDACTED;
}

function runOf(claim, entries) {
  const one = claim.kind === "decision";
  const [run, stage] = one ? claimed(claim, "run", "stage") : [...claimed(claim, "run"), null];
  for (const entry of entries)
    if (entry.kind.startsWith("run.") && isObject(entry.body) && get(entry.body, "run") !== run)
      broken("claim", entry.record, `it is not of run ${textOf(run)}`);
  const started = ofKind(entries, "run.started");
  if (!started.length) broken("claim", "claim", "the beginning of the run is not among the entries");
  const begun = started[0].body;
  const asked = spell(get(begun, "query"));
  const lines = [`${started[0].record}: ${run} by ${textOf(get(begun, "agent"))} was asked ${asked}.`];
  const decided = ofKind(entries, "run.decided").filter((e) => stage === null || get(e.body, "stage") === stage);
  if (one && (stage === null || !decided.length))
    broken("claim", "claim", "the decision it names is not among the entries");
  const shown = new Set();
  for (const entry of decided) lines.push(...decision(entry, entries, shown));
  for (const { record, body } of ofKind(entries, "run.ended")) {
    const answer = has(body, "answer") ? ` and the answer ${spell(body.answer)}` : "";
    lines.push(`${record}: it ended as ${textOf(get(body, "status"))}${answer}.`);
  }
  const rest = ofKind(entries, "observation").filter((entry) => !shown.has(entry.name));
  return [...lines, ...rest.map((entry) => `${entry.record}: ${summary(entry)}`)];
}

function decision({ body, record }, entries, shown) {
  const rules = objects(get(body, "rules"));
  const chosen = get(body, "chosen");
  const [stage, at] = [textOf(get(body, "stage")), textOf(get(body, "started_at"))];
  const lines = [`${record}: ${stage} was decided as ${spell(chosen)} at ${at}.`];
  const cut = get(get(body, "omitted"), "conditions") !== null;
  rules.forEach((rule, index) => lines.push(...ruleOf(rule, index, record, entries, shown, cut)));
  const taken = rules.filter((rule) => get(rule, "matched") === true).map((rule) => get(rule, "chosen"));
  if (!has(body, "omitted") && isWhole(taken) && isWhole(chosen)) {
    const many = get(body, "mode") === "select";
    const other = spell(many ? taken : taken[0] ?? null) !== spell(chosen) || (!many && taken.length > 1);
    if ((taken.length && other) || taken.length > 0 === (get(body, "default") === true))
      broken("decision", record, "what was chosen is not what its matching rules say");
  }
  if (!taken.length) lines.push("  No rule matched, and the default was taken.");
  return lines;
}

const objects = (value) => (Array.isArray(value) ? value.filter(isObject) : []);

function ruleOf(rule, index, record, entries, shown, cut) {
  const name = has(rule, "label") ? textOf(rule.label) : `number ${index}`;
  const conditions = objects(get(rule, "conditions"));
  const held = get(rule, "matched") === true;
  const word = held ? "matched" : "did not match";
  const lines = [];
  if (!has(rule, "when")) {
    const code = textOf(get(rule, "predicate"));
    lines.push(`  Rule ${name} is code (${code}); it ${word}, which was not evaluated again.`);
  } else {
    const exact = isWhole(rule.when) && isObject(rule.when) && !has(rule, "error") && !cut;
    const results = conditions.map(evaluated);
    const holds = (item) => get(item, "result") === true;
    conditions.forEach((item, at) => {
      if (results[at] !== null && results[at] !== holds(item)) {
        const recorded = `is recorded as ${spell(get(item, "result"))}, and is not so`;
        broken("decision", record, `rule ${name}: ${toldCondition(item)} ${recorded}`);
      }
    });
    if (exact && !sameConditions(rule.when, conditions))
      broken("decision", record, `rule ${name}: its conditions are not those that were recorded`);
    if (exact && held !== (conditions.length > 0 && conditions.every(holds)))
      broken("decision", record, `rule ${name} is recorded as ${held ? "matched" : "not matched"}, and is not so`);
    const all = exact && !results.includes(null);
    const again = all ? "evaluated again: so it is" : "not all of it could be evaluated again";
    lines.push(`  Rule ${name} ${word}; ${again}.`);
  }
  for (const item of conditions) {
    const result = get(item, "result") === true ? "holds" : "does not hold";
    const [first, ...rest] = originOf(item, record, entries, shown);
    lines.push(`    ${toldCondition(item)}: ${result}. ${first}`, ...rest);
  }
  return lines;
}

function toldCondition(item) {
  const actual = has(item, "actual") ? spell(item.actual) : "nothing";
  const against = has(item, "op") ? ` ${textOf(item.op)} ${spell(get(item, "operand"))}` : "";
  return `${textOf(get(item, "key"))} = ${actual}${against}`;
}

function sameConditions(when, conditions) {
  const wanted = Object.entries(when).flatMap(([key, value]) => {
    const pairs = isObject(value) ? Object.entries(value) : [["eq", value]];
    const spelled = pairs.map(([op, operand]) => [spell([key, op]), spell(operand)]);
    return pairs.length ? spelled : [[spell([key, null]), "null"]];
  });
  for (const item of conditions) {
    const name = spell([get(item, "key"), get(item, "op")]);
    const operand = get(item, "operand");
    const cut = get(get(operand, "$truncated"), "digest"); // a long operand stands in the rule, and here as its digest
    const at = wanted.findIndex(
      ([other, text]) =>
        other === name && (text === spell(operand) || (cut !== null && sha256(Buffer.from(text)).toString("hex") === cut)),
    );
    if (at < 0) return false;
    wanted.splice(at, 1);
  }
  return wanted.length === 0;
}

function evaluated(item) {
  const [op, operand, actual] = [get(item, "op"), get(item, "operand"), get(item, "actual")];
  const there = has(item, "actual");
  if (op === null || op === "matches" || !isWhole(operand) || !isWhole(actual)) return null;
  if (op === "exists") return typeof operand === "boolean" ? there === operand : false;
  if (!["eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in"].includes(op) || !there) return false;
  if (op === "eq" || op === "ne") return (spell(actual) === spell(operand)) === (op === "eq");
  if (op === "in" || op === "not_in") {
    if (!Array.isArray(operand) || operand.length > 1000) return false;
    return operand.map((value) => spell(value)).includes(spell(actual)) === (op === "in");
  }
  if (kindOf(actual) !== kindOf(operand) || ![3, 4].includes(kindOf(actual))) return false;
  const found = order(actual, operand);
  return { gt: found > 0, gte: found >= 0, lt: found < 0, lte: found <= 0 }[op];
}

function originOf(item, record, entries, shown) {
  const [origin, actual, key] = [get(item, "origin"), get(item, "actual"), textOf(get(item, "key"))];
  const kind = get(origin, "kind");
  const by = get(origin, "by") === "value" ? " (linked by name and value)" : "";
  if (!has(item, "actual")) return ["There was no such fact."];
  if (kind === "read") return readOf(origin, actual, key, by, record, entries, shown);
  if (kind === "input") {
    const name = textOf(get(origin, "name"));
    const inputs = ofKind(entries, "run.started").map((entry) => get(entry.body, "inputs"));
    match(inputs.filter((value) => has(value, name)).map((value) => value[name]), actual, key, record, `input ${name} of the run`);
    return [`It is input ${name} of the run${by}.`];
  }
  if (kind === "tool" || kind === "model") {
    const part = kind === "tool" ? "result" : "response";
    const calls = ofKind(entries, `run.${kind}`).filter((e) => get(e.body, "span") === get(origin, "span"));
    const steps = calls.filter((entry) => has(entry.body, part));
    const values = steps.map((entry) => pointed(entry.body[part], get(origin, "path")));
    const span = textOf(get(origin, "span"));
    match(values.filter(([there]) => there).map(([, value]) => value), actual, key, record, `${kind} call ${span}`);
    const where = steps.map((entry) => entry.record).join(", ");
    const path = textOf(get(origin, "path")) || "the whole";
    return [`It is ${path} of the ${part} of a ${kind} call (${where})${by}.`];
  }
  return ["The agent stated it."];
}

function match(found, actual, key, record, what) {
  if (!found.length) broken("evidence", record, `${key} is said to come from ${what}, which is not here`);
  if (isWhole(actual) && isWhole(found) && found.every((value) => spell(value) !== spell(actual)))
    broken("evidence", record, `${key} = ${spell(actual)} is not what ${what} says: ${spell(found.at(-1))}`);
}

function pointed(value, path) {
  for (let part of isText(path) ? path.split("/").slice(1) : []) {
    part = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (has(value, part)) value = value[part];
    else if (Array.isArray(value) && /^(0|[1-9][0-9]{0,8})$/.test(part) && Number(part) < value.length)
      value = value[Number(part)];
    else return isWhole(value) ? [false, null] : [true, value];
  }
  return [true, value];
}

function readOf(origin, actual, key, by, record, entries, shown) {
  const [entity, field, position] = ["entity", "field", "position"].map((part) => get(origin, part));
  const what = `${textOf(entity)}#${textOf(field)}`;
  const items = [];
  for (const entry of ofKind(entries, "run.read")) {
    const fields = get(entry.body, "fields");
    if (get(entry.body, "entity") === entity && spell(get(entry.body, "position")) === spell(position))
      if (isText(field) && isObject(get(fields, field))) items.push([entry, fields[field]]);
  }
  match(items.map(([, item]) => get(item, "value")), actual, key, record, `a read of ${what}`);
  const [entry, item] = items.at(-1);
  const several = get(item, "observations");
  const names = Array.isArray(several) ? several : [get(item, "observation")];
  const said = new Map(ofKind(entries, "observation").map((one) => [short(one.name), one]));
  const behind = names.map((name) => {
    const found = said.get(name) ?? broken("evidence", entry.record, `it read ${textOf(name)}, which is not here`);
    shown.add(found.name);
    return found;
  });
  const [policy] = policyOf(entries, typeOf(textOf(entity)), textOf(field));
  const value = get(item, "value");
  let more = "";
  if (!RANKED.includes(policy) || behind.length !== 1)
    more = `; how they merge under ${policy} was not followed again`;
  else {
    const values = get(behind[0].body, "fields");
    if (isWhole(value) && !(has(values, field) && spell(values[field]) === spell(value)))
      broken("evidence", entry.record, `it read ${spell(value)} from ${textOf(names[0])}, which does not say so`);
  }
  const lines = [`It was read of ${what} at position ${spell(position)} (${entry.record})${more}${by}.`];
  for (const one of behind)
    lines.push(`      ${one.record}: ${summary(one)}`, ...lineage(entries, one).map((line) => `      ${line}`));
  return lines;
}

// ------------------------------------------------------------------------------------------------------- command line

// What was said may hold anything; a line must do nothing to a terminal, nor end before its end.
function clean(line) {
  const escaped = (sign) => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0");
  return line.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, escaped);
}

export function outcome(data, key, against = null) {
  try {
    return { verdict: "proven", code: "proven", record: null, says: verify(data, key, against).map(clean) };
  } catch (problem) {
    if (problem instanceof Broken)
      return { verdict: "refused", code: problem.code, record: clean(problem.record), says: [clean(problem.message)] };
    const says = ["a part of it has another shape than its format"];
    return { verdict: "refused", code: "shape", record: "file", says };
  }
}

function given(value, sign) {
  try {
    return readFileSync(value, "utf8");
  } catch (error) {
    if (value.includes(sign)) return value;
    throw error;
  }
}

function main(words) {
  const usage = "usage: node woodrat-verify.mjs FILE --key VKEY [--checkpoint NOTE] [--json]";
  const options = { "--key": null, "--checkpoint": null };
  const files = [];
  let json = false;
  for (let at = 0; at < words.length; at++) {
    if (words[at] === "--json") json = true;
    else if (Object.hasOwn(options, words[at])) options[words[at]] = words[++at] ?? null;
    else files.push(words[at]);
  }
  if (files.length !== 1 || options["--key"] === null) {
    console.error(usage);
    return 2;
  }
  let [data, key, against] = [null, null, null];
  try {
    data = readFileSync(files[0] === "-" ? 0 : files[0]);
    key = given(options["--key"], "+");
    against = options["--checkpoint"] === null ? null : given(options["--checkpoint"], "\n");
  } catch (error) {
    console.error(`${error.path ?? files[0]}: ${error.code}. Nothing was checked.`);
    return 2;
  }
  const found = outcome(data, key, against);
  if (json) console.log(JSON.stringify(found, null, 2));
  else if (found.verdict === "proven") console.log("PROVEN\n" + found.says.join("\n"));
  else console.log(`REFUSED ${found.record}: ${found.says[0]} (${found.code}). Nothing of this file is proven.`);
  return found.verdict === "proven" ? 0 : 1;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) process.exitCode = main(process.argv.slice(2));
