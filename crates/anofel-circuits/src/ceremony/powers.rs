//! Powers of tau: phase 1, which serves every circuit, read from a `.ptau` file.
//!
//! Sections 2 to 5 hold τ^i in G1 (2n − 1 points) and in G2 (n), α·τ^i and β·τ^i in G1 (n each);
//! section 6 holds β in G2. Sections 12 to 15 hold the same in the Lagrange bases of the domains of
//! 1, 2, 4, … points. Verification uses sections 2 to 6 alone; making a first key takes the
//! Lagrange points of the size it needs, after a check against the powers, and never those of the
//! domain of 2n.

use anofel_primitives::Fr;
use ark_bn254::{g1, g2, Fq, G1Affine, G2Affine};
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, PrimeField};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use blake2::{Blake2b512, Digest};

use super::container::{Reader, Sections};
use super::error::Error;
use super::points::{combine, factors, read_one, read_powers, same_ratio, Curve};

/// The smallest power that is read or made.
pub const MIN_POWER: u32 = 2;
/// The largest power that is made, and the most that is read of a larger file: no statement has
/// more than 2^13 rows.
pub const MAX_POWER: u32 = 13;

pub(super) const HEADER: u32 = 1;
pub(super) const TAU_G1: u32 = 2;
pub(super) const TAU_G2: u32 = 3;
pub(super) const ALPHA_G1: u32 = 4;
pub(super) const BETA_G1: u32 = 5;
pub(super) const BETA_G2: u32 = 6;
pub(super) const CONTRIBUTIONS: u32 = 7;
const LAGRANGE: u32 = 12;
/// Where our own phase 1 keeps its log.
pub(super) const LOG: u32 = 1000;
const KNOWN: [u32; 12] =
    [HEADER, TAU_G1, TAU_G2, ALPHA_G1, BETA_G1, BETA_G2, CONTRIBUTIONS, 12, 13, 14, 15, LOG];

/// The powers in a file, each point checked, and all of them checked to be powers.
#[derive(Clone)]
pub struct Powers {
    /// For circuits of at most 2^power rows.
    pub power: u32,
    /// τ^i in G1.
    pub tau_g1: Vec<G1Affine>,
    /// τ^i in G2.
    pub tau_g2: Vec<G2Affine>,
    /// α·τ^i.
    pub alpha_g1: Vec<G1Affine>,
    /// β·τ^i.
    pub beta_g1: Vec<G1Affine>,
    /// β in G2.
    pub beta_g2: G2Affine,
}

/// The powers in the Lagrange basis of a domain.
pub struct Lagrange {
    /// L_i(τ) in G1.
    pub tau_g1: Vec<G1Affine>,
    /// L_i(τ) in G2.
    pub tau_g2: Vec<G2Affine>,
    /// α·L_i(τ).
    pub alpha_g1: Vec<G1Affine>,
    /// β·L_i(τ).
    pub beta_g1: Vec<G1Affine>,
}

/// The BLAKE2b-512 of a file, by which public powers of tau are named.
pub fn digest(bytes: &[u8]) -> [u8; 64] {
    Blake2b512::digest(bytes).into()
}

