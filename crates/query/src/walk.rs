//! Walks over expressions and queries, and when two expressions are the same.

use std::collections::BTreeSet;

use crate::datum::Datum;
use crate::tree::{
    Bound, Expr, ExprKind, From, Part, Query, Relation, RelationKind, SetOperation, SortKey,
    Subquery,
};

/// Calls `f` with what is directly within an expression; the same for both ways of borrowing it.
macro_rules! each_child {
    ($kind:expr, $f:ident, $iter:ident $(, $mutable:tt)?) => {
        match $kind {
            ExprKind::Constant(_)
            | ExprKind::Parameter(_)
            | ExprKind::Column { .. }
            | ExprKind::WholeRow { .. }
            | ExprKind::Element
            | ExprKind::CaseOperand
            | ExprKind::SubqueryColumn(_)
            | ExprKind::Grouping(..)
            | ExprKind::Now(_) => {}
            ExprKind::Call(call) | ExprKind::Distinct(call, _) | ExprKind::NullIf(call) => {
                call.arguments.$iter().for_each($f);
            }
            ExprKind::Relabel(inner)
            | ExprKind::ThroughText(inner)
            | ExprKind::Checked(inner)
            | ExprKind::Fit(inner, _)
            | ExprKind::Not(inner)
            | ExprKind::IsNull(inner, _)
            | ExprKind::Is(inner, _, _)
            | ExprKind::Field(inner, _) => $f(inner),
            ExprKind::ArrayCast(inner, cast) => {
                $f(inner);
                $f(cast);
            }
            ExprKind::RowCast(inner, casts) => {
                $f(inner);
                casts.$iter().for_each($f);
            }
            ExprKind::And(parts)
            | ExprKind::Or(parts)
            | ExprKind::Coalesce(parts)
            | ExprKind::Extreme(parts, _)
            | ExprKind::Array(parts, _)
            | ExprKind::Row(parts) => parts.$iter().for_each($f),
            ExprKind::Case(case) => {
                case.operand.$iter().for_each(&mut *$f);
                for (condition, value) in case.branches.$iter() {
                    $f(condition);
                    $f(value);
                }
                $f(& $($mutable)? case.otherwise);
            }
            ExprKind::AnyOfArray(comparison) => {
                $f(& $($mutable)? comparison.value);
                $f(& $($mutable)? comparison.array);
            }
            ExprKind::RowComparison(comparison) => {
                for (left, right) in comparison.pairs.$iter() {
                    $f(left);
                    $f(right);
                }
            }
            ExprKind::Subscript(subscript) => {
                $f(& $($mutable)? subscript.value);
                for (lower, upper) in subscript.bounds.$iter() {
                    lower.$iter().chain(upper.$iter()).for_each(&mut *$f);
                }
            }
            ExprKind::Store(store) => {
                $f(& $($mutable)? store.container);
                $f(& $($mutable)? store.value);
                if let Part::Elements(bounds, _) = & $($mutable)? store.part {
                    for (lower, upper) in bounds.$iter() {
                        lower.$iter().chain(upper.$iter()).for_each(&mut *$f);
                    }
                }
            }
            ExprKind::Subquery(subquery) => subquery.test.$iter().for_each($f),
            ExprKind::Aggregate(call) => {
                let call = & $($mutable)? **call;
                call.direct
                    .$iter()
                    .chain(call.arguments.$iter())
                    .chain(call.order.$iter().map(|key| & $($mutable)? key.expr))
                    .chain(call.filter.$iter())
                    .for_each($f);
            }
            ExprKind::Window(call) => {
                let call = & $($mutable)? **call;
                call.arguments.$iter().chain(call.filter.$iter()).for_each($f);
            }
        }
    };
}

impl Expr {
    /// Calls `f` with every expression directly within this one. A subquery's test is one, its query's are not.
    pub fn children<'e>(&'e self, f: &mut dyn FnMut(&'e Self)) {
        each_child!(&self.kind, f, iter);
    }

    /// As [`Expr::children`], to change them.
    pub fn children_mut(&mut self, f: &mut dyn FnMut(&mut Self)) {
        each_child!(&mut self.kind, f, iter_mut, mut);
    }

    /// Whether `f` is true of this expression or of one within it, subqueries left out.
    pub fn any(&self, f: &mut dyn FnMut(&Self) -> bool) -> bool {
        if f(self) {
            return true;
        }
        let mut found = false;
        self.children(&mut |child| found = found || child.any(f));
        found
    }

