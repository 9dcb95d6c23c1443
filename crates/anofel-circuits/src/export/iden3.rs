//! Constraints and assignments as the binary files of iden3: `.r1cs` (version 1) and `.wtns`
//! (version 2).
//!
//! Both begin with four letters, the version and the number of sections (4 bytes each); a section
//! is its type (4 bytes), its length (8 bytes) and its contents. Integers are little-endian, field
//! elements have 32 bytes and are not in Montgomery form. The order of variables is the same as
//! ours: one, public, private. Circom tells public outputs from public inputs; all of ours are
//! written as inputs.

use anofel_primitives::{field, Fr};
use ark_ff::{BigInteger, PrimeField};
use zeroize::Zeroizing;

use crate::system::{Row, System};

/// The recorded constraints as a `.r1cs` file.
pub fn r1cs(system: &System) -> Vec<u8> {
    let constraints = system.constraints();
    assert_eq!(constraints.len(), system.left().len(), "a system that was solved, not recorded");
    let variables = system.assignment().len();

    let mut header = field_header();
    header.extend((variables as u32).to_le_bytes());
    header.extend(0u32.to_le_bytes()); // public outputs
    header.extend((system.num_public() as u32).to_le_bytes());
    // Private inputs: a recorded system does not tell them from what is computed from them.
    header.extend(0u32.to_le_bytes());
    header.extend((variables as u64).to_le_bytes()); // labels
    header.extend((constraints.len() as u32).to_le_bytes());

    let mut rows = Vec::new();
    for constraint in constraints {
        for row in [&constraint.a, &constraint.b, &constraint.c] {
            write_row(&mut rows, row);
        }
    }
    // Every variable is its own label.
    let labels: Vec<u8> = (0..variables as u64).flat_map(u64::to_le_bytes).collect();
    file(b"r1cs", 1, &[(1, &header), (2, &rows), (3, &labels)])
}

/// The values of all variables as a `.wtns` file.
///
/// It holds the whole witness in the clear: whoever reads it knows the client's secrets.
pub fn wtns(system: &System) -> Zeroizing<Vec<u8>> {
    let assignment = system.assignment();
    let mut header = field_header();
    header.extend((assignment.len() as u32).to_le_bytes());
    let mut values = Zeroizing::new(Vec::with_capacity(assignment.len() * field::FIELD_BYTES));
    for value in assignment {
        values.extend_from_slice(&*Zeroizing::new(field::to_bytes(value)));
    }
    Zeroizing::new(file(b"wtns", 2, &[(1, &header), (2, &values)]))
}

/// The length of a field element and the modulus.
fn field_header() -> Vec<u8> {
    let mut header = (field::FIELD_BYTES as u32).to_le_bytes().to_vec();
    header.extend(Fr::MODULUS.to_bytes_le());
    header
}

/// The number of entries, then variable and coefficient of each.
fn write_row(bytes: &mut Vec<u8>, row: &Row) {
    bytes.extend((row.len() as u32).to_le_bytes());
    for (variable, coefficient) in row {
        bytes.extend(variable.to_le_bytes());
        bytes.extend(field::to_bytes(coefficient));
    }
}

/// Puts sections into a file. The length is known first, so that no copy of a secret is left
/// behind by a growing vector.
fn file(letters: &[u8; 4], version: u32, sections: &[(u32, &Vec<u8>)]) -> Vec<u8> {
    let length = 12 + sections.iter().map(|(_, contents)| 12 + contents.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(letters);
    bytes.extend(version.to_le_bytes());
    bytes.extend((sections.len() as u32).to_le_bytes());
    for (kind, contents) in sections {
        bytes.extend(kind.to_le_bytes());
        bytes.extend((contents.len() as u64).to_le_bytes());
        bytes.extend_from_slice(contents);
    }
    bytes
}
