//! Types that users make. To the engine their values are bytes: what a type means is told to the
//! floor that reads and shows them ([`set_teller`]), for as long as some catalog has the type.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

/// A type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TypeDef {
    /// Its number; the next one is that of its arrays. Numbers are chosen at random, so that those
    /// of two databases in one process differ.
    pub oid: u32,
    /// Schema's name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: TypeKind,
    /// Kept for as long as the type is told.
    #[serde(skip)]
    told: Told,
}

/// What a type is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TypeKind {
    /// An enum: its labels in their order, each with its place. Values are places, which no later
    /// change of the type touches.
    Enum(Vec<(u64, String)>),
    /// A row of these columns.
    Composite(Vec<AttributeDef>),
    /// Another type's values with conditions. Tables hold them as that type's.
    Domain(DomainDef),
}

/// What a domain is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DomainDef {
    /// The number of the type that it is made of, which may be a domain.
    pub below: u32,
    /// That type's modifier.
    pub modifier: i32,
    /// NULL is none of its values.
    pub not_null: bool,
    /// The SQL text of what columns without a default of their own get.
    pub default: Option<String>,
    /// Its conditions, in the order of their names; VALUE is the value.
    pub checks: Vec<DomainCheckDef>,
}

/// A condition of a domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DomainCheckDef {
    /// Name.
    pub name: String,
    /// The condition's SQL text.
    pub expression: String,
    /// What was there before it was asked, too.
    pub valid: bool,
}

/// A column of a composite type. One that is dropped keeps its place in values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeDef {
    /// Name.
    pub name: String,
    /// The number of its type.
    pub type_oid: u32,
    /// Its type's modifier.
    pub modifier: i32,
    /// It was dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// What the floor above gave for a definition that it was told; no part of the definition.
#[derive(Default)]
struct Told(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Clone for Told {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Told {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").finish_non_exhaustive()
    }
}

/// Who is told what a type means; what it gives is kept with the definition.
pub type Teller = fn(&TypeDef) -> Arc<dyn Any + Send + Sync>;

static TELLER: OnceLock<Teller> = OnceLock::new();

/// Says, once for the process, who is told.
pub fn set_teller(teller: Teller) {
    TELLER.get_or_init(|| teller);
}

impl TypeDef {
    /// A type.
    pub fn new(oid: u32, schema: String, name: String, kind: TypeKind) -> Self {
        Self {
            oid,
            schema,
            name,
            kind,
            told: Told::default(),
        }
    }

    /// The number of the type of its arrays.
    pub fn array(&self) -> u32 {
        self.oid + 1
    }

    /// The columns that it has, if it is composite.
    pub fn attributes(&self) -> impl Iterator<Item = &AttributeDef> {
        let all = match &self.kind {
            TypeKind::Composite(attributes) => attributes.as_slice(),
            TypeKind::Enum(_) | TypeKind::Domain(_) => &[],
        };
        all.iter().filter(|attribute| !attribute.dropped)
    }

    /// Tells what it means, unless it was told.
    pub fn tell(&self) {
        if let Some(teller) = TELLER.get() {
            self.told.0.get_or_init(|| teller(self));
        }
    }

    /// About what it takes in memory, in bytes: here, and where it was told.
    pub(crate) fn memory_bytes(&self) -> usize {
        let label = |(_, label): &(u64, String)| 2 * (64 + label.len());
        let attribute = |attribute: &AttributeDef| 2 * (96 + attribute.name.len());
        let parts: usize = match &self.kind {
            TypeKind::Enum(labels) => labels.iter().map(label).sum(),
            TypeKind::Composite(attributes) => attributes.iter().map(attribute).sum(),
            TypeKind::Domain(domain) => {
                // Analysed, a condition is many times its text.
                let check = |check: &DomainCheckDef| 1024 + 64 * check.expression.len();
                let default = domain.default.as_ref().map_or(0, String::len);
                default + domain.checks.iter().map(check).sum::<usize>()
            }
        };
        size_of::<Self>() + 256 + 2 * self.name.len() + parts
    }
}
