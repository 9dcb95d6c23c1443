//! Powers of tau of our own.

use anofel_circuits::ceremony::first::Circuit;
use anofel_circuits::ceremony::phase1::Accumulator;
use anofel_circuits::ceremony::powers::Powers;
use anofel_circuits::ceremony::verify::check_chain;
use anofel_circuits::ceremony::Error;

use super::refused::rewrite;
use super::KIND;

const LOG: u32 = 1000;
const ENTRY: usize = 3 * (3 * 64 + 128) + 8;

fn contributed(people: &[&str]) -> Accumulator {
    let mut state = Accumulator::new(4).unwrap();
    for name in people {
        state.contribute(name).unwrap();
    }
    state
}

fn refusal(bytes: &[u8]) -> Error {
    Accumulator::read(bytes).err().unwrap()
}

#[test]
fn powers_of_our_own_serve_a_statement() {
    let mut state = Accumulator::new(8).unwrap();
    state.contribute("Clinic A").unwrap();
    let mut state = Accumulator::read(&state.to_bytes()).unwrap();
    state.contribute("Clinic B").unwrap();
    state.add_beacon(&[5; 32], "beacon").unwrap();
    let file = state.to_bytes();
    let read = Accumulator::read(&file).unwrap();
    read.check_end(&[5; 32]).unwrap();
    let names: Vec<_> = read.summaries().into_iter().map(|s| s.parameters.name.unwrap()).collect();
    assert_eq!(names, ["Clinic A", "Clinic B", "beacon"]);
    let powers = Powers::read(&file).unwrap();
    let circuit = Circuit::new(KIND);
    let first = circuit.first_key(&powers, &powers.lagrange(&file, 8).unwrap()).unwrap();
    circuit.check_first(&first, &powers).unwrap();
    let mut key = first.clone();
    key.contribute("Clinic A").unwrap();
    check_chain(&first, &key).unwrap();
}

#[test]
fn the_log_is_whole_and_in_its_order() {
    let bytes = contributed(&["a", "b"]).to_bytes();
    Accumulator::read(&bytes).unwrap();
    let log = |change: &dyn Fn(&mut Vec<u8>)| {
        refusal(&rewrite(&bytes, "ptau", |sections| {
            change(&mut sections.iter_mut().find(|(n, _)| *n == LOG).unwrap().1);
        }))
    };
    // The first entry twice: the second one proves knowledge for another log.
    let parameters = 3;
    let length = ENTRY + parameters;
    let twice = log(&|contents| contents.copy_within(4..4 + length, 4 + length));
    assert_eq!(twice, Error::NoKnowledge(2));
    let dropped = log(&|contents| {
        contents.truncate(4 + length);
        contents[0] = 1;
    });
    assert_eq!(dropped, Error::LastPower("τ"));
    assert_eq!(log(&|contents| contents.push(0)), Error::SectionLength(LOG));
    assert_eq!(log(&|contents| contents.truncate(contents.len() - 1)), Error::SectionLength(LOG));
    // β after the last contribution becomes α after it.
    let beta = log(&|contents| {
        let (alpha, beta) = (4 + length + 320, 4 + length + 640);
        contents.copy_within(alpha..alpha + 64, beta);
    });
    assert_eq!(beta, Error::PowerDoesNotFollow("β", 2));
    let bare = rewrite(&bytes, "ptau", |sections| sections.retain(|(n, _)| *n != LOG));
    assert_eq!(refusal(&bare), Error::NoLog);
}

#[test]
fn sections_of_another_state_are_refused() {
    let (one, two) = (contributed(&["a"]).to_bytes(), contributed(&["a"]).to_bytes());
    let mixed = rewrite(&one, "ptau", |sections| {
        let other = super::refused::split(&two);
        sections.iter_mut().zip(other).filter(|(s, _)| s.0 != LOG).for_each(|(s, o)| *s = o);
    });
    assert_eq!(refusal(&mixed), Error::LastPower("τ"));
}

#[test]
fn the_end_needs_two_people_and_the_beacon() {
    let statement = "powers of tau";
    let mut state = contributed(&["a"]);
    let few = Error::TooFewContributions { statement, needed: 2, found: 1 };
    assert_eq!(state.check_end(&[5; 32]), Err(few));
    state.contribute("b").unwrap();
    assert_eq!(state.check_end(&[5; 32]), Err(Error::NoBeacon(statement)));
    state.add_beacon(&[6; 32], "beacon").unwrap();
    assert_eq!(state.check_end(&[5; 32]), Err(Error::WrongBeacon(statement)));
    state.check_end(&[6; 32]).unwrap();
    assert_eq!(state.contribute("late"), Err(Error::Ended));
    // The value in the parameters becomes another one.
    let bytes = rewrite(&state.to_bytes(), "ptau", |sections| {
        *sections.last_mut().unwrap().1.last_mut().unwrap() ^= 1;
    });
    assert_eq!(refusal(&bytes), Error::NotThatBeacon(3));
}

#[test]
fn powers_have_limits() {
    for power in [0, 1, 14, 64] {
        assert_eq!(Accumulator::new(power).err(), Some(Error::Power));
    }
}
