/** Whether the settings of a task are known and fit together: src/anofel/tasks/task.py, schema.py, network_sizes.py. */
import { InvalidInput } from "./errors.js";
import { Fraction, whole } from "./fraction.js";

/** @typedef {(value: any) => boolean} Test */

const COUNT = 2n ** 32n;
const CLIENTS = 1n << 20n;
const RATE = 1n << 62n;
const MEASURE = "1000000000000";
const MAX_DIGITS = 40;
const MAX_CHANGES = 1024;

/** @param {unknown} value */
const isWhole = (value) => Number.isSafeInteger(value) || typeof value === "bigint";
/** @param {number | bigint} low @param {number | bigint} high @returns {Test} */
const integer = (low, high) => (value) => isWhole(value) && value >= low && value <= high;
/** @param {...string} words @returns {Test} */
const one = (...words) => (value) => words.includes(value);
/** @type {Test} */
const text = (value) => typeof value === "string";
/** @type {Test} */
const flag = (value) => typeof value === "boolean";
/** @param {Test} test @returns {Test} */
const list = (test) => (value) => Array.isArray(value) && value.every(test);
/** @type {Test} */
const texts = (value) => list(text)(value) && new Set(value).size === value.length;

/** A decimal in its one canonical text. @param {string} low @param {string} high @returns {Test} */
function decimal(low, high) {
  const [least, most] = [Fraction.of(low), Fraction.of(high)];
  return (value) => {
    if (typeof value !== "string" || value === "-0") return false;
    const [, whole, part = ""] = /^-?(0|[1-9]\d*)(?:\.(\d*[1-9]))?$/.exec(value) ?? [];
    if (whole === undefined || (whole === "0" ? 0 : whole.length) + part.length > MAX_DIGITS) return false;
    const number = Fraction.of(value);
    return number.minus(least).num >= 0n && most.minus(number).num >= 0n;
  };
}

/** Texts that show as themselves; a control character could rewrite what a terminal shows. @param {...string} values */
const areOneLine = (...values) =>
  !values.some((value) => /[\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]|(?!\t)\p{Cc}/u.test(value));

const measured = decimal(`-${MEASURE}`, MEASURE);
const scale = decimal("0.000000001", MEASURE);
const share = decimal("0.001", "0.999");

