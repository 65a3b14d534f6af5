//! `UPDATE` and `DELETE … WHERE CURRENT OF` a cursor. A cursor that may stand on rows of tables has
//! their numbers as columns behind those that its client sees. A change takes the number of the
//! row that was fetched last.
//!
//! A number stays a row's own for as long as nobody else can delete the row: in a transaction
//! with one snapshot a deleted row is a conflict, and a cursor FOR UPDATE locks its rows, all of
//! them when it is declared. Under READ COMMITTED only the latter may be stood on.

use std::collections::HashSet;
use std::sync::Arc;

use thermocline_engine::{Catalog, ChargeKind, Table};
use thermocline_query::tree::{Distinctness, Expr, ExprKind, ROW_NUMBER, RelationKind, Target};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::Session;
use super::kept::KeptRows;
use super::lookup::Place;
use super::portal::{Portal, PortalRows};
use super::prepared::{Planned, Prepared};
use super::scroll::Scroll;
use super::unread::Rest;
use crate::error::{Result, SqlError};
use crate::expr::Expr as Stored;
use crate::output::{ColumnType, Formats, OutputColumn, RowWriter};
use crate::plan::{
    CurrentOf, LockMode, LockedRows, OutputExpr, Path, Plan, RowLock, SelectPlan, ShortPlan,
    Source, locking, row_numbered,
};
use crate::stack;
use crate::typed::TypedQuery;
use crate::typed::row_number::gives_rows;

/// What a row's number takes while it is known to be locked, in bytes.
const LOCKED_BYTES: u64 = 64;

/// The rows that a cursor stands on.
pub(super) struct Stand {
    /// The tables, by the columns that have their rows' numbers.
    tables: Vec<u32>,
    /// How many columns the client sees before those.
    pub(super) shown: usize,
    /// Whether the rows are locked.
    is_locked: bool,
    /// The rows' numbers, while it stands on a row.
    pub(super) at: Option<Vec<i64>>,
}

/// A cursor's query that gives its rows' numbers, too.
pub(super) struct Standing {
    typed: Arc<TypedQuery>,
    /// The tables whose rows are locked.
    locked: Vec<Arc<Table>>,
    pub(super) stand: Stand,
}

impl Standing {
    /// Of a cursor's query, if each of its rows is one of a table.
    pub(super) fn of(typed: &TypedQuery) -> Option<Self> {
        let mut query = typed.query.clone();
        let is_plain = query.set_operation.is_none()
            && query.group.is_none()
            && query.having.is_none()
            && query.windows.is_empty()
            && query.distinct == Distinctness::All
            && !query.has_set_targets
            && query.with.is_empty();
        let waits = query.locks.iter().all(|lock| lock.wait == 0);
        if !is_plain || !waits {
            return None;
        }
        let is_locked = !query.locks.is_empty();
        let places: Vec<usize> = match is_locked {
            true => query.locks.iter().map(|lock| lock.relation).collect(),
            false if query.relations.len() == 1 => vec![0],
            false => return None,
        };
        let shown = query.targets.iter().filter(|target| !target.hidden).count();
        let mut tables = Vec::new();
        let mut locked = Vec::new();
        for place in places {
            if !query.from.iter().any(|from| gives_rows(from, place)) {
                return None;
            }
            let relation = query.relations.get_mut(place)?;
            let RelationKind::Table(oid) = relation.kind else {
                return None;
            };
            let table = typed.tables.iter().find(|table| table.oid == oid)?;
            let number = relation.number_rows();
            if number != table.columns.len() {
                return None;
            }
            let kind = ExprKind::Column {
                level: 0,
                relation: place,
                column: number,
            };
            query.targets.push(Target {
                expr: Expr::new(kind, DataType::BigInt.oid(), -1),
                name: Arc::from(ROW_NUMBER),
                hidden: false,
                origin: None,
            });
            tables.push(oid);
            if is_locked {
                locked.push(Arc::clone(table));
            }
        }
        query.locks.clear();
        let typed = typed.with_query(query);
        Some(Self {
            typed: Arc::new(typed),
            locked,
            stand: Stand {
                tables,
                shown,
                is_locked,
                at: None,
            },
        })
    }
}

