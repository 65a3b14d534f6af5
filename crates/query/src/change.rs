//! INSERT, UPDATE, DELETE and MERGE as typed trees: which table, which rows, what of them changes, what
//! is given back. Which way the change takes is the executors' concern.

use std::sync::Arc;

use crate::tree::{Column, CommonTable, Expr, Query, Target};

/// A statement that changes rows, analysed.
#[derive(Clone, Debug)]
pub struct Change {
    /// The table's number.
    pub table: u32,
    /// The view that was named in its place.
    pub via: Option<Via>,
    /// What is done.
    pub kind: ChangeKind,
    /// What is given back of each row. For INSERT, the table is relation 0 of `scope`; else of the query.
    pub returning: Option<Vec<Target>>,
}

/// A view whose rows are a table's. The statement needs its role's right to change the view; what
/// it does to the table it does by the rights of the view's owner.
#[derive(Clone, Debug)]
pub struct Via {
    /// The view's number.
    pub view: u32,
    /// Whether what the view shows is read, too.
    pub reads: bool,
    /// Which rows of the table it shows, over these; None: all.
    pub shows: Option<Expr>,
}

/// What a statement does with rows.
#[derive(Clone, Debug)]
pub enum ChangeKind {
    /// INSERT
    Insert(Box<Insert>),
    /// UPDATE
    Update {
        /// The table is its relation 0; its filter tells the rows. It has no targets.
        query: Box<Query>,
        /// The columns and their new values, over the query's relations.
        assignments: Vec<(usize, Given)>,
        /// WHERE CURRENT OF this cursor.
        cursor: Option<Arc<str>>,
    },
    /// DELETE
    Delete {
        /// As of UPDATE.
        query: Box<Query>,
        /// As of UPDATE.
        cursor: Option<Arc<str>>,
    },
    /// MERGE
    Merge(Box<Merge>),
}

/// MERGE
#[derive(Clone, Debug)]
pub struct Merge {
    /// The table is its relation 0, to which the source is joined: an outer join where rows that
    /// match nothing have an action. It has no targets.
    pub query: Query,
    /// The actions: a row of the query takes the first that is for it.
    pub actions: Vec<MergeWhen>,
}

/// A WHEN of MERGE.
#[derive(Clone, Debug)]
pub struct MergeWhen {
    /// For rows of the source that match one of the table; else for those that match none.
    pub matched: bool,
    /// Only where this is true.
    pub condition: Option<Expr>,
    /// What is done.
    pub action: MergeAction,
}

/// What MERGE does with a row. Expressions are over the query's relations.
#[derive(Clone, Debug)]
pub enum MergeAction {
    /// UPDATE: the columns and their new values.
    Update(Vec<(usize, Given)>),
    /// DELETE
    Delete,
    /// INSERT
    Insert {
        /// The columns that values are given for.
        columns: Vec<usize>,
        /// The values.
        values: Vec<Given>,
        /// OVERRIDING
        overriding: Overriding,
    },
    /// DO NOTHING
    Nothing,
}

/// A value for a column.
#[derive(Clone, Debug)]
pub enum Given {
    /// What the column says.
    Default,
    /// This, of the column's type.
    Value(Expr),
}

/// INSERT
#[derive(Clone, Debug)]
pub struct Insert {
    /// The columns that values are given for.
    pub columns: Vec<usize>,
    /// Where the values come from.
    pub source: Source,
    /// OVERRIDING
    pub overriding: Overriding,
    /// ON CONFLICT
    pub conflict: Option<Conflict>,
    /// The scope of `conflict` and of what is returned: the statement's WITH, the table and,
    /// where there is a conflict, the row that was to be inserted.
    pub scope: Query,
}

/// Where the rows of an INSERT come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// VALUES, a value for each of the columns.
    Rows(Vec<Vec<Given>>),
    /// A query that gives the columns. The statement's WITH is its own, too.
    Query(Box<Query>),
}

/// Which values an INSERT gives identity columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overriding {
    /// Nothing was said.
    None,
    /// OVERRIDING USER VALUE: the column's own.
    User,
    /// OVERRIDING SYSTEM VALUE: those that are given.
    System,
}

