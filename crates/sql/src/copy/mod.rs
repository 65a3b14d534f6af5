//! COPY in both directions and its three formats: text, csv and binary. Input
//! is cut into records as it arrives, whatever its pieces; output is written
//! row by row. Neither holds more than a record.

mod csv;
mod decode;
mod encode;
mod file;
mod options;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use decode::{CopyDecoder, Record};
pub(crate) use encode::CopyEncoder;
pub(crate) use file::CopyFile;
pub use options::{ColumnChoice, CopyFormat, CopyOptions};
