//! SELECT and VALUES: targets, order, distinct, limits.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{ColumnRef, ResTarget, SelectStmt};
use pg_raw_parse::raw::{LockClauseStrength, LockWaitPolicy, SetOperation};

use super::coerce::{common_modifier, common_type, returns_set};
use super::scope::{Clause, Level};
use super::{Analyzer, column_name};
use crate::error::{QueryError, Result};
use crate::tree::{
    Column, Distinctness, Expr, ExprKind, From, Query, Relation, RelationKind, RowLock, Target,
};
use crate::types::format_type;

/// The most columns of a result, as PostgreSQL's.
const TARGETS_MAX: usize = 1664;

/// A recursive query: its place in the WITH of the level before, and the names it gives its columns.
pub(super) type Recursive<'r> = Option<(usize, &'r Vec<String>)>;

impl Analyzer<'_> {
    /// A whole query in a level of its own.
    pub(super) fn query(&mut self, select: &SelectStmt, recursive: Recursive<'_>) -> Result<Query> {
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            if self.levels.len() > 200 {
                return Err(QueryError::new("54001", "stack depth limit exceeded")
                    .with_hint("Queries are nested too deeply."));
            }
            self.levels.push(Level::default());
            let query = self.query_here(select, recursive, true);
            self.levels.pop();
            query
        })
    }

    /// A query whose literals keep their unknown type: a side of a set operation.
    pub(super) fn query_undecided(&mut self, select: &SelectStmt) -> Result<Query> {
        self.levels.push(Level::default());
        let query = self.query_here(select, None, false);
        self.levels.pop();
        query
    }

    fn query_here(
        &mut self,
        select: &SelectStmt,
        recursive: Recursive<'_>,
        decide: bool,
    ) -> Result<Query> {
        if select.into_clause().is_some() {
            return Err(QueryError::new(
                "42601",
                "SELECT ... INTO is not allowed here",
            ));
        }
        if let Some(with) = select.with_clause() {
            self.with_clause(with)?;
        }
        let mut query = match () {
            () if !select.values_lists().is_empty() => self.values(select)?,
            () if select.op != SetOperation::SETOP_NONE => {
                self.set_operation_query(select, recursive)?
            }
            () => self.select(select, decide)?,
        };
        let level = self.level();
        query.with = std::mem::take(&mut level.with);
        query.relations = std::mem::take(&mut level.relations);
        query.windows = std::mem::take(&mut level.windows);
        Ok(query)
    }

    fn select(&mut self, select: &SelectStmt, decide: bool) -> Result<Query> {
        let mut query = Query {
            from: self.members_of_from(select.from_clause())?,
            ..Query::default()
        };
        self.window_clause(select.window_clause())?;
        query.targets = self.targets_of(select.target_list().iter())?;
        query.filter = self.condition(select.where_clause(), Clause::Where)?;
        query.having = self.condition(select.having_clause(), Clause::Having)?;
        query.order = self.order(select, &mut query.targets)?;
        let mut group = self.group_clause(select, &mut query.targets)?;
        query.distinct = self.distinct(select, &mut query.targets, &query.order)?;
        self.limits(select, &mut query)?;
        if decide || query.distinct != Distinctness::All {
            // What is compared has a type.
            for target in &mut query.targets {
                let expr = std::mem::replace(
                    &mut target.expr,
                    Expr::constant(crate::datum::Datum::Null, 0),
                );
                target.expr = self.decide_unknown(expr)?;
            }
        }
        let level = self.level();
        if group.is_none() && (level.has_aggregates || query.having.is_some()) {
            group = Some(crate::tree::Grouping {
                exprs: Vec::new(),
                sets: vec![Vec::new()],
            });
        }
        query.group = group;
        query.has_set_targets = query.targets.iter().any(|target| returns_set(&target.expr));
        self.check_groups(&mut query)?;
        self.locks(select, &mut query)?;
        Ok(query)
    }

    pub(super) fn condition(&mut self, node: Node<'_>, clause: Clause) -> Result<Option<Expr>> {
        if matches!(node, Node::None) {
            return Ok(None);
        }
        let before = std::mem::replace(&mut self.level().clause, clause);
        let expr = self.expr(node);
        self.level().clause = before;
        self.coerce_to_bool(expr?, clause.name()).map(Some)
    }

    /// A list of results.
    pub(super) fn targets_of<'n>(
        &mut self,
        written: impl Iterator<Item = &'n ResTarget>,
    ) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        for target in written {
            if let Node::ColumnRef(column) = target.val()
                && matches!(column.fields().iter().next_back(), Some(Node::A_Star(_)))
            {
                self.star(column, &mut targets)?;
                continue;
            }
            if let Node::A_Indirection(indirection) = target.val()
                && matches!(
                    indirection.indirection().iter().next_back(),
                    Some(Node::A_Star(_))
                )
            {
                self.row_star(indirection, &mut targets)?;
                continue;
            }
            let expr = self.expr(target.val())?;
            targets.push(self.target(target, expr));
        }
        if targets.len() > TARGETS_MAX {
            return Err(QueryError::new(
                "54011",
                format!("target lists can have at most {TARGETS_MAX} entries"),
            ));
        }
        Ok(targets)
    }

    fn target(&mut self, target: &ResTarget, expr: Expr) -> Target {
        let name = match target.name() {
            Some(name) => Arc::from(name),
            None => Arc::from(column_name::of(target.val())),
        };
        Target {
            origin: self.origin(&expr),
            expr,
            name,
            hidden: false,
        }
    }

    /// The table's column that an expression is.
    fn origin(&self, expr: &Expr) -> Option<(u32, i16)> {
        let ExprKind::Column {
            level,
            relation,
            column,
        } = expr.kind
        else {
            return None;
        };
        let at = self.levels.len().checked_sub(1 + level)?;
        self.levels[at]
            .relations
            .get(relation)?
            .columns
            .get(column)?
            .origin
    }

    /// `*` and `t.*`
    fn star(&mut self, column: &ColumnRef, targets: &mut Vec<Target>) -> Result<()> {
        let names: Vec<&str> = column.fields().iter().filter_map(Node::as_str).collect();
        let location = column.location;
        let mut add = |analyzer: &mut Self, columns: Vec<(Arc<str>, Expr)>, up: usize| {
            for (name, mut expr) in columns {
                expr.raise_levels(0, up.cast_signed());
                expr.location = location;
                targets.push(Target {
                    origin: analyzer.origin(&expr),
                    expr,
                    name,
                    hidden: false,
                });
            }
        };
        let (schema, name) = match names.as_slice() {
            [] => {
                let open: Vec<(Arc<str>, Expr)> = self
                    .level()
                    .items
                    .iter()
                    .filter(|item| item.open)
                    .flat_map(|item| item.columns.iter().cloned())
                    .collect();
                if self.level().items.is_empty() {
                    return Err(QueryError::new(
                        "42601",
                        "SELECT * with no tables specified is not valid",
                    )
                    .at(location));
                }
                add(self, open, 0);
                return Ok(());
            }
            [name] => (None, *name),
            [schema, name] => (Some(*schema), *name),
            [_, schema, name] => (Some(*schema), *name),
            _ => {
                return Err(QueryError::new(
                    "42601",
                    format!(
                        "improper qualified name (too many dotted names): {}.*",
                        names.join(".")
                    ),
                )
                .at(location));
            }
        };
        let Some((item, up)) = self.item(schema, name, location)? else {
            let columns = self.columns_of_variable(&names, location)?;
            let columns = columns.ok_or_else(|| self.missing_item(name, location))?;
            for (name, expr) in columns {
                targets.push(Target {
                    expr,
                    name,
                    hidden: false,
                    origin: None,
                });
            }
            return Ok(());
        };
        add(self, item.columns, up);
        Ok(())
    }

    /// `(row).*`
    fn row_star(
        &mut self,
        indirection: &pg_raw_parse::nodes::A_Indirection,
        targets: &mut Vec<Target>,
    ) -> Result<()> {
        let mut expr = self.expr(indirection.arg())?;
        let steps: Vec<Node<'_>> = indirection.indirection().iter().collect();
        for step in &steps[..steps.len() - 1] {
            expr = self.step(expr, *step, -1)?;
        }
        let Some(columns) = self.row_columns(&expr) else {
            return Err(QueryError::new(
                "42809",
                format!("type {} is not composite", format_type(expr.oid, -1)),
            )
            .at(expr.location));
        };
        for (at, column) in columns.into_iter().enumerate() {
            let field = Expr::new(
                ExprKind::Field(Box::new(expr.clone()), at),
                column.oid,
                expr.location,
            )
            .with_modifier(column.modifier);
            targets.push(Target {
                expr: field,
                name: column.name,
                hidden: false,
                origin: None,
            });
        }
        Ok(())
    }

    fn values(&mut self, select: &SelectStmt) -> Result<Query> {
        let before = std::mem::replace(&mut self.level().clause, Clause::Values);
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        for row in select.values_lists().iter() {
            let Some(row) = row.as_node_list() else {
                continue;
            };
            let mut exprs = Vec::with_capacity(row.len());
            for node in row.iter() {
                if matches!(node, Node::SetToDefault(_)) {
                    return Err(QueryError::new(
                        "42601",
                        "DEFAULT is not allowed in this context",
                    ));
                }
                exprs.extend(self.row_part(node)?);
            }
            if rows.first().is_some_and(|first| first.len() != exprs.len()) {
                let location = exprs.first().map_or(-1, |expr| expr.location);
                return Err(
                    QueryError::new("42601", "VALUES lists must all be the same length")
                        .at(location),
                );
            }
            rows.push(exprs);
        }
        self.level().clause = before;
        let width = rows.first().map_or(0, Vec::len);
        let mut columns = Vec::with_capacity(width);
        for at in 0..width {
            let members: Vec<&Expr> = rows.iter().map(|row| &row[at]).collect();
            let oid = common_type(&members, "VALUES")?;
            let modifier = common_modifier(&members, oid);
            for row in &mut rows {
                let expr =
                    std::mem::replace(&mut row[at], Expr::constant(crate::datum::Datum::Null, 0));
                row[at] = self.coerce_to_common(expr, oid, "VALUES")?;
            }
            columns.push(Column {
                name: Arc::from(format!("column{}", at + 1)),
                oid,
                modifier,
                origin: None,
            });
        }
        let lateral = rows
            .iter()
            .flatten()
            .any(|expr| crate::walk::expr_refers_out(expr, 0));
        let relation = Relation {
            kind: RelationKind::Values(rows, lateral),
            alias: Arc::from("*VALUES*"),
            columns,
            reader: None,
        };
        let (place, item) = self.add_relation(relation, None);
        let mut query = Query {
            from: vec![From::Relation(place)],
            ..Query::default()
        };
        query.targets = item
            .columns
            .iter()
            .map(|(name, expr)| Target {
                expr: expr.clone(),
                name: Arc::clone(name),
                hidden: false,
                origin: None,
            })
            .collect();
        self.level().items.push(item);
        query.order = self.order(select, &mut query.targets)?;
        self.limits(select, &mut query)?;
        if !select.locking_clause().is_empty() {
            return Err(QueryError::unsupported(
                "FOR UPDATE cannot be applied to VALUES",
                "Leave the locking clause out.",
            ));
        }
        Ok(query)
    }

    fn locks(&mut self, select: &SelectStmt, query: &mut Query) -> Result<()> {
        for clause in select.locking_clause().iter() {
            let strength = match clause.strength {
                LockClauseStrength::LCS_FORKEYSHARE => 1,
                LockClauseStrength::LCS_FORSHARE => 2,
                LockClauseStrength::LCS_FORNOKEYUPDATE => 3,
                _ => 4,
            };
            let wait = match clause.wait_policy {
                LockWaitPolicy::LockWaitSkip => 1,
                LockWaitPolicy::LockWaitError => 2,
                _ => 0,
            };
            let name = [
                "",
                "FOR KEY SHARE",
                "FOR SHARE",
                "FOR NO KEY UPDATE",
                "FOR UPDATE",
            ][usize::from(strength)];
            let conflict = match () {
                () if query.distinct != Distinctness::All => Some("DISTINCT clause"),
                () if query
                    .group
                    .as_ref()
                    .is_some_and(|group| !group.exprs.is_empty()) =>
                {
                    Some("GROUP BY clause")
                }
                () if query.having.is_some() => Some("HAVING clause"),
                () if query.group.is_some() => Some("aggregate functions"),
                () if self.level().has_windows => Some("window functions"),
                () if query.has_set_targets => Some("set-returning functions in the target list"),
                () => None,
            };
            if let Some(conflict) = conflict {
                return Err(QueryError::unsupported(
                    format!("{name} is not allowed with {conflict}"),
                    "Lock the rows in a subquery, and write the other clause outside of it.",
                ));
            }
            let wanted: Vec<&str> = clause
                .locked_rels()
                .iter()
                .filter_map(|node| match node {
                    Node::RangeVar(range) => range.relname(),
                    _ => None,
                })
                .collect();
            for name_wanted in &wanted {
                let there = self
                    .level()
                    .relations
                    .iter()
                    .any(|relation| *relation.alias == **name_wanted);
                if !there {
                    return Err(QueryError::new(
                        "42P01",
                        format!(
                            "relation \"{name_wanted}\" in {name} clause not found in FROM clause"
                        ),
                    ));
                }
            }
            for (relation, of) in self.level().relations.iter().enumerate() {
                if wanted.is_empty() || wanted.contains(&&*of.alias) {
                    query.locks.push(RowLock {
                        relation,
                        strength,
                        wait,
                    });
                }
            }
        }
        Ok(())
    }
}
