//! Proving keys: the file that is handed out, and the tables that are made of it once.
//!
//! After the header (see [`crate::groth16::key`]) the file of a proving key has
//!
//! ```text
//! the verification key
//! A in G1, B in G2, L, H
//! 32 bytes  id of the tables
//! ```
//!
//! All points are compressed: x, little-endian and below the modulus; the highest bit says that y
//! is the larger root. The constraints say which points of a query are neutral, and those are left
//! out; so the file of a statement has one length, and no other point may be neutral. Every point is
//! checked.
//!
//! Tables hold multiples of these points, uncompressed in Montgomery form, so that loading is
//! copying: a header, the verification key and three tables (A; B in G2; L and H).
//! They follow from the key, bit for bit. Their id, the SHA-256 of their file, stands in the key,
//! so whoever pins a key pins its tables, and tables from anywhere are as good as one's own.
//! Making them compares their id with the one in the key: a key that names others is refused.

use ark_bn254::{g1, g2, Bn254, G1Affine};

use crate::groth16::key::{hex, id_of, Header, KeyId, Origin, Role, VerifyingKey, HEADER_BYTES};
use crate::groth16::msm::Table;
use crate::groth16::points::{Reader, Writer};
use crate::shape;
use crate::statements::StatementKind;
use crate::system::System;
use crate::Error;

/// A proving key, ready to prove.
#[derive(Clone)]
pub struct ProvingKey {
    vk: VerifyingKey,
    /// Σ z·A.
    pub(crate) a: Table<g1::Config>,
    /// Σ z·B.
    pub(crate) b: Table<g2::Config>,
    /// Σ z·L + Σ h·H.
    pub(crate) c: Table<g1::Config>,
}

impl ProvingKey {
    /// Prepares a key of `ark-groth16` for proving: computes the tables.
    pub fn new(
        kind: StatementKind,
        system: &System,
        origin: Origin,
        stock: &ark_groth16::ProvingKey<Bn254>,
    ) -> Self {
        let shape = shape::Shape::of_system(system).digest;
        // The L query starts at the first witness variable.
        let mut c = vec![G1Affine::identity(); system.num_public() + 1];
        c.extend_from_slice(&stock.l_query);
        c.extend_from_slice(&stock.h_query);
        Self {
            vk: VerifyingKey::new(kind, origin, shape, stock.vk.clone()),
            a: Table::new(&stock.a_query),
            b: Table::new(&stock.b_g2_query),
            c: Table::new(&c),
        }
    }

    /// Reads the file of a proving key whose id is pinned, checks every point and makes the tables.
    pub fn from_bytes(kind: StatementKind, bytes: &[u8], pinned: &KeyId) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let header = Header::expect(&mut reader, Role::Proving, kind)?;
        let Positions { a, b, c } = Positions::of_system(&kind.record());
        reader.begin_points(kind, true);
        let (g1, g2) = header.num_points();
        let points = reader.bytes_of(g1 + a.len() + c.len(), g2 + b.len());
        let expected = HEADER_BYTES + points + size_of::<KeyId>();
        if bytes.len() != expected {
            return Err(Error::KeyLength { expected, found: bytes.len() });
        }
        expect_id(bytes, pinned)?;
        let vk = VerifyingKey::read(&mut reader, &header)?;
        vk.check()?;
        let (a_bases, b_bases) = (reader.points(a.len())?, reader.points(b.len())?);
        let c_bases = reader.points(c.len())?;
        let tables_id: KeyId = reader.array()?;
        reader.finish()?;
        let key = Self {
            vk,
            a: Table::of_bases(a, &a_bases),
            b: Table::of_bases(b, &b_bases),
            c: Table::of_bases(c, &c_bases),
        };
        if id_of(&key.to_tables()) != tables_id {
            return Err(Error::UnsafeKey {
                statement: kind.name(),
                reason: "the tables that it names are not its own",
            });
        }
        Ok(key)
    }

    /// Reads tables that were made before of a proving key whose id is pinned. The key vouches
    /// for the tables, so nothing else about them is checked.
    pub fn from_tables(
        kind: StatementKind,
        tables: &[u8],
        key: &[u8],
        pinned: &KeyId,
    ) -> Result<Self, Error> {
        let mut reader = Reader::new(key);
        Header::expect(&mut reader, Role::Proving, kind)?;
        expect_id(key, pinned)?;
        let Some((_, tables_id)) = reader.rest.split_last_chunk::<{ size_of::<KeyId>() }>() else {
            return Err(Error::NotAKey);
        };
        if &id_of(tables) != tables_id {
            return Err(Error::KeyTables { statement: kind.name() });
        }
        let mut reader = Reader::new(tables);
        let header = Header::expect(&mut reader, Role::Tables, kind)?;
        let vk = VerifyingKey::read(&mut reader, &header)?;
        vk.check()?;
        let (a, b, c) = (reader.table()?, reader.table()?, reader.table()?);
        reader.finish()?;
        Ok(Self { vk, a, b, c })
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.vk.write(&mut writer, Role::Proving);
        self.a.bases().for_each(|point| writer.point(&point));
        self.b.bases().for_each(|point| writer.point(&point));
        self.c.bases().for_each(|point| writer.point(&point));
        writer.bytes.extend_from_slice(&id_of(&self.to_tables()));
        writer.bytes
    }

    /// The bytes of its tables.
    pub fn to_tables(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        self.vk.write(&mut writer, Role::Tables);
        writer.table(&self.a);
        writer.table(&self.b);
        writer.table(&self.c);
        writer.bytes
    }

    /// The verification key.
    pub fn verifying_key(&self) -> &VerifyingKey {
        &self.vk
    }

    /// Refuses a key of another statement.
    pub fn expect_kind(&self, kind: StatementKind) -> Result<(), Error> {
        self.vk.expect_kind(kind)
    }
}

fn expect_id(bytes: &[u8], pinned: &KeyId) -> Result<(), Error> {
    let found = id_of(bytes);
    if &found == pinned {
        return Ok(());
    }
    Err(Error::KeyId { expected: hex(pinned), found: hex(&found) })
}

/// Where a key has points that are not neutral, by its constraints: the scalar of each base.
struct Positions {
    a: Vec<u32>,
    b: Vec<u32>,
    /// L at its variables, then H.
    c: Vec<u32>,
}

impl Positions {
    fn of_system(system: &System) -> Self {
        let (variables, inputs) = (system.assignment().len(), system.num_public() + 1);
        let mut used = [vec![false; variables], vec![false; variables], vec![false; variables]];
        for constraint in system.constraints() {
            for (row, used) in [&constraint.a, &constraint.b, &constraint.c].iter().zip(&mut used) {
                row.iter().for_each(|(variable, _)| used[*variable as usize] = true);
            }
        }
        // Every public input has a row of its own in A.
        used[0][..inputs].fill(true);
        let [in_a, in_b, in_c] = used;
        let domain = (system.constraints().len() + inputs).next_power_of_two();
        let where_true = |used: &[bool], from: usize| -> Vec<u32> {
            (from..used.len()).filter(|i| used[*i]).map(|i| i as u32).collect()
        };
        let in_any: Vec<bool> = (0..variables).map(|i| in_a[i] || in_b[i] || in_c[i]).collect();
        let b = where_true(&in_b, 0);
        let mut c = where_true(&in_any, inputs);
        c.extend((variables..variables + domain - 1).map(|i| i as u32));
        Self { a: where_true(&in_a, 0), b, c }
    }
}
