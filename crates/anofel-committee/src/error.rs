//! What can be wrong, and whose fault it is.

/// A refusal: what is wrong and, where there is one, the member who caused it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Wrong number of bytes or elements.
    #[error("{what} has {found} bytes instead of {expected}")]
    Length {
        /// The value.
        what: &'static str,
        /// How many it must have.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// A point or scalar that is not its canonical encoding.
    #[error("{what} is not canonical at position {index}")]
    NotCanonical {
        /// The value.
        what: &'static str,
        /// Which element.
        index: usize,
    },
    /// The neutral element where a real point is needed.
    #[error("{what} is the neutral element")]
    Neutral {
        /// The value.
        what: &'static str,
    },
    /// An equation of a proof does not hold.
    #[error("{what} does not hold")]
    Proof {
        /// The statement.
        what: &'static str,
    },
    /// A number outside its range.
    #[error("{what} is {found}, outside {least} to {most}")]
    Range {
        /// The number.
        what: &'static str,
        /// The number given.
        found: i128,
        /// The smallest allowed.
        least: i128,
        /// The largest allowed.
        most: i128,
    },
    /// The same member twice, or a member who does not exist.
    #[error("{what}")]
    Members {
        /// What is wrong with the list.
        what: &'static str,
    },
    /// The sum cannot come from honest posts.
    #[error("the sum is not decodable: {why}")]
    Undecodable {
        /// Which of the decoder's checks failed.
        why: &'static str,
    },
    /// Another error, caused by one member.
    #[error("member {member}: {cause}")]
    Member {
        /// The culprit.
        member: u16,
        /// What is wrong.
        cause: Box<Error>,
    },
}

impl Error {
    /// The same error with its culprit.
    pub fn by(self, member: u16) -> Self {
        match self {
            Self::Member { .. } => self,
            cause => Self::Member { member, cause: Box::new(cause) },
        }
    }

    /// The member who caused it.
    pub fn culprit(&self) -> Option<u16> {
        match self {
            Self::Member { member, .. } => Some(*member),
            _ => None,
        }
    }
}

/// Refuses a value of the wrong length.
pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found {
        Ok(())
    } else {
        Err(Error::Length { what, expected, found })
    }
}

/// Refuses a number outside its range.
pub(crate) fn check_range(
    what: &'static str,
    found: i128,
    least: i128,
    most: i128,
) -> Result<(), Error> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(Error::Range { what, found, least, most })
    }
}
