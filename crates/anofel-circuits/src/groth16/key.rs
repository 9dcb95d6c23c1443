//! Keys and their files.
//!
//! All integers are little-endian. A file begins with
//!
//! ```text
//! 10 bytes  "anofel-key"
//!  2 bytes  format version
//!  1 byte   role: 0 verification key, 1 proving key
//!  1 byte   statement: 0 ownership, 1 registration, 2 submission
//!  1 byte   origin: 0 insecure development set-up, 1 ceremony
//! 32 bytes  transcript hash of the ceremony, or zeros
//! 32 bytes  shape: SHA-256 of the constraint matrices
//!  4 bytes  number of public inputs n
//! ```
//!
//! followed by the verification key: α₁, β₂, γ₂, δ₂ and n + 1 points of the public inputs. A
//! proving key goes on with β₁, δ₁ and three tables of multiples: A in G1, B in G2, and for C the
//! queries L, H and B in G1 one after the other. Points are
//! uncompressed coordinates in Montgomery form (times 2^256), so that loading is copying; a
//! proving key is only ever loaded together with its pinned id, the SHA-256 of the file. The
//! points of a verification key are checked one by one.

use ark_bn254::{g1, g2, Bn254, Fq, Fq2, G1Affine, G2Affine};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::AffineRepr;
use ark_ff::{BigInt, PrimeField};
use sha2::{Digest, Sha256};

use crate::groth16::msm::{Coordinates, Layout, Table};
use crate::shape;
use crate::statements::StatementKind;
use crate::system::System;
use crate::Error;

const MAGIC: &[u8; 10] = b"anofel-key";
/// The version of the file format.
pub const FORMAT_VERSION: u16 = 1;
const HEADER_BYTES: usize = 10 + 2 + 1 + 1 + 1 + 32 + 32 + 4;

/// How a key was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// By one party that may have kept the trapdoor. For development only.
    Development,
    /// By a ceremony with this transcript hash.
    Ceremony {
        /// SHA-256 of the transcript.
        transcript: [u8; 32],
    },
}

impl Origin {
    /// How a key's origin is shown to people.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Development => "insecure development setup",
            Self::Ceremony { .. } => "ceremony",
        }
    }

    /// The transcript hash of a ceremony.
    pub fn transcript(&self) -> Option<[u8; 32]> {
        match self {
            Self::Development => None,
            Self::Ceremony { transcript } => Some(*transcript),
        }
    }
}

/// What the header of a key file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// "proving" or "verification".
    pub role: &'static str,
    /// Which statement the key is for.
    pub kind: StatementKind,
    /// How the key was made.
    pub origin: Origin,
    /// The SHA-256 of the constraint matrices it was made for.
    pub shape: [u8; 32],
}

impl Description {
    /// Reads the header and nothing else.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let header = Header::read(&mut Reader::new(bytes))?;
        let Header { role, kind, origin, shape, .. } = header;
        Ok(Self { role: role.name(), kind, origin, shape })
    }
}

/// The SHA-256 of a key file.
pub type KeyId = [u8; 32];

/// A verification key whose points were checked.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyingKey {
    kind: StatementKind,
    origin: Origin,
    shape: [u8; 32],
    points: ark_groth16::VerifyingKey<Bn254>,
}

/// A proving key, ready to prove.
#[derive(Clone)]
pub struct ProvingKey {
    vk: VerifyingKey,
    pub(crate) beta_g1: G1Affine,
    pub(crate) delta_g1: G1Affine,
    /// Σ z·A.
    pub(crate) a: Table<g1::Config>,
    /// Σ z·B.
    pub(crate) b: Table<g2::Config>,
    /// Σ z·L + Σ h·H + Σ (r·z)·B.
    pub(crate) c: Table<g1::Config>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Verification,
    Proving,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Verification => "verification",
            Self::Proving => "proving",
        }
    }
}

