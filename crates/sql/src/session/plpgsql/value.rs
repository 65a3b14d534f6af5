//! Expressions, casts and assignments.

use std::sync::Arc;

use thermocline_query::analyze::{Wanted, analyze_scalar};
use thermocline_query::call::{Call, Plain};
use thermocline_query::datum::Datum;
use thermocline_query::evaluate::{Evaluator, NoRow};
use thermocline_query::parse::parse;
use thermocline_query::tree::{Column, Expr};
use thermocline_query::types::domain::{base, base_of, is_domain};
use thermocline_query::types::{self, ids};
use thermocline_values::value::Value;

use super::Machine;
use super::compiled::{Simple, Site};
use super::frame::{Held, Row, Typed};
use super::scope::{Asked, Scope};
use crate::bind::TypeNames;
use crate::error::{Result, SqlError};
use crate::one_row::{self, StatementEnvironment};
use crate::output::{ColumnType, OtherType, OutputColumn};
use crate::plpgsql::tree::{Expression, Target};
use crate::session::Session;
use crate::session::prepared::PlanSettings;
use crate::typed::{held, query_of, value};

/// A value of a variable of this type and modifier.
fn holding(value: Datum, (oid, modifier): (u32, i32)) -> Held {
    Held::Value {
        oid,
        modifier,
        value,
    }
}

