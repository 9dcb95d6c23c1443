//! Powers of tau of our own, for people who cannot get the public file.
//!
//! The state is a `.ptau` file with sections 1 to 7 and a log of ours in section 1000; it begins with
//! τ = α = β = 1. A contributor draws all three anew: every point is multiplied by its power. For
//! each of them the log holds the point after it (τ·G1, α·G1, β·G1) and a proof of knowledge as in
//! phase 2. So the log and the last state suffice: the log says what τ, α and β are, and the last
//! state is checked to be their powers.
//!
//! The log is the number of contributions (4 bytes) and, for each: the three points after it; three times
//! s, x·s and x·sp; its type and parameters as in a `.zkey`. The challenge that sp is hashed from is
//! BLAKE2b-512 over `anofel/1/powers`, the power, the log before, the number of the secret (0 to 2), s and
//! sx.

use anofel_primitives::Fr;
use ark_bn254::{G1Affine, G2Affine};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{Field, UniformRand};
use blake2::{Blake2b512, Digest};
use rand::rngs::OsRng;
use zeroize::Zeroizing;

use super::container::{self, Reader, Sections};
use super::contribution::{checked, Parameters, BEACON, MAX_EXPONENT, PERSON};
use super::error::Error;
use super::points::{self, read_one, same_ratio};
use super::powers::{self, Powers, MAX_POWER, MIN_POWER};
use super::secret::Secret;
use super::stream::{hash_to_g2, Stream};
use super::verify::{BEACON_EXPONENT, MIN_CONTRIBUTIONS};

const NAMES: [&str; 3] = ["τ", "α", "β"];

/// One secret's part of a contribution.
#[derive(Clone)]
struct Part {
    after: G1Affine,
    s: G1Affine,
    sx: G1Affine,
    spx: G2Affine,
}

/// One entry of the log.
#[derive(Clone)]
pub struct Entry {
    parts: [Part; 3],
    kind: u32,
    parameters: Vec<u8>,
}

/// Powers of tau with the log of how they came about.
#[derive(Clone)]
pub struct Accumulator {
    powers: Powers,
    log: Vec<Entry>,
}

/// One contribution, for people.
pub struct Summary {
    /// Its hash.
    pub hash: [u8; 64],
    /// Whether it is the beacon.
    pub is_beacon: bool,
    /// What its parameters say.
    pub parameters: Parameters,
}

impl Entry {
    fn write(&self, bytes: &mut Vec<u8>) {
        for part in &self.parts {
            points::write(&[part.after, part.s, part.sx], bytes);
            points::write(&[part.spx], bytes);
        }
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend((self.parameters.len() as u32).to_le_bytes());
        bytes.extend(&self.parameters);
    }

    fn read(reader: &mut Reader) -> Result<Self, Error> {
        let mut part = || {
            Ok(Part {
                after: read_one(reader.take(64)?, "the log")?,
                s: read_one(reader.take(64)?, "the log")?,
                sx: read_one(reader.take(64)?, "the log")?,
                spx: read_one(reader.take(128)?, "the log")?,
            })
        };
        let parts = [part()?, part()?, part()?];
        let kind = reader.u32()?;
        let length = reader.u32()? as usize;
        Ok(Self { parts, kind, parameters: reader.take(length)?.to_vec() })
    }
}

fn log_bytes(log: &[Entry]) -> Vec<u8> {
    let mut bytes = (log.len() as u32).to_le_bytes().to_vec();
    log.iter().for_each(|entry| entry.write(&mut bytes));
    bytes
}

fn challenge(power: u32, log: &[Entry], secret: usize, s: &G1Affine, sx: &G1Affine) -> [u8; 64] {
    let mut hash = Blake2b512::new();
    hash.update(b"anofel/1/powers");
    hash.update(power.to_le_bytes());
    hash.update(log_bytes(log));
    hash.update([secret as u8]);
    hash.update(points::hashed(s));
    hash.update(points::hashed(sx));
    hash.finalize().into()
}

impl Accumulator {
    /// The state before anybody contributed.
    pub fn new(power: u32) -> Result<Self, Error> {
        if !(MIN_POWER..=MAX_POWER).contains(&power) {
            return Err(Error::Power);
        }
        let n = 1usize << power;
        let (one, two) = (G1Affine::generator(), G2Affine::generator());
        let powers = Powers {
            power,
            tau_g1: vec![one; 2 * n - 1],
            tau_g2: vec![two; n],
            alpha_g1: vec![one; n],
            beta_g1: vec![one; n],
            beta_g2: two,
        };
        Ok(Self { powers, log: Vec::new() })
    }

