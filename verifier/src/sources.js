/** Where a board is read from: an archive that `anofel board export` wrote, or a node over HTTP. */
import { hex, number, Reader, sha256, utf8 } from "./bytes.js";
import { BlobTrouble, InvalidInput, SourceTrouble } from "./errors.js";

const MAGIC = utf8("anofel.archive.1");
const [END, GENESIS, REGISTRATION, SUBMISSION, BLOCK, BLOB] = [0, 1, 2, 3, 4, 5];
const HEAD = 5;
const WINDOW = 1 << 22;
const MOST = 1 << 28;
/** How long an answer of a node may take, in milliseconds. */
const PATIENCE = 60_000;
const TRIES = 3;

/** @typedef {import("./audit.js").Source} Source */

/** A file that is read piece by piece. */
class Pieces {
  /** @param {Blob} file */
  constructor(file) {
    this.file = file;
    this.start = 0;
    this.window = new Uint8Array();
  }

  /** @param {number} from @param {number} length */
  async at(from, length) {
    if (from + length > this.file.size) throw new InvalidInput("The archive is cut short.");
    const inside = from >= this.start && from + length <= this.start + this.window.length;
    if (!inside) {
      const end = Math.min(this.file.size, from + Math.max(length, WINDOW));
      this.window = new Uint8Array(await this.file.slice(from, end).arrayBuffer());
      this.start = from;
    }
    return this.window.subarray(from - this.start, from - this.start + length);
  }
}

/** Opens an archive. @param {Blob} file @returns {Promise<Source>} */
export async function openArchive(file) {
  const pieces = new Pieces(file);
  if (file.size < MAGIC.length || hex(await pieces.at(0, MAGIC.length)) !== hex(MAGIC)) {
    throw new InvalidInput("This file is no archive of a board; anofel board export writes one.");
  }
  /** @type {Map<number, Uint8Array>} */
  const single = new Map();
  /** @type {[number, number][]} */
  const blocks = [];
  /** @type {Map<string, [number, number]>} */
  const blobs = new Map();
  for (let at = MAGIC.length; ; ) {
    const head = new Reader((await pieces.at(at, HEAD)).slice());
    const [kind, length] = [head.number(1), head.number(4)];
    at += HEAD;
    if (at + length > file.size) throw new InvalidInput("The archive is cut short.");
    if (kind === BLOCK) blocks.push([at, length]);
    else if (kind === BLOB && length >= 32) blobs.set(hex(await pieces.at(at, 32)), [at + 32, length - 32]);
    else if (kind === END) {
      const counts = hex(await pieces.at(at, length));
      const expected = hex(number(blocks.length, 8)) + hex(number(blobs.size, 8));
      if (counts !== expected || at + length !== file.size) throw new InvalidInput("The archive is damaged: its end does not fit.");
      break;
    } else if ([GENESIS, REGISTRATION, SUBMISSION].includes(kind)) single.set(kind, (await pieces.at(at, length)).slice());
    else throw new InvalidInput("The archive is damaged: it has an unknown part.");
    at += length;
  }
  const part = (/** @type {number} */ kind) => {
    const found = single.get(kind);
    if (!found) throw new InvalidInput("The archive is damaged: it lacks the genesis or a key.");
    return found;
  };
  return {
    genesis: part(GENESIS), registration: part(REGISTRATION), submission: part(SUBMISSION), height: blocks.length,
    async *blocks() {
      for (const [at, length] of blocks) yield (await pieces.at(at, length)).slice();
    },
    async read(name) {
      const place = blobs.get(name);
      if (!place) throw new BlobTrouble(name, "is needed to verify the board, and is not here");
      const data = (await pieces.at(...place)).slice();
      if (sha256(data) !== name) throw new BlobTrouble(name, "is damaged in the archive");
      return data;
    },
  };
}

/** @param {string} address @returns {string} */
export function nodeAddress(address) {
  const trimmed = address.trim().replace(/\/+$/, "");
  const url = URL.parse?.(trimmed) ?? (URL.canParse(trimmed) ? new URL(trimmed) : null);
  if (!url || !["http:", "https:"].includes(url.protocol)) {
    throw new InvalidInput("An address begins with https:// or http://.");
  }
  return trimmed;
}

/** Asks a node; never with a cookie or a word about this page. @param {string} url @returns {Promise<Uint8Array | null>} */
async function ask(url) {
  let reason = "";
  for (let attempt = 0; attempt < TRIES; attempt++) {
    try {
      const answer = await fetch(url, {
        credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store", redirect: "error",
        signal: AbortSignal.timeout(PATIENCE),
      });
      if (answer.status === 404) return null;
      if (answer.ok) {
        const data = new Uint8Array(await answer.arrayBuffer());
        if (data.length > MOST) throw new Error("it is too long");
        return data;
      }
      reason = `it answered ${answer.status}`;
    } catch (error) {
      reason = `${error instanceof Error ? error.message : error}`.replace(/\.$/, "");
    }
    await new Promise((resolve) => setTimeout(resolve, 500 * (attempt + 1)));
  }
  throw new SourceTrouble(`The node cannot be read: ${reason}. Export the board with anofel board export and open the file.`);
}

/** @param {string} url */
async function need(url) {
  const data = await ask(url);
  if (data === null) throw new SourceTrouble("This address does not answer like a board.");
  return data;
}

/** Opens a node. What it says is checked like a file; it can refuse, and sees that somebody reads everything. @param {string} address @returns {Promise<Source>} */
export async function openNode(address) {
  const base = nodeAddress(address);
  const tip = await need(`${base}/v1/status`);
  const { height } = JSON.parse(new TextDecoder().decode(tip));
  if (!Number.isSafeInteger(height) || height < 0) throw new SourceTrouble("This address does not answer like a board.");
  return {
    genesis: await need(`${base}/v1/genesis`),
    registration: await need(`${base}/v1/keys/registration`),
    submission: await need(`${base}/v1/keys/submission`),
    height,
    async *blocks() {
      for (let at = 1; at <= height; ) {
        const reader = new Reader(await need(`${base}/v1/blocks?from=${at}&limit=1000`));
        if (!reader.left) throw new SourceTrouble(`The node has no block ${at}.`);
        try {
          for (; reader.left && at <= height; at++) yield reader.take(reader.number(4)).slice();
        } catch {
          throw new SourceTrouble("The node sent blocks that end too early.");
        }
      }
    },
    async read(name) {
      const data = await ask(`${base}/v1/blobs/${name}`);
      if (data === null) throw new BlobTrouble(name, "is needed to verify the board, and is not here");
      if (sha256(data) !== name) throw new BlobTrouble(name, "is not what the node sent under its name: damaged");
      return data;
    },
  };
}
