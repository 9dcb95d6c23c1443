/** What the board knows after a block, and the roots of a header over it: src/anofel/board/state.py and roots.py. */
import { digest, merkle, MerkleLog, number, sha256, text, utf8 } from "./bytes.js";
import { agreedDigest, digestOfAgreed } from "./committee.js";
import { core } from "./core.js";

export const NO_HISTORY = "0".repeat(64);
const LEAVING_BLOCKS = 1000;
export const OUTCOMES = ["summed", "too-few", "undecodable", "failed", "absent"];

/** @param {any} record @param {string} postingId */
export function touch(record, postingId) {
  record.history = sha256(record.history, postingId);
}

/** How many storage holders must keep a blob, where so many validators run one each. @param {number} validators */
export const quorumOf = (validators) => validators - Math.floor((validators - 1) / 3);

/** The validators between two changes. */
export class Era {
  /** @param {any} fields */
  constructor(fields) {
    this.since = fields.since;
    /** @type {Map<number, any>} */
    this.validators = fields.validators;
    /** @type {Map<number, Uint8Array[]>} */
    this.holders = fields.holders;
    this.quorum = fields.quorum;
    /** @type {Map<number, any>} */
    this.addresses = fields.addresses;
  }

  get power() {
    return [...this.validators.values()].reduce((sum, one) => sum + BigInt(one.power), 0n);
  }

  /** @param {any} change */
  changed(change) {
    const tables = [this.validators, this.holders, this.addresses].map((table) => new Map(table));
    for (const table of tables) table.delete(change.place);
    const [validators, holders, addresses] = tables;
    if (change.entry) {
      const { validator, holder, name, peer, url } = change.entry;
      validators.set(change.place, validator);
      holders.set(change.place, holder);
      addresses.set(change.place, { name, peer, url });
    }
    const sorted = (/** @type {Map<number, any>} */ table) => new Map([...table].sort(([a], [b]) => a - b));
    return new Era({
      since: change.since, validators: sorted(validators), holders: sorted(holders), quorum: quorumOf(validators.size),
      addresses,
    });
  }

  digest() {
    const entries = [...this.validators].map(([place, one]) => {
      const address = this.addresses.get(place);
      const named = address ? digest("address", [text(address.name), text(address.peer), text(address.url)]) : null;
      return digest("validator", [place, one.key, one.power, one.binding, named, ...one.chain]);
    });
    const holders = [...this.holders].map(([place, chain]) => digest("holder", [place, ...chain]));
    return digest("era", [this.since, this.quorum, digest("places", entries), digest("holders", holders)]);
  }
}

export class State {
  /** @param {any} genesis @param {string} hash */
  constructor(genesis, hash) {
    this.genesis = genesis;
    this.genesisHash = hash;
    this.eras = [new Era({
      since: 0, validators: new Map(genesis.validators.entries()), holders: new Map(genesis.holders.entries()),
      quorum: genesis.quorum, addresses: new Map(),
    })];
    /** @type {Map<string, {change: any, proposer: number, signed: number[]}>} */
    this.open = new Map();
    this.height = 0;
    /** @type {number} */
    this.time = genesis.time;
    this.tip = hash;
    this.numPostings = 0;
    this.numBytes = 0;
    this.epoch = 0;
    /** @type {Map<string, any>} */
    this.certifiers = new Map();
    this.certifierTree = new core.CertifierTree();
    /** @type {string[]} */
    this.certifierRoots = [this.certifierTree.root()];
    this.clients = new core.ClientTree();
    /** @type {string[]} */
    this.newcomers = [];
    /** @type {Set<string>} */
    this.registered = new Set();
    this.nullifiers = new MerkleLog();
    /** @type {Map<string, any>} */
    this.runs = new Map();
    /** @type {Map<string, any>} */
    this.committees = new Map();
    /** @type {Map<string, any>} */
    this.tasks = new Map();
    /** @type {any[]} */
    this.bundles = [];
  }

  // Validators

  /** @param {number} height */
  eraAt(height) {
    return /** @type {Era} */ (this.eras.findLast((era) => era.since <= height));
  }

  get lastEra() {
    return this.eras[this.eras.length - 1];
  }

  receiptEras() {
    const begun = this.eras.filter((era) => era.since <= this.height);
    const isNew = this.height < begun[begun.length - 1].since + LEAVING_BLOCKS;
    return isNew ? begun.slice(-2).reverse() : begun.slice(-1);
  }

