/** What can end or spoil a check. */
import { RULES } from "./rules.js";

/** Something that the caller gave cannot be used. */
export class InvalidInput extends Error {}

/** A check failed. */
export class VerificationError extends Error {}

/** A rule that stands on this board, but not in this page. */
export class NotCheckedHere extends Error {
  /** @param {string} what */
  constructor(what) {
    super(`${what}, which this page does not check. anofel audit does.`);
  }
}

/** A check that ends early, through no fault of the board's. */
export class SourceTrouble extends Error {}

/** A blob that is needed is not there, or its bytes are not those of its name. */
export class BlobTrouble extends Error {
  /** @param {string} sha256 @param {string} how */
  constructor(sha256, how) {
    super(`The blob ${sha256} ${how}.`);
    this.sha256 = sha256;
  }
}

/** A posting breaks a rule of the board. */
export class Rejected extends VerificationError {
  /** @param {string} code @param {string} [detail] */
  constructor(code, detail = "") {
    const [number, sentence] = RULES[code];
    super(`Refused by rule ${number}: ${sentence}${detail ? ` ${detail}` : ""}`);
    this.code = code;
    this.number = number;
  }
}

/** A block does not follow from the blocks before it. */
export class InvalidBlock extends VerificationError {
  /** @param {number} height @param {string} reason @param {number | null} [posting] @param {string} [rule] */
  constructor(height, reason, posting = null, rule = "block") {
    super(`${posting === null ? `Block ${height}` : `Posting ${posting} of block ${height}`}: ${reason}`);
    this.height = height;
    this.posting = posting;
    this.rule = rule;
  }
}

/** @param {unknown} condition @param {string} code @param {string} [detail] */
export function require(condition, code, detail = "") {
  if (!condition) throw new Rejected(code, detail);
}

/** Runs a check under a rule: what it refuses is the rule's. @param {string} code @param {() => any} check */
export async function under(code, check) {
  try {
    return await check();
  } catch (error) {
    if (error instanceof Rejected || error instanceof BlobTrouble || error instanceof NotCheckedHere) throw error;
    throw new Rejected(code, sentenceOf(error));
  }
}

/** @param {unknown} error @returns {string} */
export const sentenceOf = (error) => (error instanceof Error ? error.message : String(error));
