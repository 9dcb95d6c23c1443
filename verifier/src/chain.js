/** Blocks, one after the other: who made them, what they hold, and the roots that they must state. */
import { concat, merkle, sha256, utf8 } from "./bytes.js";
import { checkBinding, completeRounds, KINDS } from "./admission.js";
import { beginBlock, due, endBlock } from "./block_end.js";
import { checkRoots, verifyChain } from "./certificates.js";
import { dataHash, validatorsHash, votesOf } from "./comet.js";
import { observe } from "./committee.js";
import { core } from "./core.js";
import { BlobTrouble, InvalidBlock, InvalidInput, NotCheckedHere, Rejected, require, sentenceOf, under } from "./errors.js";
import { Model, ModelOverflow } from "./model.js";
import { Openings } from "./openings.js";
import { headerHash, State, u64 } from "./state.js";

const RULE_VERSION = 1;
const COMETBFT = 1;
const INSECURE_CA = "test certificate authority";
const INSECURE_KEYS = "development proof keys";
export const TEST_MATERIAL = {
  [INSECURE_CA]: "This is a TEST board: its certificates vouch for nobody.",
  [INSECURE_KEYS]: "This is a TEST board: whoever made its proof keys could forge proofs.",
};
const INSECURE_ORIGIN = "insecure development setup";
const MAX_POSTINGS = 65_535;

/** @param {any} genesis @returns {string[]} */
export const flawsOf = (genesis) => genesis.insecure.split(", ").filter(Boolean);

/** @param {unknown} condition @param {string} reason */
function demand(condition, reason) {
  if (!condition) throw new InvalidInput(`The genesis cannot be used: ${reason}.`);
}

/** Refuses a genesis that no board can run with (docs/board.md). @param {any} genesis */
function checkGenesis(genesis) {
  demand(genesis.version === 1, `its version is ${genesis.version} instead of 1`);
  checkRoots(genesis.roots);
  for (const chain of genesis.holders) verifyChain(chain, genesis.roots, "storage", genesis.time);
  const { validators, limits } = genesis;
  demand(genesis.quorum >= 1 && genesis.quorum <= genesis.holders.length, "its quorum of storage holders cannot be reached");
  demand(validators.length && validators.every((/** @type {any} */ one) => one.power > 0), "it needs validators, each with power");
  demand(new Set(validators.map((/** @type {any} */ one) => one.key)).size === validators.length, "a validator stands in it twice");
  demand(
    genesis.bundle_size >= 1 && genesis.bundle_size <= 16 && genesis.bundle_wait >= 1,
    "a bundle has 1 to 16 tasks, and leftovers wait at least one block");
  demand(genesis.classes.length > 0, "it needs a size class");
  for (const size of genesis.classes) {
    demand(
      size.max_length >= 1 && size.max_length <= 1 << 27 && size.max_posts >= 2 && size.max_posts <= 1 << 14,
      `a size class has 1 to ${1 << 27} parameters and 2 to ${1 << 14} posts`);
    demand(
      Math.min(size.train, size.aggregate, size.count, size.sum, size.model) >= 1 && size.post_from < size.train,
      "every phase of a size class takes at least one block, and posting begins before the end");
  }
  const least = ["root_window", "max_postings", "max_block_bytes", "max_runs", "max_tasks", "max_key_bytes", "max_model_bytes"];
  demand(least.every((name) => limits[name] >= 1), "its limits leave no room");
  demand(limits.max_postings <= MAX_POSTINGS, `a block can encode at most ${MAX_POSTINGS} postings`);
  demand(
    (genesis.transcript === "0".repeat(64)) === flawsOf(genesis).includes(INSECURE_KEYS),
    "it pins the transcript of a ceremony or says that its keys are development keys, one of the two");
  demand(genesis.engine < 2, `its engine ${genesis.engine} is not known`);
  if (genesis.engine === COMETBFT) checkValidators(genesis);
  else {
    const plain = validators.every((/** @type {any} */ one) => !one.chain.length && one.binding === null);
    demand(plain, "certificates of validators go with the engine CometBFT");
  }
}

