//! Points in key files, compressed or not, and the reader that refuses what is wrong with them.

use ark_bn254::{Fq, Fq2};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::AffineRepr;
use ark_ff::{BigInt, PrimeField};
use rayon::prelude::*;

use crate::groth16::msm::{Coordinates, Layout, Octets, Table};
use crate::statements::StatementKind;
use crate::Error;

/// The last byte of a compressed point: y is the larger of the two roots; the point is neutral.
const LARGER: u8 = 0x80;
const NEUTRAL: u8 = 0x40;

/// A coordinate field: how many bytes an element has and how they are read.
pub(crate) trait Coordinate: Octets {
    const BYTES: usize;
    /// Limbs in Montgomery form, as they are.
    fn read(bytes: &[u8]) -> Self;
    fn write(&self, bytes: &mut Vec<u8>);
    /// Whether the limbs are below the modulus; reading does not reduce them.
    fn is_canonical(&self) -> bool;
    /// The integers themselves, below the modulus.
    fn read_plain(bytes: &[u8]) -> Option<Self>;
    fn write_plain(&self, bytes: &mut Vec<u8>);
}

impl Coordinate for Fq {
    const BYTES: usize = 32;

    fn read(bytes: &[u8]) -> Self {
        Fq::new_unchecked(integer(bytes))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        write_integer(bytes, &self.0);
    }

    fn is_canonical(&self) -> bool {
        self.0 < Fq::MODULUS
    }

    fn read_plain(bytes: &[u8]) -> Option<Self> {
        Fq::from_bigint(integer(bytes))
    }

    fn write_plain(&self, bytes: &mut Vec<u8>) {
        write_integer(bytes, &self.into_bigint());
    }
}

impl Coordinate for Fq2 {
    const BYTES: usize = 64;

    fn read(bytes: &[u8]) -> Self {
        Fq2::new(Fq::read(&bytes[..32]), Fq::read(&bytes[32..]))
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.c0.write(bytes);
        self.c1.write(bytes);
    }

    fn is_canonical(&self) -> bool {
        self.c0.is_canonical() && self.c1.is_canonical()
    }

    fn read_plain(bytes: &[u8]) -> Option<Self> {
        Some(Fq2::new(Fq::read_plain(&bytes[..32])?, Fq::read_plain(&bytes[32..])?))
    }

    fn write_plain(&self, bytes: &mut Vec<u8>) {
        self.c0.write_plain(bytes);
        self.c1.write_plain(bytes);
    }
}

fn integer(bytes: &[u8]) -> BigInt<4> {
    let (limbs, _) = bytes[..32].as_chunks::<8>();
    BigInt(std::array::from_fn(|i| u64::from_le_bytes(limbs[i])))
}

fn write_integer(bytes: &mut Vec<u8>, value: &BigInt<4>) {
    for limb in value.0 {
        bytes.extend_from_slice(&limb.to_le_bytes());
    }
}

pub(crate) fn is_canonical<P: SWCurveConfig>(point: &Affine<P>) -> bool
where
    P::BaseField: Coordinate,
{
    point.x.is_canonical() && point.y.is_canonical()
}

/// Reads a compressed point: x, little-endian, with the two highest bits for y.
///
/// 1. x is below the modulus, and exactly one encoding stands for a point.
/// 2. No point is neutral.
/// 3. The point is on its curve.
/// 4. The point is in its subgroup.
fn decompress<P: SWCurveConfig>(bytes: &[u8]) -> Result<Affine<P>, &'static str>
where
    P::BaseField: Coordinate,
{
    let mut x = bytes.to_vec();
    let last = x.last_mut().expect("a point has bytes");
    let flags = *last & (LARGER | NEUTRAL);
    *last ^= flags;
    if flags == NEUTRAL && x.iter().all(|byte| *byte == 0) {
        return Err("a point is the neutral element");
    }
    if flags & NEUTRAL != 0 {
        return Err("a point is not in canonical form");
    }
    let x = P::BaseField::read_plain(&x).ok_or("a coordinate is not canonical")?;
    // No point of these curves has y = 0, so both values of the flag stand for different points.
    let point = Affine::<P>::get_point_from_x_unchecked(x, flags & LARGER != 0)
        .ok_or("a point is not on its curve")?;
    if !point.is_in_correct_subgroup_assuming_on_curve() {
        return Err("a point is not in its subgroup");
    }
    Ok(point)
}

/// Appends to a key file.
#[derive(Default)]
pub(crate) struct Writer {
    /// What was written.
    pub bytes: Vec<u8>,
    /// Whether points are compressed.
    pub compressed: bool,
}

