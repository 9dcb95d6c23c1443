//! Keys and their files.
//!
//! All integers are little-endian. A file begins with
//!
//! ```text
//! 10 bytes  "anofel-key"
//!  2 bytes  format version
//!  1 byte   role: 0 verification key, 1 proving key, 2 tables of a proving key
//!  1 byte   statement: 0 ownership, 1 registration, 2 submission
//!  1 byte   origin: 0 insecure development set-up, 1 a ceremony
//! 32 bytes  digest of the ceremony's transcript; zeros for a development set-up
//! 32 bytes  shape: SHA-256 of the constraint matrices
//!  4 bytes  number of public inputs n
//! ```
//!
//! followed by the verification key: α₁, β₂, γ₂, δ₂ and n + 1 points of the public inputs. Its
//! points are uncompressed coordinates in Montgomery form (times 2^256), and are checked one by
//! one. What follows in a proving key is in [`crate::groth16::proving_key`].
//!
//! The id covers the origin, so whoever pins a key pins how it was made. A ceremony is a claim,
//! though, that nothing else in the file shows: it is worth something to those alone who verified the
//! transcript and derived the same key from it.

use ark_bn254::{Bn254, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use sha2::{Digest, Sha256};

use crate::groth16::points::{is_canonical, Reader, Writer};
pub use crate::groth16::proving_key::ProvingKey;
use crate::shape;
use crate::statements::StatementKind;
use crate::Error;

const MAGIC: &[u8; 10] = b"anofel-key";
/// The version of the file format.
pub const FORMAT_VERSION: u16 = 3;
const TRANSCRIPT_BYTES: usize = 32;
pub(crate) const HEADER_BYTES: usize = 10 + 2 + 1 + 1 + 1 + TRANSCRIPT_BYTES + 32 + 4;

/// How a key was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// By one party that may have kept the trapdoor. For development only.
    Development,
    /// By several parties, as the file claims.
    Ceremony {
        /// The digest of the transcript that shows it.
        transcript: [u8; TRANSCRIPT_BYTES],
    },
}

impl Origin {
    /// How a key's origin is shown to people.
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Development => "insecure development setup",
            Self::Ceremony { .. } => "ceremony (claimed)",
        }
    }

    /// The digest of the ceremony's transcript; zeros for a development set-up.
    pub fn transcript(&self) -> [u8; TRANSCRIPT_BYTES] {
        match self {
            Self::Development => [0; TRANSCRIPT_BYTES],
            Self::Ceremony { transcript } => *transcript,
        }
    }
}

/// What the header of a key file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// "proving", "verification" or "tables".
    pub role: &'static str,
    /// Which statement the key is for.
    pub kind: StatementKind,
    /// How the key was made, as the file says.
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

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Verification,
    Proving,
    Tables,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Verification => "verification",
            Self::Proving => "proving",
            Self::Tables => "tables",
        }
    }
}

impl VerifyingKey {
    /// Reads a verification key for a statement and checks everything about it.
    pub fn from_bytes(kind: StatementKind, bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let header = Header::expect(&mut reader, Role::Verification, kind)?;
        let key = Self::read(&mut reader, &header)?;
        reader.finish()?;
        key.check()?;
        Ok(key)
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.write(&mut writer, Role::Verification);
        writer.bytes
    }

    /// The SHA-256 of its file.
    pub fn id(&self) -> KeyId {
        Sha256::digest(self.to_bytes()).into()
    }

    /// A key of these points; the caller vouches for them.
    pub(crate) fn new(
        kind: StatementKind,
        origin: Origin,
        shape: [u8; 32],
        points: ark_groth16::VerifyingKey<Bn254>,
    ) -> Self {
        Self { kind, origin, shape, points }
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
    pub(crate) fn check(&self) -> Result<(), Error> {
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

    /// Writes the header and the points, compressed in a proving key.
    pub(crate) fn write(&self, writer: &mut Writer, role: Role) {
        let bytes = &mut writer.bytes;
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.push(role as u8);
        bytes.push(self.kind as u8);
        bytes.push(u8::from(self.origin != Origin::Development));
        bytes.extend_from_slice(&self.origin.transcript());
        bytes.extend_from_slice(&self.shape);
        let inputs = self.points.gamma_abc_g1.len() as u32 - 1;
        bytes.extend_from_slice(&inputs.to_le_bytes());
        writer.compressed = role == Role::Proving;
        writer.point(&self.points.alpha_g1);
        writer.point(&self.points.beta_g2);
        writer.point(&self.points.gamma_g2);
        writer.point(&self.points.delta_g2);
        for point in &self.points.gamma_abc_g1 {
            writer.point(point);
        }
    }

    /// Reads the points after the header; the caller checks them.
    pub(crate) fn read(reader: &mut Reader, header: &Header) -> Result<Self, Error> {
        let Header { role, kind, origin, shape, inputs } = *header;
        reader.begin_points(kind, role == Role::Proving);
        let (g1, g2) = header.num_points();
        reader.need(reader.bytes_of(g1, g2))?;
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
pub(crate) struct Header {
    role: Role,
    kind: StatementKind,
    origin: Origin,
    shape: [u8; 32],
    inputs: usize,
}

impl Header {
    /// Reads the header of a file that is needed in this role, for this statement.
    pub(crate) fn expect(
        reader: &mut Reader,
        role: Role,
        kind: StatementKind,
    ) -> Result<Self, Error> {
        let header = Self::read(reader)?;
        if header.role != role {
            return Err(Error::KeyRole { expected: role.name(), found: header.role.name() });
        }
        if header.inputs != header.kind.public_inputs().len() {
            let reason = "it has a wrong number of public inputs";
            return Err(Error::UnsafeKey { statement: header.kind.name(), reason });
        }
        if header.kind != kind {
            let (expected, found) = (kind.name(), header.kind.name());
            return Err(Error::KeyStatement { expected, found });
        }
        Ok(header)
    }

    /// How many points of G1 and of G2 the verification key has.
    pub(crate) fn num_points(&self) -> (usize, usize) {
        (self.inputs + 2, 3)
    }

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
            2 => Role::Tables,
            _ => return Err(Error::NotAKey),
        };
        let kind = *StatementKind::ALL.get(usize::from(kind)).ok_or(Error::NotAKey)?;
        let transcript: [u8; TRANSCRIPT_BYTES] = reader.array()?;
        let origin = match origin {
            0 if transcript == [0; TRANSCRIPT_BYTES] => Origin::Development,
            1 if transcript != [0; TRANSCRIPT_BYTES] => Origin::Ceremony { transcript },
            _ => return Err(Error::NotAKey),
        };
        let shape = reader.array()?;
        let inputs = u32::from_le_bytes(reader.array()?) as usize;
        Ok(Self { role, kind, origin, shape, inputs })
    }
}

/// The id of a key file.
pub fn id_of(bytes: &[u8]) -> KeyId {
    Sha256::digest(bytes).into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
