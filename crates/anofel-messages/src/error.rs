//! What can be wrong with a message, and where.

/// A message that is not well-formed: the layout, the field and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", place(.layout, .path))]
pub struct Error {
    layout: &'static str,
    path: String,
    reason: Reason,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes end before the value does.
    #[error("too short: {needed} bytes are needed and {left} are left")]
    TooShort {
        /// How many bytes the value takes at least.
        needed: usize,
        /// How many there are.
        left: usize,
    },
    /// The value ends before the bytes do.
    #[error("bytes left over: {count}")]
    LeftOver {
        /// How many.
        count: usize,
    },
    /// A flag that is neither 0 nor 1.
    #[error("the flag is {byte} instead of 0 or 1")]
    NotAFlag {
        /// What it is.
        byte: u8,
    },
    /// More bytes or items than the layout admits.
    #[error("too long: {length} where at most {max} are admitted")]
    TooLong {
        /// How many there are.
        length: usize,
        /// How many there may be.
        max: usize,
    },
    /// Bytes of a fixed length that have another.
    #[error("{found} bytes instead of {expected}")]
    Length {
        /// How many there must be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A number that does not fit its type.
    #[error("the number is out of range: it must be from 0 to {max}")]
    OutOfRange {
        /// The largest number of the type.
        max: u64,
    },
    /// A field element, point or key that is not in its one form.
    #[error("not canonical: {0}")]
    NotCanonical(#[from] anofel_primitives::Error),
    /// A text that is not UTF-8.
    #[error("the text is not UTF-8")]
    NotText,
    /// A value of another sort than the field's.
    #[error("the value must be {expected}")]
    Sort {
        /// What it must be.
        expected: &'static str,
    },
    /// A record with too few or too many values.
    #[error("the record has {found} values instead of {expected}")]
    Fields {
        /// How many fields the layout has.
        expected: usize,
        /// How many values there are.
        found: usize,
    },
    /// A version that this software does not know.
    #[error("the version is {found}; only {known} is known")]
    Version {
        /// The version of the posting.
        found: u8,
        /// The version known here.
        known: u8,
    },
    /// A kind of posting that does not exist.
    #[error("there is no posting of kind {found}")]
    Kind {
        /// The number.
        found: u8,
    },
}

impl Error {
    /// A fault of the value itself; [`Error::inside`] and [`Error::of`] then say where it stands.
    pub fn new(reason: Reason) -> Self {
        Self { layout: "", path: String::new(), reason }
    }

    /// The same fault, seen from the field that holds the value.
    pub fn inside(mut self, field: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{field}{joint}{}", self.path);
        self
    }

    /// The same fault, seen from the list that holds the value.
    pub fn at(self, index: usize) -> Self {
        self.inside(&format!("[{index}]"))
    }

    /// The same fault, in a layout.
    pub fn of(mut self, layout: &'static str) -> Self {
        self.layout = layout;
        self
    }

    /// The layout that was read or written.
    pub fn layout(&self) -> &'static str {
        self.layout
    }

    /// The field, with the way to it: `contributions[2].payload.length`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong with the field.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        Self::new(reason)
    }
}

impl From<anofel_primitives::Error> for Error {
    fn from(error: anofel_primitives::Error) -> Self {
        Self::new(error.into())
    }
}

fn place(layout: &str, path: &str) -> String {
    if path.is_empty() {
        layout.to_owned()
    } else {
        format!("{layout}.{path}")
    }
}
