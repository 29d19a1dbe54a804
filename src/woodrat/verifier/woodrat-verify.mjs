#!/usr/bin/env node
// woodrat-verify: check a Woodrat capsule, proof or checkpoint offline, and say in plain words what is proven.
//
//     node woodrat-verify.mjs FILE --key VKEY [--checkpoint NOTE] [--strict] [--json]
//
// The second verifier. It needs Node 18 or newer and nothing else, was written from docs/formats/ as the first one was
// (woodrat_verify.py), and gives the same verdict, code, record and parts on every file. G1, F3, D7 and the like are the
// items of docs/formats/capsule.md.
//
// Exit code 0: proven or consistent. 1: refused, with a code and the record at fault; with --strict consistent as well.
// 2: the command line is wrong.

import { createHash, createPublicKey, verify as signed } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const FORMAT = 0;
const DEPTH_MAX = 100;
const REDACTED = "[REDACTED]";
const ERASED = "[ERASED]";
const RANKED = ["latest", "highest_priority", "first", "max", "min"];
const COLLECTIONS = ["union", "sum", "append"];
const BY_KEY = "by_key:";
const OWN = "of the user's own";

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
const isWhole = (value) => isInt(value) && value >= 0;
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
  if (text.includes("\0")) throw new RangeError("no text holds U+0000");
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

// ----------------------------------------------------------------------------------------------------------- documents

const KINDS = [
  ...["source", "received", "interpretation.started", "interpretation.ended", "schema", "observation", "run.started"],
  ...["run.read", "run.model", "run.tool", "run.decided", "run.noted", "run.ended", "run.judged", "tag", "erasure"],
];
const HEADER = ["commitment", "envelope", "format", "kind", "log", "position", "recorded_at"];
const DOCUMENTS = {
  capsule: ["checkpoint", "claim", "entries", "format", "woodrat"],
  consistency: ["format", "from", "proof", "to", "woodrat"],
  proof: ["checkpoint", "entry", "format", "proof", "woodrat"],
};
const MOMENT = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z$/;
const ENTRIES_MAX = 10_000;
const NOT_SHOWN = "Not shown: a capsule cannot show that nothing else was stated, or that what was stated is true.";

// What is found on the way: the parts that lower the verdict, and the words for people.
class Findings {
  constructor() {
    this.parts = new Set();
    this.says = [];
  }

  lower(...parts) {
    for (const part of parts) this.parts.add(part);
  }

  reasons(reasons, position) {
    for (const reason of reasons) this.lower(`${reason} ${position}`);
  }

  say(...lines) {
    this.says.push(...lines);
  }
}

export function verify(data, keyText, against = null) {
  const found = new Findings();
  const key = readKey(keyText); // G1
  if (data[0] !== 0x7b) {
    const point = readCheckpoint(noteText(data), "checkpoint", key);
    found.say(told(point, key));
    compareHeld(found, [[point, "checkpoint"]], key, against);
    return found;
  }
  const document = readJson(data, "file"); // G2
  const kind = get(document, "woodrat");
  const known = isText(kind) && Object.hasOwn(DOCUMENTS, kind);
  if (get(document, "format") !== FORMAT || !known || !sameKeys(document, DOCUMENTS[kind]))
    // G3
    broken("shape", "file", "it is not a capsule, a proof or a consistency document of format 0");
  if (kind === "consistency") {
    checkConsistency(document, key, against, found);
    return found;
  }
  const point = readCheckpoint(document.checkpoint, "checkpoint", key); // G4
  found.say(told(point, key));
  compareHeld(found, [[point, "checkpoint"]], key, against);
  if (kind === "proof") {
    const given = document.entry;
    const whole = isObject(given) && !has(given, "proof") ? { ...given, proof: document.proof } : null;
    const entry = readEntry(whole, "entry", point);
    if (entry.blank) found.lower(`content ${entry.position}`);
    found.say(`${entry.record} is in that log, byte for byte: ${summary(entry)}`);
    return found;
  }
  capsule(document, point, found);
  return found;
}

function noteText(data) {
  try {
    return utf8(data);
  } catch {
    return broken("note", "checkpoint", "it is not a signed note: it is not UTF-8");
  }
}

// G5
function checkConsistency(document, key, against, found) {
  const old = readCheckpoint(document.from, "from", key);
  const recent = readCheckpoint(document.to, "to", key);
  if (old.origin !== recent.origin)
    broken("origin", "to", `it is of log ${recent.origin}, and from is of log ${old.origin}`);
  if (!consistent(old, recent, hashesOf(document.proof, "proof")))
    broken("consistency", "proof", "it does not show that the newer log goes on from the older one");
  found.say(told(old, key), told(recent, key));
  found.say(`The first ${old.size} entries of the newer log are those of the older one.`);
  compareHeld(
    found,
    [
      [old, "from"],
      [recent, "to"],
    ],
    key,
    against,
  );
}

// G6
function compareHeld(found, ends, key, against) {
  if (against === null) return;
  const held = readCheckpoint(against, "other checkpoint", key);
  for (const [end, record] of ends) {
    if (end.origin !== held.origin)
      broken("origin", record, `it is of log ${end.origin}, and the checkpoint you hold is of log ${held.origin}`);
    if (end.size === held.size && !end.root.equals(held.root))
      broken("forked", record, `it has another root than the checkpoint you hold, at the same size ${held.size}`);
  }
  const [newest, record] = ends.at(-1);
  if (held.size > newest.size) {
    const gone = held.size - newest.size;
    broken("truncated", record, `it covers ${gone} entries fewer than the checkpoint you hold (${held.size})`);
  }
  if (ends.some(([end]) => end.size === held.size)) found.say("The checkpoint you hold is the same.");
  else {
    found.lower("held");
    found.say(`The checkpoint you hold (${held.size} entries) is not joined with this file.`);
  }
}

// ------------------------------------------------------------------------------------------------------------- entries

function hashesOf(value, record) {
  const found = Array.isArray(value) ? value.map((item) => hexed(item, 32)) : [null];
  return found.includes(null) ? broken("shape", record, "its proof is not a list of hashes") : found;
}

// G8 to G10 of one entry
function readEntry(entry, place, point) {
  if (!isObject(entry) || !isWhole(entry.position)) broken("shape", place, "it is not an entry with a position");
  const record = `entry ${entry.position}`;
  if (!hasEntryShape(entry)) broken("shape", record, "it has not the shape of an entry with its proof");
  const proof = hashesOf(entry.proof, record);
  const { kind, nonce } = entry;
  let body = null;
  if (nonce !== null) {
    body = kind === "source" ? based(entry.body.base64) : Buffer.from(spell(entry.body));
    if (!sha256(Buffer.from(nonce, "hex"), body).equals(Buffer.from(entry.commitment, "hex")))
      // G9
      broken("body", record, `the content of this ${kind} is not what the log committed to`);
  }
  const header = Object.fromEntries(HEADER.map((name) => [name, entry[name]]));
  if (!included(sha256(Buffer.from([0]), spell(header)), entry.position, point.size, proof, point.root))
    // G10
    broken("inclusion", record, "its proof does not lead to the root that was signed");
  const digest = body !== null && Object.hasOwn(PREFIX, kind) ? digestOf(kind, body) : null;
  return {
    position: entry.position,
    kind,
    log: entry.log,
    recorded: entry.recorded_at,
    write: entry.envelope.write,
    length: get(entry.envelope, "length"),
    merged: has(entry.envelope, "origin"),
    blank: nonce === null,
    body: nonce === null || kind === "source" ? null : entry.body,
    bytes: body === null ? null : body.length,
    digest,
    name: digest === null ? null : named(kind, digest),
    record,
  };
}

// G11: entries of one write belong together, writes do not overlap, and the log's clock goes on between them
function checkWrites(entries, size) {
  const ends = new Map(entries.filter((e) => e.length !== null).map((e) => [e.position, e.position + e.length]));
  entries.forEach((entry, at) => {
    const wrong = (text) => broken("order", entry.record, text);
    if (entry.length !== null && ends.get(entry.position) > size) wrong("its write goes beyond the end of the log");
    if (entry.position >= (ends.get(entry.write) ?? Infinity)) wrong("it stands beyond the end of its write");
    if (at === 0) return;
    const before = entries[at - 1];
    if (before.write === entry.write) {
      if (before.log !== entry.log || before.recorded !== entry.recorded)
        wrong("it has another log or time than its write");
    } else if (entry.write < (ends.get(before.write) ?? before.position + 1))
      wrong("its write overlaps the one before it");
    else if (entry.recorded <= before.recorded) wrong(`it was recorded no later than ${before.record}`);
  });
}

// G8
function hasEntryShape(entry) {
  const { body, commitment, envelope, format, kind, log, nonce, position, recorded_at } = entry;
  if (!sameKeys(entry, [...HEADER, "body", "nonce", "proof"]) || format !== FORMAT) return false;
  if (!isText(log) || log === "" || !isText(recorded_at) || !MOMENT.test(recorded_at)) return false;
  if (!KINDS.includes(kind) || hexed(commitment, 32) === null) return false;
  if (nonce === null ? body !== null : hexed(nonce, 16) === null || !isObject(body)) return false;
  if (nonce !== null && kind === "source" && (!sameKeys(body, ["base64"]) || based(body.base64) === null)) return false;
  if (!isObject(envelope) || !isWhole(envelope.write) || envelope.write > position) return false;
  const first = envelope.write === position;
  const keys = ["write", ...(first ? ["length", "request"] : []), ...(has(envelope, "origin") ? ["origin"] : [])];
  if (!sameKeys(envelope, keys)) return false;
  if (first && (!isWhole(envelope.length) || envelope.length < 1 || hexed(envelope.request, 32) === null)) return false;
  const origin = get(envelope, "origin");
  return (
    !has(envelope, "origin") ||
    (sameKeys(origin, ["log", "position"]) && isText(origin.log) && isWhole(origin.position))
  );
}

const PREFIX = { observation: "obs_", source: "src_", schema: "sch_" };
const digestOf = (kind, body) => sha256(`woodrat/${kind}/${FORMAT}\n`, body);

function named(kind, digest) {
  let bits = BigInt("0x" + digest.toString("hex")) << 4n; // 256 bits and four of padding make 52 characters
  let text = "";
  for (let count = 0; count < 52; count++, bits >>= 5n)
    text = "abcdefghijklmnopqrstuvwxyz234567"[Number(bits & 31n)] + text;
  return PREFIX[kind] + text;
}

const short = (name) => name.slice(0, 30);
const textOf = (value) => (isText(value) ? value : spell(value));
const refOf = (body) => `${body.entity.type}/${body.entity.key}`;
const typeOf = (ref) => splitOnce(ref, "/")[0];

// --------------------------------------------------------------------------------------------------- capsules (G7, B)

const CLAIMS = {
  observation: { observation: isText },
  field: { entity: isText, field: isText, value: () => true, misfits: isAscending },
  run: { run: isText },
  decision: { run: isText, stage: isText },
};

function isAscending(list) {
  return Array.isArray(list) && list.every((item, at) => isWhole(item) && (at === 0 || item > list[at - 1]));
}

function capsule(document, point, found) {
  const { claim, entries: given } = document;
  readClaim(claim);
  if (
    !Array.isArray(given) ||
    !given.length ||
    given.length > ENTRIES_MAX ||
    !given.every((e) => isObject(e) && isWhole(e.position))
  )
    broken("shape", "entries", "it is not a list of 1 to 10000 entries with a position each");
  const positions = given.map((entry) => entry.position);
  if (!isAscending(positions)) broken("order", "entries", "they are not in the order of the log, each once");
  if (spell(positions) !== spell(claim.positions)) {
    const both = new Set(positions.filter((item) => claim.positions.includes(item)));
    const lone = [...positions, ...claim.positions].filter((item) => !both.has(item));
    broken("entries", `entry ${Math.min(...lone)}`, "the entries of the capsule are not those that its claim lists");
  }
  const entries = given.map((entry) => readEntry(entry, "entries", point));
  checkWrites(entries, point.size);
  found.say(`${entries.length} entries of that log are in this capsule, byte for byte, each in its place.`);
  new Capsule(claim, entries, point, found).check();
  found.say(NOT_SHOWN);
}