/** The keys of every table: what each holds, and whether it may be left out, which it is if it says nothing. */
const TABLES = /** @type {Record<string, Record<string, [Test, "maybe"?]>>} */ ({
  task: {
    name: [text], study: [text], dataset_type: [integer(0, COUNT - 1n)],
    insecure_unproven_contributions: [(value) => value === true, "maybe"],
  },
  model: {
    kind: [one("logistic", "mlp", "lenet5", "resnet20-gn", "squeezenet-gn", "custom")],
    hidden: [list(integer(1, 1 << 16))], seed: [integer(0, COUNT - 1n)], scale_bits: [integer(8, 32)],
    parameters: [integer(1, 2 ** 30)],
  },
  training: {
    algorithm: [one("fedsgd", "fedavg", "custom")], learning_rate: [decimal("0", "1000")], epochs: [integer(1, 1000)],
    batch_size: [integer(1, CLIENTS)], optimiser: [one("sgd", "adam")], momentum: [decimal("0", "0.9999")],
    max_steps: [integer(1, CLIENTS), "maybe"], proximal: [isPositive(decimal("0", "1000")), "maybe"],
    weight_decay: [isPositive(decimal("0", "1")), "maybe"], label_smoothing: [isPositive(decimal("0", "0.5")), "maybe"],
    augment: [one("shift", "shift-and-flip"), "maybe"], precision: [one("bfloat16"), "maybe"],
  },
  rule: {
    kind: [one("integer-mean", "integer-adam", "integer-yogi", "owner")], lr_num: [integer(1, RATE)], lr_den: [integer(1, RATE)],
    momentum: [integer(0, 65535)],
    schedule: [(value) => Array.isArray(value) && value.length > 0, "maybe"],
    max_mean_norm: [decimal("0.000001", "1000000"), "maybe"], second_momentum: [integer(0, 65535), "maybe"],
    floor: [decimal("0.000001", "1000000"), "maybe"],
  },
  change: { iteration: [integer(2, COUNT)], lr_num: [integer(1, RATE)], lr_den: [integer(1, RATE)] },
  privacy: {
    unit: [one("client", "record", "paper")], relation: [one("zero-out", "replace")], mechanism: [text], adaptive: [flag],
    clipping_norm: [decimal("0.000001", "1000000")], noise_multiplier: [decimal("0", "1000000")],
    delta: [decimal("0.000000000001", "0.1")], max_releases: [integer(1, 100_000)], min_clients: [integer(2, CLIENTS)],
    max_colluders: [integer(0, CLIENTS)], expected_clients: [integer(2, CLIENTS)], max_posts: [integer(1, COUNT)],
    sampling_rate: [decimal("0.0001", "1")], records_per_client: [integer(1, COUNT)], paper_epsilon: [decimal("0.001", "1000")],
  },
  metrics: {
    names: [texts], share: [share], loss_bound: [decimal("0.001", "1000")],
    proven_ranges: [(value) => value === true, "maybe"],
  },
  groups: { number: [integer(2, 32)], combine: [one("median", "trimmed-mean")], trim: [integer(0, 15)] },
  weights: { most: [integer(1, COUNT)], share: [share], floor: [decimal("0.001", "1")] },
  table: {
    kind: [one("table")], column: [(value) => Array.isArray(value) && value.length > 0], label: [text], label_values: [texts],
    target: [isTable, "maybe"], identifying: [texts], unused: [texts], fraction_bits: [integer(8, 24)], app: [text, "maybe"],
  },
  image: {
    kind: [one("image")], shape: [list(integer(1, 4096))], label_values: [texts], transform: [one("scattering"), "maybe"],
    app: [text, "maybe"],
  },
  number: {
    kind: [one("number")], name: [text], unit: [text], low: [measured], high: [measured], outside: [one("refuse", "clip")],
    missing: [measured, "maybe"], indicator: [flag], offset: [measured], scale: [scale],
  },
  category: { kind: [one("category")], name: [text], values: [texts], missing: [text, "maybe"] },
  numberTarget: {
    kind: [one("number")], unit: [text], low: [measured], high: [measured], outside: [one("refuse", "clip")],
    offset: [measured], scale: [scale],
  },
  survivalTarget: {
    kind: [one("survival")], unit: [text], event: [text], event_values: [texts], cuts: [list(integer(1, 1_000_000_000))],
  },
});

/** @param {Test} test @returns {Test} */
function isPositive(test) {
  return (value) => value !== "0" && test(value);
}

/** @param {any} value @returns {boolean} */
function isTable(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} condition @param {string} where @param {string} what */
function need(condition, where, what) {
  if (!condition) throw new InvalidInput(`The task's [${where}] cannot be used: ${what}.`);
}

/** Every key is known, there and within its bounds. @param {any} values @param {string} kind @param {string} where */
function readTable(values, kind, where) {
  const keys = TABLES[kind];
  need(isTable(values), where, "it is no table");
  for (const key of Object.keys(values)) need(Object.hasOwn(keys, key), where, "it has an unknown key");
  for (const [key, [test, maybe]] of Object.entries(keys)) {
    const isThere = Object.hasOwn(values, key);
    need(isThere ? test(values[key]) : maybe, where, `${key} is missing, or not what it must be`);
  }
}

/** Refuses a task whose settings are unknown or do not fit together. @param {any} task */
export function checkSettings(task) {
  const needed = ["task", "model", "training", "rule", "privacy", "schema"];
  const known = [...needed, "metrics", "groups", "weights"];
  need(isTable(task) && needed.every((table) => Object.hasOwn(task, table)), "task", "a table is missing");
  for (const [table, values] of Object.entries(task)) {
    need(known.includes(table), "task", "there is an unknown table");
    if (table !== "schema") readTable(values, table, table);
  }
  const { name, study } = task.task;
  need(name.length >= 1 && [...name].length <= 128 && areOneLine(name, study), "task", "its name or study cannot be shown");
  const sizes = checkSchema(task.schema);
  checkModel(task.model, task.schema, sizes);
  checkTraining(task);
  checkRule(task.rule);
  checkPrivacy(task.privacy);
  if (task.metrics) checkMetrics(task);
  if (task.groups) checkGroups(task);
  if (task.weights) checkWeights(task);
}