    /// Adds `by` to the level of whatever refers `from` or more queries out: for an
    /// expression that moves into a query further in, or out of one.
    pub fn raise_levels(&mut self, from: usize, by: isize) {
        match &mut self.kind {
            ExprKind::Column { level, .. }
            | ExprKind::WholeRow { level, .. }
            | ExprKind::Grouping(_, level)
                if *level >= from =>
            {
                *level = level.saturating_add_signed(by);
            }
            ExprKind::Aggregate(call) if call.level >= from => {
                call.level = call.level.saturating_add_signed(by);
            }
            ExprKind::Subquery(subquery) => {
                subquery.query.raise_levels(from + 1, by);
            }
            _ => {}
        }
        self.children_mut(&mut |child| child.raise_levels(from, by));
    }

    /// Whether both mean the same wherever they stand.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        if self.oid != other.oid || !self.same_itself(other) {
            return false;
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.children(&mut |child| left.push(child));
        other.children(&mut |child| right.push(child));
        left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| a.same(b))
    }

    fn same_itself(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (ExprKind::Constant(a), ExprKind::Constant(b)) => same_value(self.oid, a, b),
            (ExprKind::Parameter(a), ExprKind::Parameter(b)) => a == b,
            (
                ExprKind::Column {
                    level,
                    relation,
                    column,
                },
                ExprKind::Column {
                    level: other_level,
                    relation: other_relation,
                    column: other_column,
                },
            ) => (level, relation, column) == (other_level, other_relation, other_column),
            (
                ExprKind::WholeRow { level, relation },
                ExprKind::WholeRow {
                    level: other_level,
                    relation: other_relation,
                },
            ) => (level, relation) == (other_level, other_relation),
            (ExprKind::Call(a), ExprKind::Call(b)) | (ExprKind::NullIf(a), ExprKind::NullIf(b)) => {
                a.function.oid == b.function.oid
            }
            (ExprKind::Distinct(a, not_a), ExprKind::Distinct(b, not_b)) => {
                a.function.oid == b.function.oid && not_a == not_b
            }
            (ExprKind::Fit(_, a), ExprKind::Fit(_, b)) => a == b && self.modifier == other.modifier,
            (ExprKind::IsNull(_, a), ExprKind::IsNull(_, b))
            | (ExprKind::Extreme(_, a), ExprKind::Extreme(_, b))
            | (ExprKind::Array(_, a), ExprKind::Array(_, b)) => a == b,
            (ExprKind::Is(_, a, not_a), ExprKind::Is(_, b, not_b)) => (a, not_a) == (b, not_b),
            (ExprKind::Case(a), ExprKind::Case(b)) => {
                a.operand.is_some() == b.operand.is_some() && a.branches.len() == b.branches.len()
            }
            (ExprKind::AnyOfArray(a), ExprKind::AnyOfArray(b)) => {
                a.function.oid == b.function.oid && a.any == b.any
            }
            (ExprKind::RowComparison(a), ExprKind::RowComparison(b)) => {
                a.comparison == b.comparison
            }
            (ExprKind::Subscript(a), ExprKind::Subscript(b)) => {
                a.slice == b.slice
                    && a.bounds.len() == b.bounds.len()
                    && a.bounds.iter().zip(&b.bounds).all(|(a, b)| {
                        a.0.is_some() == b.0.is_some() && a.1.is_some() == b.1.is_some()
                    })
            }
            // Parts of values are changed where nothing is compared.
            (ExprKind::Store(_), ExprKind::Store(_)) => false,
            (ExprKind::Field(_, a), ExprKind::Field(_, b))
            | (ExprKind::SubqueryColumn(a), ExprKind::SubqueryColumn(b)) => a == b,
            (ExprKind::Grouping(a, out), ExprKind::Grouping(b, other)) => a == b && out == other,
            (ExprKind::Now(a), ExprKind::Now(b)) => a == b && self.modifier == other.modifier,
            (ExprKind::Aggregate(a), ExprKind::Aggregate(b)) => {
                a.function.oid == b.function.oid
                    && (a.level, a.distinct) == (b.level, b.distinct)
                    && (
                        a.direct.len(),
                        a.arguments.len(),
                        a.order.len(),
                        a.filter.is_some(),
                    ) == (
                        b.direct.len(),
                        b.arguments.len(),
                        b.order.len(),
                        b.filter.is_some(),
                    )
                    && a.order.iter().zip(&b.order).all(|(a, b)| {
                        (a.descending, a.nulls_first) == (b.descending, b.nulls_first)
                    })
            }
            (ExprKind::Window(a), ExprKind::Window(b)) => {
                a.function.oid == b.function.oid
                    && a.window == b.window
                    && a.filter.is_some() == b.filter.is_some()
            }
            // Queries are not looked into: two of them are never the same.
            (ExprKind::Subquery(_), ExprKind::Subquery(_)) => false,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

fn same_value(oid: u32, a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Null, _) | (_, Datum::Null) => false,
        // `1.0` and `1.00` are equal and yet different constants.
        (Datum::Numeric(a), Datum::Numeric(b)) => a.to_string() == b.to_string(),
        (Datum::Text(a), Datum::Text(b)) => a == b,
        _ => crate::types::compare(oid, a, b).is_ok_and(std::cmp::Ordering::is_eq),
    }
}

