//! What a change does to a row beside its values: whether the engine may do without the row as it
//! was, and whether the row stays in its partition.

use thermocline_engine::{Table, TriggerEvent};
use thermocline_values::types::DataType;

use super::{OutputExpr, Path, Reference, Source, UpdatePlan};
use crate::bind::BindContext;
use crate::error::Result;
use crate::expr::Expr;

impl UpdatePlan {
    /// Of the rows that `source` finds.
    pub(crate) fn of(
        context: &BindContext<'_>,
        source: Source,
        assignments: Vec<(usize, Expr)>,
        returning: Option<Vec<OutputExpr>>,
    ) -> Result<Self> {
        let table = &source.table;
        // What is called before it may change any column.
        let any = table.fires_before_rows(TriggerEvent::Update);
        let generated = match any {
            true => context.generated_of(table)?,
            false => context.generated_by(table, &assignments)?,
        };
        let changed = assignments.iter().chain(&generated);
        let changed: Vec<usize> = match any {
            true => (0..table.columns.len()).collect(),
            false => changed.map(|(column, _)| *column).collect(),
        };
        let assigned = |column: &usize| changed.contains(column);
        // A row that moves is another, and has to be looked at like one.
        let moves = table.partition_key.iter().any(assigned);
        let references = Reference::of(context.catalog, table, |c| moves || assigned(c));
        let alone = references.is_empty();
        Ok(Self {
            overwrites: overwrites(&source, &assignments).filter(|_| alone),
            checks: context.checks_of(table)?,
            // What it refers to may lie anywhere.
            leaves_partition: !alone || leaves_partition(table, &changed),
            references,
            source,
            assignments,
            generated,
            returning,
            moves: None,
        })
    }
}

/// The columns of the key and their values, if one row is named by its whole key and the
/// engine may be able to do without what it was.
pub(crate) fn whole_key(source: &Source) -> Option<Vec<(usize, Expr)>> {
    let table = &*source.table;
    let Path::Probe(probe) = &source.path else {
        return None;
    };
    if !table.knows_keys() || !probe.is_exact(table) || source.filter.is_some() {
        return None;
    }
    let columns = &table.indexes[probe.index].columns;
    let mut key = Vec::with_capacity(columns.len());
    for (column, choice) in columns.iter().zip(&probe.keys) {
        let [part] = choice.as_slice() else {
            return None;
        };
        if !has_one_form(table.columns[*column].data_type) {
            return None;
        }
        key.push((*column, part.expr.clone()));
    }
    Some(key)
}

/// The columns of the key and their values, if one row is named by its whole key and given
/// all its other columns anew. Their values may be evaluated whether it is there or not. What is
/// computed is computed of a row that is read.
fn overwrites(source: &Source, assignments: &[(usize, Expr)]) -> Option<Vec<(usize, Expr)>> {
    let key = whole_key(source)?;
    let table = &*source.table;
    if table.columns.iter().any(|column| column.generated) {
        return None;
    }
    let is_key = |column: usize| key.iter().any(|(of_key, _)| *of_key == column);
    let assigned = |column: usize| assignments.iter().any(|(assigned, _)| *assigned == column);
    let whole = table.live_columns().all(|(c, _)| assigned(c) != is_key(c));
    let given = assignments.iter().all(|(_, expr)| is_given(expr));
    (whole && given).then_some(key)
}

/// Whether a value is known without a row and without an effect.
fn is_given(expr: &Expr) -> bool {
    let mut given = true;
    expr.walk(&mut |part| {
        given &= matches!(
            part,
            Expr::Constant(_) | Expr::Parameter(_) | Expr::Cast(..) | Expr::Now(_)
        );
    });
    given
}

/// Whether a change of these columns may move a row to another partition, or make it
/// clash with a row of another partition.
fn leaves_partition(table: &Table, changed: &[usize]) -> bool {
    let assigned = |column: &usize| changed.contains(column);
    let moves = table.partition_key.iter().any(assigned);
    let clashes = table.indexes.iter().any(|index| {
        index.unique
            && index.columns.iter().any(assigned)
            && (table.partition_key.is_empty()
                || !table
                    .partition_key
                    .iter()
                    .all(|column| index.columns.contains(column)))
    });
    moves || clashes
}

/// Whether rows that clash in a unique index always share a partition.
pub(crate) fn unique_within_partition(table: &Table) -> bool {
    table
        .indexes
        .iter()
        .filter(|index| index.unique)
        .all(|index| {
            !table.partition_key.is_empty()
                && table
                    .partition_key
                    .iter()
                    .all(|column| index.columns.contains(column))
        })
}

/// Whether `ON CONFLICT DO UPDATE` with these assignments puts the row that was to be
/// inserted, as it is, in the place of the one with its key. Its generated columns are computed
/// already, of the values that it keeps.
pub(crate) fn replaces(table: &Table, assignments: &[(usize, Expr)]) -> bool {
    let width = table.columns.len();
    let taken = |column: usize| {
        let mut assigned = assignments.iter().filter(|(to, _)| *to == column);
        assigned
            .next()
            .map(|(_, expr)| matches!(expr, Expr::Column(c) if *c == width + column))
    };
    let key = table
        .indexes
        .first()
        .map_or(&[][..], |index| &index.columns);
    table.knows_keys()
        && table.live_columns().all(|(column, def)| {
            taken(column).unwrap_or_else(|| def.generated || key.contains(&column))
        })
        && key
            .iter()
            .all(|column| has_one_form(table.columns[*column].data_type))
}

/// Whether equal values of the type are the same: 1.0 and 1.00 are not.
fn has_one_form(data_type: DataType) -> bool {
    !matches!(
        data_type,
        DataType::Numeric { .. }
            | DataType::Real
            | DataType::Double
            | DataType::Char(_)
            | DataType::Other { .. }
    )
}
