/** Checks the payloads of an iteration and adds them, here and in workers beside this one. */
import { core } from "./core.js";
import { sentenceOf, SourceTrouble } from "./errors.js";

const BATCH = 16;
/** Batches that a worker has before it, so that it never waits for the next. */
const AHEAD = 2;
const MOST_LIVE = 8;

/** @typedef {{fields: any[], envelope: Uint8Array, bit: Uint8Array, payload: Uint8Array}} Line */
/** @typedef {{codec: any, keys: any}} Live The widths of a task's vectors, and a committee's keys. */
/** @typedef {{name: string, codec: any[], keys: any[]}} Setting What both are made of, and what they are called. */
/** @typedef {{job: number, setting?: Setting, lines?: Line[], groups?: Uint32Array[]}} Order Lines to check, groups to add, or nothing: then it is over. */

/** What is under way in this worker. @type {Map<number, Live & {payloads: any}>} */
const jobs = new Map();
/** What was made here; to read keys takes as long as to check some payloads. @type {Map<string, Live>} */
const made = new Map();

/** @param {Setting} setting @returns {Live} */
function liveOf({ name, codec, keys }) {
  let found = made.get(name);
  if (found) return found;
  for (const [oldest, other] of made) {
    if (made.size < MOST_LIVE) break;
    other.codec.free();
    other.keys.free();
    made.delete(oldest);
  }
  found = { codec: new core.Codec(...codec), keys: core.Keys.read(...keys) };
  made.set(name, found);
  return found;
}

/** Does what is asked for: verdicts on lines, or the sums of groups. @param {Order} order @param {Live | null} live @returns {any} */
function work({ job, setting, lines, groups }, live = null) {
  let found = jobs.get(job);
  if (!found && setting) {
    found = { ...(live ?? liveOf(setting)), payloads: new core.Payloads() };
    jobs.set(job, found);
  }
  if (!found) return [];
  const { codec, keys, payloads } = found;
  if (lines) {
    for (const { fields, envelope, bit, payload } of lines) payloads.add(new core.Post(...fields), envelope, bit, payload);
    return payloads.check(codec, keys);
  }
  if (groups) return groups.map((places) => payloads.sum(codec, places));
  payloads.free();
  jobs.delete(job);
  return [];
}

/** A worker beside this one; one that does not start is never asked. */
class Helper {
  /** @param {MessagePort} port */
  constructor(port) {
    this.port = port;
    this.isReady = false;
    /** @type {Map<number, [(answer: any) => void, (error: Error) => void]>} */
    this.waiting = new Map();
    this.asked = 0;
    port.onmessage = ({ data }) => {
      if (data.type === "ready") this.isReady = true;
      else this.take(data.id, data.answer, data.error);
    };
  }

  /** @param {number} id @param {any} answer @param {string | null} error */
  take(id, answer, error) {
    const [resolve, reject] = /** @type {[any, any]} */ (this.waiting.get(id));
    this.waiting.delete(id);
    if (error) reject(new SourceTrouble(`A worker of this page failed: ${error}.`));
    else resolve(answer);
  }

  /** @param {Order} order @returns {Promise<any>} */
  ask(order) {
    const id = this.asked++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, [resolve, reject]);
      this.port.postMessage({ id, order });
    });
  }
}

/** This worker, and those beside it once there is enough to do. */
export class Crew {
  /** @param {(() => void) | null} call Calls for helpers, who then come; without it all is done here. */
  constructor(call = null) {
    this.call = call;
    /** @type {Helper[]} */
    this.helpers = [];
    this.jobs = 0;
  }

  /** @param {MessagePort[]} ports One to each helper. */
  take(ports) {
    this.helpers.push(...ports.map((port) => new Helper(port)));
  }

  /** @param {Setting} setting @param {Live} live The same, as it is here. */
  begin(setting, live) {
    return new Job(this, this.jobs++, setting, live);
  }

  /** One who has time, or null: then it is done here. @returns {Helper | null} */
  idle() {
    this.call?.();
    this.call = null;
    return this.helpers.find((helper) => helper.isReady && helper.waiting.size < AHEAD) ?? null;
  }
}

/** The payloads of one committee and iteration. */
class Job {
  /** @param {Crew} crew @param {number} number @param {Setting} setting @param {Live} live */
  constructor(crew, number, setting, live) {
    this.crew = crew;
    this.number = number;
    this.setting = setting;
    this.live = live;
    /** @type {{name: string, line: Line}[]} */
    this.batch = [];
    /** Where each payload lies: with whom, and at which place there. @type {Map<string, {with: Helper | null, place: number}>} */
    this.places = new Map();
    /** @type {Map<Helper | null, number>} */
    this.taken = new Map();
    /** @type {Promise<void>[]} */
    this.running = [];
    /** The names of payloads that were refused. @type {Set<string>} */
    this.refused = new Set();
  }

  /** @param {Helper | null} who @param {Partial<Order>} order @returns {Promise<any>} */
  async ask(who, order) {
    const whole = { job: this.number, setting: this.setting, ...order };
    return who ? who.ask(whole) : work(whole, this.live);
  }

  /** @param {string} name @param {Line} line */
  async add(name, line) {
    this.batch.push({ name, line });
    if (this.batch.length < BATCH) return;
    const who = this.crew.idle();
    this.check(who);
    // What others answered meanwhile is read now, so that they get the next batch.
    if (!who) await new Promise((resolve) => setTimeout(resolve));
  }

  /** @param {Helper | null} who */
  check(who) {
    const batch = this.batch.splice(0);
    const first = this.taken.get(who) ?? 0;
    batch.forEach(({ name }, at) => this.places.set(name, { with: who, place: first + at }));
    this.taken.set(who, first + batch.length);
    const asked = this.ask(who, { lines: batch.map(({ line }) => line) });
    const done = asked.then((/** @type {(string | null)[]} */ verdicts) =>
      verdicts.forEach((verdict, at) => verdict !== null && this.refused.add(batch[at].name)));
    done.catch(() => {});
    this.running.push(done);
  }

  /** Waits for all verdicts. */
  async checked() {
    if (this.batch.length) this.check(null);
    await Promise.all(this.running);
    return this.refused;
  }

  /** The bytes of the sum of some payloads. @param {string[]} names @returns {Promise<Uint8Array>} */
  async sum(names) {
    const parts = await Promise.all([...this.taken.keys()].map(async (who) => {
      const found = names.map((name) => this.places.get(name)).filter((where) => where?.with === who);
      const [sum] = await this.ask(who, { groups: [Uint32Array.from(found, (where) => where?.place ?? 0)] });
      return sum;
    }));
    return core.joinSums(this.live.codec, parts);
  }

  /** Lets go of everything. */
  end() {
    for (const who of this.taken.keys()) this.ask(who, { setting: undefined }).catch(() => {});
  }
}

/** What a worker beside the first one does. @param {{id: number, order: Order}} message */
export function help({ id, order }) {
  try {
    return { id, answer: work(order), error: null };
  } catch (error) {
    return { id, answer: null, error: sentenceOf(error).replace(/\.$/, "") };
  }
}
