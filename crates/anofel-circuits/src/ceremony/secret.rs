//! A contributor's secret.

use anofel_primitives::Fr;
use ark_ff::UniformRand;
use rand::rngs::OsRng;
use zeroize::Zeroize;

/// A number from the operating system that is wiped when it is dropped. It cannot be given, seeded,
/// written or shown.
///
/// Its page is kept out of the swap file where the system allows it; [`Secret::is_locked`] says so.
/// Copies that the compiler leaves in registers and on the stack are not reached.
pub struct Secret {
    value: Box<Fr>,
    lock: Option<region::LockGuard>,
}

impl Secret {
    /// Draws a number other than 0, 1 and −1.
    pub fn draw() -> Self {
        let mut value = Box::new(Fr::from(0u64));
        let lock = region::lock(std::ptr::from_ref(&*value), size_of::<Fr>()).ok();
        while *value == Fr::from(0u64) || *value * *value == Fr::from(1u64) {
            *value = Fr::rand(&mut OsRng);
        }
        Self { value, lock }
    }

    /// The number. SECRET: for the arithmetic of a contribution alone.
    pub fn expose(&self) -> &Fr {
        &self.value
    }

    /// Whether the system promised not to swap it out.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.value.zeroize();
    }
}
