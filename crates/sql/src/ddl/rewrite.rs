//! Rows written anew because their columns change: ALTER COLUMN TYPE, and ADD COLUMN and CREATE
//! INDEX with values that differ from row to row. Old rows and new are there until the transaction
//! ends.

use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_engine::ddl::Change;
use thermocline_engine::{Error, Table, TableDef};
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use super::column_type::column_type;
use super::create_table::with_key;
use super::dependents::quote_ident;
use super::index::computed_by;
use super::verify::{Stored, contains_null};
use super::{Definition, mentioned, rights};
use crate::bind;
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, Expr};
use crate::parse::index::CreateIndex;

/// `ALTER COLUMN name [SET DATA] TYPE data_type [USING using]`.
pub(super) struct NewType<'a> {
    pub(super) column: &'a str,
    /// The texts of its type
    pub(super) data_type: &'a str,
    /// and of USING.
    pub(super) using: Option<&'a str>,
}

impl Definition<'_> {
    /// Gives columns other types. All values are made of the rows as they are, as if it was done
    /// at once.
    ///
    /// # Errors
    /// As PostgreSQL: 42804 where a value or a default has no cast that may be left out, 0A000
    /// where a view reads the column, and what the casts say of values.
    pub(super) async fn alter_types(
        &mut self,
        table: &Arc<Table>,
        types: &[NewType<'_>],
    ) -> Result<()> {
        let (table, made_again) = &self.without_computed(table, types).await?;
        let mut def = table.def.clone();
        let mut values = Vec::new();
        let mut rewrites = false;
        let mut altered = Vec::new();
        for new in types {
            let column = table
                .column_named(new.column)
                .ok_or_else(|| super::alter_table::no_column(new.column, &table.def))?;
            if altered.contains(&column) {
                let message = format!("cannot alter type of column \"{}\" twice", new.column);
                return Err(SqlError::unsupported(message, "Name each column once."));
            }
            altered.push(column);
            let catalog = self.catalog();
            let declared = column_type(new.data_type, self.type_names(&catalog))?;
            let to = declared.data_type;
            if declared.serial {
                let message = format!("type \"{}\" does not exist", new.data_type);
                return Err(SqlError::new("42704", message));
            }
            self.is_read_by_no_view(table, column)?;
            self.suits_foreign_keys(table, column, to)?;
            let from = def.columns[column].data_type;
            def.columns[column].data_type = to;
            def.columns[column].domain = declared.domain;
            self.alter_generated(table, &mut def, column, new.using.is_some())?;
            values.push((column, self.conversion(table, new, to)?));
            self.check_altered(&def, column)?;
            rewrites |= new.using.is_some() || !is_same_in_tuples(from, to);
        }
        if rewrites {
            self.rewrite(table, def, &values, "ALTER TABLE").await?;
        } else {
            self.apply(Change::AlterTable(def)).await?;
        }
        for column in &altered {
            self.verify_new_domain(table.oid, *column).await?;
        }
        self.check_again(table.oid, &altered).await?;
        for index in made_again {
            self.create_index(index).await?;
        }
        Ok(())
    }

    /// A table without the indexes that compute something of the columns that get new types, and
    /// what makes these again.
    async fn without_computed(
        &mut self,
        table: &Arc<Table>,
        types: &[NewType<'_>],
    ) -> Result<(Arc<Table>, Vec<CreateIndex>)> {
        let altered = types
            .iter()
            .filter_map(|new| table.column_named(new.column));
        let altered: Vec<usize> = altered.collect();
        let mut again = Vec::new();
        for index in &table.indexes {
            let mut computed = false;
            for place in &index.columns {
                for column in &altered {
                    computed = computed || computed_by(&table.def, *place, *column)?;
                }
            }
            if computed {
                let of = vec![table.schema.clone(), table.name.clone()];
                again.push(CreateIndex {
                    name: Some(index.name.clone()),
                    ..CreateIndex::like(&table.def, index, of)
                });
                self.drop_index(table.oid, index.oid).await?;
            }
        }
        Ok((self.current(table.oid)?, again))
    }

    /// 0A000 as PostgreSQL, if a view reads the column.
    fn is_read_by_no_view(&self, table: &Table, column: usize) -> Result<()> {
        let readers = self.readers(table, column)?;
        let Some(view) = readers.first() else {
            return Ok(());
        };
        let message = "cannot alter type of a column used by a view or rule";
        Err(SqlError::unsupported(
            message,
            "Drop the view, change the column, and create the view again.",
        )
        .with_detail(format!(
            "rule _RETURN on {} depends on column \"{}\"",
            self.described(&self.catalog(), view.oid),
            table.columns[column].name
        )))
    }

    /// Whether the column's default, identity and indexes suit its new type.
    fn check_altered(&self, def: &TableDef, column: usize) -> Result<()> {
        let altered = &def.columns[column];
        if altered.identity.is_some() && !altered.data_type.is_integer() {
            return Err(SqlError::new(
                "22023",
                "identity column type must be smallint, integer, or bigint",
            ));
        }
        let (name, to) = (&altered.name, altered.data_type);
        let bound = match (bind::takes_next_of(altered), &altered.default) {
            (Some(sequence), _) => Some(bind::bind_next_value(sequence, name, to)),
            (None, Some(default)) if !altered.generated => {
                Some(self.kept(&def.schema, |context| {
                    bind::bind_default(default, name, to, context)
                }))
            }
            (None, _) => None,
        };
        if let Some(bound) = bound {
            bound.map_err(|error| match error.sqlstate.get(..2) {
                Some("22" | "42") => SqlError::new(
                    "42804",
                    format!(
                        "default for column \"{name}\" cannot be cast automatically to type {to}"
                    ),
                ),
                _ => error,
            })?;
        }
        let mut indexes = def.indexes.iter();
        match indexes.any(|index| index.columns.contains(&column)) {
            true => with_key(altered),
            false => Ok(()),
        }
    }

    /// The new value of a column, over the old row.
    fn conversion(&self, table: &Arc<Table>, new: &NewType<'_>, to: DataType) -> Result<Expr> {
        let text = match new.using {
            Some(using) => using.to_string(),
            None => quote_ident(new.column),
        };
        let catalog = self.catalog();
        let context = bind::BindContext {
            styles: self.styles,
            ..self.bind_context(&catalog, self.search_path)
        };
        let bound = bind::bind_value_over(&text, table, new.column, to, &context);
        bound.map_err(|error| match (error.sqlstate, new.using) {
            ("42804", None) => {
                let (name, typed) = (new.column, to.to_string());
                let message = format!("column \"{name}\" cannot be cast automatically to type {typed}");
                let hint = format!(
                    "You might need to specify \"USING {}::{typed}\".",
                    quote_ident(name)
                );
                SqlError::new("42804", message).with_hint(hint)
            }
            ("42804", Some(_)) => {
                let message = format!(
                    "result of USING clause for column \"{}\" cannot be cast automatically to type {to}",
                    new.column
                );
                SqlError::new("42804", message).with_hint("You might need to add an explicit cast.")
            }
            _ => error,
        })
    }

    /// Checks that read one of these columns mean something, and are true, for the new types.
    async fn check_again(&mut self, oid: u32, altered: &[usize]) -> Result<()> {
        let table = self.current(oid)?;
        for check in &table.checks {
            let columns = mentioned::columns(&check.expression, &table.def)?;
            if columns.iter().any(|column| altered.contains(column)) {
                let condition = self.kept(&table.schema, |context| {
                    bind::bind_check(&check.expression, &table, context)
                })?;
                if check.validated {
                    self.verify_check(&table, &check.name, &condition).await?;
                }
            }
        }
        Ok(())
    }

    /// Writes the rows of a table anew, by another definition: with these values, over the old
    /// row, in these columns, and with what they have in all others.
    pub(super) async fn rewrite(
        &mut self,
        table: &Arc<Table>,
        def: TableDef,
        values: &[(usize, Expr)],
        command: &str,
    ) -> Result<()> {
        self.nothing_is_pending(table, command)?;
        let change = Change::AlterTable(def);
        rights::check(&change, &self.actor()?, &self.catalog())?;
        let Change::AlterTable(def) = change else {
            return Err(SqlError::internal("a change became another"));
        };
        // The sequence of a column that is added is of this statement.
        self.session.see(&self.catalog());
        let context = EvalContext::without_parameters(self.now_us, self.session, self.styles);
        let failed = Mutex::new(None);
        let tuple = |_: &Table, bytes: &[u8], new: &Table, out: &mut Vec<u8>| {
            new_tuple(table, bytes, new, values, &context, out).map_err(|error| {
                let told = Error::raised(error.sqlstate, error.message.as_str());
                *failed.lock() = Some(error);
                told
            })
        };
        let (db, options) = (self.db, self.options);
        let rewritten = db.rewrite_table(self.txn, options, def, &tuple).await;
        match failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(rewritten?),
        }
    }
}

