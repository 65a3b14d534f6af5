//! A database over a simulated device, with tables made by hand, and
//! statements bound and executed as a session does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use thermocline_device::{Device, SimulatedDevice};
use thermocline_engine::{
    Change, CheckDef, ColumnDef, Config, Database, Identity, IndexDef, IndexKind, Isolation,
    RunOptions, SequenceDef, Table, TableDef, Transaction, block_on,
};
use thermocline_sql::bind::{BindContext, Bound};
use thermocline_sql::bind_text;
use thermocline_sql::error::{Result, SqlError};
use thermocline_sql::exec::{ExecContext, execute};
use thermocline_sql::expr::SessionInfo;
use thermocline_sql::output::{ColumnType, RowWriter};
use thermocline_sql::plan::Plan;
use thermocline_sql::styles::Styles;
use thermocline_values::text_format::write_text;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

/// 2026-01-01 in microseconds since 2000-01-01.
pub const NOW_US: i64 = 820_540_800_000_000;

/// A session that knows its sequences and little else.
struct Session {
    db: Arc<Database>,
    last: Mutex<HashMap<u32, i64>>,
}

impl SessionInfo for Session {
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value> {
        match (name, arguments) {
            ("current_schema", []) => Ok(Value::Text("public".into())),
            ("currval", [Value::BigInt(oid)]) => {
                let oid = u32::try_from(*oid).expect("a number of a sequence");
                let last = self.last.lock().expect("no test panics with it");
                Ok(Value::BigInt(last[&oid]))
            }
            _ => Err(SqlError::unsupported(name, "")),
        }
    }

    fn next_value(&self, sequence: u32) -> Result<i64> {
        let catalog = self.db.catalog();
        let value = self.db.next_value(&catalog.sequences[&sequence])?.value;
        let mut last = self.last.lock().expect("no test panics with it");
        last.insert(sequence, value);
        Ok(value)
    }
}

/// A database and how statements are run in it.
pub struct Fixture {
    device: Arc<dyn Device>,
    pub db: Arc<Database>,
    session: Session,
    options: RunOptions,
    /// What the binder is told of every table's size.
    pub rows_estimated: u64,
    /// How often it asked.
    pub sizes_asked: AtomicUsize,
}

