// Writes poseidon.json and eddsa.json with circomlibjs, an implementation that shares no code
// with ours. Run where circomlibjs is installed: node generate.mjs
import { buildEddsa, buildPoseidonReference } from "circomlibjs";
import { writeFileSync } from "node:fs";

const poseidon = await buildPoseidonReference();
const F = poseidon.F;
const text = (element) => F.toObject(element).toString();
const R = 21888242871839275222246405745257275088548364400416034343698204186575808495617n;

const hashes = [];
for (const inputs of [1, 2, 3, 4, 5, 6, 7, 8]) {
  const counting = Array.from({ length: inputs }, (_, i) => BigInt(i + 1));
  const large = counting.map((i) => R - i);
  const cases = [[0n, counting], [0n, large], [0n, counting.map(() => 0n)], [123456789n, counting], [R - 1n, large]];
  for (const [first, values] of cases) {
    hashes.push({
      first: first.toString(),
      inputs: values.map(String),
      output: text(poseidon(values, F.e(first))),
    });
  }
}
writeFileSync("poseidon.json", JSON.stringify(hashes, null, 1) + "\n");

const eddsa = await buildEddsa();
const signatures = [];
for (let i = 0; i < 8; i++) {
  const secret = Buffer.alloc(32, i + 1);
  const message = F.e((R - 1n) / BigInt(i + 2));
  const A = eddsa.prv2pub(secret);
  const signature = eddsa.signPoseidon(secret, message);
  if (!eddsa.verifyPoseidon(message, signature, A)) throw new Error("circomlibjs refuses its own signature");
  signatures.push({
    message: text(message),
    A: A.map(text),
    R8: signature.R8.map(text),
    S: signature.S.toString(),
  });
}
writeFileSync("eddsa.json", JSON.stringify(signatures, null, 1) + "\n");
