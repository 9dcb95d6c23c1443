//! Registration: a client's dataset is certified, and it registers once (step 1.b, §4.3.1).

use std::sync::OnceLock;

use anofel_primitives::babyjubjub::{base8, generator_f, EdwardsConfig, Point};
use anofel_primitives::commitment::{Commitment, Salt};
use anofel_primitives::eddsa::{Certificate, CertifierKey};
use anofel_primitives::hash::{self, Domain};
use anofel_primitives::identity::{DatasetDigest, DatasetType, MasterSecret};
use anofel_primitives::merkle::{Path, Root, TreeKind, ARITY};
use anofel_primitives::prf::{Epoch, MessageKeyHash, RegistrationNullifier, Tag};
use anofel_primitives::Fr;
use ark_ec::twisted_edwards::Projective;
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, BigInteger, BigInteger256, Field, PrimeField};

use super::{Circuit, Statement, StatementKind};
use crate::gadgets::curve::{signed_multiple, Edwards, FixedBase};
use crate::gadgets::digits::{enforce_bits, integer, odd_digits};
use crate::gadgets::{poseidon, tree};
use crate::system::{Clause, Lc, System};

/// 1.
pub const MASTER_PUBLIC_KEY: Clause = "registration 1: mpk = H(msk)";
/// 2.
pub const COMMITMENT: Clause = "registration 2: comm = H(d, msk, dt, salt)";
/// 3, first part.
pub const KEY_ON_CURVE: Clause =
    "registration 3a: the certifier key A is a point of the curve, not of low order";
/// 3, second part.
pub const R8_ON_CURVE: Clause = "registration 3b: R8 is a point of the curve";
/// 3, third part.
pub const S_CANONICAL: Clause = "registration 3c: S is below the group order";
/// 3, fourth part.
pub const CHALLENGE_CANONICAL: Clause =
    "registration 3d: h is the canonical integer of H(R8, A, H(d, mpk, dt))";
/// 3, fifth part.
pub const SIGNATURE: Clause = "registration 3e: S·B8 = R8 + 8·h·A";
/// 4.
pub const CERTIFIER: Clause =
    "registration 4: the certifier key is a leaf under the certifier root";
/// 5.
pub const TAG: Clause = "registration 5: tag = H(msk, a)";
/// 6.
pub const NULLIFIER: Clause = "registration 6: registration nullifier = H(msk, d, E)";
/// 7.
pub const DATASET_TYPE: Clause = "registration 7: dt < 2^32";

/// What the board sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistrationStatement {
    /// A root in the board's window of certifier roots.
    pub certifier_root: Root,
    /// The client's new leaf.
    pub commitment: Commitment,
    /// Unique for (msk, d, E).
    pub nullifier: RegistrationNullifier,
    /// The epoch of the client tree.
    pub epoch: Epoch,
    /// H(msk, a).
    pub tag: Tag,
    /// H(pk_sig).
    pub a: MessageKeyHash,
}

/// What the client keeps. The integers S and h are witnesses of their own, so that the
/// constraints on them can be tested alone.
#[derive(Clone, zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub struct RegistrationWitness {
    /// d.
    pub d: Fr,
    /// dt.
    pub dt: Fr,
    /// The salt of the commitment.
    pub salt: Fr,
    /// msk.
    pub msk: Fr,
    /// mpk.
    pub mpk: Fr,
    /// A.
    pub key: Point,
    /// R8.
    pub r8: Point,
    /// S as an integer.
    pub s: BigInteger256,
    /// h as an integer.
    pub h: BigInteger256,
    /// The way from A's leaf to the certifier root.
    pub path: Path,
}

impl RegistrationWitness {
    /// The witness of a client with a certificate of this key.
    pub fn new(
        d: DatasetDigest,
        dt: DatasetType,
        salt: &Salt,
        msk: &MasterSecret,
        key: &CertifierKey,
        certificate: &Certificate,
        path: Path,
    ) -> Self {
        let mpk = msk.public_key().element();
        let mut witness = Self {
            d: d.element(),
            dt: dt.element(),
            salt: salt.element(),
            msk: msk.element(),
            mpk,
            key: key.point(),
            r8: certificate.r8(),
            s: certificate.s().into_bigint(),
            h: BigInteger256::zero(),
            path,
        };
        witness.h = witness.challenge().into_bigint();
        witness
    }

