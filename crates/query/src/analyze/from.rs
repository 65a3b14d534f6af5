//! FROM: tables, queries, functions and their joins.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{Alias, JoinExpr, RangeSubselect, RangeVar};
use pg_raw_parse::raw::JoinType;

use super::coerce::common_type;
use super::scope::{Clause, Item};
use super::{Analyzer, Mention};
use crate::error::{QueryError, Result};
use crate::tree::{Column, Expr, ExprKind, From, JoinKind, Relation, RelationKind};
use crate::types::ids;

impl Analyzer<'_> {
    /// The whole clause: what is multiplied.
    pub(super) fn members_of_from(
        &mut self,
        nodes: &pg_raw_parse::list::NodeList,
    ) -> Result<Vec<From>> {
        let mut members = Vec::new();
        for node in nodes.iter() {
            let before = self.level().items.len();
            // Members see those before them only if they are LATERAL.
            for item in &mut self.level().items {
                item.lateral_only = true;
                item.lateral_ok = true;
            }
            let (from, items) = self.member_of_from(node)?;
            self.level().items.truncate(before);
            self.add_items(items)?;
            members.push(from);
        }
        for item in &mut self.level().items {
            item.lateral_only = false;
            item.lateral_ok = true;
        }
        Ok(members)
    }

    fn add_items(&mut self, items: Vec<Item>) -> Result<()> {
        for item in &items {
            check_unique(&self.level().items, item)?;
        }
        self.level().items.extend(items);
        Ok(())
    }

    pub(super) fn member_of_from(&mut self, node: Node<'_>) -> Result<(From, Vec<Item>)> {
        match node {
            Node::RangeVar(range) => self.table(range),
            Node::RangeSubselect(range) => self.subselect(range),
            Node::RangeFunction(range) => self.functions(range),
            Node::JoinExpr(join) => self.join(join),
            Node::RangeTableSample(sample) => self.sampled(sample),
            _ => Err(QueryError::unsupported(
                "XMLTABLE and JSON_TABLE are not supported",
                "Use jsonb_path_query or jsonb_to_recordset; read XML in the application.",
            )),
        }
    }

    /// Adds a relation to the query; `hidden` tells that no alias hides its schema.
    pub(super) fn add_relation(
        &mut self,
        relation: Relation,
        schema: Option<Arc<str>>,
    ) -> (usize, Item) {
        let place = self.level().relations.len();
        let columns = relation
            .columns
            .iter()
            .enumerate()
            .filter(|(_, of)| !of.is_dropped())
            .map(|(column, of)| {
                let kind = ExprKind::Column {
                    level: 0,
                    relation: place,
                    column,
                };
                let expr = Expr::new(kind, of.oid, -1).with_modifier(of.modifier);
                (Arc::clone(&of.name), expr)
            })
            .collect();
        let item = Item {
            name: Some(Arc::clone(&relation.alias)),
            schema,
            relation: Some(place),
            columns,
            named: true,
            open: true,
            lateral_only: false,
            lateral_ok: true,
        };
        self.level().relations.push(relation);
        (place, item)
    }

    pub(super) fn table(&mut self, range: &RangeVar) -> Result<(From, Vec<Item>)> {
        let name = range.relname().unwrap_or_default();
        let schema = range.schemaname();
        let alias = range.alias();
        let shown = alias.and_then(Alias::aliasname).unwrap_or(name);
        if schema.is_none()
            && let Some((level, place)) = self.common(name)
        {
            let common = &mut self.common_at(level, place);
            if common
                .change
                .as_ref()
                .is_some_and(|of| of.returning.is_none())
            {
                let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                return Err(
                    QueryError::unsupported(message, "Add RETURNING to the change.")
                        .at(range.location),
                );
            }
            common.references += 1;
            let columns = common.columns.clone();
            let relation = Relation {
                kind: RelationKind::Common { level, place },
                alias: Arc::from(shown),
                columns: renamed(columns, alias, shown)?,
                reader: None,
            };
            let (place, item) = self.add_relation(relation, None);
            return Ok((From::Relation(place), vec![item]));
        }
        let stored = self
            .catalog
            .relation(schema, name)
            .map_err(|error| error.at(range.location))?;
        let Some(stored) = stored else {
            let shown = match schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name.to_owned(),
            };
            return Err(
                QueryError::new("42P01", format!("relation \"{shown}\" does not exist"))
                    .at(range.location),
            );
        };
        stored.with_all(range)?;
        let hidden = alias.is_some();
        self.catalog.mentioned(&Mention {
            schema,
            name,
            at: range.location,
            aliased: hidden,
        });
        let kind = match &stored.view {
            Some(text) => RelationKind::Subquery(Box::new(self.view(&stored, text)?), false),
            None => RelationKind::Table(stored.oid),
        };
        let relation = Relation {
            kind,
            alias: Arc::from(shown),
            columns: renamed(stored.columns, alias, shown)?,
            reader: stored.reader,
        };
        let (place, item) = self.add_relation(relation, (!hidden).then_some(stored.schema));
        self.level().keys.insert(place, stored.primary_key);
        if stored.is_partitioned {
            self.level().partitioned.push(place);
        }
        Ok((From::Relation(place), vec![item]))
    }

    fn subselect(&mut self, range: &RangeSubselect) -> Result<(From, Vec<Item>)> {
        let Node::SelectStmt(select) = range.subquery() else {
            return Err(QueryError::internal("a FROM item that is no query"));
        };
        // Without LATERAL the members before are not seen.
        let hidden: Vec<(bool, bool)> = self
            .level()
            .items
            .iter()
            .map(|item| (item.named, item.open))
            .collect();
        if !range.lateral {
            for item in &mut self.level().items {
                item.named = false;
                item.open = false;
            }
        }
        let clause = std::mem::replace(&mut self.level().clause, Clause::FromSubquery);
        let query = self.query(select, None);
        self.level().clause = clause;
        for (item, (named, open)) in self.level().items.iter_mut().zip(hidden) {
            item.named = named;
            item.open = open;
        }
        let query = query?;
        let alias = range.alias();
        let shown = alias.and_then(Alias::aliasname);
        if shown.is_none() {
            let (message, example) = match query.relations.first().map(|relation| &relation.kind) {
                Some(RelationKind::Values(..)) => (
                    "VALUES in FROM must have an alias",
                    "For example, FROM (VALUES ...) [AS] foo.",
                ),
                _ => (
                    "subquery in FROM must have an alias",
                    "For example, FROM (SELECT ...) [AS] foo.",
                ),
            };
            return Err(QueryError::new("42601", message).with_hint(example));
        }
        let shown = shown.unwrap_or_default();
        let columns = renamed(query.columns(), alias, shown)?;
        let lateral = range.lateral && crate::walk::refers_out(&query, 1);
        let relation = Relation {
            kind: RelationKind::Subquery(Box::new(query), lateral),
            alias: Arc::from(shown),
            columns,
            reader: None,
        };
        let (place, item) = self.add_relation(relation, None);
        Ok((From::Relation(place), vec![item]))
    }

    fn join(&mut self, join: &JoinExpr) -> Result<(From, Vec<Item>)> {
        let kind = match join.jointype {
            JoinType::JOIN_INNER => JoinKind::Inner,
            JoinType::JOIN_LEFT => JoinKind::Left,
            JoinType::JOIN_RIGHT => JoinKind::Right,
            JoinType::JOIN_FULL => JoinKind::Full,
            _ => return Err(QueryError::internal("a join of an unknown kind")),
        };
        let (left, mut left_items) = self.member_of_from(join.larg())?;
        // The right side sees the left one if it is LATERAL and the left one is not nullable.
        let before = self.level().items.len();
        let lateral_ok = matches!(kind, JoinKind::Inner | JoinKind::Left);
        for item in &left_items {
            let mut item = item.clone();
            item.lateral_only = true;
            item.lateral_ok = lateral_ok;
            self.level().items.push(item);
        }
        let right = self.member_of_from(join.rarg());
        self.level().items.truncate(before);
        let (right, mut right_items) = right?;
        self.level().has_outer_join |= kind != JoinKind::Inner;
        for item in &right_items {
            check_unique(&left_items, item)?;
        }
        let open = |items: &[Item]| -> Vec<(Arc<str>, Expr)> {
            items
                .iter()
                .filter(|item| item.open)
                .flat_map(|item| item.columns.iter().cloned())
                .collect()
        };
        let (left_columns, right_columns) = (open(&left_items), open(&right_items));
        let using: Vec<String> = if join.is_natural {
            left_columns
                .iter()
                .filter(|(name, _)| right_columns.iter().any(|(other, _)| other == name))
                .map(|(name, _)| name.to_string())
                .collect()
        } else {
            join.using_clause()
                .iter()
                .filter_map(|name| name.sval())
                .map(str::to_owned)
                .collect()
        };
        let mut merged = Vec::new();
        let condition = if using.is_empty() {
            self.join_condition(join, &left_items, &right_items)?
        } else {
            Some(self.using_condition(kind, &using, &left_columns, &right_columns, &mut merged)?)
        };
        let mut columns = merged.clone();
        let rest = |side: &[(Arc<str>, Expr)]| -> Vec<(Arc<str>, Expr)> {
            side.iter()
                .filter(|(name, _)| !using.iter().any(|used| **used == **name))
                .cloned()
                .collect()
        };
        columns.extend(rest(&left_columns));
        columns.extend(rest(&right_columns));
        let alias = join.alias();
        for item in left_items.iter_mut().chain(&mut right_items) {
            item.open = false;
        }
        let mut items = left_items;
        items.extend(right_items);
        if let Some(using_alias) = join.join_using_alias() {
            let item = Item {
                name: using_alias.aliasname().map(Arc::from),
                schema: None,
                relation: None,
                columns: merged,
                named: true,
                open: false,
                lateral_only: false,
                lateral_ok: true,
            };
            check_unique(&items, &item)?;
            items.push(item);
        }
        let mut name = None;
        if let Some(alias) = alias {
            // An alias hides the sides.
            let shown = alias.aliasname().unwrap_or_default();
            rename_columns(&mut columns, alias, shown)?;
            name = Some(Arc::from(shown));
            items.iter_mut().for_each(|item| item.named = false);
        }
        items.push(Item {
            named: name.is_some(),
            name,
            schema: None,
            relation: None,
            columns,
            open: true,
            lateral_only: false,
            lateral_ok: true,
        });
        let from = From::Join {
            kind,
            left: Box::new(left),
            right: Box::new(right),
            condition,
        };
        Ok((from, items))
    }

    fn join_condition(
        &mut self,
        join: &JoinExpr,
        left: &[Item],
        right: &[Item],
    ) -> Result<Option<Expr>> {
        if matches!(join.quals(), Node::None) {
            return Ok(None);
        }
        // ON sees the two sides only, and the queries around.
        let sides: Vec<Item> = left.iter().chain(right).cloned().collect();
        let before = std::mem::replace(&mut self.level().items, sides);
        let clause = std::mem::replace(&mut self.level().clause, Clause::Join);
        let condition = self
            .expr(join.quals())
            .and_then(|expr| self.coerce_to_bool(expr, "JOIN/ON"));
        self.level().items = before;
        self.level().clause = clause;
        condition.map(Some)
    }

    fn using_condition(
        &mut self,
        kind: JoinKind,
        using: &[String],
        left: &[(Arc<str>, Expr)],
        right: &[(Arc<str>, Expr)],
        merged: &mut Vec<(Arc<str>, Expr)>,
    ) -> Result<Expr> {
        let mut pairs = Vec::new();
        for name in using {
            let mut found = Vec::new();
            for (side, columns) in [("left", left), ("right", right)] {
                let mut named = columns.iter().filter(|(column, _)| **column == **name);
                let Some((_, expr)) = named.next() else {
                    return Err(QueryError::new(
                        "42703",
                        format!(
                            "column \"{name}\" specified in USING clause does not exist in {side} table"
                        ),
                    ));
                };
                if named.next().is_some() {
                    return Err(QueryError::new(
                        "42702",
                        format!(
                            "common column name \"{name}\" appears more than once in {side} table"
                        ),
                    ));
                }
                found.push(expr.clone());
            }
            let (left, right) = (found[0].clone(), found[1].clone());
            pairs.push(self.operator_call("=", Some(left.clone()), right.clone(), -1)?);
            let common = common_type(&[&left, &right], "JOIN/USING")?;
            let modifier = super::coerce::common_modifier(&[&left, &right], common);
            let left = self.coerce_to_common(left, common, "JOIN/USING")?;
            let right = self.coerce_to_common(right, common, "JOIN/USING")?;
            let one = match kind {
                JoinKind::Inner | JoinKind::Left => left,
                JoinKind::Right => right,
                JoinKind::Full => Expr::new(ExprKind::Coalesce(vec![left, right]), common, -1)
                    .with_modifier(modifier),
            };
            merged.push((Arc::from(name.as_str()), one));
        }
        Ok(match pairs.len() {
            1 => pairs.remove(0),
            _ => Expr::new(ExprKind::And(pairs), ids::BOOL, -1),
        })
    }
}

