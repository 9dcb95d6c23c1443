//! Statements put together from loose field elements and points, so that a test can make
//! values that the types of `anofel-primitives` refuse.

use std::marker::PhantomData;

use anofel_circuits::statements::ownership::OwnershipCircuit;
use anofel_circuits::statements::registration::{RegistrationCircuit, RegistrationWitness};
use anofel_circuits::statements::submission::{SubmissionCircuit, SubmissionWitness};
use anofel_circuits::statements::{Circuit, Statement};
use anofel_primitives::babyjubjub::{
    base8, generator_g, generator_h, EdwardsConfig, Point, Scalar,
};
use anofel_primitives::field;
use anofel_primitives::hash::{hash, Domain};
use anofel_primitives::merkle::{Path, Tree, TreeKind};
use anofel_primitives::Fr;
use ark_ec::twisted_edwards::TECurveConfig;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger256, Field, PrimeField, UniformRand};
use rand::rngs::OsRng;

/// A statement that is nothing but its public inputs.
pub struct Public<C>(pub Vec<Fr>, PhantomData<C>);

pub type OwnershipPublic = Public<OwnershipCircuit>;

impl<C> Public<C> {
    pub fn new(inputs: Vec<Fr>) -> Self {
        Self(inputs, PhantomData)
    }
}

impl<C> Clone for Public<C> {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl<C: Circuit> Statement for Public<C> {
    type Circuit = C;

    fn public_inputs(&self) -> Vec<Fr> {
        self.0.clone()
    }
}

/// Positions of the public inputs of a registration.
pub mod registered {
    pub const ROOT: usize = 0;
    pub const COMM: usize = 1;
    pub const NULLIFIER: usize = 2;
    pub const EPOCH: usize = 3;
    pub const TAG: usize = 4;
    pub const A: usize = 5;
}

/// Positions of the public inputs of a submission.
pub mod submitted {
    pub const ROOT: usize = 0;
    pub const NULLIFIER: usize = 1;
    pub const TAG: usize = 2;
    pub const A: usize = 3;
    pub const SCOPE: usize = 4;
    pub const TYPE_X: usize = 5;
}

pub fn random() -> Fr {
    Fr::rand(&mut OsRng)
}

/// What a registration is made from. Everything else follows from it.
#[derive(Clone)]
pub struct Registration {
    pub d: Fr,
    pub dt: Fr,
    pub salt: Fr,
    pub msk: Fr,
    /// What stands in the certificate as mpk.
    pub mpk: Fr,
    /// The certifier's secret scalar.
    pub secret: Scalar,
    /// A.
    pub key: Point,
    /// The discrete logarithm of R8.
    pub nonce: Scalar,
    /// R8.
    pub r8: Point,
    pub epoch: Fr,
    pub a: Fr,
}

impl Registration {
    /// A valid one.
    pub fn new() -> Self {
        let (secret, nonce) = (Scalar::rand(&mut OsRng), Scalar::rand(&mut OsRng));
        let msk = random();
        Self {
            d: random(),
            dt: Fr::from(rand::random::<u32>()),
            salt: random(),
            msk,
            mpk: hash(Domain::MasterPublicKey, &[msk]),
            secret,
            key: (base8() * secret).into_affine(),
            nonce,
            r8: (base8() * nonce).into_affine(),
            epoch: random(),
            a: random(),
        }
    }

    /// Signs and registers: S = nonce + 8·h·secret.
    pub fn finish(&self) -> (Public<RegistrationCircuit>, RegistrationWitness) {
        let leaf = hash(Domain::CertifierLeaf, &[self.key.x, self.key.y]);
        let (root, path) = plant(TreeKind::Certifiers, leaf);
        let mut witness = RegistrationWitness {
            d: self.d,
            dt: self.dt,
            salt: self.salt,
            msk: self.msk,
            mpk: self.mpk,
            key: self.key,
            r8: self.r8,
            s: BigInteger256::zero(),
            h: BigInteger256::zero(),
            path,
        };
        witness.h = witness.challenge().into_bigint();
        witness.s = self.response(&witness.h);
        let public = vec![
            root,
            hash(Domain::Commitment, &[self.d, self.msk, self.dt, self.salt]),
            hash(Domain::RegistrationNullifier, &[self.msk, self.d, self.epoch]),
            self.epoch,
            hash(Domain::Tag, &[self.msk, self.a]),
            self.a,
        ];
        (Public::new(public), witness)
    }

    /// S for an integer h, which need not be below the field's modulus.
    pub fn response(&self, h: &BigInteger256) -> BigInteger256 {
        use ark_ff::BigInteger;
        let h = Scalar::from_le_bytes_mod_order(&h.to_bytes_le());
        (self.nonce + Scalar::from(8u8) * h * self.secret).into_bigint()
    }
}

/// What a submission is made from. Everything else follows from it.
#[derive(Clone)]
pub struct Submission {
    pub d: Fr,
    pub dt: Fr,
    pub salt: Fr,
    pub msk: Fr,
    pub rho: Scalar,
    pub scope: Fr,
    pub a: Fr,
}

impl Submission {
    /// A valid one.
    pub fn new() -> Self {
        Self {
            d: random(),
            dt: Fr::from(rand::random::<u32>()),
            salt: random(),
            msk: random(),
            rho: Scalar::rand(&mut OsRng),
            scope: random(),
            a: random(),
        }
    }

    pub fn comm(&self) -> Fr {
        hash(Domain::Commitment, &[self.d, self.msk, self.dt, self.salt])
    }

    /// Commits to the low 32 bits of dt.
    pub fn finish(&self) -> (Public<SubmissionCircuit>, SubmissionWitness) {
        let (root, path) = plant(TreeKind::Clients, self.comm());
        let low = Scalar::from(self.dt.into_bigint().0[0] as u32);
        let commitment = (generator_g() * low + generator_h() * self.rho).into_affine();
        let public = vec![
            root,
            hash(Domain::IterationNullifier, &[self.msk, self.d, self.scope]),
            hash(Domain::Tag, &[self.msk, self.a]),
            self.a,
            self.scope,
            commitment.x,
            commitment.y,
        ];
        let witness = SubmissionWitness {
            d: self.d,
            dt: self.dt,
            salt: self.salt,
            msk: self.msk,
            path,
            rho: self.rho,
        };
        (Public::new(public), witness)
    }
}

/// A tree with this leaf among others: its root, and the leaf's path.
pub fn plant(kind: TreeKind, leaf: Fr) -> (Fr, Path) {
    let mut leaves: Vec<Fr> = (1..=13).map(Fr::from).collect();
    leaves[9] = leaf;
    let tree = Tree::from_leaves(kind, leaves).unwrap();
    (tree.root().element(), tree.path(9).unwrap())
}

/// A point whose order is exactly 8, and so by doubling points of order 4, 2 and 1.
pub fn of_order_eight() -> Point {
    let order = <Scalar as PrimeField>::MODULUS;
    (0u64..)
        .find_map(|y| {
            let y2 = Fr::from(y).square();
            let denominator = (EdwardsConfig::COEFF_A - EdwardsConfig::COEFF_D * y2).inverse()?;
            let x = ((Fr::ONE - y2) * denominator).sqrt()?;
            let point = Point::new_unchecked(x, Fr::from(y)).mul_bigint(order);
            let four_times = point * Scalar::from(4u8);
            (four_times != ark_ec::twisted_edwards::Projective::default())
                .then(|| point.into_affine())
        })
        .unwrap()
}

/// Canonical bytes of a field element.
pub fn bytes(value: Fr) -> [u8; 32] {
    field::to_bytes(&value)
}
