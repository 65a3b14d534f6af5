//! Definitions as log records have them: JSON, checked before anything is derived from it.

use crate::catalog::{CatalogImage, TableDef};
use crate::ground::error::{Error, Result};

/// The catalog of a commit's record.
pub(crate) fn decode_catalog(bytes: &[u8]) -> Result<CatalogImage> {
    let image: CatalogImage = serde_json::from_slice(bytes)
        .map_err(|error| Error::Corrupt(format!("catalog in the log: {error}")))?;
    image.check("catalog in the log")?;
    Ok(image)
}

/// The table of a draft's record.
pub(crate) fn decode_table(bytes: &[u8]) -> Result<TableDef> {
    let def: TableDef = serde_json::from_slice(bytes)
        .map_err(|error| Error::Corrupt(format!("table in the log: {error}")))?;
    def.check("table in the log")?;
    Ok(def)
}
