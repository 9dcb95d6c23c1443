//! A peer of the contribution proof: a Bulletproofs range proof for a vector of 1,024 coordinates.
//!
//! Every coordinate has a Pedersen commitment, and one aggregated proof shows that each lies within 16 bits.
//! That is less than a contribution proof states: no norm, no count bit, no encryption of the vector. (The
//! crate's proofs of arithmetic circuits, which a norm would need, do not build in this version.)
//!
//! Prints one line of JSON: CPU seconds of one thread, least of three runs, and bytes with the commitments.
#![allow(clippy::unwrap_used, reason = "a benchmark")]

use bulletproofs::{BulletproofGens, PedersenGens, RangeProof};
use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::scalar::Scalar;
use merlin::Transcript;
use rand::rngs::OsRng;

const COORDINATES: usize = 1024;
const BITS: usize = 16;

struct Generators {
    pedersen: PedersenGens,
    bits: BulletproofGens,
}

fn prove(generators: &Generators, vector: &[u64]) -> (RangeProof, Vec<CompressedRistretto>) {
    let blindings: Vec<Scalar> = vector.iter().map(|_| Scalar::random(&mut OsRng)).collect();
    let (bits, pedersen) = (&generators.bits, &generators.pedersen);
    let mut transcript = Transcript::new(b"peer");
    RangeProof::prove_multiple(bits, pedersen, &mut transcript, vector, &blindings, BITS).unwrap()
}

/// CPU seconds of this thread, the least of three runs.
fn least(action: &mut dyn FnMut()) -> f64 {
    let spent = || {
        let fields = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        fields.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
    };
    let run = |_| {
        let start = spent();
        action();
        spent() - start
    };
    (0..3).map(run).fold(f64::INFINITY, f64::min)
}

fn main() {
    let bits = BulletproofGens::new(BITS, COORDINATES);
    let generators = Generators { pedersen: PedersenGens::default(), bits };
    let vector: Vec<u64> = (0..COORDINATES as u64).map(|i| i * 61 % (1 << BITS)).collect();
    let mut made = None;
    let proving = least(&mut || made = Some(prove(&generators, &vector)));
    let (proof, commitments) = made.unwrap();
    let (bits, pedersen) = (&generators.bits, &generators.pedersen);
    let verifying = least(&mut || {
        let mut transcript = Transcript::new(b"peer");
        proof.verify_multiple(bits, pedersen, &mut transcript, &commitments, BITS).unwrap();
    });
    let bytes = 32 * commitments.len() + proof.to_bytes().len();
    println!(
        "{{\"coordinates\": {COORDINATES}, \"prove\": {proving:.4}, \"verify\": {verifying:.4}, \"bytes\": {bytes}}}"
    );
}
