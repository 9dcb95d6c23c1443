//! The first key of a statement: what powers of tau and constraints give before anybody contributes.
//!
//! With the columns u, v, w of the matrices as polynomials over the domain of n points:
//! A_i = u_i(τ), B_i = v_i(τ), IC_i and L_i = β·u_i(τ) + α·v_i(τ) + w_i(τ). A row is added to A for
//! every public input. H is the Lagrange basis, on the odd points of the domain of 2n, of the points
//! (τ^n − 1)·τ^j for j ≤ n − 2; the coefficient of j = n − 1 is 0, since no quotient has it. So
//! H follows from section 2 of the powers alone and has no freedom left.

use anofel_primitives::Fr;
use ark_bn254::{G1Affine, G1Projective, G2Affine};
use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField};
use ark_poly::EvaluationDomain;
use blake2::{Blake2b512, Digest};
use rayon::prelude::*;

use super::error::Error;
use super::points::{self, combine, factors, Curve};
use super::powers::{domain, Lagrange, Powers};
use super::zkey::Zkey;
use crate::statements::StatementKind;
use crate::system::System;

/// A statement's constraints as a ceremony sees them.
pub struct Circuit {
    kind: StatementKind,
    system: System,
    n: usize,
}

/// The entries of one column of a matrix: row and coefficient.
type Column = Vec<(u32, Fr)>;

impl Circuit {
    /// Lays down the constraints of a statement.
    pub fn new(kind: StatementKind) -> Self {
        let system = kind.record();
        let n = (system.constraints().len() + system.num_public() + 1).next_power_of_two();
        Self { kind, system, n }
    }

    /// Which statement.
    pub fn kind(&self) -> StatementKind {
        self.kind
    }

    /// The constraints.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Powers of tau for 2^power rows are needed.
    pub fn power(&self) -> u32 {
        self.n.trailing_zeros()
    }

    /// The row that binds the i-th public input, after all constraints.
    fn public_row(&self, i: usize) -> usize {
        self.system.constraints().len() + i
    }