/** @typedef {{inputs: number, outputs: number, scores: number, classes: number, shape: number[]}} Sizes */

/** @param {any} schema @returns {Sizes} */
function checkSchema(schema) {
  need(isTable(schema) && ["table", "image"].includes(schema.kind), "schema", "its kind is not known");
  readTable(schema, schema.kind, "schema");
  need(schema.app === undefined || /^[0-9a-f]{64}$/.test(schema.app), "schema", "app is no digest");
  need(areOneLine(...schema.label_values), "schema", "a text has a control character");
  return schema.kind === "table" ? checkTable(schema) : checkImage(schema);
}

/** @param {any} schema @returns {Sizes} */
function checkImage({ shape, label_values: labels, transform }) {
  need(shape.length === 3 && labels.length >= 2, "schema", "images have a height, a width, channels, and two labels or more");
  const [height, width, channels] = shape;
  need(!transform || Math.min(height, width) >= 8, "schema", "the images are too small for their transform");
  const inputs = transform ? channels * 81 * Math.ceil(height / 4) * Math.ceil(width / 4) : height * width * channels;
  const outputs = labels.length === 2 ? 1 : labels.length;
  return { inputs, outputs, scores: outputs, classes: labels.length, shape };
}

/** @param {any} schema @returns {Sizes} */
function checkTable(schema) {
  const { column: columns, label, label_values: labels, target, identifying, unused } = schema;
  let inputs = 0;
  for (const column of columns) {
    need(isTable(column) && ["number", "category"].includes(column.kind), "schema", "the kind of a column is not known");
    readTable(column, column.kind, "schema.column");
    inputs += column.kind === "number" ? checkNumber(column) : checkCategory(column);
  }
  need(areOneLine(label, ...identifying, ...unused), "schema", "a text has a control character");
  need(target ? !labels.length : labels.length >= 2, "schema", "label_values are for classes, two or more");
  let outputs = labels.length === 2 ? 1 : labels.length;
  let [scores, classes] = [outputs, labels.length];
  if (target) [outputs, scores, classes] = checkTarget(target);
  const event = target?.kind === "survival" && target.event ? [target.event] : [];
  const roles = [...identifying, ...columns.map((/** @type {any} */ column) => column.name), label, ...event, ...unused];
  need(new Set(roles).size === roles.length, "schema", "a column has two roles");
  return { inputs, outputs, scores, classes, shape: [inputs] };
}

/** @param {any} column */
function checkNumber({ name, unit, low, high, missing, offset, scale: by, indicator }) {
  need(areOneLine(name, unit), "schema.column", "a text has a control character");
  const [least, most, start] = [low, high, offset].map(Fraction.of);
  need(most.minus(least).num > 0n, "schema.column", "low must be below high");
  const isBetween = (/** @type {Fraction} */ value) => value.minus(least).num >= 0n && most.minus(value).num >= 0n;
  need(missing === undefined || isBetween(Fraction.of(missing)), "schema.column", "missing must lie between low and high");
  const largest = Fraction.of(by).times(whole(127));
  const isSmall = (/** @type {Fraction} */ far) => largest.minus(far).num >= 0n && largest.plus(far).num >= 0n;
  need([least, most].every((end) => isSmall(end.minus(start))), "schema.column", "scale lets a feature grow beyond 127");
  return indicator ? 2 : 1;
}

/** @param {any} column */
function checkCategory({ name, values, missing }) {
  need(areOneLine(name, ...values) && values.length >= 2, "schema.column", "values must be two or more, without control characters");
  need(missing === undefined || values.includes(missing), "schema.column", "missing must be one of the values");
  return values.length - 1;
}

