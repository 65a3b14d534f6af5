//! DataFusion's errors in PostgreSQL's words and codes.

use std::error::Error;

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use super::memory::exhausted;
use crate::error::SqlError;

/// The error a client sees for one of DataFusion's.
#[cold]
pub(crate) fn sql_error(error: DataFusionError) -> SqlError {
    match error {
        DataFusionError::External(error) => external(error),
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            sql_error(*error)
        }
        DataFusionError::Shared(error) => {
            std::sync::Arc::try_unwrap(error).map_or_else(|shared| by_reference(&shared), sql_error)
        }
        DataFusionError::Collection(errors) => errors
            .into_iter()
            .next()
            .map_or_else(|| SqlError::internal("an empty list of errors"), sql_error),
        DataFusionError::ArrowError(error, _) => arrow(*error),
        DataFusionError::IoError(error) => file(&error),
        DataFusionError::SchemaError(error, _) => schema(&error),
        DataFusionError::ResourcesExhausted(detail) => exhausted(detail),
        DataFusionError::SQL(error, _) => SqlError::from_parser(&error, ""),
        DataFusionError::NotImplemented(message) => SqlError::unsupported(first_line(&message)),
        DataFusionError::Plan(message) => plan(&message),
        DataFusionError::Execution(message) => execution(&message),
        other => unknown(&other.to_string()),
    }
}

fn by_reference(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            by_reference(error)
        }
        DataFusionError::Shared(error) => by_reference(error),
        DataFusionError::External(error) => match error.downcast_ref::<SqlError>() {
            Some(error) => error.clone(),
            None => SqlError::internal(error.to_string()),
        },
        DataFusionError::ArrowError(error, _) => match &**error {
            ArrowError::IoError(_, error) => file(error),
            error => arrow_message(&error.to_string()),
        },
        DataFusionError::IoError(error) => file(error),
        DataFusionError::SchemaError(error, _) => schema(error),
        DataFusionError::ResourcesExhausted(detail) => exhausted(detail.clone()),
        DataFusionError::NotImplemented(message) => SqlError::unsupported(first_line(message)),
        DataFusionError::Plan(message) => plan(message),
        DataFusionError::Execution(message) => execution(message),
        other => unknown(&other.to_string()),
    }
}

fn external(error: Box<dyn Error + Send + Sync>) -> SqlError {
    match error.downcast::<SqlError>() {
        Ok(error) => *error,
        Err(error) => match error.downcast::<DataFusionError>() {
            Ok(error) => sql_error(*error),
            Err(error) => unknown(&error.to_string()),
        },
    }
}

/// What is told in a message alone.
fn unknown(message: &str) -> SqlError {
    if message.contains("regex parse error") || message.contains("Compiled regex exceeds") {
        let reason = message.lines().last().unwrap_or(message);
        return SqlError::new("2201B", format!("invalid regular expression: {reason}"));
    }
    if message.contains("Nth value indices are 1 based") {
        return SqlError::new("22016", "argument of nth_value must be greater than zero");
    }
    SqlError::internal(first_line(message))
}

/// Of a temporary file; what the engine said is inside.
fn file(error: &std::io::Error) -> SqlError {
    let said = error.get_ref().and_then(|inside| inside.downcast_ref());
    match said {
        Some(said) => SqlError::clone(said),
        None => SqlError::new("58030", error.to_string()),
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or(message)
}

fn arrow(error: ArrowError) -> SqlError {
    match error {
        ArrowError::ExternalError(error) => external(error),
        ArrowError::IoError(_, error) => file(&error),
        ArrowError::DivideByZero => SqlError::new("22012", "division by zero"),
        ArrowError::ArithmeticOverflow(_) => {
            SqlError::new("22003", "value overflows numeric format")
        }
        ArrowError::NotYetImplemented(message) => SqlError::unsupported(message),
        other => arrow_message(&other.to_string()),
    }
}

/// Arrow tells what a cast failed on only in its message.
fn arrow_message(message: &str) -> SqlError {
    let line = first_line(message);
    if line.contains("Divide by zero") {
        return SqlError::new("22012", "division by zero");
    }
    if let Some(rest) = after(line, "Cannot cast string '")
        && let Some((text, kind)) = rest.split_once("' to value of ")
    {
        let name = type_name(kind.trim_end_matches(" type"));
        return SqlError::new(
            text_sqlstate(name),
            format!("invalid input syntax for type {name}: \"{text}\""),
        );
    }
    if let Some(rest) = after(line, "Error parsing timestamp from '") {
        let text = rest.split('\'').next().unwrap_or(rest);
        return SqlError::new(
            "22007",
            format!("invalid input syntax for type timestamp: \"{text}\""),
        );
    }
    if let Some(rest) = after(line, "Can't cast value ")
        && let Some((_, kind)) = rest.split_once(" to type ")
    {
        return SqlError::new("22003", format!("{} out of range", type_name(kind.trim())));
    }
    if line.contains("too large to store in a Decimal") || line.contains("is too small to store") {
        return SqlError::new("22003", "numeric field overflow");
    }
    if line.contains("verflow") {
        return SqlError::new("22003", "value overflows numeric format");
    }
    if line.contains("Regular expression did not compile") {
        return SqlError::new("2201B", format!("invalid regular expression: {line}"));
    }
    SqlError::new("22000", line)
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.find(mark).map(|at| &text[at + mark.len()..])
}

fn text_sqlstate(type_name: &str) -> &'static str {
    match type_name {
        "date" | "timestamp" => "22007",
        _ => "22P02",
    }
}

