//! What a stream's reader does with each member of a chunk.

/// What becomes of a value when the chunks before it are put together with its own. Null is the same for all rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Texts are joined.
    Text,
    /// Lists are joined; a chunk has one such list of a key at most.
    List,
    /// Lists of objects that say of tokens what the keys tell are joined; a chunk has one such list at most.
    Entries,
    /// It is the same in each.
    Same,
    /// It is there, the same in each, and one of these.
    OneOf(Vec<Vec<u8>>),
    /// A list that comes again with more at its end, or in pieces; the count tells which.
    Grows,
    /// A text that comes as the lists that grow do.
    Told,
    /// How many elements the lists that grow have by now.
    Count,
    /// The last one stays; lists do not come.
    Last,
    /// A chunk that has it stands alone.
    Never,
    /// An object, with rules of its own.
    Object(Box<Rules>),
    /// A list of one object, with rules of its own.
    Single(Box<Rules>),
}

/// The rules of the members of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// By key.
    pub keys: Vec<(Vec<u8>, Rule)>,
    /// For all others.
    pub other: Rule,
}

impl Rules {
    /// The rule of a member.
    pub(super) fn of(&self, key: &[u8]) -> &Rule {
        self.keys.iter().find(|(name, _)| name == key).map_or(&self.other, |(_, rule)| rule)
    }
}