/// A column: name, type, whether NULL is refused.
pub type Column = (&'static str, DataType, bool);

impl Fixture {
    pub fn new() -> Self {
        let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new());
        Self::on(device.clone(), Config::new(device).partitions(4))
    }

    /// The same database, closed and opened: all its rows are evicted, and nothing is
    /// brought back that no statement asks for.
    pub fn reopened(self) -> Self {
        self.db.close().expect("the database closes");
        let mut config = Config::new(self.device.clone());
        config.background = false;
        Self::on(self.device.clone(), config)
    }

    fn on(device: Arc<dyn Device>, config: Config) -> Self {
        let db = Database::open(config).expect("the database opens");
        Self {
            device,
            session: Session {
                db: Arc::clone(&db),
                last: Mutex::default(),
            },
            db,
            options: RunOptions::new(),
            rows_estimated: 0,
            sizes_asked: AtomicUsize::new(0),
        }
    }

    /// Runs a definition in a transaction of its own.
    pub fn ddl(&self, change: Change) {
        let mut txn = self.db.begin(Isolation::ReadCommitted, false);
        block_on(async {
            self.db.ddl(&mut txn, &self.options, change).await?;
            self.db.commit(txn, &self.options).await
        })
        .expect("the definition is accepted");
    }

    /// A definition to be completed by `finish` and made.
    pub fn table(
        &self,
        name: &str,
        columns: &[Column],
        finish: impl FnOnce(&mut TableDef),
    ) -> Arc<Table> {
        let columns = columns.iter().map(|(name, data_type, not_null)| ColumnDef {
            not_null: *not_null,
            ..ColumnDef::new(*name, *data_type)
        });
        let mut def = TableDef::new(self.db.allocate_oid(), name, columns.collect());
        finish(&mut def);
        self.ddl(Change::CreateTable(def));
        let catalog = self.db.catalog();
        Arc::clone(catalog.table_by_name("public", name).expect("was made"))
    }

    pub fn index(&self, name: &str, columns: &[usize], unique: bool, kind: IndexKind) -> IndexDef {
        IndexDef {
            oid: self.db.allocate_oid(),
            name: name.into(),
            columns: columns.to_vec(),
            unique,
            primary: name.ends_with("_pkey"),
            constraint: unique,
            kind,
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        }
    }

    pub fn sequence(&self, name: &str) -> u32 {
        let oid = self.db.allocate_oid();
        self.ddl(Change::CreateSequence(SequenceDef {
            oid,
            schema: "public".into(),
            name: name.into(),
            data_type: DataType::BigInt,
            start: 1,
            increment: 1,
            min: 1,
            max: i64::MAX,
            cache: 1,
            cycle: false,
            owned_by: None,
            restarted_by: 0,
        }));
        oid
    }

    /// `accounts (id int primary key, owner text, balance numeric(12,2) not
    /// null default 0 check (balance >= 0), opened date)`, an index on owner.
    pub fn accounts(&self) {
        self.table(
            "accounts",
            &[
                ("id", DataType::Integer, true),
                ("owner", DataType::Text, false),
                (
                    "balance",
                    DataType::Numeric {
                        precision: 12,
                        scale: 2,
                    },
                    true,
                ),
                ("opened", DataType::Date, false),
            ],
            |def| {
                def.columns[2].default = Some("0".into());
                def.checks.push(CheckDef {
                    name: "accounts_balance_check".into(),
                    expression: "balance >= 0".into(),
                    validated: true,
                });
                def.partition_key = vec![0];
                def.indexes = vec![
                    self.index("accounts_pkey", &[0], true, IndexKind::BTree),
                    self.index("accounts_owner_idx", &[1], false, IndexKind::BTree),
                ];
            },
        );
    }

    /// `lines (a int, b int, c text, primary key (a, b))`, partitioned by `a`.
    pub fn lines(&self) {
        self.table(
            "lines",
            &[
                ("a", DataType::Integer, true),
                ("b", DataType::Integer, true),
                ("c", DataType::Text, false),
            ],
            |def| {
                def.partition_key = vec![0];
                def.indexes = vec![self.index("lines_pkey", &[0, 1], true, IndexKind::BTree)];
            },
        );
    }

    /// `pairs (id bigint primary key, a text not null, b int check (b > 0))`, a hash key
    /// and no other index.
    pub fn pairs(&self) {
        self.table(
            "pairs",
            &[
                ("id", DataType::BigInt, true),
                ("a", DataType::Text, true),
                ("b", DataType::Integer, false),
            ],
            |def| {
                def.checks.push(CheckDef {
                    name: "pairs_b_check".into(),
                    expression: "b > 0".into(),
                    validated: true,
                });
                def.partition_key = vec![0];
                def.indexes = vec![self.index("pairs_pkey", &[0], true, IndexKind::Hash)];
            },
        );
    }

    /// `events (id bigint identity, note varchar(5) unique)`, a hash key.
    pub fn events(&self, identity: Identity) {
        let sequence = self.sequence("events_id_seq");
        self.table(
            "events",
            &[
                ("id", DataType::BigInt, true),
                ("note", DataType::Varchar(5), false),
            ],
            |def| {
                def.columns[0].identity = Some(identity);
                def.columns[0].sequence = Some(sequence);
                def.partition_key = vec![0];
                def.indexes = vec![
                    self.index("events_pkey", &[0], true, IndexKind::Hash),
                    self.index("events_note_key", &[1], true, IndexKind::BTree),
                ];
            },
        );
    }

    pub fn bind(&self, sql: &str) -> Result<Bound> {
        let catalog = self.db.catalog();
        let search_path = ["public".to_owned()];
        let estimate = |_: &Table| {
            self.sizes_asked.fetch_add(1, Ordering::Relaxed);
            self.rows_estimated
        };
        let context = BindContext {
            row_estimate: Some(&estimate),
            ..BindContext::new(&catalog, &search_path)
        };
        bind_text(sql, &context, &self.db)
    }

    /// The number of rows that the statement tells, and its rows as text.
    pub fn run_in(
        &self,
        txn: Option<&mut Transaction>,
        sql: &str,
        parameters: &[Value],
    ) -> Result<(u64, Vec<String>)> {
        let bound = self.bind(sql)?;
        let Plan::Short(plan) = &bound.plan else {
            panic!("{sql} is not short: {:?}", bound.plan);
        };
        let mut rows = RowWriter::values();
        let mut context = ExecContext {
            may_leave: false,
            db: &self.db,
            txn,
            options: &self.options,
            now_us: NOW_US,
            session: &self.session,
            styles: Styles::plain(),
        };
        let count = block_on(execute(plan, &mut context, parameters, &mut rows))?;
        let columns = bound.columns.unwrap_or_default();
        let shown = rows
            .take_values()
            .iter()
            .map(|row| {
                let values: Vec<String> = row
                    .iter()
                    .zip(&columns)
                    .map(|(value, column)| shown(value, &column.data_type))
                    .collect();
                values.join("|")
            })
            .collect();
        Ok((count, shown))
    }

    pub fn run(&self, sql: &str) -> Result<(u64, Vec<String>)> {
        self.run_in(None, sql, &[])
    }

    /// The rows of a statement that must succeed.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        match self.run(sql) {
            Ok((_, rows)) => rows,
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }

    /// The rows affected by a statement that must succeed.
    pub fn count(&self, sql: &str) -> u64 {
        match self.run(sql) {
            Ok((count, _)) => count,
            Err(error) => panic!("{sql}: {error:?}"),
        }
    }

    pub fn error(&self, sql: &str) -> SqlError {
        match self.run(sql) {
            Ok(result) => panic!("{sql} succeeded: {result:?}"),
            Err(error) => error,
        }
    }

    /// EXPLAIN's lines.
    pub fn explain(&self, sql: &str) -> Vec<String> {
        self.bind(sql).expect("binds").plan.explain()
    }
}

/// The database's threads end with it.
impl Drop for Fixture {
    fn drop(&mut self) {
        let closed = self.db.close();
        if !std::thread::panicking() {
            closed.expect("the database closes");
        }
    }
}

fn shown(value: &Value, column_type: &ColumnType) -> String {
    let data_type = match column_type {
        ColumnType::Scalar(data_type) => *data_type,
        ColumnType::Other(_) => DataType::Text,
    };
    if value.is_null() {
        return "NULL".into();
    }
    let mut out = Vec::new();
    write_text(value.as_ref(), &data_type, &mut out);
    String::from_utf8(out).expect("text is UTF-8")
}
