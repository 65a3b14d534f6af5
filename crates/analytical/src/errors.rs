//! Errors on their way through DataFusion.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use thermocline_query::error::QueryError;

/// Ours as DataFusion's.
#[cold]
pub fn external(error: QueryError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// DataFusion's as ours: what was ours comes out as it went in.
#[cold]
#[must_use]
pub fn query_error(error: &DataFusionError) -> QueryError {
    match error {
        DataFusionError::External(error) => by_reference(error.as_ref()),
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            query_error(error)
        }
        DataFusionError::Shared(error) => query_error(error),
        DataFusionError::Collection(errors) => errors.first().map_or_else(
            || QueryError::internal("an empty list of errors"),
            query_error,
        ),
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::ExternalError(error) => by_reference(error.as_ref()),
            ArrowError::IoError(_, error) => QueryError::new("58030", error.to_string()),
            ArrowError::DivideByZero => QueryError::division_by_zero(),
            ArrowError::ArithmeticOverflow(_) => QueryError::out_of_range("bigint"),
            other => QueryError::internal(other.to_string()),
        },
        DataFusionError::IoError(error) => match error.get_ref() {
            Some(inside) => by_reference(inside),
            None => QueryError::new("58030", error.to_string()),
        },
        DataFusionError::ResourcesExhausted(detail) => {
            let first = detail.lines().next().unwrap_or(detail);
            QueryError::new("53200", "out of memory").with_detail(first)
        }
        DataFusionError::NotImplemented(message) => {
            let first = message.lines().next().unwrap_or(message);
            QueryError::unsupported(
                first,
                "Compute the part that the message names in the application.",
            )
        }
        other => QueryError::internal(other.to_string()),
    }
}

fn by_reference(error: &(dyn std::error::Error + 'static)) -> QueryError {
    if let Some(error) = error.downcast_ref::<QueryError>() {
        return error.clone();
    }
    match error.downcast_ref::<DataFusionError>() {
        Some(error) => query_error(error),
        None => QueryError::internal(error.to_string()),
    }
}
