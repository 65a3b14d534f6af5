//! Expressions over a row of the changed table. What the short path has a form of its own for,
//! comparisons above all, by which indexes are chosen, gets that; the rest is evaluated by
//! `thermocline_query`.

use crate::typed::held;
use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_query::datum::Datum;
use thermocline_query::functions::{Body, Volatility};
use thermocline_query::tree::{self, ArrayComparison, ExprKind, FunctionCall, Now};
use thermocline_query::types::domain::{base, is_domain};
use thermocline_query::types::{ids, is_built_in};
use thermocline_values::arithmetic::Operator;
use thermocline_values::cast::CastContext;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::shown::shown;
use crate::bind::next_of;
use crate::error::{Result, SqlError};
use crate::expr::{self, Analysed, CastPath, Comparison, Expr, TransactionTime};
use crate::one_row::{OF_SEQUENCES, SESSION_FUNCTIONS};
use crate::plan::Reason;
use crate::styles::Styles;
use crate::typed::value;

/// The signs of arithmetic.
const OPERATORS: [(&str, Operator); 5] = [
    ("+", Operator::Add),
    ("-", Operator::Subtract),
    ("*", Operator::Multiply),
    ("/", Operator::Divide),
    ("%", Operator::Remainder),
];

/// Functions that are casts from one argument.
const CASTS: [&str; 7] = [
    "int2",
    "int4",
    "int8",
    "float8",
    "date",
    "timestamp",
    "timestamptz",
];

/// What the columns of the tree are in the row.
#[derive(Clone, Copy)]
pub(crate) enum Row<'a> {
    /// Those of its relations: the table, and where its columns begin.
    Tables(&'a [(&'a Table, usize)]),
    /// Those of one relation, before which others were joined.
    Joined(&'a JoinedTables, usize),
    /// Keys and results of a group, of these types.
    Group(&'a [DataType]),
}

/// Tables that are joined one after the other: each, what the query calls it, and where its
/// columns begin in the row.
pub(crate) type JoinedTables = [(Arc<Table>, Arc<str>, usize)];

/// Expressions over a row.
pub(crate) struct Lowering<'a> {
    pub(crate) row: Row<'a>,
}

/// Types whose values are shown by the names of what they number.
const NAMED: [u32; 16] = [
    ids::REGCLASS,
    ids::REGCLASS_ARRAY,
    ids::REGCOLLATION,
    ids::REGCOLLATION_ARRAY,
    ids::REGNAMESPACE,
    ids::REGNAMESPACE_ARRAY,
    ids::REGOPER,
    ids::REGOPER_ARRAY,
    ids::REGOPERATOR,
    ids::REGOPERATOR_ARRAY,
    ids::REGPROC,
    ids::REGPROC_ARRAY,
    ids::REGPROCEDURE,
    ids::REGPROCEDURE_ARRAY,
    ids::REGROLE,
    ids::REGROLE_ARRAY,
];

impl<'a> Lowering<'a> {
    /// Of what reads no row.
    pub(super) const fn of_no_row() -> Self {
        Self {
            row: Row::Tables(&[]),
        }
    }

