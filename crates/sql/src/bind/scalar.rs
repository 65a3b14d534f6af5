//! Expressions outside of statements: a column's DEFAULT, a CHECK, the WHERE
//! of a COPY. They are kept as SQL text in the catalog and bound with the
//! statement that needs them.

use std::sync::Arc;

use sqlparser::ast;
use thermocline_engine::authority::Privileges;
use thermocline_engine::user_type::DomainDef;
use thermocline_engine::{Catalog, ColumnDef, Table, TableDef, TypeDef, TypeKind};
use thermocline_query::domain::condition;
use thermocline_query::tree::ExprKind;
use thermocline_query::types::format_type;
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::analysed::is_volatile;
use super::scope::Relation;
use super::typed::{Binder, Typed};
use super::{BindContext, Bindable, Refusal};
use crate::error::{Result, SqlError};
use crate::expr::{Analysed, Expr};
use crate::plan::{Check, InsertTarget, unique_within_partition};
use crate::temporary::path_within;

impl From<Refusal> for SqlError {
    #[cold]
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Error(error) | Refusal::Declined { error, .. } => *error,
        }
    }
}

/// Binds an expression that is kept as text, and that may be deep: where it is evaluated, it
/// has the stack for that.
fn bind_kept(text: &str, bind: impl FnOnce(&ast::Expr) -> Result<Expr>) -> Result<Expr> {
    let (expr, depth) = crate::parse::expression(text)?;
    let bound = crate::stack::with_room(depth, || {
        let bound = bind(&expr);
        drop(expr);
        bound
    })?;
    Ok(match crate::stack::is_deep(depth) {
        true => Expr::Deep(depth, Box::new(bound)),
        false => bound,
    })
}

/// Binds a scalar expression over the columns of `table` (none: no columns),
/// and says its type.
///
/// # Errors
/// As PostgreSQL when names or types do not fit; 0A000 for what expressions
/// here cannot do.
pub fn bind_scalar(
    expr: &ast::Expr,
    table: Option<&Arc<Table>>,
    context: &BindContext<'_>,
) -> Result<(Expr, DataType)> {
    let mut binder = over(table, context);
    let (typed, _) = binder.shown(expr)?;
    Ok(binder.settled(typed)?)
}

/// Binds a condition over the columns of `table`; `clause` names it in
/// messages.
///
/// # Errors
/// As [`bind_scalar`], and 42804 when it is not boolean.
pub fn bind_condition(
    expr: &ast::Expr,
    table: &Arc<Table>,
    clause: &str,
    context: &BindContext<'_>,
) -> Result<Expr> {
    let mut binder = over(Some(table), context);
    Ok(binder.condition_of(expr, clause)?)
}

/// Binds a DEFAULT for a column of this name and type.
///
/// # Errors
/// As [`bind_scalar`], and 42804 when the type does not suit the column.
pub fn bind_default(
    text: &str,
    column: &str,
    data_type: DataType,
    context: &BindContext<'_>,
) -> Result<Expr> {
    bind_kept(text, |expr| {
        let mut binder = over(None, context);
        Ok(binder.value_for(expr, column, data_type)?)
    })
}

/// The sequence whose next value is the column's default: its own.
pub(crate) fn takes_next_of(column: &ColumnDef) -> Option<u32> {
    let default = column.default.as_deref();
    let next = default.is_some_and(|text| text.trim_start().starts_with("nextval("));
    column
        .sequence
        .filter(|_| next || column.identity.is_some())
}

/// The next value of a sequence, for a column of this name and type.
///
/// # Errors
/// As [`bind_default`].
pub fn bind_next_value(
    sequence: u32,
    column: &str,
    data_type: DataType,
    context: &BindContext<'_>,
) -> Result<Expr> {
    Ok(over(None, context).next_value(sequence, column, data_type)?)
}

/// Binds a value for a column of this name and type, over the columns of `table`.
///
/// # Errors
/// As [`bind_default`].
pub fn bind_value_over(
    text: &str,
    table: &Arc<Table>,
    column: &str,
    data_type: DataType,
    context: &BindContext<'_>,
) -> Result<Expr> {
    bind_kept(text, |expr| {
        let mut binder = over(Some(table), context);
        Ok(binder.value_for(expr, column, data_type)?)
    })
}

/// Binds the text of a CHECK over the columns of `table`.
///
/// # Errors
/// As [`bind_condition`].
pub fn bind_check(text: &str, table: &Arc<Table>, context: &BindContext<'_>) -> Result<Expr> {
    bind_kept(text, |expr| bind_condition(expr, table, "CHECK", context))
}

