/** X.509 identities of role-holders: docs/certificates.md, rules by their numbers. */
import { compareBytes, hex, sha256 } from "./bytes.js";
import { core } from "./core.js";
import { Der } from "./der.js";
import { InvalidInput, NotCheckedHere, VerificationError } from "./errors.js";
import { authorityKey, isSignature } from "./signatures.js";

const MAX_CHAIN = 4;
const MAX_BYTES = 4096;
/** Half the order of P-256: a signature has the lower s. */
const HALF_ORDER = "7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8";
const ORDER = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
const ZERO = "0".repeat(64);
const PURPOSES = ["operator", "certifier", "aggregator", "owner", "storage", "validator"];
const PURPOSE_ARC = `2.25.${BigInt("0x0c413b731f0e40b5844785741a9e7065")}.`;
const ANY_USAGE = "2.5.29.37.0";
const P256_SPKI = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
const [BASIC, KEY_USAGE, EXTENDED, CONSTRAINTS] = ["2.5.29.19", "2.5.29.15", "2.5.29.37", "2.5.29.30"];
/** Extensions that may be critical: those that are read here, and alternative names. */
const KNOWN = [BASIC, KEY_USAGE, EXTENDED, "2.5.29.17"];

/** @param {Uint8Array} content @returns {string} */
function oid(content) {
  const parts = [];
  let value = 0n;
  for (const byte of content) {
    value = value * 128n + BigInt(byte & 127);
    if (byte < 128) {
      parts.push(value);
      value = 0n;
    }
  }
  const first = parts[0] < 80n ? parts[0] / 40n : 2n;
  return [first, parts[0] - 40n * first, ...parts.slice(1)].join(".");
}

/** @param {{tag: number, content: Uint8Array}} value @returns {number} */
function moment({ tag, content }) {
  const text = String.fromCharCode(...content);
  const year = tag === 0x17 ? (Number(text.slice(0, 2)) < 50 ? "20" : "19") + text.slice(0, 2) : text.slice(0, 4);
  const rest = text.slice(tag === 0x17 ? 2 : 4);
  if (!/^\d{10}Z$/.test(rest)) throw new Error("a time is malformed");
  const part = (/** @type {number} */ at) => Number(rest.slice(at, at + 2));
  return Date.UTC(Number(year), part(0) - 1, part(2), part(4), part(6), part(8)) / 1000;
}

/** @param {{tag: number, content: Uint8Array}} value @returns {string} */
function string({ tag, content }) {
  if (tag === 0x1e) return new TextDecoder("utf-16be").decode(content);
  return tag === 0x0c ? new TextDecoder().decode(content) : String.fromCharCode(...content);
}