/** @param {any} genesis */
function checkValidators(genesis) {
  const { validators } = genesis;
  const subjects = new Set();
  for (const validator of validators) {
    const identity = verifyChain(validator.chain, genesis.roots, "validator", genesis.time);
    checkBinding(genesis, identity, validator);
    subjects.add(identity.subject);
  }
  demand(subjects.size === validators.length, "two of its validators are the same");
  demand(genesis.holders.length === validators.length, "each validator runs one storage holder, in its place");
  const power = validators.reduce((/** @type {bigint} */ sum, /** @type {any} */ one) => sum + BigInt(one.power), 0n);
  demand(power <= 1n << 40n, `its validators have more power than ${1n << 40n}`);
  const faulty = Math.floor((validators.length - 1) / 3);
  demand(genesis.quorum > faulty, `a blob needs receipts of more than ${faulty} holders, since so many validators may be faulty`);
}

/** A board that is followed from its genesis. */
export class Chain {
  /**
   * @param {Uint8Array} genesis @param {Uint8Array} registration @param {Uint8Array} submission The keys.
   * @param {import("./openings.js").Attachments} attachments
   */
  constructor(genesis, registration, submission, attachments) {
    const read = core.decode("Genesis", genesis);
    this.genesis = read;
    this.hash = sha256(utf8("anofel/1/genesis"), genesis);
    const off = flawsOf(read).filter((flaw) => !Object.hasOwn(TEST_MATERIAL, flaw));
    if (off.length) {
      throw new InvalidInput(`Genesis switches protections off (${off.join(", ")}), so there is nothing to vouch for.`);
    }
    checkGenesis(read);
    if (read.rules !== RULE_VERSION) {
      throw new InvalidInput(`The board follows rules ${read.rules}; this page knows rules ${RULE_VERSION}.`);
    }
    this.registration = new core.ProofVerifier("registration", registration);
    this.submission = new core.ProofVerifier("submission", submission);
    for (const [name, key, pinned] of [
      ["registration", this.registration, read.registration_key], ["submission", this.submission, read.submission_key],
    ]) {
      if (key.id !== pinned) throw new InvalidInput(`The ${name} key is not the one that genesis pins.`);
      demand(
        key.origin !== INSECURE_ORIGIN || flawsOf(read).includes(INSECURE_KEYS),
        `its ${name} key comes from an ${INSECURE_ORIGIN}, and it does not say so`);
    }
    this.state = new State(read, this.hash);
    this.attachments = attachments;
    this.openings = new Openings(attachments);
    /** Keys that their runs did not make: findings of the run, not the end of the board. @type {any[]} */
    this.falseRuns = [];
    /** @type {Map<string, import("./certificates.js").Identity>} */
    this.identities = new Map();
    /** @type {Map<string, {key: any, transcript: string} | string>} */
    this.made = new Map();
  }

  // Who made a block

  /** Follows a block, and returns its postings. @param {any} block @param {(done: number) => void} [onPosting] */
  async follow(block, onPosting = () => {}) {
    const { state } = this;
    const { header, postings } = block;
    const height = state.height + 1;
    const fail = (/** @type {string} */ reason) => {
      throw new InvalidBlock(height, reason);
    };
    if (header.height !== height) fail(`the header says height ${header.height}.`);
    if (header.previous !== state.tip) fail("it does not follow the block before it.");
    if (header.time < state.time) fail("its time is before that of the block before it.");
    this.checkSigned(block, fail);
    beginBlock(state, header.time);
    const opened = postings.map((/** @type {Uint8Array} */ data) => this.open(data));
    const verdicts = await this.confirmTogether(opened);
    for (const [place, posting] of opened.entries()) {
      try {
        await this.admit(posting, verdicts);
      } catch (error) {
        if (!(error instanceof Rejected)) throw error;
        throw new InvalidBlock(height, error.message, place, error.number);
      }
      onPosting(place + 1);
    }
    await this.seal(header, opened, fail);
    return opened;
  }

