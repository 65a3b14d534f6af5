//! Choosing the access path: which index bounds the rows best, what of the
//! condition it already says, and whether it also gives the wanted order.
//! There are no statistics: a full key beats a longer prefix beats a range.

use std::sync::Arc;

use thermocline_engine::{ColumnDef, IndexKind, Table};
use thermocline_values::types::DataType;

use super::fit::fits;
use super::{KeyBound, KeyChoice, KeyPart, Path, Probe, SortKey, Source};
use crate::expr::{Comparison, Expr, base_type};

/// At most this many keys are looked up for IN lists; longer products scan.
const KEYS_MAX: usize = 4096;

/// A key of ORDER BY that is a plain column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OrderKey {
    pub(crate) column: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// The sort keys, if all are plain columns.
pub(crate) fn plain_keys(sort: &[SortKey]) -> Option<Vec<OrderKey>> {
    let key = |key: &SortKey| match key.expr {
        Expr::Column(column) => Some(OrderKey {
            column,
            descending: key.descending,
            nulls_first: key.nulls_first,
        }),
        _ => None,
    };
    sort.iter().map(key).collect()
}

/// What one conjunct says about a column.
enum Fact {
    Equal(KeyChoice),
    Lower(KeyBound),
    Upper(KeyBound),
}

struct ColumnFact {
    conjunct: usize,
    column: usize,
    fact: Fact,
    /// The index says all that the conjunct says.
    exact: bool,
}

/// Chooses the path to the rows of `table` that satisfy `condition`, if
/// possible in the order of `order`. Returns whether it gives that order. `order_pays` is
/// asked only where an index gives the order and none bounds the rows.
pub(crate) fn choose(
    table: &Arc<Table>,
    condition: Option<Expr>,
    order: &[OrderKey],
    order_pays: impl Fn() -> bool,
) -> (Source, bool) {
    let mut conjuncts = Vec::new();
    if let Some(condition) = condition.clone() {
        flatten(condition, &mut conjuncts);
    }
    let facts: Vec<ColumnFact> = conjuncts
        .iter()
        .enumerate()
        .filter_map(|(number, conjunct)| column_fact(table, number, conjunct))
        .collect();

    let mut candidates = Vec::new();
    for index in 0..table.indexes.len() {
        let Some((score, mut probe, used)) = probe_of(table, index, &facts) else {
            continue;
        };
        let direction = order_direction(table, &probe, order);
        probe.backward = direction == Some(true);
        candidates.push((score, direction.is_some(), probe, used));
    }
    let is_narrowed = candidates.iter().any(|(score, ..)| *score > 0);
    let mut best: Option<(u32, bool, Probe, Vec<usize>)> = None;
    for candidate in candidates {
        let (score, ordered, ..) = candidate;
        if score == 0 && (is_narrowed || !ordered || !order_pays()) {
            continue;
        }
        let better = best.as_ref().is_none_or(|(best_score, best_ordered, ..)| {
            (score, ordered) > (*best_score, *best_ordered)
        });
        if better {
            best = Some(candidate);
        }
    }

    let partition = partition_choice(table, &facts);
    let (path, ordered, used) = match best {
        Some((_, ordered, probe, used)) => (Path::Probe(probe), ordered, used),
        None => (Path::Scan, false, Vec::new()),
    };
    let residual: Vec<Expr> = conjuncts
        .into_iter()
        .enumerate()
        .filter(|(number, conjunct)| !used.contains(number) && !is_implied(table, conjunct))
        .map(|(_, conjunct)| conjunct)
        .collect();
    let source = Source {
        table: Arc::clone(table),
        path,
        filter: conjunction(residual),
        condition,
        partition,
    };
    (source, ordered || order.is_empty())
}

