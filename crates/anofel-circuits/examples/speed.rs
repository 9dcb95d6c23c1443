//! Quick timing.
#![allow(clippy::unwrap_used, missing_docs)]
#[path = "../tests/common/mod.rs"]
mod common;
use anofel_circuits::groth16::{
    ark::Replay, key::Origin, key::ProvingKey, prover::prove, setup::stock_key, verifier::Verifier,
};
use anofel_circuits::statements::*;
use anofel_circuits::system::Mode;
use ark_bn254::Bn254;
use ark_groth16::Groth16;
use rand::rngs::OsRng;
use std::time::Instant;

fn go<S: Statement>(make: impl Fn() -> (S, <S::Circuit as Circuit>::Witness)) {
    let kind = S::Circuit::KIND;
    let t = Instant::now();
    let system = kind.record();
    println!("{} record {:?}", kind.name(), t.elapsed());
    let t = Instant::now();
    let stock = stock_key(&system, &mut OsRng);
    println!("stock setup {:?}", t.elapsed());
    let t = Instant::now();
    let key = ProvingKey::new(kind, &system, Origin::Development, &stock);
    println!("tables {:?}", t.elapsed());
    let bytes = key.to_bytes();
    println!("key {} MB", bytes.len() as f64 / 1e6);
    let verifier = Verifier::new(key.verifying_key().clone());
    let mut ours = vec![];
    let mut theirs = vec![];
    let mut solve = vec![];
    let mut proofs = vec![];
    for _ in 0..10 {
        let (s, w) = make();
        let t = Instant::now();
        let sys = run::<S::Circuit>(Mode::Solving, &s.public_inputs(), &w);
        solve.push(t.elapsed());
        drop(sys);
        let t = Instant::now();
        let proof = prove(&key, &s, &w, &mut OsRng).unwrap();
        ours.push(t.elapsed());
        verifier.verify(&s.public_inputs(), &proof).unwrap();
        proofs.push((s.public_inputs(), proof));
        let rec = run::<S::Circuit>(Mode::Recording, &s.public_inputs(), &w);
        let t = Instant::now();
        Groth16::<Bn254>::create_random_proof_with_reduction(Replay(&rec), &stock, &mut OsRng)
            .unwrap();
        theirs.push(t.elapsed());
    }
    for v in [&mut ours, &mut theirs, &mut solve] {
        v.sort();
    }
    println!("ours {:?} stock {:?} solve {:?}", ours[5], theirs[5], solve[5]);
    let t = Instant::now();
    for (p, q) in &proofs {
        verifier.verify(p, q).unwrap();
    }
    let single = t.elapsed() / 10;
    let many: Vec<_> = proofs.iter().cycle().take(64).cloned().collect();
    let t = Instant::now();
    verifier.verify_batch(&many, &mut OsRng).unwrap();
    println!("verify {:?} batch {:?}", single, t.elapsed() / 64);
}

fn main() {
    let world = common::World::new();
    go(|| world.submission(1));
    go(|| world.registration());
}
