//! Catalog relations for DataFusion, when a query reads them together with
//! users' tables. Object ids are bigint there, names and arrays text.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{MemTable, TableProvider};
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::pg_type::PgType;
use super::query::{Names, datum_text, scalar_value};
use super::relations::Relation;
use super::session::SystemSession;
use crate::analytics::{catalog_batch, catalog_field, sql_error};
use crate::error::Result;

fn plain_type(data_type: PgType) -> DataType {
    match DataType::from_oid(data_type.oid, data_type.typmod) {
        Some(data_type) => data_type,
        None if data_type.is_oid() && !data_type.is_reg() => DataType::BigInt,
        None => DataType::Text,
    }
}

/// `relation` with its content.
pub(super) fn provider(
    relation: &Relation,
    session: &SystemSession<'_>,
) -> Result<Arc<dyn TableProvider>> {
    let types: Vec<DataType> = relation
        .columns
        .iter()
        .map(|column| plain_type(column.data_type))
        .collect();
    let fields: Vec<Field> = relation
        .columns
        .iter()
        .zip(&types)
        .map(|(column, data_type)| catalog_field(column.name, data_type))
        .collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let names: &dyn Names = session;
    let rows: Vec<Vec<Value>> = session
        .content(relation)?
        .iter()
        .map(|row| {
            row.iter()
                .zip(&relation.columns)
                .zip(&types)
                .map(|((datum, column), data_type)| {
                    if datum.is_null() {
                        return Value::Null;
                    }
                    scalar_value(datum, data_type)
                        .unwrap_or_else(|| Value::Text(datum_text(datum, column.data_type, names)))
                })
                .collect()
        })
        .collect();
    let batch = catalog_batch(&types, Arc::clone(&schema), &rows).map_err(sql_error)?;
    let table = MemTable::try_new(schema, vec![vec![batch]]).map_err(sql_error)?;
    Ok(Arc::new(table))
}
