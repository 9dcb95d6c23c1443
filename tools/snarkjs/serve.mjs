// Times snarkjs for bench/proofs.py: one command per line in, a JSON array of strings, and one
// line of JSON out.
//
//   ["prove", zkey, wtns]
//   ["verify", key, public, proof]
//
// The answer is the seconds it took: [on the clock, of all cores]. Files are read before the clock starts. A proof is checked after it was timed, so that a wrong
// one is never counted.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.argv[2]}/`);
const { groth16, zKey } = require("snarkjs");

const memory = (file) => ({ type: "mem", data: new Uint8Array(readFileSync(file)) });
const json = (file) => JSON.parse(readFileSync(file, "utf8"));

const time = async (work) => {
  const [start, cpuStart] = [performance.now(), process.cpuUsage()];
  const result = await work();
  const { user, system } = process.cpuUsage(cpuStart);
  return [[(performance.now() - start) / 1e3, (user + system) / 1e6], result];
};

const insist = (holds) => {
  if (!holds) throw new Error("snarkjs refuses the proof");
};

const commands = {
  async prove(zkeyFile, wtnsFile) {
    const [zkey, wtns] = [memory(zkeyFile), memory(wtnsFile)];
    const [taken, { proof, publicSignals }] = await time(() => groth16.prove(zkey, wtns));
    insist(await groth16.verify(await zKey.exportVerificationKey(zkey), publicSignals, proof));
    return taken;
  },
  async verify(...files) {
    const [key, inputs, proof] = files.map(json);
    const [taken, holds] = await time(() => groth16.verify(key, inputs, proof));
    insist(holds);
    return taken;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...files] = JSON.parse(line);
  console.log(JSON.stringify(await commands[name](...files)));
}
process.exit(0); // snarkjs leaves its workers running.