    /// Reads a state and checks everything about it.
    ///
    /// 1. Every point is valid, and the sections are powers as [`Powers`] checks.
    /// 2. Every contribution: x is not ±1, its author knew x, and the point after it is the one before
    ///    times x, for τ, α and β; a beacon is what its parameters give; nothing follows a beacon.
    /// 3. The points after the last contribution are those of the sections.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let sections = Sections::read("ptau", bytes)?;
        if !sections.has(powers::LOG) {
            return Err(Error::NoLog);
        }
        let powers = Powers::read_points(&sections)?;
        if powers.tau_g1.len() * 64 != sections.get(powers::TAU_G1)?.len() {
            return Err(Error::Power);
        }
        let mut reader = Reader(sections.get(powers::LOG)?);
        let wrong = |error| match error {
            Error::Truncated => Error::SectionLength(powers::LOG),
            other => other,
        };
        let count = reader.u32().map_err(wrong)?;
        let mut log = Vec::new();
        for _ in 0..count {
            log.push(Entry::read(&mut reader).map_err(wrong)?);
        }
        if !reader.0.is_empty() {
            return Err(Error::SectionLength(powers::LOG));
        }
        let read = Self { powers, log };
        read.powers.check()?;
        read.check_log()?;
        Ok(read)
    }

    fn check_log(&self) -> Result<(), Error> {
        let mut before = [G1Affine::generator(); 3];
        for (i, entry) in self.log.iter().enumerate() {
            let number = i + 1;
            for (secret, part) in entry.parts.iter().enumerate() {
                if part.s == part.sx || part.s == -part.sx {
                    return Err(Error::ChangesNothing(number));
                }
                let earlier = &self.log[..i];
                let hash = challenge(self.powers.power, earlier, secret, &part.s, &part.sx);
                let sp = hash_to_g2(&hash);
                if !same_ratio(part.s, part.sx, sp, part.spx) {
                    return Err(Error::NoKnowledge(number));
                }
                if !same_ratio(before[secret], part.after, sp, part.spx) {
                    return Err(Error::PowerDoesNotFollow(NAMES[secret], number));
                }
                before[secret] = part.after;
            }
            self.check_kind(number, entry)?;
        }
        let found = [self.powers.tau_g1[1], self.powers.alpha_g1[0], self.powers.beta_g1[0]];
        for ((name, expected), found) in NAMES.into_iter().zip(before).zip(found) {
            if expected != found {
                return Err(Error::LastPower(name));
            }
        }
        Ok(())
    }

    fn check_kind(&self, number: usize, entry: &Entry) -> Result<(), Error> {
        let found = Parameters::read(&entry.parameters).ok_or(Error::Parameters(number))?;
        match (entry.kind, found.exponent, found.beacon) {
            (PERSON, None, None) => Ok(()),
            (BEACON, Some(exponent), Some(beacon)) if exponent <= MAX_EXPONENT => {
                for ((x, s), part) in beacon_points(&beacon, exponent).into_iter().zip(&entry.parts)
                {
                    if part.s != s || part.sx != (s * x).into_affine() {
                        return Err(Error::NotThatBeacon(number));
                    }
                }
                if number < self.log.len() {
                    return Err(Error::BeaconNotLast(number));
                }
                Ok(())
            }
            (PERSON | BEACON, ..) => Err(Error::Parameters(number)),
            _ => Err(Error::UnknownContribution(number)),
        }
    }

    /// Refuses powers whose ceremony has not ended with two people and this beacon.
    pub fn check_end(&self, beacon: &[u8]) -> Result<(), Error> {
        let people = self.log.iter().filter(|entry| entry.kind == PERSON).count();
        if people < MIN_CONTRIBUTIONS {
            let (needed, found) = (MIN_CONTRIBUTIONS, people);
            let statement = "powers of tau";
            return Err(Error::TooFewContributions { statement, needed, found });
        }
        let statement = "powers of tau";
        let last = self.log.last().filter(|entry| entry.kind == BEACON);
        let found = last.and_then(|entry| Parameters::read(&entry.parameters));
        let found = found.ok_or(Error::NoBeacon(statement))?;
        if found.exponent != Some(BEACON_EXPONENT) {
            let (needed, found) = (BEACON_EXPONENT, found.exponent.unwrap_or_default());
            return Err(Error::BeaconExponent { statement, needed, found });
        }
        if found.beacon.as_deref() != Some(beacon) {
            return Err(Error::WrongBeacon(statement));
        }
        Ok(())
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let powers = &self.powers;
        let sections = [
            (powers::HEADER, powers::header(powers.power)),
            (powers::TAU_G1, points::to_bytes(&powers.tau_g1)),
            (powers::TAU_G2, points::to_bytes(&powers.tau_g2)),
            (powers::ALPHA_G1, points::to_bytes(&powers.alpha_g1)),
            (powers::BETA_G1, points::to_bytes(&powers.beta_g1)),
            (powers::BETA_G2, points::to_bytes(&[powers.beta_g2])),
            (powers::CONTRIBUTIONS, 0u32.to_le_bytes().to_vec()), // none that snarkjs would read
            (powers::LOG, log_bytes(&self.log)),
        ];
        container::write("ptau", &sections)
    }

    /// For circuits of at most 2^power rows.
    pub fn power(&self) -> u32 {
        self.powers.power
    }

    /// Who contributed, in order.
    pub fn summaries(&self) -> Vec<Summary> {
        let one = |entry: &Entry| {
            let mut bytes = Vec::new();
            entry.write(&mut bytes);
            Summary {
                hash: Blake2b512::digest(bytes).into(),
                is_beacon: entry.kind == BEACON,
                parameters: Parameters::read(&entry.parameters).unwrap_or_default(),
            }
        };
        self.log.iter().map(one).collect()
    }

    /// Adds a person's contribution. Returns whether the secrets were kept out of the swap file; they
    /// are gone.
    pub fn contribute(&mut self, name: &str) -> Result<bool, Error> {
        self.refuse_ended()?;
        let parameters = Parameters { name: Some(checked(name)?), ..Parameters::default() };
        let secrets = [(); 3].map(|()| Secret::draw());
        let drawn = [0, 1, 2].map(|i| (*secrets[i].expose(), G1Affine::rand(&mut OsRng)));
        self.apply(
            &Zeroizing::new(drawn.map(|(x, _)| x)),
            drawn.map(|(_, s)| s),
            PERSON,
            &parameters,
        );
        Ok(secrets.iter().all(Secret::is_locked))
    }

    /// Adds the contribution of a beacon, which anybody can repeat.
    pub fn add_beacon(&mut self, beacon: &[u8], name: &str) -> Result<(), Error> {
        self.refuse_ended()?;
        if !(16..=255).contains(&beacon.len()) {
            return Err(Error::BeaconLength);
        }
        let parameters = Parameters {
            name: Some(checked(name)?),
            exponent: Some(BEACON_EXPONENT),
            beacon: Some(beacon.to_vec()),
        };
        let drawn = beacon_points(beacon, BEACON_EXPONENT);
        self.apply(&drawn.map(|(x, _)| x), drawn.map(|(_, s)| s), BEACON, &parameters);
        Ok(())
    }

    fn refuse_ended(&self) -> Result<(), Error> {
        if self.log.iter().any(|entry| entry.kind == BEACON) {
            return Err(Error::Ended);
        }
        Ok(())
    }

    fn apply(&mut self, secrets: &[Fr; 3], s: [G1Affine; 3], kind: u32, parameters: &Parameters) {
        let [tau, alpha, beta] = secrets;
        let powers = &mut self.powers;
        let times = |first: Fr, count| -> Zeroizing<Vec<Fr>> {
            let mut values = Zeroizing::new(vec![first; count]);
            for i in 1..count {
                values[i] = values[i - 1] * tau;
            }
            values
        };
        powers.tau_g1 = points::scale(&powers.tau_g1, &times(Fr::ONE, powers.tau_g1.len()));
        powers.tau_g2 = points::scale(&powers.tau_g2, &times(Fr::ONE, powers.tau_g2.len()));
        powers.alpha_g1 = points::scale(&powers.alpha_g1, &times(*alpha, powers.alpha_g1.len()));
        powers.beta_g1 = points::scale(&powers.beta_g1, &times(*beta, powers.beta_g1.len()));
        powers.beta_g2 = (powers.beta_g2 * beta).into_affine();
        let after = [powers.tau_g1[1], powers.alpha_g1[0], powers.beta_g1[0]];
        let parts = std::array::from_fn(|i| {
            let sx = (s[i] * secrets[i]).into_affine();
            let hash = challenge(powers.power, &self.log, i, &s[i], &sx);
            let spx = (hash_to_g2(&hash) * secrets[i]).into_affine();
            Part { after: after[i], s: s[i], sx, spx }
        });
        self.log.push(Entry { parts, kind, parameters: parameters.to_bytes() });
    }
}

/// τ, α and β of a beacon, each with its s.
fn beacon_points(beacon: &[u8], exponent: u8) -> [(Fr, G1Affine); 3] {
    let mut stream = Stream::of_beacon(beacon, exponent);
    std::array::from_fn(|_| (stream.scalar(), stream.g1()))
}
