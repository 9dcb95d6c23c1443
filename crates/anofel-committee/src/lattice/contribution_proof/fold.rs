//! T from both sides: T·y for the prover, Tᵀρ with U and V for both.
//!
//! Eight rows of T are one byte per column, so T·y adds every value to one of 256 buckets (once for
//! plus, once for minus) and Tᵀρ looks up one of 256 sums. Addresses depend on T alone.

use curve25519_dalek::scalar::Scalar;
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::challenges::{Relations, Seed};
use super::statement::Matrix;
use super::{RELATIONS, ROWS, ROW_BYTES};
use crate::lattice::codec::Codec;
use crate::ring::{self, Polynomial, DEGREE, MODULUS};

/// Bytes of T for one block.
const BLOCK_BYTES: usize = 2 * ROW_BYTES * DEGREE;

/// Blocks per parallel task, so that tables and buffers are made rarely.
const MIN_BLOCKS: usize = 8;

/// One lane is unused; four fill a vector register.
const LANES: usize = 4;

/// Columns whose sums stay in the nearest cache beside two tables.
const TILE: usize = 256;

type Buckets = Zeroizing<Vec<[i64; 256]>>;

/// T·y for a vector of whole blocks; the sums of an honest vector fit easily.
pub(super) fn project(seed: &Seed, y: &[i64]) -> Zeroizing<Vec<i128>> {
    let empty = || (Buckets::new(vec![[0; 256]; ROW_BYTES]), vec![0; BLOCK_BYTES]);
    let buckets = y
        .par_chunks_exact(DEGREE)
        .enumerate()
        .with_min_len(MIN_BLOCKS)
        .fold(empty, |(mut buckets, mut columns), (k, block)| {
            seed.columns(k, &mut columns);
            let (plus, minus) = columns.split_at(BLOCK_BYTES / 2);
            for ((bucket, plus), minus) in
                buckets.iter_mut().zip(plus.chunks_exact(DEGREE)).zip(minus.chunks_exact(DEGREE))
            {
                for ((value, plus), minus) in block.iter().zip(plus).zip(minus) {
                    let up = &mut bucket[usize::from(*plus)];
                    *up = up.wrapping_add(*value);
                    let down = &mut bucket[usize::from(*minus)];
                    *down = down.wrapping_sub(*value);
                }
            }
            (buckets, columns)
        })
        .map(|(buckets, _)| buckets)
        .reduce(
            || Buckets::new(vec![[0; 256]; ROW_BYTES]),
            |mut left, right| {
                for (a, b) in left.as_flattened_mut().iter_mut().zip(right.as_flattened()) {
                    *a = a.wrapping_add(*b);
                }
                left
            },
        );
    let row = |i: usize| {
        let bucket = buckets[i / 8].iter().enumerate();
        bucket.filter(|(byte, _)| byte >> (i % 8) & 1 == 1).map(|(_, sum)| i128::from(*sum)).sum()
    };
    Zeroizing::new((0..ROWS).map(row).collect())
}

/// τᵀρ' for weights ρ'.
pub(super) fn fold_weights(seed: &Seed, weights: &[Scalar]) -> Vec<Scalar> {
    let tables: Vec<Vec<Scalar>> = weights.chunks_exact(8).map(subset_sums).collect();
    let mut columns = vec![0; BLOCK_BYTES];
    seed.columns(0, &mut columns);
    let (plus, minus) = columns.split_at(BLOCK_BYTES / 2);
    (0..DEGREE)
        .map(|j| {
            tables.iter().enumerate().fold(Scalar::ZERO, |sum, (byte, table)| {
                let at = byte * DEGREE + j;
                sum + table[usize::from(plus[at])] - table[usize::from(minus[at])]
            })
        })
        .collect()
}

/// The 256 sums of subsets of eight weights.
fn subset_sums(weights: &[Scalar]) -> Vec<Scalar> {
    let mut sums = vec![Scalar::ZERO];
    for weight in weights {
        sums.extend_from_within(..);
        let half = sums.len() / 2;
        sums[half..].iter_mut().for_each(|sum| *sum += weight);
    }
    sums
}

/// U_c and V_c of all relations.
pub(super) struct Folded {
    pub(super) u: [u64; RELATIONS],
    pub(super) v: [Box<Polynomial>; RELATIONS],
}

struct Running {
    columns: Vec<u8>,
    words: Vec<u64>,
    sums: Vec<[i64; LANES]>,
    u: [u128; RELATIONS],
    v: Vec<[u128; DEGREE]>,
}

impl Running {
    fn new() -> Self {
        Self {
            columns: vec![0; BLOCK_BYTES],
            words: vec![0; DEGREE],
            sums: vec![[0; LANES]; DEGREE],
            u: [0; RELATIONS],
            v: vec![[0; DEGREE]; RELATIONS],
        }
    }

