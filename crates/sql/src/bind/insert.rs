//! INSERT: the target columns, defaults, ON CONFLICT, RETURNING.

use crate::bind::default_text;
use std::sync::Arc;

use sqlparser::ast::{
    self, AssignmentTarget, ConflictTarget, OnConflictAction, OnInsert, SetExpr, Statement,
    TableObject,
};
use thermocline_engine::authority::Privileges;
use thermocline_engine::{Identity, Table};
use thermocline_storage::types::DataType;

use super::scope::{Relation, find_table, folded, name_parts};
use super::source;
use super::typed::Binder;
use super::{BindContext, Bindable, BoundPlan, Refusal, has_one_form};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::output::ColumnType;
use crate::plan::{
    ConflictPlan, ConflictUpdate, InsertPlan, InsertSource, InsertTarget, ReadQuery, ShortPlan,
};

/// The target of rows that do not come from an INSERT statement (COPY FROM):
/// the given columns in their order, defaults for the others.
///
/// # Errors
/// When a default or a check cannot be bound.
pub fn insert_target(
    table: &Arc<Table>,
    columns: &[usize],
    context: &BindContext<'_>,
) -> Result<InsertTarget> {
    let mut binder = Binder::new(context);
    Ok(binder.target(table, columns.to_vec())?)
}

