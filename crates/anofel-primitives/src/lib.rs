//! The hashes, keys, signatures, commitments and trees of AnoFel.