    fn add(mut self, other: Self) -> Self {
        self.u.iter_mut().zip(other.u).for_each(|(a, b)| *a += b);
        let pairs = self.v.as_flattened_mut().iter_mut().zip(other.v.as_flattened());
        pairs.for_each(|(a, b)| *a += b);
        self
    }

    /// f for every relation, as sums of ρ with signs.
    fn fold(&mut self, tables: &[[[i64; LANES]; 256]]) {
        self.sums.fill([0; LANES]);
        let (plus, minus) = self.columns.split_at(BLOCK_BYTES / 2);
        for (start, sums) in (0..DEGREE).step_by(TILE).zip(self.sums.chunks_exact_mut(TILE)) {
            for (pair, [first, second]) in tables.as_chunks::<2>().0.iter().enumerate() {
                let (p1, p2) = (tile(plus, 2 * pair, start), tile(plus, 2 * pair + 1, start));
                let (m1, m2) = (tile(minus, 2 * pair, start), tile(minus, 2 * pair + 1, start));
                for j in 0..TILE {
                    let (a, b) = (&first[usize::from(p1[j])], &first[usize::from(m1[j])]);
                    let (c, d) = (&second[usize::from(p2[j])], &second[usize::from(m2[j])]);
                    let sum = &mut sums[j];
                    for lane in 0..LANES {
                        sum[lane] += (a[lane] - b[lane]) + (c[lane] - d[lane]);
                    }
                }
            }
        }
    }
}

/// The bytes of eight rows for the columns from `start` on.
fn tile(bytes: &[u8], row: usize, start: usize) -> &[u8; TILE] {
    let at = row * DEGREE + start;
    bytes[at..].first_chunk().expect("a block has whole tiles")
}

/// f_c = Tᵀρ^c, U_c = ⟨f_c, c̃⟩ and V_c = Aᵀ·f_c, modulo q.
///
/// With a_k given as values, the transposed product takes the values in reverse order.
pub(super) fn fold(
    seed: &Seed,
    relations: &Relations,
    codec: &Codec,
    packed: &[u8],
    matrix: &Matrix,
) -> Folded {
    let tables = tables(relations);
    let total = packed
        .par_chunks_exact(codec.block_bytes())
        .enumerate()
        .with_min_len(MIN_BLOCKS)
        .fold(Running::new, |mut running, (k, packed)| {
            seed.columns(k, &mut running.columns);
            running.fold(&tables);
            codec.lift_block(packed, &mut running.words);
            let public = matrix.block(k);
            let mut f = Box::new([0; DEGREE]);
            for relation in 0..RELATIONS {
                for (f, sum) in f.iter_mut().zip(&running.sums) {
                    *f = reduce(sum[relation]);
                }
                let products = f.iter().zip(&running.words);
                running.u[relation] +=
                    products.map(|(f, word)| u128::from(*f) * u128::from(*word)).sum::<u128>();
                ring::forward(&mut f);
                let values = f.iter().zip(public.iter().rev());
                for (sum, (f, a)) in running.v[relation].iter_mut().zip(values) {
                    *sum += u128::from(*f) * u128::from(*a);
                }
            }
            running
        })
        .reduce(Running::new, Running::add);
    let modulus = u128::from(MODULUS);
    let v = std::array::from_fn(|relation| {
        let mut values = Box::new([0; DEGREE]);
        for (value, sum) in values.iter_mut().zip(&total.v[relation]) {
            *value = (sum % modulus) as u64;
        }
        ring::inverse(&mut values);
        values
    });
    Folded { u: total.u.map(|sum| (sum % modulus) as u64), v }
}

fn tables(relations: &Relations) -> Vec<[[i64; LANES]; 256]> {
    let sum = |relation: usize, byte: usize, subset: usize| {
        let rows = (0..8).filter(|row| subset >> row & 1 == 1);
        rows.map(|row| relations[relation][byte * 8 + row] as i64).sum()
    };
    (0..ROW_BYTES)
        .map(|byte| {
            std::array::from_fn(|subset| {
                let mut lanes = [0; LANES];
                for (relation, lane) in lanes.iter_mut().take(RELATIONS).enumerate() {
                    *lane = sum(relation, byte, subset);
                }
                lanes
            })
        })
        .collect()
}

/// The residue of a sum of at most 256 residues with signs.
#[inline]
fn reduce(sum: i64) -> u64 {
    const SHIFT: i64 = MODULUS as i64 * ROWS as i64;
    const RECIPROCAL: u64 = ((1u128 << 64) / MODULUS as u128) as u64;
    let value = (sum + SHIFT) as u64;
    let estimate = ((u128::from(value) * u128::from(RECIPROCAL)) >> 64) as u64;
    ring::reduce_once(value - estimate * MODULUS)
}
