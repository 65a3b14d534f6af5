//! Definitions as log records have them: JSON, checked before anything is derived from it.

use crate::catalog::logged_change::{CHANGE_BEGINS, CatalogChange};
use crate::catalog::{CatalogImage, TableDef};
use crate::ground::error::{Error, Result};

const IN_THE_LOG: &str = "catalog in the log";

/// What a commit's record says of the catalog.
pub(crate) enum LoggedCatalog {
    /// What it has changed.
    Change(CatalogChange),
    /// All of it, as it is afterwards: before format 19.
    Whole(CatalogImage),
}

/// The catalog of a commit's record.
pub(crate) fn decode_catalog(bytes: &[u8]) -> Result<LoggedCatalog> {
    let wrong = |error| Error::Corrupt(format!("{IN_THE_LOG}: {error}"));
    if bytes.starts_with(CHANGE_BEGINS) {
        let change: CatalogChange = serde_json::from_slice(bytes).map_err(wrong)?;
        change.check(IN_THE_LOG)?;
        return Ok(LoggedCatalog::Change(change));
    }
    let image: CatalogImage = serde_json::from_slice(bytes).map_err(wrong)?;
    image.check(IN_THE_LOG)?;
    Ok(LoggedCatalog::Whole(image))
}

/// The table of a draft's record.
pub(crate) fn decode_table(bytes: &[u8]) -> Result<TableDef> {
    let def: TableDef = serde_json::from_slice(bytes)
        .map_err(|error| Error::Corrupt(format!("table in the log: {error}")))?;
    def.check("table in the log")?;
    Ok(def)
}
