//! Expressions outside of queries: a column's DEFAULT, a CHECK, the WHERE of a COPY, arguments.
//! They are kept as SQL text in the catalog and analysed with the statement that needs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use thermocline_engine::authority::Privileges;
use thermocline_engine::user_type::DomainDef;
use thermocline_engine::{Catalog, ColumnDef, Table, TableDef, TypeDef, TypeKind};
use thermocline_query::analyze::{self, Analyzed, SqlFunction, Stored, Wanted};
use thermocline_query::call::{Environment, Settings, of_the_moment};
use thermocline_query::datum::Datum;
use thermocline_query::domain::condition;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::parse::parse;
use thermocline_query::tree::{self, Column, ExprKind};
use thermocline_query::types::format_type;
use thermocline_values::cast::CastContext;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::generated::{check_copy_filter, check_generation, check_immutable};
use super::index_key::check_indexed;
use super::{BindContext, TypeNames, is_system_column};
use crate::analysis::{called, functions_named};
use crate::error::{Result, SqlError};
use crate::expr::{Analysed, CastPath, Expr};
use crate::plan::{Check, CheckOf, InsertTarget, Reference, Routes, unique_within_partition};
use crate::session::qualified;
use crate::short::{Lowering, is_volatile, not_of_a_row};
use crate::temporary::{self, path_within};
use crate::typed::{has_call, held};

/// What an expression is part of, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clause {
    /// A column's DEFAULT.
    Default,
    /// A CHECK.
    Check,
    /// What a generated column is computed by.
    Generation,
    /// What an index's keys are made of.
    IndexExpression,
    /// The WHERE of an index.
    IndexPredicate,
    /// The USING of a column's new type.
    Transform,
    /// The WHERE of COPY FROM.
    CopyFilter,
    /// An argument of EXECUTE.
    Execute,
    /// An argument of CALL.
    Call,
}

impl Clause {
    /// PostgreSQL's name of it.
    const fn name(self) -> &'static str {
        match self {
            Self::Default => "DEFAULT expression",
            Self::Check => "check constraint",
            Self::Generation => "column generation expression",
            Self::IndexExpression => "index expression",
            Self::IndexPredicate => "index predicate",
            Self::Transform => "transform expression",
            Self::CopyFilter => "COPY FROM WHERE condition",
            Self::Execute => "EXECUTE parameter",
            Self::Call => "CALL argument",
        }
    }

    /// Whether an index is made of it.
    const fn is_of_index(self) -> bool {
        matches!(self, Self::IndexExpression | Self::IndexPredicate)
    }

    /// What is said of a system column.
    #[cold]
    fn of_system_column(self, column: &str) -> SqlError {
        let name = self.name();
        match self {
            Self::IndexExpression | Self::IndexPredicate => SqlError::unsupported(
                "index creation on system columns is not supported",
                "Index columns of the table.",
            ),
            Self::Check => SqlError::new(
                "42P10",
                format!("system column \"{column}\" reference in check constraint is invalid"),
            ),
            _ => SqlError::new(
                "42P10",
                format!("cannot use system column \"{column}\" in {name}"),
            ),
        }
    }

    /// Refuses what no row gives, and what the clause has not.
    fn check(self, expr: &tree::Expr, table: Option<&Table>) -> Result<()> {
        let name = self.name();
        if table.is_some_and(|table| places_row(expr, table)) {
            return Err(self.of_system_column("ctid"));
        }
        match (self, table) {
            (Self::Generation, Some(table)) => check_generation(expr, table)?,
            (Self::CopyFilter, Some(table)) => check_copy_filter(expr, table)?,
            _ => {}
        }
        if has_call(expr) && !matches!(self, Self::Default | Self::Check) {
            return Err(SqlError::unsupported(
                format!("a function that is no expression of SQL is not supported in {name}s"),
                "Write its body as one expression, in LANGUAGE sql.",
            ));
        }
        let (sqlstate, message) = match not_of_a_row(expr) {
            None if self == Self::Generation => return check_immutable(expr),
            None if self.is_of_index() => return check_indexed(expr, name, table),
            None => return Ok(()),
            Some("a subquery") => {
                let message = format!("cannot use subquery in {name}");
                return Err(SqlError::unsupported(
                    message,
                    "Write it without a subquery.",
                ));
            }
            Some("an aggregate") => (
                "42803",
                format!("aggregate functions are not allowed in {name}s"),
            ),
            Some("a window function") => (
                "42P20",
                format!("window functions are not allowed in {name}s"),
            ),
            Some("a set") => {
                let message = format!("set-returning functions are not allowed in {name}s");
                return Err(SqlError::unsupported(
                    message,
                    "Call a function that gives one value.",
                ));
            }
            Some(what) => {
                let message = format!("{what} is not supported in {name}s");
                return Err(SqlError::unsupported(
                    message,
                    "Write it over constants and columns.",
                ));
            }
        };
        Err(SqlError::new(sqlstate, message))
    }
}

