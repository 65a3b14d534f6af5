//! The catalog: what tables, indexes, sequences and views there are.
//!
//! A `Catalog` is immutable; a DDL transaction makes a new one and the commit
//! swaps it in. The definitions (`definitions`) are what is logged and
//! checkpointed; `Table` adds what is derived from them once, so that
//! statements do not derive it again: layouts, key shapes, the partition hash.

pub mod authority;
pub mod comment;
pub mod ddl;
pub mod default_privileges;
pub(crate) mod draft;
pub mod function;
pub(crate) mod logged_change;
pub(crate) mod objects_by_number;
mod partition_hash;
pub(crate) mod partition_map;
pub mod partitioning;
pub(crate) mod sequence;
pub(crate) mod storages;
pub(crate) mod table_lock;
pub mod tablespace;
pub mod trigger;
pub mod user_type;
pub(crate) mod view;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::{Deserialize, Serialize};
use thermocline_storage::key::{KeyColumn, KeyShape};
use thermocline_storage::key_hash::{fingerprint_of, key_hash};
use thermocline_storage::row_directory::ColdWord;
use thermocline_storage::tuple::Layouts;
use thermocline_values::value::ValueRef;

mod asked_for;
mod definitions;
mod fires;
mod footprint;
mod known_keys;
mod layouts;
mod materialized;
mod names;
mod objects;
mod partial;
mod sound;
mod violation;

pub use self::definitions::{
    AccessMethod, CheckDef, ColumnDef, ForeignKeyDef, Hidden, Identity, IndexDef, IndexKind,
    KeyOrder, LostLayout, ReferenceAction, Residence, SchemaDef, SequenceDef, TableDef,
    UNLOAD_PRIORITY, UNLOAD_PRIORITY_MAX,
};
pub(crate) use self::objects::{
    Commented, authority_of, comments_of, is_of_none, types_of, types_within,
};

use self::asked_for::AskedFor;
use self::known_keys::{fingerprint_index, knows_keys};
use self::layouts::layouts;
use self::names::Names;
pub use self::objects_by_number::Objects;
use crate::catalog::authority::Authority;
pub use crate::catalog::authority::PUBLIC_SCHEMA_OID;
use crate::catalog::comment::{CommentOn, Comments};
use crate::catalog::function::FunctionDef;
use crate::catalog::partition_map::{PartitionMap, key_definition};
use crate::catalog::table_lock::Gate;
use crate::catalog::tablespace::TablespaceDef;
use crate::catalog::trigger::Firing;
use crate::catalog::user_type::TypeDef;
use crate::catalog::view::ViewDef;
use crate::policy::table_policy::{Policies, TablePolicy};
use crate::policy::{Identification, Policy};

/// The first object id given to users' objects, as in PostgreSQL.
pub const FIRST_USER_OID: u32 = 16384;

/// A table's definition and what is derived from it.
#[derive(Debug)]
pub struct Table {
    /// The definition.
    pub def: TableDef,
    /// Tuple layouts, oldest first; new tuples take the newest.
    pub layouts: Layouts,
    /// Per index, the shapes of its key columns.
    pub key_shapes: Vec<KeyShape>,
    partition_shape: KeyShape,
    /// The index whose key is the partition key, so that a key's hash needs
    /// computing once.
    pub partition_index: Option<usize>,
    /// The position of [`TableDef::fingerprinted`].
    fingerprint_index: Option<usize>,
    knows_keys: bool,
    partitions: u16,
    /// A committed DDL has replaced this definition.
    pub(crate) retired: AtomicBool,
    /// Who locks the table; the same for all its definitions.
    pub(crate) gate: Arc<Gate>,
    /// What it says of its policy.
    pub policy: TablePolicy,
    /// How often its evicted rows are asked for; the same for all its definitions.
    pub(crate) asked_for: Arc<AskedFor>,
    /// How often a key has gone that foreign keys may refer to; the same for all its definitions.
    pub(crate) removals: Arc<AtomicU64>,
    /// How often rows that refer to others by a foreign key have been committed; likewise.
    pub(crate) referrals: Arc<AtomicU64>,
    /// Per foreign key, the shape of its columns.
    reference_shapes: Vec<KeyShape>,
    /// Which indexes are partial ones.
    partial: Vec<bool>,
    /// Which partition a key belongs to, where its rows lie in partitions, and what stands for
    /// the key: a table of the same columns, with one index over it and no rows.
    pub partition_map: Option<(PartitionMap, Arc<Table>)>,
    firing: Firing,
    view: Option<Arc<ViewDef>>,
}

