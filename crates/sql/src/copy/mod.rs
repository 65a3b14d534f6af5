//! COPY in both directions and its three formats: text, csv and binary.

mod encode;
mod options;

pub(crate) use encode::CopyEncoder;
pub use options::{ColumnChoice, CopyFormat, CopyOptions};
