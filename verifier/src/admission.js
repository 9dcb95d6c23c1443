/** The rules of admission, one pair of functions for each kind of posting: src/anofel/board/rules. */
import { concat, sha256, utf8 } from "./bytes.js";
import { subjectOf, verifyChain } from "./certificates.js";
import { checkScheme, digestOfSet, isShape, numSpeakers, ROUNDS } from "./committee.js";
import { core } from "./core.js";
import { InvalidInput, NotCheckedHere, Rejected, require, sentenceOf } from "./errors.js";
import { NO_HISTORY, touch } from "./state.js";
import { checkFits, DoesNotFit, factsOf, readTask, sizeClassOf } from "./task.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {{subject: string, purpose: string, organisation: string} & {key?: string} & any} Author */

const KIB = 1024;
const MAX_AHEAD = 100_000;
const NOTICE = 2;
const COMETBFT = 1;

/** @param {State} state @param {any} blob @param {number | bigint} most */
function checkBlob(state, blob, most) {
  const places = new Set(blob.receipts.map((/** @type {any} */ one) => one.holder));
  const known = [...places].every((place) => state.holdersAt(place).length);
  require(known && places.size === blob.receipts.length && places.size >= state.quorum(), "too-few-receipts");
  require(blob.receipts.every((/** @type {any} */ one) => one.expires >= state.height), "receipt-expired");
  require(blob.length <= most, "blob-too-long", `It has ${blob.length} bytes of at most ${most}.`);
}

/** @param {State} state @param {string} id @param {Author} author */
function ownTask(state, id, author) {
  const task = state.tasks.get(id);
  require(task, "task-unknown");
  require(task.owner === author.subject, "not-the-owner");
  return task;
}

/** @param {State} state @param {number | bigint | null} number @param {number | bigint} iteration @param {string} code */
function openBundle(state, number, iteration, code) {
  const bundle = number === null ? null : state.bundles[Number(number)];
  require(bundle?.current && bundle.phase === "open" && bundle.current.number === iteration, code);
  return bundle;
}

// Certifiers and clients

const certifierKey = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const taken = [...state.certifiers.values()].some((one) => one.holder === author.subject && one.inForce);
    require(!taken, "certifier-has-key");
    require(!state.certifiers.has(body.key), "certifier-key-known");
    require(state.certifierTree.size < state.certifierTree.capacity, "certifiers-full");
    return { kind: "possession" };
  },
  /** @param {State} state @param {any} body @param {Author} author */
  apply(state, body, author) {
    const position = state.certifierTree.size;
    state.certifierTree.append(body.key);
    state.certifiers.set(body.key, { key: body.key, holder: author.subject, position, inForce: true });
  },
};

const revocation = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const known = state.certifiers.get(body.key);
    require(known?.inForce, "certifier-unknown");
    const isOperator = author.purpose === "operator";
    require(isOperator || known.holder === author.subject, "not-the-holder");
    require(isOperator || !body.new_epoch, "epoch-needs-operator");
    return {};
  },
  /** @param {State} state @param {any} body */
  apply(state, body) {
    const certifier = state.certifiers.get(body.key);
    certifier.inForce = false;
    state.certifierTree.zero(certifier.position);
    state.certifierRoots = [];
    if (!body.new_epoch) return;
    state.epoch += 1;
    state.clients = new core.ClientTree();
    state.registered = new Set();
    state.newcomers = [];
  },
};

const registration = {
  /** @param {State} state @param {any} body */
  check(state, body) {
    require(body.epoch === state.epoch, "wrong-epoch");
    require(!state.registered.has(body.nullifier), "registration-spent");
    require(state.certifierRoots.includes(body.certifier_root), "unknown-certifier-root");
    require(state.clients.size + state.newcomers.length < state.clients.capacity, "clients-full");
    return { kind: "registration" };
  },
  /** @param {State} state @param {any} body */
  apply(state, body) {
    state.newcomers.push(body.commitment);
    state.registered.add(body.nullifier);
    state.nullifiers.append(body.nullifier);
  },
};