impl Query {
    /// Calls `f` with every expression of this query, and of queries in its FROM and WITH;
    /// what is within expressions is left to `f`.
    pub fn exprs<'q>(&'q self, f: &mut dyn FnMut(&'q Expr)) {
        for common in &self.with {
            common.query.exprs(f);
        }
        for relation in &self.relations {
            match &relation.kind {
                RelationKind::Subquery(query, _) => query.exprs(f),
                RelationKind::Functions { calls, .. } => {
                    calls.iter().for_each(|(call, _)| f(call));
                }
                RelationKind::Values(rows, _) => rows.iter().flatten().for_each(&mut *f),
                RelationKind::Table(_) | RelationKind::Common { .. } => {}
            }
        }
        self.own_exprs(f);
    }

    /// As [`Query::exprs`], without relations and WITH.
    pub fn own_exprs<'q>(&'q self, f: &mut dyn FnMut(&'q Expr)) {
        fn joins<'q>(from: &'q From, f: &mut dyn FnMut(&'q Expr)) {
            if let From::Join {
                left,
                right,
                condition,
                ..
            } = from
            {
                joins(left, f);
                joins(right, f);
                condition.iter().for_each(f);
            }
        }
        for from in &self.from {
            joins(from, f);
        }
        self.filter.iter().for_each(&mut *f);
        self.targets.iter().for_each(|target| f(&target.expr));
        if let Some(group) = &self.group {
            group.exprs.iter().for_each(&mut *f);
        }
        self.having.iter().for_each(&mut *f);
        for window in &self.windows {
            window.partition.iter().for_each(&mut *f);
            window.order.iter().for_each(|key: &SortKey| f(&key.expr));
            for bound in [&window.start, &window.end] {
                if let Bound::Preceding(expr) | Bound::Following(expr) = bound {
                    f(expr);
                }
            }
        }
        self.limit.iter().chain(&self.offset).for_each(f);
    }

    /// As [`Query::exprs`], to change them. Levels within queries of FROM and WITH are one
    /// more than here: `f` is told of expressions of this query only, and those queries'
    /// expressions are raised by themselves.
    pub fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        fn joins(from: &mut From, f: &mut dyn FnMut(&mut Expr)) {
            if let From::Join {
                left,
                right,
                condition,
                ..
            } = from
            {
                joins(left, f);
                joins(right, f);
                condition.iter_mut().for_each(f);
            }
        }
        for relation in &mut self.relations {
            match &mut relation.kind {
                RelationKind::Functions { calls, .. } => {
                    calls.iter_mut().for_each(|(call, _)| f(call));
                }
                RelationKind::Values(rows, _) => rows.iter_mut().flatten().for_each(&mut *f),
                RelationKind::Subquery(..)
                | RelationKind::Table(_)
                | RelationKind::Common { .. } => {}
            }
        }
        for from in &mut self.from {
            joins(from, f);
        }
        self.filter.iter_mut().for_each(&mut *f);
        self.targets
            .iter_mut()
            .for_each(|target| f(&mut target.expr));
        if let Some(group) = &mut self.group {
            group.exprs.iter_mut().for_each(&mut *f);
        }
        self.having.iter_mut().for_each(&mut *f);
        for window in &mut self.windows {
            window.partition.iter_mut().for_each(&mut *f);
            window.order.iter_mut().for_each(|key| f(&mut key.expr));
            for bound in [&mut window.start, &mut window.end] {
                if let Bound::Preceding(expr) | Bound::Following(expr) = bound {
                    f(expr);
                }
            }
        }
        self.limit.iter_mut().chain(&mut self.offset).for_each(f);
    }

    /// Adds `by` to the levels of all that refers to queries `from` or more further out than this one.
    pub fn raise_levels(&mut self, from: usize, by: isize) {
        for common in &mut self.with {
            common.query.raise_levels(from + 1, by);
        }
        for relation in &mut self.relations {
            match &mut relation.kind {
                RelationKind::Subquery(query, _) => query.raise_levels(from + 1, by),
                RelationKind::Common { level, .. } if *level >= from => {
                    *level = level.saturating_add_signed(by);
                }
                _ => {}
            }
        }
        self.exprs_mut(&mut |expr| expr.raise_levels(from, by));
    }
}

