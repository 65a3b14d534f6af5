//! A table, batches of it, and expressions over it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::Field;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, Expr as DfExpr, ScalarFunctionArgs};
use thermocline_analytical::columnar::{Program, Wanted};
use thermocline_analytical::errors::query_error;
use thermocline_analytical::evaluate::{Context, PlacedRows};
use thermocline_analytical::form::{ColumnBuilder, ColumnReader, Form};
use thermocline_analytical::sort_key::{self, Direction};
use thermocline_analytical::udf::RowFunction;
use thermocline_query::analyze::{Catalog, Stored, analyze};
use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::parse::parse;
use thermocline_query::tree::{Column, Expr};
use thermocline_query::types::{self, ids};

use super::random::Random;

/// The columns: name, type, usual values, unusual ones.
pub const COLUMNS: &[(&str, u32, &[&str], &[&str])] = &[
    (
        "i2",
        ids::INT2,
        &["1", "2", "-3", "7"],
        &["0", "32767", "-32768"],
    ),
    ("j2", ids::INT2, &["1", "2", "5"], &["0", "-1", "32767"]),
    (
        "i4",
        ids::INT4,
        &["1", "2", "-3", "40"],
        &["0", "-1", "2147483647", "-2147483648"],
    ),
    (
        "j4",
        ids::INT4,
        &["1", "2", "3"],
        &["0", "-1", "2147483647"],
    ),
    (
        "i8",
        ids::INT8,
        &["1", "2", "-3", "50000"],
        &["0", "9223372036854775807", "-9223372036854775808"],
    ),
    (
        "j8",
        ids::INT8,
        &["1", "2", "9"],
        &["0", "-1", "4294967296"],
    ),
    (
        "r4",
        ids::FLOAT4,
        &["1.5", "2", "-3.25"],
        &["0", "-0", "NaN", "Infinity", "3e38", "1e-38"],
    ),
    (
        "f8",
        ids::FLOAT8,
        &["1.5", "2", "-3.25", "0.1"],
        &["0", "-0", "NaN", "-Infinity", "1e308", "1e-308"],
    ),
    (
        "g8",
        ids::FLOAT8,
        &["1.5", "2", "7"],
        &["0", "NaN", "Infinity"],
    ),
    (
        "n",
        ids::NUMERIC,
        &["1.00", "2.50", "-3.25", "901.00"],
        &["0.00", "9999999999999.99"],
    ),
    (
        "m",
        ids::NUMERIC,
        &["0.05", "0.06", "1.00"],
        &["0.00", "-0.01"],
    ),
    (
        "q",
        ids::NUMERIC,
        &["1", "2.5", "0.125", "-7.00"],
        &[
            "0",
            "0.000",
            "NaN",
            "Infinity",
            "99999999999999999999999999999999999.5",
            "1e60",
            "12345678901234567890.5",
        ],
    ),
    (
        "x",
        ids::TEXT,
        &["a", "ab", "abc", "PROMO BRASS", "b a"],
        &["", "é", "naïve ÉCOLE", "a  ", "日本語", "%_\\"],
    ),
    ("y", ids::TEXT, &["a", "b", "ab"], &["", "é", " a"]),
    ("v", ids::VARCHAR, &["a", "abc", "zz"], &["", "ab ", "é"]),
    (
        "c",
        ids::BPCHAR,
        &["a     ", "ab    ", "RAIL  "],
        &["", "      ", "é     ", "a"],
    ),
    ("d", ids::BPCHAR, &["a", "ab    ", "RAIL"], &["", "a "]),
    (
        "da",
        ids::DATE,
        &["1998-12-01", "1995-03-15", "2000-02-29"],
        &[
            "infinity",
            "-infinity",
            "0044-03-15 BC",
            "290000-01-01",
            "4713-11-24 BC",
        ],
    ),
    (
        "db",
        ids::DATE,
        &["1998-09-02", "1996-01-31"],
        &["infinity", "0001-01-01"],
    ),
    (
        "ts",
        ids::TIMESTAMP,
        &["1998-12-01 10:30:00", "1995-03-15 00:00:00"],
        &[
            "infinity",
            "-infinity",
            "0044-03-15 01:00:00 BC",
            "290000-01-01",
            "1999-12-31 23:59:59.999999",
        ],
    ),
    (
        "tt",
        ids::TIMESTAMP,
        &["1998-12-01 10:30:00", "1996-01-31 01:02:03.5"],
        &["infinity"],
    ),
    (
        "tz",
        ids::TIMESTAMPTZ,
        &["1998-12-01 10:30:00+00", "1995-03-15 00:00:00+00"],
        &["infinity"],
    ),
    ("b", ids::BOOL, &["t", "f"], &[]),
    ("e", ids::BOOL, &["t", "f"], &[]),
    ("o", ids::OID, &["1", "2"], &["0", "4294967295"]),
    (
        "iv",
        ids::INTERVAL,
        &["1 day", "1 month"],
        &["-1 year", "0"],
    ),
];

