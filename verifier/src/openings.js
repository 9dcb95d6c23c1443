/** What committees open: counts, sums, and the model that follows (src/anofel/board/openings.py). */
import { compareBytes, concat, hex, sha256, unhex } from "./bytes.js";
import { CommitteeKey, digestOfSet, NUM_KEYS } from "./committee.js";
import { core } from "./core.js";
import { sentenceOf, VerificationError } from "./errors.js";
import { integers, Model, ModelOverflow, nextModel } from "./model.js";
import { codecFields, codecOf } from "./task.js";

const MOST = (1n << 63n) - 1n;

/** @typedef {import("./state.js").Seat} Seat */
/** @typedef {{read(sha256: string): Promise<Uint8Array>}} Attachments */

export class Openings {
  /** @param {Attachments} attachments */
  constructor(attachments) {
    this.attachments = attachments;
    /** @type {Map<string, CommitteeKey>} */
    this.keys = new Map();
    /** @type {Map<string, any>} */
    this.codecs = new Map();
    /** What is open in the closed iterations: by the digest of the agreed set. @type {Map<string, any>} */
    this.counts = new Map();
    /** @type {Map<string, any>} */
    this.sums = new Map();
  }

  /** @param {{sharesId: string}} shares @returns {Promise<CommitteeKey>} */
  async key(shares) {
    let found = this.keys.get(shares.sharesId);
    if (!found) {
      found = CommitteeKey.read(await this.attachments.read(shares.sharesId));
      this.keys.set(shares.sharesId, found);
    }
    return found;
  }

  /** @param {any} task */
  codec(task) {
    let found = this.codecs.get(task.taskId);
    if (!found) this.codecs.set(task.taskId, (found = codecOf(task.facts.limits)));
    return found;
  }

  /** Checks that the blobs of an aggregate are sums over its groups. @param {Seat} seat @param {any[]} groups */
  async checkSums(seat, groups) {
    for (const group of groups) {
      const data = await this.attachments.read(group.sum.sha256);
      const sum = core.Sum.read(this.codec(seat.task), data.subarray(32));
      try {
        if (hex(data.subarray(0, 32)) !== group.set_digest || sum.numPosts !== group.num_posts) {
          throw new VerificationError("The sum is over another set than the posting states.");
        }
        if (compareBytes(sum.toBytes(), data.subarray(32)) !== 0) {
          throw new VerificationError("The sum is not in its canonical encoding.");
        }
      } finally {
        sum.free();
      }
    }
  }

  /** The groups of an agreed position, with what encrypts their counts. @param {Seat} seat */
  countedGroups(seat) {
    const out = new Set(seat.position.agreed.excluded.map((/** @type {any} */ [name]) => name));
    const { submissions } = seat.iteration;
    const dealt = seat.groupsOf([...submissions.keys()].filter((name) => !out.has(name)));
    return seat.agreed().map((agreed, at) => ({ agreed, names: dealt[at], ...seat.position.agreed.groups[at] }));
  }

  /** @param {Seat} seat @param {any} group */
  count(seat, group) {
    let found = this.counts.get(group.agreed);
    if (!found) {
      if (digestOfSet(group.names) !== group.setDigest || group.names.length !== group.numPosts) {
        throw new VerificationError("The encrypted count is not that of the agreed set of posts.");
      }
      const posts = group.names.map((/** @type {string} */ name) => seat.iteration.submissions.get(name));
      found = new core.Count(concat(posts.map((/** @type {any} */ post) => seat.bitOf(post))));
      this.counts.set(group.agreed, found);
    }
    return found;
  }

  /** @param {Seat} seat @param {number} member @param {Uint8Array[]} shares */
  async checkCountShares(seat, member, shares) {
    const key = await this.key(seat.shares);
    this.countedGroups(seat).forEach((group, at) => {
      checkMember(key, member);
      if (hex(shares[at].subarray(0, 32)) !== key.countSharesId) {
        throw new VerificationError(`Member ${member} used other than the current shares of the key.`);
      }
      this.count(seat, group).addShare(member, key.countShares[member - 1], group.agreed, shares[at].subarray(32));
    });
  }

  /** The counts that the first t shares in board order open. @param {Seat} seat @returns {number[]} */
  openCounts(seat) {
    const first = seat.position.countShares.slice(0, seat.position.shares.threshold);
    const members = Uint16Array.from(first, (/** @type {any} */ share) => share.member);
    return this.countedGroups(seat).map((group) => this.count(seat, group).open(members, group.numPosts));
  }

  /** The groups whose sums are opened, with their counts. @param {Seat} seat */
  async openedGroups(seat) {
    const groups = this.countedGroups(seat);
    const opened = seat.opened().map((at) => ({ ...groups[at], count: seat.position.counts[at] }));
    for (const group of opened) {
      if (this.sums.has(group.agreed)) continue;
      const data = await this.attachments.read(group.sumDigest);
      this.sums.set(group.agreed, core.Sum.read(this.codec(seat.task), data.subarray(32)));
    }
    return opened;
  }

