//! UPDATE and DELETE whose rows only a query finds: with other tables, or subqueries. The query
//! gives the rows' primary keys and the values that the row itself does not give; each row is
//! then changed by its key.

use std::sync::Arc;

use sqlparser::ast::{self, TableFactor, TableWithJoins, UpdateTableFromKind};
use sqlparser::tokenizer::{Token, Tokenizer};
use thermocline_engine::authority::Privileges;
use thermocline_engine::{Table, TypeKind};
use thermocline_storage::types::DataType;

use super::data_type::written;
use super::insert::is_default;
use super::modify::{is_given, leaves_partition};
use super::typed::Binder;
use super::{Bindable, BoundPlan, Refusal};
use crate::error::SqlError;
use crate::expr::{Comparison, Expr};
use crate::plan::{
    ByQuery, DeletePlan, LockMode, LockedRows, ReadQuery, RowLock, SelectPlan, ShortPlan, Source,
    UpdatePlan, choose,
};

/// A row's table, as the query and the plan by key have it.
struct Target<'a> {
    table: Arc<Table>,
    factor: &'a TableFactor,
    alias: String,
    /// Parameters of the statement's own come before those of a found row.
    own_parameters: usize,
    key: Vec<usize>,
}

pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// How many parameters a statement has: the greatest number of one.
pub(super) fn parameters_of(text: &str) -> usize {
    mentioned_parameters(text).into_iter().max().unwrap_or(0)
}

/// The numbers of the parameters that a text mentions, counted from 1.
pub(crate) fn mentioned_parameters(text: &str) -> Vec<usize> {
    let dialect = sqlparser::dialect::PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize()
        .unwrap_or_default();
    let number = |token: &Token| match token {
        Token::Placeholder(name) => name.strip_prefix('$')?.parse().ok(),
        _ => None,
    };
    tokens.iter().filter_map(number).collect()
}

