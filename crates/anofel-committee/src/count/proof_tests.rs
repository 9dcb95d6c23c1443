//! Dishonest provers: everything is proven as well as it can be, and one equation is false.
#![allow(clippy::unwrap_used, reason = "tests")]

use anofel_primitives::commitment::{TypeBlinding, TypeCommitment};
use anofel_primitives::identity::DatasetType;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::super::ballot::{Accepts, Committee};
use super::*;
use crate::group::small_scalar;

/// A bundle of two: the first task takes types 3 and 7, the second any.
struct Setting {
    bundle: Bundle,
    randomness: Vec<Scalar>,
    rho: TypeScalar,
    rng: ChaCha20Rng,
}

const ZERO: usize = 0;
const TYPE_3: usize = 1;
const TYPE_7: usize = 2;
const ANY: usize = 1;
const NONE: usize = 0;
const SINGLE: usize = 1;

fn setting(dataset_type: u32) -> Setting {
    let mut rng = ChaCha20Rng::seed_from_u64(42);
    let blinding = TypeBlinding::generate(&mut rng);
    let mut committee = |accepts| {
        let key = base(&random_scalar(&mut rng)).compress();
        Committee::new([9; 32], key.as_bytes(), accepts).unwrap()
    };
    let committees = vec![committee(Accepts::Types(vec![3, 7])), committee(Accepts::Any)];
    let bundle = Bundle {
        genesis: [1; 32],
        scope: [2; 32],
        nullifier: [3; 32],
        tag: [4; 32],
        pk_sig: [5; 32],
        type_commitment: TypeCommitment::new(DatasetType(dataset_type), &blinding),
        committees,
    };
    let randomness = vec![random_scalar(&mut rng), random_scalar(&mut rng)];
    Setting { bundle, randomness, rho: blinding.scalar(), rng }
}

impl Setting {
    fn encrypt(&self, bits: [i64; 2]) -> Vec<Ciphertext> {
        bits.iter()
            .zip(self.bundle.committees.iter().zip(&self.randomness))
            .map(|(&bit, (committee, k))| Ciphertext {
                u: base(k),
                v: committee.key * k + base(&small_scalar(bit)),
            })
            .collect()
    }

    /// Proves by the given branches and verifies.
    fn attempt(&mut self, ciphertexts: &[Ciphertext], truths: [usize; 3]) -> Result<(), Error> {
        let proof =
            prove(&self.bundle, ciphertexts, &self.randomness, &self.rho, &truths, &mut self.rng);
        verify(&self.bundle, ciphertexts, &proof)
    }
}

fn refused(result: Result<(), Error>) {
    assert_eq!(result, Err(Error::Proof { what: "the proof of the encrypted bits" }));
}

#[test]
fn every_true_branch_is_accepted() {
    for (dataset_type, bits, truths) in [
        (3, [0, 0], [ZERO, ZERO, NONE]),
        (3, [1, 0], [TYPE_3, ZERO, SINGLE]),
        (7, [1, 0], [TYPE_7, ZERO, SINGLE]),
        (5, [0, 1], [ZERO, ANY, SINGLE]),
    ] {
        let mut setting = setting(dataset_type);
        let ciphertexts = setting.encrypt(bits);
        assert_eq!(setting.attempt(&ciphertexts, truths), Ok(()));
    }
}

#[test]
fn a_zero_with_another_u_is_refused() {
    let mut setting = setting(3);
    let mut ciphertexts = setting.encrypt([0, 0]);
    ciphertexts[0].u += RISTRETTO_BASEPOINT_POINT;
    refused(setting.attempt(&ciphertexts, [ZERO, ZERO, NONE]));
}

#[test]
fn a_bit_that_is_neither_zero_nor_one_is_refused() {
    // The bundle's sum is kept at 1, so that only the committees' own equations are false.
    for (bits, truths) in [
        ([2, -1], [ZERO, ZERO, SINGLE]),
        ([2, -1], [TYPE_3, ANY, SINGLE]),
        ([-1, 1], [ZERO, ANY, NONE]),
    ] {
        let mut setting = setting(3);
        let ciphertexts = setting.encrypt(bits);
        refused(setting.attempt(&ciphertexts, truths));
    }
}

