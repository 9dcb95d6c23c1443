/** Model files, and the exact rules that make the next one: src/anofel/models. */
import { compareBytes, concat, Reader, sha256 } from "./bytes.js";
import { core } from "./core.js";
import { InvalidInput, sentenceOf } from "./errors.js";
import { inSteps } from "./task.js";

const MAGIC = "616e6f66656c2e6d6f64656c2e310000";
const MAX_TENSORS = 4096;
const MAX_SECOND = 1n << 62n;
const FRACTION_BITS = 16;

/** A parameter is larger than a model may hold. */
export class ModelOverflow extends InvalidInput {}

/** @param {Uint8Array} bytes @returns {BigInt64Array} */
export const integers = (bytes) => new BigInt64Array(bytes.slice().buffer);
/** @param {BigInt64Array} values */
const bytesOf = (values) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

/** A model: its header as bytes, and its vectors of little-endian 64-bit integers. */
export class Model {
  /** @param {Uint8Array} header @param {number} scaleBits @param {number} size @param {Uint8Array[]} vectors */
  constructor(header, scaleBits, size, vectors) {
    this.header = header;
    this.scaleBits = scaleBits;
    this.size = size;
    this.vectors = vectors;
    const limit = 1n << BigInt(scaleBits + 20);
    for (const vector of vectors.slice(0, 2)) {
      if (integers(vector).some((value) => value > limit || value < -limit)) {
        throw new ModelOverflow("A parameter or its velocity is larger than 2^20.");
      }
    }
    if (vectors.length > 2 && integers(vectors[2]).some((value) => value < 0n || value > MAX_SECOND)) {
      throw new ModelOverflow("A second moment lies outside 0 and 2^62.");
    }
  }

  get companions() {
    return this.vectors.length - 1;
  }

  /** @param {Uint8Array} data @returns {Model} */
  static read(data) {
    try {
      return Model.parse(data);
    } catch (error) {
      if (error instanceof InvalidInput) throw error;
      throw new InvalidInput("The model file is cut short or not a model file.");
    }
  }

  /** @param {Uint8Array} data @returns {Model} */
  static parse(data) {
    const reader = new Reader(data);
    if (compareBytes(data.subarray(0, 16), concat([MAGIC])) !== 0) {
      throw new InvalidInput("The file does not begin like a model file of version 1.");
    }
    reader.take(16);
    const [scaleBits, companions, tensors] = [reader.number(1), reader.number(1), reader.number(4)];
    if (companions > 2 || tensors > MAX_TENSORS) throw new InvalidInput("The header of the model file is malformed.");
    let size = 0;
    /** @type {Uint8Array | null} */
    let before = null;
    let sorted = tensors > 0 && scaleBits <= 40;
    for (let tensor = 0; tensor < tensors; tensor++) {
      const name = reader.take(reader.number(2));
      new TextDecoder("utf-8", { fatal: true }).decode(name);
      const dimensions = reader.number(1);
      sorted &&= name.length > 0 && name.length < 256 && dimensions <= 8;
      sorted &&= before === null || compareBytes(before, name) < 0;
      before = name;
      let product = 1;
      for (let at = 0; at < dimensions; at++) product *= reader.number(4);
      size += product;
    }
    if (reader.left !== 8 * size * (1 + companions)) {
      throw new InvalidInput(`The model file names ${size} parameters, but its length does not fit.`);
    }
    if (!sorted || !size) {
      throw new InvalidInput("The model file is not canonical: tensors must be sorted by name and unique.");
    }
    const header = data.subarray(0, reader.at);
    const vectors = Array.from({ length: 1 + companions }, () => reader.take(8 * size));
    return new Model(header, scaleBits, size, vectors);
  }

  digest() {
    return sha256(this.header, ...this.vectors);
  }
}

/** Numerator and denominator of the learning rate of an iteration. @param {any} rule @param {number} iteration */
function rateOf(rule, iteration) {
  let rate = [rule.lr_num, rule.lr_den];
  for (const change of rule.schedule ?? []) {
    if (change.iteration <= iteration) rate = [change.lr_num, change.lr_den];
  }
  return rate.map(BigInt);
}

/**
 * The model that a task's rule makes of a sum. Raises ModelOverflow.
 * @param {import("./task.js").Facts} facts @param {Model} model @param {[Uint8Array, number][]} sums @param {number} iteration
 */
export function nextModel(facts, model, sums, iteration) {
  const [total, count] = meanOf(facts, sums, model.size);
  const { rule } = facts;
  const [num, den] = rateOf(rule, iteration);
  const most = inSteps(facts, rule.max_mean_norm) ?? undefined;
  if (model.companions !== facts.companions) {
    throw new InvalidInput("A model carries a velocity exactly if its rule has momentum.");
  }
  const [values, velocity = new Uint8Array(8 * model.size), second] = model.vectors;
  let made;
  try {
    made = rule.kind === "integer-mean"
      ? core.integerMean(values, velocity, total, rule.momentum, num, den, BigInt(count), most)
      : core.integerAdaptive(
        values, velocity, second, total, rule.kind === "integer-yogi", rule.momentum, rule.second_momentum,
        inSteps(facts, rule.floor) ?? 1n, model.scaleBits, num, den, BigInt(count), most);
  } catch (error) {
    const sentence = `The update cannot be applied: ${sentenceOf(error)}.`;
    throw /** @type {any} */ (error).kind === "overflow" ? new ModelOverflow(sentence) : new InvalidInput(sentence);
  }
  return new Model(model.header, model.scaleBits, model.size, made.slice(0, model.vectors.length));
}

/**
 * Sum and divisor of what the rule averages (src/anofel/models/means.py); without weights and groups those of the one sum.
 * @param {import("./task.js").Facts} facts @param {[Uint8Array, number][]} sums @param {number} size @returns {[Uint8Array, number]}
 */
function meanOf({ groups, weights }, sums, size) {
  const own = (/** @type {Uint8Array} */ total) => total.subarray(0, 8 * size);
  if (!groups && !weights) return [own(sums[0][0]), sums[0][1]];
  const means = sums.map(([total, count]) => {
    const [numerator, divisor] = weights ? weightedBy(weights, total, count, size) : [1n, BigInt(count)];
    return core.fineMean(own(total), numerator, divisor);
  });
  if (!groups) return [means[0], 1 << FRACTION_BITS];
  return combined(groups, means.map(integers));
}

/** What the sum is multiplied and divided by. @param {any} weights @param {Uint8Array} total @param {number} count @param {number} size */
function weightedBy({ step, floor }, total, count, size) {
  const least = floor(BigInt(count));
  const [stated] = integers(total.subarray(8 * size, 8 * size + 8));
  return [step, stated > least ? stated : least];
}

/** One mean of the groups' means, and what it is to be divided by (docs/groups.md). @param {any} spec @param {BigInt64Array[]} means @returns {[Uint8Array, number]} */
function combined(spec, means) {
  let out = Math.floor((means.length - 1) / 2);
  if (spec.combine === "trimmed-mean") out = Math.min(spec.trim, out);
  const kept = means.length - 2 * out;
  const sum = new BigInt64Array(means[0].length);
  for (let at = 0; at < sum.length; at++) {
    const column = means.map((mean) => mean[at]).sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
    for (const value of column.slice(out, out + kept)) sum[at] += value;
  }
  return [bytesOf(sum), kept << FRACTION_BITS];
}
