//! What DataFusion's planner asks for: tables by name at the statement's
//! snapshot, types by PostgreSQL's names, functions with the session's facts.
//! Built for one statement.

use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DataType as ArrowType, Field, FieldRef, IntervalUnit, SchemaRef, TimeUnit,
};
use datafusion::catalog::TableFunctionArgs;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, ScalarValue, TableReference, not_impl_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use sqlparser::ast;
use thermocline_storage::value::Value;

use super::SessionFacts;
use super::functions::PgFunction;
use super::growing::{Growth, bounded};
use super::operators::PgOperators;
use super::params::scalar_of;
use super::types::field_of;
use crate::error::SqlError;

/// Finds tables by schema (if given) and name.
pub(crate) type TableLookup<'a> = dyn Fn(Option<&str>, &str) -> Result<Arc<dyn datafusion::catalog::TableProvider>, SqlError>
    + 'a;

/// The planner's view of one statement's surroundings.
pub(crate) struct StatementContext<'a> {
    state: &'a SessionState,
    facts: &'a SessionFacts,
    tables: &'a TableLookup<'a>,
    planners: Vec<Arc<dyn ExprPlanner>>,
    growth: Arc<Growth>,
}

impl<'a> StatementContext<'a> {
    /// For one statement.
    pub(crate) fn new(
        state: &'a SessionState,
        facts: &'a SessionFacts,
        tables: &'a TableLookup<'a>,
    ) -> Self {
        let growth = Growth::new(Arc::clone(&state.runtime_env().memory_pool));
        let operators = PgOperators::new(Arc::clone(&growth));
        let mut planners: Vec<Arc<dyn ExprPlanner>> = vec![Arc::new(operators)];
        planners.extend(state.expr_planners().iter().cloned());
        Self {
            state,
            facts,
            tables,
            planners,
            growth,
        }
    }

    /// Functions whose value is the session's and fixed for the statement.
    fn session_function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let text = |text: &str| ScalarValue::Utf8View(Some(text.to_owned()));
        let now = || scalar_of(&Value::TimestampTz(self.facts.now_us), None);
        let value = match name {
            "now" | "current_timestamp" | "transaction_timestamp" | "statement_timestamp" => now(),
            "localtimestamp" => scalar_of(&Value::Timestamp(self.facts.now_us), None),
            "current_date" | "today" => {
                let days = self.facts.now_us.div_euclid(86_400_000_000);
                scalar_of(&Value::Date(i32::try_from(days).unwrap_or(i32::MAX)), None)
            }
            "current_user" | "user" | "current_role" => text(self.facts.actor.name()),
            "session_user" => text(&self.facts.session_user),
            "current_database" | "current_catalog" => text(&self.facts.database),
            "current_schema" => match self.facts.search_path.first() {
                Some(schema) => text(schema),
                None => ScalarValue::Utf8View(None),
            },
            "version" => text(&crate::session::version()),
            "pg_backend_pid" => ScalarValue::Int32(Some(self.facts.process_id)),
            _ => return None,
        };
        Some(PgFunction::constant(name, value))
    }
}

impl ContextProvider for StatementContext<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let provider = (self.tables)(name.schema(), name.table())
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(provider_as_source(provider))
    }

    fn get_table_function_source(
        &self,
        name: &str,
        arguments: Vec<Expr>,
    ) -> Result<Arc<dyn TableSource>> {
        let Some(function) = self.state.table_functions().get(name) else {
            let error = SqlError::new("42883", format!("function {name} does not exist"));
            return Err(DataFusionError::External(Box::new(error)));
        };
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.state.config_options()))
            .build();
        let simplifier = ExprSimplifier::new(context);
        let schema = DFSchema::empty();
        let arguments = arguments
            .into_iter()
            .map(|argument| simplifier.simplify(simplifier.coerce(argument, &schema)?))
            .collect::<Result<Vec<_>>>()?;
        let arguments = TableFunctionArgs::new(&arguments, self.state);
        Ok(provider_as_source(
            function.create_table_provider_with_args(arguments)?,
        ))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(
            name, schema,
        ))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(PgTypes))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        // DataFusion's formats are not PostgreSQL's, and its clock is not the transaction's: no
        // answer is better than a wrong one.
        if matches!(
            name,
            "to_char" | "to_date" | "to_timestamp" | "current_time"
        ) {
            return None;
        }
        self.session_function(name).or_else(|| {
            let function = self.state.scalar_functions().get(name)?;
            Some(bounded(Arc::clone(function), &self.growth))
        })
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        let name = match name {
            "every" => "bool_and",
            name => name,
        };
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<ArrowType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state
            .higher_order_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}

/// PostgreSQL's type names in casts.
#[derive(Debug)]
struct PgTypes;

impl TypePlanner for PgTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let special = |arrow| Ok(Some(Arc::new(Field::new("", arrow, true))));
        match sql_type {
            ast::DataType::Interval { .. } => {
                special(ArrowType::Interval(IntervalUnit::MonthDayNano))
            }
            ast::DataType::Time(None, ast::TimezoneInfo::None)
            | ast::DataType::Time(None, ast::TimezoneInfo::WithoutTimeZone) => {
                special(ArrowType::Time64(TimeUnit::Microsecond))
            }
            ast::DataType::Array(_) => Ok(None),
            ast::DataType::Custom(..) if is_oid(sql_type) => special(ArrowType::Int64),
            ast::DataType::Custom(..) if is_name(sql_type) => special(ArrowType::Utf8View),
            _ => match crate::bind::data_type(sql_type) {
                Ok(data_type) => Ok(Some(Arc::new(field_of("cast", &data_type)))),
                Err(error) if error.sqlstate == "0A000" => {
                    not_impl_err!(
                        "type {} is not supported",
                        sql_type.to_string().to_lowercase()
                    )
                }
                Err(error) => Err(DataFusionError::External(Box::new(error))),
            },
        }
    }
}

fn bare_name(sql_type: &ast::DataType) -> String {
    let name = sql_type.to_string().to_lowercase();
    name.trim_start_matches("pg_catalog.").to_owned()
}

fn is_oid(sql_type: &ast::DataType) -> bool {
    bare_name(sql_type) == "oid"
}

fn is_name(sql_type: &ast::DataType) -> bool {
    matches!(bare_name(sql_type).as_str(), "name" | "\"char\"")
}
