//! A certifier and a client with valid statements, to be spoiled one thing at a time.
#![allow(dead_code, clippy::unwrap_used)]

pub mod draft;

use std::sync::OnceLock;

use anofel_circuits::groth16::key::{Origin, ProvingKey};
use anofel_circuits::groth16::setup::stock_key;
use anofel_circuits::statements::ownership::{OwnershipStatement, OwnershipWitness};
use anofel_circuits::statements::registration::{RegistrationStatement, RegistrationWitness};
use anofel_circuits::statements::submission::{SubmissionStatement, SubmissionWitness};
use anofel_circuits::statements::StatementKind;
use anofel_circuits::system::{Constraint, Row, System};
use anofel_primitives::commitment::{Commitment, Salt, TypeBlinding, TypeCommitment};
use anofel_primitives::eddsa::{Certificate, CertifierSecret};
use anofel_primitives::identity::{DatasetDigest, DatasetType, MasterSecret};
use anofel_primitives::merkle::{Tree, TreeKind};
use anofel_primitives::message_key::MessageSecret;
use anofel_primitives::prf::{Epoch, Scope};
use anofel_primitives::Fr;
use ark_bn254::{Bn254, Fq2, G2Affine};
use rand::rngs::OsRng;

/// The board's name in these tests.
pub const GENESIS: [u8; 32] = [7; 32];

/// The key of `ark-groth16`, one per statement for a whole test binary.
pub fn stock(kind: StatementKind) -> &'static ark_groth16::ProvingKey<Bn254> {
    static KEYS: [OnceLock<ark_groth16::ProvingKey<Bn254>>; 3] = [const { OnceLock::new() }; 3];
    KEYS[kind as usize].get_or_init(|| stock_key(system(kind), &mut OsRng))
}

/// Our key with the points of [`stock`].
pub fn key(kind: StatementKind) -> &'static ProvingKey {
    static KEYS: [OnceLock<ProvingKey>; 3] = [const { OnceLock::new() }; 3];
    KEYS[kind as usize]
        .get_or_init(|| ProvingKey::new(kind, system(kind), Origin::Development, stock(kind)))
}

/// A statement, recorded once for a whole test binary.
pub fn system(kind: StatementKind) -> &'static System {
    static SYSTEMS: [OnceLock<System>; 3] = [const { OnceLock::new() }; 3];
    SYSTEMS[kind as usize].get_or_init(|| kind.record())
}

/// The recorded constraints of a statement.
pub fn matrices(kind: StatementKind) -> &'static [Constraint] {
    system(kind).constraints()
}

/// The value of a row of a matrix.
pub fn value(row: &Row, assignment: &[Fr]) -> Fr {
    row.iter().map(|(variable, factor)| *factor * assignment[*variable as usize]).sum()
}

/// Everything that exists before a client posts.
pub struct World {
    pub certifier: CertifierSecret,
    pub certifiers: Tree,
    pub clients: Tree,
    pub client: Client,
}

/// One client.
pub struct Client {
    pub msk: MasterSecret,
    pub d: DatasetDigest,
    pub dt: DatasetType,
    pub salt: Salt,
    pub certificate: Certificate,
    /// Its place in the client tree.
    pub index: usize,
}

impl World {
    /// Three certifiers, and a client certified by the second one, registered among others.
    pub fn new() -> Self {
        let certifier = CertifierSecret::generate(&mut OsRng);
        let mut certifiers = Tree::new(TreeKind::Certifiers);
        let others = [(); 2].map(|()| CertifierSecret::generate(&mut OsRng).public_key().leaf());
        certifiers.append(&[others[0], certifier.public_key().leaf(), others[1]]).unwrap();

        let msk = MasterSecret::generate(&mut OsRng);
        let d = DatasetDigest::of_chunks(["twelve rows"]);
        let dt = DatasetType(3_000_000_017);
        let salt = Salt::generate(&mut OsRng);
        let certificate = certifier.certify(d, msk.public_key(), dt);
        let comm = Commitment::new(d, &msk, dt, &salt).element();
        let mut clients = Tree::new(TreeKind::Clients);
        let mut leaves: Vec<Fr> = (1..=20).map(Fr::from).collect();
        leaves[11] = comm;
        clients.append(&leaves).unwrap();
        let client = Client { msk, d, dt, salt, certificate, index: 11 };
        Self { certifier, certifiers, clients, client }
    }

    /// The client's registration.
    pub fn registration(&self) -> (RegistrationStatement, RegistrationWitness) {
        let Client { msk, d, dt, salt, certificate, .. } = &self.client;
        let a = MessageSecret::generate(&mut OsRng).public_key().hash();
        let epoch = Epoch::new(&GENESIS, 0);
        let statement = RegistrationStatement {
            certifier_root: self.certifiers.root(),
            commitment: Commitment::new(*d, msk, *dt, salt),
            nullifier: msk.registration_nullifier(*d, epoch),
            epoch,
            tag: msk.tag(a),
            a,
        };
        let path = self.certifiers.path(1).unwrap();
        let key = self.certifier.public_key();
        let witness = RegistrationWitness::new(*d, *dt, salt, msk, &key, certificate, path);
        (statement, witness)
    }

    /// The client's submission in an iteration.
    pub fn submission(&self, iteration: u64) -> (SubmissionStatement, SubmissionWitness) {
        let Client { msk, d, dt, salt, index, .. } = &self.client;
        let a = MessageSecret::generate(&mut OsRng).public_key().hash();
        let scope = Scope::new(&GENESIS, 0, iteration);
        let rho = TypeBlinding::generate(&mut OsRng);
        let statement = SubmissionStatement {
            client_root: self.clients.root(),
            nullifier: msk.iteration_nullifier(*d, scope),
            tag: msk.tag(a),
            a,
            scope,
            type_commitment: TypeCommitment::new(*dt, &rho),
        };
        let path = self.clients.path(*index).unwrap();
        let witness = SubmissionWitness::new(*d, *dt, salt, msk, path, &rho);
        (statement, witness)
    }

    /// The client's proof to its certifier.
    pub fn ownership(&self) -> (OwnershipStatement, OwnershipWitness) {
        let Client { msk, d, .. } = &self.client;
        let key = self.certifier.public_key();
        let statement = OwnershipStatement::new(msk.public_key(), &key, &[9; 32], *d);
        (statement, OwnershipWitness::new(msk))
    }
}

/// A point on the curve of G2 but not in its subgroup.
pub fn off_subgroup() -> G2Affine {
    (1u64..)
        .filter_map(|x| G2Affine::get_point_from_x_unchecked(Fq2::from(x), false))
        .find(|point| !point.is_in_correct_subgroup_assuming_on_curve())
        .unwrap()
}
