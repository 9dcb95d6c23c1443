/** Runs a check beside the page, so that the page stays at hand. */
/* global wasm_bindgen, postMessage */
import { Audit, CHECKED, NOT_CHECKED } from "./audit.js";
import { sentenceOf } from "./errors.js";
import { Crew, help } from "./payloads.js";
import { follow, readReceipt } from "./receipt.js";
import { openArchive, openNode } from "./sources.js";

/** @type {Audit | null} */
let audit = null;
/** Starts a worker beside this one. @type {(() => Worker) | null} */
let start = null;

/** @param {{file?: Blob, address?: string}} where @param {(message: any) => void} tell */
export async function check({ file, address }, tell) {
  audit = null;
  const source = file ? await openArchive(file) : await openNode(address ?? "");
  const made = new Audit(source, new Crew(start, navigator.hardwareConcurrency));
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
    if (message.type === "work") tell(help(message));
    else if (message.type === "help") {
      wasm_bindgen.initSync({ module: message.wasm });
      tell({ type: "ready" });
    } else if (message.type === "start") {
      const { wasm, url } = message;
      wasm_bindgen.initSync({ module: wasm });
      start = () => {
        const made = new Worker(url);
        made.postMessage({ type: "help", wasm });
        return made;
      };
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
