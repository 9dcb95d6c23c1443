/** What follows from a task's document: src/anofel/board/announcement.py and privacy/announced.py, in whole numbers. */
import { InvalidInput, NotCheckedHere } from "./errors.js";
import { core } from "./core.js";
import { Fraction, whole } from "./fraction.js";
import { checkSettings } from "./settings.js";

const TAIL = 10n;
const MAX_ROOT = 1n << 31n;
const HARMONIC_BITS = 96n;
const MIN_LOCAL_SIGMA = 8n;
const MAX_POSTS = 1 << 14;
const DIGITS = 80;

/** The sums of such vectors do not fit, or nobody proves what the task asks for. */
export class DoesNotFit extends InvalidInput {}

/**
 * Reads JSON without white space; whole numbers beyond 2^53 become BigInt, others are refused.
 * @param {string} text
 */
export function parseJson(text) {
  let at = 0;
  const fail = () => new InvalidInput("The task is no JSON document.");
  const value = () => {
    const start = text[at];
    if (start === "{" || start === "[") return collection(start === "{");
    const [token] = /^(?:"(?:[^"\\\u0000-\u001f]|\\.)*"|-?(?:0|[1-9]\d*)|true|false|null)/u.exec(text.slice(at)) ?? [];
    if (token === undefined) throw fail();
    at += token.length;
    if (/^-?\d{16}/.test(token)) return BigInt(token);
    return JSON.parse(token);
  };
  /** @param {boolean} named @returns {any} */
  const collection = (named) => {
    const found = named ? {} : [];
    at += 1;
    for (let first = true; ; first = false) {
      if (text[at] === (named ? "}" : "]") && (first || text[at - 1] !== ",")) break;
      if (!first && text[at - 1] !== ",") throw fail();
      if (named) {
        const key = value();
        if (typeof key !== "string" || text[at++] !== ":" || Object.hasOwn(found, key)) throw fail();
        Object.defineProperty(found, key, { value: value(), enumerable: true });
      } else /** @type {any[]} */ (found).push(value());
      if (text[at] === ",") at += 1;
    }
    at += 1;
    return found;
  };
  const whole = value();
  if (at !== text.length) throw fail();
  return whole;
}

/** The one canonical text of a value. @param {any} value @returns {string} */
export function canonical(value) {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value && typeof value === "object") {
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

/** @param {Uint8Array} document @returns {any} */
export function readTask(document) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(document);
  } catch {
    throw new InvalidInput("The task is not UTF-8.");
  }
  let task;
  try {
    task = parseJson(text);
  } catch {
    throw new InvalidInput("The task is no JSON document.");
  }
  checkSettings(task);
  if (canonical(task) !== text) throw new InvalidInput("The task is not in its canonical encoding.");
  return task;
}

