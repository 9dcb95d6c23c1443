//! What can be wrong with a file of a ceremony. Every check has an error of its own.

/// Which sub-check of a file or transcript failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that begins with other letters.
    #[error("this is not a .{expected} file")]
    AnotherKind {
        /// The kind that is needed.
        expected: &'static str,
    },
    /// A container of another version.
    #[error("the file has container version {0}; this program reads version 1")]
    Version(u32),
    /// A file that ends too early.
    #[error("the file is truncated")]
    Truncated,
    /// A file that goes on after its last section.
    #[error("bytes follow the last section of the file")]
    TrailingBytes,
    /// A section that is there twice.
    #[error("section {0} is there twice")]
    SectionTwice(u32),
    /// A section that is not there.
    #[error("section {0} is missing")]
    SectionMissing(u32),
    /// A section that no reader looks at, so that no check covers it.
    #[error("section {0} has no place in such a file")]
    SectionUnknown(u32),
    /// A section of a wrong length.
    #[error("section {0} has a wrong length")]
    SectionLength(u32),
    /// A file for another curve.
    #[error("the file is for another curve than BN254")]
    AnotherCurve,
    /// A key of another proof system.
    #[error("the file is for another proof system than Groth16")]
    AnotherSystem,
    /// A coordinate that is not below the modulus.
    #[error("a coordinate in {0} is not canonical")]
    NotCanonical(&'static str),
    /// A point off its curve.
    #[error("a point of {0} is not on its curve")]
    NotOnCurve(&'static str),
    /// A point outside its subgroup.
    #[error("a point of {0} is not in its subgroup")]
    NotInSubgroup(&'static str),
    /// A neutral element where none may be.
    #[error("a point of {0} is the neutral element")]
    Neutral(&'static str),

    /// Powers for smaller circuits only.
    #[error("the powers of tau are for 2^{found} rows; 2^{needed} are needed")]
    TooFewPowers {
        /// What is needed.
        needed: u32,
        /// What the file has.
        found: u32,
    },
    /// Powers that do not begin with the generators.
    #[error("the powers of tau do not begin with the generators")]
    NoGenerator,
    /// Points that are not consecutive powers.
    #[error("{0} are not consecutive powers of one tau")]
    NotPowers(&'static str),
    /// β differs between the groups.
    #[error("beta is not the same in both groups")]
    AnotherBeta,
    /// Lagrange points that do not belong to the powers.
    #[error("the Lagrange points of {0} do not belong to these powers of tau")]
    WrongLagrange(&'static str),

    /// A key for another constraint system.
    #[error("the file is for other constraints than the {0} statement")]
    AnotherCircuit(&'static str),
    /// A first key whose header is not what the powers of tau give.
    #[error("{0} of the first key is not what the powers of tau give")]
    FirstHeader(&'static str),
    /// Points of a first key that do not follow from the powers.
    #[error("{0} of the first key does not follow from the powers of tau and the constraints")]
    FirstPoints(&'static str),
    /// A circuit hash that is not the hash of the first key.
    #[error("the circuit hash is not that of the first key")]
    CircuitHash,
    /// A first key with contributions.
    #[error("the first key has contributions")]
    FirstContributed,

    /// A section that no contribution may touch.
    #[error("{0} was changed, which no contribution may touch")]
    FixedChanged(&'static str),
    /// A contribution whose challenge is not the hash of all before it.
    #[error("contribution {0} does not follow the contributions before it")]
    DoesNotFollow(usize),
    /// A contribution with x = 1 or x = −1.
    #[error("contribution {0} changes nothing")]
    ChangesNothing(usize),
    /// A contribution without a valid proof of knowledge.
    #[error("contribution {0} does not prove that its author knew x")]
    NoKnowledge(usize),
    /// A contribution whose δ is not the one before times x.
    #[error("delta after contribution {0} is not the one before times x")]
    DeltaDoesNotFollow(usize),
    /// A contribution of a kind that nobody defined.
    #[error("contribution {0} is neither a person's nor a beacon")]
    UnknownContribution(usize),
    /// Parameters that cannot be read.
    #[error("the parameters of contribution {0} cannot be read")]
    Parameters(usize),
    /// A beacon whose points are not those its parameters give.
    #[error("contribution {0} is not the beacon that its parameters give")]
    NotThatBeacon(usize),
    /// δ in G1 is not that of the last contribution.
    #[error("delta in G1 is not the one after the last contribution")]
    LastDelta,
    /// δ differs between the groups.
    #[error("delta is not the same in both groups")]
    AnotherDelta,
    /// Points that were not divided by δ.
    #[error("{0} is not that of the first key divided by delta")]
    NotDivided(&'static str),

    /// A ceremony of fewer people than it needs.
    #[error("the {statement} key has {found} contributions of people; {needed} are needed")]
    TooFewContributions {
        /// Which statement.
        statement: &'static str,
        /// What is needed.
        needed: usize,
        /// How many there are.
        found: usize,
    },
    /// A ceremony that does not end with a beacon.
    #[error("the {0} key does not end with a beacon")]
    NoBeacon(&'static str),
    /// A beacon before the end.
    #[error("contribution {0} is a beacon, and others follow it")]
    BeaconNotLast(usize),
    /// A beacon that is not derived from the announced one.
    #[error("the beacon of the {0} key is not derived from the announced one")]
    WrongBeacon(&'static str),
    /// A beacon hashed another number of times.
    #[error("the beacon of the {statement} key is hashed 2^{found} times instead of 2^{needed}")]
    BeaconExponent {
        /// Which statement.
        statement: &'static str,
        /// What is needed.
        needed: u8,
        /// What was done.
        found: u8,
    },
    /// Different numbers of contributions.
    #[error("the {0} and {1} keys have different numbers of contributions")]
    DifferentCounts(&'static str, &'static str),
    /// The same secret in two statements.
    #[error("contribution {0} has the same x, up to its sign, in the {1} and {2} keys")]
    SameSecret(usize, &'static str, &'static str),
    /// The same δ in two statements.
    #[error("the {0} and {1} keys have the same delta, up to its sign")]
    SameDelta(&'static str, &'static str),
    /// A contribution after the end.
    #[error("the ceremony has ended with its beacon; nobody can contribute any more")]
    Ended,
    /// A name that the format has no room for.
    #[error("a name has 1 to 64 bytes of printable text")]
    Name,
    /// A beacon that the format has no room for.
    #[error("a beacon has 16 to 255 bytes")]
    BeaconLength,
    /// A power that this program does not make.
    #[error("powers of tau are made for 2^{min} to 2^{max} rows", min = super::powers::MIN_POWER, max = super::powers::MAX_POWER)]
    Power,
    /// A point of our own phase 1 that is not the one before times x.
    #[error("{0} after contribution {1} is not the one before times x")]
    PowerDoesNotFollow(&'static str, usize),
    /// Points and log of our own phase 1 disagree.
    #[error("{0} is not the one after the last contribution to the powers of tau")]
    LastPower(&'static str),
    /// Powers of tau without our own log.
    #[error("the powers of tau carry no log of contributions that this program reads")]
    NoLog,
}