impl Machine<'_> {
    /// The value of an expression.
    pub(super) async fn value(&mut self, of: &Expression) -> Result<Typed> {
        let site = self.compiled.sites.lock()[of.site].clone();
        let site = match site {
            Some(Site::Expr(simple)) if !self.still_holds(&simple) => None,
            site => site,
        };
        let site = match site {
            Some(site) => site,
            None => self.analyse(of).await?,
        };
        match site {
            Site::Expr(simple) => self.computed(&simple).await,
            Site::Statement(_) => self.of_query(of).await,
        }
    }

    /// Whether an expression means what it meant when it was analysed.
    fn still_holds(&self, simple: &Simple) -> bool {
        let session = &self.session;
        let catalog = session.transaction.catalog(&session.engine.db);
        let settings = session
            .context
            .settings(|settings| PlanSettings::of(settings));
        Arc::ptr_eq(&catalog, &simple.catalog)
            && settings.are_same(&simple.settings)
            && self.are_as_asked(&simple.asked)
    }

    /// Whether variables are of the types that they had.
    pub(super) fn are_as_asked(&self, asked: &[Asked]) -> bool {
        asked
            .iter()
            .all(|one| match (&self.frame.held[one.slot], one.column) {
                (Held::Row(row), Some(at)) => row.columns.as_ref().is_some_and(|columns| {
                    let is_it = |of: &Column| {
                        one.is_named(&of.name) && (of.oid, of.modifier) == (one.oid, one.modifier)
                    };
                    columns.get(at).is_some_and(is_it)
                }),
                (held, None) => held.type_of() == (one.oid, one.modifier),
                _ => false,
            })
    }

    /// Looks what an expression is, and keeps it.
    async fn analyse(&mut self, of: &Expression) -> Result<Site> {
        let analysed = {
            let session = &*self.session;
            let settings = session
                .context
                .settings(|settings| PlanSettings::of(settings));
            let scope = Scope::new(&self.compiled.body, of.names, &self.frame.held);
            let depth = crate::parse::depth_of(&of.text)?;
            let bound = crate::stack::with_room(depth, || {
                let parsed = parse(&of.text)?;
                let statement = query_of(&parsed);
                let statement = statement.ok_or_else(|| SqlError::internal("no expression"))?;
                let now = session.context.transaction_us();
                let styles = (now, &*settings.styles);
                Ok::<_, SqlError>(one_row::bind(
                    statement,
                    &of.text,
                    &[],
                    &*session.context,
                    styles,
                    Some(&scope),
                ))
            })?;
            let bound = bound.transpose().map_err(|error| of_expression(error, of));
            match bound? {
                Some(typed) if typed.query.relations.is_empty() && typed.query.filter.is_none() => {
                    let query = &typed.query;
                    let shown: Vec<_> = query.targets.iter().filter(|of| !of.hidden).collect();
                    let [target] = shown.as_slice() else {
                        return Err(columns_of_expression(of, shown.len()));
                    };
                    let is_plain =
                        !query.has_set_targets && query.limit.is_none() && query.offset.is_none();
                    is_plain.then(|| Simple {
                        expr: target.expr.clone(),
                        asked: scope.asked(),
                        catalog: session.transaction.catalog(&session.engine.db),
                        settings,
                    })
                }
                _ => None,
            }
        };
        let site = match analysed {
            Some(simple) => Site::Expr(Arc::new(simple)),
            None => Site::Statement(self.prepared(of).await?),
        };
        self.compiled.sites.lock()[of.site] = Some(site.clone());
        Ok(site)
    }

    async fn computed(&mut self, simple: &Simple) -> Result<Typed> {
        let parameters: Vec<Datum> = simple.asked.iter().map(|one| self.asked(one)).collect();
        let expr = &simple.expr;
        self.session.context.begin_waits();
        let mut options = None;
        loop {
            let computed = self.evaluate(expr, &parameters, &simple.settings);
            let error = match computed {
                Ok(value) => {
                    return Ok(Typed {
                        value,
                        oid: expr.oid,
                        modifier: expr.modifier,
                    });
                }
                Err(error) => error,
            };
            let Some(wait) = error.wait else {
                return Err(error);
            };
            let options = options.get_or_insert_with(|| self.session.options());
            self.session.wait(wait, options).await?;
        }
    }

    pub(super) fn evaluate(
        &self,
        expr: &Expr,
        parameters: &[Datum],
        settings: &PlanSettings,
    ) -> Result<Datum> {
        let context = &self.session.context;
        let now = context.transaction_us();
        let environment = StatementEnvironment::new(&**context, now, &settings.styles);
        let evaluator = Evaluator {
            environment: &environment,
            parameters,
        };
        let value = evaluator.evaluate(expr, &NoRow);
        value.map_err(|error| environment.told(error))
    }

    /// What a parameter is.
    pub(super) fn asked(&self, one: &Asked) -> Datum {
        match (&self.frame.held[one.slot], one.column) {
            (Held::Row(row), Some(at)) => row.value(at),
            (held, _) => held.datum(),
        }
    }

    /// The one value that a query gives; NULL for no row.
    async fn of_query(&mut self, of: &Expression) -> Result<Typed> {
        let mut found = self.query_of_expression(of).await?;
        let columns = found.columns();
        let [column] = &*columns else {
            return Err(columns_of_expression(of, columns.len()));
        };
        let typed = |value| Typed {
            value,
            oid: column.oid,
            modifier: column.modifier,
        };
        let mut first = None;
        while let Some(mut row) = self.next_row(&mut found)? {
            if first.is_some() {
                let message = "query returned more than one row";
                return Err(
                    SqlError::new("21000", message).with_context(format!("query: {}", of.text))
                );
            }
            first = row.pop();
        }
        Ok(typed(first.unwrap_or_default()))
    }

    /// Whether a condition is true.
    pub(super) async fn is_true(&mut self, of: &Expression) -> Result<bool> {
        let value = self.value(of).await?;
        let value = self.cast(value, (ids::BOOL, -1))?;
        Ok(matches!(value, Datum::Bool(true)))
    }

    /// The value of an expression as a text; none for NULL.
    pub(super) async fn text(&mut self, of: &Expression) -> Result<Option<String>> {
        let value = self.value(of).await?;
        self.shown(&value)
    }

    /// A value as a text; none for NULL.
    pub(super) fn shown(&self, typed: &Typed) -> Result<Option<String>> {
        if typed.value.is_null() {
            return Ok(None);
        }
        self.with_call(typed.oid, |call| {
            Ok(types::to_text(call, typed.oid, &typed.value)?)
        })
        .map(Some)
    }

    /// Does something with types by the session's settings.
    fn with_call<T>(&self, oid: u32, what: impl FnOnce(&Call<'_>) -> Result<T>) -> Result<T> {
        let context = &self.session.context;
        let styles = context.styles();
        let environment = StatementEnvironment::new(&**context, context.transaction_us(), &styles);
        what(&Call::new(&environment, &[], oid))
    }

    /// A value as one of another type, by the cast of an assignment, else through its text.
    pub(super) fn cast(&self, mut typed: Typed, (oid, modifier): (u32, i32)) -> Result<Datum> {
        if typed.oid == ids::UNKNOWN {
            // A literal in a row that is nobody's.
            typed.oid = ids::TEXT;
        }
        if is_domain(oid) && base(typed.oid) != base(oid) {
            // As what it is a domain of first: that may go through the text.
            let below = base_of(oid, modifier);
            typed = Typed {
                value: self.cast(typed, below)?,
                oid: below.0,
                modifier: below.1,
            };
        }
        let same = typed.oid == oid && (modifier < 0 || modifier == typed.modifier);
        if same && !is_domain(oid) || typed.value.is_null() && !is_domain(oid) {
            return Ok(typed.value);
        }
        let key = (typed.oid, oid, modifier);
        let known = self.compiled.casts.lock().get(&key).cloned();
        let cast = match known {
            Some(cast) => cast,
            None => {
                let cast = self.find_cast(key)?.map(Arc::new);
                self.compiled.casts.lock().insert(key, cast.clone());
                cast
            }
        };
        match cast {
            Some(cast) => {
                let context = &self.session.context;
                let settings = context.settings(|settings| PlanSettings::of(settings));
                self.evaluate(&cast, &[typed.value], &settings)
            }
            None => self.with_call(oid, |call| {
                let text = types::to_text(call, typed.oid, &typed.value)?;
                Ok(types::input(call, oid, &text, modifier)?)
            }),
        }
    }

    fn find_cast(&self, (from, oid, modifier): (u32, u32, i32)) -> Result<Option<Expr>> {
        let parsed = parse("SELECT $1")?;
        let statement = query_of(&parsed).ok_or_else(|| SqlError::internal("no expression"))?;
        let wanted = Wanted::Column {
            name: "",
            oid,
            modifier,
        };
        let plain = Plain::default();
        let cast = analyze_scalar(statement, &TypeNames::of_none(), &plain, &[from], wanted);
        match cast {
            Ok(analyzed) => Ok(analyzed.query.targets.into_iter().next().map(|of| of.expr)),
            Err(error) if error.sqlstate == "42804" && !is_domain(oid) => Ok(None),
            Err(mut error) => {
                error.location = None;
                Err(error.into())
            }
        }
    }

    /// Assigns a value to a variable or to a column of one.
    pub(super) async fn assign(&mut self, target: &Target, typed: Typed) -> Result<()> {
        let Some(field) = &target.field else {
            return self.store(target.slot, typed).await;
        };
        let Held::Row(row) = &self.frame.held[target.slot] else {
            let name = &self.compiled.body.slots[target.slot].name;
            let message = format!("variable \"{name}\" is no row and has no field \"{field}\"");
            return Err(SqlError::new("42804", message));
        };
        let name = &self.compiled.body.slots[target.slot].name;
        let (at, column) = row.column(field).ok_or_else(|| row.without(name, field))?;
        let to = (column.oid, column.modifier);
        let value = self.cast(typed, to)?;
        let Held::Row(row) = &self.frame.held[target.slot] else {
            return Err(SqlError::internal("a row that is none any more"));
        };
        let columns = row.columns.clone();
        let width = columns.as_ref().map_or(0, |columns| columns.len());
        let mut values = row
            .values
            .clone()
            .unwrap_or_else(|| vec![Datum::Null; width]);
        values[at] = value;
        let row = Row {
            oid: row.oid,
            columns,
            values: Some(values),
        };
        self.frame.keep(target.slot, Held::Row(row))
    }

    /// Gives a variable its value.
    pub(super) async fn store(&mut self, slot: usize, typed: Typed) -> Result<()> {
        let declared = &self.compiled.body.slots[slot];
        match &self.frame.held[slot] {
            Held::Value { oid: 0, .. } => {
                let held = holding(typed.value, (typed.oid, typed.modifier));
                self.frame.keep(slot, held)
            }
            Held::Value { oid, modifier, .. } => {
                let (oid, modifier) = (*oid, *modifier);
                let value = self.cast(typed, (oid, modifier))?;
                if declared.not_null && value.is_null() {
                    return Err(not_null(&declared.name));
                }
                self.frame.keep(slot, holding(value, (oid, modifier)))
            }
            Held::Row(_) => match typed.value {
                Datum::Null if declared.not_null => Err(not_null(&declared.name)),
                Datum::Null => self.frame.keep(slot, self.compiled.empty(slot)),
                Datum::Record(record) => {
                    let column = |at: usize| Column {
                        name: match &record.names {
                            Some(names) => Arc::clone(&names[at]),
                            None => Arc::from(format!("f{}", at + 1)),
                        },
                        oid: record.types[at],
                        modifier: record.modifiers.as_ref().map_or(-1, |of| of[at]),
                        origin: None,
                    };
                    let columns: Vec<Column> = (0..record.types.len()).map(column).collect();
                    self.store_row(slot, &columns, record.values.clone())
                }
                _ => Err(SqlError::new(
                    "42804",
                    "cannot assign non-composite value to a record variable",
                )),
            },
            Held::Cursor(..) => Err(SqlError::unsupported(
                "the assignment of a cursor is not supported",
                "OPEN the cursor.",
            )),
        }
    }

    /// Gives a variable that is a row these columns' values: its own columns, if it has any.
    pub(super) fn store_row(
        &mut self,
        slot: usize,
        columns: &[Column],
        values: Vec<Datum>,
    ) -> Result<()> {
        let (oid, own) = match &self.compiled.types[slot] {
            crate::plpgsql::Type::Row(oid, own) => (*oid, own.clone()),
            _ => return Err(SqlError::internal("a row for a variable that is none")),
        };
        let (columns, values) = match own {
            None => (Arc::from(columns), values),
            Some(own) => {
                let mut given = columns.iter().zip(values);
                let mut cast = Vec::with_capacity(own.len());
                for column in &*own {
                    cast.push(match given.next() {
                        None => Datum::Null,
                        Some((from, value)) => {
                            let typed = Typed {
                                value,
                                oid: from.oid,
                                modifier: from.modifier,
                            };
                            self.cast(typed, (column.oid, column.modifier))?
                        }
                    });
                }
                (own, cast)
            }
        };
        self.frame.keep(
            slot,
            Held::Row(Row {
                oid,
                columns: Some(columns),
                values: Some(values),
            }),
        )
    }

    /// A parameter's value as statements take it.
    pub(super) fn as_parameter(&self, typed: Typed) -> Result<Value> {
        as_parameter(self.session, typed)
    }
}

