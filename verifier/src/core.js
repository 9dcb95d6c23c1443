/** The Rust crates as WebAssembly. `wasm_bindgen` stands before this file when the page is put together. */
/* global wasm_bindgen */

/** @type {any} */
export const core = wasm_bindgen;