/// Whether the expression asks where the row is (`ctid`), which no column of the table says.
fn places_row(expr: &tree::Expr, table: &Table) -> bool {
    let width = table.columns.len();
    expr.any(&mut |expr| matches!(expr.kind, ExprKind::Column { column, .. } if column >= width))
}

/// The name that the row has in the text that is analysed.
const ROW: &str = "the row";

/// What names of an expression may mean: the columns of a table, sequences, users' types.
struct Names<'a> {
    table: Option<&'a Table>,
    context: &'a BindContext<'a>,
    settings: &'a Settings,
    /// Whether something has asked for the time, which what is kept has none of.
    asked_time: AtomicBool,
}

impl analyze::Catalog for Names<'_> {
    fn relation(&self, schema: Option<&str>, name: &str) -> QueryResult<Option<Stored>> {
        let table = self.table.filter(|_| schema.is_none() && name == ROW);
        let Some(table) = table else {
            // Of a subquery, which is refused.
            return Ok(None);
        };
        let column = |def: &ColumnDef| Column {
            name: def.name.as_str().into(),
            oid: match def.is_seen() {
                true => def.type_oid(),
                false => 0,
            },
            modifier: def.type_modifier(),
            origin: None,
        };
        Ok(Some(Stored {
            oid: table.oid,
            schema: table.schema.as_str().into(),
            columns: table.columns.iter().map(column).collect(),
            primary_key: Vec::new(),
            row_type: 0,
            view: None,
            reader: None,
            is_partitioned: false,
        }))
    }

    fn functions(&self, schema: Option<&str>, name: &str) -> Vec<SqlFunction> {
        let (catalog, path) = (self.context.catalog, self.context.search_path);
        if catalog.functions.is_empty() {
            return Vec::new();
        }
        let named = functions_named(catalog, path, schema, name);
        let functions = named.filter(|def| def.procedure.is_none());
        functions.map(|def| called(def)).collect()
    }

    fn may_call(&self, function: &SqlFunction) -> QueryResult<()> {
        match self.context.actor {
            Some(actor) => Ok(actor.need_function(function.oid, &function.name)?),
            None => Ok(()),
        }
    }

    fn takes_queries(&self) -> bool {
        false
    }

    fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        let names = TypeNames {
            catalog: self.context.catalog,
            search_path: self.context.search_path,
        };
        analyze::Catalog::user_type(&names, schema, name)
    }
}

