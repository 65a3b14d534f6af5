//! The bytes of a tuple: the same in memory, in a block and in the log.
//!
//! ```text
//! u16   layout version (15 bits), wide offsets (top bit)
//! bits  one for each nullable column, set for NULL; none if no column is
//! ...   fixed-width columns at fixed offsets, wide ones first
//! u16   end of each variable-width column within the bytes below (u32 if wide)
//! ...   bytes of the variable-width columns
//! ```
//!
//! Numbers are little-endian and unaligned. A fixed-width column keeps its
//! place when it is NULL, so any value of it can be patched in place. A numeric
//! with a precision is a plain integer; one without is a byte of sign and scale
//! and the bytes of its magnitude. Checksums are the block's and the log's
//! business; [`Layouts::validate`] checks what a matching checksum does not:
//! that reading the bytes by the layout cannot fail. Reading bytes that were
//! neither encoded here nor validated may panic, but nothing worse.

mod layout;
#[cfg(test)]
mod tests;

pub use layout::Layout;
pub(crate) use layout::{Integer, Part, PartPlace};

use serde::{Deserialize, Serialize};

pub(crate) use layout::header;
use layout::{VERSION_LIMIT, malformed};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

/// What a layout has to know of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ColumnShape {
    /// The column's type
    pub data_type: DataType,
    /// Whether the column can be NULL
    pub nullable: bool,
}

/// All the layouts a table has had. Adding a column adds a version; tuples of
/// older versions stay as they are, and a column they lack reads as its default.
#[derive(Clone, Debug)]
pub struct Layouts {
    versions: Vec<Layout>,
    /// The version of tuples that are written now
    current: usize,
    /// What a column reads as in tuples older than it
    defaults: Vec<Value>,
}

/// How many layouts a table has at most.
pub const LAYOUTS_MAX: usize = VERSION_LIMIT as usize;

impl Layouts {
    /// The layouts of a new table.
    #[must_use]
    pub fn new(shapes: &[ColumnShape]) -> Self {
        Self {
            versions: vec![Layout::new(0, shapes, shapes.len())],
            current: 0,
            defaults: vec![Value::Null; shapes.len()],
        }
    }

    /// A version with these columns, of which the table has the first `own`.
    fn push_version(&mut self, shapes: &[ColumnShape], own: usize) {
        let version = self.versions.len() as u16;
        assert!(version < VERSION_LIMIT, "a table has at most 32768 layouts");
        self.versions.push(Layout::new(version, shapes, own));
    }

    fn push_current(&mut self, shapes: &[ColumnShape]) {
        self.current = self.versions.len();
        self.push_version(shapes, shapes.len());
    }

    /// Adds a column at the end; tuples that are there already read `default`.
    pub fn add_column(&mut self, shape: ColumnShape, default: Value) {
        assert!(
            shape.nullable || !default.is_null(),
            "a column that is not nullable needs a default"
        );
        let mut shapes = self.current().shapes().to_vec();
        shapes.push(shape);
        self.push_current(&shapes);
        self.defaults.push(default);
    }

    /// Adds a layout of which the table has the columns up to now only, and which is no
    /// longer written: its tuples have `others` after them.
    pub fn add_lost(&mut self, others: &[ColumnShape]) {
        let mut shapes = self.current().shapes().to_vec();
        let own = shapes.len();
        shapes.extend_from_slice(others);
        self.push_version(&shapes, own);
    }

    /// Lets a column be NULL, or forbids it from now on; the caller has seen to
    /// it that older tuples agree.
    pub fn set_nullable(&mut self, column: usize, nullable: bool) {
        let mut shapes = self.current().shapes().to_vec();
        shapes[column].nullable = nullable;
        self.push_current(&shapes);
    }

    /// The layout of tuples that are written now.
    #[must_use]
    #[inline]
    pub fn current(&self) -> &Layout {
        match self.versions.get(self.current) {
            Some(layout) => layout,
            None => malformed(),
        }
    }