impl Writer {
    /// One point.
    pub fn point<P: SWCurveConfig>(&mut self, point: &Affine<P>)
    where
        P::BaseField: Coordinate,
    {
        if !self.compressed {
            point.x.write(&mut self.bytes);
            point.y.write(&mut self.bytes);
            return;
        }
        if point.is_zero() {
            self.bytes.resize(self.bytes.len() + P::BaseField::BYTES - 1, 0);
            self.bytes.push(NEUTRAL);
            return;
        }
        point.x.write_plain(&mut self.bytes);
        if point.y > -point.y {
            *self.bytes.last_mut().expect("x was written") |= LARGER;
        }
    }

    /// Window, bucket sets (2 bytes each), number of bases (4), their positions (4 each), and the
    /// multiples.
    pub fn table<P: SWCurveConfig>(&mut self, table: &Table<P>)
    where
        P::BaseField: Coordinate,
    {
        let bytes = &mut self.bytes;
        let Layout { window, sets } = table.layout();
        bytes.extend_from_slice(&(window as u16).to_le_bytes());
        bytes.extend_from_slice(&(sets as u16).to_le_bytes());
        bytes.extend_from_slice(&(table.scalars().len() as u32).to_le_bytes());
        for position in table.scalars() {
            bytes.extend_from_slice(&position.to_le_bytes());
        }
        for point in table.points() {
            point.x.write(bytes);
            point.y.write(bytes);
        }
    }
}

/// Takes a key file apart, from its beginning to its end.
pub(crate) struct Reader<'a> {
    /// What was not read yet.
    pub rest: &'a [u8],
    total: usize,
    statement: &'static str,
    compressed: bool,
}

impl<'a> Reader<'a> {
    /// At the beginning of a file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, total: bytes.len(), statement: "", compressed: false }
    }

    /// From here on there are points, of a key for this statement.
    pub fn begin_points(&mut self, kind: StatementKind, compressed: bool) {
        (self.statement, self.compressed) = (kind.name(), compressed);
    }

    /// The length of so many points of G1 and of G2.
    pub fn bytes_of(&self, g1: usize, g2: usize) -> usize {
        (g1 + 2 * g2) * if self.compressed { 32 } else { 64 }
    }

    /// Refuses a file that ends before the next `length` bytes do.
    pub fn need(&self, length: usize) -> Result<(), Error> {
        if self.rest.len() >= length {
            return Ok(());
        }
        let expected = self.total - self.rest.len() + length;
        Err(Error::KeyLength { expected, found: self.total })
    }

    /// The next bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        self.need(length)?;
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    /// One point; an uncompressed one is checked by the caller.
    pub fn point<P: SWCurveConfig>(&mut self) -> Result<Affine<P>, Error>
    where
        P::BaseField: Coordinate,
    {
        if !self.compressed {
            return Ok(read_coordinates(self.take(2 * P::BaseField::BYTES)?).to_affine());
        }
        let statement = self.statement;
        decompress(self.take(P::BaseField::BYTES)?)
            .map_err(|reason| Error::UnsafeKey { statement, reason })
    }

    /// Many compressed points, each of them checked.
    pub fn points<P: SWCurveConfig>(&mut self, count: usize) -> Result<Vec<Affine<P>>, Error>
    where
        P::BaseField: Coordinate,
    {
        let statement = self.statement;
        self.take(count * P::BaseField::BYTES)?
            .par_chunks(P::BaseField::BYTES)
            .map(decompress)
            .collect::<Result<_, _>>()
            .map_err(|reason| Error::UnsafeKey { statement, reason })
    }

    /// A table; whoever pinned its file vouches for it.
    pub fn table<P: SWCurveConfig>(&mut self) -> Result<Table<P>, Error>
    where
        P::BaseField: Coordinate,
    {
        let window = usize::from(u16::from_le_bytes(self.array()?));
        let sets = usize::from(u16::from_le_bytes(self.array()?));
        let count = u32::from_le_bytes(self.array()?) as usize;
        if !(2..=20).contains(&window) || !(1..=64).contains(&sets) {
            return Err(Error::NotAKey);
        }
        let layout = Layout { window, sets };
        let positions = self.take(4 * count)?.chunks_exact(4);
        let scalars =
            positions.map(|b| u32::from_le_bytes(std::array::from_fn(|i| b[i]))).collect();
        let size = 2 * P::BaseField::BYTES;
        let points = self.take(count * layout.multiples() * size)?;
        let points = points.chunks_exact(size).map(read_coordinates).collect();
        Ok(Table::from_parts(layout, scalars, points))
    }

    /// Refuses a file that goes on.
    pub fn finish(self) -> Result<(), Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Error::KeyLength { expected: self.total - self.rest.len(), found: self.total })
    }
}

fn read_coordinates<F: Coordinate>(bytes: &[u8]) -> Coordinates<F> {
    let (x, y) = bytes.split_at(F::BYTES);
    Coordinates { x: F::read(x), y: F::read(y) }
}