const submission = {
  /** @param {State} state @param {any} body */
  check(state, body) {
    require(state.bundles[Number(body.bundle)], "bundle-unknown");
    const bundle = openBundle(state, body.bundle, body.iteration, "iteration-not-open");
    const { current } = bundle;
    require(!current.submissions.has(body.nullifier), "nullifier-spent");
    require(!current.tags.has(body.tag), "tag-used");
    require(body.contributions.length === bundle.tasks.length, "wrong-addressees");
    require(current.submissions.size < state.classOf(bundle).max_posts, "iteration-full");
    const blobs = body.contributions.map((/** @type {any} */ part) => part.payload);
    for (const blob of blobs) checkBlob(state, blob, state.genesis.limits.max_model_bytes);
    return { kind: "submission", blobs, seats: state.seats(bundle), clientRoot: current.clientRoot };
  },
  /** @param {State} state @param {any} body @param {Author} author @param {string} id */
  apply(state, body, author, id) {
    const { current } = state.bundles[Number(body.bundle)];
    current.submissions.set(body.nullifier, {
      nullifier: body.nullifier, tag: body.tag, messageKey: author.key, ballot: body.ballot, id,
      payloads: body.contributions.map((/** @type {any} */ part) => (
        { envelope: part.envelope, sha256: part.payload.sha256, length: part.payload.length })),
    });
    current.tags.add(body.tag);
    state.nullifiers.append(body.nullifier);
    touch(current, id);
  },
};

// Committees

/** @param {State} state @param {any} run */
function checkBase(state, run) {
  if (!run.run.handover) return;
  const committee = state.committees.get(run.run.handover.key_id);
  require(committee.pending === null && committee.current.sharesId === run.base, "handover-stale");
}

/** @param {any} run How many rounds everybody who speaks in them has posted, from the first. */
export function completeRounds(run) {
  let round = 0;
  while ((run.posted.get(round)?.size ?? 0) === numSpeakers(run.run, round)) round += 1;
  return round;
}

/** @param {State} state @param {any} run @param {number} round @param {number} sender @returns {string | undefined} */
function speaker(state, run, round, sender) {
  if (!run.handover || round !== 1) return run.members[sender - 1];
  const old = state.committees.get(run.handover.key_id).current.members;
  return run.handover.dealers.includes(sender) ? old[sender - 1] : undefined;
}

/** @param {State} state @param {any} run @param {Author} author */
function checkDescription(state, run, author) {
  const possible = run.scheme < 2 && new Set(run.members).size === run.members.length &&
    isShape(run.members.length, run.threshold);
  require(possible, "invalid-run");
  checkScheme(run.scheme);
  if (run.handover) {
    const committee = state.committees.get(run.handover.key_id);
    const { dealers } = run.handover;
    const ascending = dealers.every((/** @type {number} */ one, /** @type {number} */ at) => !at || dealers[at - 1] < one);
    require(
      committee && committee.pending === null && committee.scheme === run.scheme &&
      dealers.length === committee.current.threshold && ascending && dealers[0] >= 1 &&
      dealers[dealers.length - 1] <= committee.current.members.length, "wrong-handover");
  }
  const opened = [...state.runs.values()].filter((one) => one.openedBy === author.subject && one.posted.size && !one.done);
  require(opened.length < state.genesis.limits.max_runs, "too-many-runs");
}

const round = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    require((body.run !== null) === (body.round === 0), "run-description");
    const named = body.run === null ||
      body.run_id === sha256(utf8("anofel/1/run"), state.genesisHash, core.encode("Run", body.run));
    require(named, "wrong-run-id");
    const known = state.runs.get(body.run_id);
    if (known) {
      require(!known.done, "run-unknown");
      checkBase(state, known);
    }
    const run = known ? known.run : body.run;
    require(run, "run-unknown");
    if (!known) checkDescription(state, run, author);
    require(body.round < ROUNDS, "too-many-rounds");
    require(speaker(state, run, body.round, body.sender) === author.subject, "not-the-sender");
    const before = known?.posted.get(body.round - 1)?.size ?? 0;
    require(body.round === 0 || before === numSpeakers(run, body.round - 1), "round-out-of-order");
    require(!known?.posted.get(body.round)?.has(body.sender), "round-posted");
    if (body.round === 0) {
      require(author.organisation, "no-organisation");
      require(![...(known?.entered.values() ?? [])].includes(author.organisation), "same-organisation");
    }
    checkBlob(state, body.body, state.genesis.limits.max_key_bytes);
    return { blobs: [body.body] };
  },
  /** @param {State} state @param {any} body @param {Author} author @param {string} id */
  apply(state, body, author, id) {
    let run = state.runs.get(body.run_id);
    if (!run) {
      run = {
        runId: body.run_id, run: body.run, openedBy: author.subject, openedAt: state.height, base: null, shareEpoch: 0,
        entered: new Map(), posted: new Map(), votes: new Map(), done: false, history: NO_HISTORY,
      };
      if (body.run.handover) {
        const old = state.committees.get(body.run.handover.key_id).current;
        Object.assign(run, { base: old.sharesId, shareEpoch: old.shareEpoch + 1 });
      }
      state.runs.set(body.run_id, run);
    }
    if (body.round === 0) run.entered.set(body.sender, author.organisation);
    if (!run.posted.has(body.round)) run.posted.set(body.round, new Map());
    run.posted.get(body.round).set(body.sender, body.body.sha256);
    touch(run, id);
  },
};

