/** A participant's receipt: which postings are hers, known to nobody but her and this page. */
import { InvalidInput } from "./errors.js";

/** @typedef {{genesis: string, registrations: string[], submissions: string[]}} Receipt Nullifiers. */

/** @param {string} text @returns {Receipt} */
export function readReceipt(text) {
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    read = null;
  }
  const isName = (/** @type {unknown} */ name) => typeof name === "string" && /^[0-9a-f]{64}$/.test(name);
  const isList = (/** @type {unknown} */ list) => Array.isArray(list) && list.every(isName);
  const isReceipt = read?.format === "anofel receipt 1" && isName(read.genesis);
  if (!isReceipt || !isList(read.registrations) || !isList(read.submissions)) {
    throw new InvalidInput("This file is no receipt; anofel client receipt writes one.");
  }
  return read;
}

/**
 * What became of the postings of a receipt.
 * @param {Receipt} receipt @param {import("./audit.js").Audit} audit
 */
export function follow(receipt, audit) {
  if (receipt.genesis !== audit.chain.hash) {
    throw new InvalidInput(`The receipt is for another board: its genesis is ${receipt.genesis}.`);
  }
  const registered = receipt.registrations.map((name) => {
    const found = audit.places.get(name);
    if (!found) return { name, found: false, sentence: "A registration: it is in no block that was checked here." };
    return { name, found: true, sentence: `Your registration is posting ${found.place} of block ${found.height}.` };
  });
  return [...registered, ...receipt.submissions.map((name) => fateOf(name, audit))];
}

/** @param {string} name @param {import("./audit.js").Audit} audit */
function fateOf(name, audit) {
  const found = audit.places.get(name);
  if (!found) return { name, found: false, sentence: "A post: it is in no block that was checked here." };
  const ended = audit.iterations.filter((one) => one.bundle === found.bundle && one.iteration === found.iteration);
  const words = ended.map((one) => `${one.task}: ${addedTo(one, name)}`).join(" ") || "The iteration is not over yet.";
  const where = `Your post is posting ${found.place} of block ${found.height}, in iteration ${found.iteration}.`;
  return { name, found: true, sentence: `${where} ${words}` };
}

/** @param {any} iteration @param {string} name */
function addedTo({ outcome, excluded }, name) {
  if (excluded === null) return `the committee agreed on no sum (${outcome}).`;
  if (excluded.includes(name)) return `left out of the sum, since its payload was refused (${outcome}).`;
  return `added to the encrypted sum with all others (${outcome}).`;
}
