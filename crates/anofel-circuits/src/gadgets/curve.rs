//! Baby Jubjub in constraints.
//!
//! Sums run in Montgomery form, v² = u³ + 168698·u² + u, where an addition costs three
//! constraints but is not defined for equal or opposite points; each use says why those do not
//! occur. Everything else runs in twisted Edwards form, where addition is complete.

use anofel_primitives::babyjubjub::{EdwardsConfig, Point, Scalar};
use anofel_primitives::Fr;
use ark_ec::twisted_edwards::{MontCurveConfig, Projective, TECurveConfig};
use ark_ec::CurveGroup;
use ark_ff::{AdditiveGroup, Field};

use crate::gadgets::digits::OddDigit;
use crate::system::{Lc, System};

/// A point in twisted Edwards form.
#[derive(Debug, Clone)]
pub struct Edwards {
    /// x.
    pub x: Lc,
    /// y.
    pub y: Lc,
}

/// A point in Montgomery form.
#[derive(Debug, Clone)]
pub struct Montgomery {
    u: Lc,
    v: Lc,
}

const A: Fr = <EdwardsConfig as TECurveConfig>::COEFF_A;
const D: Fr = <EdwardsConfig as TECurveConfig>::COEFF_D;
const MONTGOMERY_A: Fr = <EdwardsConfig as MontCurveConfig>::COEFF_A;

/// The coordinates of a point of odd order in Montgomery form.
fn montgomery_coordinates(point: &Point) -> (Fr, Fr) {
    let u = (Fr::ONE + point.y) * (Fr::ONE - point.y).inverse().expect("not the neutral element");
    (u, u * point.x.inverse().expect("not of order 2"))
}

impl Edwards {
    /// New variables for a point that no constraint binds yet.
    pub fn variables(system: &mut System, point: &Point) -> Self {
        Self { x: system.variable(point.x), y: system.variable(point.y) }
    }

    /// A constant point.
    pub fn constant(system: &System, point: &Point) -> Self {
        Self { x: system.constant(point.x), y: system.constant(point.y) }
    }

    /// a·x² + y² = 1 + d·x²·y².
    pub fn enforce_on_curve(&self, system: &mut System) {
        let x2 = system.product(&self.x, &self.x);
        let y2 = system.product(&self.y, &self.y);
        let right = system.constant(-Fr::ONE).plus(&x2.scale(A)).plus(&y2);
        system.enforce(&x2.scale(D), &y2, &right);
    }

    /// self = other.
    pub fn enforce_equal(&self, system: &mut System, other: &Self) {
        system.enforce_equal(&self.x, &other.x);
        system.enforce_equal(&self.y, &other.y);
    }

    /// self + other, complete; six constraints.
    pub fn add(&self, system: &mut System, other: &Self) -> Self {
        let beta = system.product(&self.x, &other.y);
        let gamma = system.product(&self.y, &other.x);
        let delta = system.product(&self.y.minus(&self.x.scale(A)), &other.x.plus(&other.y));
        let tau = system.product(&beta, &gamma);
        let one = system.constant(Fr::ONE);
        let x = system.quotient(&beta.plus(&gamma), &one.plus(&tau.scale(D)));
        let numerator = delta.plus(&beta.scale(A)).minus(&gamma);
        let y = system.quotient(&numerator, &one.minus(&tau.scale(D)));
        Self { x, y }
    }

    /// self + constant, complete; three constraints.
    pub fn add_constant(&self, system: &mut System, point: &Point) -> Self {
        let xy = system.product(&self.x, &self.y);
        let tau = xy.scale(D * point.x * point.y);
        let one = system.constant(Fr::ONE);
        let numerator = self.x.scale(point.y).plus(&self.y.scale(point.x));
        let x = system.quotient(&numerator, &one.plus(&tau));
        let numerator = self.y.scale(point.y).minus(&self.x.scale(A * point.x));
        let y = system.quotient(&numerator, &one.minus(&tau));
        Self { x, y }
    }

    /// The same point in Montgomery form. Enforces that x is not 0, which excludes the neutral
    /// element and the point of order 2.
    pub fn to_montgomery(&self, system: &mut System) -> Montgomery {
        let one = system.constant(Fr::ONE);
        system.quotient(&one, &self.x);
        let u = system.quotient(&one.plus(&self.y), &one.minus(&self.y));
        let v = system.quotient(&u, &self.x);
        Montgomery { u, v }
    }
}

impl Montgomery {
    /// A constant point of odd order.
    fn constant(system: &System, point: &Point) -> Self {
        let (u, v) = montgomery_coordinates(point);
        Self { u: system.constant(u), v: system.constant(v) }
    }