const keyVote = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const run = state.runs.get(body.run_id);
    require(run, "run-unknown");
    const { members, handover } = run.run;
    require(members[body.member - 1] === author.subject, "not-a-member");
    require(completeRounds(run) >= ROUNDS, "run-not-finished");
    require(!run.votes.has(body.member), "key-posted");
    if (!run.done) checkBase(state, run);
    require(!handover || body.key_id === handover.key_id, "key-changed");
    checkBlob(state, body.key, state.genesis.limits.max_key_bytes);
    require(body.key.sha256 === body.shares_id, "key-refused-by-board");
    return { kind: "key", blobs: [body.key], run };
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const run = state.runs.get(body.run_id);
    const vote = [body.key_id, body.shares_id, body.transcript].join();
    run.votes.set(body.member, vote);
    touch(run, id);
    const equal = [...run.votes.values()].filter((other) => other === vote).length;
    if (run.done || equal < run.run.threshold) return;
    run.done = true;
    const shares = {
      runId: body.run_id, sharesId: body.shares_id, members: run.run.members, threshold: run.run.threshold,
      shareEpoch: run.shareEpoch,
    };
    if (run.run.handover) state.committees.get(body.key_id).pending = shares;
    else {
      state.committees.set(body.key_id, {
        keyId: body.key_id, scheme: run.run.scheme, current: shares, pending: null, former: [], task: null,
      });
    }
  },
};

// Tasks

const announcement = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    require(!state.tasks.has(taskId(state, body, author)), "task-known");
    let document;
    try {
      document = readTask(body.document);
    } catch (error) {
      throw new Rejected("task-malformed", sentenceOf(error));
    }
    const { classes } = state.genesis;
    const sizeClass = sizeClassOf(classes, document);
    if (sizeClass === null) throw new Rejected("no-size-class");
    const committee = state.committees.get(body.key_id);
    require(committee, "committee-unknown");
    require(!isServing(state, committee.task), "committee-busy");
    const live = [...state.tasks.values()].filter((task) => !task.ended && task.owner === author.subject);
    require(live.length < state.genesis.limits.max_tasks, "too-many-tasks");
    try {
      const facts = factsOf(document, classes[sizeClass]);
      checkFits(facts, committee.scheme);
      return { facts, sizeClass };
    } catch (error) {
      if (error instanceof NotCheckedHere) throw error;
      throw new Rejected(error instanceof DoesNotFit ? "task-does-not-fit" : "noise-does-not-fit", sentenceOf(error));
    }
  },
  /** @param {State} state @param {any} body @param {Author} author @param {string} id @param {any} claim */
  apply(state, body, author, id, claim) {
    const task = {
      taskId: taskId(state, body, author), owner: author.subject, announcement: body, facts: claim.facts,
      sizeClass: claim.sizeClass, announcedAt: state.height, organisation: author.organisation, bundle: null, position: 0,
      model: null, modelIteration: 0, nextModel: null, summed: false, releases: 0, ended: false, ledger: new Set(),
      outcomes: [], history: NO_HISTORY,
    };
    touch(task, id);
    state.tasks.set(task.taskId, task);
    state.committees.get(body.key_id).task = task.taskId;
  },
};

