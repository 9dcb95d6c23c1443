/** Checks a board from its genesis: what is wrong, in the words of anofel audit, and what was found. */
import { Chain, flawsOf, TEST_MATERIAL } from "./chain.js";
import { core } from "./core.js";
import { BlobTrouble, InvalidBlock, NotCheckedHere, Rejected, sentenceOf, SourceTrouble } from "./errors.js";
import { recompute } from "./openings.js";
import { Crew } from "./payloads.js";
import { OUTCOMES } from "./state.js";

/** @typedef {{height: number, posting: number | null, rule: string, reason: string}} Finding */
/**
 * @typedef {object} Source
 * @property {Uint8Array} genesis
 * @property {Uint8Array} registration
 * @property {Uint8Array} submission
 * @property {number} height How many blocks there are.
 * @property {() => AsyncIterable<Uint8Array>} blocks
 * @property {(sha256: string) => Promise<Uint8Array>} read A blob; whatever it returns has the hash.
 */

/** What is checked here, and what is not: the page shows both, and docs/verifier.md has the same words. */
export const CHECKED = [
  "Who made each block: the validators' signatures (embedded votes, CometBFT's seals), their changes, and the chain of hashes.",
  "Every posting: canonical encoding, length, signature, certificates, receipts of storage, and the rules of its kind.",
  "Tasks: that every setting is known, within its bounds, and fits the others, the schema, noise, groups and size classes.",
  "Every registration and submission proof, envelope and ballot, in batches.",
  "Certifiers' proofs of possession; the keys of lattice committees, recomputed from the messages of their runs and handovers.",
  "Sums: each added again from the accepted payloads, contribution proofs included, as long as the payloads are there.",
  "Shares of counts and sums, the opened counts and sums, and the model that the task's rule makes of them.",
  "That every blob that a board keeps for ever is there, and has the hash that names it.",
  "All roots of every header, from a state that is built here: clients, nullifiers, committees, tasks, bundles.",
];
export const NOT_CHECKED = [
  "Whether the board has more blocks than were given here: compare the last block and its time with what others see.",
  "ε in the ledger entries of owners.",
  "Paillier committees: the check of such a board ends at its first Paillier key.",
  "The ceremony of the proof keys, if genesis pins one.",
  "Authorities with name constraints: the check ends there. Finer points of the profile of certificates.",
];

export class Audit {
  /** @param {Source} source @param {Crew} crew Who checks payloads. */
  constructor(source, crew = new Crew()) {
    this.source = source;
    this.crew = crew;
    const read = kept(source.read);
    this.read = read;
    this.chain = new Chain(source.genesis, source.registration, source.submission, { read });
    /** @type {Finding[]} */
    this.findings = [];
    /** What was not checked, and why: the verdict then says less. @type {string[]} */
    this.open = [];
    this.notes = flawsOf(this.chain.genesis).map((flaw) => /** @type {Record<string, string>} */ (TEST_MATERIAL)[flaw]);
    if (!flawsOf(this.chain.genesis).includes("development proof keys")) {
      this.open.push("The ceremony of the proof keys was not checked here.");
    }
    this.counts = { blocks: 0, postings: 0, registrations: 0, submissions: 0, sums: 0, pruned: 0, ledger: 0 };
    /** @type {any[]} */
    this.iterations = [];
    /** @type {Map<string, any>} */
    this.seen = new Map();
    /** Where each posting of a client stands, by its nullifier. @type {Map<string, any>} */
    this.places = new Map();
    /** Blobs that are known to be there. @type {Set<string>} */
    this.blobs = new Set();
    /** Payloads that are not there. @type {{until: number, reason: string, height: number}[]} */
    this.missing = [];
  }

  /**
   * Follows all blocks. Resolves when they ended, or at the first block that does not follow.
   * @param {(progress: {height: number, of: number, postings: number}) => void} onProgress
   */
  async run(onProgress) {
    try {
      for await (const data of this.source.blocks()) {
        await this.take(data);
        onProgress({ height: this.counts.blocks, of: this.source.height, postings: this.counts.postings });
      }
    } catch (error) {
      this.end(error);
    }
    return this.report();
  }

  /** @param {Uint8Array} data */
  async take(data) {
    const { chain } = this;
    const height = chain.state.height + 1;
    let block;
    try {
      block = core.decode("Block", data);
    } catch (error) {
      throw new InvalidBlock(height, sentenceOf(error), null, "store");
    }
    const postings = await chain.follow(block);
    this.counts.blocks = height;
    this.counts.postings += postings.length;
    for (const [place, { name, body }] of postings.entries()) {
      if (name === "Registration") this.counts.registrations += 1;
      if (name === "Submission") this.counts.submissions += 1;
      if (name === "PrivacyLedger") this.counts.ledger += 1;
      if (name === "Registration" || name === "Submission") {
        const { bundle, iteration } = body;
        this.places.set(body.nullifier, { height, place, bundle, iteration });
      }
      await this.checkBlobs(height, place, name, body);
    }
    for (const { runId, refusal } of chain.falseRuns.splice(0)) {
      const place = postings.findIndex((/** @type {any} */ one) => one.name === "CommitteeKeyVote" && one.body.run_id === runId);
      const rejected = new Rejected("key-not-of-its-run");
      const rule = rejected.message.replace(/^Refused by rule [^:]*: /, "");
      this.add(height, place, rejected.number, `Posting ${place} of block ${height}: ${rule} ${refusal}`);
    }
    await this.checkPositions(height);
  }