    /// The layout of a version.
    pub(crate) fn version(&self, version: usize) -> Option<&Layout> {
        self.versions.get(version)
    }

    /// How many of the table's columns tuples of a version have. They may have others after them,
    /// which are nobody's any more.
    #[must_use]
    pub fn columns_of(&self, version: usize) -> Option<usize> {
        Some(self.versions.get(version)?.shapes().len())
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.defaults.len()
    }

    /// Appends a tuple of the current version; see [`Layout::encode`].
    pub fn encode(&self, values: &[ValueRef<'_>], out: &mut Vec<u8>) {
        self.current().encode(values, out);
    }

    /// The tuple that is in these bytes.
    #[must_use]
    #[inline]
    pub fn tuple<'a>(&'a self, bytes: &'a [u8]) -> TupleRef<'a> {
        let Some((layout, offset_width)) = self.layout_of(bytes) else {
            malformed()
        };
        TupleRef {
            layouts: self,
            layout,
            offset_width,
            bytes,
        }
    }

    #[inline]
    fn layout_of(&self, bytes: &[u8]) -> Option<(&Layout, usize)> {
        let (version, offset_width) = header(bytes)?;
        Some((self.versions.get(version)?, offset_width))
    }

    /// One column of a tuple; for several of them [`Layouts::tuple`] is better.
    #[must_use]
    #[inline]
    pub fn get<'a>(&'a self, bytes: &'a [u8], column: usize) -> ValueRef<'a> {
        self.tuple(bytes).get(column)
    }

    /// Overwrites a column in place, if the new value takes exactly the bytes
    /// of the old one: always so for a fixed-width column, NULL included, unless
    /// the tuple is older than the column. Returns whether it did; the tuple is
    /// unchanged if not.
    pub fn patch(&self, bytes: &mut [u8], column: usize, value: ValueRef<'_>) -> bool {
        let Some((layout, offset_width)) = self.layout_of(bytes) else {
            malformed()
        };
        layout.patch(bytes, column, value, offset_width)
    }

    /// Whether the bytes are a tuple of one of the layouts: to be asked of
    /// every tuple that comes from a device.
    #[must_use]
    pub fn validate(&self, bytes: &[u8]) -> bool {
        self.layout_of(bytes)
            .is_some_and(|(layout, offset_width)| layout.validate(bytes, offset_width))
    }
}

/// A tuple: bytes and what they mean.
#[derive(Clone, Copy, Debug)]
pub struct TupleRef<'a> {
    layouts: &'a Layouts,
    layout: &'a Layout,
    offset_width: usize,
    bytes: &'a [u8],
}

impl<'a> TupleRef<'a> {
    /// The value of a column, without allocation.
    #[must_use]
    #[inline]
    pub fn get(&self, column: usize) -> ValueRef<'a> {
        match self.layout.get(self.bytes, column, self.offset_width) {
            Some(value) => value,
            None => self.default_of(column),
        }
    }

    /// The value of an `int8` or `int4` column in fewer steps than [`TupleRef::get`];
    /// `None` where it is not there, NULL, or of another type.
    #[inline]
    pub(crate) fn integer(&self, column: usize) -> Option<Integer> {
        self.layout.integer(self.bytes, column)
    }

    /// The default of a column that is younger than the tuple.
    #[cold]
    fn default_of(&self, column: usize) -> ValueRef<'a> {
        let default = self.layouts.defaults.get(column);
        assert!(default.is_some(), "the table has no column {column}");
        default.map_or(ValueRef::Null, Value::as_ref)
    }

    /// The values of all columns.
    pub fn values(&self) -> impl Iterator<Item = ValueRef<'a>> {
        let tuple = *self;
        (0..self.layouts.columns()).map(move |column| tuple.get(column))
    }

    /// The tuple's bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}