fn type_name(arrow: &str) -> &str {
    match arrow {
        "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        "Float32" => "real",
        "Float64" => "double precision",
        "Boolean" => "boolean",
        "Date32" | "Date64" => "date",
        kind if kind.starts_with("Decimal") => "numeric",
        kind if kind.starts_with("Timestamp") => "timestamp",
        kind => kind,
    }
}

fn schema(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => match &field.relation {
            None => SqlError::undefined_column(&field.name),
            Some(relation) => {
                let known = valid_fields.iter().any(|column| {
                    column
                        .relation
                        .as_ref()
                        .is_some_and(|known| known.table() == relation.table())
                });
                if known {
                    let name = format!("{}.{}", relation.table(), field.name);
                    SqlError::new("42703", format!("column {name} does not exist"))
                } else {
                    SqlError::new(
                        "42P01",
                        format!(
                            "missing FROM-clause entry for table \"{}\"",
                            relation.table()
                        ),
                    )
                }
            }
        },
        SchemaError::AmbiguousReference { field } => SqlError::new(
            "42702",
            format!("column reference \"{}\" is ambiguous", field.name),
        ),
        SchemaError::DuplicateQualifiedField { qualifier, .. } => SqlError::new(
            "42712",
            format!(
                "table name \"{}\" specified more than once",
                qualifier.table()
            ),
        ),
        SchemaError::DuplicateUnqualifiedField { name } => {
            SqlError::new("42702", format!("column reference \"{name}\" is ambiguous"))
        }
    }
}

fn plan(message: &str) -> SqlError {
    let line = first_line(message);
    if let Some(rest) = after(line, "Invalid function '") {
        let name = rest.split('\'').next().unwrap_or(rest);
        let mut error = SqlError::new("42883", format!("function {name} does not exist"));
        error.hint = Some(
            "No function matches the given name and argument types. You might need to add \
             explicit type casts."
                .to_owned(),
        );
        return error;
    }
    if line.contains("must appear in the GROUP BY clause")
        || line.contains("must be in GROUP BY or an aggregate function")
    {
        let column = after(line, "column \"").and_then(|rest| rest.split('"').next());
        return SqlError::new(
            "42803",
            match column {
                Some(column) => format!(
                    "column \"{column}\" must appear in the GROUP BY clause or be used in an \
                     aggregate function"
                ),
                None => line.to_owned(),
            },
        );
    }
    if line.contains("does not support zero arguments")
        || line.contains("failed to match any signature")
        || line.contains("No function matches")
        || line.contains("Error during planning: Failed to coerce arguments")
        || line.contains("expects")
    {
        return SqlError::new("42883", line);
    }
    if line.contains("LIMIT must be >= 0") {
        return SqlError::new("2201W", "LIMIT must not be negative");
    }
    if line.contains("OFFSET must be >= 0") {
        return SqlError::new("2201X", "OFFSET must not be negative");
    }
    if line.contains("for logical boolean operation") {
        return SqlError::new("42804", "argument of AND or OR must be type boolean");
    }
    if line.contains("Cannot coerce") || line.contains("Cannot infer common") {
        return SqlError::new("42883", line);
    }
    if line.contains("Correlated scalar subquery must be aggregated") {
        return SqlError::unsupported(
            "a correlated subquery used as an expression must be aggregated or limited to one row",
        );
    }
    if line.contains("same number of columns") || line.contains("must have equal columns") {
        return SqlError::new(
            "42601",
            "each UNION, INTERSECT or EXCEPT query must have the same number of columns",
        );
    }
    SqlError::new("42601", line)
}

fn execution(message: &str) -> SqlError {
    let line = first_line(message);
    if line.contains("more than one row") || line.contains("returned more than one") {
        return SqlError::new(
            "21000",
            "more than one row returned by a subquery used as an expression",
        );
    }
    arrow_message(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_ours_comes_back_as_it_was() {
        let ours = SqlError::new("22012", "division by zero");
        let wrapped = DataFusionError::External(Box::new(ours.clone())).context("while testing");
        assert_eq!(sql_error(wrapped), ours);
        let shared = DataFusionError::Shared(std::sync::Arc::new(DataFusionError::External(
            Box::new(ours.clone()),
        )));
        assert_eq!(sql_error(shared), ours);
    }

    #[test]
    fn failed_casts_are_told_as_postgresql_tells_them() {
        let error = arrow(ArrowError::CastError(
            "Cannot cast string 'abc' to value of Int32 type".to_owned(),
        ));
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            ("22P02", "invalid input syntax for type integer: \"abc\"")
        );
        assert_eq!(arrow(ArrowError::DivideByZero).sqlstate, "22012");
    }

    #[test]
    fn memory_errors_have_a_hint() {
        let error = sql_error(DataFusionError::ResourcesExhausted("sort".to_owned()));
        assert_eq!(error.sqlstate, "53200");
        assert!(error.hint.is_some());
    }
}