/// Two items of one name can't stand side by side.
pub(super) fn check_unique(items: &[Item], item: &Item) -> Result<()> {
    let clash = items.iter().any(|other| {
        other.named
            && item.named
            && other.name.is_some()
            && other.name == item.name
            && (other.schema.is_none() || item.schema.is_none() || other.schema == item.schema)
    });
    match (clash, &item.name) {
        (true, Some(name)) => Err(QueryError::new(
            "42712",
            format!("table name \"{name}\" specified more than once"),
        )),
        _ => Ok(()),
    }
}

/// Columns under the names that an alias gives them.
pub(super) fn renamed(
    mut columns: Vec<Column>,
    alias: Option<&Alias>,
    shown: &str,
) -> Result<Vec<Column>> {
    let Some(alias) = alias else {
        return Ok(columns);
    };
    let names: Vec<&str> = alias.colnames().iter().filter_map(Node::as_str).collect();
    let live = columns.iter().filter(|column| !column.is_dropped());
    check_count(names.len(), live.count(), shown)?;
    let live = columns.iter_mut().filter(|column| !column.is_dropped());
    for (column, name) in live.zip(names) {
        column.name = Arc::from(name);
    }
    Ok(columns)
}

fn rename_columns(columns: &mut [(Arc<str>, Expr)], alias: &Alias, shown: &str) -> Result<()> {
    let names: Vec<&str> = alias.colnames().iter().filter_map(Node::as_str).collect();
    check_count(names.len(), columns.len(), shown)?;
    for (column, name) in columns.iter_mut().zip(names) {
        column.0 = Arc::from(name);
    }
    Ok(())
}

fn check_count(given: usize, there: usize, shown: &str) -> Result<()> {
    if given > there {
        return Err(QueryError::new(
            "42P10",
            format!(
                "table \"{shown}\" has {there} columns available but {given} columns specified"
            ),
        ));
    }
    Ok(())
}