/// What a column is given where nothing else is, as text, and the schema in which that is read:
/// its own default, or that of its domain.
pub(crate) fn default_text<'c>(
    catalog: &'c Catalog,
    table: &'c TableDef,
    column: &'c ColumnDef,
) -> Option<(&'c str, &'c str)> {
    if let Some(own) = &column.default {
        return Some((own, &table.schema));
    }
    let mut all = domains(catalog, column.domain?);
    all.find_map(|(def, domain)| Some((domain.default.as_deref()?, def.schema.as_str())))
}

/// A domain, and those that it is made of.
fn domains(catalog: &Catalog, oid: u32) -> impl Iterator<Item = (&TypeDef, &DomainDef)> {
    let of = |oid: u32| match catalog.types.get(&oid).map(|def| (def, &def.kind)) {
        Some((def, TypeKind::Domain(domain))) => Some((&**def, domain)),
        _ => None,
    };
    std::iter::successors(of(oid), move |(_, domain)| of(domain.below))
}

/// What a column's domain asks of its values, the innermost domain first. The catalog's word
/// counts: a change of a domain that is not committed yet is known nowhere else.
///
/// # Errors
/// XX000 for a condition that has no meaning.
pub(crate) fn domain_checks(catalog: &Catalog, table: &Table, column: usize) -> Result<Vec<Check>> {
    let Some(oid) = table.columns[column].domain else {
        return Ok(Vec::new());
    };
    let mut all: Vec<_> = domains(catalog, oid).collect();
    all.reverse();
    let mut checks = Vec::new();
    for (def, domain) in all {
        let check = |name: &str, condition: Expr| Check {
            name: name.to_owned(),
            condition,
            domain: Some(format_type(def.oid, -1)),
        };
        if domain.not_null {
            let operand = Box::new(Expr::Column(column));
            let negated = true;
            checks.push(check("", Expr::IsNull { operand, negated }));
        }
        for one in &domain.checks {
            let condition = domain_condition(&one.expression, domain, table, column)?;
            checks.push(check(&one.name, condition));
        }
    }
    Ok(checks)
}

/// A domain's condition over the row of a table that has it in a column.
///
/// # Errors
/// As the condition's analysis.
pub(crate) fn domain_condition(
    text: &str,
    domain: &DomainDef,
    table: &Table,
    column: usize,
) -> Result<Expr> {
    let mut expr = condition(text, domain.below, domain.modifier)?;
    // All its columns are VALUE.
    let mut arguments = Vec::new();
    if !matches!(expr.kind, ExprKind::Constant(_)) {
        arguments.push((Expr::Column(column), table.columns[column].data_type));
    }
    expr.location = -1;
    Ok(Expr::Analysed(Arc::new(Analysed {
        volatile: is_volatile(&expr),
        data_type: Some(DataType::Boolean),
        text: text.to_owned(),
        expr,
        arguments,
    })))
}

fn over<'a>(table: Option<&Arc<Table>>, context: &'a BindContext<'a>) -> Binder<'a> {
    let mut binder = Binder::new(context);
    binder.relations = table
        .map(|table| Relation::new(table, None, 0))
        .into_iter()
        .collect();
    binder
}

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

    /// What `column` of `table` gets when no value is given for it.
    pub(crate) fn default_of(&mut self, table: &Table, column: usize) -> Bindable<Expr> {
        let def = &table.columns[column];
        if let Some(sequence) = takes_next_of(def) {
            return self.next_value(sequence, &def.name, def.data_type);
        }
        let Some((text, schema)) = default_text(self.context.catalog, table, def) else {
            return Ok(Expr::Constant(Value::Null));
        };
        // The text's positions mean nothing in the statement's text. A sequence that it names
        // and the column does not own is used with the rights of whoever inserts.
        let path = path_within(schema, self.context.search_path);
        let context = BindContext {
            search_path: &path,
            parameters: &[],
            sql: "",
            ..self.context.of_kept()
        };
        Ok(bind_default(text, &def.name, def.data_type, &context)?)
    }

    fn next_value(&mut self, sequence: u32, column: &str, to: DataType) -> Bindable<Expr> {
        let typed = Typed::known(Expr::NextValue(sequence), DataType::BigInt);
        self.assigned(typed, column, to)
    }

    /// The CHECK constraints of `table`.
    pub(crate) fn checks_of(&mut self, table: &Arc<Table>) -> Bindable<Vec<Check>> {
        let path = path_within(&table.schema, self.context.search_path);
        let context = BindContext {
            search_path: &path,
            parameters: &[],
            sql: "",
            actor: None,
            ..self.context.of_kept()
        };
        let mut checks = Vec::with_capacity(table.checks.len());
        for check in &table.checks {
            checks.push(Check {
                name: check.name.clone(),
                condition: bind_check(&check.expression, table, &context)?,
                domain: None,
            });
        }
        for (column, def) in table.live_columns() {
            if def.domain.is_some() {
                checks.extend(domain_checks(self.context.catalog, table, column)?);
            }
        }
        Ok(checks)
    }
}
