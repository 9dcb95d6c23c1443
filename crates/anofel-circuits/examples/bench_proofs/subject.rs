//! What is measured of one statement.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anofel_circuits::export::{iden3, snarkjs};
use anofel_circuits::groth16::ark::Replay;
use anofel_circuits::groth16::key::{id_of, KeyId, Origin, ProvingKey};
use anofel_circuits::groth16::proof::Proof;
use anofel_circuits::groth16::prover::prove;
use anofel_circuits::groth16::setup::{insecure_development_key, stock_key};
use anofel_circuits::groth16::verifier::Verifier;
use anofel_circuits::shape::Shape;
use anofel_circuits::statements::{run, Circuit, Statement};
use anofel_circuits::system::Mode;
use anofel_primitives::Fr;
use ark_bn254::Bn254;
use ark_groth16::Groth16;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use rand::rngs::OsRng;
use serde_json::{json, Value};

/// Proofs in a batch.
const BATCH: usize = 64;
/// Checks in a row: many, since CPU time is counted in hundredths of a second.
const CHECKS: usize = 200;

/// A source of valid statements.
type Source<'a, S> = Box<dyn Fn() -> (S, <<S as Statement>::Circuit as Circuit>::Witness) + 'a>;

/// A statement with the keys of ours and of `ark-groth16`, made from the same parameters.
pub struct Subject<'a, S: Statement> {
    source: Source<'a, S>,
    shape: Shape,
    stock: ark_groth16::ProvingKey<Bn254>,
    stock_bytes: Vec<u8>,
    key: ProvingKey,
    key_bytes: Vec<u8>,
    tables: Vec<u8>,
    id: KeyId,
    verifier: Verifier,
    batch: Vec<(Vec<Fr>, Proof)>,
}

/// What a piece of work took.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Seconds on the clock.
    pub wall: f64,
    /// Seconds of all cores together, where the system tells.
    pub cpu: Option<f64>,
}

impl Taken {
    fn each(self, count: usize) -> Self {
        let each = |seconds: f64| seconds / count as f64;
        Self { wall: each(self.wall), cpu: self.cpu.map(each) }
    }
}

/// A statement, whichever it is.
pub trait Measured {
    /// Its sizes.
    fn describe(&self) -> Value;
    /// What one piece of work took; none if there is no such work.
    fn measure(&mut self, work: &str, scratch: &Path) -> Option<Taken>;
    /// Writes what snarkjs needs: constraints, witness, key, proof and public inputs.
    fn export(&self, directory: &Path, name: &str);
}

impl<'a, S: Statement> Subject<'a, S> {
    /// Makes the keys.
    pub fn new(source: impl Fn() -> (S, <S::Circuit as Circuit>::Witness) + 'a) -> Self {
        let (statement, witness) = source();
        let system = run::<S::Circuit>(Mode::Recording, &statement.public_inputs(), &witness);
        let stock = stock_key(&system, &mut OsRng);
        let key = ProvingKey::new(S::Circuit::KIND, &system, Origin::Development, &stock);
        let key_bytes = key.to_bytes();
        let mut stock_bytes = Vec::new();
        stock.serialize_uncompressed(&mut stock_bytes).expect("memory takes all bytes");
        Self {
            source: Box::new(source),
            shape: Shape::of_system(&system),
            verifier: Verifier::new(key.verifying_key().clone()),
            id: id_of(&key_bytes),
            stock,
            stock_bytes,
            tables: key.to_tables(),
            key,
            key_bytes,
            batch: Vec::new(),
        }
    }

    fn proof(&self) -> (Vec<Fr>, Proof) {
        let (statement, witness) = (self.source)();
        let proof = prove(&self.key, &statement, &witness, &mut OsRng).expect("a valid statement");
        (statement.public_inputs(), proof)
    }

    /// Ours: the values of all variables, their check, and the proof.
    fn prove(&self) -> Taken {
        let (statement, witness) = (self.source)();
        let (taken, proof) = time(|| prove(&self.key, &statement, &witness, &mut OsRng));
        let proof = proof.expect("a valid statement");
        self.verifier.verify(&statement.public_inputs(), &proof).expect("a valid proof");
        taken
    }

    /// The part of ours that is not Groth16: the values of all variables and their check.
    fn solve(&self) -> Taken {
        let (statement, witness) = (self.source)();
        let public = statement.public_inputs();
        time(|| run::<S::Circuit>(Mode::Solving, &public, &witness)).0
    }

    /// `ark-groth16` as it comes: the constraints laid down, and the proof. The values of the
    /// variables are a gift.
    fn stock_prove(&self) -> Taken {
        let (statement, witness) = (self.source)();
        let system = run::<S::Circuit>(Mode::Recording, &statement.public_inputs(), &witness);
        let (taken, proof) = time(|| {
            Groth16::<Bn254>::create_random_proof_with_reduction(
                Replay(&system),
                &self.stock,
                &mut OsRng,
            )
        });
        let proof = Proof::from_points(S::Circuit::KIND, proof.expect("a valid statement"));
        self.verifier.verify(&statement.public_inputs(), &proof).expect("a valid proof");
        taken
    }