  /** @param {any} block @param {(reason: string) => void} fail */
  checkSigned({ header, commit, seal, postings }, fail) {
    const { state, genesis } = this;
    const now = state.eraAt(header.height);
    let votes;
    if (genesis.engine === COMETBFT) {
      if (seal === null || commit.length) fail("a board of validators has a seal in each block, and no votes.");
      if (!now.validators.has(seal.proposer)) fail(`validator ${seal.proposer} is not on the board.`);
      const following = state.eraAt(header.height + 1);
      if (seal.next_validators !== validatorsHash([...following.validators.values()])) {
        fail("it names other validators for the next block.");
      }
      votes = votesOf(this.hash, now.validators, header, seal);
    } else {
      if (seal !== null) fail("a board of one node has no seals.");
      const signed = concat([utf8("anofel/1/vote"), this.hash, headerHash(this.hash, header)]);
      votes = commit.map((/** @type {any} */ vote) => ({ ...vote, signed }));
    }
    const seen = new Set();
    let power = 0n;
    for (const { validator, signed, signature } of votes) {
      const known = now.validators.get(validator);
      if (seen.has(validator) || !known) fail(`it has an unknown or repeated vote of validator ${validator}.`);
      seen.add(validator);
      try {
        core.verifyMessageKey(known.key, signed, signature);
      } catch {
        fail(`the signature of validator ${validator} is not valid.`);
      }
      power += BigInt(known.power);
    }
    if (3n * power <= 2n * now.power) fail(`validators with ${power} of ${now.power} votes signed it.`);
    if (seal !== null && dataHash(postings) !== seal.data) fail("the validators signed other postings.");
  }

  // Postings

  /** Decodes a posting; what is wrong with it is thrown when its turn comes. @param {Uint8Array} data */
  open(data) {
    const id = sha256(utf8("anofel/1/posting-id"), data);
    try {
      const most = Object.values(KINDS).find((kind) => kind.number === data[1])?.most ??
        Math.max(...Object.values(KINDS).map((kind) => kind.most));
      require(data.length <= most, "posting-too-long", `It has ${data.length} bytes of at most ${most}.`);
      const read = core.decodePosting(data);
      const signed = concat([utf8("anofel/1/posting"), this.hash, data.subarray(0, read.signedLength)]);
      return { id, size: data.length, ...read, signed, wrong: null };
    } catch (error) {
      const wrong = error instanceof Rejected ? error : new Rejected("malformed-posting", sentenceOf(error));
      return { id, size: data.length, wrong };
    }
  }

  /** @param {any} posting */
  checkRoom(posting) {
    const { state, genesis } = this;
    require(state.numPostings < genesis.limits.max_postings, "block-full");
    require(state.numBytes + posting.size <= genesis.limits.max_block_bytes, "block-full");
  }

  /** Establishes who signed a posting. @param {any} posting */
  authenticate(posting) {
    if (posting.wrong) throw posting.wrong;
    if (posting.known?.time === this.state.time) return posting.known.author;
    const author = typeof posting.author === "string" ? this.client(posting) : this.holder(posting);
    posting.known = { time: this.state.time, author };
    return author;
  }

  /** @param {any} posting */
  client({ author, signed, signature }) {
    try {
      core.verifyMessageKey(author, signed, signature);
    } catch {
      throw new Rejected("bad-signature");
    }
    return { key: author };
  }

  /** @param {any} posting */
  holder({ name, author, signed, signature }) {
    let refusal = "";
    for (const purpose of KINDS[name].purposes) {
      let identity;
      try {
        identity = this.identity(author, purpose);
      } catch (error) {
        if (error instanceof NotCheckedHere) throw error;
        refusal ||= sentenceOf(error);
        continue;
      }
      require(identity.signed(signed, signature), "bad-signature");
      return identity;
    }
    throw new Rejected("author-not-certified", refusal);
  }

