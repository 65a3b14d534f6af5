//! SEARCH and CYCLE: a recursive query of a WITH gets columns that say in which order its rows were
//! reached, and whether one was reached before. As PostgreSQL's `rewriteSearchCycle.c`: each side
//! of the UNION goes into a query that computes them, and rows that close a cycle are not gone
//! on from.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::list::NodeList;
use pg_raw_parse::nodes::{CTECycleClause, CTESearchClause, CommonTableExpr};

use super::Analyzer;
use super::coerce::{common_modifier, common_type};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions;
use crate::tree::{
    ArrayComparison, Case, Column, Distinctness, Expr, ExprKind, From, FunctionCall, Query,
    Relation, RelationKind, SetOperation, Target,
};
use crate::types::ids;

const ARRAY_CAT: u32 = 383;
const RECORD_EQ: u32 = 2981;

/// SEARCH: the columns searched by, the column of the order, whether breadth comes first.
struct Search {
    by: Vec<usize>,
    column: Column,
    breadth_first: bool,
}

/// CYCLE: the columns that tell a row, the marks, the column of the mark and that of the path.
struct Cycle {
    by: Vec<usize>,
    value: Expr,
    default: Expr,
    mark: Column,
    path: Column,
}

/// What a side of the UNION computes beside its own columns.
struct Side {
    columns: Vec<Expr>,
    order: Option<Expr>,
    mark: Option<Expr>,
    path: Option<Expr>,
}

impl Analyzer<'_> {
    /// Adds to the query of `common`, at `place` of its WITH, what its clauses ask for; the
    /// columns that it has beside `columns` then.
    pub(super) fn search_and_cycle(
        &mut self,
        query: &mut Query,
        columns: &[Column],
        common: &CommonTableExpr,
        place: usize,
    ) -> Result<Vec<Column>> {
        let name = common.ctename().unwrap_or_default();
        let (left, right) = sides(query)?;
        let search = common
            .search_clause()
            .map(|search| search_of(search, columns));
        let search = search.transpose()?;
        let cycle = common
            .cycle_clause()
            .map(|cycle| self.cycle_of(cycle, columns));
        let cycle = cycle.transpose()?;
        apart(&search, &cycle, common)?;

        let mut added: Vec<Column> = Vec::new();
        added.extend(search.iter().map(|search| search.column.clone()));
        let of_cycle = |cycle: &Cycle| [cycle.mark.clone(), cycle.path.clone()];
        added.extend(cycle.iter().flat_map(of_cycle));

        let own = own_columns(query, 0, left);
        let first = Side {
            order: search.as_ref().map(|search| match search.breadth_first {
                true => {
                    let depth = Expr::constant(Datum::Int8(0), ids::INT8);
                    row(std::iter::once(depth)
                        .chain(picked(&own, &search.by))
                        .collect())
                }
                false => path_of(&own, &search.by),
            }),
            mark: cycle.as_ref().map(|cycle| cycle.default.clone()),
            path: cycle.as_ref().map(|cycle| path_of(&own, &cycle.by)),
            columns: own,
        };
        let filter = None;
        wrap(query, left, first, &[], filter);

        let given = reach_back(query, right, place, &added, name)?;
        let own = own_columns(query, 1, right);
        let before = |at: usize| {
            let column = &added[at];
            column_at(given + at, column.oid, column.modifier)
        };
        let of_cycle = usize::from(search.is_some());
        let order = search.as_ref().map(|search| match search.breadth_first {
            true => {
                let depth = Expr::new(ExprKind::Field(Box::new(before(0)), 0), ids::INT8, -1);
                let one = Expr::constant(Datum::Int8(1), ids::INT8);
                let deeper = self.operator_call("+", Some(depth), one, -1)?;
                Ok(row(std::iter::once(deeper)
                    .chain(picked(&own, &search.by))
                    .collect()))
            }
            false => longer(before(0), path_of(&own, &search.by)),
        });
        let mut filter = None;
        let mut mark = None;
        let mut path = None;
        if let Some(cycle) = &cycle {
            let unmarked =
                self.operator_call("<>", Some(before(of_cycle)), cycle.value.clone(), -1)?;
            filter = Some(unmarked);
            mark = Some(marked(cycle, &own, before(of_cycle + 1))?);
            path = Some(longer(before(of_cycle + 1), path_of(&own, &cycle.by))?);
        }
        let second = Side {
            order: order.transpose()?,
            mark,
            path,
            columns: own,
        };
        wrap(query, right, second, &added, filter);
        extend(query, &added);
        Ok(added)
    }

    fn cycle_of(&mut self, cycle: &CTECycleClause, columns: &[Column]) -> Result<Cycle> {
        let value = self.expr(cycle.cycle_mark_value())?;
        let default = self.expr(cycle.cycle_mark_default())?;
        let oid = common_type(&[&value, &default], "CYCLE")?;
        let modifier = common_modifier(&[&value, &default], oid);
        let value = self.coerce_to_common(value, oid, "CYCLE/SET/TO")?;
        let default = self.coerce_to_common(default, oid, "CYCLE/SET/DEFAULT")?;
        let by = places(cycle.cycle_col_list(), columns, "cycle", cycle.location)?;
        let mark = new_column(cycle.cycle_mark_column(), oid, modifier);
        let path = new_column(cycle.cycle_path_column(), ids::RECORD_ARRAY, -1);
        for (column, what) in [(&mark, "cycle mark"), (&path, "cycle path")] {
            is_new(column, columns, what, cycle.location)?;
        }
        if mark.name == path.name {
            let message = "cycle mark column name and cycle path column name are the same";
            return Err(QueryError::new("42601", message).at(cycle.location));
        }
        Ok(Cycle {
            by,
            value,
            default,
            mark,
            path,
        })
    }
}

