//! EXPLAIN: the plan in PostgreSQL's words, then which path a statement takes
//! and why.

use thermocline_engine::Table;
use thermocline_values::numeric::long::LONG;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::{
    InsertSource, JoinStep, KeyBound, KeyChoice, Path, Plan, Probe, ReadQuery, SelectPlan,
    ShortPlan, Source, StepKind,
};
use crate::expr::{Comparison, Expr};

impl Plan {
    /// The lines of EXPLAIN.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        match self {
            Self::Short(plan) => plan.explain(),
            Self::Analytical { reason, .. } => vec![format!("Path: analytical ({reason})")],
        }
    }
}

impl ShortPlan {
    /// The lines of EXPLAIN.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self {
            Self::Select(select) => {
                let mut depth = 0;
                let node = |depth: &mut usize, name: &str, lines: &mut Vec<String>| {
                    lines.push(indented(*depth, name));
                    *depth += 1;
                };
                if select.limit.is_some() || select.offset.is_some() {
                    node(&mut depth, "Limit", &mut lines);
                }
                if select.lock.is_some() {
                    node(&mut depth, "LockRows", &mut lines);
                }
                if !select.sort.is_empty() {
                    node(&mut depth, "Sort", &mut lines);
                    let names = sort_names(select);
                    lines.push(detail(depth, &format!("Sort Key: {names}")));
                }
                if let Some(aggregate) = &select.aggregate {
                    let name = if aggregate.groups.is_empty() {
                        "Aggregate"
                    } else {
                        "HashAggregate"
                    };
                    node(&mut depth, name, &mut lines);
                    if aggregate.first_row_decides {
                        lines.push(detail(depth, "First Row Decides: true"));
                    }
                }
                match &select.source {
                    Some(source) => explain_joins(source, &select.joins, depth, &mut lines),
                    None => lines.push(indented(depth, "Result")),
                }
            }
            Self::OneRow(plan) => lines.push(crate::one_row::shown(plan).to_owned()),
            Self::Computed(plan) => {
                lines.push("Calls for Each Row".to_owned());
                let mut inner = plan.rows.explain();
                inner.pop();
                let below = inner.iter().enumerate().map(|(at, line)| match at {
                    0 => indented(1, line),
                    _ => format!("      {line}"),
                });
                lines.extend(below);
            }
            Self::Insert(insert) => {
                lines.push(format!("Insert on {}", insert.target.table.name));
                if let Some(conflict) = &insert.target.conflict {
                    let resolution = match conflict.update {
                        Some(_) => "UPDATE",
                        None => "NOTHING",
                    };
                    lines.push(detail(1, &format!("Conflict Resolution: {resolution}")));
                    let names: Vec<&str> = conflict
                        .arbiters
                        .iter()
                        .map(|index| insert.target.table.indexes[*index].name.as_str())
                        .collect();
                    lines.push(detail(
                        1,
                        &format!("Conflict Arbiter Indexes: {}", names.join(", ")),
                    ));
                }
                match &insert.source {
                    InsertSource::Values(rows) if rows.len() == 1 => {
                        lines.push(indented(1, "Result"));
                    }
                    InsertSource::Values(rows) => {
                        lines.push(indented(1, &format!("Values Scan  ({} rows)", rows.len())));
                    }
                    InsertSource::Query(query, _) => {
                        let mut inner = query.explain();
                        inner.pop();
                        lines.extend(inner.into_iter().map(|line| format!("  {line}")));
                    }
                    InsertSource::Analytical(query) => explain_query(query, 1, &mut lines),
                }
            }
            Self::Update(update) => {
                lines.push(format!("Update on {}", update.source.table.name));
                explain_source(&update.source, 1, &mut lines);
            }
            Self::ByQuery(plan) => {
                let mut inner = plan.change.explain();
                inner.pop();
                lines.extend(inner);
                explain_query(&plan.query, 2, &mut lines);
            }
            Self::Merge(plan) => {
                lines.push(format!("Merge on {}", plan.table.name));
                explain_query(&plan.query, 1, &mut lines);
            }
            Self::CurrentOf(plan) => {
                let mut inner = plan.change.explain();
                inner.pop();
                lines.extend(inner);
            }
            Self::LockingRead(read) => {
                let depth = usize::from(!read.locks.is_empty());
                if depth > 0 {
                    lines.push("LockRows".to_owned());
                }
                let found = format!("Analytical Query  ({})", read.query.reason);
                lines.push(indented(depth, &found));
            }
            Self::After(after) => {
                let mut last = after.plan.explain();
                last.pop();
                lines.append(&mut last);
                for before in &after.before {
                    let mut first = before.plan.explain();
                    first.pop();
                    lines.push(indented(1, "Before it"));
                    lines.extend(first.into_iter().map(|line| format!("    {line}")));
                }
            }
            Self::Each(each) => {
                lines.push(format!("Partitions of {}", each.partitions.table().name));
                for plan in each.plans.iter().flatten() {
                    let mut inner = plan.explain();
                    inner.pop();
                    let inner = inner.iter().enumerate();
                    lines.extend(inner.map(|(at, line)| match at {
                        0 => indented(1, line),
                        _ => format!("      {line}"),
                    }));
                }
            }
            Self::Delete(delete) => {
                lines.push(format!("Delete on {}", delete.source.table.name));
                explain_source(&delete.source, 1, &mut lines);
            }
        }
        lines.push(format!("Path: short ({})", self.why()));
        lines
    }

    /// Why the statement is short.
    fn why(&self) -> String {
        match self {
            Self::Select(select) => match &select.source {
                Some(_) if !select.joins.is_empty() => {
                    "an index leads to the rows of each table; all partitions".to_owned()
                }
                Some(source) => reach(source),
                None => "no table".to_owned(),
            },
            Self::OneRow(_) => "no table".to_owned(),
            Self::Insert(_) => "rows are stored in place".to_owned(),
            Self::Update(update) => reach(&update.source),
            Self::Delete(delete) => reach(&delete.source),
            Self::ByQuery(_) | Self::Merge(_) => {
                "a query finds the rows, by key they are changed".to_owned()
            }
            Self::CurrentOf(plan) => format!("the row of cursor {}", plan.cursor),
            Self::LockingRead(_) => "a query finds the rows, by key they are locked".to_owned(),
            Self::Computed(plan) => plan.rows.why(),
            Self::After(after) => after.plan.why(),
            Self::Each(each) => match each.plans.iter().flatten().next() {
                Some(plan) => format!("the partitions of its key; {}", plan.why()),
                None => "no partition is left".to_owned(),
            },
        }
    }
}

