//! Squarings in the cyclotomic subgroup of the field of pairings (Granger and Scott 2010), in
//! registers of eight numbers.
//!
//! An element is three pairs (a, b) of the quadratic extension. Its square takes a² + ξ·b² and
//! 2·a·b of each pair, ξ = 9 + u. All real parts lie in one group of registers, all imaginary parts
//! in another: a of the three pairs in the first lanes, b in the last.

use ark_bn254::{Fq, Fq12, Fq2, Fq6};
use ark_ff::MontFp;

use crate::groth16::msm::lanes::{canonical, Eight, Ifma, Line};

/// f^(2^times); none where the processor cannot.
pub fn squared_in_registers(f: &Fq12, times: usize) -> Option<Fq12> {
    Ifma::try_new().map(|simd| simd.vectorize(Squarings { simd, f, times }))
}

/// Numbers are taken times 16 and given back divided by 16, since products divide by 16.
const INTO: Fq = MontFp!("256");
const BACK: Fq = MontFp!("1");

struct Squarings<'a> {
    simd: Ifma,
    f: &'a Fq12,
    times: usize,
}

impl pulp::NullaryFnOnce for Squarings<'_> {
    type Output = Fq12;

    #[inline(always)]
    fn call(self) -> Fq12 {
        let Self { simd, f: Fq12 { c0: even, c1: odd, .. }, times } = self;
        let nothing = Line([0; 8]);
        // (a, b) of the pairs: (z₀, z₁), (z₂, z₃), (z₄, z₅) of Granger and Scott.
        let [a, b] = [[&even.c0, &odd.c0, &even.c1], [&odd.c1, &even.c2, &odd.c2]]
            .map(|numbers| numbers.map(|z| Line::of_numbers(&z.c0, &z.c1)));
        let lines = [&a[0], &a[1], &a[2], &nothing, &b[0], &b[1], &b[2], &nothing];
        let (real, imaginary) = Eight::of_lines(simd, lines);
        let (into, back) = (Eight::same(simd, INTO), Eight::same(simd, BACK));
        let mut real = Eight::products(simd, [(real, into)]);
        let mut imaginary = Eight::products(simd, [(imaginary, into)]);
        for _ in 0..times {
            (real, imaginary) = square(simd, real, imaginary);
        }
        let real = Eight::products(simd, [(real, back)]);
        let lines = Eight::to_lines(simd, real, Eight::products(simd, [(imaginary, back)]));
        let number = |lane: usize| {
            let words = &lines[lane].0;
            Fq2::new(canonical(&words[..4]), canonical(&words[4..]))
        };
        let even = Fq6::new(number(0), number(2), number(5));
        Fq12::new(even, Fq6::new(number(1), number(4), number(6)))
    }
}

/// From numbers below 3·p to numbers below 3·p.
#[inline(always)]
fn square(simd: Ifma, real: Eight, imaginary: Eight) -> (Eight, Eight) {
    // Squares: (r + i)·(r − i) and, once doubled, r·i.
    let difference = real.minus::<4>(simd, imaginary);
    let squares = Eight::products(simd, [(real.plus(simd, imaginary), difference)]);
    let halves = Eight::products(simd, [(real, imaginary)]);
    // a·b: its real part in the first lanes, its imaginary part in the last.
    let (other_real, other_imaginary) = (real.swapped(simd), imaginary.swapped(simd));
    let minus = Eight::zero(simd).minus::<8>(simd, imaginary);
    let crossed = Eight::products(
        simd,
        [
            (real, Eight::first_and_last(simd, other_real, other_imaginary)),
            (
                Eight::first_and_last(simd, minus, imaginary),
                Eight::first_and_last(simd, other_imaginary, other_real),
            ),
        ],
    );
    let (squares_b, halves_b) = (squares.swapped(simd), halves.swapped(simd));
    let crossed_b = crossed.swapped(simd);

    // a² + ξ·b² in the first lanes, with u² = −1; 2·a·b; and ξ·2·a·b, its real part in the
    // first lanes and its imaginary part in the last. All plus 4·p.
    let even_real = Eight::raw(simd)
        .add_times::<1>(simd, squares)
        .add_times::<9>(simd, squares_b)
        .subtract_twice(simd, halves_b);
    let even_imaginary = Eight::raw(simd)
        .add_times::<2>(simd, halves)
        .add_times::<18>(simd, halves_b)
        .add_times::<1>(simd, squares_b);
    let odd = Eight::raw(simd).add_times::<2>(simd, crossed);
    let odd_xi_real =
        Eight::raw(simd).add_times::<18>(simd, crossed).subtract_twice(simd, crossed_b);
    let odd_xi_imaginary =
        Eight::raw(simd).add_times::<18>(simd, crossed).add_times::<2>(simd, crossed_b);

    // To whom they go: a₀ even₀, a₁ ξ·odd₂, a₂ even₁; b₀ odd₀, b₁ even₂, b₂ odd₁.
    let to_real = even_real
        .pick(simd, [0, 7, 1, 7, 8, 2, 9, 7], odd)
        .with_second_lane(simd, odd_xi_real, 2)
        .reduced(simd);
    let to_imaginary = even_imaginary
        .pick(simd, [0, 7, 1, 7, 12, 2, 13, 7], odd)
        .with_second_lane(simd, odd_xi_imaginary, 6)
        .reduced(simd);
    (to_real.thrice_and_twice(simd, real), to_imaginary.thrice_and_twice(simd, imaginary))
}