  /** @param {Uint8Array[]} chain @param {string} purpose */
  identity(chain, purpose) {
    const name = `${chain.map((der) => sha256(der)).join()} ${purpose} ${this.state.time}`;
    let found = this.identities.get(name);
    if (!found) {
      found = verifyChain(chain, this.genesis.roots, purpose, this.state.time);
      if (this.identities.size > 4096) this.identities.clear();
      this.identities.set(name, found);
    }
    return found;
  }

  /** Admits a posting in its turn. @param {any} posting @param {Map<string, Rejected | null>} verdicts */
  async admit(posting, verdicts) {
    const { state } = this;
    if (posting.wrong) throw posting.wrong;
    this.checkRoom(posting);
    const author = this.authenticate(posting);
    const { handler } = KINDS[posting.name];
    const claim = handler.check(state, posting.body, author);
    this.checkReceipts(claim.blobs ?? []);
    await this.confirm(posting, author, claim, verdicts);
    handler.apply(state, posting.body, author, posting.id, claim);
    state.numPostings += 1;
    state.numBytes += posting.size;
  }

  /** @param {any[]} blobs */
  checkReceipts(blobs) {
    for (const blob of blobs) {
      for (const receipt of blob.receipts) this.checkReceipt(blob, receipt);
    }
  }

  /** @param {any} blob @param {any} receipt */
  checkReceipt(blob, receipt) {
    const message = concat([utf8("anofel/1/receipt"), this.hash, blob.sha256, u64(blob.length), u64(receipt.expires)]);
    let refusal = "";
    for (const chain of this.state.holdersAt(receipt.holder)) {
      try {
        if (this.identity(chain, "storage").signed(message, receipt.signature)) return;
        refusal ||= "The signature of a storage holder does not fit the message.";
      } catch (error) {
        if (error instanceof NotCheckedHere) throw error;
        refusal ||= sentenceOf(error);
      }
    }
    throw new Rejected("bad-receipt", refusal);
  }

  // Proofs

  /** Checks the proofs of a block's clients together; a verdict holds for the posting and the state it was made for. @param {any[]} postings */
  async confirmTogether(postings) {
    /** @type {Map<string, Rejected | null>} */
    const verdicts = new Map();
    const claims = [];
    for (const posting of postings) {
      if (posting.wrong || !["Registration", "Submission"].includes(posting.name)) continue;
      try {
        const author = this.authenticate(posting);
        claims.push({ posting, author, claim: KINDS[posting.name].handler.check(this.state, posting.body, author) });
      } catch (error) {
        if (!(error instanceof Rejected)) throw error;
      }
    }
    await this.verifyClients(claims, verdicts);
    return verdicts;
  }

  /** @param {any[]} claims @param {Map<string, Rejected | null>} verdicts */
  async verifyClients(claims, verdicts) {
    for (const one of claims) verdicts.set(keyOf(one), null);
    const registrations = claims.filter(({ claim }) => claim.kind === "registration");
    const submissions = claims.filter(({ claim }) => claim.kind === "submission");
    this.verifyProofs(registrations, this.registration, "bad-registration-proof", verdicts, ({ posting, author }) => {
      const { body } = posting;
      this.registration.addRegistration(
        this.hash, body.epoch, body.certifier_root, body.commitment, body.nullifier, body.tag, author.key, body.proof);
    });
    this.verifyProofs(submissions, this.submission, "bad-submission-proof", verdicts, ({ posting, author, claim }) => {
      const { body } = posting;
      this.submission.addSubmission(
        claim.clientRoot, claim.seats[0].scope, body.nullifier, body.tag, body.type_commitment, author.key, body.proof);
    });
    const good = () => submissions.filter((one) => verdicts.get(keyOf(one)) === null);
    await this.verifyEnvelopes(good(), verdicts);
    await this.verifyBallots(good(), verdicts);
  }

