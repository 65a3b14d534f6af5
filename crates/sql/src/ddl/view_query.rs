//! The query of a view that is made: its columns, what it reads, and whether a view of it
//! could take changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use thermocline_engine::authority::FIRST_ROLE_OID;
use thermocline_engine::{Catalog, ViewColumn, ViewDef, ViewFunction, ViewRead, ViewType};
use thermocline_query::analyze::{OF_NO_TABLE, view_obstacle};
use thermocline_query::tree::{ExprKind, Query, RelationKind, Target};

use super::Definition;
use crate::error::{Result, SqlError};
use crate::parse::view::CreateView;
use crate::privilege::Actor;
use crate::short::not_of_a_row;

/// See the head of this file.
pub(super) struct ViewQuery {
    pub(super) columns: Vec<ViewColumn>,
    pub(super) reads: Vec<ViewRead>,
    pub(super) types: Vec<ViewType>,
    pub(super) functions: Vec<ViewFunction>,
    /// Why it takes no changes in PostgreSQL.
    pub(super) obstacle: Option<String>,
    /// Why no rows that come through it are checked by its condition.
    pub(super) unchecked: Option<SqlError>,
}

/// The columns of tables that a view's query reads: the tables' numbers and the positions.
pub(super) fn columns_of_view(
    definition: &Definition<'_>,
    view: &ViewDef,
) -> Result<BTreeSet<(u32, usize)>> {
    let catalog = definition.catalog();
    // Whoever may drop a column may not be allowed to read the view.
    let facts = crate::analysis::SessionFacts {
        actor: Actor::numbered(FIRST_ROLE_OID, &catalog)?,
        search_path: vec![view.schema.clone()],
        ..facts(definition)?
    };
    let read = crate::analysis::columns_of_view(view, &catalog, definition.db, facts)?;
    Ok(read)
}

pub(super) fn facts(definition: &Definition<'_>) -> Result<crate::analysis::SessionFacts> {
    Ok(crate::analysis::SessionFacts {
        actor: definition.actor()?,
        session_user: definition.session_user.to_owned(),
        database: crate::session::DATABASE_NAME.to_owned(),
        search_path: definition.search_path.to_vec(),
        creation_path: definition.creation_path.to_vec(),
        now_us: definition.now_us,
        styles: Arc::clone(definition.styles),
        ..Default::default()
    })
}

/// Analyses it as names mean in `catalog`.
pub(super) fn view_query(
    definition: &Definition<'_>,
    catalog: &Arc<Catalog>,
    create: &CreateView,
) -> Result<ViewQuery> {
    let facts = facts(definition)?;
    let analysed = crate::stack::with_room(create.depth, || {
        crate::analysis::bind_view(&create.query, catalog, definition.db, &facts)
    });
    let view = analysed.map_err(|mut error| {
        error.position = error.position.map(|position| position + create.before);
        error
    })?;
    let query = &view.query;
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported(
            "row locks in a view are not supported",
            "Lock the rows in a query of the table.",
        ));
    }
    analysis::keeps(query)?;
    let mut columns = Vec::new();
    for column in query.columns() {
        analysis::has_columns_type(&column)?;
        columns.push(ViewColumn {
            name: column.name.to_string(),
            written: column.name.to_string(),
            type_oid: column.oid,
            modifier: column.modifier,
        });
    }
    let obstacle = obstacle_of(query, catalog);
    Ok(ViewQuery {
        columns,
        reads: view.reads,
        types: view.types,
        functions: view.functions,
        obstacle: obstacle.map(str::to_owned),
        unchecked: unchecked(query, catalog),
    })
}

/// Why a view of a query takes no changes, in PostgreSQL's words.
fn obstacle_of(query: &Query, catalog: &Catalog) -> Option<&'static str> {
    view_obstacle(query).or_else(|| match query.relations.first()?.kind {
        RelationKind::Table(oid) if catalog.table(oid)?.is_materialized() => Some(OF_NO_TABLE),
        _ => None,
    })
}