fn new_tuple(
    old: &Table,
    bytes: &[u8],
    new: &Table,
    values: &[(usize, Expr)],
    context: &EvalContext<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let row = Stored {
        table: old,
        tuple: bytes,
    };
    let mut given = Vec::with_capacity(values.len());
    for (column, expr) in values {
        let value = expr.evaluate(&row, context)?;
        if value.is_null() && new.columns[*column].not_null {
            return Err(contains_null(new, *column));
        }
        given.push((*column, value));
    }
    let tuple = old.layouts.tuple(bytes);
    let kept = new.columns.iter().enumerate().map(|(place, column)| {
        match column.dropped || place >= old.columns.len() {
            true => ValueRef::Null,
            false => tuple.get(place),
        }
    });
    let mut all: Vec<ValueRef<'_>> = kept.collect();
    for (column, value) in &given {
        all[*column] = value.as_ref();
    }
    new.encode_tuple(&all, out);
    Ok(())
}

/// Whether all values of one type are values of another, with the same bytes in tuples and keys.
fn is_same_in_tuples(from: DataType, to: DataType) -> bool {
    use DataType::{Text, Timestamp, TimestampTo, TimestampTz, TimestampTzTo, Varchar};
    match (from, to) {
        _ if from == to => true,
        (Text | Varchar(_), Text | Varchar(0))
        | (TimestampTo(_), Timestamp)
        | (TimestampTzTo(_), TimestampTz) => true,
        (Varchar(from), Varchar(to)) => from > 0 && from <= to,
        _ => false,
    }
}