/** @param {State} state @param {any} body @param {Author} author */
const taskId = (state, body, author) =>
  sha256(utf8("anofel/1/task"), state.genesisHash, author.subject, core.encode("TaskAnnouncement", body));

/** @param {State} state @param {string | null} id */
function isServing(state, id) {
  if (id === null) return false;
  const task = state.tasks.get(id);
  return !task.ended || (task.bundle !== null && state.bundles[task.bundle].phase !== "ended");
}

const model = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const task = ownTask(state, body.task, author);
    const bundle = task.bundle === null ? null : state.bundles[task.bundle];
    require(bundle, "model-not-due");
    const due = bundle.phase === "waiting" && !task.ended && body.iteration === bundle.iterations + 1;
    require(due, "model-not-due");
    require(task.modelIteration < body.iteration, "model-posted");
    checkBlob(state, body.model, state.genesis.limits.max_model_bytes);
    if (task.model !== null && !(task.summed && task.facts.rule.kind === "owner")) {
      require(body.model.sha256 === (task.summed ? task.nextModel : task.model), "wrong-model");
      return { blobs: [body.model] };
    }
    return { kind: "model", blobs: [body.model], facts: task.facts };
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const task = state.tasks.get(body.task);
    task.model = body.model.sha256;
    task.modelIteration = body.iteration;
    touch(task, id);
  },
};

const rejection = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const task = ownTask(state, body.task, author);
    const bundle = task.bundle === null ? null : state.bundles[task.bundle];
    const waits = bundle && bundle.phase === "waiting" && bundle.iterations === body.iteration;
    require(waits && task.summed && !task.ended, "nothing-to-reject");
    require(task.modelIteration <= body.iteration, "model-decided");
    return {};
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const task = state.tasks.get(body.task);
    task.modelIteration = body.iteration + 1;
    touch(task, id);
  },
};

const endIteration = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const task = ownTask(state, body.task, author);
    const bundle = openBundle(state, task.bundle, body.iteration, "nothing-to-end");
    require(bundle.earlyEnd, "no-early-end");
    require(!bundle.current.endVotes.has(body.task), "end-posted");
    return {};
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const { current } = state.bundles[state.tasks.get(body.task).bundle];
    current.endVotes.add(body.task);
    touch(current, id);
  },
};

const endTask = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    require(!ownTask(state, body.task, author).ended, "task-ended");
    return {};
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const task = state.tasks.get(body.task);
    task.ended = true;
    touch(task, id);
  },
};

const ledger = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const task = ownTask(state, body.task, author);
    require(body.releases > 0 && body.releases === task.releases, "wrong-releases");
    require(!task.ledger.has(body.releases), "ledger-entered");
    return {};
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const task = state.tasks.get(body.task);
    task.ledger.add(body.releases);
    touch(task, id);
  },
};

// Sums

/** @param {State} state @param {any} body @param {Author} author @param {string} code */
function closedSeat(state, body, author, code) {
  const task = state.tasks.get(body.task);
  require(task, "task-unknown");
  require(state.committeeOf(task).current.members[body.member - 1] === author.subject, "not-a-member");
  const seat = state.seat(body.task);
  require(seat && seat.bundle.phase === "closed" && seat.iteration.number === body.iteration, code);
  return /** @type {import("./state.js").Seat} */ (seat);
}

const aggregate = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const seat = closedSeat(state, body, author, "aggregate-not-due");
    const { position, iteration } = seat;
    const waiting = !["failed", "too-few", "absent"].includes(position.progress);
    require(waiting && state.height <= iteration.aggregateBy, "aggregate-not-due");
    require(!position.aggregates.has(body.member), "aggregate-posted");
    require(body.close_hash === iteration.closeHash, "wrong-close-hash");
    const excluded = body.excluded.map((/** @type {any} */ one) => one.nullifier);
    const known = body.excluded.every((/** @type {any} */ one) => one.reason === 1 && iteration.submissions.has(one.nullifier));
    const ascending = excluded.every((/** @type {string} */ one, /** @type {number} */ at) => !at || excluded[at - 1] < one);
    require(known && ascending, "wrong-exclusions");
    const out = new Set(excluded);
    const dealt = seat.groupsOf([...iteration.submissions.keys()].filter((name) => !out.has(name)));
    const right = dealt.length === body.groups.length && dealt.every((names, at) =>
      body.groups[at].num_posts === names.length && body.groups[at].set_digest === digestOfSet(names));
    require(right, "wrong-set");
    const blobs = body.groups.map((/** @type {any} */ group) => group.sum);
    for (const blob of blobs) checkBlob(state, blob, state.genesis.limits.max_model_bytes);
    return { kind: "sum", blobs, seat };
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const { position } = /** @type {any} */ (state.seat(body.task));
    position.aggregates.set(body.member, {
      excluded: body.excluded.map((/** @type {any} */ one) => [one.nullifier, one.reason]),
      groups: body.groups.map((/** @type {any} */ group) => (
        { setDigest: group.set_digest, numPosts: group.num_posts, sumDigest: group.sum.sha256 })),
    });
    touch(position, id);
  },
};

