//! `CALL thermocline.evict(table, bytes)`: rows of a table leave memory now (000 §3.3).
//!
//! Not in a transaction block: what has left is not taken back with it. It returns a row that
//! says how many rows and bytes have left.

use thermocline_engine::authority::Object;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::run::Run;
use super::transaction::Block;
use super::{Client, Session, qualified};
use crate::ddl::find_relation;
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::{OutputColumn, RowWriter};
use crate::parse::statement::Call;

/// The table's name, and about how many bytes.
pub(super) const EVICT_PARAMETERS: [DataType; 2] = [DataType::Text, DataType::BigInt];

/// Whether a CALL is this one.
pub(super) fn is_eviction(call: &Call) -> bool {
    matches!(call.name.as_slice(), [schema, name] if schema == "thermocline" && name == "evict")
}

/// The columns of its row.
pub(super) fn evicted_columns() -> Vec<OutputColumn> {
    ["rows", "bytes"]
        .map(|name| OutputColumn::scalar(name, DataType::BigInt))
        .to_vec()
}

impl Session {
    pub(super) async fn evict(
        &mut self,
        call: &Call,
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        if self.transaction.block() != Block::None {
            return Err(SqlError::unsupported(
                "CALL thermocline.evict cannot run inside a transaction block",
                "Call it outside: what has left memory is not taken back.",
            ));
        }
        if call.arguments.len() != EVICT_PARAMETERS.len() {
            return Err(SqlError::new(
                "42883",
                format!(
                    "procedure thermocline.evict with {} arguments does not exist",
                    call.arguments.len()
                ),
            )
            .with_hint(
                "Give a table and a number of bytes: CALL thermocline.evict('t', 1000000).",
            ));
        }
        let arguments = self.call_arguments(&EVICT_PARAMETERS, call, run.parameters)?;
        let [Value::Text(name), Value::BigInt(bytes @ 1..)] = arguments.as_slice() else {
            return Err(SqlError::new(
                "22023",
                "thermocline.evict takes a table's name and a number of bytes above 0",
            ));
        };
        let parts = qualified(name);
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let found = find_relation(&catalog, &search_path, &parts);
        let table = found.and_then(|(schema, name)| catalog.table_by_name(&schema, &name));
        let table = table.ok_or_else(|| SqlError::undefined_table(&parts.join(".")))?;
        let actor = self.context.actor()?;
        if !actor.owns(&Object::Table(table.oid)) {
            return Err(SqlError::new(
                "42501",
                format!("must be owner of table {}", table.name),
            ));
        }
        let options = self.options();
        let (mut rows, mut left) = (0, 0);
        let bytes = bytes.unsigned_abs();
        for leaf in catalog.leaves_of(table) {
            if left < bytes {
                let of_leaf = self.engine.db.evict(&options, &leaf, bytes - left).await?;
                rows += of_leaf.0;
                left += of_leaf.1;
            }
        }
        if run.describe {
            messages::row_description(&mut client.out, &evicted_columns(), run.formats);
        }
        let row = RowWriter::wire(Vec::new(), run.formats.clone());
        let mut row = row.styled(self.context.styles());
        row.begin_row(2);
        for number in [rows, left] {
            let number = Value::BigInt(i64::try_from(number).unwrap_or(i64::MAX));
            row.value(number.as_ref(), &DataType::BigInt);
        }
        row.end_row();
        client.out.extend_from_slice(row.bytes());
        messages::command_complete(&mut client.out, "CALL");
        Ok(())
    }
}