impl Deref for Table {
    type Target = TableDef;
    fn deref(&self) -> &TableDef {
        &self.def
    }
}

/// One is no other, though both have the same definition: statements and locks go by it.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

/// The partition of `partitions` (a power of two) that a key with this hash
/// lies in. Mixed, so that the bits that an index uses stay independent.
#[inline]
pub fn partition_of_hash(hash: u64, partitions: u16) -> u16 {
    let mixed = (hash ^ (hash >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 40) as u16) & (partitions - 1)
}

fn partition_map(def: &TableDef, partitions: u16) -> Option<(PartitionMap, Arc<Table>)> {
    let by = def.partitioned.as_ref()?;
    let key = Table::new(key_definition(def, by), partitions);
    Some((PartitionMap::of(by, &key.key_shapes[0]), Arc::new(key)))
}

impl Table {
    /// Derives what statements need from the definition.
    pub fn new(def: TableDef, partitions: u16) -> Self {
        let layouts = layouts(&def);
        let key_shape = |columns: &[usize]| {
            let column = |&column: &usize| KeyColumn {
                data_type: def.columns[column].data_type,
                nullable: true,
                descending: false,
            };
            KeyShape::new(columns.iter().map(column).collect())
        };
        let key_shapes = def.indexes.iter().map(|i| key_shape(&i.columns)).collect();
        let partition_shape = key_shape(&def.partition_key);
        let references = def.foreign_keys.iter();
        let reference_shapes = references.map(|key| key_shape(&key.columns)).collect();
        let partition_index = (!def.partition_key.is_empty())
            .then(|| {
                def.indexes
                    .iter()
                    .position(|i| i.columns == def.partition_key)
            })
            .flatten();
        Table {
            layouts,
            key_shapes,
            partition_shape,
            partition_index,
            fingerprint_index: fingerprint_index(&def),
            knows_keys: knows_keys(&def),
            partitions,
            retired: AtomicBool::new(false),
            gate: Arc::new(Gate::of(def.oid)),
            policy: TablePolicy::of_options(&def.options),
            asked_for: Arc::default(),
            removals: Arc::default(),
            referrals: Arc::default(),
            reference_shapes,
            partial: partial::partial(&def),
            partition_map: partition_map(&def, partitions),
            firing: Firing::of(&def.triggers),
            view: def.as_view().map(Arc::new),
            def,
        }
    }

    /// The policy in force. Nothing of a table leaves memory that is not evictable.
    #[must_use]
    pub fn policy_over(&self, policies: &Policies) -> Policy {
        let policy = self.policy.over(policies);
        match self.def.evictable {
            true => policy,
            false => Policy {
                identification: Identification::Off,
                ..policy
            },
        }
    }

    /// The table with another definition, in as many partitions.
    pub(crate) fn redefined(&self, def: TableDef) -> Self {
        let mut table = Table::new(def, self.partitions);
        table.gate = self.gate.clone();
        table.asked_for = self.asked_for.clone();
        table.removals = self.removals.clone();
        table.referrals = self.referrals.clone();
        table
    }

    /// Whether the only index is unique, tells the partition, and knows the keys of its
    /// rows: a B+tree, or a hash index over one integer column that the fingerprints are of. Then
    /// [`Access::overwrite`] need not read what it replaces.
    ///
    /// [`Access::overwrite`]: crate::Access::overwrite
    #[inline]
    pub fn knows_keys(&self) -> bool {
        self.knows_keys
    }

    /// Whether rows leave memory column by column.
    #[inline]
    pub fn is_columns(&self) -> bool {
        self.def.access_method == AccessMethod::Columns
    }

    /// The fingerprint of a tuple for its cold word; 0 where nobody will compare it.
    pub(crate) fn fingerprint(&self, tuple: &[u8], key: &mut Vec<u8>) -> u8 {
        match self.fingerprint_index {
            Some(index) => {
                key.clear();
                self.index_key_of(index, tuple, key);
                fingerprint_of(key_hash(key))
            }
            None => 0,
        }
    }

    /// Whether a cold word has the fingerprint of its tuple, where it must.
    pub(crate) fn has_fingerprint(&self, cold: ColdWord, tuple: &[u8], key: &mut Vec<u8>) -> bool {
        self.fingerprint_index.is_none() || cold.may_be(self.fingerprint(tuple, key))
    }