  /** @param {any[]} claims @param {any} verifier @param {string} code @param {Map<string, Rejected | null>} verdicts @param {(claim: any) => void} add */
  verifyProofs(claims, verifier, code, verdicts, add) {
    const added = claims.filter((one) => {
      try {
        add(one);
        return true;
      } catch (error) {
        verdicts.set(keyOf(one), new Rejected(code, sentenceOf(error)));
        return false;
      }
    });
    if (added.length) for (const place of verifier.verify()) verdicts.set(keyOf(added[place]), new Rejected(code));
  }

  /** @param {any[]} claims @param {Map<string, Rejected | null>} verdicts */
  async verifyEnvelopes(claims, verdicts) {
    const envelopes = new core.Envelopes();
    const added = [];
    for (const one of claims) {
      const { posting, author, claim } = one;
      for (const seat of claim.seats) {
        const { envelope, payload } = posting.body.contributions[seat.task.position];
        await this.openings.key(seat.shares);
        const expected = this.openings.codec(seat.task).payloadBytes;
        if (payload.length !== expected) {
          const detail = `The declared payload has ${payload.length} bytes instead of ${expected}.`;
          verdicts.set(keyOf(one), new Rejected("bad-envelope", detail));
          continue;
        }
        envelopes.add(seat.postOf({ ...posting.body, messageKey: author.key }), envelope);
        added.push(one);
      }
    }
    for (const [place, sentence] of envelopes.refused()) {
      const key = keyOf(added[place]);
      verdicts.set(key, verdicts.get(key) ?? new Rejected("bad-envelope", sentence));
    }
    envelopes.free();
  }

  /** @param {any[]} claims @param {Map<string, Rejected | null>} verdicts */
  async verifyBallots(claims, verdicts) {
    const ballots = new core.Ballots();
    const added = [];
    for (const one of claims) {
      const { body } = one.posting;
      try {
        for (const seat of one.claim.seats) {
          const key = await this.openings.key(seat.shares);
          const types = seat.task.facts.types;
          ballots.addCommittee(key.keyId, key.countKey, types ? Uint32Array.from(types) : undefined);
        }
        ballots.add(
          this.hash, one.claim.seats[0].scope, body.nullifier, body.tag, one.author.key, body.type_commitment, body.ballot);
        added.push(one);
      } catch (error) {
        if (error instanceof BlobTrouble) throw error;
        verdicts.set(keyOf(one), new Rejected("bad-ballot", sentenceOf(error)));
      }
    }
    for (const [place, sentence] of ballots.refused()) {
      verdicts.set(keyOf(added[place]), new Rejected("bad-ballot", sentence));
    }
    ballots.free();
  }

  /** @param {any} posting @param {any} author @param {any} claim @param {Map<string, Rejected | null>} verdicts */
  async confirm(posting, author, claim, verdicts) {
    const { body } = posting;
    const { openings } = this;
    if (claim.kind === "registration" || claim.kind === "submission") {
      const one = { posting, author, claim };
      if (!verdicts.has(keyOf(one))) await this.verifyClients([one], verdicts);
      const verdict = verdicts.get(keyOf(one));
      if (verdict) throw verdict;
    } else if (claim.kind === "possession") {
      await under("bad-possession", () => core.verifyPossession(body.key, this.hash, author.subject, body.possession));
    } else if (claim.kind === "key") {
      await under("key-refused-by-board", () => this.checkKey(body, claim.run));
      await this.checkMade(body, claim.run);
    } else if (claim.kind === "model") await this.checkModel(body.model.sha256, claim.facts);
    else if (claim.kind === "sum") await under("sum-malformed", () => openings.checkSums(claim.seat, body.groups));
    else if (claim.kind === "count") {
      await under("bad-count-share", () => openings.checkCountShares(claim.seat, body.member, body.shares));
    } else if (claim.kind === "sumShare") {
      const names = body.shares.map((/** @type {any} */ blob) => blob.sha256);
      await under("bad-sum-share", () => openings.checkSumShares(claim.seat, body.member, names));
    }
  }

