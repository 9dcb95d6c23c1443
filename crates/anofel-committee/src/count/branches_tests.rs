//! The branches of a bit: completeness, and what each byte and point moves.
#![allow(clippy::unwrap_used, reason = "tests")]

use rand::rngs::OsRng;

use super::*;

const TOTAL: u128 = 0x1234_5678_9abc_def0_0fed_cba9_8765_4321;

fn statement(one: u8) -> (BitStatement, Scalar) {
    let (key, k) = (base(&random_scalar(&mut OsRng)), random_scalar(&mut OsRng));
    let v = key * k + base(&Scalar::from(one));
    (BitStatement { key, ciphertext: Ciphertext { u: base(&k), v } }, k)
}

fn adds_up(branches: &Branches) -> bool {
    let [zero, one] = branches.challenges();
    zero.wrapping_add(one) == TOTAL
}

#[test]
fn both_bits_are_proven_by_their_own_branch() {
    for one in [0, 1] {
        let (statement, k) = statement(one);
        let secret = SecretBranches::draw(&statement, &k, one, &mut OsRng).unwrap();
        let branches = secret.respond(TOTAL);
        assert!(adds_up(&branches));
        assert_eq!(&branches.first_messages(&statement), secret.first_messages());
        assert_eq!(secret.simulated_zero(), (one == 1).then_some(branches.challenges()[0]));
        assert_eq!(Branches::from_bytes(&branches.to_bytes()).unwrap(), branches);
    }
}

#[test]
fn a_bit_that_is_not_opened_is_refused() {
    let (statement, k) = statement(1);
    for (scalar, one) in [(k, 0), (k + Scalar::ONE, 1)] {
        assert!(SecretBranches::draw(&statement, &scalar, one, &mut OsRng).is_err());
    }
    let other = BitStatement { key: base(&random_scalar(&mut OsRng)), ..statement };
    assert!(SecretBranches::draw(&other, &k, 1, &mut OsRng).is_err());
}

#[test]
fn every_byte_and_every_point_of_the_statement_moves_a_first_message() {
    let (statement, k) = statement(0);
    let secret = SecretBranches::draw(&statement, &k, 0, &mut OsRng).unwrap();
    let branches = secret.respond(TOTAL);
    let bytes = branches.to_bytes();
    for (place, moved) in [(0, 0..64), (16, 0..64), (48, 64..128), (64, 64..128)] {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let messages = Branches::from_bytes(&changed).unwrap().first_messages(&statement);
        for (at, expected) in secret.first_messages().chunks(32).enumerate() {
            let differs = &messages[32 * at..32 * at + 32] != expected;
            assert_eq!(differs, moved.contains(&(32 * at)), "byte {place}, point {at}");
        }
    }
    let Ciphertext { u, v } = statement.ciphertext;
    let shifted = u + RISTRETTO_BASEPOINT_POINT;
    let changes = [
        BitStatement { key: statement.key + u, ..statement },
        BitStatement { ciphertext: Ciphertext { u: shifted, v }, ..statement },
        BitStatement { ciphertext: Ciphertext { u, v: v + u }, ..statement },
    ];
    for changed in &changes {
        assert_ne!(&branches.first_messages(changed), secret.first_messages());
    }
}

#[test]
fn branches_have_their_length_and_canonical_responses() {
    let (statement, k) = statement(0);
    let bytes =
        SecretBranches::draw(&statement, &k, 0, &mut OsRng).unwrap().respond(TOTAL).to_bytes();
    assert_eq!(bytes.len(), BRANCHES_BYTES);
    assert!(Branches::from_bytes(&bytes[1..]).is_err());
    for response in [CHALLENGE_BYTES, BRANCH_BYTES + CHALLENGE_BYTES] {
        let mut changed = bytes.clone();
        changed[response..response + ELEMENT_BYTES].fill(0xff);
        assert!(matches!(Branches::from_bytes(&changed), Err(Error::NotCanonical { .. })));
    }
}