// G7, as far as the claim goes
function readClaim(claim) {
  const kind = get(claim, "kind");
  if (!isText(kind) || !Object.hasOwn(CLAIMS, kind))
    broken("shape", "claim", "it is not about an observation, a field, a run or a decision");
  const members = { positions: isAscending, ...CLAIMS[kind] };
  const may = kind === "field" ? { schema: isWhole } : kind === "observation" ? {} : { left_out: isAscending };
  const optional = Object.fromEntries(Object.entries(may).filter(([name]) => has(claim, name)));
  const all = { kind: isText, ...members, ...optional };
  if (!sameKeys(claim, Object.keys(all)) || !Object.entries(all).every(([name, good]) => good(claim[name])))
    broken("shape", "claim", "it has other parts than a claim of its kind, or parts of another type");
}

class Capsule {
  constructor(claim, entries, point, found) {
    Object.assign(this, { claim, entries, point, found });
    this.erasures = this.ofKind("erasure");
    this.observations = this.ofKind("observation");
    this.schemas = this.ofKind("schema");
    for (const entry of entries)
      entry.again =
        entry.kind !== "erasure" && this.erasures.some((e) => e.write === entry.write && e.position < entry.position);
    this.byId = new Map(this.observations.map((entry) => [short(entry.name), entry]));
    this.byName = new Map(this.observations.map((entry) => [entry.name, entry]));
    this.ownNames = new Set([point.origin, ...entries.map((entry) => entry.log)]);
  }

  ofKind(...kinds) {
    return this.entries.filter((entry) => kinds.includes(entry.kind) && isObject(entry.body));
  }

  check() {
    this.shapes();
    this.blanks();
    this.saidAgain();
    this.origins();
    const kinds = {
      observation: () => this.observed(),
      field: () => this.field(),
      run: () => this.run(),
      decision: () => this.run(),
    };
    const places = kinds[this.claim.kind]();
    this.surplus(places);
  }

  // B1
  shapes() {
    for (const entry of this.entries)
      if (isObject(entry.body) && !SHAPES[entry.kind](entry.body))
        broken("shape", entry.record, `its body has not the shape of a ${entry.kind}`);
    const seen = new Set();
    for (const { name, record } of this.observations) {
      if (seen.has(name)) broken("surplus", record, "the same observation is shown twice, and occurs in a log once");
      seen.add(name);
    }
  }

  // B2
  names(erasure, blank) {
    const { log, positions } = erasure.body;
    const covers = positions.some(([first, last]) => first <= blank.position && blank.position <= last);
    if (!covers) return false;
    return log === erasure.log ? erasure.position > blank.position : log === blank.log;
  }

  blanks() {
    for (const entry of this.entries.filter((one) => one.blank)) {
      if (!this.erasures.some((erasure) => this.names(erasure, entry)))
        broken("erased", entry.record, "it has no content, and no erasure here says why");
      this.found.lower(`erased ${entry.position}`);
      this.found.say(`${entry.record} (${entry.kind}): its place is proven; its content was erased.`);
    }
  }

  // B3
  saidAgain() {
    for (const entry of this.entries) if (entry.again) this.found.lower(`again ${entry.position}`);
  }

  // B4
  origins() {
    const sources = new Set(this.entries.filter((e) => e.kind === "source" && e.name !== null).map((e) => e.name));
    const readings = new Set(this.ofKind("interpretation.started").map((entry) => entry.body.interpretation));
    const ids = has(this.claim, "run") ? new RunCapsule(this).named() : null;
    for (const { body, name, position } of this.observations) {
      if (ids !== null && !ids.has(short(name)) && get(body, "run") !== this.claim.run) continue; // it only merges
      if (has(body, "source") && !sources.has(body.source)) this.found.lower(`source ${position}`);
      if (has(body, "interpretation") && !readings.has(body.interpretation))
        this.found.lower(`interpretation ${position}`);
    }
  }

  // B5
  surplus(hasPlace) {
    const sources = new Set(this.observations.map(({ body }) => get(body, "source")));
    const readings = new Set(this.observations.map(({ body }) => get(body, "interpretation")));
    const blanks = this.entries.filter((entry) => entry.blank);
    for (const entry of this.entries) {
      if (entry.blank) continue;
      let place = false;
      if (entry.kind === "erasure")
        place =
          blanks.some((blank) => this.names(entry, blank)) ||
          this.entries.some((e) => e.again && e.write === entry.write && entry.position < e.position);
      else if (entry.kind === "source") place = sources.has(entry.name);
      else if (entry.kind === "received") place = sources.has(entry.body.source);
      else if (entry.kind.startsWith("interpretation.")) place = readings.has(entry.body.interpretation);
      else if (entry.kind !== "tag") place = hasPlace(entry);
      if (!place) broken("surplus", entry.record, `this ${entry.kind} has no part in what is claimed`);
    }
  }

  // ---------------------------------------------------------------------------------------- an observation (O1)

  observed() {
    const entry = this.byName.get(this.claim.observation);
    if (!entry) broken("claim", "claim", "the observation it names is not among the entries");
    this.found.say(`${entry.record}: ${summary(entry)}`, ...this.lineage(entry));
    return (other) => other === entry;
  }

  lineage({ body }) {
    const lines = [];
    if (has(body, "interpretation"))
      for (const entry of this.ofKind("interpretation.started", "interpretation.ended"))
        if (entry.body.interpretation === body.interpretation)
          lines.push(`  ${entry.record}: ${entry.kind} ${spell(entry.body)}`);
    if (has(body, "locator")) lines.push(`  It was read at ${spell(body.locator)} of its source.`);
    if (!has(body, "source")) return lines;
    const content = this.entries.find((entry) => entry.name === body.source);
    if (content) lines.push(`  ${content.record}: ${summary(content)}`);
    else lines.push(`  The content of its source ${short(body.source)} is not in this capsule.`);
    for (const entry of this.ofKind("received"))
      if (entry.body.source === body.source) {
        const by = textOf(get(entry.body, "agent"));
        lines.push(`  ${entry.record}: ${by} delivered that source as ${spell(get(entry.body, "name"))}.`);
      }
    return lines;
  }

  // ------------------------------------------------------------------------------------------- schemas and groups

  schemasOf(type, through = Infinity) {
    return this.schemas.filter((entry) => entry.body.type === type && entry.position <= through);
  }

  highest(schemas) {
    const rank = (a, b) =>
      plainly(a.body.schema["x-woodrat-version"], b.body.schema["x-woodrat-version"]) ||
      Buffer.compare(a.digest, b.digest);
    return schemas.length ? schemas.reduce((top, entry) => (rank(entry, top) > 0 ? entry : top)) : null;
  }

  groupAt(entity, through = Infinity, effective = null) {
    this.groups ??= new Map();
    const asked = spell([entity, String(through), effective]);
    if (!this.groups.has(asked)) {
      const shown = this.observations.filter((entry) => entry.position <= through || entry.again);
      const wasTrue = ({ body }) => effective === null || body.op === "retract" || body.valid_from <= effective;
      this.groups.set(asked, groupOf(entity, shown.filter(wasTrue)));
    }
    return this.groups.get(asked);
  }

  // ------------------------------------------------------------------------------------------------- a field (F)

  field() {
    const { entity, field, value, misfits } = this.claim;
    const type = typeOf(entity);
    const schema = this.highest(this.schemasOf(type)); // F1
    if (has(this.claim, "schema") ? schema === null || schema.position !== this.claim.schema : schema !== null)
      broken("schema", "claim", "the schema it names is not the highest one of the type here");
    if (schema === null) this.found.lower("schema");
    const policy = policyOf(schema, field, "claim"); // F2
    const members = this.groupAt(entity); // F3
    const group = this.observations.filter((entry) => members.has(refOf(entry.body)));
    for (const { body, position } of group)
      // F4
      if ((get(body, "replaces") ?? []).some((name) => !this.byName.has(name))) this.found.lower(`named ${position}`);
    this.misfits(group, schema, policy, new Set(misfits)); // F5
    const fold = new Fold(members, group).turn(field, isObject(policy) ? OWN : policy, misfits); // F6
    const shown = isObject(policy) ? `${textOf(policy.name)} of the user's own` : policy;
    let winner = null;
    if (isObject(policy)) {
      const [corrections, assertions] = fold.contenders();
      const top = corrections.length ? fold.best(corrections, latest) : null;
      if (top === null ? !assertions.length : spell(top.value) !== spell(value))
        broken("claim", "claim", `the observations here do not come to ${spell(value)} under policy ${shown}`);
      this.found.lower("policy");
    } else {
      const [there, merged, by] = fold.value();
      if (!there || spell(merged) !== spell(value)) {
        const seen = there ? spell(merged) : "no value";
        broken("claim", "claim", `the observations here merge to ${seen} under ${shown}, not to ${spell(value)}`);
      }
      winner = by;
    }
    const known = schema === null ? "no schema of its type is shown" : `schema in ${schema.record}`;
    this.found.say(
      `${entity}#${field} = ${spell(value)} follows from the ${group.length} observations of it in this capsule, ` +
        `under policy ${shown} (${known}), as of the checkpoint.`,
    );
    for (const other of [...members].filter((ref) => ref !== entity).sort(order))
      this.found.say(`It is one with ${other}, by same_as relations in this capsule.`);
    for (const position of misfits)
      this.found.say(`entry ${position} does not fit the field and has no part in its value.`);
    for (const entry of group) {
      const mark = entry.name === winner ? " This one set the value." : "";
      this.found.say(`${entry.record}: ${summary(entry)}${mark}`, ...this.lineage(entry));
    }
    return (entry) => {
      if (entry.kind === "schema") return entry.body.type === type;
      return (
        entry.kind === "observation" &&
        (members.has(refOf(entry.body)) || endsOf(refOf(entry.body)).some((e) => members.has(e)))
      );
    };
  }

  // F5
  misfits(group, schema, policy, misfits) {
    const field = this.claim.field;
    const checker = new Subschema(schema, field);
    const claims = group.filter(({ body }) => states(body, field));
    const problem = (position, what) => broken("claim", "claim", `entry ${position} ${what}`);
    const positions = new Set(claims.map(({ position }) => position));
    for (const position of misfits)
      if (!positions.has(position)) problem(position, "is listed as not fitting, and is no claim on the field here");
    for (const { body, position } of claims) {
      const inside = has(get(body, "fields"), field);
      const value = inside ? body.fields[field] : null;
      const fit = inside ? checker.fit(value) : checker.removal;
      const misfit = policyMisfit(body, field, policy) || fit === MISFIT;
      if (fit === UNKNOWN) this.found.lower("subschema");
      if (misfit && !misfits.has(position)) problem(position, "does not fit, and is not listed as such");
      if (!misfit && misfits.has(position) && fit !== UNKNOWN) problem(position, "fits, and is listed as not fitting");
    }
  }
}

const REF = /^[a-z][a-z0-9_]{0,63}\/[^\u0000-\u001f\u007f-\u009f]+$/;
const isRef = (text) => REF.test(text) && Buffer.byteLength(splitOnce(text, "/")[1]) <= 1024;