  /** The certificates of who may sign receipts for a place. @param {number} place @returns {Uint8Array[][]} */
  holdersAt(place) {
    const chains = this.receiptEras().flatMap((era) => {
      const chain = era.holders.get(place);
      return chain ? [chain] : [];
    });
    const names = chains.map((chain) => chain.map((der) => sha256(der)).join());
    return chains.filter((_, at) => names.indexOf(names[at]) === at);
  }

  quorum() {
    return Math.min(...this.receiptEras().map((era) => era.quorum));
  }

  /** @param {string} name @param {number} place */
  sign(name, place) {
    const one = /** @type {any} */ (this.open.get(name));
    one.signed = [...one.signed, place];
    const present = this.lastEra;
    const power = one.signed.reduce(
      (/** @type {bigint} */ sum, /** @type {number} */ at) => sum + BigInt(present.validators.get(at).power), 0n);
    if (3n * power > 2n * present.power) {
      this.eras.push(present.changed(one.change));
      this.open.clear();
    }
  }

  // What follows from the records

  /** @param {any} bundle */
  classOf(bundle) {
    return this.genesis.classes[bundle.sizeClass];
  }

  /** @param {any} task */
  committeeOf(task) {
    return this.committees.get(task.announcement.key_id);
  }

  /** @param {any} bundle @returns {any[]} */
  liveTasks(bundle) {
    return bundle.tasks.map((/** @type {string} */ id) => this.tasks.get(id)).filter((/** @type {any} */ task) => !task.ended);
  }

  liveBundles() {
    return this.bundles.filter((bundle) => bundle.phase !== "ended");
  }

  /** The seat of a task: where it, its committee and its bundle stand in an iteration. @param {string} taskId */
  seat(taskId) {
    const task = this.tasks.get(taskId);
    const bundle = task && task.bundle !== null ? this.bundles[task.bundle] : null;
    return bundle?.current ? new Seat(this, bundle, task) : null;
  }

  /** @param {any} bundle @returns {Seat[]} */
  seats(bundle) {
    return bundle.tasks.map((/** @type {string} */ id) => this.seat(id));
  }

  // Roots

  roots() {
    return {
      certifiers: this.certifiersRoot(),
      clients: digest("clients", [this.epoch, this.clients.size, this.clients.root()]),
      nullifiers: this.nullifiers.root(),
      committees: this.committeesRoot(),
      tasks: rootOf(this.tasks.values(), taskDigest, (task) => task.ended && this.bundles[task.bundle]?.phase === "ended"),
      bundles: rootOf(this.bundles, bundleDigest, (bundle) => bundle.phase === "ended"),
    };
  }

  certifiersRoot() {
    const keys = rootOf(this.certifiers.values(), (/** @type {any} */ one) =>
      digest("certifier", [one.key, one.holder, one.position, Number(one.inForce)]));
    return digest("certifiers", [this.certifierTree.root(), digest("window", this.certifierRoots), keys]);
  }

  committeesRoot() {
    const runs = rootOf(this.runs.values(), (/** @type {any} */ run) =>
      digest("run", [run.runId, run.openedBy, run.openedAt, Number(run.done), run.history]));
    const made = rootOf(this.committees.values(), committeeDigest);
    const eras = digest("eras", this.eras.map((era) => era.digest()));
    const opened = [...this.open].flatMap(([name, one]) => [name, digest("signed", one.signed)]);
    return digest("committees", [runs, made, digest("validators", [eras, ...opened])]);
  }
}

/**
 * The root over records; what rests since it was hashed with the same history is not hashed again.
 * @param {Iterable<any>} records @param {(record: any) => string} hash @param {(record: any) => boolean} [rests]
 */
function rootOf(records, hash, rests = () => false) {
  return merkle([...records].map((record) => {
    if (record.kept?.history === record.history && rests(record)) return record.kept.digest;
    const made = hash(record);
    record.kept = rests(record) ? { history: record.history, digest: made } : null;
    return made;
  }));
}

/** @param {any} shares */
const sharesDigest = (shares) => digest("shares", shares === null ? [null] : [
  shares.runId, shares.sharesId, shares.threshold, shares.shareEpoch, ...shares.members,
]);

/** @param {any} one */
const committeeDigest = (one) => digest("committee", [
  one.keyId, one.scheme, one.task, sharesDigest(one.current), sharesDigest(one.pending), ...one.former.map(sharesDigest),
]);

/** @param {any} task */
const taskDigest = (task) => digest("task", [
  task.taskId, task.owner, task.sizeClass, task.announcedAt, task.bundle, task.position, task.model,
  task.modelIteration, task.nextModel, Number(task.summed), task.releases, Number(task.ended), task.history,
  ...task.outcomes.map((/** @type {any} */ one) => digest("outcome", [
    one.iteration, text(one.progress), one.numClients, one.posts, one.excluded, one.count, one.opened, one.releases,
    one.openedAt, one.closedAt, one.overAt, ...one.reported,
  ])),
]);