fn reach(source: &Source) -> String {
    let partitions = if source.partition.is_some() {
        "one partition a key"
    } else {
        "all partitions"
    };
    match &source.path {
        Path::Scan => format!("a scan; {partitions}"),
        Path::Row(_) => "a row by its number; its partition".to_owned(),
        Path::Probe(probe) => {
            let index = &source.table.indexes[probe.index].name;
            let how = if probe.is_unique(&source.table) {
                "a unique key of"
            } else if probe.is_exact(&source.table) {
                "a key of"
            } else if probe.is_bounded() {
                "a range of"
            } else {
                "the order of"
            };
            format!("{how} {index}; {partitions}")
        }
    }
}

fn indented(depth: usize, name: &str) -> String {
    if depth == 0 {
        name.to_owned()
    } else {
        format!("{:width$}->  {name}", "", width = (depth - 1) * 6 + 2)
    }
}

fn detail(depth: usize, text: &str) -> String {
    format!("{:width$}{text}", "", width = (depth - 1) * 6 + 2)
}

fn explain_source(source: &Source, depth: usize, lines: &mut Vec<String>) {
    let table = &*source.table;
    match &source.path {
        Path::Scan => lines.push(indented(depth, &format!("Seq Scan on {}", table.name))),
        Path::Row(_) => lines.push(indented(depth, &format!("Row of {}", table.name))),
        Path::Probe(probe) => {
            let backward = if probe.backward { " Backward" } else { "" };
            let index = &table.indexes[probe.index];
            lines.push(indented(
                depth,
                &format!(
                    "Index Scan{backward} using {} on {}",
                    index.name, table.name
                ),
            ));
            let condition = probe_text(table, probe);
            if !condition.is_empty() {
                lines.push(detail(depth + 1, &format!("Index Cond: ({condition})")));
            }
        }
    }
    if let Some(filter) = &source.filter {
        lines.push(detail(
            depth + 1,
            &format!("Filter: {}", text(filter, table)),
        ));
    }
}