impl VerifyingKey {
    /// Reads a verification key for a statement and checks everything about it.
    pub fn from_bytes(kind: StatementKind, bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let key = Self::read(&mut reader, Role::Verification)?;
        reader.finish()?;
        key.expect_kind(kind)?;
        key.check()?;
        Ok(key)
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes, Role::Verification);
        bytes
    }

    /// The SHA-256 of its file.
    pub fn id(&self) -> KeyId {
        Sha256::digest(self.to_bytes()).into()
    }

    /// Which statement it is for.
    pub fn kind(&self) -> StatementKind {
        self.kind
    }

    /// How it was made.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The SHA-256 of the constraint matrices it was made for.
    pub fn shape(&self) -> [u8; 32] {
        self.shape
    }

    /// The points.
    pub fn points(&self) -> &ark_groth16::VerifyingKey<Bn254> {
        &self.points
    }

    /// Refuses a key of another statement.
    pub fn expect_kind(&self, kind: StatementKind) -> Result<(), Error> {
        if self.kind == kind {
            return Ok(());
        }
        Err(Error::KeyStatement { expected: kind.name(), found: self.kind.name() })
    }

    /// Refuses a key that was made for other constraints or that would accept false proofs.
    fn check(&self) -> Result<(), Error> {
        let statement = self.kind.name();
        let unsafe_key = |reason| Err(Error::UnsafeKey { statement, reason });
        let points = &self.points;
        let g1: Vec<&G1Affine> =
            points.gamma_abc_g1.iter().chain(std::iter::once(&points.alpha_g1)).collect();
        let g2 = [&points.beta_g2, &points.gamma_g2, &points.delta_g2];
        // An unreduced coordinate would make equal points look different to the guards below.
        if !g1.iter().all(|p| is_canonical(p)) || !g2.iter().all(|p| is_canonical(p)) {
            return unsafe_key("a coordinate is not canonical");
        }
        if g1.iter().any(|p| p.is_zero()) || g2.iter().any(|p| p.is_zero()) {
            return unsafe_key("a point is the neutral element");
        }
        if !g1.iter().all(|p| p.is_on_curve()) || !g2.iter().all(|p| p.is_on_curve()) {
            return unsafe_key("a point is not on its curve");
        }
        if !g2.iter().all(|p| p.is_in_correct_subgroup_assuming_on_curve()) {
            return unsafe_key("a point is not in its subgroup");
        }
        if points.gamma_g2 == points.delta_g2 || points.gamma_g2 == -points.delta_g2 {
            return unsafe_key("γ equals δ, so the second phase of its set-up was skipped");
        }
        if points.delta_g2 == G2Affine::generator() || points.delta_g2 == -G2Affine::generator() {
            return unsafe_key("δ is the generator, so the second phase of its set-up was skipped");
        }
        if self.shape != shape::pinned(self.kind) {
            return Err(Error::KeyShape { statement });
        }
        Ok(())
    }

    fn write(&self, bytes: &mut Vec<u8>, role: Role) {
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.push(role as u8);
        bytes.push(self.kind as u8);
        let (origin, transcript) = match self.origin {
            Origin::Development => (0, [0; 32]),
            Origin::Ceremony { transcript } => (1, transcript),
        };
        bytes.push(origin);
        bytes.extend_from_slice(&transcript);
        bytes.extend_from_slice(&self.shape);
        let inputs = self.points.gamma_abc_g1.len() as u32 - 1;
        bytes.extend_from_slice(&inputs.to_le_bytes());
        write_point(bytes, &self.points.alpha_g1);
        write_point(bytes, &self.points.beta_g2);
        write_point(bytes, &self.points.gamma_g2);
        write_point(bytes, &self.points.delta_g2);
        for point in &self.points.gamma_abc_g1 {
            write_point(bytes, point);
        }
    }

    fn read(reader: &mut Reader, role: Role) -> Result<Self, Error> {
        let Header { role: found, kind, origin, shape, inputs } = Header::read(reader)?;
        if found != role {
            return Err(Error::KeyRole { expected: role.name(), found: found.name() });
        }
        if inputs != kind.public_inputs().len() {
            let reason = "it has a wrong number of public inputs";
            return Err(Error::UnsafeKey { statement: kind.name(), reason });
        }
        reader.need(64 + 3 * 128 + (inputs + 1) * 64)?;
        let points = ark_groth16::VerifyingKey {
            alpha_g1: reader.point()?,
            beta_g2: reader.point()?,
            gamma_g2: reader.point()?,
            delta_g2: reader.point()?,
            gamma_abc_g1: (0..=inputs).map(|_| reader.point()).collect::<Result<_, _>>()?,
        };
        Ok(Self { kind, origin, shape, points })
    }
}

