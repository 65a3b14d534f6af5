//! Tables in memory, without an oracle: queries over them run as they do over a server's.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionConfig;
use thermocline_analytical::errors::query_error;
use thermocline_analytical::evaluate::Context;
use thermocline_analytical::form::{ColumnBuilder, Form};
use thermocline_analytical::lower::{Tables, lower};
use thermocline_analytical::run;
use thermocline_query::analyze::{Catalog, Stored, analyze};
use thermocline_query::call::Plain;
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::parse::parse;
use thermocline_query::tree::{Column, Relation};

/// One table, `t`.
pub struct Memory {
    stored: Stored,
    provider: Arc<MemTable>,
    runtime: Arc<RuntimeEnv>,
    streams: usize,
    hurries: bool,
}

/// What a query gives.
pub struct Given {
    /// The types of the columns.
    pub types: Vec<u32>,
    /// The rows.
    pub rows: Vec<Vec<Datum>>,
    /// The plan.
    pub plan: String,
}

impl Memory {
    /// A table of columns with names and types, whose rows come in so many streams.
    pub fn new(columns: &[(&str, u32)], rows: &[Vec<Datum>], streams: usize) -> Self {
        let fields = columns
            .iter()
            .map(|(name, oid)| Field::new(*name, Form::of(*oid).arrow(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let part = rows.len().div_ceil(streams).max(1);
        let batch = |rows: &[Vec<Datum>]| {
            let arrays = columns.iter().enumerate().map(|(at, (_, oid))| {
                let mut builder = ColumnBuilder::new(Form::of(*oid), rows.len());
                for row in rows {
                    builder.push(&row[at]).expect("a value of its type");
                }
                builder.finish()
            });
            let arrays = arrays.collect::<Vec<ArrayRef>>();
            RecordBatch::try_new(Arc::clone(&schema), arrays).expect("a batch")
        };
        let streams_of = rows
            .chunks(part)
            .map(|rows| rows.chunks(1000).map(batch).collect::<Vec<_>>());
        let provider = MemTable::try_new(Arc::clone(&schema), streams_of.collect());
        let columns = columns.iter().enumerate().map(|(at, (name, oid))| Column {
            name: (*name).into(),
            oid: *oid,
            modifier: -1,
            origin: Some((1, i16::try_from(at + 1).expect("few columns"))),
        });
        Self {
            stored: Stored {
                oid: 1,
                schema: "public".into(),
                columns: columns.collect(),
                primary_key: Vec::new(),
                row_type: 0,
                view: None,
                reader: None,
                is_partitioned: false,
            },
            provider: Arc::new(provider.expect("a table")),
            runtime: Arc::default(),
            streams,
            hurries: false,
        }
    }

    /// Grouped in one step after a few rows.
    pub fn hurried(mut self) -> Self {
        self.hurries = true;
        self
    }

    /// With memory and files of the caller's.
    pub fn with_runtime(mut self, runtime: Arc<RuntimeEnv>) -> Self {
        self.runtime = runtime;
        self
    }

    /// What a query gives.
    pub async fn ask(&self, sql: &str) -> Result<Given> {
        let environment = Arc::new(Plain::default());
        let lowered = {
            let parsed = parse(sql)?;
            let statement = parsed.statements().stmts().next().expect("a statement");
            let analyzed = analyze(statement, self, environment.as_ref(), &[])?;
            let context = Context::new(environment, Arc::default());
            lower(&analyzed.query, self, &context)?
        };
        let mut config = SessionConfig::new()
            .with_target_partitions(self.streams.max(2))
            .with_batch_size(1000);
        // One stream stays one, in its order.
        config.options_mut().optimizer.repartition_file_scans = false;
        if self.hurries {
            // Few rows are enough to see that groups do not repeat.
            let options = &mut config.options_mut().execution;
            options.skip_partial_aggregation_probe_rows_threshold = 10;
            options.skip_partial_aggregation_probe_ratio_threshold = 0.01;
        }
        let state = run::session(config, Arc::clone(&self.runtime), Vec::new());
        let physical = run::physical(&state, &lowered, &|| ())
            .await
            .map_err(|error| query_error(&error))?;
        let mut rows = run::run(physical, lowered.types.clone(), state.task_ctx())?;
        let mut all = Vec::new();
        while let Some(batch) = rows.next().await? {
            all.extend(batch);
        }
        Ok(Given {
            types: lowered.types,
            rows: all,
            plan: lowered.plan.display_indent().to_string(),
        })
    }
}

impl Catalog for Memory {
    fn relation(&self, _: Option<&str>, name: &str) -> Result<Option<Stored>> {
        Ok((name == "t").then(|| self.stored.clone()))
    }
}

impl Tables for Memory {
    fn table(&self, oid: u32, _: &Relation) -> Result<Arc<dyn TableProvider>> {
        match oid {
            1 => Ok(Arc::clone(&self.provider) as _),
            _ => Err(QueryError::internal("no such table")),
        }
    }

    fn rows(&self, _: u32) -> Option<Result<Vec<Vec<Datum>>>> {
        None
    }
}