// The two entities that a `same_as` relation joins; none for anything else
function endsOf(ref) {
  const [type, key] = splitOnce(ref, "/");
  let ends = null;
  try {
    ends = type === "same_as" ? JSON.parse(key) : null;
    if (!Array.isArray(ends) || ends.length !== 2 || !ends.every(isText) || spell(ends) !== key) return [];
  } catch {
    return [];
  }
  const sound = ends.every(isRef) && typeOf(ends[0]) === typeOf(ends[1]) && typeOf(ends[0]) !== "same_as";
  return sound && order(ends[0], ends[1]) < 0 ? ends : [];
}

const states = (body, field) =>
  ["assert", "correct"].includes(body.op) && (has(get(body, "fields"), field) || has(get(body, "remove"), field));

// The member that tells objects apart; null under any policy but `by_key`
const keyedBy = (policy) => (isText(policy) && policy.startsWith(BY_KEY) ? policy.slice(BY_KEY.length) : null);
const isKeyed = (item, key) => isText(get(item, key));

function policyMisfit(body, field, policy) {
  const key = keyedBy(policy);
  const gone = get(get(body, "remove"), field);
  if (gone !== null && policy !== "union" && !(key !== null && gone.every(isText))) return true;
  if (!has(get(body, "fields"), field) || isObject(policy) || RANKED.includes(policy)) return false;
  const value = body.fields[field];
  if (key !== null) return !Array.isArray(value) || !value.every((item) => isKeyed(item, key));
  if (policy === "sum") return !(isInt(value) || (isText(value) && value.length <= 400 && DECIMAL.test(value)));
  return !Array.isArray(value);
}

const isMember = (text) => isText(text) && /^[^\u0000-\u001f\u007f-\u009f]+$/.test(text) && Buffer.byteLength(text) <= 256;

function policyOf(schema, field, record) {
  const property = schema === null ? null : get(get(schema.body.schema, "properties"), field);
  if (!has(property, "x-woodrat-merge")) return "latest";
  const policy = property["x-woodrat-merge"];
  if (sameKeys(policy, ["by_key"]) && isMember(policy.by_key)) return BY_KEY + policy.by_key;
  const good = isText(policy)
    ? [...RANKED, ...COLLECTIONS].includes(policy)
    : sameKeys(policy, ["code", "name", "version"]);
  return good || record === null ? policy : broken("schema", record, `${spell(policy)} is no merge policy`);
}

function summary(entry) {
  const body = entry.body;
  if (entry.blank) return `a ${entry.kind} whose content is not shown.`;
  if (entry.kind === "source") return `source ${short(entry.name)} of ${entry.bytes} bytes.`;
  if (entry.kind !== "observation" || !SHAPES.observation(body)) return `a ${entry.kind}: ${spell(body)}`;
  const what = has(body, "fields") ? ` ${spell(body.fields)}` : "";
  const when = has(body, "assigned") ? `${body.observed_at} (the time it arrived)` : body.observed_at;
  return `${short(entry.name)}, in which ${body.agent} stated of ${refOf(body)} at ${when}: ${body.op}${what}.`;
}

// ------------------------------------------------------------------------------------------------ does a value fit?

