//! Aggregation. The list of results, HAVING and ORDER BY of a query that groups read another row:
//! the group's keys, then what the aggregates give.

use thermocline_query::tree::{self, AggregateCall as Aggregate, ExprKind, Query};
use thermocline_values::types::DataType;

use super::expression::{Lowering, Row};
use crate::expr::{Expr, base_type};
use crate::plan::{AggregateCall, AggregateFunction, AggregatePlan, Reason};
use crate::typed::held;

/// The relation whose columns are the keys and results of a group.
const GROUP: usize = usize::MAX;

/// The groups of a query, as far as they are met.
pub(super) struct Groups<'q, 'a> {
    rows: &'a Lowering<'a>,
    exprs: &'q [tree::Expr],
    keys: Vec<Expr>,
    /// The aggregates, as they are in the tree and as they are run.
    met: Vec<tree::Expr>,
    calls: Vec<AggregateCall>,
    /// The types of the keys, then of the results.
    types: Vec<DataType>,
}

impl<'q, 'a> Groups<'q, 'a> {
    /// The groups of a query over rows; `None` if it has none.
    pub(super) fn of(query: &'q Query, rows: &'a Lowering<'a>) -> Result<Option<Self>, Reason> {
        let Some(grouping) = &query.group else {
            return Ok(None);
        };
        let whole = |set: &Vec<usize>| set.iter().copied().eq(0..grouping.exprs.len());
        if !matches!(grouping.sets.as_slice(), [set] if whole(set)) {
            return Err(Reason::Form("grouping sets"));
        }
        let mut types = Vec::with_capacity(grouping.exprs.len());
        let mut keys = Vec::with_capacity(grouping.exprs.len());
        for expr in &grouping.exprs {
            types.push(ordered(expr)?);
            keys.push(rows.given(expr)?);
        }
        Ok(Some(Self {
            rows,
            exprs: &grouping.exprs,
            keys,
            met: Vec::new(),
            calls: Vec::new(),
            types,
        }))
    }

    /// An expression over the row of a group.
    pub(super) fn given(&mut self, expr: &tree::Expr) -> Result<Expr, Reason> {
        let mut own = expr.clone();
        self.put_columns(&mut own)?;
        let lowering = Lowering {
            row: Row::Group(&self.types),
        };
        lowering.given(&own)
    }

    /// Puts columns of the group's row in the place of keys and aggregates.
    fn put_columns(&mut self, expr: &mut tree::Expr) -> Result<(), Reason> {
        let key = self.exprs.iter().position(|key| key.same(expr));
        let column = match (key, &expr.kind) {
            (Some(key), _) => Some(key),
            (None, ExprKind::Aggregate(call)) => {
                let known = self.met.iter().position(|met| met.same(expr));
                let place = match known {
                    Some(place) => place,
                    None => {
                        self.add(call)?;
                        self.met.push(expr.clone());
                        self.met.len() - 1
                    }
                };
                Some(self.keys.len() + place)
            }
            (None, ExprKind::Column { .. } | ExprKind::WholeRow { .. }) => {
                return Err(Reason::Form("a column that the primary key decides"));
            }
            _ => None,
        };
        if let Some(column) = column {
            expr.kind = ExprKind::Column {
                level: 0,
                relation: GROUP,
                column,
            };
            return Ok(());
        }
        let mut done = Ok(());
        expr.children_mut(&mut |child| {
            if done.is_ok() {
                done = self.put_columns(child);
            }
        });
        done
    }

    /// Adds a call, whose result is the next column of the row.
    fn add(&mut self, call: &Aggregate) -> Result<(), Reason> {
        let is_plain =
            call.level == 0 && call.direct.is_empty() && call.order.is_empty() && !call.distinct;
        if !is_plain {
            return Err(Reason::Form("an aggregate with DISTINCT or an order"));
        }
        let unknown = || Reason::Form("an aggregate that the short path has not");
        let function = function_named(call.function.name).ok_or_else(unknown)?;
        let (argument, argument_type) = match call.arguments.as_slice() {
            [] => (None, DataType::BigInt),
            [argument] => {
                let of = held(argument.oid, argument.modifier).ok_or_else(unknown)?;
                (Some(self.rows.given(argument)?), of)
            }
            _ => return Err(unknown()),
        };
        let result = result_type(function, argument_type).ok_or_else(unknown)?;
        let filter = call.filter.as_ref();
        self.calls.push(AggregateCall {
            function,
            argument,
            argument_type,
            filter: filter.map(|filter| self.rows.given(filter)).transpose()?,
        });
        self.types.push(result);
        Ok(())
    }

    /// Whether it is one row whatever the table holds: then the table is not even read, and its
    /// conditions do not fail.
    pub(super) fn asks_nothing(&self) -> bool {
        self.keys.is_empty() && self.calls.is_empty()
    }

    /// The plan, with this HAVING.
    pub(super) fn plan(self, having: Option<Expr>) -> AggregatePlan {
        AggregatePlan {
            groups: self.keys,
            calls: self.calls,
            having,
            first_row_decides: false,
        }
    }
}

/// The type of a key, whose values the storage must tell apart as PostgreSQL does.
pub(super) fn ordered(expr: &tree::Expr) -> Result<DataType, Reason> {
    match held(expr.oid, expr.modifier) {
        // With and without their blanks they are the same value, and are kept as two.
        Some(DataType::Char(0)) => Err(Reason::Form("an order of char of any length")),
        Some(data_type) if data_type.has_key() => Ok(data_type),
        Some(data_type) => Err(Reason::Order(data_type)),
        None => Err(Reason::Form("an order of values that no table holds")),
    }
}

fn function_named(name: &str) -> Option<AggregateFunction> {
    Some(match name {
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "avg" => AggregateFunction::Average,
        "min" => AggregateFunction::Minimum,
        "max" => AggregateFunction::Maximum,
        "bool_and" | "every" => AggregateFunction::BoolAnd,
        "bool_or" => AggregateFunction::BoolOr,
        _ => return None,
    })
}

/// The type of an aggregate's result, where the short path has the aggregate of such values.
fn result_type(function: AggregateFunction, argument: DataType) -> Option<DataType> {
    use AggregateFunction::{Average, BoolAnd, BoolOr, Count, Maximum, Minimum, Sum};
    Some(match (function, base_type(argument)) {
        (Count, _) => DataType::BigInt,
        (Sum, DataType::SmallInt | DataType::Integer) => DataType::BigInt,
        (Sum, DataType::BigInt | DataType::Numeric { .. }) => DataType::NUMERIC,
        (Sum, floating @ (DataType::Real | DataType::Double)) => floating,
        (Average, DataType::Real | DataType::Double) => DataType::Double,
        (Average, number) if number.is_number() => DataType::NUMERIC,
        (
            Minimum | Maximum,
            DataType::Boolean
            | DataType::Uuid
            | DataType::Bytea
            // Its blanks are not in the value.
            | DataType::Char(_)
            | DataType::Other { .. },
        ) => return None,
        (Minimum | Maximum, DataType::Varchar(_)) => DataType::Text,
        (Minimum | Maximum, other) => other,
        (BoolAnd | BoolOr, DataType::Boolean) => DataType::Boolean,
        _ => return None,
    })
}