fn search_of(search: &CTESearchClause, columns: &[Column]) -> Result<Search> {
    let by = places(search.search_col_list(), columns, "search", search.location)?;
    let oid = match search.search_breadth_first {
        true => ids::RECORD,
        false => ids::RECORD_ARRAY,
    };
    let column = new_column(search.search_seq_column(), oid, -1);
    is_new(&column, columns, "search sequence", search.location)?;
    Ok(Search {
        by,
        column,
        breadth_first: search.search_breadth_first,
    })
}

fn new_column(name: Option<&str>, oid: u32, modifier: i32) -> Column {
    Column {
        name: Arc::from(name.unwrap_or_default()),
        oid,
        modifier,
        origin: None,
    }
}

/// The places of the columns that a clause names.
fn places(names: &NodeList, columns: &[Column], what: &str, location: i32) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for name in names.iter().filter_map(Node::as_str) {
        let place = columns.iter().position(|column| *column.name == *name);
        let place = place.ok_or_else(|| {
            let message = format!("{what} column \"{name}\" not in WITH query column list");
            QueryError::new("42601", message).at(location)
        })?;
        if found.contains(&place) {
            let message = format!("{what} column \"{name}\" specified more than once");
            return Err(QueryError::new("42701", message).at(location));
        }
        found.push(place);
    }
    Ok(found)
}

fn is_new(column: &Column, columns: &[Column], what: &str, location: i32) -> Result<()> {
    match columns.iter().any(|known| known.name == column.name) {
        false => Ok(()),
        true => Err(QueryError::new(
            "42601",
            format!(
                "{what} column name \"{}\" already used in WITH query column list",
                column.name
            ),
        )
        .at(location)),
    }
}

/// 42601 where both clauses name one column.
fn apart(search: &Option<Search>, cycle: &Option<Cycle>, common: &CommonTableExpr) -> Result<()> {
    let (Some(search), Some(cycle)) = (search, cycle) else {
        return Ok(());
    };
    let location = common.search_clause().map_or(-1, |clause| clause.location);
    for (column, what) in [(&cycle.mark, "mark"), (&cycle.path, "path")] {
        if column.name == search.column.name {
            let message =
                format!("search sequence column name and cycle {what} column name are the same");
            return Err(QueryError::new("42601", message).at(location));
        }
    }
    Ok(())
}

