//! Procedures: transactions written in Rust, called by name with values (004 §2).
//!
//! A call is one serial transaction. It holds the partitions that the procedure
//! declares from its arguments, and runs from beginning to end under their
//! locks. A tuple that is evicted makes the run a pre-pass, and the body is run
//! again ([`crate::access`]). A body may therefore run more than once, and must
//! have no effect but through its [`Call`].
//!
//! A procedure that is declared deterministic and holds one partition is logged
//! as a command, not as the rows it changed ([`crate::format::command`]), and is run again at
//! recovery. What a body sees is in `call`; the registry is here.

mod call;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::RwLock;
use thermocline_device::stop_after_panic;
use thermocline_values::cast::{CastContext, coerce};
use thermocline_values::types::DataType;
use thermocline_values::value::{Value, ValueRef};

use crate::access::Access;
use crate::catalog::Catalog;
use crate::ground::error::{Error, Result};
use crate::ground::scope::Scope;

pub use call::{Call, Row};

/// The longest name of a procedure, in bytes, as PostgreSQL's of anything.
pub const PROCEDURE_NAME_BYTES_MAX: usize = 63;

/// Microseconds from 1970 to 2000, where `timestamptz` begins.
pub(crate) const UNIX_TO_2000_US: i64 = 946_684_800_000_000;

type Body = dyn Fn(&mut Call<'_, '_>, &[Value]) -> Result<Vec<Value>> + Send + Sync;
type ReachOf = dyn Fn(&[Value]) -> Result<Reach> + Send + Sync;

/// The rows that a call may touch, by the partitions they lie in.
#[derive(Debug, Clone)]
pub enum Reach {
    /// The partitions of these rows: a table and a value for each column of its
    /// partition key. Rows of other tables with equal values of equal types in
    /// their partition keys lie in the same partitions.
    Rows(Vec<(String, Vec<Value>)>),
    /// All partitions.
    All,
}

impl Reach {
    /// The partition of the rows of `table` whose partition key has these values.
    pub fn row(table: &str, key: &[Value]) -> Self {
        Reach::Rows(vec![(table.to_owned(), key.to_vec())])
    }
}

/// A procedure, before it is registered. Built from [`Procedure::new`] on.
#[derive(Clone)]
pub struct Procedure {
    name: String,
    parameters: Vec<(String, DataType)>,
    results: Vec<(String, DataType)>,
    pub(crate) deterministic: bool,
    reach: Arc<ReachOf>,
    body: Arc<Body>,
}

impl fmt::Debug for Procedure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Procedure")
            .field("name", &self.name)
            .field("parameters", &self.parameters)
            .field("results", &self.results)
            .field("deterministic", &self.deterministic)
            .finish_non_exhaustive()
    }
}