    /// Of the row of tables, whose columns begin at these places.
    pub(crate) const fn of_tables(tables: &'a [(&'a Table, usize)]) -> Self {
        Self {
            row: Row::Tables(tables),
        }
    }

    /// Of a row of a relation, to which those of the tables before it are joined.
    pub(super) const fn of_joined(tables: &'a JoinedTables, relation: usize) -> Self {
        Self {
            row: Row::Joined(tables, relation),
        }
    }

    /// A column in the row, and its type.
    fn column(&self, relation: usize, column: usize) -> Option<(Expr, DataType)> {
        match self.row {
            Row::Tables(tables) => {
                let (table, offset) = tables.get(relation)?;
                let data_type = table.columns.get(column)?.data_type;
                Some((Expr::Column(offset + column), data_type))
            }
            Row::Joined(tables, own) => {
                let (table, name, begin) = tables.get(relation)?;
                let def = table.columns.get(column)?;
                let place = match relation == own {
                    true => Expr::Column(column),
                    false => Expr::Outer(begin + column, format!("{name}.{}", def.shown()).into()),
                };
                Some((place, def.data_type))
            }
            Row::Group(types) => Some((Expr::Column(column), *types.get(column)?)),
        }
    }

    /// Whether the row gives the expression's value.
    pub(super) fn gives(&self, expr: &tree::Expr) -> bool {
        self.obstacle(expr).is_none()
    }

    /// The expression over the row, or what keeps the row from giving it.
    pub(super) fn given(&self, expr: &tree::Expr) -> Result<Expr, Reason> {
        let names = || asks_names(expr).then_some(OF_NAMES);
        match self.obstacle(expr).or_else(names) {
            Some(what) => Err(Reason::Form(what)),
            None => Ok(self.lower(expr)),
        }
    }

    /// What keeps the row from giving it.
    fn obstacle(&self, expr: &tree::Expr) -> Option<&'static str> {
        not_of_a_row(expr).or_else(|| {
            let mut other = None;
            expr.any(&mut |expr| {
                if let ExprKind::Column {
                    relation, column, ..
                } = expr.kind
                    && self.column(relation, column).is_none()
                {
                    let is_first = || self.column(relation, column.wrapping_sub(1)).is_some();
                    other = Some(match self.column(relation, 0) {
                        Some(_) if is_first() => "ctid",
                        Some(_) => "tableoid",
                        None => "another table's column",
                    });
                }
                other.is_some()
            });
            other
        })
    }

    /// The expression over the row.
    ///
    /// # Errors
    /// 0A000 for what a row does not give.
    pub(crate) fn row(&self, expr: &tree::Expr) -> Result<Expr> {
        let names = || asks_names(expr).then_some(OF_NAMES);
        match self.obstacle(expr).or_else(names) {
            Some(what) => Err(SqlError::unsupported(
                format!("{what} is not supported in an expression over the changed row"),
                "Compute it in a statement of its own before, in one transaction.",
            )),
            None => Ok(self.lower(expr)),
        }
    }

    fn lower(&self, expr: &tree::Expr) -> Expr {
        self.own_form(expr).unwrap_or_else(|| self.analysed(expr))
    }

    fn all(&self, exprs: &[tree::Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.lower(expr)).collect()
    }

    /// The form that the short path has of its own.
    fn own_form(&self, expr: &tree::Expr) -> Option<Expr> {
        Some(match &expr.kind {
            ExprKind::Column {
                level: 0,
                relation,
                column,
            } => self.column(*relation, *column)?.0,
            ExprKind::Constant(datum) if datum.is_null() => Expr::Constant(Value::Null),
            ExprKind::Constant(datum) => {
                let data_type = held(expr.oid, expr.modifier)?;
                Expr::Constant(value::to_stored(datum, &data_type).ok()?)
            }
            ExprKind::Parameter(number) => {
                held(expr.oid, -1)?;
                Expr::Parameter(*number)
            }
            ExprKind::And(parts) => Expr::And(self.all(parts)),
            ExprKind::Or(parts) => Expr::Or(self.all(parts)),
            ExprKind::Not(inner) => Expr::Not(Box::new(self.lower(inner))),
            ExprKind::IsNull(inner, wanted) if is_plain(inner) => Expr::IsNull {
                operand: Box::new(self.lower(inner)),
                negated: !wanted,
            },
            ExprKind::Is(inner, Some(wanted), positive) => Expr::IsTruth {
                operand: Box::new(self.lower(inner)),
                wanted: *wanted,
                negated: !positive,
            },
            ExprKind::Call(call) => {
                let compared = self.comparison(call);
                let computed = compared.or_else(|| self.arithmetic(call, expr.oid));
                computed.or_else(|| self.of_function(call, expr))?
            }
            ExprKind::AnyOfArray(any) => self.in_list(any)?,
            ExprKind::Coalesce(parts) if is_plain(expr) => Expr::Coalesce(self.all(parts)),
            ExprKind::Case(case) if case.operand.is_none() && is_plain(expr) => {
                let arms = case.branches.iter();
                let arm = |(condition, value): &(tree::Expr, tree::Expr)| {
                    (self.lower(condition), self.lower(value))
                };
                Expr::Case {
                    arms: arms.map(arm).collect(),
                    otherwise: Box::new(self.lower(&case.otherwise)),
                }
            }
            ExprKind::Now(now) if expr.modifier == -1 => Expr::Now(match now {
                Now::TimestampTz => TransactionTime::TimestampTz,
                Now::Timestamp => TransactionTime::Timestamp,
                Now::Date => TransactionTime::Date,
                Now::Time | Now::TimeTz => return None,
            }),
            ExprKind::Fit(inner, written) => self.fitted(inner, expr, *written)?,
            ExprKind::Relabel(inner) if is_text(expr.oid) && is_text(base(inner.oid)) => {
                self.lower(inner)
            }
            ExprKind::Relabel(_) if !std::ptr::eq(below_domain(expr), expr) => {
                self.lower(below_domain(expr))
            }
            _ => return None,
        })
    }

    /// A comparison of values that the storage orders as PostgreSQL does.
    fn comparison(&self, call: &FunctionCall) -> Option<Expr> {
        let comparison = comparison_of(call.operator?)?;
        let [left, right] = call.arguments.as_slice() else {
            return None;
        };
        let (left, right) = self.same_type(left, right)?;
        Some(Expr::Compare(comparison, Box::new(left), Box::new(right)))
    }

    /// Arithmetic of two numbers of one type, as the storage does it.
    fn arithmetic(&self, call: &FunctionCall, result: u32) -> Option<Expr> {
        let sign = call.operator?;
        let operator = OPERATORS.into_iter().find(|(own, _)| *own == sign)?.1;
        let [left, right] = call.arguments.as_slice() else {
            return None;
        };
        let is_number = held(result, -1).is_some_and(|of| of.is_number());
        let is_result = |operand: &tree::Expr| operand.oid == result;
        if !is_number || !(is_result(left) || is_result(right)) {
            return None;
        }
        let (left, right) = self.same_type(left, right)?;
        Some(Expr::Arithmetic(operator, Box::new(left), Box::new(right)))
    }

    /// A function that the storage has, or the session.
    fn of_function(&self, call: &FunctionCall, expr: &tree::Expr) -> Option<Expr> {
        let name = call.function.name;
        match (name, call.arguments.as_slice()) {
            ("nextval", [of]) => next_of(of).map(Expr::NextValue),
            ("now" | "transaction_timestamp", []) => Some(Expr::Now(TransactionTime::TimestampTz)),
            ("gen_random_uuid", []) => Some(Expr::RandomUuid),
            (_, [inner]) if CASTS.contains(&name) => {
                let (from, to) = (held(inner.oid, -1)?, held(expr.oid, -1)?);
                let is_number = |of: DataType| of.is_integer() || of == DataType::Double;
                let is_time = |of: DataType| {
                    matches!(
                        of,
                        DataType::Date | DataType::Timestamp | DataType::TimestampTz
                    )
                };
                let is_known = is_number(from) && is_number(to) || is_time(from) && is_time(to);
                is_known.then(|| self.cast(inner, from, to, CastContext::Assignment))
            }
            _ => None,
        }
    }

    /// A value that is fitted to a modifier.
    fn fitted(&self, inner: &tree::Expr, expr: &tree::Expr, written: bool) -> Option<Expr> {
        let from = held(inner.oid, inner.modifier)?;
        let to = held(expr.oid, expr.modifier)?;
        if from.other().is_some() || base(inner.oid) != base(expr.oid) {
            return None;
        }
        let context = match written {
            true => CastContext::Explicit,
            false => CastContext::Assignment,
        };
        Some(self.cast(inner, from, to, context))
    }

    fn cast(&self, inner: &tree::Expr, from: DataType, to: DataType, context: CastContext) -> Expr {
        let path = CastPath { from, to, context };
        let operand = self.lower(inner);
        // Numbers look the same in all styles.
        if let Expr::Constant(value) = &operand
            && from.is_number()
            && to.is_number()
            && let Ok(value) = path.apply(expr::Datum::Ref(value.as_ref()), Styles::plain())
        {
            return Expr::Constant(value.into_value());
        }
        Expr::Cast(Box::new(path), Box::new(operand))
    }

    /// `x = ANY (ARRAY[…])`, which is `x IN (…)`.
    fn in_list(&self, any: &ArrayComparison) -> Option<Expr> {
        if !any.any || any.operator != "=" {
            return None;
        }
        let elements: Vec<tree::Expr> = match &any.array.kind {
            ExprKind::Array(parts, false) => parts.clone(),
            ExprKind::Constant(datum) if !datum.is_null() => {
                let array = datum.as_array();
                let element = |value: &Datum| tree::Expr::constant(value.clone(), any.types[1]);
                array.elements.iter().map(element).collect()
            }
            _ => return None,
        };
        let mut operand = None;
        let mut list = Vec::with_capacity(elements.len());
        for element in &elements {
            let (left, right) = self.same_type(&any.value, element)?;
            // All of one type: what each made of the operand is the same.
            operand.get_or_insert(left);
            list.push(right);
        }
        Some(Expr::InList {
            operand: Box::new(operand?),
            list,
            negated: false,
        })
    }

    /// Two operands as values of one type, if the storage compares that as PostgreSQL does.
    fn same_type(&self, left: &tree::Expr, right: &tree::Expr) -> Option<(Expr, Expr)> {
        let ((left, left_type), (right, right_type)) = (operand(left)?, operand(right)?);
        let (left_value, right_value) = (self.lower(left), self.lower(right));
        if left_type == right_type || (left_type.is_text() && right_type.is_text()) {
            return Some((left_value, right_value));
        }
        if !left_type.is_integer() || !right_type.is_integer() {
            return None;
        }
        Some(match left_type.typlen() < right_type.typlen() {
            true => (widened(left_value, left_type, right_type), right_value),
            false => (left_value, widened(right_value, right_type, left_type)),
        })
    }

    /// What `thermocline_query` evaluates.
    fn analysed(&self, expr: &tree::Expr) -> Expr {
        let mut own = expr.clone();
        let mut arguments = Vec::new();
        self.take_arguments(&mut own, &mut arguments);
        Expr::Analysed(Arc::new(Analysed {
            data_type: held(own.oid, own.modifier),
            volatile: is_volatile(&own),
            text: match self.row {
                Row::Tables(tables) => shown(expr, tables),
                Row::Joined(tables, _) => {
                    let plain: Vec<_> = tables.iter().map(|(table, ..)| (&**table, 0)).collect();
                    shown(expr, &plain)
                }
                Row::Group(_) => shown(expr, &[]),
            },
            expr: own,
            arguments,
        }))
    }

    /// Puts places of `arguments` where the expression has columns and parameters.
    fn take_arguments(&self, expr: &mut tree::Expr, arguments: &mut Vec<(Expr, DataType)>) {
        let argument = match &expr.kind {
            ExprKind::Column {
                relation, column, ..
            } => self.column(*relation, *column),
            ExprKind::Parameter(number) => {
                let data_type = held(expr.oid, -1).unwrap_or(DataType::Text);
                Some((Expr::Parameter(*number), data_type))
            }
            _ => None,
        };
        if let Some(argument) = argument {
            expr.kind = ExprKind::Column {
                level: 0,
                relation: 0,
                column: arguments.len(),
            };
            arguments.push(argument);
            return;
        }
        expr.children_mut(&mut |child| self.take_arguments(child, arguments));
    }
}

