//! ORDER BY, DISTINCT and LIMIT, and what their items mean.

use super::Analyzer;
use super::scope::Clause;
use crate::error::{QueryError, Result};
use crate::tree::{Distinctness, Expr, ExprKind, Order, Query, Target};
use crate::types::{self, format_type, ids};
use pg_raw_parse::Node;
use pg_raw_parse::nodes::{SelectStmt, SortBy};
use pg_raw_parse::raw::{LimitOption, SortByDir, SortByNulls};
use std::sync::Arc;

impl Analyzer<'_> {
    pub(super) fn order(
        &mut self,
        select: &SelectStmt,
        targets: &mut Vec<Target>,
    ) -> Result<Vec<Order>> {
        let mut order: Vec<Order> = Vec::new();
        let before = std::mem::replace(&mut self.level().clause, Clause::Order);
        for sort in select.sort_clause().iter() {
            let target = self.named_target(sort.node(), targets, Clause::Order)?;
            let (descending, nulls_first) = self.direction(sort, &mut targets[target].expr)?;
            if !order.iter().any(|one| one.target == target) {
                order.push(Order {
                    target,
                    descending,
                    nulls_first,
                });
            }
        }
        self.level().clause = before;
        Ok(order)
    }

    /// The direction of a sort, of an expression that has an order.
    pub(super) fn direction(&mut self, sort: &SortBy, expr: &mut Expr) -> Result<(bool, bool)> {
        let undecided = std::mem::replace(expr, Expr::constant(crate::datum::Datum::Null, 0));
        *expr = self.decide_unknown(undecided)?;
        let descending = match sort.sortby_dir {
            SortByDir::SORTBY_DESC => true,
            SortByDir::SORTBY_USING => {
                let sign = sort.use_op().iter().filter_map(Node::as_str).next_back();
                match sign {
                    Some("<") => false,
                    Some(">") => true,
                    other => {
                        return Err(QueryError::new(
                            "42809",
                            format!("operator {} is not a valid ordering operator", other.unwrap_or_default()),
                        )
                        .with_hint("Ordering operators must be \"<\" or \">\" members of btree operator families.")
                        .at(sort.location));
                    }
                }
            }
            _ => false,
        };
        check_ordered(expr)?;
        let nulls_first = match sort.sortby_nulls {
            SortByNulls::SORTBY_NULLS_FIRST => true,
            SortByNulls::SORTBY_NULLS_LAST => false,
            _ => descending,
        };
        Ok((descending, nulls_first))
    }

    /// The target that an item of ORDER BY, GROUP BY or DISTINCT ON means: by its name, its
    /// number, or as an expression, which is added if it is not among them (SQL92's rules).
    pub(super) fn named_target(
        &mut self,
        node: Node<'_>,
        targets: &mut Vec<Target>,
        clause: Clause,
    ) -> Result<usize> {
        if let Node::ColumnRef(column) = node
            && column.fields().len() == 1
            && let Some(name) = column.fields().iter().next().and_then(Node::as_str)
        {
            // In GROUP BY a column of FROM comes first.
            let is_input = clause == Clause::Group && {
                let level = self.levels.len() - 1;
                self.levels[level]
                    .items
                    .iter()
                    .filter(|item| item.open)
                    .any(|item| item.columns.iter().any(|(column, _)| **column == *name))
            };
            if !is_input {
                let mut found: Option<usize> = None;
                for (at, target) in targets.iter().enumerate() {
                    if target.hidden || *target.name != *name {
                        continue;
                    }
                    match found {
                        Some(before) if !targets[before].expr.same(&target.expr) => {
                            return Err(QueryError::new(
                                "42702",
                                format!("{} \"{name}\" is ambiguous", clause.name()),
                            )
                            .at(column.location));
                        }
                        Some(_) => {}
                        None => found = Some(at),
                    }
                }
                if let Some(found) = found {
                    return Ok(found);
                }
            }
        }
        if let Node::A_Const(constant) = node {
            let Some(pg_raw_parse::ConstValue::Integer(place)) = constant.val() else {
                return Err(QueryError::new(
                    "42601",
                    format!("non-integer constant in {}", clause.name()),
                )
                .at(constant.location));
            };
            let shown = targets.iter().filter(|target| !target.hidden).count();
            return match usize::try_from(place) {
                Ok(place) if (1..=shown).contains(&place) => Ok(targets
                    .iter()
                    .enumerate()
                    .filter(|(_, target)| !target.hidden)
                    .nth(place - 1)
                    .map_or(0, |(at, _)| at)),
                _ => Err(QueryError::new(
                    "42P10",
                    format!("{} position {place} is not in select list", clause.name()),
                )
                .at(constant.location)),
            };
        }
        let before = std::mem::replace(&mut self.level().clause, clause);
        let expr = self.expr(node);
        self.level().clause = before;
        Ok(add_target(expr?, targets))
    }

    pub(super) fn distinct(
        &mut self,
        select: &SelectStmt,
        targets: &mut Vec<Target>,
        order: &[Order],
    ) -> Result<Distinctness> {
        let clause = select.distinct_clause();
        if clause.is_empty() {
            return Ok(Distinctness::All);
        }
        let plain = clause.iter().all(|node| matches!(node, Node::None));
        if plain {
            if order.iter().any(|one| targets[one.target].hidden) {
                let place = order.iter().find(|one| targets[one.target].hidden);
                let location = place.map_or(-1, |one| targets[one.target].expr.location);
                return Err(QueryError::new(
                    "42P10",
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                )
                .at(location));
            }
            for target in targets.iter().filter(|target| !target.hidden) {
                check_equality(&target.expr)?;
            }
            return Ok(Distinctness::Distinct);
        }
        let mut on = Vec::new();
        for node in clause.iter() {
            let target = self.named_target(node, targets, Clause::DistinctOn)?;
            if !on.contains(&target) {
                on.push(target);
            }
        }
        // The order must begin with these.
        let mut ended = false;
        let mut seen = 0;
        for one in order {
            if on.contains(&one.target) {
                if ended {
                    return Err(distinct_on_order(targets[one.target].expr.location));
                }
                seen += 1;
            } else {
                ended = true;
            }
        }
        if ended && seen < on.len() {
            let location = on
                .iter()
                .find(|at| !order.iter().any(|one| one.target == **at))
                .map_or(-1, |at| targets[*at].expr.location);
            return Err(distinct_on_order(location));
        }
        Ok(Distinctness::On(on))
    }

    pub(super) fn limits(&mut self, select: &SelectStmt, query: &mut Query) -> Result<()> {
        query.offset = self.limit(select.limit_offset(), Clause::Offset)?;
        query.limit = self.limit(select.limit_count(), Clause::Limit)?;
        query.with_ties = select.limit_option == LimitOption::LIMIT_OPTION_WITH_TIES;
        if query.with_ties && query.order.is_empty() {
            return Err(QueryError::new(
                "42601",
                "WITH TIES cannot be specified without ORDER BY clause",
            ));
        }
        if query.with_ties && matches!(select.limit_count(), Node::A_Const(count) if count.isnull) {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return Err(QueryError::new("2201W", message));
        }
        Ok(())
    }

    pub(super) fn limit(&mut self, node: Node<'_>, clause: Clause) -> Result<Option<Expr>> {
        if matches!(node, Node::None) {
            return Ok(None);
        }
        let before = std::mem::replace(&mut self.level().clause, clause);
        let expr = self.expr(node);
        self.level().clause = before;
        let expr = self.coerce_to_specific(expr?, ids::INT8, clause.name())?;
        let refers = expr.any(&mut |expr| matches!(expr.kind, ExprKind::Column { level: 0, .. }));
        if refers {
            return Err(QueryError::new(
                "42P10",
                format!("argument of {} must not contain variables", clause.name()),
            )
            .at(expr.location));
        }
        Ok(Some(expr))
    }
}