/// ON CONFLICT
#[derive(Clone, Debug)]
pub struct Conflict {
    /// With what.
    pub arbiter: Arbiter,
    /// DO UPDATE; without it DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

/// Which indexes tell a conflict.
#[derive(Clone, Debug)]
pub enum Arbiter {
    /// All that are unique.
    All,
    /// The unique ones that are made of this.
    Of(Box<Inference>),
    /// The one of this constraint.
    Constraint(Arc<str>),
}

/// What ON CONFLICT says of an index. Relation 0 is the table.
#[derive(Clone, Debug)]
pub struct Inference {
    /// Its columns.
    pub columns: Vec<usize>,
    /// Its expressions.
    pub exprs: Vec<Expr>,
    /// What implies its predicate, if it is a partial one.
    pub filter: Option<Expr>,
}

/// DO UPDATE. Relation 0 is the row that is there, relation 1 the one that was to be inserted.
#[derive(Clone, Debug)]
pub struct ConflictUpdate {
    /// The columns and their new values.
    pub assignments: Vec<(usize, Given)>,
    /// Only where this is true.
    pub filter: Option<Expr>,
}

/// What a statement is.
#[derive(Clone, Debug)]
pub enum Statement {
    /// A query, which may have changes of rows in its WITH.
    Query(Box<Query>),
    /// A change of rows.
    Change(Box<Change>),
}

impl Change {
    /// The queries of its WITH.
    pub fn with_mut(&mut self) -> &mut Vec<CommonTable> {
        match &mut self.kind {
            ChangeKind::Update { query, .. } | ChangeKind::Delete { query, .. } => &mut query.with,
            ChangeKind::Insert(insert) => &mut insert.scope.with,
            ChangeKind::Merge(merge) => &mut merge.query.with,
        }
    }

    /// Calls `f` with each query of the change.
    pub fn queries_mut(&mut self, f: &mut dyn FnMut(&mut Query)) {
        match &mut self.kind {
            ChangeKind::Update { query, .. } | ChangeKind::Delete { query, .. } => f(query),
            ChangeKind::Insert(insert) => {
                if let Source::Query(query) = &mut insert.source {
                    f(query);
                }
                f(&mut insert.scope);
            }
            ChangeKind::Merge(merge) => f(&mut merge.query),
        }
    }

    /// Calls `f` with each expression of the change that is in none of its queries.
    pub fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        for target in self.returning.iter_mut().flatten() {
            f(&mut target.expr);
        }
        match &mut self.kind {
            ChangeKind::Update { assignments, .. } => each_given(assignments, f),
            ChangeKind::Delete { .. } => {}
            ChangeKind::Merge(merge) => {
                for when in &mut merge.actions {
                    when.condition.iter_mut().for_each(&mut *f);
                    match &mut when.action {
                        MergeAction::Update(assignments) => each_given(assignments, f),
                        MergeAction::Insert { values, .. } => values.iter_mut().for_each(|given| {
                            if let Given::Value(expr) = given {
                                f(expr);
                            }
                        }),
                        MergeAction::Delete | MergeAction::Nothing => {}
                    }
                }
            }
            ChangeKind::Insert(insert) => {
                if let Source::Rows(rows) = &mut insert.source {
                    for given in rows.iter_mut().flatten() {
                        if let Given::Value(expr) = given {
                            f(expr);
                        }
                    }
                }
                let update = insert.conflict.as_mut();
                if let Some(update) = update.and_then(|conflict| conflict.update.as_mut()) {
                    each_given(&mut update.assignments, f);
                    update.filter.iter_mut().for_each(f);
                }
            }
        }
    }

    /// The columns of what is given back.
    #[must_use]
    pub fn columns(&self) -> Option<Vec<Column>> {
        let column = |target: &Target| Column {
            name: Arc::clone(&target.name),
            oid: target.expr.oid,
            modifier: target.expr.modifier,
            origin: target.origin,
        };
        let returning = self.returning.as_ref()?;
        Some(returning.iter().map(column).collect())
    }
}

fn each_given(assignments: &mut [(usize, Given)], f: &mut dyn FnMut(&mut Expr)) {
    for (_, given) in assignments {
        if let Given::Value(expr) = given {
            f(expr);
        }
    }
}