/// Whether a value is no row, of which IS NULL asks something else.
fn is_plain(expr: &tree::Expr) -> bool {
    held(expr.oid, -1).is_some_and(|data_type| data_type.other().is_none())
        || expr.oid != ids::RECORD
            && thermocline_query::types::user::Class::of(base(expr.oid)).is_none()
}

fn comparison_of(sign: &str) -> Option<Comparison> {
    let all = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];
    all.into_iter()
        .find(|comparison| comparison.symbol() == sign)
}

const fn is_text(oid: u32) -> bool {
    matches!(oid, ids::TEXT | ids::VARCHAR)
}

/// An operand of a comparison and its type, if the storage orders it as PostgreSQL does.
fn operand(expr: &tree::Expr) -> Option<(&tree::Expr, DataType)> {
    let expr = below_domain(expr);
    let inner = match &expr.kind {
        ExprKind::Relabel(inner) if is_text(expr.oid) && is_text(base(inner.oid)) => {
            below_domain(inner)
        }
        ExprKind::Relabel(_) => return None,
        _ => expr,
    };
    let data_type = held(inner.oid, -1)?;
    let ordered = match data_type {
        DataType::Char(_) => false,
        DataType::Other { .. } => data_type.has_key(),
        _ => true,
    };
    ordered.then_some((inner, data_type))
}