/// The first bytes of a key file.
struct Header {
    role: Role,
    kind: StatementKind,
    origin: Origin,
    shape: [u8; 32],
    inputs: usize,
}

impl Header {
    fn read(reader: &mut Reader) -> Result<Self, Error> {
        if reader.rest.get(..MAGIC.len()) != Some(MAGIC) {
            return Err(Error::NotAKey);
        }
        reader.need(HEADER_BYTES)?;
        reader.take(MAGIC.len())?;
        let version = u16::from_le_bytes(reader.array()?);
        if version != FORMAT_VERSION {
            return Err(Error::KeyVersion { expected: FORMAT_VERSION, found: version });
        }
        let [role, kind, origin] = reader.array()?;
        let role = match role {
            0 => Role::Verification,
            1 => Role::Proving,
            _ => return Err(Error::NotAKey),
        };
        let kind = *StatementKind::ALL.get(usize::from(kind)).ok_or(Error::NotAKey)?;
        let transcript = reader.array()?;
        let origin = match origin {
            0 if transcript == [0; 32] => Origin::Development,
            1 => Origin::Ceremony { transcript },
            _ => return Err(Error::NotAKey),
        };
        let shape = reader.array()?;
        let inputs = u32::from_le_bytes(reader.array()?) as usize;
        Ok(Self { role, kind, origin, shape, inputs })
    }
}

impl ProvingKey {
    /// Prepares a key of `ark-groth16` for proving: computes the tables.
    pub fn new(
        kind: StatementKind,
        system: &System,
        origin: Origin,
        stock: &ark_groth16::ProvingKey<Bn254>,
    ) -> Self {
        let shape = shape::Shape::of_system(system).digest;
        let vk = VerifyingKey { kind, origin, shape, points: stock.vk.clone() };
        // The L query starts at the first witness variable, and the H query has one point less
        // than the domain.
        let domain = stock.h_query.len() + 1;
        let mut c = vec![G1Affine::identity(); system.num_public() + 1];
        c.extend_from_slice(&stock.l_query);
        c.extend_from_slice(&stock.h_query);
        c.resize(system.assignment().len() + domain, G1Affine::identity());
        c.extend_from_slice(&stock.b_g1_query);
        Self {
            vk,
            beta_g1: stock.beta_g1,
            delta_g1: stock.delta_g1,
            a: Table::new(&stock.a_query),
            b: Table::new(&stock.b_g2_query),
            c: Table::new(&c),
        }
    }

    /// Reads a proving key whose id is pinned. The id vouches for the points.
    pub fn from_bytes(kind: StatementKind, bytes: &[u8], pinned: &KeyId) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let vk = VerifyingKey::read(&mut reader, Role::Proving)?;
        vk.expect_kind(kind)?;
        let beta_g1 = reader.point()?;
        let delta_g1 = reader.point()?;
        let (a, b, c) = (reader.table()?, reader.table()?, reader.table()?);
        reader.finish()?;
        let found = id_of(bytes);
        if &found != pinned {
            return Err(Error::KeyId { expected: hex(pinned), found: hex(&found) });
        }
        vk.check()?;
        Ok(Self { vk, beta_g1, delta_g1, a, b, c })
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.vk.write(&mut bytes, Role::Proving);
        write_point(&mut bytes, &self.beta_g1);
        write_point(&mut bytes, &self.delta_g1);
        write_table(&mut bytes, &self.a);
        write_table(&mut bytes, &self.b);
        write_table(&mut bytes, &self.c);
        bytes
    }

    /// The verification key.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.vk
    }

    /// Refuses a key of another statement.
    pub fn expect_kind(&self, kind: StatementKind) -> Result<(), Error> {
        self.vk.expect_kind(kind)
    }
}