impl Query {
    /// Whether it or a query within it locks rows.
    #[must_use]
    pub fn locks_rows(&self) -> bool {
        let mut found = !self.locks.is_empty();
        for common in &self.with {
            found = found || common.query.locks_rows();
        }
        for relation in &self.relations {
            if let RelationKind::Subquery(inner, _) = &relation.kind {
                found = found || inner.locks_rows();
            }
        }
        self.exprs(&mut |expr| found = found || expr.locks_rows());
        found
    }
}

impl Expr {
    /// Whether a query within it locks rows.
    #[must_use]
    pub fn locks_rows(&self) -> bool {
        self.any(&mut |expr| match &expr.kind {
            ExprKind::Subquery(subquery) => subquery.query.locks_rows(),
            _ => false,
        })
    }
}

impl SetOperation {
    /// Its leaves, from left to right.
    #[must_use]
    pub fn leaves(&self) -> Vec<usize> {
        match self {
            Self::Leaf(relation) => vec![*relation],
            Self::Node { left, right, .. } => {
                let mut leaves = left.leaves();
                leaves.extend(right.leaves());
                leaves
            }
        }
    }
}

impl Subquery {
    /// Whether its query refers to queries further out.
    #[must_use]
    pub fn is_correlated(&self) -> bool {
        refers_out(&self.query, 1)
    }
}

/// What of a query further out counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Its rows, and the queries of its WITH.
    All,
    /// Its rows alone.
    Rows,
}

/// Whether a query refers to one `level` or more queries further out than itself.
#[must_use]
pub fn refers_out(query: &Query, level: usize) -> bool {
    query_refers(query, level, Counts::All)
}

/// Whether an expression refers to a query `level` or more queries further out.
#[must_use]
pub fn expr_refers_out(expr: &Expr, level: usize) -> bool {
    expr_refers(expr, level, Counts::All)
}

/// As [`expr_refers_out`], of rows: the queries of a WITH further out are the same for all rows.
#[must_use]
pub fn expr_reads_rows_out(expr: &Expr, level: usize) -> bool {
    expr_refers(expr, level, Counts::Rows)
}

fn query_refers(query: &Query, level: usize, counts: Counts) -> bool {
    let mut found = false;
    for common in &query.with {
        found = found || query_refers(&common.query, level + 1, counts);
    }
    for relation in &query.relations {
        found = found
            || match &relation.kind {
                RelationKind::Subquery(inner, _) => query_refers(inner, level + 1, counts),
                RelationKind::Common { level: of, .. } => counts == Counts::All && *of >= level,
                RelationKind::Functions { calls, .. } => {
                    let mut calls = calls.iter();
                    calls.any(|(call, _)| expr_refers(call, level, counts))
                }
                RelationKind::Values(rows, _) => {
                    let mut exprs = rows.iter().flatten();
                    exprs.any(|expr| expr_refers(expr, level, counts))
                }
                RelationKind::Table(_) => false,
            };
    }
    query.own_exprs(&mut |expr| found = found || expr_refers(expr, level, counts));
    found
}

fn expr_refers(expr: &Expr, level: usize, counts: Counts) -> bool {
    expr.any(&mut |expr| match &expr.kind {
        ExprKind::Column { level: of, .. } | ExprKind::WholeRow { level: of, .. } => *of >= level,
        ExprKind::Aggregate(call) => call.level >= level,
        ExprKind::Grouping(_, of) => *of >= level,
        ExprKind::Subquery(subquery) => query_refers(&subquery.query, level + 1, counts),
        _ => false,
    })
}

/// A query and those around it.
#[derive(Clone, Copy)]
struct Around<'q> {
    query: &'q Query,
    outer: Option<&'q Around<'q>>,
}

