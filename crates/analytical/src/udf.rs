//! Whole expressions as one function of DataFusion, over the columns that they use: computed by
//! columns where that is possible ([`crate::columnar`]), else row by row. Its name is a number,
//! since DataFusion spells names out again and again.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{
    ColumnarValue, Expr as DfExpr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use thermocline_query::datum::{Datum, Record};
use thermocline_query::error::Result;
use thermocline_query::functions;
use thermocline_query::tree::{Expr, ExprKind};

use crate::columnar::{Program, Wanted};
use crate::errors::external;
use crate::evaluate::{Context, PlacedRows, columns_of, name_of, placed};
use crate::form::{ColumnBuilder, ColumnReader, Form};
use crate::sort_key::{self, Direction};

/// Rows between two looks at whether the statement is to go on.
const ROWS_BETWEEN_CHECKS: usize = 16;

/// A batch of values may grow by so many bytes until it asks for room again.
const BYTES_BETWEEN_ASKS: usize = 4 << 20;

/// What a function gives.
#[derive(Clone, Debug)]
enum Output {
    /// The expression's value.
    Value(Form),
    /// The key of the expression's value, NULL for NULL.
    Key(u32),
    /// The expression's value, a row whose columns have these names.
    Row(Arc<[Arc<str>]>),
    /// The keys of all expressions together; never NULL.
    SortKey(Vec<(u32, Direction)>),
}

/// Expressions over a plan's columns, as a function.
pub struct RowFunction {
    name: String,
    /// Their columns' numbers are places among `inputs`.
    exprs: Vec<Expr>,
    program: Option<Program>,
    inputs: Vec<(usize, u32)>,
    output: Output,
    context: Context,
    signature: Signature,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Whether an expression has a function whose answer may change from row to row.
#[must_use]
pub fn is_volatile(expr: &Expr) -> bool {
    expr.any(&mut |expr| match &expr.kind {
        ExprKind::Call(call) | ExprKind::NullIf(call) | ExprKind::Distinct(call, _) => {
            call.function.volatility == functions::Volatility::Volatile
        }
        ExprKind::AnyOfArray(call) => call.function.volatility == functions::Volatility::Volatile,
        _ => false,
    })
}

impl RowFunction {
    /// Whether the value of a bound expression is computed by columns, not row by row. Its
    /// columns' numbers may be any.
    #[must_use]
    pub fn is_columnar(expr: &Expr, context: &Context) -> bool {
        Program::of(std::slice::from_ref(expr), context)
            .is_some_and(|program| program.is_worth_it())
    }

    /// The expression whose value it gives, over the places of its arguments, and what computes it:
    /// for whoever reads a filter.
    pub(crate) fn filter(&self) -> Option<(&Expr, &Context)> {
        match (&self.output, self.exprs.as_slice()) {
            (Output::Value(Form::Bool), [expr]) => Some((expr, &self.context)),
            _ => None,
        }
    }

    /// The value of a bound expression.
    pub fn value(expr: &Expr, oids: &dyn Fn(usize) -> u32, context: &Context) -> DfExpr {
        let output = Output::Value(Form::of(expr.oid));
        Self::call(vec![expr.clone()], output, oids, context)
    }

    /// The value of a bound expression, a row, with the names of its columns.
    pub fn row(
        expr: &Expr,
        names: Vec<Arc<str>>,
        oids: &dyn Fn(usize) -> u32,
        context: &Context,
    ) -> DfExpr {
        Self::call(vec![expr.clone()], Output::Row(names.into()), oids, context)
    }

    /// The key of a bound expression's value: NULL for NULL.
    pub fn key(expr: &Expr, oids: &dyn Fn(usize) -> u32, context: &Context) -> DfExpr {
        Self::call(vec![expr.clone()], Output::Key(expr.oid), oids, context)
    }

    /// The key by which rows sort.
    pub fn sort_key(
        keys: &[(Expr, Direction)],
        oids: &dyn Fn(usize) -> u32,
        context: &Context,
    ) -> DfExpr {
        let directions = keys.iter().map(|(expr, direction)| (expr.oid, *direction));
        let output = Output::SortKey(directions.collect());
        let exprs = keys.iter().map(|(expr, _)| expr.clone()).collect();
        Self::call(exprs, output, oids, context)
    }