    /// Whether an evicted row may have a key of this hash in `index`, a hash index. Nobody
    /// else compares a fingerprint with a key: it may be that of another index.
    #[inline]
    pub(crate) fn may_be_key_of(&self, index: usize, hash: u64, cold: ColdWord) -> bool {
        self.fingerprint_index != Some(index) || cold.may_be(fingerprint_of(hash))
    }

    /// How many partitions its rows are in.
    pub(crate) fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The partition of a row whose partition key columns hold `key`; None
    /// when the table's rows are spread.
    pub fn partition_of_values(&self, key: &[ValueRef<'_>]) -> Option<u16> {
        if self.def.partition_key.is_empty() {
            return None;
        }
        let mut bytes = Vec::with_capacity(32);
        self.partition_shape.encode(key, &mut bytes);
        Some(partition_of_hash(key_hash(&bytes), self.partitions))
    }

    /// The partition of a tuple; None when the table's rows are spread.
    pub fn partition_of_tuple(&self, tuple: &[u8]) -> Option<u16> {
        if self.def.partition_key.is_empty() {
            return None;
        }
        let mut bytes = Vec::with_capacity(32);
        self.partition_shape.encode_from_tuple(
            &self.layouts,
            &self.def.partition_key,
            tuple,
            &mut bytes,
        );
        Some(partition_of_hash(key_hash(&bytes), self.partitions))
    }

    /// The partition of a row with this full key in `index`, when the index is
    /// over the partition key.
    pub fn partition_of_index_key(&self, index: usize, key: &[u8]) -> Option<u16> {
        (self.partition_index == Some(index))
            .then(|| partition_of_hash(key_hash(key), self.partitions))
    }

    /// As [`Table::partition_of_index_key`], for a key of this hash.
    #[inline]
    pub(crate) fn partition_of_index_hash(&self, index: usize, hash: u64) -> Option<u16> {
        (self.partition_index == Some(index)).then(|| partition_of_hash(hash, self.partitions))
    }

    /// Whether some index is over the partition key: a row whose index keys stay
    /// stays in its partition.
    #[inline]
    pub(crate) fn is_partitioned_by_index(&self) -> bool {
        self.partition_index.is_some()
    }

    /// Appends the order-preserving key of `values`, which may be fewer than
    /// the index has columns (a prefix, for ranges of a B+tree).
    pub fn encode_index_key(&self, index: usize, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        self.key_shapes[index].encode(values, out);
    }

    /// Appends the key that `tuple` has in `index`.
    pub fn index_key_of(&self, index: usize, tuple: &[u8], out: &mut Vec<u8>) {
        self.key_shapes[index].encode_from_tuple(
            &self.layouts,
            &self.def.indexes[index].columns,
            tuple,
            out,
        );
    }

    /// Whether two tuples differ in a key that a foreign key may refer to.
    pub(crate) fn unique_keys_differ(&self, one: &[u8], other: &[u8]) -> bool {
        let mut unique = (0..self.def.indexes.len()).filter(|i| self.def.indexes[*i].unique);
        unique.any(|index| !self.has_same_key_columns(index, one, other))
    }

    /// Whether foreign keys refer to its rows.
    #[inline]
    pub fn is_referenced(&self) -> bool {
        !self.def.referenced_by.is_empty()
    }

    /// Appends the values of the columns of a foreign key, as a key.
    pub fn encode_reference(&self, foreign_key: usize, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        self.reference_shapes[foreign_key].encode(values, out);
    }

    /// Appends what `tuple` has in the columns of a foreign key, as a key.
    pub fn reference_of(&self, foreign_key: usize, tuple: &[u8], out: &mut Vec<u8>) {
        let columns = &self.def.foreign_keys[foreign_key].columns;
        self.reference_shapes[foreign_key].encode_from_tuple(&self.layouts, columns, tuple, out);
    }

    /// Whether `key` is the key that `tuple` has in `index`.
    #[inline]
    pub fn has_index_key(&self, index: usize, tuple: &[u8], key: &[u8]) -> bool {
        let columns = &self.def.indexes[index].columns;
        self.key_shapes[index].is_key_of(&self.layouts, columns, tuple, key)
    }

    /// Whether two tuples have the same values in the columns of `index`, and so the
    /// same key. Different values may have the same key, too.
    #[inline]
    pub fn has_same_key_columns(&self, index: usize, one: &[u8], other: &[u8]) -> bool {
        let columns = &self.def.indexes[index].columns;
        let (one, other) = (self.layouts.tuple(one), self.layouts.tuple(other));
        columns
            .iter()
            .all(|&column| one.get(column) == other.get(column))
    }

    /// Whether no row conflicts with `tuple` in `index`: its key has a NULL that is like no other,
    /// or it is beyond the index's predicate, whose column is the first.
    pub fn never_conflicts(&self, index: usize, tuple: &[u8]) -> bool {
        let def = &self.def.indexes[index];
        let told = match (def.nulls_equal, self.partial[index]) {
            (false, _) => &def.columns[..],
            (true, true) => &def.columns[..1],
            (true, false) => &[],
        };
        let is_null = |column: &usize| matches!(self.layouts.get(tuple, *column), ValueRef::Null);
        told.iter().any(is_null)
    }

    /// Appends a tuple of the newest layout.
    pub fn encode_tuple(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        self.layouts.encode(values, out);
    }

    /// The value of `column` in `tuple`.
    #[inline]
    pub fn value<'a>(&'a self, tuple: &'a [u8], column: usize) -> ValueRef<'a> {
        self.layouts.get(tuple, column)
    }

    /// Whether rows with equal keys in this index always lie in one partition:
    /// the index contains the partition key.
    pub fn is_local(&self, index: usize) -> bool {
        !self.def.partition_key.is_empty()
            && self
                .def
                .partition_key
                .iter()
                .all(|column| self.def.indexes[index].columns.contains(column))
    }

    /// The partitions that an insert of a row into this table has to hold: all
    /// when a unique index reaches over partitions, else only the row's own.
    pub fn insert_needs_all_partitions(&self) -> bool {
        (0..self.def.indexes.len()).any(|i| self.def.indexes[i].unique && !self.is_local(i))
    }
}

/// All that the database knows of its tables; immutable.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// Grows with every committed DDL.
    pub version: u64,
    /// Schemas.
    pub schemas: Vec<SchemaDef>,
    /// Tables by object id.
    pub tables: Objects<Table>,
    /// Sequences by object id.
    pub sequences: Objects<SequenceDef>,
    /// Views by object id.
    pub views: Objects<ViewDef>,
    /// Users' types by number.
    pub types: Objects<TypeDef>,
    /// Users' functions by object id.
    pub functions: Objects<FunctionDef>,
    /// Tablespaces by object id.
    pub tablespaces: Objects<TablespaceDef>,
    /// Roles and who may do what.
    pub authority: Arc<Authority>,
    /// What COMMENT says of them.
    pub comments: Arc<Comments>,
    /// By schema and name.
    names: Names,
    /// Above all numbers of relations, roles, schemas and their like: none has one from here on.
    numbers_end: u64,
    deepest_view: u32,
}

