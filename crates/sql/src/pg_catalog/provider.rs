//! Catalog relations for DataFusion, when a query reads them together with
//! users' tables. Object ids are bigint there, names and arrays text.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::{MemTable, TableProvider};
use thermocline_query::call::Call;
use thermocline_query::datum::Datum;
use thermocline_query::types;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::environment::SystemEnvironment;
use super::pg_type::PgType;
use super::relations::Relation;
use crate::analytics::{catalog_batch, catalog_field, sql_error};
use crate::error::Result;
use crate::typed::value;

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
    environment: &SystemEnvironment,
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
    let plain = |datum: &Datum, oid: u32, data_type: &DataType| -> Result<Value> {
        Ok(match (datum, data_type) {
            (Datum::Null, _) => Value::Null,
            (Datum::Oid(oid), DataType::BigInt) => Value::BigInt(i64::from(*oid)),
            (_, DataType::Text) => {
                let call = Call::new(environment, &[], oid);
                Value::Text(types::to_text(&call, oid, datum)?)
            }
            _ => value::of_datum(datum),
        })
    };
    let rows = super::content(relation, environment)?;
    let rows = rows.iter().map(|row| {
        let columns = relation.columns.iter().zip(&types);
        let cells = row.iter().zip(columns);
        cells
            .map(|(datum, (column, data_type))| plain(datum, column.data_type.oid, data_type))
            .collect::<Result<Vec<Value>>>()
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    let batch = catalog_batch(&types, Arc::clone(&schema), &rows).map_err(sql_error)?;
    let table = MemTable::try_new(schema, vec![vec![batch]]).map_err(sql_error)?;
    Ok(Arc::new(table))
}
