/** Bytes, hexadecimal names, and the hashes over them. A name of 32 bytes is text of 64 digits everywhere. */
import { core } from "./core.js";

/** @typedef {string} Hex Lower-case hexadecimal digits. */
/** @typedef {Uint8Array | Hex} Raw */

const UTF8 = new TextEncoder();
const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** @param {string} text @returns {Uint8Array} */
export const utf8 = (text) => UTF8.encode(text);

/** @param {Uint8Array} bytes @returns {Hex} */
export function hex(bytes) {
  let text = "";
  for (const byte of bytes) text += DIGITS[byte];
  return text;
}

/** @param {Hex} text @returns {Uint8Array} */
export function unhex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(text.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

/** @param {Raw} value @returns {Uint8Array} */
export const raw = (value) => (typeof value === "string" ? unhex(value) : value);

/** @param {Raw[]} parts @returns {Uint8Array} */
export function concat(parts) {
  const arrays = parts.map(raw);
  const whole = new Uint8Array(arrays.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of arrays) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** SHA-256 over parts, one after the other. @param {Raw[]} parts @returns {Hex} */
export const sha256 = (...parts) => core.sha256Hex(parts.length === 1 ? raw(parts[0]) : concat(parts));

/** A little-endian number. @param {number | bigint} value @param {number} length @returns {Uint8Array} */
export function number(value, length) {
  const bytes = new Uint8Array(length);
  let left = BigInt(value);
  for (let at = 0; at < length; at++, left >>= 8n) bytes[at] = Number(left & 255n);
  return bytes;
}

/** Bytes behind their length of four bytes. @param {Raw} value @returns {Uint8Array} */
export const framed = (value) => concat([number(raw(value).length, 4), value]);

/** Bytes that are read in their order; ends early with an error. */
export class Reader {
  /** @param {Uint8Array} data */
  constructor(data) {
    this.data = data;
    this.at = 0;
  }

  get left() {
    return this.data.length - this.at;
  }

  /** @param {number} length @returns {Uint8Array} */
  take(length) {
    if (length > this.left) throw new Error("the bytes end too early");
    this.at += length;
    return this.data.subarray(this.at - length, this.at);
  }

  /** @param {number} length @returns {number} */
  number(length) {
    return this.take(length).reduceRight((value, byte) => value * 256 + byte, 0);
  }
}

/** A text among the parts of a digest. @param {string} text */
export const text = (text) => ({ text });

/**
 * The hash over the fields of a record; each is framed, so that no two records collide.
 * @param {string} domain
 * @param {(Raw | number | bigint | null | {text: string})[]} parts
 * @returns {Hex}
 */
export function digest(domain, parts) {
  const encoded = parts.map((part) => {
    if (part === null) return utf8("-");
    if (typeof part === "string" || part instanceof Uint8Array) return concat([new Uint8Array([98]), part]);
    if (typeof part === "object") return utf8(`s${part.text}`);
    return utf8(`i${part}`);
  });
  return sha256(utf8(`anofel/1/state/${domain}`), ...encoded.map(framed));
}

export const EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const LEAF = new Uint8Array([0]);
const NODE = new Uint8Array([1]);

/** The Merkle tree hash of RFC 6962. @param {Raw[]} entries @returns {Hex} */
export function merkle(entries) {
  if (!entries.length) return EMPTY_ROOT;
  let nodes = entries.map((entry) => sha256(LEAF, entry));
  while (nodes.length > 1) {
    const above = [];
    for (let at = 0; at < nodes.length; at += 2) {
      above.push(at + 1 < nodes.length ? sha256(NODE, nodes[at], nodes[at + 1]) : nodes[at]);
    }
    nodes = above;
  }
  return nodes[0];
}

/** The same root of a list that only grows. */
export class MerkleLog {
  constructor() {
    this.size = 0;
    /** @type {Hex[]} */
    this.peaks = [];
  }

  /** @param {Raw} entry */
  append(entry) {
    let node = sha256(LEAF, entry);
    for (let size = this.size; size % 2 === 1; size = Math.floor(size / 2)) {
      node = sha256(NODE, /** @type {Hex} */ (this.peaks.pop()), node);
    }
    this.peaks.push(node);
    this.size += 1;
  }

  /** @returns {Hex} */
  root() {
    if (!this.peaks.length) return EMPTY_ROOT;
    return this.peaks.reduceRight((root, peak) => sha256(NODE, peak, root));
  }
}

/** @param {Uint8Array} one @param {Uint8Array} other */
export function compareBytes(one, other) {
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    if (one[at] !== other[at]) return one[at] - other[at];
  }
  return one.length - other.length;
}