    fn public_rows(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..=self.system.num_public()).map(|i| (self.public_row(i), i))
    }

    fn columns(&self) -> [Vec<Column>; 3] {
        let variables = self.system.assignment().len();
        let mut columns = [(); 3].map(|()| vec![Column::new(); variables]);
        for (row, constraint) in self.system.constraints().iter().enumerate() {
            for (matrix, entries) in
                columns.iter_mut().zip([&constraint.a, &constraint.b, &constraint.c])
            {
                for (variable, x) in entries {
                    matrix[*variable as usize].push((row as u32, *x));
                }
            }
        }
        for (row, i) in self.public_rows() {
            columns[0][i].push((row as u32, Fr::ONE));
        }
        columns
    }

    /// For each matrix, the values Σ_i r_i·column_i at the rows, as coefficients of a polynomial.
    fn combined(&self, r: &[Fr]) -> [Vec<Fr>; 3] {
        let mut values = [(); 3].map(|()| vec![Fr::ZERO; self.n]);
        for (row, constraint) in self.system.constraints().iter().enumerate() {
            for (matrix, entries) in
                values.iter_mut().zip([&constraint.a, &constraint.b, &constraint.c])
            {
                matrix[row] = entries.iter().map(|(i, x)| r[*i as usize] * x).sum();
            }
        }
        for (row, i) in self.public_rows() {
            values[0][row] = r[i];
        }
        values.map(|values| domain(self.n).ifft(&values))
    }

    /// Section 4: matrix, row, variable (4 bytes each) and the coefficient times 2^512.
    fn entries(&self) -> Vec<u8> {
        let r_squared = Fr::from(2u64).pow([512]);
        let (mut bytes, mut count) = (Vec::new(), 0u32);
        let mut put = |matrix: u32, row: usize, variable: u32, x: &Fr| {
            for number in [matrix, row as u32, variable] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend((*x * r_squared).into_bigint().to_bytes_le());
            count += 1;
        };
        for (row, constraint) in self.system.constraints().iter().enumerate() {
            for (matrix, entries) in [(0, &constraint.a), (1, &constraint.b)] {
                for (variable, x) in entries {
                    put(matrix, row, *variable, x);
                }
            }
        }
        for (row, i) in self.public_rows() {
            put(0, row, i as u32, &Fr::ONE);
        }
        let mut section = count.to_le_bytes().to_vec();
        section.append(&mut bytes);
        section
    }

    /// Makes the first key. Lagrange points are those of [`Powers::lagrange`] for [`Self::power`].
    pub fn first_key(&self, powers: &Powers, lagrange: &Lagrange) -> Result<Zkey, Error> {
        powers.need(self.power())?;
        let [a, b, c] = self.columns();
        let sum = |columns: &[Column], points: &[G1Affine]| -> Vec<G1Projective> {
            columns.par_iter().map(|column| weigh(&[(column, points)])).collect()
        };
        let a_g1 = sum(&a, &lagrange.tau_g1);
        let b_g1 = sum(&b, &lagrange.tau_g1);
        let b_g2: Vec<_> =
            b.par_iter().map(|column| weigh(&[(column, &lagrange.tau_g2)])).collect();
        let all: Vec<G1Projective> = (0..a.len())
            .into_par_iter()
            .map(|i| {
                weigh(&[
                    (&a[i], &lagrange.beta_g1[..]),
                    (&b[i], &lagrange.alpha_g1[..]),
                    (&c[i], &lagrange.tau_g1[..]),
                ])
            })
            .collect();
        let all = CurveGroup::normalize_batch(&all);
        let (ic, l) = all.split_at(self.system.num_public() + 1);
        let mut first = Zkey {
            variables: a.len(),
            public: self.system.num_public(),
            domain: self.n,
            alpha_g1: powers.alpha_g1[0],
            beta_g1: powers.beta_g1[0],
            beta_g2: powers.beta_g2,
            gamma_g2: G2Affine::generator(),
            delta_g1: G1Affine::generator(),
            delta_g2: G2Affine::generator(),
            entries: self.entries(),
            ic: ic.to_vec(),
            a: CurveGroup::normalize_batch(&a_g1),
            b_g1: CurveGroup::normalize_batch(&b_g1),
            b_g2: CurveGroup::normalize_batch(&b_g2),
            l: l.to_vec(),
            h: self.h(powers),
            circuit_hash: [0; 64],
            contributions: Vec::new(),
        };
        first.circuit_hash = self.circuit_hash(&first, powers);
        Ok(first)
    }

    /// (τ^n − 1)·τ^j for j ≤ n − 2.
    fn quotient_powers(&self, powers: &Powers) -> Vec<G1Affine> {
        let points: Vec<G1Projective> =
            (0..self.n - 1).map(|j| powers.tau_g1[j + self.n] - powers.tau_g1[j]).collect();
        CurveGroup::normalize_batch(&points)
    }

    /// −½·ω_{2n}^(−j).
    fn coset_factors(&self) -> Vec<Fr> {
        let step = domain(2 * self.n).group_gen_inv();
        let first = -Fr::from(2u64).inverse().expect("2 is not 0");
        std::iter::successors(Some(first), |x| Some(*x * step)).take(self.n).collect()
    }

    fn h(&self, powers: &Powers) -> Vec<G1Affine> {
        let points = self.quotient_powers(powers);
        let scaled: Vec<_> =
            points.par_iter().zip(self.coset_factors()).map(|(p, x)| *p * x).collect();
        let mut points: Vec<G1Projective> = scaled;
        points.push(G1Projective::ZERO);
        domain(self.n).ifft_in_place(&mut points);
        CurveGroup::normalize_batch(&points)
    }

    /// Refuses a key that is not for this statement's constraints.
    pub fn expect(&self, key: &Zkey) -> Result<(), Error> {
        let counts = (self.system.assignment().len(), self.system.num_public(), self.n);
        if (key.variables, key.public, key.domain) != counts || key.entries != self.entries() {
            return Err(Error::AnotherCircuit(self.kind.name()));
        }
        Ok(())
    }

    /// Refuses a first key that does not follow from the powers and the constraints.
    ///
    /// 1. Its counts and matrices are those of the statement.
    /// 2. Nobody contributed, γ and δ are the generators, α and β are those of the powers.
    /// 3. Random combinations, with factors of 128 bits, of all points of A, of B in G1, of B in G2, of
    ///    IC and L, and of H are those of the powers.
    /// 4. The circuit hash is the hash of all of it.
    pub fn check_first(&self, first: &Zkey, powers: &Powers) -> Result<(), Error> {
        powers.need(self.power())?;
        self.expect(first)?;
        if !first.contributions.is_empty() {
            return Err(Error::FirstContributed);
        }
        let (one, two) = (G1Affine::generator(), G2Affine::generator());
        for (name, right) in [
            ("γ", first.gamma_g2 == two),
            ("δ", first.delta_g1 == one && first.delta_g2 == two),
            ("α", first.alpha_g1 == powers.alpha_g1[0]),
            ("β", first.beta_g1 == powers.beta_g1[0] && first.beta_g2 == powers.beta_g2),
        ] {
            if !right {
                return Err(Error::FirstHeader(name));
            }
        }
        let r = factors(first.variables);
        let [u, v, w] = self.combined(&r);
        let tau = |c: &[Fr]| combine(&powers.tau_g1[..self.n], c);
        let right = |ok, name| if ok { Ok(()) } else { Err(Error::FirstPoints(name)) };
        right(combine(&first.a, &r) == tau(&u), "A")?;
        right(combine(&first.b_g1, &r) == tau(&v), "B in G1")?;
        right(combine(&first.b_g2, &r) == combine(&powers.tau_g2[..self.n], &v), "B in G2")?;
        let (r_ic, r_l) = r.split_at(first.ic.len());
        let all = combine(&powers.beta_g1[..self.n], &u)
            + combine(&powers.alpha_g1[..self.n], &v)
            + tau(&w);
        right(combine(&first.ic, r_ic) + combine(&first.l, r_l) == all, "IC or L")?;
        let r = factors(self.n);
        let mut c = domain(self.n).ifft(&r);
        c.iter_mut().zip(self.coset_factors()).for_each(|(c, x)| *c *= x);
        c.truncate(self.n - 1);
        right(combine(&first.h, &r) == combine(&self.quotient_powers(powers), &c), "H")?;
        if first.circuit_hash != self.circuit_hash(first, powers) {
            return Err(Error::CircuitHash);
        }
        Ok(())
    }

    /// The hash that snarkjs calls the circuit hash.
    fn circuit_hash(&self, first: &Zkey, powers: &Powers) -> [u8; 64] {
        let mut hash = Blake2b512::new();
        hash.update(points::hashed(&first.alpha_g1));
        hash.update(points::hashed(&first.beta_g1));
        hash.update(points::hashed(&first.beta_g2));
        hash.update(points::hashed(&first.gamma_g2));
        hash.update(points::hashed(&first.delta_g1));
        hash.update(points::hashed(&first.delta_g2));
        hash_list(&mut hash, &first.ic);
        hash_list(&mut hash, &self.quotient_powers(powers));
        hash_list(&mut hash, &first.l);
        hash_list(&mut hash, &first.a);
        hash_list(&mut hash, &first.b_g1);
        hash_list(&mut hash, &first.b_g2);
        hash.finalize().into()
    }
}