impl Powers {
    /// Reads sections 2 to 6 and checks everything about them.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let sections = Sections::read("ptau", bytes)?;
        let powers = Self::read_points(&sections)?;
        powers.check()?;
        Ok(powers)
    }

    pub(super) fn read_points(sections: &Sections) -> Result<Self, Error> {
        sections.only(&KNOWN)?;
        let in_file = read_header(sections)?;
        let (n, all) = (1usize << in_file.min(MAX_POWER), 1usize << in_file);
        let part = |number, length: usize, used: usize, size| {
            Ok(&sections.sized(number, length * size)?[..used * size])
        };
        Ok(Self {
            power: in_file.min(MAX_POWER),
            tau_g1: read_powers(part(TAU_G1, 2 * all - 1, 2 * n - 1, 64)?, "τ^i in G1")?,
            tau_g2: read_powers(part(TAU_G2, all, n, 128)?, "τ^i in G2")?,
            alpha_g1: read_powers(part(ALPHA_G1, all, n, 64)?, "α·τ^i")?,
            beta_g1: read_powers(part(BETA_G1, all, n, 64)?, "β·τ^i")?,
            beta_g2: read_one(sections.sized(BETA_G2, 128)?, "β in G2")?,
        })
    }

    /// 1. The powers begin with the generators.
    /// 2. All four sections are consecutive powers of one τ.
    /// 3. β is the same in both groups.
    pub(super) fn check(&self) -> Result<(), Error> {
        let (one, two) = (G1Affine::generator(), G2Affine::generator());
        if self.tau_g1[0] != one || self.tau_g2[0] != two {
            return Err(Error::NoGenerator);
        }
        let r = factors(self.tau_g1.len());
        let (tau_g1, tau_g2) = (self.tau_g1[1], self.tau_g2[1]);
        for (name, points) in
            [("τ^i in G1", &self.tau_g1), ("α·τ^i", &self.alpha_g1), ("β·τ^i", &self.beta_g1)]
        {
            let last = points.len() - 1;
            let [lower, upper] = [&points[..last], &points[1..]].map(|p| combine(p, &r[..last]));
            if !same_ratio(lower.into_affine(), upper.into_affine(), two, tau_g2) {
                return Err(Error::NotPowers(name));
            }
        }
        let last = self.tau_g2.len() - 1;
        let [lower, upper] =
            [&self.tau_g2[..last], &self.tau_g2[1..]].map(|p| combine(p, &r[..last]));
        if !same_ratio(one, tau_g1, lower.into_affine(), upper.into_affine()) {
            return Err(Error::NotPowers("τ^i in G2"));
        }
        if !same_ratio(one, self.beta_g1[0], two, self.beta_g2) {
            return Err(Error::AnotherBeta);
        }
        Ok(())
    }

    /// Refuses powers that do not reach.
    pub(super) fn need(&self, power: u32) -> Result<(), Error> {
        if self.power < power {
            return Err(Error::TooFewPowers { needed: power, found: self.power });
        }
        Ok(())
    }

    /// The Lagrange points of the domain of 2^power: those of the file if it has them, which are
    /// then checked against the powers, and computed otherwise.
    pub fn lagrange(&self, bytes: &[u8], power: u32) -> Result<Lagrange, Error> {
        self.need(power)?;
        let sections = Sections::read("ptau", bytes)?;
        let n = 1usize << power;
        if !sections.has(LAGRANGE) {
            let ((tau_g1, tau_g2), (alpha_g1, beta_g1)) = rayon::join(
                || (to_lagrange(&self.tau_g1[..n]), to_lagrange(&self.tau_g2[..n])),
                || (to_lagrange(&self.alpha_g1[..n]), to_lagrange(&self.beta_g1[..n])),
            );
            return Ok(Lagrange { tau_g1, tau_g2, alpha_g1, beta_g1 });
        }
        let part = |number, size: usize| {
            let range = (n - 1) * size..(2 * n - 1) * size;
            sections.get(number)?.get(range).ok_or(Error::SectionLength(number))
        };
        let found = Lagrange {
            tau_g1: read_powers(part(LAGRANGE, 64)?, "L_i(τ) in G1")?,
            tau_g2: read_powers(part(LAGRANGE + 1, 128)?, "L_i(τ) in G2")?,
            alpha_g1: read_powers(part(LAGRANGE + 2, 64)?, "α·L_i(τ)")?,
            beta_g1: read_powers(part(LAGRANGE + 3, 64)?, "β·L_i(τ)")?,
        };
        let (r, c) = {
            let r = factors(n);
            (r.clone(), domain(n).ifft(&r))
        };
        let right = |ok, name| if ok { Ok(()) } else { Err(Error::WrongLagrange(name)) };
        right(agree(&found.tau_g1, &r, &self.tau_g1, &c), "τ in G1")?;
        right(agree(&found.tau_g2, &r, &self.tau_g2, &c), "τ in G2")?;
        right(agree(&found.alpha_g1, &r, &self.alpha_g1, &c), "α")?;
        right(agree(&found.beta_g1, &r, &self.beta_g1, &c), "β")?;
        Ok(found)
    }
}

/// Σ r_i·L_i(τ) = Σ c_j·τ^j, where c are the coefficients of the polynomial with the values r.
fn agree<C: Curve>(lagrange: &[Affine<C>], r: &[Fr], powers: &[Affine<C>], c: &[Fr]) -> bool {
    combine(lagrange, r) == combine(&powers[..c.len()], c)
}

fn to_lagrange<C: Curve>(powers: &[Affine<C>]) -> Vec<Affine<C>> {
    let mut points: Vec<Projective<C>> = powers.iter().map(|p| p.into_group()).collect();
    domain(points.len()).ifft_in_place(&mut points);
    Projective::normalize_batch(&points)
}

/// The domain of n points.
pub(super) fn domain(n: usize) -> Radix2EvaluationDomain<Fr> {
    Radix2EvaluationDomain::new(n).expect("the field has roots of unity of order 2^28")
}

fn read_header(sections: &Sections) -> Result<u32, Error> {
    let mut header = Reader(sections.sized(HEADER, 4 + 32 + 4 + 4)?);
    if header.u32()? != 32 || header.take(32)? != Fq::MODULUS.to_bytes_le() {
        return Err(Error::AnotherCurve);
    }
    let power = header.u32()?;
    // The power of the ceremony that the file was cut from follows; a cut file is as good.
    if !(MIN_POWER..=28).contains(&power) {
        return Err(Error::Power);
    }
    Ok(power)
}

pub(super) fn header(power: u32) -> Vec<u8> {
    let mut bytes = 32u32.to_le_bytes().to_vec();
    bytes.extend(Fq::MODULUS.to_bytes_le());
    bytes.extend(power.to_le_bytes());
    bytes.extend(power.to_le_bytes());
    bytes
}

const _: () = assert!(g1::Config::BYTES == 64 && g2::Config::BYTES == 128);