impl Environment for Names<'_> {
    fn settings(&self) -> &Settings {
        self.settings
    }

    fn transaction_time(&self) -> i64 {
        self.asked_time.store(true, Relaxed);
        0
    }

    fn statement_time(&self) -> i64 {
        self.transaction_time()
    }

    fn room(&self, _: usize) -> QueryResult<()> {
        Ok(())
    }

    fn check_interrupted(&self) -> QueryResult<()> {
        Ok(())
    }

    fn call(&self, name: &str, arguments: &[Datum]) -> QueryResult<Datum> {
        match (name, arguments) {
            ("regclassin", [Datum::Text(text)]) => {
                let parts = qualified(text);
                let oid = self.relation_named(&parts)?;
                oid.map(Datum::Oid)
                    .ok_or_else(|| SqlError::undefined_table(&parts.join(".")).into())
            }
            _ => Err(QueryError::unsupported(
                format!("a constant that needs function {name} is not supported"),
                "Write the constant as a text or a number.",
            )),
        }
    }
}

impl Names<'_> {
    /// The number of the relation of this name.
    fn relation_named(&self, parts: &[String]) -> QueryResult<Option<u32>> {
        let (catalog, path) = (self.context.catalog, self.context.search_path);
        let within = |schema: &str, name: &str| {
            let sequence = catalog.sequence_by_name(schema, name).map(|of| of.oid);
            let table = || catalog.table_by_name(schema, name).map(|of| of.oid);
            let view = || catalog.view_by_name(schema, name).map(|of| of.oid);
            let oid = sequence.or_else(table).or_else(view)?;
            Some((schema.to_owned(), oid))
        };
        let found = match parts {
            [name] => path.iter().find_map(|schema| within(schema, name)),
            [schema, name] | [_, schema, name] => within(temporary::meant(schema, path), name),
            _ => None,
        };
        let Some((schema, oid)) = found else {
            return Ok(None);
        };
        temporary::not_others(&schema, path)?;
        Ok(Some(oid))
    }
}

/// An expression of a text over the columns of a table, as `wanted` says; and its tree.
pub(super) fn analysed(
    text: &str,
    table: Option<&Arc<Table>>,
    wanted: Wanted<'_>,
    clause: Clause,
    context: &BindContext<'_>,
) -> Result<(Expr, tree::Expr)> {
    let (expr, target) = analysed_target(text, table, wanted, clause, context)?;
    Ok((expr, target.expr))
}

/// The same, with the name that a query gives the expression.
pub(super) fn analysed_target(
    text: &str,
    table: Option<&Arc<Table>>,
    wanted: Wanted<'_>,
    clause: Clause,
    context: &BindContext<'_>,
) -> Result<(Expr, tree::Target)> {
    let depth = crate::parse::depth_of(text)?;
    let bound = crate::stack::with_room(depth, || {
        let names = Names {
            table: table.map(|table| &**table),
            context,
            settings: context.styles.settings(),
            asked_time: AtomicBool::new(false),
        };
        let whole = match table {
            None => format!("SELECT {text}"),
            Some(table) => {
                let alias = table.name.replace('"', "\"\"");
                format!("SELECT {text} FROM \"{ROW}\" AS \"{alias}\"")
            }
        };
        let parsed = parse(&whole).map_err(without_place)?;
        let Some(statement) = parsed.statements().stmts().next() else {
            return Err(SqlError::internal("an expression without a statement"));
        };
        let analyzed = analyze::analyze_scalar(statement, &names, &names, &[], wanted);
        let Analyzed { mut query, .. } = analyzed.map_err(|error| {
            let error = without_place(error);
            match error.missing_column.as_deref() {
                Some("tableoid") if clause == Clause::Generation => error,
                Some(name) if is_system_column(name) => clause.of_system_column(name),
                _ => error,
            }
        })?;
        if names.asked_time.load(Relaxed) {
            return Err(of_the_moment().into());
        }
        let (Some(target), 0) = (query.targets.pop(), query.targets.len()) else {
            return Err(SqlError::internal("an expression of several columns"));
        };
        let expr = &target.expr;
        clause.check(expr, table.map(|table| &**table))?;
        context.may_use_sequences(expr)?;
        let relations: Vec<(&Table, usize)> = table.iter().map(|table| (&***table, 0)).collect();
        Ok((Lowering::of_tables(&relations).row(expr)?, target))
    });
    let (bound, target) = bound?;
    Ok(match crate::stack::is_deep(depth) {
        // Where it is evaluated, it has the stack for that.
        true => (Expr::Deep(depth, Box::new(bound)), target),
        false => (bound, target),
    })
}

