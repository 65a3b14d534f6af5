//! Domains: types that are others with conditions. Their values are those of the type below; what
//! becomes one is checked (`crate::domain`).

use std::sync::{Arc, OnceLock};

use super::user::{self, Class, Kind, UserType};
use crate::error::Result;
use crate::tree::Expr;

/// A domain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain {
    /// The number of the type that it is made of, which may be a domain.
    pub below: u32,
    /// That type's modifier.
    pub modifier: i32,
    /// NULL is none of its values.
    pub not_null: bool,
    /// Conditions of its values, in the order of their names.
    pub checks: Vec<Condition>,
}

/// A condition of a domain's values.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Its name.
    pub name: Arc<str>,
    /// Its text, in which VALUE is the value.
    pub text: Arc<str>,
    /// Analysed where it is first asked: types that it mentions may be told later.
    pub(crate) analyzed: OnceLock<Result<Expr>>,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text == other.text
    }
}

impl Eq for Condition {}

impl Condition {
    /// A condition.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            analyzed: OnceLock::new(),
        }
    }
}

/// The type at the bottom of a domain and what its values are fitted to; of another type itself.
#[must_use]
pub fn base_of(oid: u32, modifier: i32) -> (u32, i32) {
    let (mut oid, mut modifier) = (oid, modifier);
    while let Some(def) = known(oid) {
        let Kind::Domain(domain) = &def.kind else {
            break;
        };
        oid = domain.below;
        modifier = if modifier < 0 {
            domain.modifier
        } else {
            modifier
        };
    }
    (oid, modifier)
}

/// The type at the bottom of a domain; of another type itself.
#[must_use]
pub fn base(oid: u32) -> u32 {
    match is_domain(oid) {
        false => oid,
        true => base_of(oid, -1).0,
    }
}

/// Whether the number is that of a domain.
#[must_use]
pub const fn is_domain(oid: u32) -> bool {
    matches!(Class::of(oid), Some(Class::Domain))
}

/// What a domain is.
pub(crate) fn known(oid: u32) -> Option<Arc<UserType>> {
    is_domain(oid).then(|| user::by_oid(oid)).flatten()
}