/** @param {any} target @returns {[number, number, number]} */
function checkTarget(target) {
  const where = "schema.target";
  need(["number", "survival"].includes(target.kind), where, "its kind is not known");
  readTable(target, `${target.kind}Target`, where);
  need(areOneLine(target.unit), where, "a text has a control character");
  if (target.kind === "number") {
    need(Fraction.of(target.high).minus(Fraction.of(target.low)).num > 0n, where, "low must be below high");
    return [1, 1, 65536];
  }
  const { event, event_values: values, cuts } = target;
  need(areOneLine(event, ...values) && values.length === 2, where, "event_values must be two, without control characters");
  const isOrdered = cuts.every((/** @type {number} */ cut, /** @type {number} */ at) => at === 0 || cut > cuts[at - 1]);
  need(cuts.length >= 1 && cuts.length <= 64 && isOrdered, where, "cuts must be 1 to 64, in order");
  return [cuts.length, 1, 2 * cuts.length + 1];
}

/** @param {any} model @param {any} schema @param {Sizes} sizes */
function checkModel({ kind, hidden, parameters }, schema, sizes) {
  need((kind === "mlp") === hidden.length > 0, "model", "hidden names the hidden layers of an mlp, and of nothing else");
  if (kind === "custom") return;
  const isDense = ["logistic", "mlp"].includes(kind);
  need(isDense || !schema.transform, "model", "the network takes images as they are");
  need(parameters === (isDense ? denseSize(hidden, sizes) : networkSize(kind, sizes)), "model", "parameters does not follow from the schema");
}

/** @param {number[]} hidden @param {Sizes} sizes */
function denseSize(hidden, { inputs, outputs, scores }) {
  const widths = [inputs, ...hidden, outputs];
  const size = widths.slice(1).reduce((sum, width, at) => sum + (widths[at] + 1) * width, 0);
  return size - widths[widths.length - 2] * (outputs - scores);
}

/** @param {string} kind @param {Sizes} sizes @returns {number} */
function networkSize(kind, { shape, classes }) {
  const [height, width, channels] = shape;
  const isLarge = shape.length === 3 && Math.min(height, width) >= (kind === "lenet5" ? 16 : 8);
  need(isLarge, "model", "the network needs larger images");
  const convolution = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ window) => (from * window * window + 1) * to;
  const normed = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ window) => convolution(from, to, window) + 2 * to;
  const dense = (/** @type {number} */ from, /** @type {number} */ to) => (from + 1) * to;
  if (kind === "lenet5") {
    const side = (/** @type {number} */ length) => Math.floor((Math.floor(length / 2) - 4) / 2);
    const flat = 16 * side(height) * side(width);
    return convolution(channels, 6, 5) + convolution(6, 16, 5) + dense(flat, 120) + dense(120, 84) + dense(84, classes);
  }
  if (kind === "resnet20-gn") {
    let [size, from] = [normed(channels, 16, 3), 16];
    for (const to of [16, 16, 16, 32, 32, 32, 64, 64, 64]) {
      size += normed(from, to, 3) + normed(to, to, 3) + (from === to ? 0 : normed(from, to, 1));
      from = to;
    }
    return size + dense(from, classes);
  }
  let [size, from] = [normed(channels, 96, 3), 96];
  for (const to of [128, 128, 256, 256, 384, 384, 512, 512]) {
    size += normed(from, to / 8, 1) + normed(to / 8, to / 2, 1) + normed(to / 8, to / 2, 3);
    from = to;
  }
  return size + convolution(from, classes, 1);
}