#[test]
fn a_one_for_a_task_that_does_not_take_the_type_is_refused() {
    let mut setting = setting(5);
    let ciphertexts = setting.encrypt([1, 0]);
    refused(setting.attempt(&ciphertexts, [TYPE_3, ZERO, SINGLE]));
    refused(setting.attempt(&ciphertexts, [TYPE_7, ZERO, SINGLE]));
}

#[test]
fn a_type_of_the_list_other_than_the_own_is_refused() {
    let mut setting = setting(3);
    let ciphertexts = setting.encrypt([1, 0]);
    refused(setting.attempt(&ciphertexts, [TYPE_7, ZERO, SINGLE]));
}

#[test]
fn two_ones_are_refused_though_each_is_a_bit() {
    let mut setting = setting(3);
    let ciphertexts = setting.encrypt([1, 1]);
    refused(setting.attempt(&ciphertexts, [TYPE_3, ANY, SINGLE]));
    refused(setting.attempt(&ciphertexts, [TYPE_3, ANY, NONE]));
}

#[test]
fn the_sum_must_be_the_one_claimed() {
    let mut setting = setting(3);
    let ciphertexts = setting.encrypt([1, 0]);
    refused(setting.attempt(&ciphertexts, [TYPE_3, ZERO, NONE]));
}

#[test]
fn every_challenge_and_response_counts() {
    let mut setting = setting(3);
    let ciphertexts = setting.encrypt([1, 0]);
    let truths = [TYPE_3, ZERO, SINGLE];
    let proof = prove(
        &setting.bundle,
        &ciphertexts,
        &setting.randomness,
        &setting.rho,
        &truths,
        &mut setting.rng,
    );
    for or in 0..proof.ors.len() {
        for branch in 0..proof.ors[or].len() {
            let tamper = |change: &dyn Fn(&mut Branch)| {
                let mut proof = proof.clone();
                change(&mut proof.ors[or][branch]);
                refused(verify(&setting.bundle, &ciphertexts, &proof));
            };
            tamper(&|branch| branch.challenge = branch.challenge.wrapping_add(1));
            for index in 0..proof.ors[or][branch].responses.len() {
                tamper(&|branch| branch.responses[index] += Scalar::ONE);
            }
            if proof.ors[or][branch].type_response.is_some() {
                tamper(&|branch| {
                    branch.type_response = branch.type_response.map(|z| z + TypeScalar::from(1u8));
                });
            }
        }
    }
}

#[test]
fn challenges_that_add_up_in_one_or_only_are_refused() {
    // Move a difference between two branches of one OR: the sum is right, the equations are not.
    let mut setting = setting(3);
    let ciphertexts = setting.encrypt([0, 0]);
    let truths = [ZERO, ZERO, NONE];
    let mut proof = prove(
        &setting.bundle,
        &ciphertexts,
        &setting.randomness,
        &setting.rho,
        &truths,
        &mut setting.rng,
    );
    proof.ors[0][0].challenge = proof.ors[0][0].challenge.wrapping_add(1);
    proof.ors[0][1].challenge = proof.ors[0][1].challenge.wrapping_sub(1);
    refused(verify(&setting.bundle, &ciphertexts, &proof));
}

#[test]
fn two_answers_to_one_first_message_give_the_randomness_and_the_blinding() {
    let mut setting = setting(3);
    let claims = claims(&setting.bundle);
    let claim = &claims[0][TYPE_3];
    let nonces = Nonces::new(claim, &mut setting.rng);
    let again = Nonces(nonces.0.clone());
    let one = nonces.respond(claim, 1000, &setting.randomness, &setting.rho);
    let two = again.respond(claim, 7, &setting.randomness, &setting.rho);
    let k = (one.responses[0] - two.responses[0]) * Scalar::from(993u64).invert();
    assert_eq!(k, setting.randomness[0]);
    let difference = one.type_response.unwrap() - two.type_response.unwrap();
    assert_eq!(difference, TypeScalar::from(993u64) * setting.rho);
}
