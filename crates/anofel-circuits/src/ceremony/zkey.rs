//! The `.zkey` file of snarkjs: a Groth16 key on its way through a ceremony.
//!
//! Section 1 is the number of the proof system; 2 the header (moduli, counts, α, β, γ, δ); 3 the
//! points of the public inputs (IC); 4 the entries of the matrices A and B; 5 to 7 A, B in G1 and B
//! in G2; 8 L; 9 H; 10 the circuit hash and the contributions. A contribution changes δ, L, H and
//! section 10 alone.

use anofel_primitives::Fr;
use ark_bn254::{Fq, G1Affine, G2Affine};
use ark_ff::{BigInteger, PrimeField};

use super::container::{self, Reader, Sections};
use super::contribution::Contribution;
use super::error::Error;
use super::points;

const GROTH16: u32 = 1;
const KNOWN: [u32; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const MAX_CONTRIBUTIONS: u32 = 1024;

/// A key between its first state and the end of its ceremony. Every point was checked.
#[derive(Clone, PartialEq)]
pub struct Zkey {
    /// The constant one, public inputs and witness.
    pub variables: usize,
    /// Public inputs.
    pub public: usize,
    /// Rows, rounded up to a power of two.
    pub domain: usize,
    /// α in G1.
    pub alpha_g1: G1Affine,
    /// β in G1.
    pub beta_g1: G1Affine,
    /// β in G2.
    pub beta_g2: G2Affine,
    /// γ in G2; the generator.
    pub gamma_g2: G2Affine,
    /// δ in G1.
    pub delta_g1: G1Affine,
    /// δ in G2.
    pub delta_g2: G2Affine,
    /// The entries of A and B.
    pub entries: Vec<u8>,
    /// Public inputs and the constant one.
    pub ic: Vec<G1Affine>,
    /// A.
    pub a: Vec<G1Affine>,
    /// B in G1.
    pub b_g1: Vec<G1Affine>,
    /// B in G2.
    pub b_g2: Vec<G2Affine>,
    /// The witness's part, divided by δ.
    pub l: Vec<G1Affine>,
    /// The quotient's part, divided by δ.
    pub h: Vec<G1Affine>,
    /// The hash of the first key.
    pub circuit_hash: [u8; 64],
    /// What happened since.
    pub contributions: Vec<Contribution>,
}

impl Zkey {
    /// Reads a file and checks every point.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let sections = Sections::read("zkey", bytes)?;
        sections.only(&KNOWN)?;
        if sections.sized(1, 4)? != GROTH16.to_le_bytes() {
            return Err(Error::AnotherSystem);
        }
        let mut header = Reader(sections.sized(2, 2 * 36 + 3 * 4 + 3 * 64 + 3 * 128)?);
        for modulus in [Fq::MODULUS, Fr::MODULUS] {
            if header.u32()? != 32 || header.take(32)? != modulus.to_bytes_le() {
                return Err(Error::AnotherCurve);
            }
        }
        let [variables, public, domain] =
            [header.u32()?, header.u32()?, header.u32()?].map(|n| n as usize);
        let known_size = variables <= 1 << 28 && domain <= 1 << 28 && domain.is_power_of_two();
        if !known_size || public >= variables {
            return Err(Error::SectionLength(2));
        }
        let g1 = |number, count: usize, name| {
            points::read_all(sections.sized(number, 64 * count)?, name)
        };
        let b_g2 = points::read_all(sections.sized(7, 128 * variables)?, "B in G2")?;
        let (circuit_hash, contributions) = read_contributions(sections.get(10)?)?;
        Ok(Self {
            variables,
            public,
            domain,
            alpha_g1: points::read_one(header.take(64)?, "α")?,
            beta_g1: points::read_one(header.take(64)?, "β in G1")?,
            beta_g2: points::read_one(header.take(128)?, "β in G2")?,
            gamma_g2: points::read_one(header.take(128)?, "γ")?,
            delta_g1: points::read_one(header.take(64)?, "δ in G1")?,
            delta_g2: points::read_one(header.take(128)?, "δ in G2")?,
            entries: sections.get(4)?.to_vec(),
            ic: g1(3, public + 1, "IC")?,
            a: g1(5, variables, "A")?,
            b_g1: g1(6, variables, "B in G1")?,
            b_g2,
            l: g1(8, variables - public - 1, "L")?,
            h: g1(9, domain, "H")?,
            circuit_hash,
            contributions,
        })
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut header = Vec::new();
        for modulus in [Fq::MODULUS, Fr::MODULUS] {
            header.extend(32u32.to_le_bytes());
            header.extend(modulus.to_bytes_le());
        }
        for count in [self.variables, self.public, self.domain] {
            header.extend((count as u32).to_le_bytes());
        }
        points::write(&[self.alpha_g1, self.beta_g1], &mut header);
        points::write(&[self.beta_g2, self.gamma_g2], &mut header);
        points::write(&[self.delta_g1], &mut header);
        points::write(&[self.delta_g2], &mut header);
        let mut log = self.circuit_hash.to_vec();
        log.extend((self.contributions.len() as u32).to_le_bytes());
        for contribution in &self.contributions {
            contribution.write(&mut log);
        }
        let sections = [
            (1, GROTH16.to_le_bytes().to_vec()),
            (2, header),
            (3, points::to_bytes(&self.ic)),
            (4, self.entries.clone()),
            (5, points::to_bytes(&self.a)),
            (6, points::to_bytes(&self.b_g1)),
            (7, points::to_bytes(&self.b_g2)),
            (8, points::to_bytes(&self.l)),
            (9, points::to_bytes(&self.h)),
            (10, log),
        ];
        container::write("zkey", &sections)
    }
}

fn read_contributions(bytes: &[u8]) -> Result<([u8; 64], Vec<Contribution>), Error> {
    let wrong = |_| Error::SectionLength(10);
    let mut reader = Reader(bytes);
    let hash = reader.array().map_err(wrong)?;
    let count = reader.u32().map_err(wrong)?;
    if count > MAX_CONTRIBUTIONS {
        return Err(Error::SectionLength(10));
    }
    let all = (0..count).map(|_| Contribution::read(&mut reader)).collect::<Result<_, _>>()?;
    if !reader.0.is_empty() {
        return Err(Error::SectionLength(10));
    }
    Ok((hash, all))
}
