//! Registration: clauses 1 to 7.

use anofel_circuits::statements::registration;
use anofel_primitives::babyjubjub::{Point, Scalar};
use anofel_primitives::hash::{hash, Domain};
use anofel_primitives::merkle::{Path, TreeKind};
use anofel_primitives::Fr;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInteger, BigInteger256, Field, PrimeField, UniformRand};
use rand::rngs::OsRng;

use crate::common::draft::{of_order_eight, plant, random, registered, Registration};
use crate::{failed, fails, holds, only};

#[test]
fn r1_an_mpk_in_the_certificate_that_is_not_the_clients_is_refused() {
    let mut draft = Registration::new();
    draft.mpk = hash(Domain::MasterPublicKey, &[random()]);
    only(registration::MASTER_PUBLIC_KEY, &draft.finish());
}

#[test]
fn r2_a_commitment_to_anything_else_is_refused() {
    let draft = Registration::new();
    let good = [draft.d, draft.msk, draft.dt, draft.salt];
    for position in 0..4 {
        let mut inputs = good;
        inputs[position] += Fr::ONE;
        let (mut statement, witness) = draft.finish();
        statement.0[registered::COMM] = hash(Domain::Commitment, &inputs);
        only(registration::COMMITMENT, &(statement, witness));
    }
}

#[test]
fn r3a_a_certifier_key_of_low_order_is_refused() {
    let point = of_order_eight();
    let mut draft = Registration::new();
    draft.secret = Scalar::ZERO;
    // 8·h·A is the neutral element, so the equation holds for S = the nonce.
    draft.key = point;
    only(registration::KEY_ON_CURVE, &draft.finish());
    // For the smaller orders the multiples of A are not defined, so the equation fails too.
    for factor in [2u8, 4, 8] {
        draft.key = point.mul_bigint([u64::from(factor)]).into_affine();
        fails(&[registration::KEY_ON_CURVE, registration::SIGNATURE], &draft.finish());
    }
}

#[test]
fn r3a_a_certifier_key_off_the_curve_is_refused() {
    let mut draft = Registration::new();
    draft.key = Point::new_unchecked(draft.key.x, draft.key.y + Fr::ONE);
    fails(&[registration::KEY_ON_CURVE, registration::SIGNATURE], &draft.finish());
}

#[test]
fn r3b_r8_off_the_curve_is_refused() {
    // h hashes R8, so nobody can choose an R8 off the curve for which the equation holds.
    // That the clause stands by itself is tested in mutation.rs.
    let mut draft = Registration::new();
    draft.r8 = Point::new_unchecked(draft.r8.x, draft.r8.y + Fr::ONE);
    fails(&[registration::R8_ON_CURVE, registration::SIGNATURE], &draft.finish());
}

#[test]
fn r3c_an_s_not_below_the_group_order_is_refused() {
    let order = <Scalar as PrimeField>::MODULUS;
    let (statement, mut witness) = Registration::new().finish();
    witness.s.add_with_carry(&order);
    only(registration::S_CANONICAL, &(statement, witness));
}

#[test]
fn r3c_s_is_compared_with_the_order_at_its_edge() {
    // R8 = S·B8 − 8·h·A hashes to h, so S cannot be chosen; the clause is looked at alone.
    let order = <Scalar as PrimeField>::MODULUS;
    let (statement, witness) = Registration::new().finish();
    let refuses = |s: BigInteger256| {
        let mut witness = witness.clone();
        witness.s = s;
        failed(&statement, &witness).contains(&registration::S_CANONICAL)
    };
    // The upper halves are compared, so the last 2^125.4 integers are refused as well.
    let edge = (order >> 126) << 126;
    let mut below = edge;
    below.sub_with_borrow(&BigInteger256::one());
    assert!(!refuses(BigInteger256::zero()));
    assert!(!refuses(below));
    assert!(refuses(edge));
    assert!(refuses(order));
    assert!(refuses(BigInteger256::one() << 251));
    let mut largest = BigInteger256::one() << 252;
    largest.sub_with_borrow(&BigInteger256::one());
    assert!(refuses(largest));
}