fn probe_text(table: &Table, probe: &Probe) -> String {
    let columns = &table.indexes[probe.index].columns;
    let mut parts = Vec::new();
    for (choice, column) in probe.keys.iter().zip(columns) {
        if table.columns[*column].is_predicate() {
            continue;
        }
        parts.push(choice_text(table, *column, choice));
    }
    if let Some(column) = columns.get(probe.keys.len()) {
        let mut bound = |bound: &Option<KeyBound>, exclusive: &str| {
            if let Some(bound) = bound {
                let equals = if bound.inclusive { "=" } else { "" };
                parts.push(format!(
                    "{} {exclusive}{equals} {}",
                    table.columns[*column].shown(),
                    text(&bound.part.expr, table)
                ));
            }
        };
        bound(&probe.lower, ">");
        bound(&probe.upper, "<");
    }
    parts.join(") AND (")
}

fn choice_text(table: &Table, column: usize, choice: &KeyChoice) -> String {
    let name = table.columns[column].shown();
    match choice.as_slice() {
        [one] => format!("{name} = {}", text(&one.expr, table)),
        several => {
            let values: Vec<String> = several.iter().map(|part| text(&part.expr, table)).collect();
            format!("{name} IN ({})", values.join(", "))
        }
    }
}

fn sort_names(select: &SelectPlan) -> String {
    let names: Vec<String> = select
        .sort
        .iter()
        .map(|key| {
            let mut name = match (&select.source, &key.expr) {
                (Some(source), expr) if select.joins.is_empty() => text(expr, &source.table),
                (Some(source), Expr::Column(column)) => joined_column(source, select, *column),
                _ => "?".to_owned(),
            };
            if key.descending {
                name.push_str(" DESC");
            }
            if key.nulls_first != key.descending {
                name.push_str(if key.nulls_first {
                    " NULLS FIRST"
                } else {
                    " NULLS LAST"
                });
            }
            name
        })
        .collect();
    names.join(", ")
}

/// The name of a column of a joined row.
fn joined_column(source: &Source, select: &SelectPlan, column: usize) -> String {
    let step = select.joins.iter().rev().find(|step| step.begin <= column);
    let (table, begin) = step.map_or((&source.table, 0), |step| (&step.source.table, step.begin));
    let def = table.columns.get(column - begin);
    let name = def.map_or("?", |def| def.shown());
    format!("{}.{name}", table.name)
}

/// How the rows are found that a change takes.
fn explain_query(query: &ReadQuery, depth: usize, lines: &mut Vec<String>) {
    let Some(short) = &query.short else {
        let found = format!("Analytical Query  ({})", query.reason);
        return lines.push(indented(depth, &found));
    };
    let mut inner = short.explain();
    inner.pop();
    let width = (depth - 1) * 6 + 2;
    for (number, line) in inner.iter().enumerate() {
        let mark = if number == 0 { "->  " } else { "    " };
        lines.push(format!("{:width$}{mark}{line}", ""));
    }
}