    /// H(R8, A, H(d, mpk, dt)).
    pub fn challenge(&self) -> Fr {
        let message = hash::hash(Domain::Certificate, &[self.d, self.mpk, self.dt]);
        let (r8, key) = (self.r8, self.key);
        hash::hash(Domain::Circomlib, &[r8.x, r8.y, key.x, key.y, message])
    }
}

/// The constraints.
pub struct RegistrationCircuit;

impl Statement for RegistrationStatement {
    type Circuit = RegistrationCircuit;

    fn public_inputs(&self) -> Vec<Fr> {
        vec![
            self.certifier_root.element(),
            self.commitment.element(),
            self.nullifier.element(),
            self.epoch.element(),
            self.tag.element(),
            self.a.element(),
        ]
    }
}

impl Circuit for RegistrationCircuit {
    type Witness = RegistrationWitness;
    const KIND: StatementKind = StatementKind::Registration;
    const PUBLIC_INPUTS: &'static [&'static str] =
        &["certifier root", "comm", "registration nullifier", "E", "tag", "a"];

    fn constrain(system: &mut System, public: &[Lc], witness: &RegistrationWitness) {
        let [root, comm, nullifier, epoch, tag, a] = public else {
            unreachable!("run checks the number of inputs")
        };
        let d = system.variable(witness.d);
        let dt = system.variable(witness.dt);
        let salt = system.variable(witness.salt);
        let msk = system.variable(witness.msk);
        let mpk = system.variable(witness.mpk);
        let key = Edwards::variables(system, &witness.key);
        let r8 = Edwards::variables(system, &witness.r8);

        system.clause(MASTER_PUBLIC_KEY);
        let hash = poseidon::hash(system, Domain::MasterPublicKey, std::slice::from_ref(&msk));
        system.enforce_equal(&hash, &mpk);

        system.clause(COMMITMENT);
        let inputs = [d.clone(), msk.clone(), dt.clone(), salt];
        let hash = poseidon::hash(system, Domain::Commitment, &inputs);
        system.enforce_equal(&hash, comm);

        let message = [d.clone(), mpk, dt.clone()];
        constrain_signature(system, &key, &r8, message, witness);

        system.clause(CERTIFIER);
        let leaf = poseidon::hash(system, Domain::CertifierLeaf, &[key.x, key.y]);
        let found = tree::root(system, TreeKind::Certifiers, &leaf, &witness.path);
        system.enforce_equal(&found, root);

        system.clause(TAG);
        let hash = poseidon::hash(system, Domain::Tag, &[msk.clone(), a.clone()]);
        system.enforce_equal(&hash, tag);

        system.clause(NULLIFIER);
        let inputs = [msk, d, epoch.clone()];
        let hash = poseidon::hash(system, Domain::RegistrationNullifier, &inputs);
        system.enforce_equal(&hash, nullifier);

        system.clause(DATASET_TYPE);
        enforce_bits(system, &dt, 32);
    }

    fn blank() -> RegistrationWitness {
        let zero = Fr::ZERO;
        RegistrationWitness {
            d: zero,
            dt: zero,
            salt: zero,
            msk: zero,
            mpk: zero,
            key: base8(),
            r8: base8(),
            s: BigInteger256::zero(),
            h: BigInteger256::zero(),
            path: Path::from_levels(vec![[zero; ARITY]; TreeKind::Certifiers.depth()]),
        }
    }
}

/// Bits of h: it is a field element.
const CHALLENGE_BITS: usize = 254;
/// Where h is split to compare it with the field's modulus.
const CHALLENGE_LOW_BITS: usize = 127;
/// Windows of S: 84 of three bits hold every integer below the group order.
const S_WINDOWS: usize = 84;
/// Where S is split to compare it with the group order: 42 windows, 126 bits.
const S_LOW_WINDOWS: usize = 42;
/// Bits of the upper part of the group order: 2^250 < l < 2^251.
const S_HIGH_BITS: usize = 125;

