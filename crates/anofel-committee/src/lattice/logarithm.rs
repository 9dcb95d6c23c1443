//! Discrete logarithms of small sums, by a table around zero and steps outwards.
//!
//! A sum of n secrets lies in ±32·n (±573·n if all of them were proven and lie) and is almost always
//! within a few deviations (4·√n) of zero, so the table covers ±1024 and the rest is reached in steps
//! of its width.

use std::collections::HashMap;
use std::sync::OnceLock;

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::traits::Identity;

use crate::group::{base, encode_doubles, encode_points, small_scalar};
use crate::Error;

/// The table holds −REACH … REACH.
const REACH: i64 = 1024;

/// The logarithm of every point, if all of them are within ±`limit`.
pub fn small_logarithms(points: &[RistrettoPoint], limit: i64) -> Result<Vec<i64>, Error> {
    let table = table();
    let mut found = vec![None; points.len()];
    let mut offset = 0;
    while offset <= limit + REACH {
        for shift in [offset, -offset] {
            look_up(table, points, shift, &mut found);
        }
        if found.iter().all(Option::is_some) {
            break;
        }
        offset += 2 * REACH + 1;
    }
    found
        .into_iter()
        .map(|logarithm| {
            logarithm
                .filter(|value: &i64| value.abs() <= limit)
                .ok_or(Error::Undecodable { why: "a sum of secrets is out of range" })
        })
        .collect()
}

/// Tries point − shift·G in the table for every point that is still open.
fn look_up(
    table: &HashMap<[u8; 32], i64>,
    points: &[RistrettoPoint],
    shift: i64,
    found: &mut [Option<i64>],
) {
    let open: Vec<usize> = (0..points.len()).filter(|&index| found[index].is_none()).collect();
    let step = base(&small_scalar(shift));
    let shifted: Vec<RistrettoPoint> = open.iter().map(|&index| points[index] - step).collect();
    // The table is keyed by doubles, whose encodings share inversions.
    for (index, encoded) in open.into_iter().zip(encode_doubles(&shifted)) {
        found[index] = table.get(&encoded).map(|value| value + shift);
    }
}

fn table() -> &'static HashMap<[u8; 32], i64> {
    static TABLE: OnceLock<HashMap<[u8; 32], i64>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let double = RISTRETTO_BASEPOINT_POINT + RISTRETTO_BASEPOINT_POINT;
        let mut point = RistrettoPoint::identity();
        let multiples: Vec<RistrettoPoint> = (0..=REACH)
            .map(|_| {
                let current = point;
                point += double;
                current
            })
            .collect();
        let negatives: Vec<RistrettoPoint> = multiples.iter().map(|point| -point).collect();
        let positive = encode_points(&multiples).into_iter().zip(0..);
        let negative = encode_points(&negatives).into_iter().zip((0..).map(|value: i64| -value));
        positive.chain(negative).collect()
    })
}
