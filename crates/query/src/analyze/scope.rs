//! Which names mean what: the relations of a query, what of them can be named
//! where, and the queries around it.

use std::collections::HashMap;
use std::sync::Arc;

use super::Analyzer;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::tree::{CommonTable, Expr, ExprKind, Relation, RelationKind, Window};
use crate::types::ids;

/// The columns that PostgreSQL's tables have beside their own.
pub(super) const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"];

/// Relations of users are numbered from here on; catalogs have no rows with numbers.
pub(super) const FIRST_USER_OID: u32 = 16_384;

/// The clause at hand, for what is not allowed in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Clause {
    #[default]
    Targets,
    Where,
    Having,
    Group,
    Order,
    DistinctOn,
    Limit,
    Offset,
    Join,
    FromFunction,
    FromSubquery,
    Values,
    /// The values of an INSERT of one row: functions that give rows may stand there.
    ValuesOfOneRow,
    Filter,
    WindowPartition,
    WindowOrder,
    WindowFrame,
    Update,
    Returning,
    MergeWhen,
}

impl Clause {
    /// As errors name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Targets => "SELECT",
            Self::Where => "WHERE",
            Self::Having => "HAVING",
            Self::Group => "GROUP BY",
            Self::Order => "ORDER BY",
            Self::DistinctOn => "DISTINCT ON",
            Self::Limit => "LIMIT",
            Self::Offset => "OFFSET",
            Self::Join => "JOIN/ON",
            Self::FromFunction => "function in FROM",
            Self::FromSubquery => "FROM",
            Self::Values | Self::ValuesOfOneRow => "VALUES",
            Self::Filter => "FILTER",
            Self::WindowPartition => "window PARTITION BY",
            Self::WindowOrder => "window ORDER BY",
            Self::WindowFrame => "window frame",
            Self::Update => "UPDATE",
            Self::Returning => "RETURNING",
            Self::MergeWhen => "WHEN",
        }
    }
}

/// A query under analysis.
#[derive(Default)]
pub(super) struct Level {
    pub(super) relations: Vec<Relation>,
    pub(super) items: Vec<Item>,
    pub(super) with: Vec<CommonTable>,
    pub(super) windows: Vec<Window>,
    /// The places of the primary keys' columns, by relation.
    pub(super) keys: HashMap<usize, Vec<usize>>,
    /// The relations that are partitioned tables.
    pub(super) partitioned: Vec<usize>,
    /// A row of a relation may be the NULLs of an outer join.
    pub(super) has_outer_join: bool,
    /// The arguments of each `GROUPING`.
    pub(super) groupings: Vec<Vec<Expr>>,
    pub(super) clause: Clause,
    /// Where the function in FROM stands that is at hand; its arguments may have calls, too.
    pub(super) from_call: i32,
    pub(super) has_aggregates: bool,
    pub(super) has_windows: bool,
    /// Within the arguments of a window function of this level.
    pub(super) in_window: bool,
    /// Within CASE or COALESCE, where sets are not allowed.
    pub(super) no_sets: Option<&'static str>,
}

/// Something in FROM that can be named.
#[derive(Clone)]
pub(super) struct Item {
    /// Its name; none for a join without an alias.
    pub(super) name: Option<Arc<str>>,
    /// The table's schema, where no alias hides it.
    pub(super) schema: Option<Arc<str>>,
    /// The relation, if it is one.
    pub(super) relation: Option<usize>,
    /// Its columns.
    pub(super) columns: Vec<(Arc<str>, Expr)>,
    /// It can be named.
    pub(super) named: bool,
    /// Its columns can be named without it.
    pub(super) open: bool,
    /// Only LATERAL queries see it.
    pub(super) lateral_only: bool,
    /// They may (not within the nullable side of a join).
    pub(super) lateral_ok: bool,
}

