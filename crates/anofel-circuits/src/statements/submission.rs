//! Submission: a registered client posts once in an iteration (step 5, §4.3.2).

use std::sync::OnceLock;

use anofel_primitives::babyjubjub::{generator_g, generator_h, Scalar};
use anofel_primitives::commitment::{Salt, TypeBlinding, TypeCommitment};
use anofel_primitives::hash::Domain;
use anofel_primitives::identity::{DatasetDigest, DatasetType, MasterSecret};
use anofel_primitives::merkle::{Path, Root, TreeKind, ARITY};
use anofel_primitives::prf::{IterationNullifier, MessageKeyHash, Scope, Tag};
use anofel_primitives::Fr;
use ark_ec::twisted_edwards::Projective;
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, PrimeField};

use super::{Circuit, Statement, StatementKind};
use crate::gadgets::curve::FixedBase;
use crate::gadgets::digits::{integer, odd_digits, OddDigit};
use crate::gadgets::{poseidon, tree};
use crate::system::{Clause, Lc, System};

/// 1.
pub const MEMBERSHIP: Clause =
    "submission 1: comm = H(d, msk, dt, salt) is a leaf under the client root";
/// 2.
pub const TAG: Clause = "submission 2: tag = H(msk, a)";
/// 3.
pub const NULLIFIER: Clause = "submission 3: iteration nullifier = H(msk, d, scope)";
/// 4, first part.
pub const DATASET_TYPE: Clause = "submission 4a: dt < 2^32";
/// 4, second part.
pub const TYPE_COMMITMENT: Clause = "submission 4b: the dt commitment is dt·G + ρ·H";

/// What the board sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmissionStatement {
    /// The client root fixed when the iteration opened.
    pub client_root: Root,
    /// Unique for (msk, d, scope).
    pub nullifier: IterationNullifier,
    /// H(msk, a).
    pub tag: Tag,
    /// H(pk_sig).
    pub a: MessageKeyHash,
    /// H(genesis, bundle, iteration).
    pub scope: Scope,
    /// dt·G + ρ·H.
    pub type_commitment: TypeCommitment,
}

/// What the client keeps.
#[derive(Clone, zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub struct SubmissionWitness {
    /// d.
    pub d: Fr,
    /// dt.
    pub dt: Fr,
    /// The salt of the commitment.
    pub salt: Fr,
    /// msk.
    pub msk: Fr,
    /// The way from the commitment to the client root.
    pub path: Path,
    /// ρ.
    pub rho: Scalar,
}

impl SubmissionWitness {
    /// The witness of a client.
    pub fn new(
        d: DatasetDigest,
        dt: DatasetType,
        salt: &Salt,
        msk: &MasterSecret,
        path: Path,
        rho: &TypeBlinding,
    ) -> Self {
        Self {
            d: d.element(),
            dt: dt.element(),
            salt: salt.element(),
            msk: msk.element(),
            path,
            rho: rho.scalar(),
        }
    }
}

/// The constraints.
pub struct SubmissionCircuit;

impl Statement for SubmissionStatement {
    type Circuit = SubmissionCircuit;

    fn public_inputs(&self) -> Vec<Fr> {
        let commitment = self.type_commitment.point();
        vec![
            self.client_root.element(),
            self.nullifier.element(),
            self.tag.element(),
            self.a.element(),
            self.scope.element(),
            commitment.x,
            commitment.y,
        ]
    }
}

impl Circuit for SubmissionCircuit {
    type Witness = SubmissionWitness;
    const KIND: StatementKind = StatementKind::Submission;
    const PUBLIC_INPUTS: &'static [&'static str] = &[
        "client root",
        "iteration nullifier",
        "tag",
        "a",
        "scope",
        "dt commitment x",
        "dt commitment y",
    ];

    fn constrain(system: &mut System, public: &[Lc], witness: &SubmissionWitness) {
        let [root, nullifier, tag, a, scope, type_x, type_y] = public else {
            unreachable!("run checks the number of inputs")
        };
        let d = system.variable(witness.d);
        let dt = system.variable(witness.dt);
        let salt = system.variable(witness.salt);
        let msk = system.variable(witness.msk);

        system.clause(MEMBERSHIP);
        let inputs = [d.clone(), msk.clone(), dt.clone(), salt];
        let comm = poseidon::hash(system, Domain::Commitment, &inputs);
        let found = tree::root(system, TreeKind::Clients, &comm, &witness.path);
        system.enforce_equal(&found, root);

        system.clause(TAG);
        let hash = poseidon::hash(system, Domain::Tag, &[msk.clone(), a.clone()]);
        system.enforce_equal(&hash, tag);

        system.clause(NULLIFIER);
        let inputs = [msk, d, scope.clone()];
        let hash = poseidon::hash(system, Domain::IterationNullifier, &inputs);
        system.enforce_equal(&hash, nullifier);

        system.clause(DATASET_TYPE);
        let type_digits = type_digits(system, &dt);
        let digits_value = integer(system, &type_digits);
        system.enforce_equal(&digits_value, &dt);

        system.clause(TYPE_COMMITMENT);
        let tables = CommitmentTables::get();
        let rho = witness.rho.into_bigint();
        let rho_digits = odd_digits(system, &rho, BLINDING_WINDOWS.len());
        let blinded = tables.h.multiply(system, &rho_digits);
        let typed = tables.g.multiply(system, &type_digits);
        let sum = typed.add(system, &blinded);
        let commitment = sum.add_constant(system, &tables.constant);
        system.enforce_equal(&commitment.x, type_x);
        system.enforce_equal(&commitment.y, type_y);
    }

    fn blank() -> SubmissionWitness {
        let zero = Fr::ZERO;
        SubmissionWitness {
            d: zero,
            dt: zero,
            salt: zero,
            msk: zero,
            path: Path::from_levels(vec![[zero; ARITY]; TreeKind::Clients.depth()]),
            rho: Scalar::ZERO,
        }
    }
}

/// Ten windows of three bits and one of two: 32 bits.
const TYPE_WINDOWS: [usize; 11] = [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2];
/// 84 windows of three bits hold every integer below the group order. ρ needs no upper bound:
/// every integer is a blinding.
const BLINDING_WINDOWS: [usize; 84] = [3; 84];

/// The odd digits of the low 32 bits of dt; that they are all of dt is a constraint.
fn type_digits(system: &mut System, dt: &Lc) -> Vec<OddDigit> {
    let low = dt.value().into_bigint().0[0];
    let mut digits: Vec<OddDigit> =
        (0..10).map(|i| OddDigit::of_three_bits(system, low >> (3 * i))).collect();
    digits.push(OddDigit::of_two_bits(system, low >> 30));
    digits
}

/// The constants of clause 4b.
struct CommitmentTables {
    g: FixedBase,
    h: FixedBase,
    /// The offsets of both.
    constant: anofel_primitives::babyjubjub::Point,
}

impl CommitmentTables {
    fn get() -> &'static Self {
        static TABLES: OnceLock<CommitmentTables> = OnceLock::new();
        TABLES.get_or_init(|| {
            let g = FixedBase::new(&generator_g(), &TYPE_WINDOWS);
            let h = FixedBase::new(&generator_h(), &BLINDING_WINDOWS);
            let sum = Projective::from(g.offset()) + h.offset();
            Self { g, h, constant: sum.into_affine() }
        })
    }
}