/// Each join reads the rows before it, then those of its table.
fn explain_joins(source: &Source, steps: &[JoinStep], depth: usize, lines: &mut Vec<String>) {
    let Some((last, before)) = steps.split_last() else {
        return explain_source(source, depth, lines);
    };
    let name = match last.kind {
        StepKind::Inner => "Nested Loop",
        StepKind::Left => "Nested Loop Left Join",
        StepKind::Semi => "Nested Loop Semi Join",
        StepKind::Anti => "Nested Loop Anti Join",
    };
    lines.push(indented(depth, name));
    if let Some(after) = &last.after {
        let filter = text(after, &last.source.table);
        lines.push(detail(depth + 1, &format!("Filter: {filter}")));
    }
    explain_joins(source, before, depth + 1, lines);
    explain_source(&last.source, depth + 1, lines);
}

/// An expression over the columns of `table`, roughly as PostgreSQL shows it.
fn text(expr: &Expr, table: &Table) -> String {
    let joined = |operands: &[Expr], between: &str| {
        let parts: Vec<String> = operands.iter().map(|each| text(each, table)).collect();
        format!("({})", parts.join(between))
    };
    match expr {
        Expr::Constant(value) => constant(value),
        Expr::Parameter(number) => format!("${}", number + 1),
        Expr::Outer(_, name) => name.to_string(),
        Expr::Column(column) => table
            .columns
            .get(*column)
            .map_or_else(|| "?".to_owned(), |def| def.shown().to_owned()),
        Expr::Compare(comparison, left, right) => {
            format!(
                "({} {} {})",
                text(left, table),
                Comparison::symbol(*comparison),
                text(right, table)
            )
        }
        Expr::Arithmetic(operator, left, right) => {
            format!(
                "({} {} {})",
                text(left, table),
                operator.symbol(),
                text(right, table)
            )
        }
        Expr::And(operands) => joined(operands, " AND "),
        Expr::Or(operands) => joined(operands, " OR "),
        Expr::Not(operand) => format!("(NOT {})", text(operand, table)),
        Expr::IsNull { operand, negated } => {
            let not = if *negated { "NOT " } else { "" };
            format!("({} IS {not}NULL)", text(operand, table))
        }
        Expr::InList {
            operand,
            list,
            negated,
        } => {
            let not = if *negated { "NOT " } else { "" };
            let elements: Vec<String> = list.iter().map(|each| text(each, table)).collect();
            format!(
                "({} {not}IN ({}))",
                text(operand, table),
                elements.join(", ")
            )
        }
        Expr::Cast(path, operand) => format!("({})::{}", text(operand, table), path.to),
        Expr::Now(_) => "now()".to_owned(),
        Expr::Analysed(analysed) => analysed.text.clone(),
        _ => "(…)".to_owned(),
    }
}

fn constant(value: &Value) -> String {
    let data_type = match value {
        Value::Null => return "NULL".to_owned(),
        Value::Boolean(value) => return value.to_string(),
        Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) => DataType::BigInt,
        Value::Real(_) => DataType::Real,
        Value::Double(_) => DataType::Double,
        Value::Numeric(_) | Value::Other(LONG, _) => DataType::NUMERIC,
        Value::Text(_) => DataType::Text,
        Value::Bytea(_) => DataType::Bytea,
        Value::Date(_) => DataType::Date,
        Value::Timestamp(_) => DataType::Timestamp,
        Value::TimestampTz(_) => DataType::TimestampTz,
        Value::Uuid(_) => DataType::Uuid,
        Value::Other(oid, _) => DataType::Other {
            oid: *oid,
            modifier: -1,
        },
    };
    let mut bytes = Vec::new();
    thermocline_values::text_format::write_text(value.as_ref(), &data_type, &mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    if data_type.is_number() {
        text.into_owned()
    } else {
        format!("'{text}'::{data_type}")
    }
}
