//! Gadgets against the native computation, at the edges of what their comments claim.
#![allow(clippy::unwrap_used)]

mod common;

use anofel_circuits::gadgets::curve::{signed_multiple, Edwards, FixedBase};
use anofel_circuits::gadgets::digits::{enforce_bits, integer, odd_digits, OddDigit};
use anofel_circuits::gadgets::poseidon;
use anofel_circuits::system::{Lc, Mode, System};
use anofel_primitives::babyjubjub::{
    base8, generator_f, generator_g, generator_h, EdwardsConfig, Point, Scalar,
};
use anofel_primitives::hash::{hash, Domain};
use anofel_primitives::Fr;
use ark_ec::twisted_edwards::{MontCurveConfig, TECurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{
    AdditiveGroup, BigInteger, BigInteger256, Field, LegendreSymbol, PrimeField, UniformRand,
};
use common::draft::{of_order_eight, random};
use rand::rngs::OsRng;

fn system() -> System {
    System::new(Mode::Solving, &[]).0
}

fn point(edwards: &Edwards) -> Point {
    Point::new_unchecked(edwards.x.value(), edwards.y.value())
}

fn scalar(integer: &BigInteger256) -> Scalar {
    Scalar::from_le_bytes_mod_order(&integer.to_bytes_le())
}

/// 2^bits − 1.
fn ones(bits: u32) -> BigInteger256 {
    let mut integer = BigInteger256::one() << bits;
    integer.sub_with_borrow(&BigInteger256::one());
    integer
}

#[test]
fn the_curve_is_what_the_comments_say() {
    let (a, d) = (<EdwardsConfig as TECurveConfig>::COEFF_A, EdwardsConfig::COEFF_D);
    // Complete addition needs a square a and a d that is none.
    assert_eq!(a.legendre(), LegendreSymbol::QuadraticResidue);
    assert_eq!(d.legendre(), LegendreSymbol::QuadraticNonResidue);
    // v² = u³ + A·u² + u with A = 2(a + d)/(a − d) and B = 4/(a − d) = 1; u = −1 would need
    // v² = A − 2 = d; a second point of order 2 would need a root of A² − 4 = a·d.
    let coefficient = <EdwardsConfig as MontCurveConfig>::COEFF_A;
    assert_eq!(coefficient * (a - d), (a + d).double());
    assert_eq!(a - d, Fr::from(4u64));
    assert_eq!(coefficient - Fr::from(2u64), d);
    assert_eq!(coefficient.square() - Fr::from(4u64), a * d);
    // 8^83 is below the group order; 84 windows hold it, and so do 254 bits the field's modulus.
    let order = <Scalar as PrimeField>::MODULUS;
    assert!(BigInteger256::one() << 249 < order && order < BigInteger256::one() << 251);
    assert!(Fr::MODULUS < BigInteger256::one() << 254);
    let generators = [generator_f(), generator_g(), generator_h(), base8()];
    for (i, generator) in generators.iter().enumerate() {
        assert!(generator.is_on_curve() && !generator.is_zero());
        assert!(generator.is_in_correct_subgroup_assuming_on_curve());
        assert!(generators[i + 1..].iter().all(|other| other.y != generator.y));
    }
}

#[test]
fn fixed_base_multiples_are_right_for_all_and_for_extreme_integers() {
    let order = <Scalar as PrimeField>::MODULUS;
    let mut near = vec![BigInteger256::zero(), BigInteger256::one(), ones(252), order];
    // Where the sum of the safe windows is largest and smallest, and around the order.
    near.extend([ones(249), BigInteger256::one() << 249, ones(251), BigInteger256::one() << 251]);
    near.extend((0..24).map(|_| Scalar::rand(&mut OsRng).into_bigint()));
    // Alternating signs of the odd digits: windows 0 and 7.
    near.push(BigInteger256::new([0x1c71_c71c_71c7_1c71; 4]) >> 4);
    let mut below = order;
    below.sub_with_borrow(&BigInteger256::one());
    near.push(below);
    for base in [base8(), generator_h()] {
        let tables = FixedBase::new(&base, &[3; 84]);
        for t in &near {
            let mut system = system();
            let digits = odd_digits(&mut system, t, 84);
            let multiple = tables.multiply(&mut system, &digits);
            let full = multiple.add_constant(&mut system, &tables.offset());
            assert!(system.failed().is_empty());
            assert_eq!(point(&full), (base * scalar(t)).into_affine());
        }
    }
}

#[test]
fn odd_digits_take_exactly_their_values() {
    for t in 0..8 {
        let mut system = system();
        let digit = OddDigit::of_three_bits(&mut system, t);
        assert_eq!(integer(&system, &[digit]).value(), Fr::from(t));
        let digit = OddDigit::of_two_bits(&mut system, t);
        assert_eq!(integer(&system, &[digit]).value(), Fr::from(t % 4));
        assert!(system.failed().is_empty());
    }
    // Every other value breaks the product of all (w − u²); the constraints are those of a
    // recorded system, so that the values can be changed.
    let (mut three, _) = System::new(Mode::Recording, &[]);
    OddDigit::of_three_bits(&mut three, 0);
    let (mut two, _) = System::new(Mode::Recording, &[]);
    OddDigit::of_two_bits(&mut two, 0);
    let holds = |recorded: &System, z: &[Fr]| {
        recorded.constraints().iter().all(|row| {
            common::value(&row.a, z) * common::value(&row.b, z) == common::value(&row.c, z)
        })
    };
    let is_one_of = |value: Fr, digits: &[i64]| {
        digits.iter().any(|u| value == Fr::from(*u) || value == -Fr::from(*u))
    };
    for value in (-60i64..60).map(Fr::from).chain([random(), Fr::from(2u64).inverse().unwrap()]) {
        let w = value.square();
        let z = [Fr::ONE, value, w, w.square(), w.square() * w];
        assert_eq!(holds(&three, &z), is_one_of(value, &[1, 3, 5, 7]), "{value}");
        assert_eq!(holds(&two, &z[..3]), is_one_of(value, &[1, 3]), "{value}");
    }
}

#[test]
fn signed_multiples_are_right_for_all_and_for_extreme_integers() {
    let mut largest = Fr::MODULUS;
    largest.sub_with_borrow(&BigInteger256::one());
    let integers =
        [BigInteger256::zero(), BigInteger256::one(), largest, ones(254), random().into_bigint()];
    for h in integers {
        let base = (base8() * Scalar::rand(&mut OsRng)).into_affine();
        let mut system = system();
        let signs: Vec<Lc> = (0..254)
            .map(|i| system.constant(if h.get_bit(i) { Fr::ONE } else { -Fr::ONE }))
            .collect();
        let variable = Edwards::variables(&mut system, &base).to_montgomery(&mut system);
        let sum = signed_multiple(&mut system, &generator_f(), &variable, &signs);
        let sum = sum.to_edwards(&mut system);
        assert!(system.failed().is_empty());
        let power = Scalar::from(2u64).pow([254u64]);
        let odd = scalar(&h).double() + Scalar::ONE;
        assert_eq!(point(&sum), (generator_f() * power + base * odd).into_affine());
    }
}

#[test]
fn edwards_addition_is_complete() {
    let p = (base8() * Scalar::rand(&mut OsRng)).into_affine();
    let torsion = of_order_eight();
    let others = [p, -p, Point::zero(), torsion, (p + torsion).into_affine(), base8()];
    for left in others {
        for right in others {
            let mut system = system();
            let variables = [left, right].map(|point| Edwards::variables(&mut system, &point));
            let expected = (left + right).into_affine();
            let sum = variables[0].add(&mut system, &variables[1]);
            assert_eq!(point(&sum), expected);
            let sum = variables[0].add_constant(&mut system, &right);
            assert_eq!(point(&sum), expected);
            assert!(system.failed().is_empty());
        }
    }
}

#[test]
fn points_are_on_the_curve_or_refused() {
    for (x, y, on) in [
        (base8().x, base8().y, true),
        (of_order_eight().x, of_order_eight().y, true),
        (Fr::ZERO, Fr::ONE, true),
        (Fr::ZERO, Fr::ZERO, false),
        (base8().y, base8().x, false),
        (base8().x, base8().y + Fr::ONE, false),
    ] {
        let mut system = system();
        let point = Edwards::variables(&mut system, &Point::new_unchecked(x, y));
        point.enforce_on_curve(&mut system);
        assert_eq!(system.failed().is_empty(), on);
    }
}

#[test]
fn a_range_is_exact() {
    let fits = |value: Fr, bits| {
        let mut system = system();
        let variable = system.variable(value);
        enforce_bits(&mut system, &variable, bits);
        system.failed().is_empty()
    };
    for bits in [1, 32, 125, 127] {
        let power = Fr::from(2u64).pow([bits as u64]);
        assert!(fits(Fr::ZERO, bits) && fits(power - Fr::ONE, bits));
        assert!(!fits(power, bits) && !fits(-Fr::ONE, bits) && !fits(random(), bits));
    }
}

#[test]
fn poseidon_in_constraints_is_the_native_one() {
    for domain in Domain::ALL {
        let inputs: Vec<Fr> = (0..domain.arity()).map(|_| random()).collect();
        let mut system = system();
        let variables: Vec<Lc> = inputs.iter().map(|value| system.variable(*value)).collect();
        let found = poseidon::hash(&mut system, domain, &variables);
        assert_eq!(found.value(), hash(domain, &inputs));
        assert!(system.failed().is_empty());
    }
}
