//! Making keys.

use anofel_primitives::Fr;
use ark_bn254::{Bn254, G1Projective, G2Projective};
use ark_ff::UniformRand;
use ark_groth16::Groth16;
use rand::{CryptoRng, RngCore};

use crate::groth16::ark::Replay;
use crate::groth16::key::{Origin, ProvingKey};
use crate::statements::StatementKind;

/// Makes a key for development: one party knows the trapdoor for a moment and could keep it, and
/// whoever has it proves anything. The key says so wherever it goes.
pub fn insecure_development_key(
    kind: StatementKind,
    rng: &mut (impl RngCore + CryptoRng),
) -> ProvingKey {
    let system = kind.record();
    ProvingKey::new(kind, &system, Origin::Development, &stock_key(&system, rng))
}

/// The key of `ark-groth16` for a recorded system.
pub fn stock_key(
    system: &crate::system::System,
    rng: &mut (impl RngCore + CryptoRng),
) -> ark_groth16::ProvingKey<Bn254> {
    let [alpha, beta, gamma, delta] = [(); 4].map(|()| Fr::rand(rng));
    Groth16::<Bn254>::generate_parameters_with_qap(
        Replay(system),
        alpha,
        beta,
        gamma,
        delta,
        G1Projective::rand(rng),
        G2Projective::rand(rng),
        rng,
    )
    .expect("a recorded system has far fewer constraints than the field has roots of unity")
}
