/** The signatures that authorities make: ECDSA and RSA, as cryptography's path validation admits them. */
import { compareBytes, concat, hex, number, unhex } from "./bytes.js";
import { core } from "./core.js";
import { Der } from "./der.js";

/** By the identifier of the algorithm with its parameters, in DER: the padding, and the bits of the hash. @type {Record<string, ["ecdsa" | "pkcs1" | "pss", number]>} */
const ALGORITHMS = {
  "06082a8648ce3d040302": ["ecdsa", 256],
  "06082a8648ce3d040303": ["ecdsa", 384],
  "06082a8648ce3d040304": ["ecdsa", 512],
  "06092a864886f70d01010b0500": ["pkcs1", 256],
  "06092a864886f70d01010c0500": ["pkcs1", 384],
  "06092a864886f70d01010d0500": ["pkcs1", 512],
  [pss(256)]: ["pss", 256],
  [pss(384)]: ["pss", 384],
  [pss(512)]: ["pss", 512],
};
/** By the curve of a key, in DER: the bits of its field, and how long a point is. @type {Record<string, [number, number]>} */
const CURVES = {
  "06072a8648ce3d020106082a8648ce3d030107": [256, 65],
  "06072a8648ce3d020106052b81040022": [384, 97],
  "06072a8648ce3d020106052b81040023": [521, 133],
};
const RSA = "06092a864886f70d0101010500";
const LEAST_BITS = 2048;
const MOST_BITS = 16384;
/** A larger modulus takes no larger exponent than one of 64 bits. */
const LARGE_BITS = 3072;

/** The identifier of a hash. @param {number} bits */
function hashName(bits) {
  return `300d0609608648016503040${{ 256: "201", 384: "202", 512: "203" }[bits]}0500`;
}

/** The identifier of RSASSA-PSS with one hash, and a salt as long as it. @param {number} bits */
function pss(bits) {
  const mask = `06092a864886f70d010108${hashName(bits)}`;
  return `06092a864886f70d01010a3034a00f${hashName(bits)}a11c301a${mask}a2030201${(bits / 8).toString(16)}`;
}

/** The key of an authority: on which curve, or RSA; null if nobody admits it. @param {Uint8Array} spki */
export function authorityKey(spki) {
  try {
    const key = new Der(spki).next(0x30).inside;
    const algorithm = hex(key.next(0x30).content);
    const bits = key.next(3).content;
    if (bits[0] !== 0 || key.more) return null;
    const curve = CURVES[algorithm];
    if (curve) return bits.length === curve[1] + 1 && bits[1] === 4 ? { curve: curve[0], point: bits.subarray(1) } : null;
    return algorithm === RSA ? rsaKey(bits.subarray(1)) : null;
  } catch {
    return null;
  }
}

/** @param {Uint8Array} der */
function rsaKey(der) {
  const all = new Der(der);
  const { inside } = all.next(0x30);
  const [modulus, exponent] = [inside.next(2).content, inside.next(2).content].map(positive);
  const length = modulus.toString(2).length;
  const isRight = !all.more && !inside.more && length >= LEAST_BITS && length <= MOST_BITS && exponent >= 3n && exponent & 1n;
  const isFast = length <= LARGE_BITS || exponent >> 64n === 0n;
  return isRight && isFast && exponent < modulus ? { modulus, exponent, length } : null;
}

/** @param {Uint8Array} content @returns {bigint} */
function positive(content) {
  if (!content.length || content[0] & 128) throw new Error("a number is negative");
  return BigInt(`0x${hex(content)}`);
}

/**
 * Whether a key made a signature, by an algorithm that is admitted.
 * @param {any} key @param {Uint8Array} algorithm @param {Uint8Array} signed @param {Uint8Array} signature @returns {boolean}
 */
export function isSignature(key, algorithm, signed, signature) {
  const [padding, bits] = ALGORITHMS[hex(algorithm)] ?? [];
  if (key === null || bits === undefined || (padding === "ecdsa") !== (key.curve !== undefined)) return false;
  const hash = core.sha2(bits, signed);
  if (padding === "ecdsa") return core.holdsEcdsa(key.curve, key.point, hash, signature);
  const length = Math.ceil(key.length / 8);
  const value = BigInt(`0x${hex(signature)}`);
  if (signature.length !== length || value >= key.modulus) return false;
  const opened = unhex(power(value, key.exponent, key.modulus).toString(16).padStart(2 * length, "0"));
  return padding === "pkcs1" ? isPkcs1(opened, hash, bits) : isPss(opened, hash, bits, key.length - 1);
}

/** @param {bigint} base @param {bigint} exponent @param {bigint} modulus */
function power(base, exponent, modulus) {
  let result = 1n;
  for (const bit of exponent.toString(2)) {
    result = (result * result) % modulus;
    if (bit === "1") result = (result * base) % modulus;
  }
  return result;
}

/** RFC 8017, 9.2: the only encoding of a hash is compared, nothing is parsed. @param {Uint8Array} opened @param {Uint8Array} hash @param {number} bits */
function isPkcs1(opened, hash, bits) {
  const end = concat([unhex(`30${(17 + bits / 8).toString(16)}${hashName(bits)}04${(bits / 8).toString(16)}`), hash]);
  const filled = new Uint8Array(opened.length - end.length - 3).fill(255);
  return compareBytes(opened, concat([Uint8Array.of(0, 1), filled, Uint8Array.of(0), end])) === 0;
}

/** RFC 8017, 9.1.2. @param {Uint8Array} opened @param {Uint8Array} hash @param {number} bits @param {number} length */
function isPss(opened, hash, bits, length) {
  const size = bits / 8;
  const encoded = opened.subarray(opened.length - Math.ceil(length / 8));
  const from = encoded.length - size - 1;
  const [masked, seed] = [encoded.subarray(0, from), encoded.subarray(from, from + size)];
  const unused = 8 * encoded.length - length;
  if (opened.length > encoded.length && opened[0] !== 0) return false;
  if (encoded[encoded.length - 1] !== 0xbc || masked[0] >> (8 - unused)) return false;
  const mask = maskOf(seed, from, bits);
  const block = masked.map((byte, at) => byte ^ mask[at]);
  block[0] &= 255 >> unused;
  const start = from - size - 1;
  if (block[start] !== 1 || block.subarray(0, start).some(Boolean)) return false;
  const again = core.sha2(bits, concat([new Uint8Array(8), hash, block.subarray(start + 1)]));
  return compareBytes(again, seed) === 0;
}

/** MGF1. @param {Uint8Array} seed @param {number} length @param {number} bits */
function maskOf(seed, length, bits) {
  const parts = [];
  for (let counter = 0; parts.length * (bits / 8) < length; counter++) {
    parts.push(core.sha2(bits, concat([seed, number(counter, 4).reverse()])));
  }
  return concat(parts).subarray(0, length);
}
