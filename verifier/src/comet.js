/** What CometBFT's validators sign: src/anofel/comet. */
import { concat, merkle, number, sha256, utf8 } from "./bytes.js";

/** @param {number | bigint} value */
function uvarint(value) {
  const bytes = [];
  let left = BigInt.asUintN(64, BigInt(value));
  for (; left >= 128n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  return new Uint8Array([...bytes, Number(left)]);
}

/** @param {number} field @param {number | bigint} value */
const num = (field, value) => (value ? concat([uvarint(field << 3), uvarint(value)]) : new Uint8Array());
/** @param {number} field @param {import("./bytes.js").Raw} value */
const message = (field, value) => {
  const bytes = concat([value]);
  return concat([uvarint((field << 3) | 2), uvarint(bytes.length), bytes]);
};
/** @param {number} field @param {import("./bytes.js").Raw} value */
const octets = (field, value) => (value.length ? message(field, value) : new Uint8Array());
/** @param {number} field @param {number | bigint} value */
const fixed = (field, value) => (value ? concat([uvarint((field << 3) | 1), number(value, 8)]) : new Uint8Array());
/** @param {number | bigint} seconds @param {number} nanos */
const timestamp = (seconds, nanos) => concat([num(1, seconds), num(2, nanos)]);
/** @param {any} block */
const blockId = (block) => block === null
  ? message(2, new Uint8Array())
  : concat([octets(1, block.hash), message(2, concat([num(1, block.parts), octets(2, block.parts_hash)]))]);

/** @param {string} key */
const addressOf = (key) => sha256(key).slice(0, 40);

/** The engine's hash of a set of validators. @param {any[]} validators */
export function validatorsHash(validators) {
  const ordered = [...validators].sort((one, other) => {
    const [a, b] = [BigInt(one.power), BigInt(other.power)];
    return a !== b ? (a > b ? -1 : 1) : addressOf(one.key) < addressOf(other.key) ? -1 : 1;
  });
  return merkle(ordered.map((one) => concat([message(1, octets(1, one.key)), num(2, one.power)])));
}

/** The engine's root of the postings of a block. @param {Uint8Array[]} postings */
export const dataHash = (postings) => merkle(postings.map((data) => sha256(data)));

/** What each validator of a block signed. @param {string} genesis @param {Map<number, any>} validators @param {any} header @param {any} seal */
export function votesOf(genesis, validators, header, seal) {
  const chain = utf8(`anofel-${genesis.slice(0, 40)}`);
  const named = merkle([
    concat([num(1, seal.block_version), num(2, seal.app_version)]),
    octets(1, chain),
    num(1, header.height),
    timestamp(header.time, seal.nanos),
    blockId(seal.last),
    octets(1, seal.last_commit),
    octets(1, seal.data),
    octets(1, validatorsHash([...validators.values()])),
    octets(1, seal.next_validators),
    octets(1, seal.consensus),
    octets(1, header.previous),
    octets(1, seal.results),
    octets(1, seal.evidence),
    octets(1, addressOf(validators.get(seal.proposer).key)),
  ]);
  const block = { hash: named, parts: seal.parts, parts_hash: seal.parts_hash };
  return seal.votes.map((/** @type {any} */ vote) => {
    const body = concat([
      num(1, 2), fixed(2, header.height), fixed(3, seal.round), message(4, blockId(block)),
      message(5, timestamp(vote.time, vote.nanos)), octets(6, chain),
    ]);
    return { validator: vote.validator, signed: concat([uvarint(body.length), body]), signature: vote.signature };
  });
}