    fn call(
        exprs: Vec<Expr>,
        output: Output,
        oids: &dyn Fn(usize) -> u32,
        context: &Context,
    ) -> DfExpr {
        let columns = columns_of(&exprs);
        let inputs: Vec<(usize, u32)> = columns.iter().map(|id| (*id, oids(*id))).collect();
        let volatility = match exprs.iter().any(is_volatile) {
            true => Volatility::Volatile,
            false => Volatility::Immutable,
        };
        let signature = match inputs.len() {
            0 => Signature::nullary(volatility),
            count => Signature::any(count, volatility),
        };
        let exprs = placed(&exprs, &columns);
        // A key of a column is worth making by columns, its value is not.
        let program = match &output {
            Output::Row(_) => None,
            Output::Value(_) => Program::of(&exprs, context).filter(Program::is_worth_it),
            Output::Key(_) | Output::SortKey(_) => {
                Program::of(&exprs, context).filter(Program::is_possible)
            }
        };
        let function = Self {
            name: format!("f{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
            exprs,
            program,
            inputs,
            output,
            context: context.clone(),
            signature,
        };
        let arguments = columns.iter().map(|id| column(*id)).collect();
        ScalarUDF::new_from_impl(function).call(arguments)
    }

    /// Appends a row's output, and returns its bytes.
    fn push(
        &self,
        values: &[Datum],
        builder: &mut ColumnBuilder,
        key: &mut Vec<u8>,
    ) -> Result<usize> {
        match (&self.output, values) {
            (Output::Value(_), [value]) => return builder.push(value),
            (Output::Row(names), [Datum::Record(record)]) => {
                builder.push(&Datum::Record(Arc::new(Record {
                    names: Some(Arc::clone(names)),
                    ..record.as_ref().clone()
                })))?;
            }
            (Output::Row(_), [value]) => {
                builder.push(value)?;
            }
            (Output::Key(_), [Datum::Null]) => {
                builder.push(&Datum::Null)?;
            }
            (Output::Key(oid), [value]) => {
                key.clear();
                sort_key::key(*oid, value, key)?;
                builder.push_bytes(key);
                return Ok(key.len());
            }
            (Output::SortKey(directions), values) => {
                key.clear();
                for ((oid, direction), value) in directions.iter().zip(values) {
                    sort_key::directed(*oid, value, *direction, key)?;
                }
                builder.push_bytes(key);
                return Ok(key.len());
            }
            _ => {}
        }
        Ok(0)
    }

    /// By columns, if that is possible.
    fn by_columns(
        &self,
        arrays: &[ArrayRef],
        rows: &PlacedRows,
        count: usize,
    ) -> Result<Option<ArrayRef>> {
        let Some(program) = &self.program else {
            return Ok(None);
        };
        let wanted = match (&self.output, self.exprs.as_slice()) {
            (Output::Value(_), [expr]) => Wanted::Value(expr.oid),
            (Output::Key(oid), _) => Wanted::Key(*oid),
            (Output::SortKey(directions), _) => Wanted::SortKey(directions),
            _ => return Ok(None),
        };
        program.compute(&wanted, &self.inputs, arrays, rows, count, &self.context)
    }

    fn evaluate(&self, rows: &PlacedRows, count: usize) -> Result<ColumnBuilder> {
        let form = match &self.output {
            Output::Value(form) => *form,
            Output::Row(_) => Form::Opaque,
            _ => Form::Bytea,
        };
        let mut builder = ColumnBuilder::new(form, count);
        let mut values = Vec::with_capacity(self.exprs.len());
        let mut key = Vec::new();
        let (mut bytes, mut asked) = (0, BYTES_BETWEEN_ASKS);
        for row in 0..count {
            if row % ROWS_BETWEEN_CHECKS == 0 {
                self.context.environment.check_interrupted()?;
            }
            let row = rows.row(row);
            values.clear();
            for expr in &self.exprs {
                values.push(self.context.evaluator.evaluate(expr, &row)?);
            }
            bytes += self.push(&values, &mut builder, &mut key)?;
            if bytes > asked {
                asked = bytes + BYTES_BETWEEN_ASKS;
                self.context.environment.room(asked)?;
            }
        }
        Ok(builder)
    }
}

/// A plan's column in DataFusion.
#[must_use]
pub fn column(id: usize) -> DfExpr {
    DfExpr::Column(datafusion::common::Column::new_unqualified(name_of(id)))
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, _: &[DfExpr]) -> DfResult<String> {
        Ok(self.name.clone())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(match &self.output {
            Output::Value(form) => form.arrow(),
            _ => Form::Bytea.arrow(),
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let all = arguments.number_rows;
        let constant = self.signature.volatility != Volatility::Volatile
            && arguments
                .args
                .iter()
                .all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let count = if constant { all.min(1) } else { all };
        let mut readers = Vec::with_capacity(self.inputs.len());
        let mut arrays = Vec::with_capacity(self.inputs.len());
        for ((_, oid), argument) in self.inputs.iter().zip(&arguments.args) {
            let array = argument.to_array(count)?;
            let reader = ColumnReader::new(Form::of(*oid), Arc::clone(&array)).map_err(external)?;
            readers.push(reader);
            arrays.push(array);
        }
        let rows = PlacedRows::of(readers);
        let by_columns = match count {
            0 | 1 => None,
            _ => self.by_columns(&arrays, &rows, count).map_err(external)?,
        };
        let array = match by_columns {
            Some(array) => array,
            None => self.evaluate(&rows, count).map_err(external)?.finish(),
        };
        if constant && count == 1 {
            let value = ScalarValue::try_from_array(&array, 0)?;
            return Ok(ColumnarValue::Scalar(value));
        }
        Ok(ColumnarValue::Array(array))
    }
}

/// An expression under a plan's column name.
#[must_use]
pub fn named(expr: DfExpr, id: usize) -> DfExpr {
    match &expr {
        DfExpr::Column(column) if column.relation.is_none() && column.name == name_of(id) => expr,
        _ => expr.alias(name_of(id)),
    }
}