/** @param {any} task */
function checkTraining({ training, model, schema, privacy }) {
  const { algorithm, learning_rate: rate, epochs, batch_size: batch, optimiser, momentum } = training;
  const { max_steps: steps, proximal, weight_decay: decay, label_smoothing: smoothing, augment, precision } = training;
  const isPlain = optimiser === "sgd" && momentum === "0" && !decay && !smoothing && !augment && !precision;
  if (algorithm === "fedavg") {
    need(rate !== "0", "training", "learning_rate must be positive for fedavg");
    need(momentum === "0" || optimiser === "sgd", "training", "momentum belongs to the optimiser sgd");
    need(privacy.unit !== "record", "training", "the unit 'record' needs fedsgd");
  } else {
    const isDefault = rate === "0" && epochs === 1 && batch === 32 && !steps && !proximal && isPlain;
    need(isDefault, "training", "a setting belongs to the algorithm fedavg");
  }
  need(isPlain || !["logistic", "mlp"].includes(model.kind), "training", "the networks in NumPy train with plain sgd only");
  need(!augment || schema.kind === "image", "training", "only images are augmented");
}

/** @param {any} rule */
function checkRule(rule) {
  const { kind, momentum, schedule = [], max_mean_norm: most, second_momentum: second, floor } = rule;
  const isAdaptive = ["integer-adam", "integer-yogi"].includes(kind);
  need(isAdaptive === (second !== undefined) && isAdaptive === (floor !== undefined), "rule", "second_momentum and floor belong to the adaptive rules");
  schedule.forEach((/** @type {any} */ change, /** @type {number} */ at) => {
    readTable(change, "change", "rule.schedule");
    need(at === 0 || BigInt(change.iteration) > BigInt(schedule[at - 1].iteration), "rule", "schedule must be in the order of its iterations");
  });
  need(schedule.length <= MAX_CHANGES, "rule", "schedule is too long");
  need(kind !== "owner" || (!momentum && !schedule.length && !most), "rule", "the kind owner has no settings");
}

/** @param {any} privacy */
function checkPrivacy(privacy) {
  const { unit, noise_multiplier: noise, min_clients: least, max_colluders: bad, expected_clients: expected } = privacy;
  need(expected >= least && privacy.max_posts >= expected, "privacy", "max_posts ≥ expected_clients ≥ min_clients does not hold");
  need(least - bad >= 2, "privacy", "min_clients must exceed max_colluders by at least 2");
  need(noise === "0" ? unit === "paper" : decimal("0.000001", "1000000")(noise), "privacy", "noise_multiplier must be positive, 0.000001 or more");
  need(privacy.sampling_rate === "1" || unit === "record", "privacy", "sampling_rate is for the unit 'record' only");
  need(!privacy.adaptive || unit !== "paper", "privacy", "adaptive is not combined with the unit 'paper'");
}

/** @param {any} task */
function checkMetrics({ metrics: { names }, privacy, schema }) {
  const inOrder = ["accuracy", "loss"].filter((name) => names.includes(name));
  need(names.length && names.join() === inOrder.join(), "metrics", "names must be some of accuracy, loss, in this order");
  need(!schema.target, "metrics", "metric slots measure classes");
  need(privacy.unit !== "paper" && privacy.sampling_rate === "1", "metrics", "they need the unit 'client' or 'record', and no sampling");
}

/** @param {any} task */
function checkGroups({ groups: { number, combine, trim }, privacy, rule }) {
  need((combine === "trimmed-mean") === trim > 0 && 2 * trim < number, "groups", "trim belongs to a trimmed-mean, and must be below half of the groups");
  need(rule.kind !== "owner" && privacy.unit !== "paper", "groups", "they need a rule that everybody can recompute, and proven noise");
  need(privacy.expected_clients >= number * privacy.min_clients, "groups", "each needs min_clients");
}

/** @param {any} task */
function checkWeights({ weights, metrics, privacy, rule, model }) {
  need(privacy.unit === "client" && rule.kind !== "owner", "weights", "they need the unit 'client', and a rule that everybody can recompute");
  const square = (/** @type {string} */ text) => Fraction.of(text).times(Fraction.of(text));
  const taken = square(weights.share).plus(square(metrics?.share ?? "0"));
  need(whole(1).minus(taken).num > 0n, "weights", "they and metrics leave nothing of the clipping norm");
  const step = Fraction.of(privacy.clipping_norm).times(Fraction.of(weights.share)).times(whole(1n << BigInt(model.scale_bits)));
  need(step.num >= step.den, "weights", "they are less than one integer step");
}
