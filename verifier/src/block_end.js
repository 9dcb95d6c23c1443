/** The end of a block: phases move, deadlines run out, bundles form (src/anofel/board/block_end.py). */
import { NO_HISTORY, OUTCOMES } from "./state.js";

const MAX_RUN_BLOCKS = 1 << 14;
const NOTICE = 2;

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Seat} Seat */

/** @param {State} state @param {number} time */
export function beginBlock(state, time) {
  state.height += 1;
  state.time = Math.max(time, state.time);
  state.numPostings = state.numBytes = 0;
  for (const { phase, current } of state.liveBundles()) {
    if (phase === "closed" && current.closedAt === state.height - 1) current.closeHash = state.tip;
  }
}

/** The seats whose count, or whose sum, enough shares can open now. @param {State} state @param {"count" | "sum"} what @returns {Seat[]} */
export function due(state, what) {
  const [progress, shares] = what === "count" ? ["aggregated", "countShares"] : ["counted", "sumShares"];
  return state.liveBundles()
    .filter((bundle) => bundle.phase === "closed")
    .flatMap((bundle) => state.seats(bundle))
    .filter(({ position }) => position.progress === progress && position[shares].length >= position.shares.threshold);
}

/** @param {State} state @param {{counts: Map<string, number[]>, sums: Map<string, any>}} results */
export function endBlock(state, results) {
  if (state.newcomers.length) state.clients.append(state.newcomers);
  state.newcomers = [];
  for (const bundle of state.liveBundles()) {
    if (bundle.phase === "open") closeIfDue(state, bundle);
    else if (bundle.phase === "closed") movePositions(state, bundle, results);
    if (bundle.phase === "waiting") openIfDue(state, bundle);
  }
  formBundles(state);
  handOver(state);
  endOldRuns(state);
  state.certifierRoots.push(state.certifierTree.root());
  state.certifierRoots.splice(0, Math.max(0, state.certifierRoots.length - state.genesis.limits.root_window));
  for (const [name, one] of state.open) if (one.change.since <= state.height + NOTICE) state.open.delete(name);
}

/** @param {State} state @param {any} bundle */
function closeIfDue(state, bundle) {
  const { current } = bundle;
  const size = state.classOf(bundle);
  if (state.height < current.closeBy && !endsEarly(state, bundle)) return;
  current.closedAt = state.height;
  current.aggregateBy = state.height + size.aggregate;
  current.countBy = current.aggregateBy + size.count;
  current.sumBy = current.countBy + size.sum;
  bundle.phase = "closed";
  for (const position of current.positions) {
    if (position.progress !== "collecting") continue;
    const task = state.tasks.get(position.taskId);
    position.progress = current.submissions.size < task.facts.limits.minClients ? "too-few" : "closed";
    position.shares = state.committeeOf(task).current;
  }
  finishIfOver(state, bundle);
}

/** @param {State} state @param {any} bundle */
function endsEarly(state, bundle) {
  const { current } = bundle;
  const size = state.classOf(bundle);
  const live = state.liveTasks(bundle);
  if (!bundle.earlyEnd || !live.length || !live.every((task) => current.endVotes.has(task.taskId))) return false;
  if (!current.submissions.size) return state.height >= current.openedAt + size.post_from;
  return current.submissions.size >= Math.min(current.numClients, size.max_posts);
}

/** @param {State} state @param {any} bundle @param {any} results */
function movePositions(state, bundle, results) {
  for (const seat of state.seats(bundle)) {
    if (!OUTCOMES.includes(seat.position.progress)) move(state.height, seat, results);
  }
  finishIfOver(state, bundle);
}

/** @param {number} height @param {Seat} seat @param {any} results */
function move(height, { position, task, iteration, limits }, results) {
  const least = limits.minClients;
  if (position.progress === "closed") {
    position.agreed = agreement(position);
    if (position.agreed) {
      const enough = position.agreed.groups.every((/** @type {any} */ group) => group.numPosts >= least);
      position.progress = enough ? "aggregated" : "too-few";
    } else if (height >= iteration.aggregateBy) position.progress = "failed";
  } else if (position.progress === "aggregated") {
    const counts = results.counts.get(task.taskId);
    if (counts) {
      position.counts = counts;
      const enough = counts.some((/** @type {number} */ count) => count >= least);
      position.progress = enough ? "counted" : "too-few";
      task.releases += Number(enough);
    } else if (height >= iteration.countBy) position.progress = "failed";
  } else if (results.sums.has(task.taskId)) {
    takeSum(position, task, results.sums.get(task.taskId));
  } else if (height >= iteration.sumBy) position.progress = "failed";
  if (OUTCOMES.includes(position.progress) && task.releases >= task.facts.maxReleases) task.ended = true;
}

/** What t members state equally, if they do. @param {any} position */
function agreement(position) {
  const stated = [...position.aggregates.values()];
  const texts = stated.map((one) => JSON.stringify(one));
  const at = texts.findIndex((one) => texts.filter((other) => other === one).length >= position.shares.threshold);
  return at < 0 ? null : stated[at];
}

