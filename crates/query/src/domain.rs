//! What becomes a domain's value is checked here: its conditions are analysed, and asked.

use crate::analyze::{Catalog, Stored, Wanted, analyze_scalar};
use crate::call::{Call, Timeless};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::evaluate::{Evaluator, Row};
use crate::parse::parse;
use crate::tree::{Column, Expr, ExprKind};
use crate::types::domain::known;
use crate::types::format_type;
use crate::types::user::Kind;

/// VALUE, as the only column of the only relation.
struct Value {
    oid: u32,
    modifier: i32,
}

impl Catalog for Value {
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Stored>> {
        if schema.is_some() || name != VALUE {
            let message = "cannot use subquery in check constraint";
            return Err(QueryError::unsupported(message, OVER_VALUE));
        }
        Ok(Some(Stored {
            oid: 0,
            schema: "".into(),
            columns: vec![Column {
                name: VALUE.into(),
                oid: self.oid,
                modifier: self.modifier,
                origin: None,
            }],
            primary_key: Vec::new(),
            row_type: 0,
            view: None,
            reader: None,
            is_partitioned: false,
        }))
    }
}

const VALUE: &str = "value";
const UNSUPPORTED: &str = "0A000";
const OVER_VALUE: &str = "Write the condition over VALUE alone.";

/// Analyses the text of a condition of values of this type.
///
/// # Errors
/// As PostgreSQL's analysis; 0A000 for a subquery.
pub fn condition(text: &str, oid: u32, modifier: i32) -> Result<Expr> {
    let parsed = parse(&format!("SELECT ({text}) FROM {VALUE}"))?;
    let statement = parsed.statements().stmts().next();
    let statement = statement.ok_or_else(|| QueryError::internal("a condition of no text"))?;
    let wanted = Wanted::Condition("CHECK");
    let catalog = Value { oid, modifier };
    let kept = Timeless::default();
    let analyzed = analyze_scalar(statement, &catalog, &kept, &[], wanted)?;
    kept.check()?;
    let mut targets = analyzed.query.targets;
    match targets.pop() {
        Some(target) if targets.is_empty() => {
            of_one_value(&target.expr)?;
            Ok(target.expr)
        }
        _ => Err(QueryError::new(
            "42601",
            "the condition of a domain must be one expression",
        )),
    }
}

/// Whether a value decides the condition.
fn of_one_value(condition: &Expr) -> Result<()> {
    let mut refused = None;
    condition.any(&mut |expr| {
        refused = match &expr.kind {
            ExprKind::Aggregate(_) | ExprKind::Grouping(..) => {
                Some(("42803", "aggregate functions are"))
            }
            ExprKind::Window(_) => Some(("42P20", "window functions are")),
            ExprKind::Call(call) if call.function.returns_set() => {
                Some((UNSUPPORTED, "set-returning functions are"))
            }
            ExprKind::Subquery(_) => Some((UNSUPPORTED, "subqueries are")),
            ExprKind::Parameter(_) => Some(("42P02", "parameters are")),
            _ => None,
        };
        refused.is_some()
    });
    match refused {
        None => Ok(()),
        Some((sqlstate, what)) => {
            let message = format!("{what} not allowed in check constraints");
            Err(match sqlstate {
                UNSUPPORTED => QueryError::unsupported(message, OVER_VALUE),
                _ => QueryError::new(sqlstate, message),
            })
        }
    }
}

/// The row of a condition: the value.
struct Only<'a>(&'a Datum);

impl Row for Only<'_> {
    fn column(&self, _: usize, _: usize, _: usize) -> Result<Datum> {
        Ok(self.0.clone())
    }

    fn whole_row(&self, _: usize, _: usize) -> Result<Datum> {
        Err(QueryError::unsupported(
            "a whole row is not supported in a condition of a domain",
            OVER_VALUE,
        ))
    }
}

/// Asks whether a value of the type below is one of the domain, and of the domains below it.
///
/// # Errors
/// 23502 for NULL and 23514 where a condition is false; what the conditions' functions give.
pub fn check(call: &Call<'_>, oid: u32, value: &Datum) -> Result<()> {
    let Some(def) = known(oid) else {
        return Ok(());
    };
    let Kind::Domain(domain) = &def.kind else {
        return Ok(());
    };
    check(call, domain.below, value)?;
    if domain.not_null && value.is_null() {
        let shown = format_type(oid, -1);
        let message = format!("domain {shown} does not allow null values");
        return Err(QueryError::new("23502", message));
    }
    let evaluator = Evaluator {
        environment: call.environment,
        parameters: &[],
    };
    for one in &domain.checks {
        let condition = one
            .analyzed
            .get_or_init(|| condition(&one.text, domain.below, domain.modifier));
        let condition = condition.as_ref().map_err(Clone::clone)?;
        if matches!(
            evaluator.evaluate(condition, &Only(value))?,
            Datum::Bool(false)
        ) {
            let shown = format_type(oid, -1);
            let message = format!(
                "value for domain {shown} violates check constraint \"{}\"",
                one.name
            );
            return Err(QueryError::new("23514", message));
        }
    }
    Ok(())
}
