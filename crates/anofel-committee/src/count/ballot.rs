//! A bundle's encrypted bits: what is encrypted, to whom, and what it is bound to.

use anofel_primitives::commitment::{TypeBlinding, TypeCommitment};
use anofel_primitives::identity::DatasetType;
use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use rand::{CryptoRng, RngCore};
use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::proof;
use crate::error::{check_length, check_range};
use crate::group::{base, decode_point, decode_real_point, random_scalar, ELEMENT_BYTES};
use crate::transcript::Transcript;
use crate::Error;

/// U ‖ V.
pub const CIPHERTEXT_BYTES: usize = 2 * ELEMENT_BYTES;

/// The largest bundle.
pub const MAX_COMMITTEES: usize = 64;

/// The most dataset types that one task lists.
const MAX_TYPES: usize = 64;

/// Which dataset types a task takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepts {
    /// Every type: the count proof does not look at it.
    Any,
    /// These, ascending.
    Types(Vec<u32>),
}

/// One committee of a bundle.
#[derive(Debug, Clone)]
pub struct Committee {
    /// The committee's key.
    pub key_id: [u8; 32],
    /// Y.
    pub key: RistrettoPoint,
    /// What the task behind it takes.
    pub accepts: Accepts,
}

impl Committee {
    /// Reads Y and checks the list of types.
    pub fn new(key_id: [u8; 32], key: &[u8], accepts: Accepts) -> Result<Self, Error> {
        if let Accepts::Types(types) = &accepts {
            check_range("the number of dataset types", types.len() as i128, 1, MAX_TYPES as i128)?;
            if types.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(Error::Members { what: "the dataset types are not ascending" });
            }
        }
        Ok(Self { key_id, key: decode_real_point("the count key", key)?, accepts })
    }

    /// The dataset types, one branch of the proof each; `None` stands for any.
    pub(super) fn branches(&self) -> Vec<Option<u32>> {
        match &self.accepts {
            Accepts::Any => vec![None],
            Accepts::Types(types) => types.iter().copied().map(Some).collect(),
        }
    }
}

/// Everything that a ballot is bound to.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// The board.
    pub genesis: [u8; 32],
    /// H(genesis, bundle, iteration).
    pub scope: [u8; 32],
    /// The iteration nullifier.
    pub nullifier: [u8; 32],
    /// The tag.
    pub tag: [u8; 32],
    /// The post's signing key.
    pub pk_sig: [u8; 32],
    /// The dataset type commitment of the submission proof.
    pub type_commitment: TypeCommitment,
    /// The committees in the bundle's order.
    pub committees: Vec<Committee>,
}

impl Bundle {
    /// Refuses an empty bundle and one beyond [`MAX_COMMITTEES`].
    pub fn check(&self) -> Result<(), Error> {
        let committees = self.committees.len() as i128;
        check_range("the number of committees", committees, 1, MAX_COMMITTEES as i128)
    }

    /// Covers every field, in order.
    pub(super) fn transcript(&self) -> Transcript {
        let mut transcript = Transcript::new("anofel/1/committee/count");
        transcript
            .field("genesis", &self.genesis)
            .field("scope", &self.scope)
            .field("nullifier", &self.nullifier)
            .field("tag", &self.tag)
            .field("pk_sig", &self.pk_sig)
            .field("dataset type commitment", &self.type_commitment.to_bytes());
        for committee in &self.committees {
            let types: Vec<u8> = match &committee.accepts {
                Accepts::Any => Vec::new(),
                Accepts::Types(types) => types.iter().flat_map(|t| t.to_le_bytes()).collect(),
            };
            transcript
                .field("committee key", &committee.key_id)
                .field("count key", committee.key.compress().as_bytes())
                .field("accepted types", &types);
        }
        transcript
    }
}

/// What the client knows: where the bit is 1, its dataset type, and ρ.
pub struct Opening {
    /// The position of the 1; `None` for a cover post.
    pub target: Option<usize>,
    /// dt.
    pub dataset_type: DatasetType,
    /// ρ.
    pub blinding: TypeBlinding,
}

/// One encrypted bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ciphertext {
    /// U = k·G.
    pub u: RistrettoPoint,
    /// V = k·Y + b·G.
    pub v: RistrettoPoint,
}

impl Ciphertext {
    /// Reads U ‖ V.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        check_length("an encrypted bit", CIPHERTEXT_BYTES, bytes.len())?;
        Ok(Self {
            u: decode_point("U of an encrypted bit", &bytes[..ELEMENT_BYTES])?,
            v: decode_point("V of an encrypted bit", &bytes[ELEMENT_BYTES..])?,
        })
    }

    /// U ‖ V.
    pub fn to_bytes(self) -> [u8; CIPHERTEXT_BYTES] {
        let mut bytes = [0; CIPHERTEXT_BYTES];
        bytes[..ELEMENT_BYTES].copy_from_slice(self.u.compress().as_bytes());
        bytes[ELEMENT_BYTES..].copy_from_slice(self.v.compress().as_bytes());
        bytes
    }
}