#[test]
fn r3d_a_second_encoding_of_h_is_refused() {
    // h + r has 254 bits for a third of all h; S is made for it.
    let (draft, (statement, mut witness)) = std::iter::repeat_with(Registration::new)
        .map(|draft| (draft.clone(), draft.finish()))
        .find(|(_, (_, witness))| {
            let mut sum = witness.h;
            sum.add_with_carry(&Fr::MODULUS);
            sum.num_bits() <= 254
        })
        .unwrap();
    witness.h.add_with_carry(&Fr::MODULUS);
    witness.s = draft.response(&witness.h);
    only(registration::CHALLENGE_CANONICAL, &(statement, witness));
}

#[test]
fn r3d_another_h_is_refused() {
    let draft = Registration::new();
    let (statement, mut witness) = draft.finish();
    witness.h = random().into_bigint();
    witness.s = draft.response(&witness.h);
    only(registration::CHALLENGE_CANONICAL, &(statement, witness));
}

#[test]
fn r3e_a_wrong_signature_is_refused() {
    let draft = Registration::new();
    let (statement, mut witness) = draft.finish();
    witness.s = Scalar::rand(&mut OsRng).into_bigint();
    only(registration::SIGNATURE, &(statement, witness));
    // By a key that is not the listed one.
    let mut other = draft.clone();
    other.secret = Scalar::rand(&mut OsRng);
    only(registration::SIGNATURE, &other.finish());
}

#[test]
fn r3e_a_signature_over_another_message_is_refused() {
    let draft = Registration::new();
    let changes: [fn(&mut Registration); 3] =
        [|draft| draft.d += Fr::ONE, |draft| draft.mpk += Fr::ONE, |draft| draft.dt += Fr::ONE];
    for change in changes {
        let mut other = draft.clone();
        change(&mut other);
        let (_, signed) = other.finish();
        let (statement, mut witness) = draft.finish();
        witness.s = signed.s;
        only(registration::SIGNATURE, &(statement, witness));
    }
}

#[test]
fn r3e_r8_with_a_component_of_low_order_is_refused() {
    let mut torsion = of_order_eight();
    for _ in 0..3 {
        let mut draft = Registration::new();
        draft.r8 = (draft.r8 + torsion).into_affine();
        only(registration::SIGNATURE, &draft.finish());
        torsion = (torsion + torsion).into_affine();
    }
}

#[test]
fn a_component_of_low_order_in_the_key_changes_nothing() {
    // The factor 8 removes it. Such a key is refused when it is listed, not here.
    let mut draft = Registration::new();
    draft.key = (draft.key + of_order_eight()).into_affine();
    holds(&draft.finish());
}

#[test]
fn r4_an_unlisted_certifier_is_refused() {
    let draft = Registration::new();
    let (statement, mut witness) = draft.finish();
    let (root, path) = plant(TreeKind::Certifiers, random());
    let mut unlisted = statement.clone();
    unlisted.0[registered::ROOT] = root;
    only(registration::CERTIFIER, &(unlisted, witness.clone()));
    witness.path = path;
    only(registration::CERTIFIER, &(statement, witness));
}

#[test]
fn r4_a_key_under_the_root_of_the_client_tree_is_refused() {
    let draft = Registration::new();
    let leaf = hash(Domain::CertifierLeaf, &[draft.key.x, draft.key.y]);
    let (mut statement, mut witness) = draft.finish();
    let (root, path) = plant(TreeKind::Clients, leaf);
    statement.0[registered::ROOT] = root;
    witness.path = path;
    only(registration::CERTIFIER, &(statement, witness));
}

