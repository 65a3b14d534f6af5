//! Types that users make. To the engine their values are bytes: what a type means is told to the
//! floor that reads and shows them ([`set_teller`]), for as long as some catalog has the type.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use thermocline_storage::types::DataType;

use crate::catalog::{Catalog, TableDef};
use crate::error::{Error, Result};

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

impl Catalog {
    /// Tells all types.
    pub fn tell_types(&self) {
        self.types.values().for_each(|def| def.tell());
    }

    /// The type of this name.
    pub fn type_by_name(&self, schema: &str, name: &str) -> Option<&Arc<TypeDef>> {
        let mut types = self.types.values();
        types.find(|def| def.name == name && def.schema == schema)
    }

    /// The type that a number is of, as itself or as that of its arrays.
    pub fn type_of(&self, oid: u32) -> Option<&Arc<TypeDef>> {
        let of_arrays = || self.types.get(&oid.wrapping_sub(1));
        self.types.get(&oid).or_else(of_arrays)
    }
}

/// The numbers of the types of a table's columns that are not built into the storage.
pub(crate) fn types_of<'a>(catalog: &'a Catalog, def: &'a TableDef) -> impl Iterator<Item = u32> {
    let columns = def.live_columns().map(|(_, column)| column);
    columns.flat_map(|column| {
        let stored = match column.data_type {
            DataType::Other { oid, .. } => catalog.type_of(oid).map(|def| def.oid),
            _ => None,
        };
        stored.into_iter().chain(column.domain)
    })
}

/// The users' types that a type is made of.
pub(crate) fn types_within<'a>(
    catalog: &'a Catalog,
    def: &'a TypeDef,
) -> impl Iterator<Item = u32> {
    let below = match &def.kind {
        TypeKind::Domain(domain) => Some(domain.below),
        TypeKind::Enum(_) | TypeKind::Composite(_) => None,
    };
    let attributes = def.attributes().map(|attribute| attribute.type_oid);
    let all = attributes.chain(below);
    all.filter_map(|oid| Some(catalog.type_of(oid)?.oid))
}

/// 2BP01 where a column is of the type that is to be dropped.
pub(crate) fn is_of_none(catalog: &Catalog, oid: u32) -> Result<()> {
    let has = |def: &TableDef| types_of(catalog, def).any(|of| of == oid);
    let mut tables = catalog.tables.values();
    let table = tables.find(|table| has(&table.def));
    let of_view = |oid: u32| catalog.type_of(oid).map(|def| def.oid);
    let mut views = catalog.views.values();
    let view = views.find(|view| {
        let mut columns = view.columns.iter();
        columns.any(|column| of_view(column.type_oid) == Some(oid))
            || view.types.iter().any(|named| named.oid == oid)
    });
    let mut types = catalog.types.values();
    let composite = types.find(|def| types_within(catalog, def).any(|of| of == oid));
    let user = table.map(|table| &table.def.name);
    let user = user.or(composite.map(|def| &def.name));
    let mut functions = catalog.functions.values();
    let array = catalog.types.get(&oid).map_or(oid, |def| def.array());
    let function = functions.find(|def| def.names_type(oid) || def.names_type(array));
    let user = user.or(function.map(|def| &def.name));
    match user.or(view.map(|view| &view.name)) {
        None => Ok(()),
        Some(name) => Err(Error::catalog("2BP01", format!("{name} depends on it"))),
    }
}
