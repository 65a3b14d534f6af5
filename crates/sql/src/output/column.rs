//! What a client is told of a result's columns.

use thermocline_values::types::DataType;

use super::OtherType;

/// The type of a result column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// A type that tables hold.
    Scalar(DataType),
    /// A type of catalog queries; values come as text.
    Other(OtherType),
}

impl ColumnType {
    /// The type's number in `pg_type`.
    #[must_use]
    pub const fn oid(&self) -> u32 {
        match self {
            Self::Scalar(data_type) => data_type.oid(),
            Self::Other(other) => other.oid(),
        }
    }

    /// PostgreSQL's length of the type in bytes; -1 when it varies.
    #[must_use]
    pub fn typlen(&self) -> i16 {
        match self {
            Self::Scalar(data_type) => data_type.typlen(),
            Self::Other(other) => other.typlen(),
        }
    }

    /// PostgreSQL's modifier of the type; -1 when there is none.
    #[must_use]
    pub const fn typmod(&self) -> i32 {
        match self {
            Self::Scalar(data_type) => data_type.typmod(),
            Self::Other(_) => -1,
        }
    }
}

/// A column of a result, as RowDescription tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputColumn {
    /// The column's name.
    pub name: String,
    /// The type's number in `pg_type`.
    pub type_oid: u32,
    /// The type's length in bytes; -1 when it varies.
    pub type_size: i16,
    /// The type's modifier; -1 when there is none.
    pub type_modifier: i32,
    /// The table the column is taken from; 0 for a computed one.
    pub table_oid: u32,
    /// The column's number in that table, from 1; 0 for a computed one.
    pub column_number: i16,
    /// The type.
    pub data_type: ColumnType,
}

impl OutputColumn {
    /// A computed column.
    #[must_use]
    pub fn new(name: impl Into<String>, data_type: ColumnType) -> Self {
        Self {
            name: name.into(),
            type_oid: data_type.oid(),
            type_size: data_type.typlen(),
            type_modifier: data_type.typmod(),
            table_oid: 0,
            column_number: 0,
            data_type,
        }
    }

    /// A computed column of a type that tables hold.
    #[must_use]
    pub fn scalar(name: impl Into<String>, data_type: DataType) -> Self {
        Self::new(name, ColumnType::Scalar(data_type))
    }

    /// Taken from column `number` (from 1) of table `oid`.
    #[must_use]
    pub fn from_table(mut self, oid: u32, number: usize) -> Self {
        self.table_oid = oid;
        self.column_number = number as i16;
        self
    }
}
