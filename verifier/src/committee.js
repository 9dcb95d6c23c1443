/** Committees: what shares are bound to, keys, and the runs that made them (src/anofel/committee). */
import { concat, framed, hex, number, Reader, sha256, utf8 } from "./bytes.js";
import { core } from "./core.js";
import { NotCheckedHere, sentenceOf, VerificationError } from "./errors.js";

export const NUM_KEYS = 2049;
const COUNT_KEY = 2048;
const HEADER = utf8("anofel/1/lattice");
const KEY = 32;
const OVERHEAD = 48;
export const MAX_MEMBERS = 16;
export const ROUNDS = 3;
const DEALING = 1;

/** The encodings of X25519 points of low order: nothing can be sealed to them. */
const LOW_ORDER = new Set([
  "00".repeat(32), `01${"00".repeat(31)}`,
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  `ec${"ff".repeat(30)}7f`, `ed${"ff".repeat(30)}7f`, `ee${"ff".repeat(30)}7f`,
]);

/** @param {string} scheme */
export function checkScheme(scheme) {
  if (Number(scheme) !== 0) throw new NotCheckedHere("A committee has another scheme than lattice");
}

/** @param {number} members @param {number} threshold */
export const isShape = (members, threshold) =>
  members >= 2 && members <= MAX_MEMBERS && threshold >= Math.floor((members + 2) / 2) && threshold <= members;

/** What share proofs bind: SHA-256 over every field of an agreed set. @param {any} agreed */
export function agreedDigest(agreed) {
  const { genesis, task, scope, keyId, closeHash, setDigest, sumDigest } = agreed;
  const numbers = [agreed.iteration, agreed.position, agreed.numPosts, agreed.minClients];
  return sha256(
    utf8("anofel/1/committee/agreed-set"), genesis, task, scope, keyId, closeHash, setDigest, sumDigest,
    ...numbers.map((value) => number(value, 8)));
}

/** @param {string[]} digests */
export const digestOfAgreed = (digests) => sha256(utf8("anofel/1/committee/agreed-groups"), ...digests);

/** @param {string[]} nullifiers */
export const digestOfSet = (nullifiers) => sha256(utf8("anofel/1/committee/set"), ...[...nullifiers].sort());

/** A validated key of a committee. */
export class CommitteeKey {
  /** @param {number} members @param {number} threshold @param {number} epoch @param {Uint8Array} run @param {any} keys */
  constructor(members, threshold, epoch, run, keys) {
    this.members = members;
    this.threshold = threshold;
    this.epoch = epoch;
    this.run = run;
    this.keys = keys;
    const shape = new Uint8Array([members, threshold]);
    this.bytes = concat([HEADER, shape, number(epoch, 4), run, keys.toBytes()]);
    this.sharesId = sha256(this.bytes);
    const points = keys.public();
    this.keyId = sha256(HEADER, utf8("/key"), run, points);
    this.countKey = points.slice(COUNT_KEY * KEY, (COUNT_KEY + 1) * KEY);
    this.countShares = Array.from({ length: members }, (_, at) => keys.verificationShare(at + 1, COUNT_KEY));
    this.countSharesId = sha256(utf8("anofel/1/committee/count-key"), shape, this.countKey, ...this.countShares);
  }

  /** @param {Uint8Array} data */
  static read(data) {
    const reader = new Reader(data);
    try {
      const isLattice = hex(reader.take(HEADER.length)) === hex(HEADER);
      const [members, threshold, epoch] = [reader.number(1), reader.number(1), reader.number(4)];
      const run = reader.take(32);
      const points = reader.take(NUM_KEYS * KEY * (members + 1));
      if (!isLattice || reader.left || !isShape(members, threshold)) throw new Error("it is not a key of the lattice scheme");
      return new CommitteeKey(members, threshold, epoch, run, core.Keys.read(NUM_KEYS, members, threshold, points));
    } catch (error) {
      throw new VerificationError(`The committee key is malformed: ${sentenceOf(error).replace(/\.$/, "")}.`);
    }
  }
}

/** @param {Uint8Array} key */
const checkSealing = (key) => {
  const masked = key.slice();
  if (masked.length === KEY) masked[31] &= 127;
  if (masked.length !== KEY || LOW_ORDER.has(hex(masked))) throw new VerificationError("A member sent no usable sealing key.");
};

