//! PostgreSQL's system catalogs.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use sqlparser::ast::Query;
use thermocline_engine::{Catalog, Database};
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use crate::analytics::{RowStream, SessionFacts, SettingChange};
use crate::error::{Result, SqlError};
use crate::output::{OutputColumn, RowWriter};

pub(crate) struct SystemCatalog;

impl SystemCatalog {
    pub(crate) fn new(_db: Arc<Database>) -> Self {
        Self
    }

    pub(crate) fn answers(&self, _: &Query, _: &Catalog, _: &SessionFacts) -> bool {
        false
    }

    pub(crate) fn describe(
        &self,
        _: &Query,
        _: &Arc<Catalog>,
        _: &[Option<DataType>],
        _: &SessionFacts,
    ) -> Result<(Vec<DataType>, Vec<OutputColumn>)> {
        Err(SqlError::unsupported("catalog queries"))
    }

    pub(crate) fn execute(
        &self,
        _: &Query,
        _: &Arc<Catalog>,
        _: &[Option<DataType>],
        _: &[Value],
        _: &SessionFacts,
    ) -> Result<RowStream> {
        Err(SqlError::unsupported("catalog queries"))
    }

    pub(crate) fn provider(
        &self,
        _: Option<&str>,
        _: &str,
        _: &Catalog,
        _: &SessionFacts,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(None)
    }
}

pub(crate) enum CatalogRows {}

impl CatalogRows {
    pub(crate) fn setting_changes(&self) -> &[SettingChange] {
        match *self {}
    }

    pub(crate) fn write(&mut self, _: &[OutputColumn], _: &mut RowWriter, _: usize) -> Result<usize> {
        match *self {}
    }
}