/// The id of a key file.
pub fn id_of(bytes: &[u8]) -> KeyId {
    Sha256::digest(bytes).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A coordinate field: how many bytes an element has and how they are read.
trait Coordinate: Sized {
    const BYTES: usize;
    fn read(bytes: &[u8]) -> Self;
    fn write(&self, bytes: &mut Vec<u8>);
    /// Whether the limbs are below the modulus; reading does not reduce them.
    fn is_canonical(&self) -> bool;
}

impl Coordinate for Fq {
    const BYTES: usize = 32;

    fn read(bytes: &[u8]) -> Self {
        let (limbs, _) = bytes[..32].as_chunks::<8>();
        Fq::new_unchecked(BigInt(std::array::from_fn(|i| u64::from_le_bytes(limbs[i]))))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for limb in self.0 .0 {
            bytes.extend_from_slice(&limb.to_le_bytes());
        }
    }

    fn is_canonical(&self) -> bool {
        self.0 < Fq::MODULUS
    }
}

impl Coordinate for Fq2 {
    const BYTES: usize = 64;

    fn read(bytes: &[u8]) -> Self {
        Fq2::new(Fq::read(&bytes[..32]), Fq::read(&bytes[32..]))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.c0.write(bytes);
        self.c1.write(bytes);
    }

    fn is_canonical(&self) -> bool {
        self.c0.is_canonical() && self.c1.is_canonical()
    }
}

fn is_canonical<P: SWCurveConfig>(point: &Affine<P>) -> bool
where
    P::BaseField: Coordinate,
{
    point.x.is_canonical() && point.y.is_canonical()
}

fn write_point<P: SWCurveConfig>(bytes: &mut Vec<u8>, point: &Affine<P>)
where
    P::BaseField: Coordinate,
{
    point.x.write(bytes);
    point.y.write(bytes);
}

/// Window, bucket sets (2 bytes each), number of bases (4), their positions (4 each), the points.
fn write_table<P: SWCurveConfig>(bytes: &mut Vec<u8>, table: &Table<P>)
where
    P::BaseField: Coordinate,
{
    let Layout { window, sets } = table.layout();
    bytes.extend_from_slice(&(window as u16).to_le_bytes());
    bytes.extend_from_slice(&(sets as u16).to_le_bytes());
    bytes.extend_from_slice(&(table.scalars().len() as u32).to_le_bytes());
    for position in table.scalars() {
        bytes.extend_from_slice(&position.to_le_bytes());
    }
    for point in table.points() {
        point.x.write(bytes);
        point.y.write(bytes);
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, total: bytes.len() }
    }

    /// Refuses a file that ends before the next `length` bytes do.
    fn need(&self, length: usize) -> Result<(), Error> {
        if self.rest.len() >= length {
            return Ok(());
        }
        let expected = self.total - self.rest.len() + length;
        Err(Error::KeyLength { expected, found: self.total })
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        self.need(length)?;
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    fn point<P: SWCurveConfig>(&mut self) -> Result<Affine<P>, Error>
    where
        P::BaseField: Coordinate,
    {
        Ok(read_coordinates(self.take(2 * P::BaseField::BYTES)?).to_affine())
    }

    fn coordinates<F: Coordinate>(&mut self, count: usize) -> Result<Vec<Coordinates<F>>, Error> {
        let size = 2 * F::BYTES;
        Ok(self.take(count * size)?.chunks_exact(size).map(read_coordinates).collect())
    }

    fn table<P: SWCurveConfig>(&mut self) -> Result<Table<P>, Error>
    where
        P::BaseField: Coordinate,
    {
        let window = usize::from(u16::from_le_bytes(self.array()?));
        let sets = usize::from(u16::from_le_bytes(self.array()?));
        let count = u32::from_le_bytes(self.array()?) as usize;
        if !(2..=20).contains(&window) || !(1..=64).contains(&sets) {
            return Err(Error::NotAKey);
        }
        let layout = Layout { window, sets };
        let positions = self.take(4 * count)?.chunks_exact(4);
        let scalars =
            positions.map(|b| u32::from_le_bytes(std::array::from_fn(|i| b[i]))).collect();
        let points = self.coordinates(count * layout.multiples())?;
        Ok(Table::from_parts(layout, scalars, points))
    }

    fn finish(self) -> Result<(), Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Error::KeyLength { expected: self.total - self.rest.len(), found: self.total })
    }
}

fn read_coordinates<F: Coordinate>(bytes: &[u8]) -> Coordinates<F> {
    let (x, y) = bytes.split_at(F::BYTES);
    Coordinates { x: F::read(x), y: F::read(y) }
}