impl Binder<'_> {
    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Bindable<BoundPlan> {
        if insert.or.is_some()
            || insert.ignore
            || insert.replace_into
            || insert.partitioned.is_some()
            || !insert.assignments.is_empty()
            || insert.output.is_some()
        {
            return Err(Refusal::declined("this form of INSERT"));
        }
        let TableObject::TableName(name) = &insert.table else {
            return Err(Refusal::declined("this target of INSERT"));
        };
        let table = Arc::clone(find_table(self.context, name, Privileges::INSERT)?);
        let alias = insert
            .table_alias
            .as_ref()
            .map(|alias| folded(&alias.alias));
        let mut columns = Vec::with_capacity(insert.columns.len());
        for column in &insert.columns {
            let position = self.target_column(&table, column)?;
            if columns.contains(&position) {
                let name = &table.columns[position].name;
                let message = format!("column \"{name}\" specified more than once");
                return Err(SqlError::new("42701", message).into());
            }
            columns.push(position);
        }
        let explicit = !columns.is_empty();
        // `OVERRIDING SYSTEM VALUE` reaches us as OVERWRITE.
        let overriding = insert.overwrite;

        let catalog = self.context.catalog;
        let mut source = match &insert.source {
            None => InsertSource::Values(vec![Vec::new()]),
            Some(query) => match (&*query.body, bare(query)) {
                (SetExpr::Values(values), true) => {
                    let width = values.rows.first().map_or(0, |row| row.content.len());
                    if !explicit {
                        columns = first_columns(&table, width)?;
                    }
                    match self.insert_values(&table, &columns, values, overriding) {
                        Ok(values) => InsertSource::Values(values),
                        Err(Refusal::Declined { .. }) => {
                            for column in &columns {
                                refuse_generated(&table, *column, overriding)?;
                            }
                            let query = source::of_values(&table, catalog, &columns, values)?;
                            self.insert_query(&query)?.0
                        }
                        Err(refusal) => return Err(refusal),
                    }
                }
                _ => {
                    let targets: Vec<usize> = match explicit {
                        true => columns.clone(),
                        false => table.live(),
                    };
                    let typed = source::of_select(&table, catalog, &targets, query)?;
                    let (source, width) = self.insert_query(typed.as_ref().unwrap_or(query))?;
                    if let Some(width) = width {
                        if !explicit {
                            columns = first_columns(&table, width)?;
                        }
                        same_width(width, columns.len())?;
                    } else if !explicit {
                        columns = table.live();
                    }
                    for column in &columns {
                        refuse_generated(&table, *column, overriding)?;
                    }
                    source
                }
            },
        };

        for column in &columns {
            self.need_column(&table, *column, Privileges::INSERT)?;
        }
        let mut target = self.target(&table, columns)?;
        self.relations = vec![Relation::new(&table, alias.clone(), 0)];
        target.conflict = match &insert.on {
            None => None,
            Some(OnInsert::OnConflict(conflict)) => Some(self.conflict(&table, alias, conflict)?),
            Some(_) => return Err(Refusal::declined("ON DUPLICATE KEY")),
        };
        let columns = match &insert.returning {
            None => None,
            Some(items) => {
                self.relations.truncate(1);
                let (output, columns) = self.select_list(items)?;
                target.returning = Some(output);
                Some(columns)
            }
        };
        if let InsertSource::Analytical(query) = &mut source {
            // All that the statement settles is known now.
            query.declared = self.declared_oids();
        }
        let plan = InsertPlan {
            target: Arc::new(target),
            source,
        };
        Ok((ShortPlan::Insert(Arc::new(plan)), columns))
    }

    /// Everything about a target but ON CONFLICT and RETURNING.
    fn target(&mut self, table: &Arc<Table>, columns: Vec<usize>) -> Bindable<InsertTarget> {
        let mut defaults = Vec::new();
        for (column, def) in table.live_columns() {
            let catalog = self.context.catalog;
            let has_default = def.identity.is_some() || default_text(catalog, table, def).is_some();
            if !columns.contains(&column) && has_default {
                defaults.push((column, self.default_of(table, column)?));
            }
        }
        Ok(InsertTarget {
            checks: self.checks_of(table)?,
            unique_within_partition: unique_within_partition(table),
            table: Arc::clone(table),
            columns,
            defaults,
            conflict: None,
            returning: None,
        })
    }

    /// 42501 unless the statement's role has `needs` on this column or its table.
    pub(super) fn need_column(
        &self,
        table: &Table,
        column: usize,
        needs: Privileges,
    ) -> Bindable<()> {
        match self.context.actor {
            Some(actor) => Ok(actor.need_column(table, column, needs)?),
            None => Ok(()),
        }
    }

    pub(super) fn target_column(&self, table: &Table, name: &ast::ObjectName) -> Bindable<usize> {
        let parts = name_parts(name)?;
        if parts.len() > 1 {
            return Err(Refusal::declined("an assignment to a part of a column"));
        }
        let span = match name.0.first() {
            Some(ast::ObjectNamePart::Identifier(ident)) => ident.span,
            _ => sqlparser::tokenizer::Span::empty(),
        };
        let column = parts.last().map(String::as_str).unwrap_or_default();
        table.column_named(column).ok_or_else(|| {
            let message = format!(
                "column \"{column}\" of relation \"{}\" does not exist",
                table.name
            );
            Refusal::from(SqlError::new("42703", message)).at(self.context.sql, span)
        })
    }

    fn insert_values(
        &mut self,
        table: &Table,
        columns: &[usize],
        values: &ast::Values,
        overriding: bool,
    ) -> Bindable<Vec<Vec<Expr>>> {
        let width = values.rows.first().map_or(0, |row| row.content.len());
        let mut rows = Vec::with_capacity(values.rows.len());
        for row in &values.rows {
            if row.content.len() != width {
                let message = "VALUES lists must all be the same length";
                return Err(SqlError::syntax(message).into());
            }
            same_width(width, columns.len())?;
            let mut bound = Vec::with_capacity(width);
            for (expr, column) in row.content.iter().zip(columns) {
                if is_default(expr) {
                    bound.push(self.default_of(table, *column)?);
                    continue;
                }
                refuse_generated(table, *column, overriding)?;
                let def = &table.columns[*column];
                bound.push(self.value_for(expr, &def.name, def.data_type)?);
            }
            rows.push(bound);
        }
        Ok(rows)
    }

    /// A query as the source, and how many columns it has if that is known.
    fn insert_query(&mut self, query: &ast::Query) -> Bindable<(InsertSource, Option<usize>)> {
        let analytical = |reason: String| {
            let statement = Statement::Query(Box::new(query.clone()));
            if !super::is_pure(&statement) {
                return Err(Refusal::declined(
                    "a query that writes as the source of an INSERT",
                ));
            }
            let query = ReadQuery {
                text: statement.to_string(),
                declared: Vec::new(),
                typed: None,
                reason,
            };
            Ok((InsertSource::Analytical(query), None))
        };
        match self.query(query) {
            Ok((plan, Some(columns))) => {
                let types: Option<Vec<DataType>> = columns
                    .iter()
                    .map(|column| match column.data_type {
                        ColumnType::Scalar(data_type) => Some(data_type),
                        ColumnType::Other(_) => Some(DataType::Text),
                    })
                    .collect();
                self.relations.clear();
                let width = columns.len();
                let types = types.unwrap_or_default();
                Ok((InsertSource::Query(Arc::new(plan), types), Some(width)))
            }
            Ok((_, None)) => Err(Refusal::declined("a source without columns")),
            Err(Refusal::Declined { reason, .. }) => {
                self.relations.clear();
                self.aggregation = None;
                analytical(reason)
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn conflict(
        &mut self,
        table: &Arc<Table>,
        alias: Option<String>,
        conflict: &ast::OnConflict,
    ) -> Bindable<ConflictPlan> {
        let arbiters = match &conflict.conflict_target {
            None => (0..table.indexes.len())
                .filter(|index| table.indexes[*index].unique)
                .collect(),
            Some(ConflictTarget::Columns(idents)) => {
                let mut wanted = Vec::with_capacity(idents.len());
                for ident in idents {
                    let name = ast::ObjectName::from(vec![ident.clone()]);
                    wanted.push(self.target_column(table, &name)?);
                }
                wanted.sort_unstable();
                wanted.dedup();
                let arbiters: Vec<usize> = (0..table.indexes.len())
                    .filter(|index| {
                        let mut columns = table.indexes[*index].columns.clone();
                        columns.sort_unstable();
                        table.indexes[*index].unique && columns == wanted
                    })
                    .collect();
                if arbiters.is_empty() {
                    let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
                    return Err(SqlError::new("42P10", message).into());
                }
                arbiters
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                let name = name_parts(name)?.pop().unwrap_or_default();
                let found = table
                    .indexes
                    .iter()
                    .position(|index| index.name == name && index.unique);
                match found {
                    Some(index) => vec![index],
                    None => {
                        let message = format!(
                            "constraint \"{name}\" for table \"{}\" does not exist",
                            table.name
                        );
                        return Err(SqlError::new("42704", message).into());
                    }
                }
            }
        };
        let update = match &conflict.action {
            OnConflictAction::DoNothing => None,
            OnConflictAction::DoUpdate(update) => {
                if conflict.conflict_target.is_none() {
                    let message =
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    return Err(SqlError::syntax(message)
                        .with_hint("For example, ON CONFLICT (column_name).")
                        .into());
                }
                self.relations = vec![
                    Relation::new(table, alias, 0),
                    Relation::new(table, Some("excluded".to_owned()), table.columns.len()),
                ];
                let assignments = self.assignments(table, &update.assignments)?;
                let filter = update
                    .selection
                    .as_ref()
                    .map(|selection| self.condition_of(selection, "WHERE"))
                    .transpose()?;
                Some(ConflictUpdate {
                    replaces: filter.is_none() && replaces(table, &assignments),
                    assignments,
                    filter,
                })
            }
        };
        Ok(ConflictPlan { arbiters, update })
    }

    /// `SET column = value, …`, the values by their own columns.
    pub(super) fn assignments(
        &mut self,
        table: &Arc<Table>,
        assignments: &[ast::Assignment],
    ) -> Bindable<Vec<(usize, Expr)>> {
        self.assignments_by(table, assignments, &mut |binder, value, column| {
            let def = &table.columns[column];
            match is_default(value) {
                true => binder.default_of(table, column),
                false => binder.value_for(value, &def.name, def.data_type),
            }
        })
    }

    /// `SET column = value, …`; `value_of` binds a value for a column.
    pub(super) fn assignments_by(
        &mut self,
        table: &Arc<Table>,
        assignments: &[ast::Assignment],
        value_of: &mut dyn FnMut(&mut Self, &ast::Expr, usize) -> Bindable<Expr>,
    ) -> Bindable<Vec<(usize, Expr)>> {
        let mut bound: Vec<(usize, Expr)> = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            let parts;
            let pairs: Vec<(&ast::ObjectName, &ast::Expr)> =
                match (&assignment.target, &assignment.value) {
                    (AssignmentTarget::ColumnName(name), value) => vec![(name, value)],
                    (AssignmentTarget::Tuple(names), ast::Expr::Subquery(query)) => {
                        parts = columns_of(query, names.len())?;
                        names.iter().zip(&parts).collect()
                    }
                    (AssignmentTarget::Tuple(names), ast::Expr::Tuple(values))
                        if names.len() == values.len() =>
                    {
                        names.iter().zip(values).collect()
                    }
                    (AssignmentTarget::Tuple(names), ast::Expr::Nested(value))
                        if names.len() == 1 =>
                    {
                        vec![(&names[0], &**value)]
                    }
                    (AssignmentTarget::Tuple(_), ast::Expr::Tuple(_)) => {
                        let message = "number of columns does not match number of values";
                        return Err(SqlError::syntax(message).into());
                    }
                    _ => return Err(Refusal::declined("SET from a row or subquery")),
                };
            for (name, value) in pairs {
                let column = self.target_column(table, name)?;
                self.need_column(table, column, Privileges::UPDATE)?;
                let def = &table.columns[column];
                if bound.iter().any(|(assigned, _)| *assigned == column) {
                    let message = format!("multiple assignments to same column \"{}\"", def.name);
                    return Err(SqlError::syntax(message).into());
                }
                if def.identity == Some(Identity::Always) && !is_default(value) {
                    let message = format!("column \"{}\" can only be updated to DEFAULT", def.name);
                    return Err(SqlError::new("428C9", message)
                        .with_detail(generated_always(&def.name))
                        .into());
                }
                bound.push((column, value_of(self, value, column)?));
            }
        }
        Ok(bound)
    }
}

/// Whether an item of a list of results is one column.
fn is_one(item: &ast::SelectItem) -> bool {
    use ast::SelectItem::{ExprWithAlias, UnnamedExpr};
    matches!(item, ExprWithAlias { .. } | UnnamedExpr(_))
}

/// The columns of a subquery's row, each as a subquery of its own.
fn columns_of(query: &ast::Query, count: usize) -> Bindable<Vec<ast::Expr>> {
    let same_count = match &*query.body {
        SetExpr::Select(select) if select.projection.iter().all(is_one) => {
            select.projection.len() == count
        }
        SetExpr::Values(values) => values.rows.iter().all(|row| row.len() == count),
        _ => {
            return Err(Refusal::declined(
                "SET of several columns from a subquery with * or UNION",
            ));
        }
    };
    if !same_count {
        let message = "number of columns does not match number of values";
        return Err(SqlError::syntax(message).into());
    }
    let names: Vec<String> = (0..count).map(|number| format!("c{number}")).collect();
    let column = |name: &String| {
        let names = names.join(", ");
        source::one_expression(&format!("(SELECT {name} FROM ({query}) AS s ({names}))"))
    };
    names.iter().map(column).collect()
}

/// Whether a query is its body alone.
fn bare(query: &ast::Query) -> bool {
    query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
}

fn first_columns(table: &Table, width: usize) -> Bindable<Vec<usize>> {
    let mut live = table.live();
    if width > live.len() {
        return Err(more_expressions().into());
    }
    live.truncate(width);
    Ok(live)
}

fn same_width(given: usize, wanted: usize) -> Bindable<()> {
    if given > wanted {
        return Err(more_expressions().into());
    }
    if given < wanted {
        let message = "INSERT has more target columns than expressions";
        return Err(SqlError::syntax(message).into());
    }
    Ok(())
}

#[cold]
fn more_expressions() -> SqlError {
    SqlError::syntax("INSERT has more expressions than target columns")
}

pub(crate) fn generated_always(column: &str) -> String {
    format!("Column \"{column}\" is an identity column defined as GENERATED ALWAYS.")
}

fn refuse_generated(table: &Table, column: usize, overriding: bool) -> Bindable<()> {
    let def = &table.columns[column];
    if def.identity == Some(Identity::Always) && !overriding {
        let message = format!(
            "cannot insert a non-DEFAULT value into column \"{}\"",
            def.name
        );
        return Err(SqlError::new("428C9", message)
            .with_detail(generated_always(&def.name))
            .with_hint("Use OVERRIDING SYSTEM VALUE to override.")
            .into());
    }
    Ok(())
}

/// The keyword DEFAULT, which the parser takes for a name.
pub(super) fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// Whether rows that clash in a unique index always share a partition.
pub(crate) fn unique_within_partition(table: &Table) -> bool {
    table
        .indexes
        .iter()
        .filter(|index| index.unique)
        .all(|index| {
            !table.partition_key.is_empty()
                && table
                    .partition_key
                    .iter()
                    .all(|column| index.columns.contains(column))
        })
}

/// Whether `ON CONFLICT DO UPDATE` with these assignments puts the row that was to be
/// inserted, as it is, in the place of the one with its key.
pub(crate) fn replaces(table: &Table, assignments: &[(usize, Expr)]) -> bool {
    let width = table.columns.len();
    let taken = |column: usize| {
        let mut assigned = assignments.iter().filter(|(to, _)| *to == column);
        assigned
            .next()
            .map(|(_, expr)| matches!(expr, Expr::Column(c) if *c == width + column))
    };
    let key = table
        .indexes
        .first()
        .map_or(&[][..], |index| &index.columns);
    table.knows_keys()
        && table
            .live_columns()
            .all(|(column, _)| taken(column).unwrap_or_else(|| key.contains(&column)))
        && key
            .iter()
            .all(|column| has_one_form(table.columns[*column].data_type))
}
