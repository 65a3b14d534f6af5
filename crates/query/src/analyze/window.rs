//! Windows: what is written in WINDOW and in OVER.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::nodes::WindowDef;
use pg_raw_parse::raw;

use super::Analyzer;
use super::order::check_equality;
use super::scope::Clause;
use crate::error::{QueryError, Result};
use crate::tree::{Bound, Exclusion, Expr, ExprKind, FrameUnit, SortKey, Window};
use crate::types::domain::base;
use crate::types::{self, format_type, ids};

const fn has(options: i32, flag: u32) -> bool {
    options & flag as i32 != 0
}

impl Analyzer<'_> {
    pub(super) fn window_clause(&mut self, nodes: &pg_raw_parse::list::NodeList) -> Result<()> {
        for node in nodes.iter() {
            let Node::WindowDef(definition) = node else {
                continue;
            };
            let name = definition.name().unwrap_or_default();
            if self
                .level()
                .windows
                .iter()
                .any(|window| window.name.as_deref() == Some(name))
            {
                return Err(QueryError::new(
                    "42P20",
                    format!("window \"{name}\" is already defined"),
                )
                .at(definition.location));
            }
            let window = self.window(definition)?;
            self.level().windows.push(window);
        }
        Ok(())
    }

    /// The window of an OVER: its place.
    pub(super) fn over(&mut self, definition: &WindowDef) -> Result<usize> {
        if let Some(name) = definition.name() {
            let place = self
                .level()
                .windows
                .iter()
                .position(|window| window.name.as_deref() == Some(name));
            return place.ok_or_else(|| no_window(name, definition.location));
        }
        let window = self.window(definition)?;
        let same = self
            .level()
            .windows
            .iter()
            .position(|other| other.name.is_none() && same_window(other, &window));
        if let Some(place) = same {
            return Ok(place);
        }
        self.level().windows.push(window);
        Ok(self.level().windows.len() - 1)
    }

    fn window(&mut self, definition: &WindowDef) -> Result<Window> {
        let base = match definition.refname() {
            None => None,
            Some(name) => {
                let found = self
                    .level()
                    .windows
                    .iter()
                    .find(|window| window.name.as_deref() == Some(name))
                    .cloned();
                Some(found.ok_or_else(|| no_window(name, definition.location))?)
            }
        };
        let mut partition = Vec::new();
        let clause = std::mem::replace(&mut self.level().clause, Clause::WindowPartition);
        for node in definition.partition_clause().iter() {
            let expr = self.expr(node)?;
            let expr = self.decide_unknown(expr)?;
            check_equality(&expr)?;
            partition.push(expr);
        }
        self.level().clause = Clause::WindowOrder;
        let mut order = Vec::new();
        for sort in definition.order_clause().iter() {
            let mut expr = self.expr(sort.node())?;
            let (descending, nulls_first) = self.direction(sort, &mut expr)?;
            order.push(SortKey {
                expr,
                descending,
                nulls_first,
            });
        }
        if let Some(base) = &base {
            let name = definition.refname().unwrap_or_default();
            let refused = match () {
                () if !partition.is_empty() => Some(format!(
                    "cannot override PARTITION BY clause of window \"{name}\""
                )),
                () if !order.is_empty() && !base.order.is_empty() => Some(format!(
                    "cannot override ORDER BY clause of window \"{name}\""
                )),
                () if base.framed => Some(format!(
                    "cannot copy window \"{name}\" because it has a frame clause"
                )),
                () => None,
            };
            if let Some(message) = refused {
                return Err(QueryError::new("42P20", message).at(definition.location));
            }
            partition.clone_from(&base.partition);
            if order.is_empty() {
                order.clone_from(&base.order);
            }
        }
        self.level().clause = Clause::WindowFrame;
        let options = definition.frame_options;
        let unit = match () {
            () if has(options, raw::FRAMEOPTION_ROWS) => FrameUnit::Rows,
            () if has(options, raw::FRAMEOPTION_GROUPS) => FrameUnit::Groups,
            () => FrameUnit::Range,
        };
        let framed = has(options, raw::FRAMEOPTION_NONDEFAULT);
        if unit == FrameUnit::Groups && order.is_empty() && framed {
            return Err(
                QueryError::new("42P20", "GROUPS mode requires an ORDER BY clause")
                    .at(definition.location),
            );
        }
        let start = match () {
            () if has(options, raw::FRAMEOPTION_START_CURRENT_ROW) => Bound::Current,
            () if has(options, raw::FRAMEOPTION_START_OFFSET_PRECEDING) => Bound::Preceding(
                self.frame_offset(definition.start_offset(), unit, &order, definition.location)?,
            ),
            () if has(options, raw::FRAMEOPTION_START_OFFSET_FOLLOWING) => Bound::Following(
                self.frame_offset(definition.start_offset(), unit, &order, definition.location)?,
            ),
            () => Bound::Unbounded,
        };
        let end = match () {
            () if has(options, raw::FRAMEOPTION_END_UNBOUNDED_FOLLOWING) => Bound::Unbounded,
            () if has(options, raw::FRAMEOPTION_END_OFFSET_PRECEDING) => Bound::Preceding(
                self.frame_offset(definition.end_offset(), unit, &order, definition.location)?,
            ),
            () if has(options, raw::FRAMEOPTION_END_OFFSET_FOLLOWING) => Bound::Following(
                self.frame_offset(definition.end_offset(), unit, &order, definition.location)?,
            ),
            () => Bound::Current,
        };
        let exclusion = match () {
            () if has(options, raw::FRAMEOPTION_EXCLUDE_CURRENT_ROW) => Exclusion::Current,
            () if has(options, raw::FRAMEOPTION_EXCLUDE_GROUP) => Exclusion::Group,
            () if has(options, raw::FRAMEOPTION_EXCLUDE_TIES) => Exclusion::Ties,
            () => Exclusion::None,
        };
        self.level().clause = clause;
        Ok(Window {
            name: definition.name().map(Arc::from),
            partition,
            order,
            unit,
            start,
            end,
            exclusion,
            framed,
        })
    }

    fn frame_offset(
        &mut self,
        node: Node<'_>,
        unit: FrameUnit,
        order: &[SortKey],
        location: i32,
    ) -> Result<Expr> {
        let expr = self.expr(node)?;
        let construct = match unit {
            FrameUnit::Rows => "ROWS",
            FrameUnit::Groups => "GROUPS",
            FrameUnit::Range => "RANGE",
        };
        let expr = match unit {
            FrameUnit::Rows | FrameUnit::Groups => {
                self.coerce_to_specific(expr, ids::INT8, construct)?
            }
            FrameUnit::Range => {
                let [key] = order else {
                    return Err(QueryError::new(
                        "42P20",
                        "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column",
                    )
                    .at(location));
                };
                let wanted = match base(key.expr.oid) {
                    ids::DATE
                    | ids::TIME
                    | ids::TIMETZ
                    | ids::TIMESTAMP
                    | ids::TIMESTAMPTZ
                    | ids::INTERVAL => ids::INTERVAL,
                    ids::INT2 | ids::INT4 | ids::INT8 if expr.oid != ids::UNKNOWN => expr.oid,
                    ids::FLOAT4 => ids::FLOAT8,
                    oid if types::category(oid) == b'N' && oid != ids::OID => oid,
                    oid => {
                        return Err(QueryError::unsupported(format!(
                            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                            format_type(oid, -1)
                        ), "Use ROWS, or order by a number or a time.")
                        .at(location));
                    }
                };
                self.coerce_to_specific(expr, wanted, construct)?
            }
        };
        let refers = expr.any(&mut |expr| matches!(expr.kind, ExprKind::Column { level: 0, .. }));
        if refers {
            return Err(QueryError::new(
                "42P10",
                format!("argument of {construct} must not contain variables"),
            )
            .at(expr.location));
        }
        Ok(expr)
    }
}

fn no_window(name: &str, location: i32) -> QueryError {
    QueryError::new("42704", format!("window \"{name}\" does not exist")).at(location)
}

fn same_window(a: &Window, b: &Window) -> bool {
    let same =
        |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b));
    let bound = |a: &Bound, b: &Bound| match (a, b) {
        (Bound::Preceding(a), Bound::Preceding(b)) | (Bound::Following(a), Bound::Following(b)) => {
            a.same(b)
        }
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    same(&a.partition, &b.partition)
        && a.order.len() == b.order.len()
        && a.order.iter().zip(&b.order).all(|(a, b)| {
            a.expr.same(&b.expr) && (a.descending, a.nulls_first) == (b.descending, b.nulls_first)
        })
        && (a.unit, a.exclusion) == (b.unit, b.exclusion)
        && bound(&a.start, &b.start)
        && bound(&a.end, &b.end)
}
