//! Measures proofs for `bench/proofs.py`: one command per line in, a JSON array of strings, and
//! one line of JSON out, so that the script can take turns between this program and its peers.
//!
//! ```text
//! ["describe"]                  sizes of every statement
//! ["measure", work, name]       seconds for one piece of work: [on the clock, of all cores]
//! ["export", name, directory]   a statement's files for snarkjs
//! ["powers", power, file]       powers of tau with a known τ: insecure, only to time snarkjs
//! ```

#[path = "../../tests/common/mod.rs"]
mod common;
mod depth;
mod insecure_powers;
mod subject;

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use depth::Membership;
use serde_json::{json, Value};
use subject::{Measured, Subject};

/// The statements by name. The names of depths are those of trees with eight children per node.
fn subjects(world: &common::World) -> BTreeMap<&'static str, Box<dyn Measured + '_>> {
    BTreeMap::from([
        ("registration", Box::new(Subject::new(|| world.registration())) as Box<dyn Measured>),
        ("submission", Box::new(Subject::new(|| world.submission(1)))),
        ("membership-4", Box::new(Subject::new(Membership::<4>::random))),
        ("membership-5", Box::new(Subject::new(Membership::<5>::random))),
        ("membership-6", Box::new(Subject::new(Membership::<6>::random))),
        ("membership-7", Box::new(Subject::new(Membership::<7>::random))),
        ("membership-8", Box::new(Subject::new(Membership::<8>::random))),
    ])
}

fn answer(
    subjects: &mut BTreeMap<&str, Box<dyn Measured + '_>>,
    scratch: &Path,
    command: &str,
) -> Option<Value> {
    let words: Vec<&str> = serde_json::from_str(command).ok()?;
    match words[..] {
        ["describe"] => {
            Some(subjects.iter().map(|(name, subject)| (*name, subject.describe())).collect())
        }
        ["measure", work, name] => {
            let taken = subjects.get_mut(name)?.measure(work, scratch)?;
            Some(json!([taken.wall, taken.cpu]))
        }
        ["export", name, directory] => {
            subjects.get(name)?.export(Path::new(directory), name);
            Some(json!(null))
        }
        ["powers", power, file] => {
            let powers = insecure_powers::insecure_powers_of_tau(power.parse().ok()?);
            std::fs::write(file, powers).ok()?;
            Some(json!(null))
        }
        _ => None,
    }
}

fn main() {
    let scratch = std::env::args().nth(1).expect("usage: bench_proofs <scratch directory>");
    let world = common::World::new();
    let mut subjects = subjects(&world);
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("commands are text");
        let answer = answer(&mut subjects, Path::new(&scratch), &line)
            .unwrap_or_else(|| panic!("not a command: {line}"));
        println!("{answer}");
    }
}