/// Clauses 3a to 3e: S·B8 = R8 + 8·h·A, the equation of iden3's EdDSA.
///
/// 8·h·A is computed as (2·h + 1)·4A − 4A, starting from the constant F; so the equation that
/// is enforced is u·(B8/2) + [offset + 2^254·F] + 4A = R8 + Q with Q = 2^254·F + (2·h + 1)·4A.
fn constrain_signature(
    system: &mut System,
    key: &Edwards,
    r8: &Edwards,
    message: [Lc; 3],
    witness: &RegistrationWitness,
) {
    system.clause(KEY_ON_CURVE);
    key.enforce_on_curve(system);
    // A point of order 1 or 2 has no Montgomery form; one of order 4 or 8 fails to double.
    let twice = key.to_montgomery(system).double(system);
    let four_times = twice.double(system);
    four_times.enforce_not_of_order_two(system);

    system.clause(R8_ON_CURVE);
    r8.enforce_on_curve(system);

    system.clause(S_CANONICAL);
    let s_digits = odd_digits(system, &witness.s, S_WINDOWS);
    let high = integer(system, &s_digits[S_LOW_WINDOWS..]);
    let largest = upper_part(<Scalar as PrimeField>::MODULUS, 3 * S_LOW_WINDOWS);
    enforce_below(system, &high, largest, S_HIGH_BITS);

    system.clause(CHALLENGE_CANONICAL);
    let message = poseidon::hash(system, Domain::Certificate, &message);
    let inputs = [r8.x.clone(), r8.y.clone(), key.x.clone(), key.y.clone(), message];
    let challenge = poseidon::hash(system, Domain::Circomlib, &inputs);
    let signs: Vec<Lc> = (0..CHALLENGE_BITS).map(|i| sign(system, witness.h.get_bit(i))).collect();
    let (low, high) = signs.split_at(CHALLENGE_LOW_BITS);
    let (low, high) = (unsigned(system, low), unsigned(system, high));
    let shift = Fr::from(2u64).pow([CHALLENGE_LOW_BITS as u64]);
    system.enforce_equal(&low.plus(&high.scale(shift)), &challenge);
    let largest = upper_part(Fr::MODULUS, CHALLENGE_LOW_BITS);
    enforce_below(system, &high, largest, CHALLENGE_BITS - CHALLENGE_LOW_BITS);

    system.clause(SIGNATURE);
    let tables = SignatureTables::get();
    let left = tables.base8.multiply(system, &s_digits);
    let left = left.add_constant(system, &tables.constant);
    let four_times_key = four_times.to_edwards(system);
    let left = left.add(system, &four_times_key);
    let multiple = signed_multiple(system, &generator_f(), &four_times, &signs);
    let multiple = multiple.to_edwards(system);
    let right = r8.add(system, &multiple);
    left.enforce_equal(system, &right);
}

type Scalar = anofel_primitives::babyjubjub::Scalar;

/// The constants of clause 3e.
struct SignatureTables {
    base8: FixedBase,
    /// offset + 2^254·F.
    constant: Point,
}

impl SignatureTables {
    fn get() -> &'static Self {
        static TABLES: OnceLock<SignatureTables> = OnceLock::new();
        TABLES.get_or_init(|| {
            let base8 = FixedBase::new(&base8(), &[3; S_WINDOWS]);
            let power = Scalar::from(2u64).pow([CHALLENGE_BITS as u64]);
            let start: Projective<EdwardsConfig> = generator_f() * power;
            let constant = (start + base8.offset()).into_affine();
            Self { base8, constant }
        })
    }
}

/// 1 for a set bit, −1 for a clear one.
fn sign(system: &mut System, bit: bool) -> Lc {
    let sign = system.variable(if bit { Fr::ONE } else { -Fr::ONE });
    let one = system.constant(Fr::ONE);
    system.enforce(&sign, &sign, &one);
    sign
}

/// Σ b_i·2^i for signs s_i = 2·b_i − 1.
fn unsigned(system: &System, signs: &[Lc]) -> Lc {
    let mut power = Fr::from(2u64).inverse().expect("2 is not 0 in the field");
    let mut parts = Vec::with_capacity(signs.len());
    let mut offset = Fr::ZERO;
    for sign in signs {
        parts.push((power, sign));
        offset += power;
        power.double_in_place();
    }
    Lc::sum(parts).plus(&system.constant(offset))
}

/// The bits of modulus − 1 from `low` on, as an integer.
fn upper_part(modulus: BigInteger256, low: usize) -> Fr {
    let mut upper = modulus;
    upper.sub_with_borrow(&BigInteger256::one());
    Fr::from_bigint(upper >> low as u32).expect("a part of an integer of 254 bits")
}

/// high < bound, which makes low + 2^k·high smaller than the modulus for every low.
///
/// An honest integer whose upper part equals that of modulus − 1 would be refused too; that
/// happens to fewer than one in 2^125.
fn enforce_below(system: &mut System, high: &Lc, bound: Fr, bits: usize) {
    let difference = system.constant(bound - Fr::ONE).minus(high);
    enforce_bits(system, &difference, bits);
}
