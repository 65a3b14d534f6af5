//! DataFusion's errors in PostgreSQL's words and codes. What was ours comes out as it went in.

use std::error::Error;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use thermocline_analytical::errors::query_error;

use super::memory::exhausted;
use crate::error::SqlError;

/// The error a client sees for one of DataFusion's.
#[cold]
pub(crate) fn sql_error(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
            sql_error(error)
        }
        DataFusionError::Shared(error) => sql_error(error),
        DataFusionError::Collection(errors) if !errors.is_empty() => sql_error(&errors[0]),
        DataFusionError::ResourcesExhausted(detail) => exhausted(detail.clone()),
        other => ours(other).unwrap_or_else(|| query_error(other).into()),
    }
}

/// The error of ours within.
fn ours(error: &DataFusionError) -> Option<SqlError> {
    let within = |error: &(dyn Error + 'static)| match error.downcast_ref::<SqlError>() {
        Some(error) => Some(error.clone()),
        None => Some(sql_error(error.downcast_ref::<DataFusionError>()?)),
    };
    match error {
        DataFusionError::External(error) => within(error.as_ref()),
        DataFusionError::IoError(error) => within(error.get_ref()?),
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::ExternalError(error) => within(error.as_ref()),
            ArrowError::IoError(_, error) => within(error.get_ref()?),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thermocline_query::error::QueryError;

    use super::*;

    #[test]
    fn an_error_of_ours_comes_back_as_it_was() {
        let ours = SqlError::new("22012", "division by zero");
        let wrapped = DataFusionError::External(Box::new(ours.clone())).context("while testing");
        assert_eq!(sql_error(&wrapped), ours);
        let inner = DataFusionError::External(Box::new(QueryError::division_by_zero()));
        let shared = DataFusionError::Shared(Arc::new(inner));
        assert_eq!(sql_error(&shared), ours);
        let file = std::io::Error::other(SqlError::new("53400", "temporary files"));
        assert_eq!(sql_error(&DataFusionError::IoError(file)).sqlstate, "53400");
    }

    #[test]
    fn memory_errors_have_a_hint() {
        let error = sql_error(&DataFusionError::ResourcesExhausted("sort".to_owned()));
        assert_eq!(error.sqlstate, "53200");
        assert!(error.hint.is_some());
    }
}