    /// The mean of some checks in a row, as the peer has them.
    fn verify(&self) -> Taken {
        let (public, proof) = self.proof();
        let check = || self.verifier.verify(&public, &proof).expect("a valid proof");
        time(|| (0..CHECKS).for_each(|_| check())).0.each(CHECKS)
    }

    /// For each proof of a batch.
    fn verify_batch(&mut self) -> Taken {
        while self.batch.len() < BATCH {
            self.batch.push(self.proof());
        }
        let (taken, verdict) = time(|| self.verifier.verify_batch(&self.batch, &mut OsRng));
        verdict.expect("valid proofs");
        taken.each(BATCH)
    }

    /// Every point of the key checked, and the tables made, as it is done once.
    fn expand(&self) {
        let kind = S::Circuit::KIND;
        black_box(ProvingKey::from_bytes(kind, &self.key_bytes, &self.id).expect("our key"));
    }

    /// The tables that were made before, as at every start.
    fn load(&self, tables: &[u8], key: &[u8]) {
        let kind = S::Circuit::KIND;
        black_box(ProvingKey::from_tables(kind, tables, key, &self.id).expect("our tables"));
    }

    fn load_file(&self, scratch: &Path) -> Taken {
        let (key, tables) = (scratch.join("proving.key"), scratch.join("tables"));
        fs::write(&key, &self.key_bytes).expect("the scratch directory is writable");
        fs::write(&tables, &self.tables).expect("the scratch directory is writable");
        let read = |path| fs::read(path).expect("just written");
        time(|| self.load(&read(&tables), &read(&key))).0
    }

    fn stock_load(&self) -> Taken {
        let load = ark_groth16::ProvingKey::<Bn254>::deserialize_uncompressed;
        let (taken, key) = time(|| load(&self.stock_bytes[..]));
        key.expect("its own bytes");
        taken
    }
}

impl<S: Statement> Measured for Subject<'_, S> {
    fn describe(&self) -> Value {
        let digest: String = self.shape.digest.iter().map(|b| format!("{b:02x}")).collect();
        json!({
            "constraints": self.shape.constraints,
            "variables": self.shape.variables,
            "public_inputs": self.shape.public_inputs,
            "entries": self.shape.entries,
            "digest": digest,
            "key_bytes": self.key_bytes.len(),
            "tables_bytes": self.tables.len(),
            "stock_key_bytes": self.stock_bytes.len(),
        })
    }

    fn measure(&mut self, work: &str, scratch: &Path) -> Option<Taken> {
        Some(match work {
            "prove" => self.prove(),
            "solve" => self.solve(),
            "stock-prove" => self.stock_prove(),
            "verify" => self.verify(),
            "verify-batch" => self.verify_batch(),
            "expand" => time(|| self.expand()).0,
            "load" => time(|| self.load(&self.tables, &self.key_bytes)).0,
            "load-file" => self.load_file(scratch),
            "stock-load" => self.stock_load(),
            "setup" => time(|| insecure_development_key(S::Circuit::KIND, &mut OsRng)).0,
            "stock-setup" => time(|| stock_key(&S::Circuit::KIND.record(), &mut OsRng)).0,
            _ => return None,
        })
    }

    fn export(&self, directory: &Path, name: &str) {
        let (statement, witness) = (self.source)();
        let public = statement.public_inputs();
        let system = run::<S::Circuit>(Mode::Recording, &public, &witness);
        let proof = prove(&self.key, &statement, &witness, &mut OsRng).expect("a valid statement");
        let write = |extension: &str, contents: &[u8]| {
            let path: PathBuf = directory.join(format!("{name}.{extension}"));
            fs::write(path, contents).expect("the directory is writable");
        };
        write("r1cs", &iden3::r1cs(&system));
        write("wtns", &iden3::wtns(&system));
        write("vk.json", snarkjs::verification_key(self.key.verifying_key()).as_bytes());
        write("proof.json", snarkjs::proof(&proof).as_bytes());
        write("public.json", snarkjs::public_inputs(&public).as_bytes());
    }
}

fn time<T>(work: impl FnOnce() -> T) -> (Taken, T) {
    let (cpu_start, start) = (cpu_seconds(), Instant::now());
    let result = black_box(work());
    let wall = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds().zip(cpu_start).map(|(end, start)| end - start);
    (Taken { wall, cpu }, result)
}

/// User and system time of this process with all its threads, also those that ended (`ark-ec` makes
/// some for a sum), as Linux counts it: in hundredths of a second, the 14th and 15th field of this file.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: Vec<f64> =
        fields.split(' ').skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    (ticks.len() == 2).then(|| (ticks[0] + ticks[1]) / 100.0)
}
