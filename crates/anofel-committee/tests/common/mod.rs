//! A dealer for tests: it knows every secret, which no part of the library allows.
#![allow(dead_code, missing_docs, reason = "each test file uses its own part")]

use anofel_committee::group::{base, encode_points, evaluate};
use anofel_committee::keys::{SecretShares, Shape, ThresholdKeys};
use curve25519_dalek::scalar::Scalar;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

pub struct InsecureDealt {
    pub keys: ThresholdKeys,
    pub shares: Vec<SecretShares>,
    pub secrets: Vec<Scalar>,
}

pub fn insecure_deal(shape: Shape, rng: &mut (impl RngCore + CryptoRng)) -> InsecureDealt {
    let polynomials: Vec<Vec<Scalar>> = (0..shape.num_keys)
        .map(|_| (0..shape.threshold).map(|_| Scalar::random(rng)).collect())
        .collect();
    let rows: Vec<Vec<Scalar>> = (0..=shape.num_members)
        .map(|at| polynomials.iter().map(|f| evaluate(f, at)).collect())
        .collect();
    let points: Vec<_> = rows.iter().flatten().map(base).collect();
    let keys = ThresholdKeys::from_bytes(shape, encode_points(&points).as_flattened())
        .expect("honestly dealt keys validate");
    let shares = shape
        .members()
        .map(|member| {
            let bytes: Vec<u8> =
                rows[usize::from(member)].iter().flat_map(|x| x.to_bytes()).collect();
            SecretShares::from_bytes(&keys, member, &bytes).expect("honest shares match")
        })
        .collect();
    InsecureDealt { keys, shares, secrets: rows[0].clone() }
}

pub fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}
