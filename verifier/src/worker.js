/** Runs a check beside the page, so that the page stays at hand. */
/* global wasm_bindgen, postMessage */
import { Audit, CHECKED, NOT_CHECKED } from "./audit.js";
import { sentenceOf } from "./errors.js";
import { Crew, help } from "./payloads.js";
import { follow, readReceipt } from "./receipt.js";
import { openArchive, openNode } from "./sources.js";

/** @type {Audit | null} */
let audit = null;
/** Who checks payloads. @type {Crew | null} */
let crew = null;

/** @param {{file?: Blob, address?: string}} where @param {(message: any) => void} tell */
export async function check({ file, address }, tell) {
  audit = null;
  const source = file ? await openArchive(file) : await openNode(address ?? "");
  crew = new Crew(() => tell({ type: "crew" }));
  const made = new Audit(source, crew);
  tell({ type: "board", board: made.chain.genesis.name, genesis: made.chain.hash, of: source.height });
  let told = 0;
  const report = await made.run((progress) => {
    if (Date.now() - told < 100) return;
    told = Date.now();
    tell({ type: "progress", ...progress });
  });
  audit = made;
  tell({ type: "report", report });
  return report;
}

/** @param {any} message @param {(message: any) => void} tell */
async function answer(message, tell) {
  try {
    if (message.type === "helpers") crew?.take(message.ports);
    else if (message.type === "help") {
      const { wasm, port } = message;
      wasm_bindgen.initSync({ module: wasm });
      port.onmessage = (/** @type {any} */ { data }) => port.postMessage(help(data));
      port.postMessage({ type: "ready" });
    } else if (message.type === "start") {
      wasm_bindgen.initSync({ module: message.wasm });
      tell({ type: "begin", checked: CHECKED, notChecked: NOT_CHECKED });
    } else if (message.type === "check") await check(message, tell);
    else if (message.type === "receipt") {
      if (!audit) throw new Error("Check the board first.");
      tell({ type: "receipt", lines: follow(readReceipt(message.text), audit) });
    }
  } catch (error) {
    tell({ type: "trouble", sentence: sentenceOf(error) });
  }
}

globalThis.onmessage = ({ data }) => answer(data, (message) => postMessage(message));