    /// The same point in twisted Edwards form. v is not 0 for a point of odd order, and u is
    /// never −1 on this curve because d is not a square.
    pub fn to_edwards(&self, system: &mut System) -> Edwards {
        let one = system.constant(Fr::ONE);
        let x = system.quotient(&self.u, &self.v);
        let y = system.quotient(&self.u.minus(&one), &self.u.plus(&one));
        Edwards { x, y }
    }

    /// self + other for points that are neither equal nor opposite.
    pub fn add(&self, system: &mut System, other: &Self) -> Self {
        let slope = system.quotient(&other.v.minus(&self.v), &other.u.minus(&self.u));
        self.third_point(system, &slope, &other.u)
    }

    /// 2·self. A point of order 2 has v = 0 and fails.
    pub fn double(&self, system: &mut System) -> Self {
        let u2 = system.product(&self.u, &self.u);
        let one = system.constant(Fr::ONE);
        let numerator =
            u2.scale(Fr::from(3u64)).plus(&self.u.scale(MONTGOMERY_A.double())).plus(&one);
        let slope = system.quotient(&numerator, &self.v.scale(Fr::from(2u64)));
        self.third_point(system, &slope, &self.u.clone())
    }

    /// Enforces v ≠ 0.
    pub fn enforce_not_of_order_two(&self, system: &mut System) {
        let one = system.constant(Fr::ONE);
        system.quotient(&one, &self.v);
    }

    /// 2·self + other as (self + other) + self, without the v of the sum in the middle; five
    /// constraints. Not defined if self = ± other.
    pub fn double_and_add(&self, system: &mut System, other: &Self) -> Self {
        let slope = system.quotient(&other.v.minus(&self.v), &other.u.minus(&self.u));
        let middle = self.third_u(system, &slope, &other.u);
        let sum = system.quotient(&self.v.scale(Fr::from(2u64)), &self.u.minus(&middle));
        let slope = sum.minus(&slope);
        self.third_point(system, &slope, &middle)
    }

    /// The sum of self and the point with this u on the line with this slope.
    fn third_point(&self, system: &mut System, slope: &Lc, other_u: &Lc) -> Self {
        let u = self.third_u(system, slope, other_u);
        let value = slope.value() * (self.u.value() - u.value()) - self.v.value();
        let v = system.variable(value);
        system.enforce(slope, &self.u.minus(&u), &v.plus(&self.v));
        Self { u, v }
    }

    fn third_u(&self, system: &mut System, slope: &Lc, other_u: &Lc) -> Lc {
        let others = system.constant(MONTGOMERY_A).plus(&self.u).plus(other_u);
        let u = system.variable(slope.value().square() - others.value());
        system.enforce(slope, slope, &u.plus(&others));
        u
    }

    /// ±self, for sign ∈ {1, −1}; one constraint.
    fn signed(&self, system: &mut System, sign: &Lc) -> Self {
        Self { u: self.u.clone(), v: system.product(sign, &self.v) }
    }
}

/// The multiples 1, 3, 5, 7 (or 1, 3) of a point, as the polynomials in w = u² that take their
/// values: the first coordinate is the same for u and −u, the second changes its sign with u.
struct OddMultiples {
    even: Vec<Fr>,
    odd: Vec<Fr>,
}

impl OddMultiples {
    /// `coordinates` are those of 1·P, 3·P, …: (unchanged by negation, negated by negation).
    fn new(coordinates: &[(Fr, Fr)]) -> Self {
        let digits: Vec<Fr> = (0..coordinates.len()).map(|j| Fr::from(2 * j as u64 + 1)).collect();
        let squares: Vec<Fr> = digits.iter().map(|digit| digit.square()).collect();
        let even: Vec<Fr> = coordinates.iter().map(|pair| pair.0).collect();
        let odd: Vec<Fr> = coordinates
            .iter()
            .zip(&digits)
            .map(|(pair, digit)| pair.1 * digit.inverse().expect("an odd digit is not 0"))
            .collect();
        Self { even: interpolate(&squares, &even), odd: interpolate(&squares, &odd) }
    }

    /// The coordinates of digit·P; one constraint.
    fn select(&self, system: &mut System, digit: &OddDigit) -> (Lc, Lc) {
        let one = system.constant(Fr::ONE);
        let powers = || std::iter::once(&one).chain(&digit.powers);
        let even = Lc::sum(self.even.iter().copied().zip(powers()));
        let factor = Lc::sum(self.odd.iter().copied().zip(powers()));
        let odd = system.product(&factor, &digit.digit);
        (even, odd)
    }
}