struct Table;

impl Catalog for Table {
    fn relation(&self, _: Option<&str>, name: &str) -> Result<Option<Stored>> {
        let columns = COLUMNS
            .iter()
            .enumerate()
            .map(|(at, (name, oid, ..))| Column {
                name: (*name).into(),
                oid: *oid,
                modifier: -1,
                origin: Some((1, i16::try_from(at + 1).unwrap_or(0))),
            });
        Ok((name == "t").then(|| Stored {
            oid: 1,
            schema: "public".into(),
            columns: columns.collect(),
            primary_key: Vec::new(),
            row_type: 0,
            view: None,
            reader: None,
            is_partitioned: false,
        }))
    }
}

/// An expression over the table, whose columns' numbers are their places.
pub fn expression(sql: &str) -> Result<Expr> {
    let parsed = parse(&format!("select {sql} from t"))?;
    let missing = || QueryError::internal("no statement");
    let statement = parsed.statements().stmts().next().ok_or_else(missing)?;
    let analyzed = analyze(statement, &Table, &Plain::default(), &[])?;
    let target = analyzed.query.targets.into_iter().next();
    target.map(|target| target.expr).ok_or_else(missing)
}

/// The columns of a batch.
pub struct Batch {
    pub arrays: Vec<ArrayRef>,
    pub rows: usize,
}

impl Batch {
    /// Of random values, unusual ones among them or not.
    pub fn random(random: &mut Random, rows: usize, unusual: bool) -> Self {
        let plain = Plain::default();
        let arrays = COLUMNS.iter().map(|(_, oid, usual, rare)| {
            let call = Call::new(&plain, &[], *oid);
            let read = |text: &&str| types::input(&call, *oid, text, -1).expect("a value");
            let usual: Vec<Datum> = usual.iter().map(read).collect();
            let rare: Vec<Datum> = rare.iter().map(read).collect();
            let mut builder = ColumnBuilder::new(Form::of(*oid), rows);
            for _ in 0..rows {
                let value = if random.below(6) == 0 {
                    &Datum::Null
                } else if unusual && !rare.is_empty() && random.below(12) == 0 {
                    random.pick(&rare)
                } else {
                    random.pick(&usual)
                };
                builder.push(value).expect("a column's value");
            }
            builder.finish()
        });
        Self {
            arrays: arrays.collect(),
            rows,
        }
    }

    fn readers(&self) -> PlacedRows {
        let readers = self.arrays.iter().zip(COLUMNS);
        let readers = readers.map(|(array, (_, oid, ..))| {
            ColumnReader::new(Form::of(*oid), Arc::clone(array)).expect("a column")
        });
        PlacedRows::of(readers.collect())
    }

    /// What the row evaluator gives.
    pub fn by_rows(&self, expr: &Expr, context: &Context) -> Result<ArrayRef> {
        let rows = self.readers();
        let mut builder = ColumnBuilder::new(Form::of(expr.oid), self.rows);
        for row in 0..self.rows {
            builder.push(&context.evaluator.evaluate(expr, &rows.row(row))?)?;
        }
        Ok(builder.finish())
    }

