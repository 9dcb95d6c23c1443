//! Hashes and signatures.

use anofel_primitives::eddsa::{CertifierKey, Possession};
use anofel_primitives::message_key::MessageKey;
use anofel_primitives::prf::Scope;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use p256::ecdsa::signature::Verifier;
use p256::ecdsa::{Signature, VerifyingKey};
use sha2::{Digest, Sha256, Sha384, Sha512};
use wasm_bindgen::prelude::*;

use crate::error::{fail, hex, name, unhex, Result};

/// SHA-256.
#[wasm_bindgen]
pub fn sha256(data: &[u8]) -> Vec<u8> {
    Sha256::digest(data).to_vec()
}

/// SHA-256 in hexadecimal digits.
#[wasm_bindgen(js_name = sha256Hex)]
pub fn sha256_hex(data: &[u8]) -> String {
    hex(&Sha256::digest(data))
}

/// Checks the signature of a message key, by the strict rule of the board.
#[wasm_bindgen(js_name = verifyMessageKey)]
pub fn verify_message_key(key: &str, message: &[u8], signature: &str) -> Result<()> {
    let key = MessageKey::from_bytes(&unhex(key)?).map_err(fail)?;
    key.verify(message, &unhex(signature)?).map_err(fail)
}

/// Whether r ‖ s is an ECDSA signature on P-256 with SHA-256; the key is an uncompressed point.
#[wasm_bindgen(js_name = holdsP256)]
pub fn holds_p256(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let key = VerifyingKey::from_sec1_bytes(point);
    let signature = Signature::from_slice(signature);
    matches!((key, signature), (Ok(key), Ok(signature)) if key.verify(message, &signature).is_ok())
}

/// SHA-256, SHA-384 or SHA-512, by its number of bits.
#[wasm_bindgen]
pub fn sha2(bits: u32, data: &[u8]) -> Result<Vec<u8>> {
    match bits {
        256 => Ok(Sha256::digest(data).to_vec()),
        384 => Ok(Sha384::digest(data).to_vec()),
        512 => Ok(Sha512::digest(data).to_vec()),
        _ => Err(fail("there is no such hash")),
    }
}

/// Whether a hash has this ECDSA signature, in DER as certificates carry it, on P-256, P-384 or P-521.
#[wasm_bindgen(js_name = holdsEcdsa)]
pub fn holds_ecdsa(curve: u32, point: &[u8], hash: &[u8], signature: &[u8]) -> bool {
    // The crates refuse a hash of less than half the field; zeros before it do not change the number.
    let mut padded = vec![0; 66usize.saturating_sub(hash.len())];
    padded.extend_from_slice(hash);
    let hash = if curve == 521 { padded.as_slice() } else { hash };
    macro_rules! holds {
        ($curve:ident) => {{
            let key = $curve::ecdsa::VerifyingKey::from_sec1_bytes(point);
            let signature = $curve::ecdsa::Signature::from_der(signature);
            matches!((key, signature), (Ok(key), Ok(signature)) if key.verify_prehash(hash, &signature).is_ok())
        }};
    }
    match curve {
        256 => holds!(p256),
        384 => holds!(p384),
        521 => holds!(p521),
        _ => false,
    }
}

/// Whether the bytes are a point of P-256.
#[wasm_bindgen(js_name = isP256)]
pub fn is_p256(point: &[u8]) -> bool {
    VerifyingKey::from_sec1_bytes(point).is_ok()
}

/// Checks that a certifier knows the secret of its key.
#[wasm_bindgen(js_name = verifyPossession)]
pub fn verify_possession(key: &str, genesis: &str, holder: &str, possession: &str) -> Result<()> {
    let key = CertifierKey::from_bytes(&unhex(key)?).map_err(fail)?;
    let possession = Possession::from_bytes(&unhex(possession)?).map_err(fail)?;
    key.verify_possession(name(genesis)?, name(holder)?, &possession).map_err(fail)
}

/// What a nullifier of an iteration is bound to.
#[wasm_bindgen]
pub fn scope(genesis: &str, bundle: u64, iteration: u64) -> Result<String> {
    Ok(hex(&Scope::new(&name(genesis)?, bundle, iteration).to_bytes()))
}