/// Whether a conjunct is there for an index alone: what it asks the others imply.
fn is_implied(table: &Table, conjunct: &Expr) -> bool {
    let Expr::Compare(_, left, _) = conjunct else {
        return false;
    };
    matches!(**left, Expr::Column(column)
        if table.columns.get(column).is_some_and(ColumnDef::is_predicate))
}

/// The conjunction of `conjuncts`; `None` when there are none.
pub(crate) fn conjunction(mut conjuncts: Vec<Expr>) -> Option<Expr> {
    match conjuncts.len() {
        0 => None,
        1 => conjuncts.pop(),
        _ => Some(Expr::And(conjuncts)),
    }
}

fn flatten(condition: Expr, conjuncts: &mut Vec<Expr>) {
    match condition {
        Expr::And(operands) => operands
            .into_iter()
            .for_each(|operand| flatten(operand, conjuncts)),
        other => conjuncts.push(other),
    }
}

/// The column behind `expr` and the type in which it is compared, when the
/// conversion in between keeps the order and loses nothing.
fn column_behind(table: &Table, expr: &Expr) -> Option<(usize, DataType)> {
    match expr {
        Expr::Column(column) => {
            let column_type = table.columns.get(*column)?.data_type;
            Some((*column, base_type(column_type)))
        }
        Expr::Cast(path, operand) => match (&**operand, path.from, path.to) {
            (Expr::Column(column), from, to)
                if (from.is_integer()
                    && (to.is_integer() && to.typlen() > from.typlen()
                        || to == DataType::NUMERIC))
                    || (from.is_text() && matches!(to, DataType::Text | DataType::Varchar(0))) =>
            {
                Some((*column, to))
            }
            _ => None,
        },
        _ => None,
    }
}

fn usable_value(expr: &Expr) -> bool {
    !expr.reads_row() && !expr.is_volatile()
}

fn column_fact(table: &Table, conjunct: usize, expr: &Expr) -> Option<ColumnFact> {
    match expr {
        Expr::Compare(comparison, left, right) => {
            let (comparison, column, data_type, value) =
                match (column_behind(table, left), column_behind(table, right)) {
                    (Some((column, data_type)), _) if usable_value(right) => {
                        (*comparison, column, data_type, right)
                    }
                    (_, Some((column, data_type))) if usable_value(left) => {
                        (comparison.mirrored(), column, data_type, left)
                    }
                    _ => return None,
                };
            let column_type = table.columns[column].data_type;
            if !fits(data_type, column_type) {
                return None;
            }
            let part = KeyPart {
                expr: (**value).clone(),
                data_type,
            };
            let bound = |inclusive| KeyBound {
                part: part.clone(),
                inclusive,
            };
            let fact = match comparison {
                Comparison::Equal => Fact::Equal(vec![part]),
                Comparison::Greater => Fact::Lower(bound(false)),
                Comparison::GreaterOrEqual => Fact::Lower(bound(true)),
                Comparison::Less => Fact::Upper(bound(false)),
                Comparison::LessOrEqual => Fact::Upper(bound(true)),
                Comparison::NotEqual => return None,
            };
            Some(ColumnFact {
                conjunct,
                column,
                fact,
                exact: is_exact(data_type, column_type),
            })
        }
        Expr::InList {
            operand,
            list,
            negated: false,
        } => {
            let (column, data_type) = column_behind(table, operand)?;
            let column_type = table.columns[column].data_type;
            if !fits(data_type, column_type) || !list.iter().all(usable_value) {
                return None;
            }
            let choice = list
                .iter()
                .map(|value| KeyPart {
                    expr: value.clone(),
                    data_type,
                })
                .collect();
            Some(ColumnFact {
                conjunct,
                column,
                fact: Fact::Equal(choice),
                exact: is_exact(data_type, column_type),
            })
        }
        _ => None,
    }
}

/// A `char(n)` column compared as text keeps its condition: the key ignores
/// trailing blanks, the comparison does not.
fn is_exact(value: DataType, column: DataType) -> bool {
    !matches!(column, DataType::Char(_)) || matches!(value, DataType::Char(_))
}