/// Why a view of a query cannot be WITH CHECK OPTION.
fn unchecked(query: &Query, catalog: &Catalog) -> Option<SqlError> {
    const ONLY: &str = "WITH CHECK OPTION is supported only on automatically updatable views";
    if let Some(obstacle) = obstacle_of(query, catalog) {
        return Some(SqlError::unsupported(ONLY, obstacle));
    }
    let is_column = |target: &Target| matches!(target.expr.kind, ExprKind::Column { .. });
    if !query.targets.iter().any(is_column) {
        return Some(SqlError::unsupported(
            ONLY,
            "Views that have no updatable columns are not automatically updatable.",
        ));
    }
    let relation = query.relations.first().map(|relation| &relation.kind);
    if !matches!(relation, Some(RelationKind::Table(_))) {
        return Some(SqlError::unsupported(
            "WITH CHECK OPTION on a view of a view is not supported",
            "Such a view takes no changes: make it a view of the table.",
        ));
    }
    let what = not_of_a_row(query.filter.as_ref()?)?;
    Some(SqlError::unsupported(
        format!("WITH CHECK OPTION with {what} in the view's WHERE is not supported"),
        "Leave it out, or put the condition into a trigger of the table.",
    ))
}

mod analysis {
    use thermocline_engine::catalog::FIRST_USER_OID;
    use thermocline_query::datum::Datum;
    use thermocline_query::tree::{Column, Expr, ExprKind, Query};
    use thermocline_query::types::{self, format_type, ids};

    use crate::error::{Result, SqlError};

    /// The types of names of objects.
    const NAMES: [u32; 10] = [
        ids::REGPROC,
        ids::REGPROCEDURE,
        ids::REGOPER,
        ids::REGOPERATOR,
        ids::REGCLASS,
        ids::REGTYPE,
        ids::REGNAMESPACE,
        ids::REGROLE,
        ids::REGCOLLATION,
        ids::RECORD,
    ];

    /// 0A000 for a constant that names a user's object: it would mean what the name means
    /// later, and nothing would keep the object from being dropped.
    pub(super) fn keeps(query: &Query) -> Result<()> {
        fn of_query(query: &Query, found: &mut bool) {
            query.exprs(&mut |expr| of_expr(expr, found));
        }
        fn of_expr(expr: &Expr, found: &mut bool) {
            expr.any(&mut |expr| {
                match &expr.kind {
                    ExprKind::Constant(Datum::Null) => {}
                    ExprKind::Constant(value) => {
                        let users = matches!(value, Datum::Oid(oid) if *oid >= FIRST_USER_OID);
                        let array = types::element_of(expr.oid);
                        let of_names = array.is_some_and(|of| NAMES.contains(&of));
                        *found |= (NAMES.contains(&expr.oid) && users) || of_names;
                    }
                    ExprKind::Subquery(subquery) => of_query(&subquery.query, found),
                    _ => {}
                }
                *found
            });
        }
        let mut found = false;
        of_query(query, &mut found);
        match found {
            false => Ok(()),
            true => Err(SqlError::unsupported(
                "constants that name objects, such as 't'::regclass, are not supported in a view",
                "Look the object up by its name in pg_class.",
            )),
        }
    }

    /// 42P16 for a type that no column of a view has.
    pub(super) fn has_columns_type(column: &Column) -> Result<()> {
        let of = types::element_of(column.oid).unwrap_or(column.oid);
        let pseudo = types::by_oid(of).is_none_or(|known| known.category == b'P');
        match pseudo {
            false => Ok(()),
            true => Err(SqlError::new(
                "42P16",
                format!(
                    "column \"{}\" has pseudo-type {}",
                    column.name,
                    format_type(column.oid, column.modifier)
                ),
            )),
        }
    }
}