impl Session {
    /// Starts a cursor that stands on rows; false if it is none. Those that it locks are locked.
    pub(super) async fn start_standing(
        &mut self,
        portal: &mut Portal,
        planned: &Planned,
    ) -> Result<bool> {
        self.check_read_only(planned)?;
        if planned.calls_functions() {
            return Ok(false);
        }
        if let Plan::Short(ShortPlan::Select(select)) = &planned.bound.plan
            && let Some(source) = &select.source
            && matches!(source.path, Path::Probe(_))
            && source.is_bounded()
        {
            let is_plain =
                select.aggregate.is_none() && select.joins.is_empty() && !select.is_volatile();
            if is_plain {
                self.start_bounded(portal, planned, select, source).await?;
            }
            return Ok(is_plain);
        }
        let standing = match &planned.bound.plan {
            Plan::Analytical { typed, .. } => Standing::of(typed),
            Plan::Short(ShortPlan::Select(_) | ShortPlan::LockingRead(_)) => {
                self.standing(&portal.prepared)
            }
            Plan::Short(_) => None,
        };
        // The session calls functions while it takes rows, not while a client does.
        let Some(standing) = standing.filter(|standing| !standing.typed.calls) else {
            return Ok(false);
        };
        portal.rows = self.standing_rows(&standing, &planned.catalog).await?;
        portal.stand = Some(standing.stand);
        Ok(true)
    }

    /// Of rows that an index bounds: the short path finds and locks them.
    async fn start_bounded(
        &mut self,
        portal: &mut Portal,
        planned: &Planned,
        select: &SelectPlan,
        source: &Source,
    ) -> Result<()> {
        let column_type = ColumnType::Scalar(DataType::BigInt);
        let mut numbered = select.clone();
        numbered.numbered = true;
        numbered.output.push(OutputExpr {
            expr: Stored::Column(source.table.columns.len()),
            column_type,
        });
        let plan = ShortPlan::Select(Arc::new(numbered));
        let charge = self.account.nothing(ChargeKind::Portal);
        let mut rows = RowWriter::kept().charged(charge);
        self.run_short(&plan, &planned.settings.styles, &[], &mut rows)
            .await?;
        let mut kept = KeptRows::of(rows);
        kept.spill_if_large(self.engine.db.spill())?;
        let mut columns = planned.columns.as_deref().unwrap_or_default().to_vec();
        portal.stand = Some(Stand {
            tables: vec![source.table.oid],
            shown: columns.len(),
            is_locked: select.lock.is_some(),
            at: None,
        });
        columns.push(OutputColumn::new(ROW_NUMBER, column_type));
        portal.rows = PortalRows::Open(self.unread(Rest::kept(kept, columns.into())));
        Ok(())
    }

    /// A cursor's query with the numbers of its rows, if it is one to stand on.
    fn standing(&self, prepared: &Prepared) -> Option<Standing> {
        // A deep tree is not worth a second one.
        if stack::is_deep(prepared.depth) {
            return None;
        }
        self.lookup().standing(Place {
            text: &prepared.text,
            declared: &prepared.declared,
        })
    }

    /// The rows of a query; none of those that it locks was changed since it read them.
    async fn standing_rows(
        &mut self,
        standing: &Standing,
        catalog: &Arc<Catalog>,
    ) -> Result<PortalRows> {
        let db = Arc::clone(&self.engine.db);
        let mut charge = self.account.nothing(ChargeKind::Portal);
        let mut locked: HashSet<(usize, i64)> = HashSet::new();
        let lock = RowLock {
            mode: LockMode::Update,
            locked: LockedRows::Wait,
        };
        let locks = standing.locked.iter();
        let locks: Vec<ShortPlan> = locks
            .map(|table| locking(row_numbered(table, 0), lock))
            .collect();
        loop {
            let stream = self.start_analytical(&standing.typed, catalog, &[]).await?;
            let mut rest = Rest::stream(stream, &self.account);
            if locks.is_empty() {
                return Ok(PortalRows::Open(self.unread(rest)));
            }
            rest.keep_all(&db, &self.options()).await?;
            let (kept, columns) = rest.take_kept();
            let mut scroll = Scroll::of(kept, columns, &self.account, db.spill())?;
            let mut settled = true;
            for row in 1..=scroll.rows() {
                let numbers = numbers_of(&mut scroll, row, standing.stand.shown)?;
                for (place, (number, plan)) in numbers.into_iter().zip(&locks).enumerate() {
                    if locked.contains(&(place, number)) {
                        continue;
                    }
                    charge.grow(LOCKED_BYTES)?;
                    let rows = [vec![Value::BigInt(number)]];
                    let mut nothing = RowWriter::values();
                    self.each((plan, 0), &rows, &[], &mut nothing).await?;
                    locked.insert((place, number));
                    settled = false;
                }
            }
            // What was read before it was locked may have been changed in between.
            if settled {
                return Ok(PortalRows::Scroll(Box::new(scroll)));
            }
        }
    }