/// An error whose place is in another text than the statement's.
#[cold]
fn without_place(error: QueryError) -> SqlError {
    SqlError::from(error)
}

impl BindContext<'_> {
    /// 42501 without the right to use a sequence that an expression names; 42809 for what is none.
    pub(crate) fn may_use_sequences(&self, expr: &tree::Expr) -> Result<()> {
        let mut done = Ok(());
        expr.any(&mut |expr| {
            let ExprKind::Call(call) = &expr.kind else {
                return false;
            };
            let next = call
                .arguments
                .first()
                .filter(|_| call.function.name == "nextval");
            let Some(oid) = next.and_then(next_of) else {
                return false;
            };
            done = self.may_use(oid);
            done.is_err()
        });
        done
    }

    fn may_use(&self, oid: u32) -> Result<()> {
        let Some(sequence) = self.catalog.sequences.get(&oid) else {
            let message = format!("the relation with OID {oid} is not a sequence");
            return Err(SqlError::new("42809", message));
        };
        temporary::not_others(&sequence.schema, self.search_path)?;
        match self.actor {
            Some(actor) => {
                let needs = Privileges::USAGE | Privileges::UPDATE;
                actor.need_sequence(self.catalog, sequence, needs)
            }
            None => Ok(()),
        }
    }
}

/// The sequence whose next value a call of `nextval` with this argument gives, if it is named.
pub(crate) fn next_of(argument: &tree::Expr) -> Option<u32> {
    match argument.kind {
        ExprKind::Constant(Datum::Oid(oid)) => Some(oid),
        _ => None,
    }
}

/// Binds an argument, and says its type.
///
/// # Errors
/// As PostgreSQL when names or types do not fit; 0A000 for what expressions here cannot do.
pub fn bind_argument(
    text: &str,
    clause: Clause,
    context: &BindContext<'_>,
) -> Result<(Expr, DataType)> {
    let (expr, typed) = analysed(text, None, Wanted::Value, clause, context)?;
    Ok((
        expr,
        held(typed.oid, typed.modifier).unwrap_or(DataType::Text),
    ))
}

/// Binds the WHERE of a COPY over the columns of `table`.
///
/// # Errors
/// As [`bind_argument`], and 42804 when it is not boolean.
pub fn bind_filter(text: &str, table: &Arc<Table>, context: &BindContext<'_>) -> Result<Expr> {
    let wanted = Wanted::Condition("WHERE");
    analysed(text, Some(table), wanted, Clause::CopyFilter, context).map(|(expr, _)| expr)
}

/// Binds a DEFAULT for a column of this name and type.
///
/// # Errors
/// As [`bind_argument`], and 42804 when the type does not suit the column.
pub fn bind_default(
    text: &str,
    column: &str,
    data_type: DataType,
    context: &BindContext<'_>,
) -> Result<Expr> {
    let wanted = wanted_by(column, data_type);
    analysed(text, None, wanted, Clause::Default, context).map(|(expr, _)| expr)
}

pub(super) fn wanted_by(name: &str, data_type: DataType) -> Wanted<'_> {
    Wanted::Column {
        name,
        oid: data_type.oid(),
        modifier: data_type.typmod(),
    }
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
/// 42804 when the type does not suit a number.
pub fn bind_next_value(sequence: u32, column: &str, data_type: DataType) -> Result<Expr> {
    let next = Expr::NextValue(sequence);
    if data_type == DataType::BigInt {
        return Ok(next);
    }
    if !data_type.is_number() && !data_type.is_text() {
        return Err(SqlError::new(
            "42804",
            format!(
                "column \"{column}\" is of type {} but expression is of type bigint",
                format_type(data_type.oid(), -1)
            ),
        ));
    }
    let path = CastPath {
        from: DataType::BigInt,
        to: data_type,
        context: CastContext::Assignment,
    };
    Ok(Expr::Cast(Box::new(path), Box::new(next)))
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
    let wanted = wanted_by(column, data_type);
    analysed(text, Some(table), wanted, Clause::Transform, context).map(|(expr, _)| expr)
}