#[test]
fn r4_a_path_of_another_depth_is_refused() {
    let (statement, witness) = Registration::new().finish();
    let levels = witness.path.levels().to_vec();
    let depth = levels.len();
    for keep in 0..depth {
        let mut short = witness.clone();
        short.path = Path::from_levels(levels[..keep].to_vec());
        only(registration::CERTIFIER, &(statement.clone(), short));
    }
    // An inner node in the place of a leaf: the upper levels only.
    let mut shifted = witness.clone();
    shifted.path = Path::from_levels(levels[1..].to_vec());
    only(registration::CERTIFIER, &(statement, shifted));
}

#[test]
fn r4_changed_and_swapped_siblings_are_refused() {
    let (statement, witness) = Registration::new().finish();
    for level in 0..TreeKind::Certifiers.depth() {
        let mut changed = witness.path.levels().to_vec();
        changed[level][5] += Fr::ONE;
        let mut other = witness.clone();
        other.path = Path::from_levels(changed);
        only(registration::CERTIFIER, &(statement.clone(), other));
    }
    let mut swapped = witness.path.levels().to_vec();
    swapped[0].swap(0, 1);
    let mut other = witness;
    other.path = Path::from_levels(swapped);
    only(registration::CERTIFIER, &(statement, other));
}

#[test]
fn r4_the_empty_leaf_is_nobodys() {
    let (mut statement, mut witness) = Registration::new().finish();
    let (root, path) = plant(TreeKind::Certifiers, Fr::ZERO);
    statement.0[registered::ROOT] = root;
    witness.path = path;
    only(registration::CERTIFIER, &(statement, witness));
}

#[test]
fn r5_a_tag_for_anything_else_is_refused() {
    let draft = Registration::new();
    let (statement, witness) = draft.finish();
    let tags = [
        hash(Domain::Tag, &[draft.msk, draft.a + Fr::ONE]),
        hash(Domain::Tag, &[draft.msk + Fr::ONE, draft.a]),
        hash(Domain::Tag, &[draft.a, draft.msk]),
        hash(Domain::CertifierLeaf, &[draft.msk, draft.a]),
        hash(Domain::RegistrationNullifier, &[draft.msk, draft.d, draft.a]),
        hash(Domain::IterationNullifier, &[draft.msk, draft.d, draft.a]),
    ];
    for tag in tags {
        let mut changed = statement.clone();
        changed.0[registered::TAG] = tag;
        only(registration::TAG, &(changed, witness.clone()));
    }
    let mut changed = statement;
    changed.0[registered::A] += Fr::ONE;
    only(registration::TAG, &(changed, witness));
}

#[test]
fn r6_a_nullifier_for_anything_else_is_refused() {
    let draft = Registration::new();
    let (statement, witness) = draft.finish();
    let Registration { msk, d, epoch, .. } = draft;
    let nullifiers = [
        hash(Domain::RegistrationNullifier, &[msk, d, epoch + Fr::ONE]),
        hash(Domain::RegistrationNullifier, &[msk, d + Fr::ONE, epoch]),
        hash(Domain::RegistrationNullifier, &[msk + Fr::ONE, d, epoch]),
        hash(Domain::IterationNullifier, &[msk, d, epoch]),
        hash(Domain::Tag, &[msk, epoch]),
    ];
    for nullifier in nullifiers {
        let mut changed = statement.clone();
        changed.0[registered::NULLIFIER] = nullifier;
        only(registration::NULLIFIER, &(changed, witness.clone()));
    }
    let mut changed = statement;
    changed.0[registered::EPOCH] += Fr::ONE;
    only(registration::NULLIFIER, &(changed, witness));
}

#[test]
fn r7_a_dataset_type_of_33_bits_or_more_is_refused() {
    for dt in [Fr::from(1u64 << 32), Fr::from(u64::MAX), -Fr::ONE, random()] {
        let mut draft = Registration::new();
        draft.dt = dt;
        only(registration::DATASET_TYPE, &draft.finish());
    }
}