/// What is taken for the same value of the type that its domain is made of.
fn below_domain(expr: &tree::Expr) -> &tree::Expr {
    match &expr.kind {
        ExprKind::Relabel(inner) if is_domain(inner.oid) && base(inner.oid) == base(expr.oid) => {
            below_domain(inner)
        }
        _ => expr,
    }
}

fn widened(expr: Expr, from: DataType, to: DataType) -> Expr {
    let number = match expr {
        Expr::Constant(Value::SmallInt(number)) => Some(i64::from(number)),
        Expr::Constant(Value::Integer(number)) => Some(i64::from(number)),
        _ => None,
    };
    match (number, to) {
        (Some(number), DataType::BigInt) => Expr::Constant(Value::BigInt(number)),
        (Some(number), DataType::Integer) if i32::try_from(number).is_ok() => {
            Expr::Constant(Value::Integer(number as i32))
        }
        _ => {
            let path = CastPath {
                from,
                to,
                context: CastContext::Assignment,
            };
            Expr::Cast(Box::new(path), Box::new(expr))
        }
    }
}

/// Whether the session answers a function.
fn is_answered(name: &str) -> bool {
    SESSION_FUNCTIONS.contains(&name) || OF_SEQUENCES.contains(&name)
}

/// What of an expression cannot be computed from a row.
pub(crate) fn not_of_a_row(expr: &tree::Expr) -> Option<&'static str> {
    let mut found = None;
    expr.any(&mut |expr| {
        found = match &expr.kind {
            ExprKind::Subquery(_) | ExprKind::SubqueryColumn(_) => Some("a subquery"),
            ExprKind::Aggregate(_) | ExprKind::Grouping(..) => Some("an aggregate"),
            ExprKind::Window(_) => Some("a window function"),
            ExprKind::WholeRow { .. } => Some("a whole row"),
            ExprKind::Column { level, .. } if *level > 0 => Some("a subquery"),
            ExprKind::Call(call) if call.function.returns_set() => Some("a set"),
            ExprKind::Call(call) if matches!(call.function.body, Body::Server) => {
                (!is_answered(call.function.name)).then_some("this function of the server")
            }
            _ => None,
        };
        found.is_some()
    });
    found
}