const countShare = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const seat = closedSeat(state, body, author, "count-not-due");
    const { position, iteration } = seat;
    const enough = position.agreed?.groups.every((/** @type {any} */ group) => group.numPosts >= seat.limits.minClients);
    require(enough && state.height <= iteration.countBy && position.progress !== "failed", "count-not-due");
    const right = body.agreed === seat.agreedDigest() && body.shares.length === position.agreed.groups.length;
    require(right, "count-not-agreed");
    require(!position.countShares.some((/** @type {any} */ one) => one.member === body.member), "count-posted");
    return { kind: "count", seat };
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const { position } = /** @type {any} */ (state.seat(body.task));
    position.countShares.push({ member: body.member, contents: body.shares });
    touch(position, id);
  },
};

const sumShare = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const seat = closedSeat(state, body, author, "sum-not-due");
    const { position, iteration } = seat;
    const isOpened = ["counted", "summed", "undecodable"].includes(position.progress);
    require(isOpened && state.height <= iteration.sumBy, "sum-not-due");
    require(body.agreed === seat.agreedDigest() && body.shares.length === seat.opened().length, "sum-not-agreed");
    require(!position.sumShares.some((/** @type {any} */ one) => one.member === body.member), "sum-posted");
    for (const blob of body.shares) checkBlob(state, blob, state.genesis.limits.max_model_bytes);
    return { kind: "sumShare", blobs: body.shares, seat };
  },
  /** @param {State} state @param {any} body @param {Author} _author @param {string} id */
  apply(state, body, _author, id) {
    const { position } = /** @type {any} */ (state.seat(body.task));
    position.sumShares.push({ member: body.member, contents: body.shares.map((/** @type {any} */ blob) => blob.sha256) });
    touch(position, id);
  },
};

// Validators

/** @param {State} state @param {Author} author @returns {number} */
function ownPlace(state, author) {
  require(state.genesis.engine === COMETBFT, "validators-fixed");
  const found = [...state.eraAt(state.height).validators].find(([, one]) => subjectOf(one.chain[0]) === author.subject);
  if (!found) throw new Rejected("not-a-validator");
  return found[0];
}

/** @param {State} state @param {any} body */
const changeId = (state, body) =>
  sha256(utf8("anofel/1/validator-change"), state.genesisHash, core.encode("ChangeValidators", body));

const change = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    ownPlace(state, author);
    const now = state.lastEra;
    require(now.since <= state.height, "change-waits");
    require(body.base === now.digest(), "validators-moved");
    require(state.height + NOTICE <= body.since && body.since <= state.height + MAX_AHEAD, "change-height");
    require(!state.open.has(changeId(state, body)), "change-proposed");
    const next = 1 + Math.max(...state.eras.flatMap((era) => [...era.validators.keys()]));
    const added = body.place === next && body.entry !== null;
    require(now.validators.has(body.place) || added, "wrong-place");
    const left = now.validators.size - Number(body.entry === null) + Number(added);
    require(left >= Math.min(4, state.genesis.validators.length), "too-few-validators");
    require(left <= 16 && body.place < 256, "too-many-validators");
    if (body.entry) checkEntry(state, now, body.place, body.entry);
    return {};
  },
  /** @param {State} state @param {any} body @param {Author} author */
  apply(state, body, author) {
    const proposer = ownPlace(state, author);
    for (const [name, one] of state.open) if (one.proposer === proposer) state.open.delete(name);
    const name = changeId(state, body);
    state.open.set(name, { change: body, proposer, signed: [] });
    state.sign(name, proposer);
  },
};