/// The relations of the two sides.
fn sides(query: &Query) -> Result<(usize, usize)> {
    let Some(SetOperation::Node { left, right, .. }) = &query.set_operation else {
        return Err(QueryError::new("42601", "WITH query is not recursive"));
    };
    let SetOperation::Leaf(left) = &**left else {
        return Err(QueryError::unsupported(
            "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT",
            "Write the left side as a SELECT.",
        ));
    };
    let of_right = match &**right {
        SetOperation::Leaf(right) => Some(*right),
        SetOperation::Node { .. } => None,
    };
    let is_plain = |right: &usize| match &query.relations[*right].kind {
        RelationKind::Subquery(inner, _) => inner.set_operation.is_none(),
        _ => false,
    };
    of_right
        .filter(is_plain)
        .map(|right| (*left, right))
        .ok_or_else(|| {
            QueryError::new(
                "42601",
                "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT",
            )
        })
}

fn column_at(column: usize, oid: u32, modifier: i32) -> Expr {
    let kind = ExprKind::Column {
        level: 0,
        relation: 0,
        column,
    };
    Expr::new(kind, oid, -1).with_modifier(modifier)
}

/// The columns of a side, cast as the UNION wants them, over the query that will be around it.
fn own_columns(query: &Query, side: usize, relation: usize) -> Vec<Expr> {
    fn over(expr: &mut Expr, columns: &[Column]) {
        if let ExprKind::SubqueryColumn(at) = expr.kind {
            *expr = column_at(at, columns[at].oid, columns[at].modifier);
            return;
        }
        expr.children_mut(&mut |child| over(child, columns));
    }
    let columns = &query.relations[relation].columns;
    let Some(SetOperation::Node { casts, .. }) = &query.set_operation else {
        return Vec::new();
    };
    let mut own = casts[side].clone();
    own.iter_mut().for_each(|cast| over(cast, columns));
    own
}

fn picked(columns: &[Expr], places: &[usize]) -> Vec<Expr> {
    places.iter().map(|place| columns[*place].clone()).collect()
}

fn row(parts: Vec<Expr>) -> Expr {
    Expr::new(ExprKind::Row(parts), ids::RECORD, -1)
}

/// The path of one row.
fn path_of(columns: &[Expr], by: &[usize]) -> Expr {
    let only = row(picked(columns, by));
    Expr::new(ExprKind::Array(vec![only], false), ids::RECORD_ARRAY, -1)
}

fn longer(path: Expr, by: Expr) -> Result<Expr> {
    let function = functions::by_oid(ARRAY_CAT);
    let function = function.ok_or_else(|| QueryError::internal("there is no array_cat"))?;
    let call = FunctionCall {
        function,
        operator: None,
        types: Box::new([ids::RECORD_ARRAY; 2]),
        arguments: vec![path, by],
    };
    Ok(Expr::new(
        ExprKind::Call(Box::new(call)),
        ids::RECORD_ARRAY,
        -1,
    ))
}

/// The mark of a row: whether its path has it already.
fn marked(cycle: &Cycle, columns: &[Expr], path: Expr) -> Result<Expr> {
    let function = functions::by_oid(RECORD_EQ);
    let comparison = ArrayComparison {
        function: function.ok_or_else(|| QueryError::internal("there is no record_eq"))?,
        operator: "=",
        any: true,
        value: row(picked(columns, &cycle.by)),
        array: path,
        types: [ids::RECORD; 2],
    };
    let known = Expr::new(ExprKind::AnyOfArray(Box::new(comparison)), ids::BOOL, -1);
    let case = Case {
        operand: None,
        branches: vec![(known, cycle.value.clone())],
        otherwise: cycle.default.clone(),
    };
    let (oid, modifier) = (cycle.mark.oid, cycle.mark.modifier);
    Ok(Expr::new(ExprKind::Case(Box::new(case)), oid, -1).with_modifier(modifier))
}