impl Analyzer<'_> {
    /// The expression that a name of one part means.
    pub(super) fn column(&mut self, name: &str, location: i32) -> Result<Option<Expr>> {
        for up in 0..self.levels.len() {
            let level = &self.levels[self.levels.len() - 1 - up];
            let mut found: Option<(&Item, &Expr)> = None;
            for item in level.items.iter().filter(|item| item.open) {
                if item.lateral_only && !item.lateral_ok {
                    continue;
                }
                let mut within = item.columns.iter().filter(|(column, _)| **column == *name);
                let Some((_, expr)) = within.next() else {
                    continue;
                };
                if found.is_some() || within.next().is_some() {
                    return Err(ambiguous_column(name).at(location));
                }
                found = Some((item, expr));
            }
            if let Some((_, expr)) = found {
                let mut expr = expr.clone();
                expr.raise_levels(0, up.cast_signed());
                expr.location = location;
                return Ok(Some(expr));
            }
        }
        Ok(None)
    }

    /// The item that a name means, and how many queries further out.
    pub(super) fn item(
        &self,
        schema: Option<&str>,
        name: &str,
        location: i32,
    ) -> Result<Option<(Item, usize)>> {
        for up in 0..self.levels.len() {
            let level = &self.levels[self.levels.len() - 1 - up];
            let mut found: Option<&Item> = None;
            for item in level.items.iter().filter(|item| item.named) {
                let fits = item.name.as_deref() == Some(name)
                    && schema.is_none_or(|schema| item.schema.as_deref() == Some(schema));
                if !fits {
                    continue;
                }
                if item.lateral_only && !item.lateral_ok {
                    return Err(QueryError::new(
                        "42P10",
                        format!("invalid reference to FROM-clause entry for table \"{name}\""),
                    )
                    .with_detail(
                        "The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
                    )
                    .at(location));
                }
                if found.is_some() {
                    return Err(QueryError::new(
                        "42P09",
                        format!("table reference \"{name}\" is ambiguous"),
                    )
                    .at(location));
                }
                found = Some(item);
            }
            if let Some(item) = found {
                return Ok(Some((item.clone(), up)));
            }
        }
        Ok(None)
    }

    /// A column of an item, by name.
    pub(super) fn item_column(
        &mut self,
        item: &Item,
        up: usize,
        name: &str,
        location: i32,
    ) -> Result<Option<Expr>> {
        let mut within = item.columns.iter().filter(|(column, _)| **column == *name);
        if let Some((_, expr)) = within.next() {
            if within.next().is_some() {
                return Err(ambiguous_column(name).at(location));
            }
            let mut expr = expr.clone();
            expr.raise_levels(0, up.cast_signed());
            expr.location = location;
            return Ok(Some(expr));
        }
        self.system_column(item, up, name, location)
    }

    /// A system column of a table: its number, or the place of a row, which is the row's number and
    /// stays with it. Tables do not show the others, which tell of versions.
    fn system_column(
        &mut self,
        item: &Item,
        up: usize,
        name: &str,
        location: i32,
    ) -> Result<Option<Expr>> {
        let level = self.levels.len() - 1 - up;
        let is_system = SYSTEM_COLUMNS.contains(&name);
        let level = &mut self.levels[level];
        let relation = item.relation.filter(|_| is_system).and_then(|relation| {
            let of = level.relations.get_mut(relation)?;
            Some((relation, of))
        });
        let Some((relation, of)) = relation else {
            return Ok(None);
        };
        let RelationKind::Table(oid) = of.kind else {
            return Ok(None);
        };
        // What is the same for all rows of a table is none of the NULLs of an outer join.
        let differs =
            level.partitioned.contains(&relation) || level.has_outer_join && oid >= FIRST_USER_OID;
        let mut expr = match name {
            "tableoid" if differs => {
                let kind = ExprKind::Column {
                    level: up,
                    relation,
                    column: of.name_partitions(),
                };
                Expr::new(kind, ids::OID, location)
            }
            // A row that is in no table yet has none.
            "tableoid" if oid > 0 => Expr::constant(Datum::Oid(oid), ids::OID),
            "ctid" if oid >= FIRST_USER_OID => {
                let kind = ExprKind::Column {
                    level: up,
                    relation,
                    column: of.number_rows(),
                };
                let number = Expr::new(kind, ids::INT8, location);
                Expr::new(ExprKind::Relabel(Box::new(number)), ids::TID, location)
            }
            _ => {
                let message = format!(
                    "system column \"{name}\" of table \"{}\" is not supported",
                    of.alias
                );
                let instead = "Keep a column of your own that each change of a row raises.";
                let mut error = QueryError::unsupported(message, instead);
                error.missing_column = Some(name.to_owned());
                return Err(error.at(location));
            }
        };
        expr.location = location;
        Ok(Some(expr))
    }

    /// A system column without a table's name.
    ///
    /// # Errors
    /// 42702 where several tables have it.
    pub(super) fn open_system_column(&mut self, name: &str, location: i32) -> Result<Option<Expr>> {
        let Some(level) = self
            .levels
            .last()
            .filter(|_| SYSTEM_COLUMNS.contains(&name))
        else {
            return Ok(None);
        };
        let open = level.items.iter().filter(|item| item.open);
        let is_table = |item: &&Item| {
            let relation = item.relation.and_then(|place| level.relations.get(place));
            relation.is_some_and(|of| matches!(of.kind, RelationKind::Table(_)))
        };
        let tables: Vec<Item> = open.filter(is_table).cloned().collect();
        match tables.as_slice() {
            [] => Ok(None),
            [table] => self.system_column(table, 0, name, location),
            [first, ..] => match self.system_column(first, 0, name, location)? {
                Some(_) => Err(ambiguous_column(name).at(location)),
                None => Ok(None),
            },
        }
    }

    /// The row of an item.
    pub(super) fn whole_row(&self, item: &Item, up: usize, location: i32) -> Expr {
        match item.relation {
            Some(relation) => {
                let level = &self.levels[self.levels.len() - 1 - up];
                let of = &level.relations[relation];
                // A function of one column is that column.
                if let RelationKind::Functions {
                    calls,
                    ordinality: false,
                } = &of.kind
                    && calls.len() == 1
                    && of.columns.len() == 1
                    && !super::coerce::is_composite(calls[0].0.oid)
                {
                    let (_, expr) = &item.columns[0];
                    let mut expr = expr.clone();
                    expr.raise_levels(0, up.cast_signed());
                    expr.location = location;
                    return expr;
                }
                Expr::new(
                    ExprKind::WholeRow {
                        level: up,
                        relation,
                    },
                    ids::RECORD,
                    location,
                )
            }
            None => {
                let columns = item
                    .columns
                    .iter()
                    .map(|(_, expr)| {
                        let mut expr = expr.clone();
                        expr.raise_levels(0, up.cast_signed());
                        expr
                    })
                    .collect();
                Expr::new(ExprKind::Row(columns), ids::RECORD, location)
            }
        }
    }

    /// 42P01 or 42703 for a name of two parts of which the first is not there.
    pub(super) fn missing_item(&self, name: &str, location: i32) -> QueryError {
        let hidden = self.levels.iter().rev().any(|level| {
            level
                .relations
                .iter()
                .any(|relation| *relation.alias == *name)
        });
        let mut error = match hidden {
            true => QueryError::new(
                "42P01",
                format!("invalid reference to FROM-clause entry for table \"{name}\""),
            ),
            false => QueryError::new(
                "42P01",
                format!("missing FROM-clause entry for table \"{name}\""),
            ),
        };
        if hidden {
            error = error.with_hint(format!(
                "There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."
            ));
        }
        error.at(location)
    }
}

/// 42702.
pub(super) fn ambiguous_column(name: &str) -> QueryError {
    QueryError::new("42702", format!("column reference \"{name}\" is ambiguous"))
}