    /// Changes the row that a cursor stands on; how many rows were changed.
    ///
    /// # Errors
    /// 34000 for an unknown cursor, 24000 for one that stands on no row of the table.
    pub(super) async fn change_current(
        &mut self,
        plan: &CurrentOf,
        parameters: &[Value],
        rows: &mut RowWriter,
    ) -> Result<u64> {
        let number = self.current_row(plan)?;
        let row = [vec![Value::BigInt(number)]];
        let change = (&plan.change, plan.own_parameters);
        let changed = self.each(change, &row, parameters, rows).await?;
        let moves = matches!(&plan.change, ShortPlan::Update(update) if update.leaves_partition);
        if moves && let Some(portal) = self.portals.get_mut(&*plan.cursor) {
            // Where the row is now it has another number.
            portal.stand.iter_mut().for_each(|stand| stand.at = None);
        }
        Ok(changed)
    }

    fn current_row(&self, plan: &CurrentOf) -> Result<i64> {
        let (cursor, table) = (&plan.cursor, &plan.table);
        let refused = |message: String| Err(SqlError::new("24000", message));
        let Some(portal) = self.portals.get(&**cursor) else {
            let message = format!("cursor \"{cursor}\" does not exist");
            return Err(SqlError::new("34000", message));
        };
        let not_simple = || {
            refused(format!(
                "cursor \"{cursor}\" is not a simply updatable scan of table \"{}\"",
                table.name
            ))
        };
        if portal.is_of_before {
            return refused(format!(
                "cursor \"{cursor}\" is held from a previous transaction"
            ));
        }
        let Some(stand) = &portal.stand else {
            return not_simple();
        };
        let mut places = (0..stand.tables.len()).filter(|place| stand.tables[*place] == table.oid);
        let (place, another) = (places.next(), places.next());
        let place = match (place, another, stand.is_locked) {
            (Some(place), None, _) => place,
            (None, _, true) => {
                return refused(format!(
                    "cursor \"{cursor}\" does not have a FOR UPDATE/SHARE reference to table \"{}\"",
                    table.name
                ));
            }
            (Some(_), Some(_), true) => {
                return refused(format!(
                    "cursor \"{cursor}\" has multiple FOR UPDATE/SHARE references to table \"{}\"",
                    table.name
                ));
            }
            _ => return not_simple(),
        };
        if !stand.is_locked && self.transaction.sees_commits_between(&self.context) {
            return Err(SqlError::unsupported(
                format!(
                    "WHERE CURRENT OF cursor \"{cursor}\", which is not FOR UPDATE, is not supported under READ COMMITTED"
                ),
                "Declare the cursor FOR UPDATE.",
            ));
        }
        match stand.at.as_ref().and_then(|at| at.get(place)) {
            Some(number) => Ok(*number),
            None => refused(format!("cursor \"{cursor}\" is not positioned on a row")),
        }
    }
}

/// The numbers behind the columns that the client sees, of a row by its number from 1.
pub(super) fn numbers_of(scroll: &mut Scroll, row: usize, shown: usize) -> Result<Vec<i64>> {
    let mut rows = RowWriter::wire(Vec::new(), Formats::Text).hiding(Some(shown));
    scroll.write(row, &mut rows)?;
    Ok(rows.take_hidden().unwrap_or_default())
}