    /// What the function of an expression gives.
    pub fn by_function(&self, function: &DfExpr) -> std::result::Result<ArrayRef, QueryError> {
        let DfExpr::ScalarFunction(call) = function else {
            panic!("a function");
        };
        let mut args = Vec::new();
        let mut arg_fields = Vec::new();
        for argument in &call.args {
            let DfExpr::Column(column) = argument else {
                panic!("a column");
            };
            let place: usize = column.name[1..].parse().expect("a column's number");
            let array = Arc::clone(&self.arrays[place]);
            arg_fields.push(Arc::new(Field::new(
                &column.name,
                array.data_type().clone(),
                true,
            )));
            args.push(ColumnarValue::Array(array));
        }
        let result = call.func.inner().return_type(&[]).expect("a type");
        let given = call.func.invoke_with_args(ScalarFunctionArgs {
            args,
            arg_fields,
            number_rows: self.rows,
            return_field: Arc::new(Field::new("value", result, true)),
            config_options: Arc::new(ConfigOptions::default()),
        });
        let given = given.map_err(|error| query_error(&error))?;
        Ok(given.to_array(self.rows).expect("a column"))
    }
}

impl Batch {
    /// Whether a program computes this batch and does not give it up.
    pub fn is_computed(&self, program: &Program, expr: &Expr, context: &Context) -> bool {
        let columns: Vec<(usize, u32)> = COLUMNS
            .iter()
            .enumerate()
            .map(|(at, (_, oid, ..))| (at, *oid))
            .collect();
        let wanted = Wanted::Value(expr.oid);
        let rows = self.readers();
        let given = program.compute(&wanted, &columns, &self.arrays, &rows, self.rows, context);
        given.expect("no interruption").is_some()
    }
}

fn oid_of(place: usize) -> u32 {
    COLUMNS[place].1
}

/// The values of a column, as they are told apart exactly.
fn shown(oid: u32, array: &ArrayRef) -> Vec<String> {
    let reader = ColumnReader::new(Form::of(oid), Arc::clone(array)).expect("a column");
    (0..array.len())
        .map(|row| format!("{:?}", reader.get(row).expect("a value")))
        .collect()
}

/// Both ways give the same values, the same error, and the same keys.
pub fn check(sql: &str, expr: &Expr, batch: &Batch, context: &Context) {
    let expected = batch.by_rows(expr, context);
    let function = RowFunction::value(expr, &oid_of, context);
    let given = batch.by_function(&function);
    let array = match (&expected, &given) {
        (Ok(expected), Ok(given)) => {
            let (of_rows, of_columns) = (shown(expr.oid, expected), shown(expr.oid, given));
            for (row, (a, b)) in of_rows.iter().zip(&of_columns).enumerate() {
                assert_eq!(a, b, "{sql}, row {row}");
            }
            assert_eq!(of_rows.len(), of_columns.len(), "{sql}");
            expected
        }
        (Err(a), Err(b)) => {
            let told = |error: &QueryError| (error.sqlstate.to_owned(), error.message.clone());
            assert_eq!(told(a), told(b), "{sql}");
            return;
        }
        (a, b) => panic!("{sql}: {:?} and {:?}", a.as_ref().err(), b.as_ref().err()),
    };
    if !sort_key::has_order(expr.oid) {
        return;
    }
    let reader = ColumnReader::new(Form::of(expr.oid), Arc::clone(array)).expect("a column");
    let keys = batch.by_function(&RowFunction::key(expr, &oid_of, context));
    let keys = keys.expect("keys");
    let direction = Direction {
        descending: true,
        nulls_first: true,
    };
    let by = [
        (expr.clone(), direction),
        (expr.clone(), Direction::default()),
    ];
    let sorts = batch.by_function(&RowFunction::sort_key(&by, &oid_of, context));
    let sorts = sorts.expect("keys");
    for row in 0..batch.rows {
        let value = reader.get(row).expect("a value");
        let key = (!keys.is_null(row)).then(|| keys.as_binary_view().value(row));
        let mut expected = Vec::new();
        if !value.is_null() {
            sort_key::key(expr.oid, &value, &mut expected).expect("a key");
        }
        assert_eq!(
            key,
            (!value.is_null()).then_some(expected.as_slice()),
            "{sql}"
        );
        expected.clear();
        for (_, direction) in &by {
            sort_key::directed(expr.oid, &value, *direction, &mut expected).expect("a key");
        }
        assert_eq!(sorts.as_binary_view().value(row), expected, "{sql}");
    }
}