/// Has the recursive side give what its rows were reached with; its columns before that.
fn reach_back(
    query: &mut Query,
    right: usize,
    place: usize,
    added: &[Column],
    name: &str,
) -> Result<usize> {
    // The query of the WITH is two queries further out than the side.
    const OWNER: usize = 2;
    let side = &mut query.relations[right];
    let width = side.columns.len();
    let RelationKind::Subquery(inner, _) = &mut side.kind else {
        return Err(QueryError::internal("a side that is no query"));
    };
    let mut relations = inner.relations.iter_mut().enumerate();
    let itself = relations.find(|(_, relation)| {
        matches!(relation.kind, RelationKind::Common { level: OWNER, place: of } if of == place)
    });
    let Some((relation, itself)) = itself else {
        return Err(QueryError::unsupported(
            format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"
            ),
            "Move the reference out of the subquery.",
        ));
    };
    if inner.group.is_some() || inner.distinct != Distinctness::All {
        return Err(QueryError::unsupported(
            "GROUP BY and DISTINCT in the recursive term are not supported with SEARCH or CYCLE",
            "Write GROUP BY and DISTINCT in the query that reads the WITH item.",
        ));
    }
    let first = itself.columns.len();
    itself.columns.extend(added.iter().cloned());
    for (at, column) in added.iter().enumerate() {
        let kind = ExprKind::Column {
            level: 0,
            relation,
            column: first + at,
        };
        inner.targets.push(Target {
            expr: Expr::new(kind, column.oid, -1).with_modifier(column.modifier),
            name: Arc::clone(&column.name),
            hidden: false,
            origin: None,
        });
    }
    Ok(width)
}

/// Puts a side into a query that computes more.
fn wrap(query: &mut Query, relation: usize, side: Side, given: &[Column], filter: Option<Expr>) {
    let outer = &mut query.relations[relation];
    let names: Vec<Arc<str>> = outer
        .columns
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let no_query = RelationKind::Values(Vec::new(), false);
    let mut kind = std::mem::replace(&mut outer.kind, no_query);
    if let RelationKind::Subquery(inner, _) = &mut kind {
        // It is one query further in now.
        inner.raise_levels(1, 1);
    }
    let mut columns = outer.columns.clone();
    columns.extend(given.iter().cloned());
    let more = [side.order, side.mark, side.path];
    let exprs = side.columns.into_iter().chain(more.into_iter().flatten());
    let targets = exprs.enumerate().map(|(at, expr)| Target {
        expr,
        name: names
            .get(at)
            .cloned()
            .unwrap_or_else(|| Arc::from("?column?")),
        hidden: false,
        origin: None,
    });
    let wrapped = Query {
        targets: targets.collect(),
        relations: vec![Relation {
            kind,
            alias: Arc::clone(&outer.alias),
            columns,
            reader: None,
        }],
        from: vec![From::Relation(0)],
        filter,
        ..Query::default()
    };
    outer.columns = wrapped.columns();
    outer.kind = RelationKind::Subquery(Box::new(wrapped), false);
}

/// The UNION of the sides, with the columns that were added.
fn extend(query: &mut Query, added: &[Column]) {
    let Some(operation) = &mut query.set_operation else {
        return;
    };
    let first = operation.leaves()[0];
    let SetOperation::Node { casts, .. } = operation else {
        return;
    };
    let width = casts[0].len();
    let all: Vec<(u32, i32)> = query
        .targets
        .iter()
        .map(|target| (target.expr.oid, target.expr.modifier))
        .chain(added.iter().map(|column| (column.oid, column.modifier)))
        .collect();
    for side in casts.iter_mut() {
        // The sides cast their own columns now.
        *side = all
            .iter()
            .enumerate()
            .map(|(at, (oid, modifier))| {
                Expr::new(ExprKind::SubqueryColumn(at), *oid, -1).with_modifier(*modifier)
            })
            .collect();
    }
    for (at, column) in added.iter().enumerate() {
        let kind = ExprKind::Column {
            level: 0,
            relation: first,
            column: width + at,
        };
        query.targets.push(Target {
            expr: Expr::new(kind, column.oid, -1).with_modifier(column.modifier),
            name: Arc::clone(&column.name),
            hidden: false,
            origin: None,
        });
    }
}