impl<'q> Around<'q> {
    /// The query so many queries further out.
    fn out(&self, level: usize) -> Option<&Around<'q>> {
        match level {
            0 => Some(self),
            _ => self.outer?.out(level - 1),
        }
    }

    /// Whether it is this query, or stands within it.
    fn is_within(&self, query: &Query) -> bool {
        std::ptr::eq(self.query, query) || self.outer.is_some_and(|outer| outer.is_within(query))
    }

    /// The relation that an expression names, `level` queries further out.
    fn relation(&self, level: usize, relation: usize) -> Option<&Relation> {
        match level {
            0 => self.query.relations.get(relation),
            _ => self.outer?.relation(level - 1, relation),
        }
    }
}

/// The tables whose rows a query reads; those of a WITH count where something refers to it.
#[must_use]
pub fn tables_reached(query: &Query) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    reached_by_query(query, None, &mut found);
    found
}

fn reached_by_query(query: &Query, outer: Option<&Around<'_>>, found: &mut BTreeSet<u32>) {
    let around = Around { query, outer };
    for relation in &query.relations {
        match &relation.kind {
            RelationKind::Table(oid) => {
                found.insert(*oid);
            }
            RelationKind::Subquery(inner, _) => reached_by_query(inner, Some(&around), found),
            RelationKind::Common { level, place } => {
                let of = around.out(*level);
                let common = of.and_then(|of| Some((of, of.query.with.get(*place)?)));
                // A recursive one refers to itself.
                if let Some((of, common)) = common
                    && !around.is_within(&common.query)
                {
                    reached_by_query(&common.query, Some(of), found);
                }
            }
            RelationKind::Functions { calls, .. } => {
                let calls = calls.iter();
                calls.for_each(|(call, _)| reached_by_expr(call, &around, found));
            }
            RelationKind::Values(rows, _) => {
                let exprs = rows.iter().flatten();
                exprs.for_each(|expr| reached_by_expr(expr, &around, found));
            }
        }
    }
    query.own_exprs(&mut |expr| reached_by_expr(expr, &around, found));
}

fn reached_by_expr(expr: &Expr, around: &Around<'_>, found: &mut BTreeSet<u32>) {
    expr.any(&mut |expr| {
        if let ExprKind::Subquery(subquery) = &expr.kind {
            reached_by_query(&subquery.query, Some(around), found);
        }
        false
    });
}

/// The columns of tables that a query and those within it read: the tables' numbers and the
/// columns' places. A whole row is all of its columns.
#[must_use]
pub fn columns_read(query: &Query) -> BTreeSet<(u32, usize)> {
    let all = columns_read_by(query).into_iter();
    all.map(|(_, table, column)| (table, column)).collect()
}

/// The same, each with the role by whose rights it is read, where that is a view's owner.
#[must_use]
pub fn columns_read_by(query: &Query) -> BTreeSet<ReadBy> {
    let mut found = BTreeSet::new();
    read_by_query(query, None, &mut found);
    found
}

/// A role, a table's number, and the place of one of its columns.
pub type ReadBy = (Option<u32>, u32, usize);

fn read_by_query(query: &Query, outer: Option<&Around<'_>>, found: &mut BTreeSet<ReadBy>) {
    let around = Around { query, outer };
    for common in &query.with {
        read_by_query(&common.query, Some(&around), found);
    }
    for relation in &query.relations {
        match &relation.kind {
            RelationKind::Subquery(inner, _) => read_by_query(inner, Some(&around), found),
            RelationKind::Functions { calls, .. } => {
                let calls = calls.iter();
                calls.for_each(|(call, _)| read_by_expr(call, &around, found));
            }
            RelationKind::Values(rows, _) => {
                let exprs = rows.iter().flatten();
                exprs.for_each(|expr| read_by_expr(expr, &around, found));
            }
            RelationKind::Table(_) | RelationKind::Common { .. } => {}
        }
    }
    query.own_exprs(&mut |expr| read_by_expr(expr, &around, found));
}

fn read_by_expr(expr: &Expr, around: &Around<'_>, found: &mut BTreeSet<ReadBy>) {
    expr.any(&mut |expr| {
        let (level, relation, columns) = match &expr.kind {
            ExprKind::Column {
                level,
                relation,
                column,
            } => (*level, *relation, *column..*column + 1),
            ExprKind::WholeRow { level, relation } => {
                let of = around.relation(*level, *relation);
                (*level, *relation, 0..of.map_or(0, |of| of.columns.len()))
            }
            ExprKind::Subquery(subquery) => {
                read_by_query(&subquery.query, Some(around), found);
                return false;
            }
            _ => return false,
        };
        if let Some(of) = around.relation(level, relation)
            && let RelationKind::Table(oid) = of.kind
        {
            found.extend(columns.map(|column| (of.reader, oid, column)));
        }
        false
    });
}