/** The organisation of a name, as boards compare it; empty if there is none, or several. @param {Der} name */
function organisation(name) {
  const found = [];
  while (name.more) {
    const set = name.next(0x31).inside;
    while (set.more) {
      const entry = set.next(0x30).inside;
      if (oid(entry.next(6).content) === "2.5.4.10") found.push(string(entry.next()));
    }
  }
  if (found.length !== 1) return "";
  const words = found[0].replace(/[\t\n\v\f\r\u00a0]/g, " ").split(" ").filter(Boolean).join(" ");
  return words.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** @param {Uint8Array} der @param {string} which */
function parse(der, which) {
  if (der.length > MAX_BYTES) {
    throw new VerificationError(`${which} has ${der.length} bytes; ${MAX_BYTES} are allowed.`);
  }
  try {
    return read(der);
  } catch {
    throw new VerificationError(`${which} is malformed, or bytes follow it.`);
  }
}

/** @param {Uint8Array} der */
function read(der) {
  const all = new Der(der);
  const certificate = all.next(0x30);
  if (all.more) throw new Error("bytes follow");
  const signed = certificate.inside.next(0x30);
  const algorithm = certificate.inside.next(0x30).content;
  const signature = certificate.inside.next(3).content;
  if (signature[0] !== 0 || certificate.inside.more) throw new Error("the signature is not whole bytes");
  const tbs = signed.inside;
  if (tbs.next(0xa0).content[2] !== 2) throw new Error("it is not version 3");
  tbs.next(2);
  const inner = tbs.next(0x30).content;
  const issuer = tbs.next(0x30);
  const validity = tbs.next(0x30).inside;
  const [from, until] = [moment(validity.next()), moment(validity.next())];
  const subject = tbs.next(0x30);
  const spki = tbs.next(0x30);
  /** @type {Map<string, {critical: boolean, value: Uint8Array}>} */
  const extensions = new Map();
  while (tbs.more) {
    const field = tbs.next();
    if (field.tag !== 0xa3) continue;
    const list = field.inside.next(0x30).inside;
    while (list.more) {
      const extension = list.next(0x30).inside;
      const name = oid(extension.next(6).content);
      let value = extension.next();
      const critical = value.tag === 1;
      if (critical) value = extension.next();
      if (extensions.has(name)) throw new Error("an extension stands there twice");
      extensions.set(name, { critical, value: value.content });
    }
  }
  if (compareBytes(algorithm, inner) !== 0) throw new Error("two algorithms");
  return {
    der, signed: signed.whole, algorithm, signature: signature.subarray(1), from, until, extensions,
    issuer: hex(issuer.whole), subject: hex(subject.whole), organisation: organisation(subject.inside),
    spki: spki.whole,
  };
}

/** @typedef {ReturnType<typeof read>} Certificate */

/** @param {Certificate} certificate @returns {string[] | null} */
function usages(certificate) {
  const extension = certificate.extensions.get(EXTENDED);
  if (!extension) return null;
  const list = new Der(extension.value).next(0x30).inside;
  const found = [];
  while (list.more) found.push(oid(list.next(6).content));
  return found;
}

/** @param {Certificate} certificate */
function constraints(certificate) {
  const extension = certificate.extensions.get(BASIC);
  if (!extension) return { authority: false, path: Infinity };
  const list = new Der(extension.value).next(0x30).inside;
  let authority = false;
  let path = Infinity;
  while (list.more) {
    const { tag, content } = list.next();
    if (tag === 1) authority = content[0] !== 0;
    if (tag === 2) path = content.reduce((value, byte) => value * 256 + byte, 0);
  }
  return { authority, path };
}

/** Whether a key usage has a bit, or says nothing. @param {Certificate} certificate @param {number} bit */
function mayBeUsed(certificate, bit) {
  const extension = certificate.extensions.get(KEY_USAGE);
  if (!extension) return true;
  const bits = new Der(extension.value).next(3).content;
  return bits.length > 1 && (bits[1] & (128 >> bit)) !== 0;
}

/** The uncompressed point of a P-256 key, or nothing. @param {Certificate} certificate */
function pointOf(certificate) {
  const spki = certificate.spki;
  const isKey = spki.length === 91 && hex(spki.subarray(0, 26)) === P256_SPKI;
  const point = spki.subarray(26);
  return isKey && point[0] === 4 && core.isP256(point) ? point : null;
}

/** @param {Certificate} one @param {Certificate} issuer */
function isSignedBy(one, issuer) {
  return isSignature(authorityKey(issuer.spki), one.algorithm, one.signed, one.signature);
}

/** Who holds a role, as a verified chain says. */
export class Identity {
  /** @param {Certificate} leaf @param {string} purpose @param {Uint8Array} point */
  constructor(leaf, purpose, point) {
    this.subject = sha256(leaf.spki);
    this.purpose = purpose;
    this.organisation = leaf.organisation;
    this.point = point;
  }

  /** Whether a signature of 64 bytes is this holder's, in its one form. @param {Uint8Array} message @param {string} signature */
  signed(message, signature) {
    const [r, s] = [signature.slice(0, 64), signature.slice(64)];
    if (signature.length !== 128 || r === ZERO || r >= ORDER || s === ZERO || s > HALF_ORDER) return false;
    const bytes = Uint8Array.from(/** @type {string[]} */ (signature.match(/../g)), (pair) => parseInt(pair, 16));
    return core.holdsP256(this.point, message, bytes);
  }
}

/** @param {Uint8Array} leaf @returns {string} */
export const subjectOf = (leaf) => sha256(parse(leaf, "The leaf").spki);

/** @param {Uint8Array[]} roots */
export function checkRoots(roots) {
  if (!roots.length) throw new InvalidInput("There are no certificate roots to trust.");
  roots.forEach((root) => parse(root, "The root"));
}

/**
 * Verifies a chain, leaf first and without the root, at a time.
 * @param {Uint8Array[]} chain @param {Uint8Array[]} roots @param {string} purpose @param {number} time
 * @returns {Identity}
 */
export function verifyChain(chain, roots, purpose, time) {
  if (chain.length < 1 || chain.length > MAX_CHAIN) {
    throw new VerificationError(`A chain has 1 to ${MAX_CHAIN} certificates, not ${chain.length}.`);
  }
  const path = chain.map((der, place) => parse(der, place ? `Certificate ${place} of the chain` : "The leaf"));
  const [leaf] = path;
  const point = pointOf(leaf);
  if (point === null) throw new VerificationError("The leaf's key is not a P-256 key.");
  const last = path[path.length - 1];
  const trusted = roots.map((der) => parse(der, "The root"));
  const root = trusted.find((one) => one.subject === last.issuer && isSignedBy(last, one));
  if (!root) throw new VerificationError("The chain leads to no root of this board.");
  checkTimes([...path, root], time);
  if (constraints(leaf).authority) {
    throw new VerificationError("The leaf is the certificate of an authority, not of a role-holder.");
  }
  const named = (usages(leaf) ?? [])
    .filter((usage) => usage.startsWith(PURPOSE_ARC))
    .map((usage) => PURPOSES[Number(usage.slice(PURPOSE_ARC.length)) - 1])
    .filter(Boolean);
  if (named.length !== 1 || named[0] !== purpose) {
    throw new VerificationError(`The leaf is for ${named.join(" and ") || "no role"}, not for ${purpose} alone.`);
  }
  if (!mayBeUsed(leaf, 0)) throw new VerificationError("The leaf's key may not sign messages (key usage).");
  checkIssuers(path, root, PURPOSE_ARC + (PURPOSES.indexOf(purpose) + 1), purpose);
  return new Identity(leaf, purpose, point);
}

/** @param {Certificate[]} path @param {number} time */
function checkTimes(path, time) {
  path.forEach((certificate, place) => {
    const end = place === path.length - 1;
    const which = place === 0 ? "The leaf" : end ? "The root of the chain" : `Certificate ${place} of the chain`;
    const shown = (/** @type {number} */ at) => new Date(at * 1000).toISOString().slice(0, 19).replace("T", " ");
    if (time < certificate.from) {
      throw new VerificationError(`${which} is not valid before ${shown(certificate.from)} UTC.`);
    }
    if (time > certificate.until) throw new VerificationError(`${which} expired at ${shown(certificate.until)} UTC.`);
  });
}

/** @param {Certificate[]} path @param {Certificate} root @param {string} usage @param {string} purpose */
function checkIssuers(path, root, usage, purpose) {
  const all = [...path, root];
  all.forEach((certificate, place) => {
    for (const [name, { critical }] of certificate.extensions) {
      if (name === CONSTRAINTS) throw new NotCheckedHere("An authority has name constraints");
      if (critical && !KNOWN.includes(name)) {
        throw new VerificationError("The chain is not valid: a critical extension is not known.");
      }
    }
    if (place === 0) return;
    const { authority, path: length } = constraints(certificate);
    const allowed = usages(certificate);
    if (allowed && !allowed.includes(usage) && !allowed.includes(ANY_USAGE)) {
      throw new VerificationError(`An authority of the chain may not certify for ${purpose} (extended key usage).`);
    }
    const below = all[place - 1];
    const isRight = authority && place - 1 <= length && mayBeUsed(certificate, 5) &&
      below.issuer === certificate.subject && (place === all.length - 1 || isSignedBy(below, certificate));
    if (!isRight) throw new VerificationError("The chain is not leaf first, each issued by the next, without the root.");
  });
  if (path.some((one) => compareBytes(one.der, root.der) === 0)) {
    throw new VerificationError("The chain is not leaf first, each issued by the next, without the root.");
  }
}