fn hash_list<C: Curve>(hash: &mut Blake2b512, points: &[Affine<C>]) {
    hash.update((points.len() as u32).to_be_bytes());
    for point in points {
        hash.update(points::hashed(point));
    }
}

/// Σ x·point over the entries of columns, each with its own points, in one thread: there are
/// thousands of short columns, one task each.
fn weigh<C: Curve>(parts: &[(&Column, &[Affine<C>])]) -> Projective<C> {
    let mut sum = Projective::<C>::ZERO;
    let (mut bases, mut scalars) = (Vec::new(), Vec::new());
    for (column, points) in parts {
        for (row, x) in *column {
            let point = points[*row as usize];
            if *x == Fr::ONE {
                sum += point;
            } else if *x == -Fr::ONE {
                sum -= point;
            } else {
                bases.push(point);
                scalars.push(x.into_bigint());
            }
        }
    }
    sum + buckets(&bases, &scalars)
}

/// A sum with buckets.
fn buckets<C: Curve>(bases: &[Affine<C>], scalars: &[ark_ff::BigInt<4>]) -> Projective<C> {
    let width: usize = match bases.len() {
        0 => return Projective::ZERO,
        1..=3 => 3,
        4..=15 => 4,
        16..=63 => 5,
        64..=255 => 6,
        256..=1023 => 8,
        _ => 10,
    };
    let mut total = Projective::<C>::ZERO;
    let mut filled = vec![Projective::<C>::ZERO; (1 << width) - 1];
    for window in (0..Fr::MODULUS_BIT_SIZE as usize).step_by(width).rev() {
        for _ in 0..width {
            total.double_in_place();
        }
        filled.fill(Projective::ZERO);
        for (base, scalar) in bases.iter().zip(scalars) {
            let (limb, shift) = (window / 64, window % 64);
            let mut digit = scalar.0[limb] >> shift;
            if shift + width > 64 && limb < 3 {
                digit |= scalar.0[limb + 1] << (64 - shift);
            }
            let digit = digit as usize & ((1 << width) - 1);
            if digit > 0 {
                filled[digit - 1] += base;
            }
        }
        let (mut running, mut sum) = (Projective::<C>::ZERO, Projective::<C>::ZERO);
        for bucket in filled.iter().rev() {
            running += bucket;
            sum += running;
        }
        total += sum;
    }
    total
}