impl Binder<'_> {
    /// An UPDATE; `refusal` is why its rows are not found in place.
    pub(super) fn update_by_query(
        &mut self,
        update: &ast::Update,
        refusal: Refusal,
    ) -> Bindable<BoundPlan> {
        let reason = self.reason_of(refusal, update.from.is_none())?;
        let target = self.target_of(&update.table, &update.to_string(), Privileges::UPDATE)?;
        let others = match &update.from {
            Some(UpdateTableFromKind::AfterSet(others)) => others.as_slice(),
            Some(UpdateTableFromKind::BeforeSet(_)) => {
                return Err(Refusal::declined("this form of UPDATE"));
            }
            None => &[],
        };
        let mut selected = Vec::new();
        let first = target.own_parameters + target.key.len();
        let mut columns = Vec::new();
        let assignments = self.assignments_by(
            &target.table,
            &update.assignments,
            &mut |binder, value, column| {
                let def = &target.table.columns[column];
                if is_default(value) {
                    return binder.default_of(&target.table, column);
                }
                // A name may be one of another table's too: then only the query tells whose.
                if let Ok(own) = binder.value_for(value, &def.name, def.data_type)
                    && (others.is_empty() || is_given(&own))
                {
                    return Ok(own);
                }
                selected.push(binder.as_row_of(value, def.data_type));
                columns.push(column);
                Ok(Expr::Parameter(first + selected.len() - 1))
            },
        )?;
        let source = source_by_key(&target.table, &target.key, target.own_parameters);
        let (returning, shown) = self.returned(update.returning.as_deref(), others)?;
        let plan = UpdatePlan {
            overwrites: None,
            source: source.clone(),
            checks: self.checks_of(&target.table)?,
            leaves_partition: leaves_partition(&target.table, &assignments),
            assignments,
            returning,
        };
        let query = self.query_text(&target, &selected, others, update.selection.as_ref());
        let query = self.read_query(query, reason);
        let change = ShortPlan::Update(Arc::new(plan));
        Ok((by_query(&target, &columns, source, query, change), shown))
    }

    /// The text of a value for a column: a row becomes one of the column's own type there.
    fn as_row_of(&self, value: &ast::Expr, data_type: DataType) -> String {
        let catalog = self.context.catalog;
        let DataType::Other { oid, .. } = data_type else {
            return value.to_string();
        };
        match catalog.type_of(oid) {
            Some(def) if matches!(def.kind, TypeKind::Composite(_)) => {
                format!("CAST({value} AS {})", written(data_type, catalog))
            }
            _ => value.to_string(),
        }
    }

    /// A DELETE, likewise.
    pub(super) fn delete_by_query(
        &mut self,
        delete: &ast::Delete,
        from: &TableWithJoins,
        refusal: Refusal,
    ) -> Bindable<BoundPlan> {
        let reason = self.reason_of(refusal, delete.using.is_none())?;
        let target = self.target_of(from, &delete.to_string(), Privileges::DELETE)?;
        let others = delete.using.as_deref().unwrap_or_default();
        let source = source_by_key(&target.table, &target.key, target.own_parameters);
        let (returning, shown) = self.returned(delete.returning.as_deref(), others)?;
        let plan = DeletePlan {
            by_key: false,
            source: source.clone(),
            returning,
        };
        let query = self.query_text(&target, &[], others, delete.selection.as_ref());
        let query = self.read_query(query, reason);
        let change = ShortPlan::Delete(Arc::new(plan));
        Ok((by_query(&target, &[], source, query, change), shown))
    }

    /// Why a statement is not bound in place, if it may be bound by a query; `alone`: it names
    /// no other table.
    fn reason_of(&self, refusal: Refusal, alone: bool) -> Bindable<String> {
        match refusal {
            Refusal::Declined { reason, .. } => Ok(reason),
            // A name may be another table's.
            Refusal::Error(error)
                if error.sqlstate == "0A000"
                    || (matches!(error.sqlstate, "42703" | "42P01")
                        && !(alone && self.with.is_none())) =>
            {
                Ok("a query finds its rows".to_owned())
            }
            refusal @ Refusal::Error(_) => Err(refusal),
        }
    }

    fn target_of<'a>(
        &mut self,
        from: &'a TableWithJoins,
        statement: &str,
        needs: Privileges,
    ) -> Bindable<Target<'a>> {
        let table = self.modified(from, needs)?;
        let Some(primary) = table.indexes.iter().find(|index| index.primary) else {
            let message = format!(
                "a change of table \"{}\" by a query is not supported: it has no primary key",
                table.name
            );
            return Err(SqlError::unsupported(message).into());
        };
        let key = primary.columns.clone();
        let with = self.with.as_ref().map(ToString::to_string);
        let alias = self.relations[0].alias.clone();
        Ok(Target {
            table,
            factor: &from.relation,
            alias,
            own_parameters: [Some(statement), with.as_deref()]
                .into_iter()
                .flatten()
                .map(parameters_of)
                .max()
                .unwrap_or(0),
            key,
        })
    }

    fn returned(
        &mut self,
        items: Option<&[ast::SelectItem]>,
        others: &[TableWithJoins],
    ) -> Bindable<super::modify::Returning> {
        let whole = |item: &ast::SelectItem| matches!(item, ast::SelectItem::Wildcard(_));
        if !others.is_empty() && items.is_some_and(|items| items.iter().any(whole)) {
            return Err(Refusal::declined("RETURNING * of several tables"));
        }
        self.returning(items).map_err(|refusal| match others {
            [] => refusal,
            _ => Refusal::declined("RETURNING what the changed row does not have"),
        })
    }

    /// The keys of the rows, then what is wanted beside them.
    fn query_text(
        &self,
        target: &Target<'_>,
        selected: &[String],
        others: &[TableWithJoins],
        condition: Option<&ast::Expr>,
    ) -> String {
        let alias = quoted(&target.alias);
        let keys = target
            .key
            .iter()
            .map(|column| format!("{alias}.{}", quoted(&target.table.columns[*column].name)));
        let values = selected.iter().map(|value| format!("({value})"));
        let list: Vec<String> = keys.chain(values).collect();
        let mut text = self
            .with
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        text.push_str(&format!(
            " SELECT {} FROM {}",
            list.join(", "),
            target.factor
        ));
        for other in others {
            text.push_str(&format!(", {other}"));
        }
        if let Some(condition) = condition {
            text.push_str(&format!(" WHERE {condition}"));
        }
        text
    }

    fn read_query(&self, text: String, reason: String) -> ReadQuery {
        ReadQuery {
            text,
            declared: self.declared_oids(),
            typed: None,
            reason,
        }
    }
}

/// The row whose key is the parameters behind the statement's own.
pub(crate) fn source_by_key(table: &Arc<Table>, key: &[usize], own_parameters: usize) -> Source {
    let equal = |(number, column): (usize, &usize)| {
        Expr::Compare(
            Comparison::Equal,
            Box::new(Expr::Column(*column)),
            Box::new(Expr::Parameter(own_parameters + number)),
        )
    };
    let condition = Expr::And(key.iter().enumerate().map(equal).collect());
    choose(table, Some(condition), &[], || false).0
}

/// How the rows of a source are locked; it gives as many rows, without columns.
pub(crate) fn locking(source: Source, lock: RowLock) -> ShortPlan {
    ShortPlan::Select(Arc::new(SelectPlan {
        source: Some(source),
        condition: None,
        aggregate: None,
        output: Vec::new(),
        sort: Vec::new(),
        limit: None,
        offset: None,
        lock: Some(lock),
        numbered: false,
    }))
}

/// The plan: what the query finds, the key and then these columns, is locked by `source` and
/// changed.
fn by_query(
    target: &Target<'_>,
    columns: &[usize],
    source: Source,
    query: ReadQuery,
    change: ShortPlan,
) -> ShortPlan {
    let lock = RowLock {
        mode: LockMode::Update,
        locked: LockedRows::Wait,
    };
    let stored = |column: &usize| {
        let def = &target.table.columns[*column];
        (def.data_type, def.name.clone())
    };
    ShortPlan::ByQuery(Arc::new(ByQuery {
        query,
        own_parameters: target.own_parameters,
        targets: target.key.iter().chain(columns).map(stored).collect(),
        key_columns: target.key.len(),
        change,
        lock: locking(source, lock),
    }))
}