  /** What must be kept for ever must be there. @param {number} height @param {number} place @param {string} name @param {any} body */
  async checkBlobs(height, place, name, body) {
    for (const { sha256 } of keptForEver(name, body)) {
      if (this.blobs.has(sha256)) continue;
      this.blobs.add(sha256);
      try {
        await this.read(sha256);
      } catch (error) {
        if (!(error instanceof BlobTrouble)) throw error;
        this.add(height, place, "blob", `Posting ${place} of block ${height}: ${error.message}`);
      }
    }
  }

  /** Adds again what committees agreed on in this block, and writes down outcomes. @param {number} height */
  async checkPositions(height) {
    const { chain } = this;
    for (const bundle of chain.state.bundles) {
      if (!bundle.current) continue;
      for (const seat of chain.state.seats(bundle)) {
        const name = `${bundle.number}/${bundle.current.number}/${seat.task.taskId}`;
        const before = this.seen.get(name) ?? { added: false, over: false };
        if (seat.position.agreed && !before.added) await this.recompute(height, seat);
        const over = OUTCOMES.includes(seat.position.progress);
        if (over && !before.over && seat.position.progress !== "absent") this.addOutcome(height, seat);
        this.seen.set(name, { added: before.added || seat.position.agreed !== null, over });
      }
    }
  }

  /** @param {number} height @param {import("./state.js").Seat} seat */
  async recompute(height, seat) {
    const { missing, wrong } = await recompute(this.chain.openings, this.crew, seat);
    if (missing !== null) {
      const size = this.chain.state.classOf(seat.bundle);
      const { grace } = this.chain.genesis.limits;
      const until = seat.iteration.closeBy + size.aggregate + size.count + size.sum + grace;
      this.missing.push({ until, reason: `Block ${height}: ${missing}`, height });
    } else if (wrong !== null) this.add(height, null, "aggregate", `Block ${height}: ${wrong}`);
    else this.counts.sums += 1;
  }

  /** @param {number} height @param {import("./state.js").Seat} seat */
  addOutcome(height, { task, bundle, iteration, position }) {
    this.iterations.push({
      task: task.facts.name, bundle: bundle.number, iteration: iteration.number, outcome: position.progress,
      posts: iteration.submissions.size, counts: position.counts, height,
      excluded: position.agreed ? position.agreed.excluded.map((/** @type {any} */ [name]) => name) : null,
    });
  }

  /** @param {number} height @param {number | null} posting @param {string} rule @param {string} reason */
  add(height, posting, rule, reason) {
    if (this.findings.length < 1000) this.findings.push({ height, posting, rule, reason });
  }

  /** What ended the check. @param {unknown} error */
  end(error) {
    const height = this.chain.state.height;
    if (error instanceof InvalidBlock) this.add(error.height, error.posting, error.rule, error.message);
    else if (error instanceof BlobTrouble) this.add(height, null, "blob", `Block ${height}: ${error.message}`);
    else if (error instanceof NotCheckedHere) this.open.push(`The check ended in block ${height}: ${error.message}`);
    else if (error instanceof SourceTrouble) this.open.push(`The check ended after block ${this.counts.blocks}: ${error.message}`);
    else this.add(height, null, "block", `Block ${height}: ${sentenceOf(error)}`);
  }

  report() {
    const { chain, counts, findings, open, notes, iterations } = this;
    const more = [];
    for (const { until, reason, height } of this.missing.splice(0)) {
      if (until < counts.blocks && !reason.includes("damaged")) counts.pruned += 1;
      else this.add(height, null, "blob", reason);
    }
    findings.sort((one, other) => one.height - other.height);
    if (counts.pruned) {
      more.push(
        `${counts.pruned} sums could not be added again, because payloads are not there; t members of each committee ` +
        "stated them equally.");
    }
    if (counts.ledger) more.push(`ε of ${counts.ledger} ledger entries was not checked here.`);
    return {
      ok: !findings.length && counts.blocks === this.source.height && !open.some((one) => one.startsWith("The check ended")),
      board: chain.genesis.name, genesis: chain.hash, height: counts.blocks, of: this.source.height, tip: chain.state.tip,
      time: chain.state.time, findings, open, notes: [...notes, ...more], counts, iterations,
      clients: chain.state.clients.size,
    };
  }
}

/** The blobs of a posting that are kept for ever (docs/board-rules.md). @param {string} name @param {any} body @returns {any[]} */
function keptForEver(name, body) {
  if (name === "DkgRound") return [body.body];
  if (name === "CommitteeKeyVote") return [body.key];
  if (name === "Model") return [body.model];
  if (name === "Aggregate") return body.groups.map((/** @type {any} */ group) => group.sum);
  return name === "SumShare" ? body.shares : [];
}

const KEPT_BYTES = 128 << 20;

/** Reads with the last blobs kept, the oldest go first. @param {(sha256: string) => Promise<Uint8Array>} read */
function kept(read) {
  /** @type {Map<string, Uint8Array>} */
  const blobs = new Map();
  let total = 0;
  return async (/** @type {string} */ name) => {
    const known = blobs.get(name);
    if (known) return known;
    const data = await read(name);
    blobs.set(name, data);
    total += data.length;
    for (const [oldest, { length }] of blobs) {
      if (total <= KEPT_BYTES) break;
      blobs.delete(oldest);
      total -= length;
    }
    return data;
  };
}