  /** @param {any} body @param {any} run */
  async checkKey(body, run) {
    const key = await this.openings.key({ sharesId: body.shares_id });
    if (key.keyId !== body.key_id || key.sharesId !== body.shares_id) {
      throw new InvalidInput("The key has other names than the posting states.");
    }
    const shape = key.members === run.run.members.length && key.threshold === run.run.threshold;
    if (!shape || key.epoch !== run.shareEpoch) throw new InvalidInput("The key is for another committee than the run's.");
  }

  /** Recomputes what the messages of a run make; a false key is a finding of its run. @param {any} body @param {any} run */
  async checkMade(body, run) {
    const rounds = Array.from({ length: completeRounds(run) }, (_, at) => [...run.posted.get(at)].sort(([a], [b]) => a - b));
    const name = sha256(utf8(JSON.stringify([run.runId, run.base, rounds])));
    let made = this.made.get(name);
    if (made === undefined) {
      try {
        const bodies = [];
        for (const messages of rounds) {
          /** @type {Map<number, Uint8Array>} */
          const read = new Map();
          for (const [sender, blob] of messages) read.set(sender, await this.attachments.read(blob));
          bodies.push(read);
        }
        const old = run.base === null ? null : await this.openings.key({ sharesId: run.base });
        made = observe(this.hash, run.runId, run.run, bodies, old);
      } catch (error) {
        if (error instanceof BlobTrouble || error instanceof NotCheckedHere) throw error;
        made = sentenceOf(error);
      }
      this.made.set(name, made);
    }
    let refusal = null;
    if (typeof made === "string") refusal = made;
    else if (made.key.sharesId !== body.shares_id) refusal = "The messages of the run make another key.";
    else if (made.transcript !== body.transcript) refusal = "The messages of the run have another transcript.";
    if (refusal !== null) this.falseRuns.push({ runId: run.runId, member: body.member, refusal });
  }

  /** @param {string} sha256 @param {any} facts */
  async checkModel(sha256, facts) {
    const data = await this.attachments.read(sha256);
    let model;
    try {
      model = Model.read(data);
    } catch (error) {
      throw new Rejected(error instanceof ModelOverflow ? "model-too-large" : "model-malformed", sentenceOf(error));
    }
    require(model.size === facts.parameters, "model-malformed", "It has another number of parameters.");
    require(model.scaleBits === facts.scaleBits, "model-malformed", "It has another scale.");
    const carries = model.companions === facts.companions;
    require(carries, "model-malformed", "It does not carry the vectors that the task's rule keeps.");
  }

  // The end of a block

  /** @param {any} header @param {any[]} postings @param {(reason: string) => void} fail */
  async seal(header, postings, fail) {
    const { state, openings } = this;
    const results = { counts: new Map(), sums: new Map() };
    for (const seat of due(state, "count")) results.counts.set(seat.task.taskId, openings.openCounts(seat));
    for (const seat of due(state, "sum")) results.sums.set(seat.task.taskId, await openings.openSum(seat));
    endBlock(state, results);
    const ours = /** @type {Record<string, any>} */ ({
      postings: merkle(postings.map((posting) => posting.id)), ...state.roots(), epoch: state.epoch, rules: RULE_VERSION,
    });
    for (const name of ["postings", "certifiers", "clients", "nullifiers", "committees", "tasks", "bundles", "epoch", "rules"]) {
      if (ours[name] !== header[name]) fail(`its header states another root of ${name}.`);
    }
    if (state.time !== header.time) fail("its header states another time.");
    state.tip = headerHash(this.hash, header);
  }
}

/** @param {any} one */
const keyOf = ({ posting, claim }) => posting.id + (claim.clientRoot ?? "");