/// What [`asks_names`] keeps from a row.
const OF_NAMES: &str = "a name of an object";

/// Whether the catalog has to be asked for names of objects, which only the analytical path does:
/// numbers of them become texts, or texts them, or the value is one. Where only a number is
/// compared nothing is asked.
fn asks_names(expr: &tree::Expr) -> bool {
    is_named(expr) || asks_within(expr)
}

fn asks_within(expr: &tree::Expr) -> bool {
    let called = match &expr.kind {
        ExprKind::Call(call) => call.function.name,
        _ => "",
    };
    if OF_SEQUENCES.contains(&called) {
        return false;
    }
    let is_number = matches!(expr.oid, ids::OID | ids::INT4 | ids::INT8 | ids::BOOL);
    let (of_name, mut asks) = (is_named(expr), called == "format_type");
    expr.children(&mut |child| {
        asks = asks
            || asks_within(child)
            || match is_named(child) {
                true => !of_name && !is_number,
                false => of_name && matches!(child.oid, ids::TEXT | ids::NAME | ids::VARCHAR),
            };
    });
    asks
}

/// Whether a value is shown by the name of what it numbers. Of types that are built in the name is
/// known.
fn is_named(expr: &tree::Expr) -> bool {
    if !matches!(expr.oid, ids::REGTYPE | ids::REGTYPE_ARRAY) {
        return NAMED.contains(&expr.oid);
    }
    match &expr.kind {
        ExprKind::Constant(Datum::Oid(oid)) => !is_built_in(*oid),
        ExprKind::Call(call) if call.function.name == "pg_typeof" => {
            !call.types.iter().all(|oid| is_built_in(*oid))
        }
        _ => true,
    }
}

pub(crate) fn is_volatile(expr: &tree::Expr) -> bool {
    expr.any(&mut |expr| match &expr.kind {
        ExprKind::Call(call) => call.function.volatility == Volatility::Volatile,
        _ => false,
    })
}
