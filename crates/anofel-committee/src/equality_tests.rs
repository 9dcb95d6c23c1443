//! Soundness of the batched equality proof: an extractor, and provers who lie in one place.
#![allow(clippy::unwrap_used, reason = "tests")]

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::group::encode_points;

const POINTS: usize = 4;

struct World {
    rng: ChaCha20Rng,
    base: RistrettoPoint,
    secrets: Vec<Scalar>,
    keys: Vec<RistrettoPoint>,
    shares: Vec<RistrettoPoint>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let point = base(&random_scalar(&mut rng));
        let secrets: Vec<Scalar> = (0..POINTS).map(|_| random_scalar(&mut rng)).collect();
        let keys = secrets.iter().map(base).collect();
        let shares = secrets.iter().map(|x| point * x).collect();
        Self { rng, base: point, secrets, keys, shares }
    }

    fn with<T>(&self, context: &[u8], then: impl FnOnce(&Statement<'_>) -> T) -> T {
        then(&Statement {
            context,
            base: &self.base,
            keys: &self.keys,
            encoded_keys: &encode_points(&self.keys),
            shares: &self.shares,
            encoded_shares: &encode_points(&self.shares),
        })
    }

    fn prove(&mut self, context: &[u8]) -> [u8; PROOF_BYTES] {
        let mut rng = self.rng.clone();
        let proof = self.with(context, |statement| statement.prove(&self.secrets, &mut rng));
        self.rng = rng;
        proof
    }

    fn verify(&self, context: &[u8], proof: &[u8]) -> Result<(), Error> {
        self.with(context, |statement| statement.verify(proof))
    }
}

/// What a prover answers to two challenges after one first message, and the logarithm they give.
fn extract(statement: &Statement<'_>, secrets: &[Scalar], weights: &[Scalar]) -> Scalar {
    let mut rng = ChaCha20Rng::seed_from_u64(77);
    let secret: Scalar = weights.iter().zip(secrets).map(|(weight, x)| weight * x).sum();
    let nonce = random_scalar(&mut rng);
    let (e1, e2) = (random_scalar(&mut rng), random_scalar(&mut rng));
    let (z1, z2) = (respond(&nonce, &e1, &secret), respond(&nonce, &e2, &secret));
    // Both transcripts are accepting, and they begin with the same first messages.
    let sent = (base(&nonce), statement.base * nonce);
    assert_eq!(statement.first_messages(weights, &e1, &z1), sent);
    assert_eq!(statement.first_messages(weights, &e2, &z2), sent);
    (z1 - z2) * (e1 - e2).invert()
}

#[test]
fn two_answers_to_one_first_message_give_the_combined_logarithm() {
    let world = World::new(1);
    world.with(b"here", |statement| {
        let weights = statement.transcript().weights(POINTS);
        let (keys, shares) = statement.combined(&weights);
        let x = extract(statement, &world.secrets, &weights);
        assert_eq!((base(&x), statement.base * x), (keys, shares));
    });
}

#[test]
fn as_many_weights_as_points_give_every_logarithm() {
    let world = World::new(2);
    let mut rows: Vec<Vec<Scalar>> = (0..POINTS as u8)
        .map(|number| {
            world.with(&[number], |statement| {
                let mut row = statement.transcript().weights(POINTS);
                row.push(extract(statement, &world.secrets, &row));
                row
            })
        })
        .collect();
    let found = solve(&mut rows);
    for ((x, key), share) in found.iter().zip(&world.keys).zip(&world.shares) {
        assert_eq!((base(x), world.base * x), (*key, *share));
    }
}

/// Gauss–Jordan elimination on an augmented matrix with an inverse.
fn solve(rows: &mut [Vec<Scalar>]) -> Vec<Scalar> {
    for pivot in 0..rows.len() {
        let inverse = rows[pivot][pivot].invert();
        rows[pivot].iter_mut().for_each(|value| *value *= inverse);
        let reference = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != pivot) {
            let factor = row[pivot];
            row.iter_mut().zip(&reference).for_each(|(value, one)| *value -= factor * one);
        }
    }
    rows.iter().map(|row| *row.last().unwrap()).collect()
}

#[test]
fn a_prover_who_lies_in_one_coordinate_is_refused() {
    for j in 0..POINTS {
        let mut world = World::new(3);
        let honest = world.prove(b"here");
        assert_eq!(world.verify(b"here", &honest), Ok(()));
        world.shares[j] += base(&Scalar::ONE);
        // The old proof, and one that the liar makes for the wrong point itself.
        let own = world.prove(b"here");
        for proof in [honest, own] {
            let wrong = Err(Error::Proof { what: "the equality of logarithms" });
            assert_eq!(world.verify(b"here", &proof), wrong, "D_{j}");
        }
    }
}

#[test]
fn each_equation_is_checked() {
    // Keys of x and shares of y: a proof with either secret satisfies one equation and not the other.
    let mut world = World::new(4);
    let honest = world.secrets.clone();
    let other: Vec<Scalar> = honest.iter().map(|x| x + Scalar::ONE).collect();
    world.shares = other.iter().map(|y| world.base * y).collect();
    for secrets in [honest, other] {
        world.secrets = secrets;
        let proof = world.prove(b"here");
        assert!(world.verify(b"here", &proof).is_err());
    }
}