const [FITS, MISFIT, UNKNOWN] = ["fits", "misfit", "not evaluated"];
const STEPS_MAX = 10_000;
const DEEP_MAX = 100;
const isNumber = (value) => typeof value === "number";
const TYPES = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  integer: Number.isInteger,
  number: isNumber,
  string: isText,
  array: Array.isArray,
  object: isObject,
};
const isType = (value) => isText(value) && Object.hasOwn(TYPES, value);
const IGNORED = [
  ...["$defs", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"],
  ...["format", "contentEncoding", "contentMediaType", "contentSchema"],
  ...["x-woodrat-merge", "x-woodrat-index", "x-woodrat-text", "x-woodrat-redact"],
];
const LIMITS = {
  minimum: [isNumber, (value, limit) => value >= limit],
  maximum: [isNumber, (value, limit) => value <= limit],
  exclusiveMinimum: [isNumber, (value, limit) => value > limit],
  exclusiveMaximum: [isNumber, (value, limit) => value < limit],
  minLength: [isText, (value, limit) => [...value].length >= limit],
  maxLength: [isText, (value, limit) => [...value].length <= limit],
  minItems: [Array.isArray, (value, limit) => value.length >= limit],
  maxItems: [Array.isArray, (value, limit) => value.length <= limit],
};

const REFERENCE = /^#\/[$]defs\/([^/~%]*)$/;
const SCHEMA_SIZE_MAX = 20_000;
const CHECKS_MAX = 20_000;
const CHECKS_AT_ONE_VALUE_MAX = 200;
const REFUSED = ["$dynamicRef", "$dynamicAnchor", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems"];
const HOLD_ONE = [
  ...["additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"],
];
const HOLD_NAMED = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];
const HOLD_LISTED = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NOT_APPLIED = ["$defs", "definitions", "contentSchema"];
const OF_ELEMENTS = ["additionalProperties", "contains", "items", "patternProperties", "propertyNames"];
const SIZES = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

// The subschemas that stand directly in one, with their keyword
const below = (schema) =>
  Object.entries(schema).flatMap(([keyword, value]) => {
    if (HOLD_ONE.includes(keyword)) return [[keyword, value]];
    const several =
      (HOLD_NAMED.includes(keyword) && isObject(value)) || (HOLD_LISTED.includes(keyword) && Array.isArray(value));
    return several ? Object.values(value).map((each) => [keyword, each]) : [];
  });

// Whether a schema is for certain within the subset and the limits of docs/formats/schema.md
function isWithin(document) {
  const defs = get(document, "$defs");
  const known = [new Map(), new Map()];
  // The checks of a subschema, and the most of them that may meet at one value
  const count = (schema, elements, depth) => {
    if (!isObject(schema)) return [1, 1];
    if (depth > CHECKS_AT_ONE_VALUE_MAX) throw new TooLong(); // so it is where references lead back
    const counted = known[elements ? 1 : 0];
    if (!counted.has(schema)) {
      const own = ownChecks(schema, elements);
      let [total, most, apart] = [own, own, 0];
      const inner = below(schema).filter(([keyword]) => !NOT_APPLIED.includes(keyword));
      if (has(schema, "$ref")) inner.push(["$ref", target(schema.$ref)]);
      for (const [keyword, each] of inner) {
        const [checks, atOne] = count(each, elements || OF_ELEMENTS.includes(keyword), depth + 1);
        total += checks;
        if (["properties", "prefixItems"].includes(keyword)) apart = Math.max(apart, atOne);
        else most += atOne;
      }
      counted.set(schema, [total, most + apart]);
    }
    return counted.get(schema);
  };
  const target = (reference) => {
    const name = isText(reference) ? (reference.match(REFERENCE)?.[1] ?? null) : null;
    if (name === null || !has(defs, name)) throw new TooLong();
    return defs[name];
  };
  const isGood = (schema) => {
    const [total, most] = count(schema, false, 1);
    if (total > CHECKS_MAX || most > CHECKS_AT_ONE_VALUE_MAX) return false;
    if (!isObject(schema)) return true;
    return !REFUSED.some((keyword) => has(schema, keyword)) && below(schema).every(([, each]) => isGood(each));
  };
  try {
    return isGood(document);
  } catch (problem) {
    if (problem instanceof TooLong) return false;
    throw problem;
  }
}

// The checks of a subschema without those of others
function ownChecks(schema, elements) {
  const [names, needs, options] = ["patternProperties", "dependentRequired", "enum"].map((name) => get(schema, name));
  let count = 1 + (has(schema, "pattern") ? 80 : 0) + (get(schema, "uniqueItems") === true ? 80 : 0);
  if (isObject(names)) count += 80 * Object.keys(names).length;
  if (isObject(needs)) count += 2 * Object.keys(needs).length;
  const slow = Array.isArray(options) ? options.filter(isSlow).length : 0;
  if (slow) count += options.length;
  if (!elements) return count;
  const whole = [get(schema, "type")].flat().every((name) => ["integer", "null", "boolean", "string"].includes(name));
  const divisor = get(schema, "multipleOf");
  if (isNumber(divisor) && !Number.isInteger(divisor)) count += 30;
  const sizes = SIZES.filter((name) => has(schema, name)).length;
  const compared = slow + (isSlow(get(schema, "const")) ? 1 : 0);
  return count + (whole ? 20 : 80) * sizes + (whole ? 20 : 150) * compared;
}

// Whether a comparison with a value may be one with numbers
const isSlow = (value) => value !== null && typeof value !== "boolean" && !isText(value);

const WITHIN = new WeakMap();

export class Subschema {
  constructor(schema, field) {
    const document = schema === null ? {} : schema.body.schema;
    this.defs = get(document, "$defs");
    const properties = get(document, "properties");
    this.there = has(properties, field);
    this.property = this.there ? properties[field] : true;
    this.redacted = get(this.property, "x-woodrat-redact") === true;
    this.fitting = new Map();
    if (!WITHIN.has(document)) WITHIN.set(document, isWithin(document));
    this.within = WITHIN.get(document);
    const small = this.within && Buffer.byteLength(spell(document)) <= SCHEMA_SIZE_MAX;
    this.known = small && this.isKnown(this.property, new Set());
    this.removal = this.within ? FITS : UNKNOWN; // one that only removes has no value to ask about
  }

  // Whether the claim of an observation fits, worked out once
  fitOf(name, value) {
    if (!this.fitting.has(name)) this.fitting.set(name, this.fit(value));
    return this.fitting.get(name);
  }

  fit(value) {
    if (!this.within) return UNKNOWN;
    if (!this.there || (value === REDACTED && this.redacted)) return FITS;
    if (!this.known) return UNKNOWN;
    this.steps = 0;
    try {
      return this.holds(this.property, value, 1) ? FITS : MISFIT;
    } catch (problem) {
      if (problem instanceof TooLong) return UNKNOWN;
      throw problem;
    }
  }

  target(reference) {
    const name = isText(reference) ? (reference.match(REFERENCE)?.[1] ?? null) : null;
    return name !== null && has(this.defs, name) ? name : null;
  }

  isKnown(sub, seen) {
    if (typeof sub === "boolean") return true;
    if (!isObject(sub)) return false;
    const all = (list) => Array.isArray(list) && list.length > 0 && list.every((item) => this.isKnown(item, seen));
    return Object.entries(sub).every(([keyword, value]) => {
      if (IGNORED.includes(keyword) || keyword === "const") return true;
      if (keyword === "type") return isType(value) || (Array.isArray(value) && value.length > 0 && value.every(isType));
      if (keyword === "enum") return Array.isArray(value);
      if (Object.hasOwn(LIMITS, keyword)) return LIMITS[keyword][0] === isNumber ? isNumber(value) : isWhole(value);
      if (["items", "additionalProperties", "not"].includes(keyword)) return this.isKnown(value, seen);
      if (keyword === "properties")
        return isObject(value) && Object.values(value).every((item) => this.isKnown(item, seen));
      if (keyword === "required") return Array.isArray(value) && value.every(isText);
      if (["anyOf", "allOf", "oneOf"].includes(keyword)) return all(value);
      if (keyword !== "$ref" || this.target(value) === null) return false;
      if (seen.has(value)) return true;
      seen.add(value);
      return this.isKnown(this.defs[this.target(value)], seen);
    });
  }

  // Every keyword is applied, whatever the others gave, so that every verifier counts the same steps.
  // A merge asks for no `enum`, except within `not` and `oneOf`, which are asked whole.
  holds(sub, value, depth, whole = false) {
    if (++this.steps > STEPS_MAX || depth > DEEP_MAX) throw new TooLong();
    if (typeof sub === "boolean") return sub;
    const each = (subs, all = whole) => subs.map((item) => this.holds(item, value, depth + 1, all));
    const inside = (item, part, all = whole) => this.holds(item, part, depth + 1, all);
    const results = Object.entries(sub).map(([keyword, wanted]) => {
      if (IGNORED.includes(keyword)) return true;
      if (keyword === "type") return [wanted].flat().some((name) => TYPES[name](value));
      if (keyword === "enum") return !whole || wanted.map((item) => spell(item)).includes(spell(value));
      if (keyword === "const") return spell(wanted) === spell(value);
      if (Object.hasOwn(LIMITS, keyword)) return !LIMITS[keyword][0](value) || LIMITS[keyword][1](value, wanted);
      if (keyword === "items") return !Array.isArray(value) || value.map((item) => inside(wanted, item)).every(Boolean);
      if (keyword === "properties")
        return (
          !isObject(value) ||
          Object.keys(wanted)
            .map((name) => !has(value, name) || inside(wanted[name], value[name]))
            .every(Boolean)
        );
      if (keyword === "additionalProperties") {
        const others = isObject(value) ? Object.keys(value).filter((name) => !has(get(sub, "properties"), name)) : [];
        return others.map((name) => inside(wanted, value[name])).every(Boolean);
      }
      if (keyword === "required") return !isObject(value) || wanted.every((name) => has(value, name));
      if (keyword === "not") return !inside(wanted, value, true);
      if (keyword === "anyOf") return each(wanted).some(Boolean);
      if (keyword === "allOf") return each(wanted).every(Boolean);
      if (keyword === "oneOf") return each(wanted, true).filter(Boolean).length === 1;
      return inside(this.defs[this.target(wanted)], value); // $ref
    });
    return results.every(Boolean);
  }
}

class TooLong extends Error {}

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
  constructor(members, entries) {
    Object.assign(this, { members, said: new Map(), named: new Map() });
    this.turn("", "latest", []);
    for (const { body, name, digest, position } of entries) {
      const ref = refOf(body);
      if (members.has(ref) && (typeOf(ref) !== "audit_event" || body.op === "assert"))
        this.said.set(name, { body, ref, digest, position });
    }
    for (const [name, { body }] of this.said)
      for (const target of get(body, "replaces") ?? [])
        this.named.set(target, [...(this.named.get(target) ?? []), name]);
    const withdraws = (by, name) => this.op(by) === "retract" && this.ref(by) === this.ref(name);
    this.live = this.settle(withdraws, (by, found) => found.get(by), true);
  }

  // The field that is merged from now on, by which policy, and the positions of the claims on it that do not fit
  turn(field, policy, misfits) {
    return Object.assign(this, { field, policy, misfits: new Set(misfits) });
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
    if (element === null)
      return has(this.part(name, "fields"), this.field) || has(this.part(name, "remove"), this.field);
    return this.elements(name, "fields").includes(element) || this.elements(name, "remove").includes(element);
  }

  elements(name, part) {
    const found = get(this.part(name, part), this.field);
    return Array.isArray(found) ? found.map((item) => spell(item)) : [];
  }

  // Which claims do not fit was settled before (F5, R10).
  fits(name) {
    return !this.misfits.has(this.said.get(name).position);
  }

  claim(name) {
    const { body, digest } = this.said.get(name);
    return { name, digest, at: body.observed_at, priority: body.priority, value: get(get(body, "fields"), this.field) };
  }

  standing(among, element = null) {
    const group = new Set(among);
    const corrects = (by) => group.has(by) && this.op(by) === "correct" && this.states(by, element) && this.fits(by);
    const replaced = this.settle(corrects, (by, found) => this.live.get(by) || found.get(by));
    const live = [...group].filter((n) => this.live.get(n) && this.fits(n) && this.states(n, element));
    const corrections = live.filter((n) => this.op(n) === "correct" && !replaced.get(n));
    return [corrections, live.filter((n) => this.op(n) === "assert")];
  }

  best(names, rank) {
    const claims = names.map((name) => this.claim(name)).sort((a, b) => Buffer.compare(a.digest, b.digest));
    return claims.reduce((top, claim) => (rank(claim, top) > 0 ? claim : top));
  }

  // The claims on the field, without those of deleted members
  stating() {
    const gone = this.deleted();
    return [...this.said.keys()].filter((name) => this.states(name) && !gone.has(this.ref(name)));
  }

  contenders() {
    return this.standing(this.stating());
  }

  value() {
    const stating = this.stating();
    if (this.policy === "union") return this.union(stating);
    if (keyedBy(this.policy) !== null) return this.objects(stating);
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

  // Objects told apart by a member: whether each is in, and each of its other members, is settled by itself.
  objects(stating) {
    const key = keyedBy(this.policy);
    const fitting = stating.filter((name) => this.fits(name));
    const spoken = new Map();
    const speak = (text, member, name, stated) => {
      const object = spoken.get(text) ?? spoken.set(text, new Map()).get(text);
      const part = object.get(member) ?? object.set(member, new Map()).get(member);
      if (!part.has(name) || member === key || order(stated, part.get(name)) > 0) part.set(name, stated);
    };
    for (const name of fitting) {
      for (const text of get(this.part(name, "remove"), this.field) ?? []) speak(text, key, name, false);
      for (const item of get(this.part(name, "fields"), this.field) ?? [])
        for (const member of Object.keys(item)) speak(item[key], member, name, member === key ? true : item[member]);
    }
    const found = [];
    for (const text of [...spoken.keys()].sort(order)) {
      const held = [...spoken.get(text)].map(([member, stated]) => [member, this.settled(stated)]);
      const counting = held.filter(([, stated]) => stated.length > 0);
      const inside = counting.some(([member, [stated]]) => member === key && stated);
      if (inside)
        found.push(Object.fromEntries(counting.map(([member, [stated]]) => [member, member === key ? text : stated])));
    }
    return [fitting.some((name) => this.live.get(name)), found, null];
  }

  // What holds of what some claims say of one thing, in a list that is empty where none of them counts
  settled(stated) {
    const corrects = (by) => stated.has(by) && this.op(by) === "correct";
    const replaced = this.settle(corrects, (by, found) => this.live.get(by) || found.get(by));
    const live = [...stated.keys()].filter((name) => this.live.get(name));
    const corrections = live.filter((name) => this.op(name) === "correct" && !replaced.get(name));
    const deciding = corrections.length ? corrections : live.filter((name) => this.op(name) === "assert");
    const ranked = deciding.map((name) => ({ ...this.claim(name), value: stated.get(name) })).sort(latest);
    return ranked.length ? [ranked.at(-1).value] : [];
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
  const relations = new Map();
  for (const entry of entries)
    if (entry.body.entity.type === "same_as") {
      const ref = refOf(entry.body);
      relations.set(ref, [...(relations.get(ref) ?? []), entry]);
    }
  const edges = [];
  for (const [ref, stated] of relations) {
    const fold = new Fold(new Set([ref]), stated);
    if (endsOf(ref).length && fold.exists() && !fold.deleted().size) edges.push(endsOf(ref));
  }
  const found = new Set([entity]);
  for (let before = 0; found.size > before;) {
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

// -------------------------------------------------------------------------------------------- comparing two values

const isCut = (value) => sameKeys(value, ["$truncated"]);
const isMark = (value) => isCut(value) || sameKeys(value, ["$unserialisable"]);
const cutDigest = (value) => (hexed(get(value.$truncated, "digest"), 32) === null ? null : value.$truncated.digest);
const hashed = (value) => sha256(spell(value)).toString("hex");

function anywhere(value, test) {
  if (test(value)) return true;
  if (Array.isArray(value)) return value.some((item) => anywhere(item, test));
  return isObject(value) && Object.values(value).some((item) => anywhere(item, test));
}

const lowered = (text) => text.replace(/[A-Z]/g, (sign) => sign.toLowerCase());

function matchesPattern(pattern, key) {
  const parts = lowered(pattern).split("*");
  const text = lowered(key);
  if (parts.length === 1) return text === parts[0];
  const last = parts.at(-1);
  if (!text.startsWith(parts[0]) || text.length < parts[0].length + last.length || !text.endsWith(last)) return false;
  let at = parts[0].length;
  for (const part of parts.slice(1, -1)) {
    const next = text.indexOf(part, at);
    if (next < 0) return false;
    at = next + part.length;
  }
  return at <= text.length - last.length;
}

const covered = (key, hidden) => hidden.some((pattern) => matchesPattern(pattern, key));

function redacted(value, hidden) {
  if (Array.isArray(value)) return value.map((item) => redacted(item, hidden));
  if (!isObject(value)) return value;
  const pairs = Object.entries(value).map(([key, item]) => [
    key,
    covered(key, hidden) ? REDACTED : redacted(item, hidden),
  ]);
  return Object.fromEntries(pairs);
}

// The reasons why two recorded values cannot be compared to the end; null where they are different.
function compare(a, b, keys, hidden, again) {
  if (spell(a) === spell(b)) return [];
  if (again && (a === ERASED || b === ERASED)) return ["erased"];
  if (isCut(a) && isCut(b)) {
    const digests = [cutDigest(a), cutDigest(b)];
    if (digests.includes(null)) return ["cut"];
    return digests[0] === digests[1] ? [] : hidden.length ? ["cut"] : null;
  }
  if (isCut(a) || isCut(b)) {
    const [cut, other] = isCut(a) ? [a, b] : [b, a];
    const digest = cutDigest(cut);
    if (digest === null) return ["cut"];
    if (digest === hashed(other) || digest === hashed(redacted(other, hidden))) return [];
    return anywhere(other, (item) => item === REDACTED || isCut(item)) ? ["cut"] : null;
  }
  if (a === REDACTED || b === REDACTED) return keys.some((key) => covered(key, hidden)) ? ["hidden"] : null;
  const unite = (results) => (results.includes(null) ? null : [...new Set(results.flat())]);
  if (isObject(a) && sameKeys(b, Object.keys(a)))
    return unite(Object.keys(a).map((key) => compare(a[key], b[key], [key], hidden, again)));
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length)
    return unite(a.map((item, at) => compare(item, b[at], keys, hidden, again)));
  return null;
}

// ------------------------------------------------------------------------------------------- a run and its decisions

class RunCapsule {
  constructor(capsule) {
    Object.assign(this, { capsule, found: capsule.found, claim: capsule.claim });
    this.entries = capsule.entries.filter((entry) => entry.kind.startsWith("run.") && isObject(entry.body));
    this.started = this.ofKind("run.started");
    this.reads = this.ofKind("run.read");
    const decided = this.ofKind("run.decided");
    const all = this.claim.kind === "run";
    this.allDecided = decided;
    this.decided = all ? decided : decided.filter(({ body }) => body.stage === this.claim.stage);
    this.startHides = this.started.flatMap(({ body }) => get(body, "redact") ?? []);
    this.folds = new Map();
    this.checkers = new Map();
  }

  ofKind(kind) {
    return this.entries.filter((entry) => entry.kind === kind);
  }

  hides(entry) {
    return [...this.startHides, ...(get(entry.body, "redact") ?? [])];
  }

  check() {
    this.steps();
    for (const read of this.reads) this.read(read);
    for (const entry of this.allDecided)
      if (this.decided.includes(entry)) new DecisionCheck(this, entry).check();
      else new DecisionCheck(this, entry).checkAlone();
    for (const { record, body } of this.ofKind("run.ended")) {
      const answer = has(body, "answer") ? ` and the answer ${spell(body.answer)}` : "";
      this.found.say(`${record}: it ended as ${textOf(get(body, "status"))}${answer}.`);
    }
    return this.places();
  }

  // S1 to S10
  steps() {
    this.shown();
    if (this.numbered) {
      this.numbers();
      if ((get(this.end.body, "skipped") ?? []).length) this.found.lower(`skipped ${this.end.position}`); // S8
    }
    if (this.entries.some((entry) => entry.merged)) this.found.lower("imported"); // S9
    for (const { body, record } of this.reads)
      if (!body.found && Object.keys(get(body, "fields") ?? {}).length)
        broken("evidence", record, "it found nothing, and has fields"); // S10
  }

  // S6 and S7
  numbers() {
    const steps = this.entries.filter((entry) => entry.kind !== "run.judged");
    const events = this.ofKind("run.noted").map(({ body }) => get(get(body, "data"), "event"));
    const carriedOn = events.includes("continued") || events.includes("resumed");
    const byNumber = new Map();
    for (const entry of steps) {
      const { step } = entry.body;
      const others = byNumber.get(step) ?? byNumber.set(step, []).get(step);
      const twice = others.find((other) => !isOneStep(other, entry));
      if (twice !== undefined || step > this.end.body.step) {
        const why = twice === undefined ? "is beyond that of the end" : `is that of ${twice.record} too`;
        if (carriedOn) this.found.lower("steps");
        else broken("steps", entry.record, `its number ${step} ${why}`);
      }
      others.push(entry);
    }
    if (carriedOn || this.entries.some(({ body }) => has(body, "after"))) return;
    const atOnce = steps.filter((e) => !["run.tool", "run.model"].includes(e.kind) && !e.again && !e.merged);
    atOnce.forEach((entry, at) => {
      if (at > 0 && entry.body.step < atOnce[at - 1].body.step)
        broken("steps", entry.record, `its number ${entry.body.step} comes after ${atOnce[at - 1].body.step}`);
    });
  }

  // S1 to S5
  shown() {
    const { run, kind } = this.claim;
    if (!this.started.length) broken("claim", "claim", "the start of the run is not among the entries"); // S1
    if ((get(this.claim, "left_out") ?? []).some((place) => !this.reads.some((read) => read.position === place)))
      broken("claim", "claim", "it says that observations of what is no read here are left out");
    const owner = this.started[0].body.agent;
    for (const { body, record, kind: what } of this.entries)
      // S2
      if (body.run !== run || (what !== "run.judged" && body.agent !== owner))
        broken("foreign", record, `it is not of run ${run} by ${owner}`);
    if (kind === "decision" && !this.decided.length) broken("claim", "claim", "no decision of that stage is shown"); // S3
    const { query } = this.started[0].body;
    this.found.say(`${this.started[0].record}: ${run} by ${owner} was asked ${spell(query ?? null)}.`);
    const ends = this.ofKind("run.ended");
    this.numbered = ends.length === 1 && get(ends[0].body, "numbered") === true; // S4
    if (!ends.length) this.found.lower("end");
    else if (!this.numbered) this.found.lower("steps");
    if (!this.numbered) return;
    const [end] = ends; // S5
    this.end = end;
    const written = this.capsule.observations.filter(({ body }) => body.run === run && body.agent === owner);
    const numbers = new Set([
      ...this.entries.filter((entry) => entry.kind !== "run.judged").map(({ body }) => body.step),
      ...written.map(({ body }) => get(body, "step")),
      ...(get(end.body, "skipped") ?? []),
    ]);
    const shown = [...numbers].filter((step) => isWhole(step) && step <= end.body.step).length;
    const gone = this.capsule.entries.filter((entry) => entry.kind === "observation" && entry.blank);
    const missing = end.body.step + 1 - shown;
    if (this.started.length !== 1 || missing > new Set(gone.map((entry) => entry.write)).size)
      broken("steps", end.record, `steps of the run are missing: ${missing} of ${end.body.step + 1}`);
  }

  // The origins of decisions: of those claimed, or of all shown
  originsOf(decisions) {
    return decisions.flatMap(({ body }) => {
      const facts = get(body, "facts_origin");
      const rules = Array.isArray(get(body, "rules")) ? body.rules : [];
      const conditions = rules.flatMap((rule) => rule.conditions.map((item) => item.origin));
      return [...(facts === null || isCut(facts) ? [] : Object.values(facts)), ...conditions];
    });
  }

  fieldsOf(read) {
    const fields = get(read.body, "fields");
    if (fields === null || isCut(fields)) return [];
    const names = Object.keys(fields).sort();
    if (this.claim.kind === "run") return names;
    this.claimed ??= this.originsOf(this.decided).filter((origin) => origin.kind === "read");
    const wanted = this.claimed.filter((origin) => sameRead(origin, read.body)).map((origin) => origin.field);
    return names.filter((name) => wanted.includes(name));
  }

  // R4 and R5: the schema in force at a read
  schemaOf(read) {
    const type = typeOf(read.body.entity);
    const foreign = this.isForeign(read);
    if (!foreign) return this.capsule.highest(this.capsule.schemasOf(type, read.body.position));
    const name = get(read.body, "schema");
    return this.capsule.schemasOf(type).find((entry) => entry.name === name) ?? null;
  }

  isForeign(read) {
    return !this.capsule.ownNames.has(get(read.body, "log")) || read.merged;
  }

  policyAt(read, field) {
    return policyOf(this.schemaOf(read), field, read.record);
  }

  // R1 to R10
  read(read) {
    const fields = this.fieldsOf(read);
    if (this.claim.kind === "run" && isCut(get(read.body, "fields"))) this.found.lower(`cut ${read.position}`);
    if (!fields.length) return;
    const { body, position: place, record } = read;
    const wrong = (text) => broken("evidence", record, text);
    if (!has(body, "entity")) {
      // R1
      if (!read.again && !has(body, "remembered")) wrong("it names no entity");
      return this.found.lower(read.again ? `erased ${place}` : `recall ${place}`);
    }
    if (!has(body, "position")) {
      if (this.numbered) wrong("it names no position");
      return this.found.lower(`read ${place}`);
    }
    const foreign = this.isForeign(read); // R2
    if (foreign) this.found.lower(`foreign ${place}`);
    if (has(body, "effective")) this.found.lower(`effective ${place}`);
    if (!foreign && body.position >= place)
      wrong(`it read at position ${body.position}, which the log did not have then`); // R3
    if (has(body, "as_of") && body.as_of !== body.position) wrong("as_of is not the position it read at");
    const schema = this.schemaOf(read); // R4
    if ((schema === null ? null : schema.name) !== get(body, "schema"))
      broken("schema", record, "the schema it names is not the one in force at the position it read at");
    for (const field of fields) this.readField(read, field, schema, foreign);
  }

  readField(read, field, schema, foreign) {
    const { body, position: place, record } = read;
    const wrong = (text) => broken("evidence", record, `${body.entity}#${field}: ${text}`);
    const policy = policyOf(schema, field, record); // R5
    const ranked = RANKED.includes(policy);
    if (isObject(policy)) this.found.lower(`policy ${place}`);
    const item = body.fields[field];
    if (!has(item, "observation")) {
      // R6
      if (!read.again) wrong("it names no observation");
      return this.found.lower(`erased ${place}`);
    }
    if (!has(item, "value")) wrong("it names an observation and no value");
    const several = get(item, "observations");
    if (ranked && several !== null) wrong("a field with one winner names several observations");
    if (several !== null) {
      if (new Set(several).size !== several.length) wrong("it names an observation twice");
      const sound = several.length >= 2 && several.length <= 1000 && several[0] === item.observation;
      if (!sound && !read.again) wrong("its observations are not 2 to 1000, with the one shown first");
    }
    const through = foreign ? Infinity : body.position;
    const group = this.capsule.groupAt(body.entity, through, get(body, "effective")); // R7
    const behind = [];
    for (const id of several ?? [item.observation]) {
      const entry = this.capsule.byId.get(id) ?? wrong(`it read ${id}, which is not here`);
      if (!foreign && !entry.again && entry.position > body.position) wrong(`${id} was stated after the read`);
      const { body: said } = entry;
      if (!["assert", "correct"].includes(said.op) || !group.has(refOf(said))) wrong(`${id} is not about this entity`);
      if (!has(get(said, "fields"), field) && (ranked || !has(get(said, "remove"), field))) {
        if (!read.again || !entry.again) wrong(`${id} does not state the field`);
        return this.found.lower(`erased ${place}`);
      }
      if (has(body, "effective") && said.valid_from > body.effective)
        wrong(`${id} was not true yet at the effective time`);
      behind.push(entry);
    }
    const checker = this.checker(schema, field);
    const hidden = [...this.hides(read), ...(checker.redacted ? [field] : [])];
    if (ranked) {
      // R8
      const stated = behind[0].body.fields[field];
      const reasons = compare(item.value, stated, [field], hidden, read.again || behind[0].again);
      if (reasons === null) wrong(`it shows ${spell(item.value)}, and ${item.observation} states ${spell(stated)}`);
      this.found.reasons(reasons, place);
      if (!reasons.includes("erased") && checker.fit(stated) === MISFIT)
        wrong(`${spell(stated)} does not fit the schema in force`);
    }
    const whole = behind.length < 1000 && !read.again && !behind.some((entry) => entry.again);
    const value = item.value; // R9
    const key = keyedBy(policy);
    if (
      (policy === "union" || policy === "append" || key !== null) &&
      whole &&
      Array.isArray(value) &&
      !anywhere(value, (one) => isMark(one) || one === REDACTED)
    ) {
      const members = (one) => (isKeyed(one, key) ? Object.keys(one).map((name) => [one[key], name, one[name]]) : []);
      const parts = (one) => (key === null ? [one] : members(one)).map((part) => spell(part));
      const stated = new Set(
        behind.flatMap((entry) => [get(get(entry.body, "fields"), field) ?? []].flat()).flatMap(parts),
      );
      if (value.map(parts).some((each) => !each.length || each.some((part) => !stated.has(part))))
        wrong("an element of its value is in none of its observations");
    }
    this.merged(read, field, policy, checker, hidden, wrong);
  }

  checker(schema, field) {
    const asked = spell([schema === null ? null : schema.name, field]);
    return this.checkers.get(asked) ?? this.checkers.set(asked, new Subschema(schema, field)).get(asked);
  }

  // The observations that a read saw, to be merged once more; null where they are not all shown
  foldAt(read) {
    const { entity, position } = read.body;
    if (read.again || has(read.body, "effective") || this.isForeign(read)) return null;
    if (!has(this.claim, "left_out") || this.claim.left_out.includes(read.position)) return null;
    const asked = spell([entity, position]);
    if (!this.folds.has(asked)) {
      const members = this.capsule.groupAt(entity, position);
      const group = this.capsule.observations.filter(({ body }) => members.has(refOf(body)));
      const gone = this.capsule.entries.some((e) => e.blank && e.kind === "observation" && e.position <= position);
      const whole = !gone && !group.some((entry) => entry.again);
      const seen = group.filter((entry) => entry.position <= position);
      this.folds.set(asked, whole ? new Fold(members, seen) : null);
    }
    return this.folds.get(asked);
  }

  // R10
  merged(read, field, policy, checker, hidden, wrong) {
    const fold = this.foldAt(read);
    const ranked = RANKED.includes(policy);
    const own = isObject(policy);
    if (fold === null) {
      if (!own) this.found.lower(`${ranked ? "winner" : "collection"} ${read.position}`);
      return;
    }
    fold.turn(field, own ? OWN : policy, []);
    const misfits = [];
    let open = false;
    for (const [name, { body, position }] of fold.said) {
      const states = fold.states(name);
      const missing = (get(body, "replaces") ?? []).some((one) => !this.capsule.byName.has(one));
      if (missing && (states || !["assert", "correct"].includes(body.op))) this.found.lower(`named ${position}`);
      if (!states) continue;
      const inside = has(get(body, "fields"), field);
      const fit = inside ? checker.fitOf(name, body.fields[field]) : checker.removal;
      if (fit === UNKNOWN) open = true;
      if (fit === MISFIT || policyMisfit(body, field, policy)) misfits.push(position);
    }
    if (open) return this.found.lower(`subschema ${read.position}`);
    fold.turn(field, fold.policy, misfits);
    const item = read.body.fields[field];
    if (own) {
      const [corrections, assertions] = fold.contenders();
      if (!corrections.length && !assertions.length) wrong("the observations here merge to no value");
      if (corrections.length) this.alike(read, field, item, fold.best(corrections, latest).value, hidden, wrong);
      return;
    }
    const [there, value, winner] = fold.value();
    if (!there) wrong("the observations here merge to no value");
    if (!ranked) this.alike(read, field, item, value, hidden, wrong);
    else if (short(winner) !== item.observation)
      wrong(`it read ${item.observation}, and the observations here merge to ${spell(value)} of ${short(winner)}`);
  }

  alike(read, field, item, value, hidden, wrong) {
    const reasons = compare(item.value, value, [field], hidden, false);
    if (reasons === null) wrong(`it read ${spell(item.value)}, and the observations here merge to ${spell(value)}`);
    this.found.reasons(reasons, read.position);
  }

  // The ids of observations that a read or an origin shown names
  named() {
    const origins = this.originsOf(this.allDecided).filter((origin) => origin.kind === "read");
    const items = this.reads.flatMap(({ body }) =>
      isObject(get(body, "fields")) && !isCut(body.fields) ? Object.values(body.fields) : [],
    );
    return new Set([
      ...items.flatMap((item) => [item.observation, ...(get(item, "observations") ?? [])]),
      ...origins.flatMap((origin) => get(origin, "observations") ?? []),
    ]);
  }

  // Which observations, schemas and entries of the run have a place (B5)
  places() {
    const origins = this.originsOf(this.allDecided).filter((origin) => origin.kind === "read");
    const ids = this.named();
    const seen = new Set();
    const entities = new Set([
      ...this.reads.map(({ body }) => get(body, "entity")),
      ...origins.map((origin) => get(origin, "entity")),
    ]);
    for (const entry of this.capsule.observations) if (ids.has(short(entry.name))) entities.add(refOf(entry.body));
    entities.delete(null);
    for (const read of this.reads) {
      const { entity, position } = read.body;
      if (!isText(entity) || !has(read.body, "position") || this.isForeign(read)) continue;
      const members = this.capsule.groupAt(entity, position, get(read.body, "effective"));
      members.forEach((member) => entities.add(member));
      for (const entry of this.capsule.observations)
        if (members.has(refOf(entry.body)) && (entry.position <= position || entry.again)) seen.add(entry);
    }
    const types = new Set([...entities].map(typeOf));
    return (entry) => {
      if (entry.kind.startsWith("run.")) return true;
      if (entry.kind === "schema") return types.has(entry.body.type);
      if (seen.has(entry) || ids.has(short(entry.name)) || entry.body.run === this.claim.run) return true;
      return endsOf(refOf(entry.body)).some((end) => entities.has(end));
    };
  }
}

// Whether two entries can be of one step: of a read of many, or the beginning and the end of a call, which ends once
function isOneStep(one, two) {
  if (one.kind !== two.kind || one.body.span !== two.body.span) return false;
  if (one.kind === "run.tool") return [one, two].some(({ body }) => get(body, "begun") === true);
  return one.kind === "run.read";
}

const sameRead = (origin, read) =>
  get(origin, "entity") !== null &&
  get(origin, "entity") === get(read, "entity") &&
  has(origin, "position") === has(read, "position") &&
  get(origin, "position") === get(read, "position");

Capsule.prototype.run = function () {
  return new RunCapsule(this).check();
};

const OPERATORS = ["eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "exists", "matches"];
const [TRUE, FALSE, UNSURE, OPEN] = ["true", "false", "unknown", "not evaluated"];

class DecisionCheck {
  constructor(run, entry) {
    Object.assign(this, { run, entry, body: entry.body, found: run.found, place: entry.position });
    this.hidden = run.hides(entry);
    this.again = entry.again;
  }

  wrong(text) {
    return broken("decision", this.entry.record, text);
  }

  unfounded(text) {
    return broken("evidence", this.entry.record, text);
  }

  lower(reasons) {
    this.found.reasons(reasons, this.place);
  }

  // D1 to D9 of a decision that is not claimed: it does not contradict itself. What it lowers is not named.
  checkAlone() {
    const { found } = this;
    this.found = new Findings();
    this.itself();
    this.found = found;
    this.found.say(`${this.entry.record}: ${this.body.stage} was decided too; that is not part of the claim.`);
  }

  check() {
    this.itself();
    this.evidence();
  }

  // D1
  itself() {
    const { body } = this;
    this.found.say(
      `${this.entry.record}: ${body.stage} was decided as ${spell(get(body, "chosen"))} at ${textOf(get(body, "started_at"))}.`,
    );
    this.rules = Array.isArray(get(body, "rules")) ? body.rules : [];
    if (!has(body, "rules")) {
      this.lower(["choice"]);
      this.found.say("  A model or a person chose; that is not evaluated.");
    } else if (isCut(body.rules)) this.lower(["cut"]);
    else {
      if (!has(body, "facts") || !has(body, "facts_origin")) this.wrong("it has rules and no facts with their origins");
      this.omitted();
      this.rules.forEach((rule, index) => this.rule(rule, index));
      this.chosen();
    }
    this.facts();
  }

  // D2
  omitted() {
    const omitted = get(this.body, "omitted");
    const conditions = this.rules.reduce((count, rule) => count + rule.conditions.length, 0);
    if (has(omitted, "rules") && this.rules.length < 1000) this.wrong("rules are left out though there are few");
    if (has(omitted, "conditions") && conditions < 1000) this.wrong("conditions are left out though there are few");
    if (has(omitted, "rules") || has(omitted, "conditions")) this.lower(["omitted"]);
    this.some = has(omitted, "conditions");
  }

  // D3 to D7
  rule(rule, index) {
    const name = get(rule, "label") ?? `number ${index}`;
    const word = rule.matched ? "matched" : get(rule, "unknown") ? "is unknown" : "did not match";
    if (rule.matched && get(rule, "unknown")) this.wrong(`rule ${name} is both matched and unknown`);
    if (!has(rule, "when")) {
      // D7
      this.lower(["predicate"]);
      this.found.say(`  Rule ${name} is code (${rule.predicate}); it ${word}, which is not evaluated.`);
      return;
    }
    const cut = isCut(rule.when);
    if (cut) this.lower(["cut"]);
    const wanted = cut ? null : this.wanted(rule.when);
    const [missing, bare] = cut ? [[], false] : this.pair(name, wanted, rule.conditions); // D3
    for (const { key, op } of [...rule.conditions, ...missing])
      // D4
      if (!OPERATORS.includes(op)) this.wrong(`rule ${name}: ${key} has the unknown operator ${textOf(op ?? null)}`);
    const results = [];
    let open = cut || bare;
    for (const item of rule.conditions) {
      // D4, D5
      const stated = cut ? null : wanted.find((one) => one.key === item.key && one.op === item.op);
      let operand = item.operand;
      if (stated) {
        const reasons = compare(stated.operand, item.operand, [item.key], this.hidden, this.again);
        if (reasons === null) this.wrong(`rule ${name}: the operand of ${item.key} ${item.op} is not that of the rule`);
        this.lower(reasons);
        operand = stated.operand;
      }
      results.push(this.condition(name, item, operand));
    }
    for (const { key, op, operand } of missing) {
      // D5
      const facts = this.body.facts;
      const result = isCut(facts) ? OPEN : this.evaluate(op, operand, has(facts, key), get(facts, key));
      if (result === OPEN) open = true;
      else results.push(result);
    }
    this.outcome(name, rule, results, open); // D6
    this.found.say(`  Rule ${name} ${word}.`);
    for (const item of rule.conditions) this.found.say(`    ${toldCondition(item)}.`);
  }

  // D3: the conditions that `when` has
  wanted(when) {
    return Object.entries(when).flatMap(([key, value]) => {
      if (value === REDACTED && covered(key, this.hidden)) return [{ key, hidden: true }];
      if (!isObject(value) || isMark(value)) return [{ key, op: "eq", operand: value }];
      return Object.entries(value).map(([op, operand]) => ({ key, op, operand }));
    });
  }

  pair(name, wanted, conditions) {
    const left = new Map(wanted.map((item) => [spell([item.key, item.op ?? null]), item]));
    const hidden = new Set(wanted.filter((item) => item.hidden).map((item) => item.key));
    if (hidden.size) this.lower(["hidden"]);
    const [seen, met] = [new Set(), new Set()];
    for (const item of conditions) {
      const pair = spell([item.key, item.op ?? null]);
      if (met.has(pair)) this.wrong(`rule ${name}: ${item.key} ${textOf(item.op ?? null)} stands twice`);
      met.add(pair);
      if (hidden.has(item.key)) {
        seen.add(item.key);
        if (item.operand !== REDACTED)
          this.wrong(`rule ${name}: the operand of ${item.key} is shown, and the rule hides it`);
      } else if (!left.delete(pair))
        this.wrong(`rule ${name}: ${item.key} ${textOf(item.op ?? null)} is no condition of the rule`);
    }
    const gone = [...left.values()].filter((item) => !item.hidden);
    const bare = [...hidden].some((key) => !seen.has(key));
    if (!this.some && (gone.length || bare)) this.wrong(`rule ${name}: a condition of the rule is missing`);
    return [gone, bare];
  }

  // D5
  condition(name, item, operand) {
    const result = this.evaluate(item.op, operand, has(item, "actual"), get(item, "actual"));
    const recorded = has(item, "result") ? (item.result ? TRUE : FALSE) : UNSURE;
    if (has(item, "result") === has(item, "error"))
      this.wrong(`rule ${name}: ${toldCondition(item)} has a result and an error, or neither`);
    if (result !== OPEN && result !== recorded)
      this.wrong(`rule ${name}: ${toldCondition(item)} is recorded as ${recorded}, and is ${result}`);
    return recorded;
  }

  evaluate(op, operand, there, actual) {
    if (op === "exists") {
      if (typeof operand !== "boolean") {
        if (operand === REDACTED) return this.open(["hidden"]);
        this.wrong("the operand of exists is neither true nor false");
      }
      return there === operand ? TRUE : FALSE;
    }
    if (!there) return UNSURE;
    if (op === "matches") return this.open(["matches"]);
    const either = (test) => anywhere(actual, test) || anywhere(operand, test);
    const reasons = [];
    if (either((one) => one === REDACTED)) reasons.push("hidden");
    if (this.again && either((one) => one === ERASED)) reasons.push("erased");
    if (either((one) => sameKeys(one, ["$unserialisable"]))) reasons.push("mark");
    if (reasons.length) return this.open(reasons);
    if (op === "eq" || op === "ne") {
      const same = this.equal(actual, operand);
      return same === null ? this.open(["cut"]) : same === (op === "eq") ? TRUE : FALSE;
    }
    if (op === "in" || op === "not_in") {
      if (isCut(operand)) return this.open(["cut"]);
      if (!Array.isArray(operand) || operand.length > 1000) return UNSURE;
      const found = operand.map((one) => this.equal(actual, one));
      if (found.includes(null)) return this.open(["cut"]);
      return found.includes(true) === (op === "in") ? TRUE : FALSE;
    }
    if (isCut(actual) || isCut(operand)) return this.open(["cut"]);
    if (kindOf(actual) !== kindOf(operand) || ![3, 4].includes(kindOf(actual))) return UNSURE;
    const sign = order(actual, operand);
    return { gt: sign > 0, gte: sign >= 0, lt: sign < 0, lte: sign <= 0 }[op] ? TRUE : FALSE;
  }

  open(reasons) {
    this.lower(reasons);
    return OPEN;
  }

  // Whether two values are the same; null where a cut one hides that.
  equal(a, b) {
    if (isCut(a) || isCut(b)) {
      const digests = [a, b].map((one) => (isCut(one) ? cutDigest(one) : anywhere(one, isCut) ? null : hashed(one)));
      return digests.includes(null) ? null : digests[0] === digests[1];
    }
    if (anywhere(a, isCut) || anywhere(b, isCut)) return null;
    return spell(a) === spell(b);
  }

  // D6
  outcome(name, rule, results, open) {
    const unknown = get(rule, "unknown") === true;
    let good = true;
    if (results.includes(FALSE)) good = !rule.matched && !unknown;
    else if (open) good = true;
    else if (results.includes(UNSURE)) good = unknown;
    else good = rule.matched === results.length > 0 && !unknown;
    if (!good) {
      const recorded = rule.matched ? "matched" : unknown ? "unknown" : "not matched";
      this.wrong(`rule ${name} is recorded as ${recorded}, and is not so`);
    }
  }

  // D8
  chosen() {
    const { body, rules } = this;
    const select = body.mode === "select";
    const matched = rules.filter((rule) => rule.matched);
    if (body.default !== (matched.length === 0)) this.wrong("default is not whether no rule matched");
    if (!select && matched.length && (matched.length > 1 || matched[0] !== rules.at(-1)))
      this.wrong("rules after the match are recorded as tried");
    if (rules.some((rule) => has(rule, "unknown")) && !has(body, "on_missing"))
      this.wrong("a rule is unknown, and nothing says that it may be skipped");
    if (select && !Array.isArray(get(body, "chosen")) && !isCut(get(body, "chosen")))
      this.wrong("what was selected is not a list");
    if (body.default) {
      if (has(body, "untried") || has(body, "otherwise"))
        this.wrong("no rule matched, and others are said not to have been tried");
      this.found.say("  No rule matched; the default was taken.");
    } else {
      const taken = matched.map((rule) => rule.chosen);
      const reasons = compare(get(body, "chosen"), select ? taken : taken[0], [], this.hidden, this.again);
      if (reasons === null) this.wrong("what was chosen is not what its matching rules say");
      this.lower(reasons);
    }
    const labels = matched.map((rule) => get(rule, "label"));
    const label = select ? labels : (labels[0] ?? null);
    if (spell(get(body, "rule")) !== spell(label)) this.wrong("the rule it names is not the one that matched");
  }

  // D9
  facts() {
    const { facts = null, facts_origin: origins = null } = this.body;
    if ([facts, origins, get(this.body, "untried")].some(isCut)) this.lower(["cut"]);
    if (!isObject(facts) || !isObject(origins) || isCut(facts) || isCut(origins)) return;
    for (const name of Object.keys(facts)) if (!has(origins, name)) this.unfounded(`${name} has no origin`);
    for (const item of this.rules.flatMap((rule) => rule.conditions)) {
      if (has(item, "actual") !== has(facts, item.key))
        this.unfounded(`${item.key} is not among the facts as the condition has it`);
      if (has(item, "actual")) {
        const reasons = compare(item.actual, facts[item.key], [item.key], this.hidden, this.again);
        if (reasons === null)
          this.unfounded(`${item.key} = ${spell(item.actual)} is not the fact ${spell(facts[item.key])}`);
        this.lower(reasons);
      }
      if (has(origins, item.key) && spell(origins[item.key]) !== spell(item.origin))
        this.unfounded(`${item.key} has two origins`);
    }
  }

  // D10
  evidence() {
    const { facts = null, facts_origin: origins = null } = this.body;
    if (isObject(facts) && isObject(origins) && !isCut(facts) && !isCut(origins))
      for (const name of Object.keys(facts).sort()) {
        const where = this.origin(name, facts[name], origins[name]);
        this.found.say(`  ${name} = ${spell(facts[name])}: ${where}.`, ...this.behind(origins[name]));
      }
    for (const item of this.rules.flatMap((rule) => rule.conditions))
      if (has(item, "actual")) this.origin(item.key, item.actual, item.origin);
      else this.nothing(item.key, item.origin);
  }

  // The observations that a read rests on, in words
  behind(origin) {
    const { capsule } = this.run;
    const entries = (get(origin, "observations") ?? []).map((id) => capsule.byId.get(id)).filter(Boolean);
    const lines = entries.flatMap((entry) => [`${entry.record}: ${summary(entry)}`, ...capsule.lineage(entry)]);
    return lines.map((line) => `      ${line}`);
  }

  // Whether an entry counts as a place of origin
  counts(entry) {
    if (!this.run.numbered) return true;
    const loose = [entry, this.entry].some((one) => one.again || one.merged);
    return (loose || entry.position < this.place) && entry.body.step < this.body.step;
  }

  compared(value, other, keys, entry) {
    const hidden = [...this.hidden, ...this.run.hides(entry)];
    return compare(value, other, keys, hidden, this.again || entry.again);
  }

  origin(name, value, origin) {
    const by = get(origin, "by") === null ? "" : " (linked by name and value)";
    if (origin.kind === "stated") return "stated by the agent";
    if (origin.kind === "recall") {
      this.lower(["recall"]);
      return `decided as ${origin.stage} by ${origin.run}, which is not shown` + by;
    }
    if (origin.kind === "read") return this.fromRead(name, value, origin) + by;
    const { places, reasons, key } = this.places(origin);
    const what = {
      decision: `decided by ${origin.run} in span ${origin.span}`,
      input: `input ${origin.name} of the run`,
    }[origin.kind];
    const said = what ?? `${origin.path || "the whole"} of ${origin.kind} call ${origin.span}`;
    const alike = places
      .map(([entry, found]) => this.compared(value, found, [name, key], entry))
      .filter((one) => one !== null);
    if (alike.length) this.lower(alike.at(-1));
    else if (places.length || !reasons.length) this.unfounded(`${name} = ${spell(value)} is not ${said}`);
    return said + by;
  }

  // The values that the origin of a decision, an input, a tool or a model leads to, the name they stand under, and the
  // reasons why it may lead nowhere
  places(origin) {
    const [places, reasons] = [[], []];
    if (origin.kind === "decision") {
      const made = this.run.allDecided.filter((e) => e.body.span === origin.span && this.counts(e));
      if (origin.run !== this.run.claim.run || !(made.length || this.run.numbered)) reasons.push("decision");
      else places.push(...made.map((entry) => [entry, get(entry.body, "chosen")]));
      this.lower(reasons);
      return { places, reasons, key: made.length ? made.at(-1).body.stage : "" };
    }
    if (origin.kind === "input") {
      for (const entry of this.run.started.filter((one) => this.counts(one))) {
        const inputs = get(entry.body, "inputs");
        if (isCut(inputs)) reasons.push("cut");
        else if (has(inputs, origin.name)) places.push([entry, inputs[origin.name]]);
      }
      this.lower(reasons);
      return { places, reasons, key: origin.name };
    }
    const part = origin.kind === "tool" ? "result" : "response";
    for (const entry of this.run.ofKind(`run.${origin.kind}`)) {
      if (entry.body.span !== origin.span || !hasOutcome(entry.body, part) || !this.counts(entry)) continue;
      const [reason, found] = pointed(get(entry.body, part), origin.path, entry.again);
      if (reason === null) places.push([entry, found]);
      else if (reason !== "nowhere") reasons.push(reason);
    }
    if (!places.length) this.lower(reasons);
    return { places, reasons, key: pointerSteps(origin.path).at(-1) ?? "" };
  }

  // A condition without an actual value: its origin says nothing of it
  nothing(name, origin) {
    if (origin.kind === "stated") return;
    if (origin.kind === "recall") return this.lower(["recall"]);
    if (origin.kind === "read") {
      if (!has(origin, "entity"))
        return this.again ? this.lower(["erased"]) : this.unfounded(`${name} has a read without an entity for origin`);
      const reads = this.readsOf(origin);
      if (!reads.length) this.lower(["read"]);
      for (const read of reads) {
        if (isCut(get(read.body, "fields"))) this.lower(["cut"]);
        else if (has(get(read.body, "fields"), origin.field))
          this.unfounded(`${name} is said to be missing, and ${read.record} has it`);
      }
      return;
    }
    for (const [entry] of this.places(origin).places)
      this.unfounded(`${name} is said to be missing, and ${entry.record} has it`);
  }

  readsOf(origin) {
    return this.run.reads.filter((read) => sameRead(origin, read.body) && this.counts(read));
  }

  fromRead(name, value, origin) {
    const { entity = null, field } = origin;
    if (entity === null) {
      if (!this.again) this.unfounded(`${name} has a read without an entity for origin`);
      this.lower(["erased"]);
      return "read of something that was erased";
    }
    const what = `${entity}#${field}`;
    const reads = this.readsOf(origin);
    if (!reads.length) return this.outside(name, value, origin);
    const whole = reads.filter((read) => !isCut(get(read.body, "fields")));
    if (whole.length < reads.length) this.lower(["cut"]);
    const having = whole.filter((read) => has(get(read.body, "fields"), field));
    const answers = having.map((read) => [read, this.answers(read, name, value, origin)]);
    const answer = answers.filter(([, reasons]) => reasons !== null).at(-1);
    if (answer === undefined) {
      if (having.length || whole.length === reads.length)
        this.unfounded(`${name} = ${spell(value)} is not what a read of ${what} shows`);
      return `read of ${what}`;
    }
    this.lower(answer[1]);
    return `read of ${what} at position ${textOf(get(origin, "position"))} (${answer[0].record})`;
  }

  // The reasons with which a read answers for a value; null where it does not
  answers(read, name, value, origin) {
    const { field } = origin;
    const item = read.body.fields[field];
    if (!has(item, "value")) return null;
    const placed = has(read.body, "position");
    const schema = placed ? this.run.schemaOf(read) : null;
    const hidden = [...this.hidden, ...this.run.hides(read), ...(isRedactedField(schema, field) ? [field] : [])];
    const again = this.again || read.again;
    const reasons = compare(value, item.value, [name, field], hidden, again);
    if (reasons === null) return null;
    const ids = get(item, "observations") ?? (has(item, "observation") ? [item.observation] : null);
    const named = get(origin, "observations");
    if (!again && ids !== null && named !== null && spell(ids) !== spell(named.slice(0, 1000))) return null;
    const behind = this.run.capsule.byId.get(get(item, "observation"));
    if (!placed || behind === undefined || !RANKED.includes(policyOf(schema, field, read.record))) return reasons;
    const stated = get(behind.body, "fields");
    if (!has(stated, field)) return read.again && behind.again ? [...reasons, "erased"] : null;
    const more = compare(value, stated[field], [name, field], hidden, again || behind.again);
    return more === null ? null : [...reasons, ...more];
  }

  // A value that was read outside of the run
  outside(name, value, origin) {
    const { entity, field } = origin;
    const what = `${entity}#${field}, read outside of the run`;
    this.lower(["read"]);
    if (!has(origin, "position") || !has(origin, "observations")) return what;
    const { position, observations } = origin;
    const { capsule } = this.run;
    const schema = capsule.highest(capsule.schemasOf(typeOf(entity), position));
    const group = capsule.groupAt(entity, position);
    const behind = [];
    for (const id of observations) {
      const entry = capsule.byId.get(id);
      if (!entry) {
        if (!this.again) this.unfounded(`${name} was read from ${id}, which is not here`);
        this.lower(["erased"]);
        continue;
      }
      if (entry.position > position && !entry.again) this.unfounded(`${id} was stated after the read of ${name}`);
      if (!group.has(refOf(entry.body))) this.unfounded(`${id} is not about ${entity}`);
      if (!states(entry.body, field)) {
        if (!this.again || !entry.again) this.unfounded(`${id} does not state ${entity}#${field}`);
        this.lower(["erased"]);
        continue;
      }
      behind.push(entry);
    }
    if (!RANKED.includes(policyOf(schema, field, null)) || behind.length !== observations.length) return what;
    if (behind.length !== 1 || !has(get(behind[0].body, "fields"), field))
      this.unfounded(`${name} has one winner, and rests on ${behind.length} observations`);
    const hidden = [...this.hidden, ...(isRedactedField(schema, field) ? [field] : [])];
    const stated = behind[0].body.fields[field];
    const reasons = compare(value, stated, [name, field], hidden, this.again || behind[0].again);
    if (reasons === null) this.unfounded(`${name} = ${spell(value)}, and ${observations[0]} states ${spell(stated)}`);
    this.lower(reasons);
    return what;
  }
}

const isRedactedField = (schema, field) => schema !== null && new Subschema(schema, field).redacted;

// Whether a call has a result or a response; one that ended well and says none had null
const hasOutcome = (body, part) => has(body, part) || (get(body, "begun") !== true && get(body, "errored") !== true);

// What a JSON Pointer leads to, or why it does not lead there
function pointed(value, path, again) {
  if (path !== "" && (!path.startsWith("/") || /~(?![01])/.test(path))) return ["nowhere", null];
  for (const step of pointerSteps(path)) {
    if (isCut(value)) return ["cut", null];
    if (value === REDACTED) return ["hidden", null];
    if (again && value === ERASED) return ["erased", null];
    if (has(value, step)) value = value[step];
    else if (Array.isArray(value) && /^(0|[1-9][0-9]{0,8})$/.test(step) && Number(step) < value.length)
      value = value[Number(step)];
    else return [again ? "erased" : "nowhere", null];
  }
  return [null, value];
}

function pointerSteps(path) {
  return path
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function toldCondition(item) {
  const actual = has(item, "actual") ? spell(item.actual) : "nothing";
  const against = has(item, "op") ? ` ${item.op} ${spell(item.operand)}` : "";
  const result = has(item, "result") ? (item.result ? "holds" : "does not hold") : "is unknown";
  return `${item.key} = ${actual}${against}: ${result}`;
}

// -------------------------------------------------------------------------------------------------- shapes of bodies

const any = () => true;
const isTrue = (value) => value === true;
const isMoment = (value) => isText(value) && MOMENT.test(value);
const isBoolean = (value) => typeof value === "boolean";
const listOf = (good) => (value) => Array.isArray(value) && value.every(good);
const texts = listOf(isText);
const orCut = (good) => (value) => isCut(value) || good(value);
const place = (value) => isInt(value) && value >= -1;
const oneOf =
  (...words) =>
  (value) =>
    words.includes(value);
const mapOf = (good) => (value) => isObject(value) && Object.values(value).every(good);
const fullName = (value) => isText(value) && /^obs_[a-z2-7]{51}[aq]$/.test(value);

// Members that must be there, and members that may be.
const shape =
  (must, may = {}) =>
  (value) =>
    isObject(value) &&
    Object.entries(must).every(([name, good]) => has(value, name) && good(value[name])) &&
    Object.keys(value).every(
      (name) => Object.hasOwn(must, name) || (Object.hasOwn(may, name) && may[name](value[name])),
    );

const LINKED = { by: oneOf("value") };
const ORIGINS = {
  stated: shape({ kind: any }),
  decision: shape({ kind: any, run: isText, span: isText }),
  input: shape({ kind: any, name: isText }, LINKED),
  tool: shape({ kind: any, span: isText, path: isText }, LINKED),
  model: shape({ kind: any, span: isText, path: isText }, LINKED),
  read: shape({ kind: any, field: isText }, { entity: isText, observations: texts, position: place, ...LINKED }),
  recall: shape({ kind: any, span: isText, run: isText, stage: isText }, LINKED),
};
const isOrigin = (value) =>
  isText(get(value, "kind")) && Object.hasOwn(ORIGINS, value.kind) && ORIGINS[value.kind](value);
const conditionShape = shape(
  { key: isText, origin: isOrigin },
  { op: isText, operand: any, actual: any, result: isBoolean, error: isText },
);
const isCondition = (value) => conditionShape(value) && has(value, "op") === has(value, "operand");
const WAYS = { when: isObject, predicate: isText };
const oneWay = (value) => has(value, "when") !== has(value, "predicate");
const ruleShape = shape(
  { chosen: any, matched: isBoolean, conditions: listOf(isCondition) },
  { unknown: isTrue, label: isText, error: any, ...WAYS },
);
const untriedShape = shape({ chosen: any }, { label: isText, ...WAYS });
const isRule = (value) => ruleShape(value) && oneWay(value);
const isUntried = (value) => untriedShape(value) && oneWay(value);
const isReadField = shape({}, { value: any, observation: isText, observations: texts });

const ofRun = (must, may) =>
  shape(
    { run: isText, step: isWhole, span: isText, agent: isText, ...must },
    {
      ...{ started_at: isText, under: isText, after: isText, duration_ms: any, attributes: any },
      ...{ copy_of: isObject, ...may },
    },
  );
const CALL = { error: any, stream: any, errored: isBoolean, redact: texts, shape: any };
const observationShape = shape(
  {
    ...{ agent: isText, entity: shape({ key: isText, type: isText }), observed_at: isMoment, valid_from: isMoment },
    ...{ op: oneOf("assert", "correct", "retract", "delete", "restore"), priority: isInt },
  },
  {
    ...{
      fields: isObject,
      remove: mapOf((list) => Array.isArray(list) && list.length > 0),
      replaces: listOf(fullName),
    },
    ...{ saw: listOf(fullName), source: isText, interpretation: isText, run: isText, step: isWhole, confidence: any },
    ...{ reason: isText, assigned: isTrue, locator: isObject, match: isObject },
  },
);

function isObservation(body) {
  if (!observationShape(body) || (has(body, "step") && !has(body, "run"))) return false;
  const parts = ["fields", "remove"].filter((name) => has(body, name));
  const stating = ["assert", "correct"].includes(body.op);
  return stating ? parts.length > 0 && parts.every((name) => Object.keys(body[name]).length > 0) : parts.length === 0;
}

const isRange = (value) => Array.isArray(value) && value.length === 2 && value.every(isWhole) && value[0] <= value[1];
const isDocument = (value) =>
  isObject(value) &&
  isWhole(value["x-woodrat-version"]) &&
  value["x-woodrat-version"] >= 1 &&
  (!has(value, "properties") || mapOf((item) => isObject(item) || isBoolean(item))(value.properties));

const SHAPES = {
  "run.started": ofRun(
    {},
    {
      ...{
        name: isText,
        query: isText,
        subject: isText,
        principal: isText,
        conversation: isText,
        inputs: orCut(isObject),
        shape: any,
        code: isText,
      },
      ...{
        basis: isObject,
        parent: isObject,
        trace: isText,
        using: isObject,
        forked_from: isObject,
        recall: isTrue,
        redact: texts,
        fallback: texts,
      },
    },
  ),
  "run.read": ofRun(
    { found: isBoolean },
    {
      ...{ log: isText, position: place, effective: isText, entity: isText, fields: orCut(mapOf(isReadField)) },
      ...{ within: isText, args: any, as_of: place, schema: isText, edited: isObject },
      ...{ recalled: any, remembered: any, rejected: any, understood: any, error: any },
      ...{ embedder: isText, remark: isText },
    },
  ),
  "run.model": ofRun(
    {},
    { model: isText, request: isText, messages: any, parameters: any, response: any, usage: any, ...CALL },
  ),
  "run.tool": ofRun({}, { name: isText, args: any, result: any, once: isBoolean, begun: isBoolean, ...CALL }),
  "run.decided": ofRun(
    { stage: isText, mode: oneOf("decide", "select"), default: isBoolean },
    {
      chosen: any, // left out where it is null
      rule: (value) => isText(value) || listOf((item) => isText(item) || item === null)(value),
      ...{
        rationale: isText,
        rules: orCut(listOf(isRule)),
        facts: orCut(isObject),
        facts_origin: orCut(mapOf(isOrigin)),
      },
      omitted: shape(
        {},
        { rules: (value) => isWhole(value) && value >= 1, conditions: (value) => isWhole(value) && value >= 1 },
      ),
      ...{ untried: orCut(listOf(isUntried)), otherwise: any, on_missing: oneOf("skip"), redact: texts },
      chosen_by: isObject,
    },
  ),
  "run.noted": ofRun({}, { text: isText, data: any }),
  "run.ended": ofRun(
    {},
    {
      ...{ status: isText, answer: any, error: any, usage: any, problems: Array.isArray, ended_at: isText },
      ...{ skipped: isAscending, numbered: isTrue, fallback: texts },
    },
  ),
  "run.judged": ofRun(
    {},
    Object.fromEntries(
      ["verdict", "preferred", "by", "reason", "score", "against", "evaluation", "about"].map((name) => [name, any]),
    ),
  ),
  observation: isObservation,
  schema: shape({ type: isText, schema: isDocument }),
  erasure: shape(
    {
      agent: isText,
      erased_at: isText,
      log: isText,
      reason: isText,
      scope: isText,
      positions: listOf(isRange),
      macs: texts,
      names: texts,
    },
    { keys: texts, links: isObject },
  ),
  received: shape({ agent: isText, name: isText, received_at: isText, source: isText }, { media_type: isText }),
  "interpretation.started": shape(
    { agent: isText, interpretation: isText, source: isText, started_at: isText },
    { model: isText, prompt: isText, extractor: isText, parameters: isObject, configuration: isObject },
  ),
  "interpretation.ended": shape(
    { interpretation: isText, ended_at: isText, status: isText },
    { usage: any, error: any },
  ),
  source: any,
  tag: any,
};

// ------------------------------------------------------------------------------------------------------- command line

// What was said may hold anything; a line must do nothing to a terminal, nor end before its end.
function clean(line) {
  const escaped = (sign) => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0");
  return line.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, escaped);
}

export function outcome(data, key, against = null) {
  try {
    const found = verify(data, key, against);
    const verdict = found.parts.size ? "consistent" : "proven";
    const parts = [...found.parts].sort(order);
    return { verdict, code: verdict, record: null, parts, says: found.says.map(clean) };
  } catch (problem) {
    if (problem instanceof Broken)
      return {
        verdict: "refused",
        code: problem.code,
        record: clean(problem.record),
        parts: [],
        says: [clean(problem.message)],
      };
    const says = ["a part of it has another shape than its format"];
    return { verdict: "refused", code: "shape", record: "file", parts: [], says };
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
  const usage = "usage: node woodrat-verify.mjs FILE --key VKEY [--checkpoint NOTE] [--strict] [--json]";
  const options = { "--key": null, "--checkpoint": null };
  const files = [];
  let [json, strict] = [false, false];
  for (let at = 0; at < words.length; at++) {
    if (words[at] === "--json") json = true;
    else if (words[at] === "--strict") strict = true;
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
  else if (found.verdict === "consistent")
    console.log("CONSISTENT, without: " + found.parts.join(", ") + "\n" + found.says.join("\n"));
  else console.log(`REFUSED ${found.record}: ${found.says[0]} (${found.code}). Nothing of this file is proven.`);
  return found.verdict === "proven" || (found.verdict === "consistent" && !strict) ? 0 : 1;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  process.exitCode = main(process.argv.slice(2));
