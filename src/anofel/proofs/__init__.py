"""The three statements of the paper as Groth16 proofs, their keys, and export for other tools."""