/** @param {any} position @param {any} task @param {any} opened */
function takeSum(position, task, opened) {
  if (opened === null) {
    position.progress = "undecodable";
    return;
  }
  position.progress = "summed";
  position.total = opened.total;
  position.opened = opened.count;
  position.reported = opened.reported;
  task.summed = true;
  task.nextModel = opened.nextModel;
}

/** @param {State} state @param {any} bundle */
function finishIfOver(state, bundle) {
  const { current } = bundle;
  if (!current.positions.every((/** @type {any} */ position) => OUTCOMES.includes(position.progress))) return;
  for (const { position, task } of state.seats(bundle)) {
    if (position.progress === "absent") continue;
    task.outcomes = [...task.outcomes, {
      iteration: current.number, progress: position.progress, numClients: current.numClients,
      posts: current.submissions.size, excluded: position.agreed ? position.agreed.excluded.length : 0,
      count: position.counts ? position.counts.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0) : null,
      opened: position.opened, releases: task.releases, reported: position.reported, openedAt: current.openedAt,
      closedAt: current.closedAt, overAt: state.height,
    }];
  }
  bundle.phase = "waiting";
  bundle.modelBy = state.height + state.classOf(bundle).model;
  if (!state.liveTasks(bundle).length) endBundle(state, bundle);
}

/** @param {State} state @param {any} bundle */
function openIfDue(state, bundle) {
  const following = bundle.iterations + 1;
  const live = state.liveTasks(bundle);
  const ready = live.every((task) => task.modelIteration === following);
  if (!ready && state.height < bundle.modelBy) return;
  for (const task of live) if (task.model === null) task.ended = true;
  if (!state.liveTasks(bundle).length) {
    endBundle(state, bundle);
    return;
  }
  bundle.iterations = following;
  bundle.phase = "open";
  bundle.current = {
    number: following, openedAt: state.height, closeBy: state.height + state.classOf(bundle).train, epoch: state.epoch,
    numClients: state.clients.size, clientRoot: state.clients.root(), closedAt: 0, closeHash: "", aggregateBy: 0,
    countBy: 0, sumBy: 0, submissions: new Map(), tags: new Set(), endVotes: new Set(), history: NO_HISTORY,
    positions: bundle.tasks.map((/** @type {string} */ id) => beginPosition(state.tasks.get(id))),
  };
}

/** @param {any} task */
function beginPosition(task) {
  if (!task.ended) {
    task.summed = false;
    task.nextModel = null;
  }
  return {
    taskId: task.taskId, progress: task.ended ? "absent" : "collecting", shares: null, aggregates: new Map(),
    agreed: null, countShares: [], counts: null, sumShares: [], total: null, opened: 0, reported: [], history: NO_HISTORY,
  };
}

/** @param {State} state @param {any} bundle */
function endBundle(state, bundle) {
  bundle.phase = "ended";
  bundle.endedAt = state.height;
  for (const id of bundle.tasks) {
    const committee = state.committeeOf(state.tasks.get(id));
    if (committee.task === id) committee.task = null;
  }
}

/** Groups waiting tasks: first come, per size class, owners of different organisations. @param {State} state */
function formBundles(state) {
  const { genesis } = state;
  for (let sizeClass = 0; sizeClass < genesis.classes.length; sizeClass++) {
    for (;;) {
      const waiting = [...state.tasks.values()].filter(
        (task) => !task.ended && task.bundle === null && task.sizeClass === sizeClass);
      /** @type {any[]} */
      let chosen = [];
      for (const task of waiting) {
        const clashes = (/** @type {any} */ other) => task.owner === other.owner ||
          task.organisation === other.organisation ||
          (task.facts.groupsNumber > 1 && other.facts.groupsNumber > 1);
        if (!chosen.some(clashes)) chosen.push(task);
      }
      chosen = chosen.slice(0, genesis.bundle_size);
      const waitedLong = waiting.length > 0 && state.height - waiting[0].announcedAt >= genesis.bundle_wait;
      if (chosen.length !== genesis.bundle_size && !waitedLong) break;
      makeBundle(state, sizeClass, chosen);
    }
  }
}

/** @param {State} state @param {number} sizeClass @param {any[]} tasks */
function makeBundle(state, sizeClass, tasks) {
  const bundle = {
    number: state.bundles.length, tasks: tasks.map((task) => task.taskId), sizeClass,
    earlyEnd: tasks.every((task) => task.announcement.early_end), phase: "waiting",
    modelBy: state.height + state.genesis.classes[sizeClass].model, iterations: 0, current: null, endedAt: null,
  };
  state.bundles.push(bundle);
  tasks.forEach((task, position) => Object.assign(task, { bundle: bundle.number, position }));
}

/** @param {State} state */
function handOver(state) {
  for (const committee of state.committees.values()) {
    if (committee.pending === null) continue;
    const bundle = committee.task === null ? null : state.tasks.get(committee.task).bundle;
    if (bundle !== null && ["open", "closed"].includes(state.bundles[bundle].phase)) continue;
    committee.former.push(committee.current);
    committee.current = committee.pending;
    committee.pending = null;
  }
}

/** @param {State} state */
function endOldRuns(state) {
  for (const run of state.runs.values()) {
    if (!run.posted.size) continue;
    if (state.height - run.openedAt < MAX_RUN_BLOCKS) return;
    run.done = true;
    run.posted.clear();
    run.votes.clear();
  }
}