fn equality(facts: &[ColumnFact], column: usize) -> Option<(&ColumnFact, &KeyChoice)> {
    facts
        .iter()
        .filter(|fact| fact.column == column)
        .filter_map(|fact| match &fact.fact {
            Fact::Equal(choice) => Some((fact, choice)),
            _ => None,
        })
        .min_by_key(|(_, choice)| choice.len())
}

/// The probe of `index` that `facts` allow, its worth, and the conjuncts that
/// it makes superfluous. Worth 0: all of a B+tree, useful for its order only.
fn probe_of(table: &Table, index: usize, facts: &[ColumnFact]) -> Option<(u32, Probe, Vec<usize>)> {
    let def = &table.indexes[index];
    let mut keys: Vec<KeyChoice> = Vec::new();
    let mut used = Vec::new();
    let mut products = 1usize;
    for column in &def.columns {
        let Some((fact, choice)) = equality(facts, *column) else {
            break;
        };
        products = products.saturating_mul(choice.len());
        if products > KEYS_MAX {
            break;
        }
        if fact.exact {
            used.push(fact.conjunct);
        }
        keys.push(choice.clone());
    }
    let exact = keys.len() == def.columns.len();
    if def.kind == IndexKind::Hash && !exact {
        return None;
    }
    let (mut lower, mut upper) = (None, None);
    if !exact {
        let column = def.columns[keys.len()];
        for fact in facts.iter().filter(|fact| fact.column == column) {
            let end = match &fact.fact {
                Fact::Lower(bound) if lower.is_none() => {
                    lower = Some(bound.clone());
                    true
                }
                Fact::Upper(bound) if upper.is_none() => {
                    upper = Some(bound.clone());
                    true
                }
                _ => false,
            };
            if end && fact.exact {
                used.push(fact.conjunct);
            }
        }
    }
    let score = if exact {
        1_000 + if def.unique { 1_000 } else { 0 } + u32::from(def.primary)
            - products.min(500) as u32
    } else {
        10 * keys.len() as u32 + 3 * u32::from(lower.is_some()) + 3 * u32::from(upper.is_some())
    };
    let probe = Probe {
        index,
        keys,
        lower,
        upper,
        backward: false,
    };
    Some((score, probe, used))
}

/// Whether the probe gives `order`, and if so whether backwards.
fn order_direction(table: &Table, probe: &Probe, order: &[OrderKey]) -> Option<bool> {
    if order.is_empty() {
        return Some(false);
    }
    if probe.keys.iter().any(|choice| choice.len() > 1) {
        return None;
    }
    if probe.is_unique(table) {
        return Some(false);
    }
    let def = &table.indexes[probe.index];
    if def.kind != IndexKind::BTree {
        return None;
    }
    let (fixed, rest) = def.columns.split_at(probe.keys.len());
    let mut rest = rest.iter();
    let mut direction = None;
    for key in order {
        if fixed.contains(&key.column) {
            continue;
        }
        // Keys have NULLs last, as ascending order by default.
        let column = &table.columns[key.column];
        if rest.next() != Some(&key.column)
            || (!column.not_null && key.nulls_first != key.descending)
            || direction.is_some_and(|descending| descending != key.descending)
        {
            return None;
        }
        direction = Some(key.descending);
    }
    Some(direction.unwrap_or(false))
}

fn partition_choice(table: &Table, facts: &[ColumnFact]) -> Option<Vec<KeyChoice>> {
    if table.partition_key.is_empty() {
        return None;
    }
    let mut products = 1usize;
    let mut choices = Vec::with_capacity(table.partition_key.len());
    for column in &table.partition_key {
        let (_, choice) = equality(facts, *column)?;
        products = products.saturating_mul(choice.len());
        if products > KEYS_MAX {
            return None;
        }
        choices.push(choice.clone());
    }
    Some(choices)
}