/** @param {State} state @param {import("./state.js").Era} now @param {number} place @param {any} entry */
function checkEntry(state, now, place, entry) {
  const { genesis } = state;
  const { validator } = entry;
  let storage;
  let identity;
  try {
    identity = verifyChain(validator.chain, genesis.roots, "validator", state.time);
    storage = verifyChain(entry.holder, genesis.roots, "storage", state.time);
    checkBinding(genesis, identity, validator);
  } catch (error) {
    if (error instanceof NotCheckedHere) throw error;
    throw new Rejected("validator-not-certified", sentenceOf(error));
  }
  const used = state.eras.some((era) => [...era.validators.values()].some((one) => one.key === validator.key));
  require(!used, "validator-key-used");
  const others = [...now.validators].filter(([number]) => number !== place).map(([, one]) => subjectOf(one.chain[0]));
  const held = [...now.holders].filter(([number]) => number !== place).map(([, chain]) => subjectOf(chain[0]));
  require(!others.includes(identity.subject) && !held.includes(storage.subject), "validator-present");
  const powers = [...now.validators.values()].map((one) => one.power);
  const least = powers.reduce((a, b) => (a < b ? a : b));
  require(validator.power === (now.validators.get(place)?.power ?? least), "validator-power");
}

/** @param {any} genesis @param {import("./certificates.js").Identity} identity @param {any} validator */
export function checkBinding(genesis, identity, validator) {
  const message = concat([utf8("anofel/1/validator"), genesis.nonce, validator.key]);
  if (!identity.signed(message, validator.binding ?? "")) {
    throw new InvalidInput("The signature of a validator does not fit its key.");
  }
}

const signature = {
  /** @param {State} state @param {any} body @param {Author} author */
  check(state, body, author) {
    const own = ownPlace(state, author);
    const one = state.open.get(body.change);
    require(one, "change-unknown");
    require(!one?.signed.includes(own), "change-signed");
    return {};
  },
  /** @param {State} state @param {any} body @param {Author} author */
  apply(state, body, author) {
    state.sign(body.change, ownPlace(state, author));
  },
};

/** How the board treats each kind of posting; by its name, with its number, longest length and purposes. */
/** @type {Record<string, {number: number, handler: any, most: number, purposes: string[]}>} */
export const KINDS = {
  CertifierKeyOffer: { number: 1, handler: certifierKey, most: 20 * KIB, purposes: ["certifier"] },
  RevokeCertifier: { number: 2, handler: revocation, most: 20 * KIB, purposes: ["certifier", "operator"] },
  Registration: { number: 3, handler: registration, most: KIB, purposes: [] },
  DkgRound: { number: 4, handler: round, most: 20 * KIB, purposes: ["aggregator"] },
  CommitteeKeyVote: { number: 5, handler: keyVote, most: 20 * KIB, purposes: ["aggregator"] },
  TaskAnnouncement: { number: 6, handler: announcement, most: 84 * KIB, purposes: ["owner"] },
  Model: { number: 7, handler: model, most: 20 * KIB, purposes: ["owner"] },
  Submission: { number: 8, handler: submission, most: 96 * KIB, purposes: [] },
  Aggregate: { number: 9, handler: aggregate, most: 640 * KIB, purposes: ["aggregator"] },
  CountShare: { number: 10, handler: countShare, most: 56 * KIB, purposes: ["aggregator"] },
  SumShare: { number: 11, handler: sumShare, most: 64 * KIB, purposes: ["aggregator"] },
  EndIteration: { number: 12, handler: endIteration, most: 20 * KIB, purposes: ["owner"] },
  EndTask: { number: 13, handler: endTask, most: 20 * KIB, purposes: ["owner"] },
  PrivacyLedger: { number: 14, handler: ledger, most: 20 * KIB, purposes: ["owner"] },
  RejectModel: { number: 15, handler: rejection, most: 20 * KIB, purposes: ["owner"] },
  ChangeValidators: { number: 16, handler: change, most: 52 * KIB, purposes: ["validator"] },
  SignChange: { number: 17, handler: signature, most: 20 * KIB, purposes: ["validator"] },
};