/// What is checkpointed of a catalog.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CatalogImage {
    /// See [`Catalog::version`].
    pub version: u64,
    /// Schemas.
    pub schemas: Vec<SchemaDef>,
    /// Tables.
    pub tables: Vec<TableDef>,
    /// Sequences.
    pub sequences: Vec<SequenceDef>,
    /// Views.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<ViewDef>,
    /// Users' types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<TypeDef>,
    /// Users' functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionDef>,
    /// Tablespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tablespaces: Vec<TablespaceDef>,
    /// Roles and who may do what; catalogs made before there were roles do not say.
    #[serde(default)]
    pub authority: Authority,
    /// Comments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<(CommentOn, String)>,
    /// The next object id.
    pub next_oid: u32,
    /// The next storage id.
    pub next_storage: u32,
    /// Sequences that begin again with the commit that made this the catalog.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarted: Vec<u32>,
}

impl Catalog {
    /// About what the definitions of tables and views, and comments, take in memory, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let tables = self.tables.values().map(|table| table.memory_bytes());
        let views = self.views.values().map(|view| view.memory_bytes());
        let types = self.types.values().map(|def| def.memory_bytes());
        let functions = self.functions.values().map(|def| def.memory_bytes());
        let all = tables.chain(views).chain(types).chain(functions);
        let bytes: u64 = all.map(|bytes| bytes as u64).sum();
        bytes + comment::memory_bytes(&self.comments)
    }

    /// The catalog of a new database: schema `public` and nothing in it.
    pub fn empty() -> Self {
        Catalog {
            version: 1,
            schemas: vec![SchemaDef {
                oid: PUBLIC_SCHEMA_OID,
                name: "public".into(),
            }],
            tables: Objects::new(),
            sequences: Objects::new(),
            views: Objects::new(),
            types: Objects::new(),
            functions: Objects::new(),
            tablespaces: Objects::new(),
            authority: Arc::default(),
            comments: Arc::default(),
            names: Names::new(),
            numbers_end: 0,
            deepest_view: 0,
        }
    }

    /// The catalog of an image. It shares with `known`, an earlier one, the tables that are
    /// as they were.
    pub(crate) fn from_image(image: &CatalogImage, partitions: u16, known: &Catalog) -> Self {
        let mut catalog = Catalog {
            version: image.version,
            schemas: image.schemas.clone(),
            authority: Arc::new(image.authority.clone()),
            comments: Arc::new(image.comments.iter().cloned().collect()),
            ..Catalog::empty()
        };
        for def in &image.tables {
            let known = known.table(def.oid).filter(|known| known.def == *def);
            let table = known.cloned();
            let table = table.unwrap_or_else(|| Arc::new(Table::new(def.clone(), partitions)));
            catalog.tables.insert(def.oid, table);
        }
        for def in &image.sequences {
            catalog.sequences.insert(def.oid, Arc::new(def.clone()));
        }
        for def in &image.views {
            catalog.views.insert(def.oid, Arc::new(def.clone()));
        }
        for def in &image.types {
            let known = known.types.get(&def.oid).filter(|known| ***known == *def);
            let known = known.cloned().unwrap_or_else(|| Arc::new(def.clone()));
            catalog.types.insert(def.oid, known);
        }
        for def in &image.tablespaces {
            catalog.tablespaces.insert(def.oid, Arc::new(def.clone()));
        }
        for def in &image.functions {
            catalog.functions.insert(def.oid, Arc::new(def.clone()));
        }
        catalog.index_names(&Catalog::empty());
        catalog
    }

    pub(crate) fn image(&self, next_oid: u32, next_storage: u32) -> CatalogImage {
        CatalogImage {
            version: self.version,
            schemas: self.schemas.clone(),
            tables: self.tables.values().map(|t| t.def.clone()).collect(),
            sequences: self.sequences.values().map(|s| (**s).clone()).collect(),
            views: self.views.values().map(|v| (**v).clone()).collect(),
            types: self.types.values().map(|t| (**t).clone()).collect(),
            functions: self.functions.values().map(|f| (**f).clone()).collect(),
            tablespaces: self.tablespaces.values().map(|t| (**t).clone()).collect(),
            authority: (*self.authority).clone(),
            comments: (*self.comments).clone().into_iter().collect(),
            next_oid,
            next_storage,
            restarted: Vec::new(),
        }
    }

    /// The table with this object id.
    pub fn table(&self, oid: u32) -> Option<&Arc<Table>> {
        self.tables.get(&oid)
    }

    /// Whether an object has this id.
    pub(crate) fn uses_oid(&self, oid: u32) -> bool {
        if u64::from(oid) >= self.numbers_end {
            return false;
        }
        let mut indexes = self.tables.values().flat_map(|table| &table.def.indexes);
        let mut triggers = self.tables.values().flat_map(|table| &table.def.triggers);
        self.tables.contains_key(&oid)
            || self.sequences.contains_key(&oid)
            || self.views.contains_key(&oid)
            || self.schemas.iter().any(|schema| schema.oid == oid)
            || self.tablespaces.contains_key(&oid)
            || self.authority.roles.contains_key(&oid)
            || indexes.any(|index| index.oid == oid)
            || triggers.any(|trigger| trigger.oid == oid)
    }

    /// How deep the tree of a view's query is at most, with all that it reads.
    pub fn deepest_view(&self) -> u32 {
        self.deepest_view
    }

    /// The tablespace of this name.
    pub fn tablespace_by_name(&self, name: &str) -> Option<&Arc<TablespaceDef>> {
        self.tablespaces.values().find(|def| def.name == name)
    }

    /// The schema of this name.
    pub fn schema(&self, name: &str) -> Option<&SchemaDef> {
        self.schemas.iter().find(|s| s.name == name)
    }
}
