//! MERGE.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{MergeStmt, MergeWhenClause, ResTarget};
use pg_raw_parse::raw::{CmdType, MergeMatchKind};

use super::Analyzer;
use super::change::{Changed, fit_width, overriding};
use super::change_view::Verb;
use super::scope::{Clause, Item};
use crate::change::{Change, ChangeKind, Merge, MergeAction, MergeWhen};
use crate::error::{QueryError, Result};
use crate::tree::{From, JoinKind};

impl Analyzer<'_> {
    /// The target is relation 0, and the source is joined to it. An action for rows that match
    /// nothing sees the source only.
    pub(super) fn merge(&mut self, merge: &MergeStmt) -> Result<Change> {
        if merge.returning_clause().is_some() {
            return Err(QueryError::unsupported(
                "RETURNING of MERGE is not supported",
                "Read the rows in the next statement of the transaction.",
            ));
        }
        if let Some(with) = merge.with_clause() {
            if with.recursive {
                let message = "WITH RECURSIVE is not supported for MERGE statement";
                return Err(QueryError::new("42601", message));
            }
            self.with_clause(with)?;
        }
        let clauses: Vec<&MergeWhenClause> = merge.merge_when_clauses().iter().collect();
        reachable(&clauses)?;
        let (changed, target) = self.changed(merge.relation(), Verb::Update)?;
        if changed.through.is_some() {
            let message = format!("cannot execute MERGE on relation \"{}\"", changed.name);
            let mut error = QueryError::unsupported(message, "Name the view's table instead.");
            // PostgreSQL's own words, which have none.
            error.hint = None;
            return Err(error.with_detail("This operation is not supported for views."));
        }
        let (source, items) = self.member_of_from(merge.source_relation())?;
        for item in &items {
            if super::from::check_unique(std::slice::from_ref(&target), item).is_err() {
                let name = item.name.as_deref().unwrap_or_default();
                let message = format!("name \"{name}\" specified more than once");
                return Err(QueryError::new("42712", message)
                    .with_detail("The name is used both as MERGE target table and data source."));
            }
        }
        let both: Vec<Item> = std::iter::once(target)
            .chain(items.iter().cloned())
            .collect();
        self.level().items.clone_from(&both);
        let condition = self.condition(merge.join_condition(), Clause::Join)?;
        let mut actions = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let matched = clause.match_kind == MergeMatchKind::MERGE_WHEN_MATCHED;
            let seen = if matched { &both } else { &items };
            self.level().items.clone_from(seen);
            let condition = self.condition(clause.condition(), Clause::MergeWhen)?;
            actions.push(MergeWhen {
                matched,
                condition,
                action: self.merge_action(clause, &changed)?,
            });
        }
        let kind = match actions.iter().all(|when| when.matched) {
            true => JoinKind::Inner,
            false => JoinKind::Left,
        };
        let from = From::Join {
            kind,
            left: Box::new(source),
            right: Box::new(From::Relation(0)),
            condition,
        };
        let query = self.found(vec![from], None);
        Ok(Change {
            table: changed.table,
            via: None,
            kind: ChangeKind::Merge(Box::new(Merge { query, actions })),
            returning: None,
        })
    }

    fn merge_action(&mut self, clause: &MergeWhenClause, changed: &Changed) -> Result<MergeAction> {
        let targets = || {
            clause.target_list().iter().filter_map(|node| match node {
                Node::ResTarget(target) => Some(target),
                _ => None,
            })
        };
        Ok(match clause.command_type {
            CmdType::CMD_UPDATE => {
                let targets: Vec<&ResTarget> = targets().collect();
                let assignments = self.assignments(targets.into_iter(), &changed.assigned())?;
                MergeAction::Update(assignments)
            }
            CmdType::CMD_DELETE => MergeAction::Delete,
            CmdType::CMD_INSERT => {
                let (mut into, explicit) = self.insert_targets(clause.target_list(), changed)?;
                let mut given = Vec::new();
                self.level().clause = Clause::Values;
                for node in clause.values().iter() {
                    given.push(self.given(node)?);
                }
                self.level().clause = Clause::default();
                if given.is_empty() {
                    // DEFAULT VALUES
                    into.clear();
                }
                fit_width(&mut into, given.len(), explicit)?;
                let (columns, values) = self.gathered(&into, given, changed)?;
                MergeAction::Insert {
                    columns,
                    values,
                    overriding: overriding(clause.override_),
                }
            }
            _ => MergeAction::Nothing,
        })
    }
}

/// 42601 for an action that no row comes to; 0A000 for what came after PostgreSQL 15.
fn reachable(clauses: &[&MergeWhenClause]) -> Result<()> {
    let mut done = [false; 2];
    for clause in clauses {
        let kind = match clause.match_kind {
            MergeMatchKind::MERGE_WHEN_MATCHED => 0,
            MergeMatchKind::MERGE_WHEN_NOT_MATCHED_BY_TARGET => 1,
            _ => {
                return Err(QueryError::unsupported(
                    "WHEN NOT MATCHED BY SOURCE is not supported",
                    "Change the rows that nothing matches by a statement of their own.",
                ));
            }
        };
        if done[kind] {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(QueryError::new("42601", message));
        }
        done[kind] = matches!(clause.condition(), Node::None);
    }
    Ok(())
}
