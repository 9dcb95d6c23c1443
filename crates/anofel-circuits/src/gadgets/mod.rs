//! The pieces that statements are made of. A gadget has the name of what it constrains.

pub mod curve;
pub mod digits;
pub mod poseidon;
pub mod tree;