  /** @param {Seat} seat @param {number} member @param {string[]} shares */
  async checkSumShares(seat, member, shares) {
    const key = await this.key(seat.shares);
    const groups = await this.openedGroups(seat);
    for (const [at, group] of groups.entries()) {
      checkMember(key, member);
      const share = await this.attachments.read(shares[at]);
      if (hex(share.subarray(0, 32)) !== key.sharesId) {
        throw new VerificationError(`Member ${member} used other than the current shares of the key.`);
      }
      this.sums.get(group.agreed).addShare(key.keys, group.agreed, member, share.subarray(32));
    }
  }

  /** Opens the sums and applies the task's rule; null if nothing can be decoded. @param {Seat} seat */
  async openSum(seat) {
    const key = await this.key(seat.shares);
    const { task, iteration } = seat;
    const first = seat.position.sumShares.slice(0, seat.position.shares.threshold);
    const members = Uint16Array.from(first, (/** @type {any} */ share) => share.member);
    /** @type {[Uint8Array, number][]} */
    const sums = [];
    for (const group of await this.openedGroups(seat)) {
      try {
        const sum = this.sums.get(group.agreed);
        const { genesisHash } = seat.state;
        sums.push([sum.open(key.keys, genesisHash, task.taskId, BigInt(iteration.number), key.keyId, members), group.count]);
      } catch (error) {
        if (/** @type {any} */ (error).kind !== "undecodable") throw error;
      }
    }
    this.forget(seat);
    if (!sums.length) return null;
    const before = Model.read(await this.attachments.read(task.model));
    let made = null;
    if (task.facts.rule.kind !== "owner") {
      try {
        made = nextModel(task.facts, before, sums, iteration.number);
      } catch (error) {
        if (error instanceof ModelOverflow) return null;
        throw error;
      }
    }
    return {
      total: sha256(...sums.map(([total]) => total)),
      nextModel: made && made.digest(),
      count: sums.reduce((sum, [, count]) => sum + count, 0),
      reported: reported(sums.map(([total]) => integers(total.subarray(8 * task.facts.metricsStart)))),
    };
  }

  /** Lets go of what an iteration no longer needs. @param {Seat} seat */
  forget(seat) {
    for (const agreed of seat.agreed()) {
      for (const table of [this.counts, this.sums]) {
        table.get(agreed)?.free();
        table.delete(agreed);
      }
    }
  }
}

/** @param {CommitteeKey} key @param {number} member */
function checkMember(key, member) {
  if (member < 1 || member > key.members) throw new VerificationError(`There is no member ${member} in this committee.`);
}

/** The sums of the metric slots. @param {BigInt64Array[]} slots @returns {bigint[]} */
function reported(slots) {
  return Array.from(slots[0], (_, at) => {
    const sum = slots.reduce((total, values) => total + values[at], 0n);
    return sum > MOST ? MOST : sum < -MOST ? -MOST : sum;
  });
}

/**
 * Adds the payloads of an agreed position again (docs/audit.md). Returns what is wrong, or null; a payload that
 * is not there, which a board prunes in time, is said with `missing`.
 * @param {Openings} openings @param {import("./payloads.js").Crew} crew @param {Seat} seat
 * @returns {Promise<{missing: string | null, wrong: string | null}>}
 */
export async function recompute(openings, crew, seat) {
  const { task, iteration, position } = seat;
  const { keys, members, threshold, sharesId } = await openings.key(seat.shares);
  const setting = {
    name: `${sharesId}/${task.taskId}`, codec: codecFields(task.facts.limits),
    keys: [NUM_KEYS, members, threshold, keys.toBytes()],
  };
  const job = crew.begin(setting, { codec: openings.codec(task), keys });
  try {
    for (const post of iteration.submissions.values()) {
      const { sha256: name, length, envelope } = post.payloads[task.position];
      let payload;
      try {
        payload = await openings.attachments.read(name);
      } catch (error) {
        return { missing: sentenceOf(error), wrong: null };
      }
      if (payload.length !== length) payload = new Uint8Array();
      await job.add(post.nullifier, { fields: seat.fieldsOf(post), envelope, bit: seat.bitOf(post), payload });
    }
    const refused = await job.checked();
    const excluded = position.agreed.excluded.map((/** @type {any} */ [name]) => name);
    let right = JSON.stringify([...refused].sort()) === JSON.stringify(excluded);
    const good = [...iteration.submissions.keys()].filter((name) => !refused.has(name));
    const groups = right ? seat.groupsOf(good) : [];
    for (const [at, group] of groups.entries()) {
      const sum = await job.sum(group);
      right &&= sha256(unhex(digestOfSet(group)), sum) === position.agreed.groups[at].sumDigest;
    }
    const wrong = right ? null
      : `the committee of ${task.facts.name} agreed on a sum that is not the sum of the accepted payloads of ` +
        `iteration ${iteration.number}.`;
    return { missing: null, wrong };
  } finally {
    job.end();
  }
}