/// The coefficients, lowest first, of the polynomial through these points.
fn interpolate(xs: &[Fr], ys: &[Fr]) -> Vec<Fr> {
    let mut sum = vec![Fr::ZERO; xs.len()];
    for (i, (x, y)) in xs.iter().zip(ys).enumerate() {
        let mut basis = vec![*y];
        for (j, other) in xs.iter().enumerate() {
            if i != j {
                let scale = (*x - other).inverse().expect("the points are distinct");
                basis.push(Fr::ZERO);
                for k in (0..basis.len()).rev() {
                    let lower = if k > 0 { basis[k - 1] } else { Fr::ZERO };
                    basis[k] = (lower - basis[k] * other) * scale;
                }
            }
        }
        for (total, coefficient) in sum.iter_mut().zip(&basis) {
            *total += coefficient;
        }
    }
    sum
}

/// Windows of three bits whose sum in Montgomery form never meets an exceptional case: with
/// digits u_i, |Σ_{i<k} u_i·8^i| < 8^k ≤ |u_k·8^k|, so that neither sum nor difference of the two
/// is 0, and both are below 8^(k+1) ≤ 8^83 = 2^249, which is below the group order.
const SAFE_WINDOWS: usize = 83;

/// The tables for multiples of one constant point of prime order.
pub struct FixedBase {
    windows: Vec<OddMultiples>,
    offset: Point,
}

impl FixedBase {
    /// For scalars whose windows have these widths in bits (3, or 2), lowest first.
    ///
    /// With t = Σ t_i·8^i and u = Σ u_i·8^i the odd digits, 2·t = u + Σ largest_i·8^i, so the
    /// tables hold multiples of base / 2, and the rest is a constant.
    pub fn new(base: &Point, widths: &[usize]) -> Self {
        let half = Scalar::from(2u64).inverse().expect("2 is not 0 modulo the group order");
        let mut power: Projective<EdwardsConfig> = *base * half;
        let mut offset = Projective::ZERO;
        let windows = widths
            .iter()
            .enumerate()
            .map(|(window, width)| {
                let points: Vec<Point> = (0..1u64 << (width - 1))
                    .map(|j| (power * Scalar::from(2 * j + 1)).into_affine())
                    .collect();
                offset += power * Scalar::from((1u64 << width) - 1);
                power = power.double().double().double();
                let coordinates: Vec<(Fr, Fr)> = if window < SAFE_WINDOWS {
                    points.iter().map(montgomery_coordinates).collect()
                } else {
                    // In Edwards form it is x that changes its sign.
                    points.iter().map(|point| (point.y, point.x)).collect()
                };
                OddMultiples::new(&coordinates)
            })
            .collect();
        Self { windows, offset: offset.into_affine() }
    }

    /// u·(base / 2): the multiple before [`FixedBase::offset`] is added.
    pub fn multiply(&self, system: &mut System, digits: &[OddDigit]) -> Edwards {
        assert_eq!(digits.len(), self.windows.len(), "digits for another table");
        let (safe, last) = digits.split_at(digits.len().min(SAFE_WINDOWS));
        let (safe_windows, last_windows) = self.windows.split_at(safe.len());
        let mut sum: Option<Montgomery> = None;
        for (digit, window) in safe.iter().zip(safe_windows) {
            let (u, v) = window.select(system, digit);
            let point = Montgomery { u, v };
            sum = Some(match sum {
                None => point,
                Some(sum) => sum.add(system, &point),
            });
        }
        let mut total = sum.expect("at least one digit").to_edwards(system);
        for (digit, window) in last.iter().zip(last_windows) {
            let (y, x) = window.select(system, digit);
            total = total.add(system, &Edwards { x, y });
        }
        total
    }

    /// What [`FixedBase::multiply`] leaves out: t·base = u·(base / 2) + offset.
    pub fn offset(&self) -> Point {
        self.offset
    }
}

/// 2^n·start + (2·h + 1)·base for h = Σ b_i·2^i given by signs s_i = 2·b_i − 1, lowest first;
/// `start` is a constant point.
///
/// Every intermediate sum is 2^j·start + m·base with m odd. A step is not defined if that is
/// ± base, or if twice it is ∓ base; either gives the discrete logarithm of `start` to the base
/// `base`. Nobody knows it for the key of a certifier who can sign, because `start` is a
/// nothing-up-my-sleeve point. A certifier who offers a multiple of `start` as its key gives
/// everyone the power to sign in its name, as if it had published its secret.
pub fn signed_multiple(
    system: &mut System,
    start: &Point,
    base: &Montgomery,
    signs: &[Lc],
) -> Montgomery {
    let start = Montgomery::constant(system, start);
    let mut sum = start.add(system, base);
    for sign in signs.iter().rev() {
        let term = base.signed(system, sign);
        sum = sum.double_and_add(system, &term);
    }
    sum
}