/** @param {string} run @param {Map<number, Uint8Array>[]} rounds */
function transcriptOf(run, rounds) {
  const parts = rounds.flatMap((bodies, round) =>
    [...bodies].map(([sender, body]) => concat([number(round, 1), number(sender, 2), sha256(body)])));
  return sha256(run, ...parts);
}

/** Who speaks in a round of a run, and how many. @param {any} run @param {number} round */
export const numSpeakers = (run, round) =>
  run.handover && round === DEALING ? run.handover.dealers.length : run.members.length;

/**
 * What the messages of a run make: the key, and the hash of the transcript.
 * @param {string} genesis @param {string} runId @param {any} run @param {Map<number, Uint8Array>[]} rounds
 * @param {CommitteeKey | null} old The key before a handover.
 */
export function observe(genesis, runId, run, rounds, old) {
  if (rounds.length !== ROUNDS) throw new VerificationError("The run is not finished.");
  return old ? observeHandover(genesis, runId, run, rounds, old) : observeGeneration(genesis, runId, run, rounds);
}

/** @param {string} genesis @param {string} runId @param {any} run @param {Map<number, Uint8Array>[]} rounds */
function observeGeneration(genesis, runId, run, rounds) {
  const size = run.members.length;
  const plan = sha256(
    framed(utf8("anofel/1/committee/run")), framed(utf8("lattice")), number(NUM_KEYS, 4), framed(genesis),
    framed(runId), number(size, 2), number(run.threshold, 2), ...run.members.map(framed));
  const packages = new core.Packages(NUM_KEYS, size, run.threshold, plan);
  for (const [member, body] of rounds[0]) {
    checkSealing(body.subarray(0, KEY));
    packages.add(member, body.subarray(KEY));
  }
  for (const [member, body] of rounds[1]) {
    const expected = (size - 1) * (NUM_KEYS * KEY + OVERHEAD);
    if (body.length !== expected) {
      throw new VerificationError(`Member ${member} sent ${body.length} bytes of sealed shares instead of ${expected}.`);
    }
  }
  const keys = packages.keys();
  packages.free();
  const transcript = transcriptOf(plan, rounds.slice(0, 2));
  checkConfirmed(rounds[2], keys, transcript);
  return { key: new CommitteeKey(size, run.threshold, 0, concat([runId]), keys), transcript };
}

/** @param {string} genesis @param {string} runId @param {any} run @param {Map<number, Uint8Array>[]} rounds @param {CommitteeKey} old */
function observeHandover(genesis, runId, run, rounds, old) {
  const { dealers } = run.handover;
  const size = run.members.length;
  const plan = sha256(
    utf8("anofel/1/committee/handover"), framed(genesis), framed(runId), framed(old.bytes), number(dealers.length, 2),
    ...dealers.map((/** @type {number} */ dealer) => number(dealer, 2)), number(size, 2), number(run.threshold, 2),
    ...run.members.map(framed));
  for (const body of rounds[0].values()) {
    if (body.length !== KEY * dealers.length) throw new VerificationError("A member sent no usable sealing keys.");
    dealers.forEach((/** @type {number} */ _, /** @type {number} */ at) => checkSealing(body.subarray(KEY * at, KEY * (at + 1))));
  }
  const length = NUM_KEYS * run.threshold * KEY;
  const expected = length + size * (NUM_KEYS * KEY + OVERHEAD);
  for (const [dealer, body] of rounds[1]) {
    if (body.length !== expected) {
      throw new VerificationError(`Dealer ${dealer} sent ${body.length} bytes instead of ${expected}.`);
    }
  }
  const commitments = concat([...rounds[1].values()].map((body) => body.subarray(0, length)));
  const keys = old.keys.handedOver(size, run.threshold, Uint16Array.from(dealers), commitments);
  const transcript = transcriptOf(plan, rounds.slice(0, 2));
  checkConfirmed(rounds[2], keys, transcript);
  return { key: new CommitteeKey(size, run.threshold, old.epoch + 1, old.run, keys), transcript };
}

/** Every member confirmed the same; a complaint ends a run without a key. @param {Map<number, Uint8Array>} bodies @param {any} keys @param {string} transcript */
function checkConfirmed(bodies, keys, transcript) {
  const expected = `00${sha256(keys.toBytes())}${transcript}`;
  for (const [member, body] of bodies) {
    if (hex(body) === expected) continue;
    throw new VerificationError(body[0] === 1
      ? `Member ${member} complained, so the run made no key.`
      : `Member ${member} confirmed another key or transcript.`);
  }
}