/// The encrypted bits of one post, with their proof.
pub struct Ballot {
    ciphertexts: Vec<Ciphertext>,
    proof: proof::Proof,
}

/// What opens the bits of a ballot that was cast (kept).
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct SecretBits {
    randomness: Vec<Scalar>,
    ones: Vec<u8>,
}

impl SecretBits {
    /// k and b for a committee of the bundle.
    pub fn at(&self, position: usize) -> Option<(Scalar, u8)> {
        self.randomness.get(position).copied().zip(self.ones.get(position).copied())
    }
}

impl Ballot {
    /// Encrypts the bits and proves them; what opens them goes into contribution proofs.
    pub fn new(
        bundle: &Bundle,
        opening: &Opening,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<(Self, SecretBits), Error> {
        bundle.check()?;
        check_opening(bundle, opening)?;
        let randomness: Zeroizing<Vec<Scalar>> =
            Zeroizing::new(bundle.committees.iter().map(|_| random_scalar(rng)).collect());
        let ciphertexts: Vec<Ciphertext> = bundle
            .committees
            .iter()
            .zip(randomness.iter())
            .enumerate()
            .map(|(position, (committee, k))| {
                encrypt(committee, k, opening.target == Some(position))
            })
            .collect();
        let truths = proof::truths(bundle, opening);
        let rho = Zeroizing::new(opening.blinding.scalar());
        let proof = proof::prove(bundle, &ciphertexts, &randomness, &rho, &truths, rng);
        let places = 0..bundle.committees.len();
        let ones = places.map(|place| u8::from(opening.target == Some(place))).collect();
        let secrets = SecretBits { randomness: randomness.to_vec(), ones };
        Ok((Self { ciphertexts, proof }, secrets))
    }

    /// The ciphertexts in the bundle's order, then the proof.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            self.ciphertexts.iter().flat_map(|ciphertext| ciphertext.to_bytes()).collect();
        self.proof.write(&mut bytes);
        bytes
    }

    /// Reads a ballot for a bundle; the bundle alone decides its length.
    pub fn from_bytes(bundle: &Bundle, bytes: &[u8]) -> Result<Self, Error> {
        bundle.check()?;
        check_length("the ballot", Self::length(bundle), bytes.len())?;
        let (ciphertexts, proof) = bytes.split_at(bundle.committees.len() * CIPHERTEXT_BYTES);
        let ciphertexts = ciphertexts
            .chunks_exact(CIPHERTEXT_BYTES)
            .map(Ciphertext::from_bytes)
            .collect::<Result<_, _>>()?;
        Ok(Self { ciphertexts, proof: proof::Proof::read(bundle, proof)? })
    }

    /// Bytes of a ballot for this bundle.
    pub fn length(bundle: &Bundle) -> usize {
        bundle.committees.len() * CIPHERTEXT_BYTES + proof::Proof::length(bundle)
    }

    /// Reads and checks many ballots side by side and returns the bad ones by their place, in order.
    ///
    /// A proof carries challenges, not first messages, so no sum of equations can stand for many;
    /// what a batch saves is waiting for one core.
    pub fn refused(ballots: &[(&Bundle, &[u8])]) -> Vec<(usize, Error)> {
        ballots
            .par_iter()
            .enumerate()
            .filter_map(|(index, (bundle, bytes))| {
                let verdict = Self::from_bytes(bundle, bytes).and_then(|read| read.verify(bundle));
                verdict.err().map(|error| (index, error))
            })
            .collect()
    }

    /// Checks the proof.
    pub fn verify(&self, bundle: &Bundle) -> Result<(), Error> {
        proof::verify(bundle, &self.ciphertexts, &self.proof)
    }
}

fn encrypt(committee: &Committee, k: &Scalar, one: bool) -> Ciphertext {
    // Both possibilities are computed, so that the bit does not show in the time.
    let choice = subtle::Choice::from(u8::from(one));
    let masked = committee.key * k;
    let with_one = masked + RISTRETTO_BASEPOINT_POINT;
    let v = subtle::ConditionallySelectable::conditional_select(&masked, &with_one, choice);
    Ciphertext { u: base(k), v }
}

/// A target exists, its task takes the type, and the commitment opens.
fn check_opening(bundle: &Bundle, opening: &Opening) -> Result<(), Error> {
    if TypeCommitment::new(opening.dataset_type, &opening.blinding) != bundle.type_commitment {
        return Err(Error::Proof { what: "the opening of the dataset type commitment" });
    }
    let Some(target) = opening.target else { return Ok(()) };
    let last = bundle.committees.len() as i128 - 1;
    check_range("the target's position", target as i128, 0, last)?;
    match &bundle.committees[target].accepts {
        Accepts::Types(types) if !types.contains(&opening.dataset_type.0) => {
            Err(Error::Proof { what: "the task's acceptance of the dataset type" })
        }
        _ => Ok(()),
    }
}