/// A value of a result.
pub(in crate::session) fn of_result(
    session: &Session,
    given: &Value,
    column: &OutputColumn,
) -> Result<Datum> {
    match (&column.data_type, given) {
        (_, Value::Null) => Ok(Datum::Null),
        (ColumnType::Scalar(data_type), given) => Ok(value::to_query(given.as_ref(), data_type)?),
        // It has no other value.
        (ColumnType::Other(OtherType::VOID), Value::Text(text)) => Ok(Datum::text(text.as_str())),
        (ColumnType::Other(OtherType(oid)), Value::Text(text)) => {
            let styles = session.context.styles();
            let now = session.context.transaction_us();
            let environment = StatementEnvironment::new(&*session.context, now, &styles);
            let call = Call::new(&environment, &[], *oid);
            Ok(types::input(&call, *oid, text, column.type_modifier)?)
        }
        (ColumnType::Other(_), given) => Ok(value::to_datum(given)),
    }
}

/// A parameter's value as statements take it: a text of a type that tables don't hold.
pub(super) fn as_parameter(session: &Session, typed: Typed) -> Result<Value> {
    let Typed {
        value,
        oid,
        modifier,
    } = typed;
    if value.is_null() {
        return Ok(Value::Null);
    }
    if oid == ids::RECORD {
        let mut bytes = Vec::new();
        thermocline_query::serial::write(&value, &mut bytes)?;
        return Ok(Value::Other(oid, bytes));
    }
    match held(oid, modifier) {
        Some(data_type) => value::to_stored(&value, &data_type),
        None => {
            let styles = session.context.styles();
            let now = session.context.transaction_us();
            let environment = StatementEnvironment::new(&*session.context, now, &styles);
            let call = Call::new(&environment, &[], oid);
            Ok(Value::Text(types::to_text(&call, oid, &value)?))
        }
    }
}

#[cold]
fn not_null(name: &str) -> SqlError {
    SqlError::new(
        "22004",
        format!("null value cannot be assigned to variable \"{name}\" declared NOT NULL"),
    )
}

/// An error of an expression's analysis. One with a place is told by that.
#[cold]
fn of_expression(mut error: SqlError, of: &Expression) -> SqlError {
    if error.position.is_none() {
        error.context = Some(format!("SQL expression \"{}\"", of.written));
    }
    error
}

#[cold]
fn columns_of_expression(of: &Expression, columns: usize) -> SqlError {
    let s = if columns == 1 { "" } else { "s" };
    SqlError::new(
        "42601",
        format!("query \"{}\" returned {columns} column{s}", of.text),
    )
}