/** @param {any} position */
const positionDigest = (position) => digest("position", [
  position.taskId, text(position.progress), position.total,
  position.counts === null ? null : digest("counts", position.counts),
  position.agreed && digest("groups", position.agreed.groups.flatMap(
    (/** @type {any} */ group) => [group.setDigest, group.numPosts, group.sumDigest])),
  position.shares && position.shares.sharesId, position.history,
]);

/** @param {any} one */
const iterationDigest = (one) => digest("iteration", [
  one.number, one.openedAt, one.closeBy, one.epoch, one.numClients, one.clientRoot, one.closedAt, one.aggregateBy,
  one.countBy, one.sumBy, one.history, ...one.positions.map(positionDigest),
]);

/** @param {any} bundle */
const bundleDigest = (bundle) => digest("bundle", [
  bundle.number, bundle.sizeClass, Number(bundle.earlyEnd), text(bundle.phase), bundle.modelBy, bundle.iterations,
  bundle.endedAt, NO_HISTORY, ...bundle.tasks, bundle.current && iterationDigest(bundle.current),
]);

/** Where a task, its committee and its bundle stand in an iteration. */
export class Seat {
  /** @param {State} state @param {any} bundle @param {any} task */
  constructor(state, bundle, task) {
    this.state = state;
    this.bundle = bundle;
    this.task = task;
    this.iteration = bundle.current;
    this.position = bundle.current.positions[task.position];
    this.committee = state.committeeOf(task);
    this.shares = this.position.shares ?? this.committee.current;
    this.scope = core.scope(state.genesisHash, BigInt(bundle.number), BigInt(bundle.current.number));
  }

  get limits() {
    return this.task.facts.limits;
  }

  /** The encrypted bit of an accepted submission for this committee. @param {any} post @returns {Uint8Array} */
  bitOf(post) {
    return post.ballot.subarray(64 * this.task.position, 64 * (this.task.position + 1));
  }

  /** Deals posts, by their nullifiers, to the groups of the task (docs/groups.md). @param {string[]} names @returns {string[][]} */
  groupsOf(names) {
    const wanted = this.task.facts.groupsNumber;
    const sorted = [...names].sort();
    if (wanted === 1) return [sorted];
    const place = new Map(sorted.map((name) =>
      [name, sha256(utf8("anofel/1/board/group"), this.iteration.closeHash, name)]));
    const order = sorted.sort((one, other) =>
      /** @type {string} */ (place.get(one)) < /** @type {string} */ (place.get(other)) ? -1 : 1);
    const groups = Math.max(1, Math.min(wanted, Math.floor(order.length / this.limits.minClients)));
    const cut = (/** @type {number} */ at) => Math.floor((at * order.length) / groups);
    return Array.from({ length: groups }, (_, at) => order.slice(cut(at), cut(at + 1)));
  }

  /** The digest of each agreed group. @returns {string[]} */
  agreed() {
    return this.position.agreed.groups.map((/** @type {any} */ group) => agreedDigest({
      genesis: this.state.genesisHash, task: this.task.taskId, scope: this.scope, keyId: this.committee.keyId,
      closeHash: this.iteration.closeHash, setDigest: group.setDigest, sumDigest: group.sumDigest,
      iteration: this.iteration.number, position: this.task.position, numPosts: group.numPosts,
      minClients: this.limits.minClients,
    }));
  }

  agreedDigest() {
    return digestOfAgreed(this.agreed());
  }

  /** The places of the groups whose count reached min_clients. @returns {number[]} */
  opened() {
    const counts = this.position.counts ?? [];
    return counts.flatMap((/** @type {number} */ count, /** @type {number} */ at) => (count >= this.limits.minClients ? [at] : []));
  }

  /** What a post is bound to. @param {any} post @returns {any[]} */
  fieldsOf(post) {
    return [
      this.state.genesisHash, this.task.taskId, BigInt(this.iteration.number), this.committee.keyId, this.task.position,
      this.scope, post.nullifier, post.tag, post.messageKey,
    ];
  }

  /** What a post's ciphertexts are bound to. @param {any} post */
  postOf(post) {
    return new core.Post(...this.fieldsOf(post));
  }
}

/** The name of a header on a board. @param {string} genesis @param {any} header */
export const headerHash = (genesis, header) => sha256(utf8("anofel/1/header"), genesis, core.encode("Header", header));

/** The bytes of a number in what is signed. @param {number | bigint} value */
export const u64 = (value) => number(value, 8);