/// The target that is this expression, added if there is none.
pub(super) fn add_target(expr: Expr, targets: &mut Vec<Target>) -> usize {
    if let Some(at) = targets.iter().position(|target| target.expr.same(&expr)) {
        return at;
    }
    targets.push(Target {
        expr,
        name: Arc::from("?column?"),
        hidden: true,
        origin: None,
    });
    targets.len() - 1
}

/// 42883 for a type that has no order.
pub(super) fn check_ordered(expr: &Expr) -> Result<()> {
    match has_order(expr.oid) {
        true => Ok(()),
        false => Err(QueryError::new(
            "42883",
            format!(
                "could not identify an ordering operator for type {}",
                format_type(expr.oid, -1)
            ),
        )
        .with_hint("Use an explicit ordering operator or modify the query.")
        .at(expr.location)),
    }
}

/// 42883 for a type whose values can't be told equal.
pub(super) fn check_equality(expr: &Expr) -> Result<()> {
    match has_order(expr.oid) || matches!(expr.oid, ids::XID | ids::CID | ids::ACLITEM) {
        true => Ok(()),
        false => Err(QueryError::new(
            "42883",
            format!(
                "could not identify an equality operator for type {}",
                format_type(expr.oid, -1)
            ),
        )
        .at(expr.location)),
    }
}

fn has_order(oid: u32) -> bool {
    match types::element_of(oid) {
        Some(element) => has_order(element),
        None => {
            oid == ids::RECORD
                || oid == ids::UNKNOWN
                || types::by_oid(oid)
                    .is_none_or(|row| row.compare.is_some() || row.oid == ids::RECORD)
        }
    }
}

fn distinct_on_order(location: i32) -> QueryError {
    QueryError::new(
        "42P10",
        "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
    )
    .at(location)
}