impl Procedure {
    /// A procedure without parameters and results that holds all partitions and
    /// is logged by values. `body` gets the arguments converted to the
    /// parameters' types, and returns as many values as there are results. It
    /// may run several times for one call. An error takes back what it did.
    pub fn new(
        name: impl Into<String>,
        body: impl Fn(&mut Call<'_, '_>, &[Value]) -> Result<Vec<Value>> + Send + Sync + 'static,
    ) -> Self {
        Procedure {
            name: name.into(),
            parameters: Vec::new(),
            results: Vec::new(),
            deterministic: false,
            reach: Arc::new(|_| Ok(Reach::All)),
            body: Arc::new(body),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, data_type: DataType) -> Self {
        self.parameters.push((name.into(), data_type));
        self
    }

    /// Adds a value that the procedure returns.
    #[must_use]
    pub fn result(mut self, name: impl Into<String>, data_type: DataType) -> Self {
        self.results.push((name.into(), data_type));
        self
    }

    /// Declares from the arguments which partitions a call needs.
    #[must_use]
    pub fn reach(
        mut self,
        reach: impl Fn(&[Value]) -> Result<Reach> + Send + Sync + 'static,
    ) -> Self {
        self.reach = Arc::new(reach);
        self
    }

    /// Declares that the body does the same to the same rows whenever it is
    /// called with the same arguments at the same [`Call::now`]: it asks nothing
    /// else for the time, draws no random numbers, reads nothing but its
    /// arguments and its rows, and iterates over no hash map. A call that holds
    /// one partition is then logged as a command.
    #[must_use]
    pub fn deterministic(mut self) -> Self {
        self.deterministic = true;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters, by name and type.
    #[must_use]
    pub fn parameters(&self) -> &[(String, DataType)] {
        &self.parameters
    }

    /// What it returns, by name and type.
    #[must_use]
    pub fn results(&self) -> &[(String, DataType)] {
        &self.results
    }

    /// Whether it is declared deterministic.
    #[must_use]
    pub fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    /// The arguments in the parameters' types; 42883 if they are not of these.
    pub(crate) fn arguments(&self, given: &[Value]) -> Result<Vec<Value>> {
        if given.len() != self.parameters.len() {
            return Err(no_such_procedure(&self.name, given));
        }
        given
            .iter()
            .zip(&self.parameters)
            .map(|(value, (_, wanted))| {
                let Some(from) = value.data_type() else {
                    return Ok(Value::Null);
                };
                coerce(value.clone(), &from, wanted, CastContext::Assignment).map_err(|error| {
                    match error.sqlstate {
                        "42846" => no_such_procedure(&self.name, given),
                        _ => Error::Value(error),
                    }
                })
            })
            .collect()
    }

    /// The partitions that a call with these arguments needs.
    pub(crate) fn scope(&self, catalog: &Catalog, arguments: &[Value]) -> Result<Scope> {
        let Reach::Rows(rows) = (self.reach)(arguments)? else {
            return Ok(Scope::All);
        };
        let mut partitions = Vec::with_capacity(rows.len());
        for (name, key) in &rows {
            let table = call::table_named(catalog, name)?;
            let columns = &table.def.partition_key;
            if columns.is_empty() || columns.len() != key.len() {
                return Err(Error::raised(
                    "38000",
                    format!(
                        "procedure {} names a row of \"{name}\" by {} values, but its partition \
                         key has {} columns",
                        self.name,
                        key.len(),
                        columns.len()
                    ),
                ));
            }
            let key = call::coerced(table, columns, key)?;
            let key: Vec<ValueRef<'_>> = key.iter().map(Value::as_ref).collect();
            partitions.extend(table.partition_of_values(&key));
        }
        partitions.sort_unstable();
        partitions.dedup();
        Ok(match partitions.as_slice() {
            [one] => Scope::One(*one),
            _ => Scope::Many(partitions),
        })
    }

    /// Runs the body over locked partitions.
    pub(crate) fn run(
        &self,
        access: &mut Access<'_>,
        catalog: &Catalog,
        now_us: i64,
        arguments: &[Value],
    ) -> Result<Vec<Value>> {
        let mut call = Call::new(access, catalog, self, now_us);
        // A panic must not leave half a transaction in the partition.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.body)(&mut call, arguments)));
        drop(call);
        if outcome.is_err() && access.is_changing() {
            stop_after_panic("the middle of a procedure's change to rows");
        }
        let values = outcome.unwrap_or_else(|_| {
            Err(Error::Internal(format!(
                "procedure {} panicked; nothing of the call was kept",
                self.name
            )))
        })?;
        if values.len() != self.results.len() {
            return Err(Error::raised(
                "38000",
                format!(
                    "procedure {} returned {} values, not the {} of its declaration",
                    self.name,
                    values.len(),
                    self.results.len()
                ),
            ));
        }
        values
            .into_iter()
            .zip(&self.results)
            .map(|(value, (_, wanted))| match value.data_type() {
                Some(from) => Ok(coerce(value, &from, wanted, CastContext::Assignment)?),
                None => Ok(Value::Null),
            })
            .collect()
    }
}

/// PostgreSQL's error for a call of nothing that exists.
pub(crate) fn no_such_procedure(name: &str, given: &[Value]) -> Error {
    let types: Vec<String> = given
        .iter()
        .map(|value| match value.data_type() {
            Some(data_type) => data_type.to_string(),
            None => "unknown".into(),
        })
        .collect();
    Error::raised(
        "42883",
        format!("procedure {name}({}) does not exist", types.join(", ")),
    )
}

/// Procedures by name. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Procedures(Arc<RwLock<HashMap<String, Arc<Procedure>>>>);

impl Procedures {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a procedure.
    ///
    /// # Errors
    /// 42723 if one of this name is there; 42602 for an empty or too long name.
    pub fn register(&self, procedure: Procedure) -> Result<()> {
        let name = procedure.name.clone();
        if name.is_empty() || name.len() > PROCEDURE_NAME_BYTES_MAX {
            return Err(Error::raised(
                "42602",
                format!("a procedure's name has 1 to {PROCEDURE_NAME_BYTES_MAX} bytes: \"{name}\""),
            ));
        }
        let mut procedures = self.0.write();
        if procedures.contains_key(&name) {
            return Err(Error::raised(
                "42723",
                format!("procedure {name} is registered already"),
            ));
        }
        procedures.insert(name, Arc::new(procedure));
        Ok(())
    }

    /// The procedure of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Procedure>> {
        self.0.read().get(name).cloned()
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Procedure>> {
        let mut all: Vec<_> = self.0.read().values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}