/** @param {bigint} value @returns {bigint} */
function isqrt(value) {
  if (value < 2n) return value;
  let root = 1n << BigInt((value.toString(2).length + 1) >> 1);
  for (;;) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** The least integer whose square is at least this. @param {Fraction} square */
function rootAbove(square) {
  const least = square.ceil();
  return least > 0n ? isqrt(least - 1n) + 1n : 0n;
}

/** ln of a fraction above 1, in units of 10^-DIGITS. @param {Fraction} value @returns {bigint} */
function logarithm(value) {
  const one = 10n ** BigInt(DIGITS);
  const atanh = (/** @type {Fraction} */ x) => {
    const square = (x.num * x.num * one) / (x.den * x.den);
    let power = (x.num * one) / x.den;
    let sum = 0n;
    for (let odd = 1n; power; odd += 2n, power = (power * square) / one) sum += power / odd;
    return 2n * sum;
  };
  let twos = 0n;
  let { num, den } = value;
  for (; num > 2n * den; twos++) den *= 2n;
  return atanh(new Fraction(num - den, num + den)) + twos * atanh(new Fraction(1n, 3n));
}

/** @param {any} privacy @param {number} scaleBits */
const radius = (privacy, scaleBits) => whole(1n << BigInt(scaleBits)).times(Fraction.of(privacy.clipping_norm));

/** @param {any} privacy */
const honest = (privacy) => BigInt(privacy.min_clients - privacy.max_colluders);

/** The paper's σ; `docs/privacy.md`. @param {any} privacy */
function paperSigma(privacy) {
  const exact = new Fraction(BigInt(privacy.max_releases) * 2n, BigInt(privacy.records_per_client))
    .times(Fraction.of(privacy.clipping_norm));
  const one = 10n ** BigInt(DIGITS);
  const c = isqrt(2n * logarithm(Fraction.of("1.25").over(Fraction.of(privacy.delta))) * one);
  return new Fraction(c, one).times(exact).over(Fraction.of(privacy.paper_epsilon));
}

/** @param {any} privacy @param {number} scaleBits @param {number} position @returns {bigint} */
function localSigma(privacy, scaleBits, position) {
  const least = (/** @type {bigint} */ value) => (value > 1n ? value : 1n);
  if (privacy.unit === "paper") {
    const scaled = whole(1n << BigInt(scaleBits)).times(paperSigma(privacy));
    return least(scaled.over(whole(privacy.expected_clients)).ceil());
  }
  const sigma = Fraction.of(privacy.noise_multiplier).times(radius(privacy, scaleBits));
  const variance = sigma.times(sigma);
  if (!privacy.adaptive) return least(rootAbove(variance.over(whole(honest(privacy)))));
  const one = 1n << HARMONIC_BITS;
  const last = BigInt(privacy.max_posts);
  let harmonic = 0n;
  for (let k = last - honest(privacy) + 1n; k <= last; k++) harmonic += one / k;
  return least(rootAbove(variance.over(new Fraction(harmonic, one)).over(whole(position))));
}

/** @param {any} privacy @param {number} scaleBits */
function valueBound(privacy, scaleBits) {
  const records = privacy.unit === "record" ? privacy.records_per_client : 1;
  const contribution = whole(records).times(radius(privacy, scaleBits)).ceil() + 1n;
  return contribution + TAIL * localSigma(privacy, scaleBits, 1);
}

/** @param {any} privacy @param {number} scaleBits @param {number} length */
function normBound(privacy, scaleBits, length) {
  const spread = BigInt(length) + 2n * rootAbove(whole(28 * length)) + 56n;
  const sigma = localSigma(privacy, scaleBits, 1) + 1n;
  return updateNorm(privacy, scaleBits, length) + rootAbove(whole(sigma * sigma * spread));
}

/** @param {any} privacy @param {number} scaleBits @param {number} length */
function updateNorm(privacy, scaleBits, length) {
  const size = radius(privacy, scaleBits);
  const root = rootAbove(whole(length));
  if (privacy.unit === "record") {
    const together = whole(privacy.records_per_client).times(size);
    return together.plus(together.over(whole(1 << 29))).ceil() + root;
  }
  const square = size.times(size).plus(new Fraction(BigInt(length), 4n)).plus(size).plus(new Fraction(root, 2n));
  return rootAbove(square) + 1n;
}

/** @param {any} task @returns {string[]} */
function metricSlots(task) {
  if (!task.metrics) return [];
  return task.privacy.unit === "record" ? [...task.metrics.names, "examples"] : task.metrics.names;
}

/** Where the metric slots of a vector begin: behind the parameters and the weight. @param {any} task @returns {number} */
const metricsStart = (task) => task.model.parameters + Number(Boolean(task.weights));

/** ω, what a client of weight 1 adds to the weight slot. @param {any} task */
function weightStep({ privacy, model, weights }) {
  const { num, den } = Fraction.of(weights.share).times(radius(privacy, model.scale_bits));
  return num / den;
}

/** What a weighted mean needs, if a task asks for one. @param {any} task */
function weightsOf(task) {
  if (!task.weights) return null;
  const step = weightStep(task);
  const floor = Fraction.of(task.weights.floor);
  return { step, floor: (/** @type {bigint} */ count) => floor.times(whole(step * count)).ceil() };
}

/** @param {any} task @returns {bigint[][]} */
function rangesOf(task) {
  const slots = metricSlots(task).length;
  if (!task.metrics?.proven_ranges) return [];
  const { privacy, model: { scale_bits: scale } } = task;
  const sigma = localSigma(privacy, scale, 1) + 1n;
  const noise = rootAbove(whole(60n * sigma * sigma));
  const records = privacy.unit === "record" ? privacy.records_per_client : 1;
  let largest = whole(records).times(Fraction.of(task.metrics.share)).times(radius(privacy, scale));
  largest = largest.plus(largest.over(whole(1 << 29)));
  const bound = rootAbove(largest.times(largest).over(whole(slots))) + 1n;
  const first = BigInt(metricsStart(task));
  return Array.from({ length: slots }, (_, slot) => [first + BigInt(slot), -noise, bound + noise]);
}

/** The size class that holds a task, of several the one with the fewest posts. @param {any[]} classes @param {any} task */
export function sizeClassOf(classes, task) {
  const posts = task.privacy.max_posts;
  const length = metricsStart(task) + metricSlots(task).length;
  const fits = classes
    .map((size, at) => ({ size, at }))
    .filter(({ size }) => (task.privacy.adaptive ? posts === size.max_posts : posts <= size.max_posts))
    .filter(({ size }) => length <= size.max_length)
    .sort((one, other) =>
      one.size.max_posts - other.size.max_posts || one.size.max_length - other.size.max_length || one.at - other.at);
  return fits.length ? fits[0].at : null;
}

/** @param {any} task */
export function companionsOf(task) {
  if (task.rule.kind === "owner") return 0;
  return task.rule.kind === "integer-mean" ? Number(task.rule.momentum > 0) : 2;
}

/** The numbers of a task that rules and phases need. @param {any} task @param {any} size */
export function factsOf(task, size) {
  const { privacy, model } = task;
  const scale = model.scale_bits;
  const length = metricsStart(task) + metricSlots(task).length;
  const unproven = task.task.insecure_unproven_contributions === true;
  return {
    name: task.task.name,
    limits: {
      length,
      bound: valueBound(privacy, scale),
      maxPosts: size.max_posts,
      minClients: privacy.min_clients,
      normBound: unproven ? null : normBound(privacy, scale, length),
      maxLiars: Math.max(1, privacy.max_colluders),
      ranges: unproven ? [] : rangesOf(task),
    },
    parameters: model.parameters,
    metricsStart: metricsStart(task),
    scaleBits: scale,
    maxReleases: privacy.max_releases,
    types: task.task.dataset_type ? [task.task.dataset_type] : null,
    rule: task.rule,
    companions: companionsOf(task),
    groups: task.groups ?? null,
    weights: weightsOf(task),
    groupsNumber: task.groups ? task.groups.number : 1,
    task,
  };
}

/** @typedef {ReturnType<typeof factsOf>} Facts */

/** What the widths of a task's vectors follow from. @param {Facts["limits"]} limits @returns {any[]} */
export const codecFields = (limits) => [
  limits.length, limits.bound, limits.maxPosts, limits.normBound ?? undefined, limits.maxLiars,
  BigInt64Array.from(limits.ranges.flat()),
];

/** The widths of a task's vectors. @param {Facts["limits"]} limits */
export const codecOf = (limits) => new core.Codec(...codecFields(limits));

/** Refuses sums that a committee cannot add. @param {Facts} facts @param {number} scheme */
export function checkFits(facts, scheme) {
  const { limits } = facts;
  if (scheme !== 0) throw new NotCheckedHere("A committee has another scheme than lattice");
  const isRange = limits.bound >= 1n && limits.bound < 1n << 62n && limits.maxPosts <= MAX_POSTS;
  const isNorm = limits.normBound === null || (limits.normBound >= 1n && limits.normBound < 1n << 62n);
  if (!isRange || !isNorm || limits.minClients < 2 || limits.minClients > limits.maxPosts) {
    throw new DoesNotFit("The numbers of the task are outside what a committee adds.");
  }
  try {
    codecOf(limits).free();
  } catch (error) {
    throw new DoesNotFit(/** @type {Error} */ (error).message);
  }
  const { privacy } = facts.task;
  const size = radius(privacy, facts.scaleBits);
  const room = whole(MAX_ROOT).minus(size);
  const square = room.times(room);
  if (room.num <= 0n || BigInt(limits.length) * square.den >= square.num) {
    throw new InvalidInput("clipping_norm at this scale leaves no room in 64-bit integers; lower scale_bits.");
  }
  const smallest = localSigma(privacy, facts.scaleBits, privacy.max_posts);
  if (privacy.unit !== "paper" && smallest < MIN_LOCAL_SIGMA) {
    throw new InvalidInput(
      `A client's noise would have a standard deviation of ${smallest} integer steps, below ${MIN_LOCAL_SIGMA}; ` +
      "raise scale_bits.");
  }
}

/** A length in integer steps, rounded up; none for zero. @param {Facts} facts @param {string | undefined} length */
export function inSteps(facts, length) {
  const value = Fraction.of(length ?? 0);
  return value.num ? whole(1n << BigInt(facts.scaleBits)).times(value).ceil() : null;
}
