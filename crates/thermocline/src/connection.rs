//! A connection inside the process: the same session that a network client
//! has, driven by function calls. Statements run on the caller's thread and
//! return when they are done, a commit when it is durable.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use thermocline_engine::block_on;
use thermocline_sql::{Client, ClientLink, Engine, Session, SqlError};
use thermocline_values::binary_format::write_binary;
use thermocline_values::cast::{CastContext, coerce};
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use crate::rows::{Column, Rows, description};

/// A statement parsed and bound once, for one connection.
#[derive(Clone, Debug)]
pub struct Statement {
    name: String,
    parameters: Vec<Option<DataType>>,
    columns: Vec<Column>,
    result_formats: Vec<i16>,
}

impl Statement {
    /// The types of its parameters; none where it is not one of ours.
    #[must_use]
    pub fn parameters(&self) -> &[Option<DataType>] {
        &self.parameters
    }

    /// The columns it returns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

/// A session of its own: one transaction at a time, its settings, its prepared
/// statements.
pub struct Connection {
    session: Session,
    client: Client,
    /// What a long result wrote already.
    results: Arc<Mutex<BytesMut>>,
    statements: u64,
}

impl Connection {
    pub(crate) fn new(engine: Arc<Engine>) -> Result<Self, SqlError> {
        // Sessions of the program count from 1; these from the other end.
        static LAST_PROCESS_ID: AtomicI32 = AtomicI32::new(i32::MAX);
        let results = Arc::new(Mutex::new(BytesMut::new()));
        let process_id = LAST_PROCESS_ID.fetch_sub(1, Relaxed);
        Ok(Self {
            session: Session::new(engine, "postgres", "postgres", &[], process_id, 0)?,
            client: Client {
                out: BytesMut::new(),
                link: Box::new(InProcess(Arc::clone(&results))),
            },
            results,
            statements: 0,
        })
    }

    /// Runs one statement. Parameters are converted to the types that the
    /// statement wants.
    ///
    /// # Errors
    /// What PostgreSQL would say; a transaction that is open has failed then.
    pub fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<Rows, SqlError> {
        let statement = self.describe("", sql)?;
        self.run(&statement, parameters)
    }

    /// Parses and binds a statement once.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, SqlError> {
        self.statements += 1;
        let name = format!("embedded_{}", self.statements);
        self.describe(&name, sql)
    }

    /// Runs a prepared statement of this connection.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn run(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Rows, SqlError> {
        let encoded = encode(statement, parameters)?;
        let encoded: Vec<Option<&[u8]>> = encoded.iter().map(Option::as_deref).collect();
        let formats = &statement.result_formats;
        let Self {
            session, client, ..
        } = self;
        let outcome = block_on(async {
            session
                .bind("", &statement.name, &[1], &encoded, formats)
                .await?;
            session.sync_follows(true);
            session.execute("", 0, client).await
        });
        self.end(outcome)?;
        let mut rows = Rows::new(statement.columns.clone());
        rows.take(&self.output())?;
        Ok(rows)
    }

    /// Forgets a prepared statement.
    pub fn forget(&mut self, statement: &Statement) {
        self.session.close_statement(&statement.name);
    }

    /// Runs `body` in a transaction: committed if it succeeds, rolled back if
    /// it fails. A conflict with another transaction (40001) is returned like
    /// any error; run it again then.
    ///
    /// # Errors
    /// Those of `body` and of the commit.
    pub fn transaction<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        self.execute("BEGIN", &[])?;
        match body(self) {
            Ok(value) => {
                self.execute("COMMIT", &[])?;
                Ok(value)
            }
            Err(error) => {
                // The first error is the one to tell; a session that cannot
                // roll back rolls back when it is dropped.
                let _ = self.execute("ROLLBACK", &[]);
                Err(error)
            }
        }
    }

    fn describe(&mut self, name: &str, sql: &str) -> Result<Statement, SqlError> {
        let Self {
            session, client, ..
        } = self;
        let outcome = block_on(async {
            session.parse(name, sql, &[]).await?;
            session.describe_statement(name, client).await
        });
        if outcome.is_err() {
            self.end(outcome)?;
        }
        let (parameters, columns) = description(&self.output())?;
        let result_formats = columns
            .iter()
            .map(|column| i16::from(column.data_type.is_some()))
            .collect();
        Ok(Statement {
            name: name.to_owned(),
            parameters,
            columns,
            result_formats,
        })
    }

    /// The end of a statement: outside a transaction, its commit. After an
    /// error nothing of the output is left.
    fn end(&mut self, outcome: Result<(), SqlError>) -> Result<(), SqlError> {
        if outcome.is_err() {
            self.session.extended_error();
        }
        let synced = block_on(self.session.sync());
        let outcome = outcome.and(synced);
        if outcome.is_err() {
            self.output();
        }
        outcome
    }

    /// What the session wrote since the last time.
    fn output(&mut self) -> BytesMut {
        let mut output = std::mem::take(&mut *lock(&self.results));
        output.unsplit(self.client.out.split());
        output
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        block_on(self.session.terminate());
    }
}

fn encode(statement: &Statement, parameters: &[Value]) -> Result<Vec<Option<Vec<u8>>>, SqlError> {
    let wanted = statement.parameters.len();
    if parameters.len() != wanted {
        return Err(SqlError::protocol(format!(
            "{} parameters are given, but the statement requires {wanted}",
            parameters.len()
        )));
    }
    parameters
        .iter()
        .zip(&statement.parameters)
        .map(|(value, wanted)| {
            let Some(given) = value.data_type() else {
                return Ok(None);
            };
            let mut bytes = Vec::new();
            match wanted {
                Some(wanted) => {
                    let value = coerce(value.clone(), &given, wanted, CastContext::Explicit)?;
                    write_binary(value.as_ref(), wanted, &mut bytes);
                }
                // Of the catalogs' types; those that are text underneath work.
                None => write_binary(value.as_ref(), &given, &mut bytes),
            }
            Ok(Some(bytes))
        })
        .collect()
}

/// Nobody is at the other end: results are collected until the statement has
/// ended, and there is no COPY.
struct InProcess(Arc<Mutex<BytesMut>>);

/// A buffer of bytes is as whole after a panic as before.
fn lock(results: &Mutex<BytesMut>) -> MutexGuard<'_, BytesMut> {
    results.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientLink for InProcess {
    fn flush<'a>(
        &'a mut self,
        out: &'a mut BytesMut,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>> {
        lock(&self.0).unsplit(out.split());
        Box::pin(async { Ok(()) })
    }

    fn copy_data<'a>(
        &'a mut self,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Bytes>, SqlError>> + Send + 'a>> {
        Box::pin(async {
            Err(SqlError::unsupported(
                "COPY FROM STDIN needs a network client",
                "Use INSERT with a prepared statement in a transaction.",
            ))
        })
    }
}