/// Binds the text of a CHECK over the columns of `table`.
///
/// # Errors
/// As [`bind_filter`].
pub fn bind_check(text: &str, table: &Arc<Table>, context: &BindContext<'_>) -> Result<Expr> {
    let wanted = Wanted::Condition("CHECK");
    analysed(text, Some(table), wanted, Clause::Check, context).map(|(expr, _)| expr)
}

/// What a column is given where nothing else is, as text, and the schema in which that is read:
/// its own default, or that of its domain. A generated column is given nothing.
pub(crate) fn default_text<'c>(
    catalog: &'c Catalog,
    table: &'c TableDef,
    column: &'c ColumnDef,
) -> Option<(&'c str, &'c str)> {
    if column.generated {
        return None;
    }
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
            of: CheckOf::Domain(format_type(def.oid, -1)),
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
    let mut defaults = Vec::new();
    for (column, def) in table.live_columns() {
        let has_default =
            def.identity.is_some() || default_text(context.catalog, table, def).is_some();
        if !columns.contains(&column) && has_default {
            defaults.push((column, context.default_of(table, column)?));
        }
    }
    let mut target = InsertTarget {
        checks: context.checks_of(table)?,
        unique_within_partition: unique_within_partition(table),
        references: Reference::of(context.catalog, table, |_| true),
        table: Arc::clone(table),
        columns: columns.to_vec(),
        defaults,
        generated: context.generated_of(table)?,
        conflict: None,
        returning: None,
        routes: None,
    };
    target.routes = Routes::of(context, &target)?;
    Ok(target)
}

impl BindContext<'_> {
    /// What `column` of `table` gets when no value is given for it.
    pub(crate) fn default_of(&self, table: &Table, column: usize) -> Result<Expr> {
        let def = &table.columns[column];
        if let Some(sequence) = takes_next_of(def) {
            return bind_next_value(sequence, &def.name, def.data_type);
        }
        let Some((text, schema)) = default_text(self.catalog, table, def) else {
            return Ok(Expr::Constant(Value::Null));
        };
        // A sequence that it names and the column does not own is used with the rights of
        // whoever inserts.
        let path = path_within(schema, self.search_path);
        let context = BindContext {
            search_path: &path,
            ..self.of_kept()
        };
        bind_default(text, &def.name, def.data_type, &context)
    }

    /// The CHECK constraints of `table`, and what a view says that it is changed through.
    pub(crate) fn checks_of(&self, table: &Arc<Table>) -> Result<Vec<Check>> {
        let path = path_within(&table.schema, self.search_path);
        let context = BindContext {
            search_path: &path,
            actor: None,
            ..self.of_kept()
        };
        let mut checks = Vec::with_capacity(table.checks.len());
        for check in &table.checks {
            checks.push(Check {
                name: check.name.clone(),
                condition: bind_check(&check.expression, table, &context)?,
                of: CheckOf::Table,
            });
        }
        for (column, def) in table.live_columns() {
            if def.domain.is_some() {
                checks.extend(domain_checks(self.catalog, table, column)?);
            }
        }
        checks.extend(self.through.cloned());
        let mut below: &Table = table;
        while let Some(parent) = below.partition_of.and_then(|oid| self.catalog.table(oid)) {
            let all = parent.partitioned.iter().flat_map(|by| &by.partitions);
            let at = all
                .map(|partition| partition.table)
                .position(|oid| oid == below.oid);
            checks.extend(at.map(|at| Check {
                name: String::new(),
                condition: Expr::TRUE,
                of: CheckOf::Partition(Arc::clone(parent), at),
            }));
            below = parent;
        }
        Ok(checks)
    }
}
