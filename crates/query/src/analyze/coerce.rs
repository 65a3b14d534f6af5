//! Casts: which are possible, how they are made, and the common type of several
//! expressions (PostgreSQL's parse_coerce.c).

use super::Analyzer;
use super::resolve::element_type;
use crate::call::Call;
use crate::casts::{self, Context, Method};
use crate::datum::{Datum, Record};
use crate::error::{QueryError, Result};
use crate::evaluate::relabelled;
use crate::functions;
use crate::tree::{Column, Expr, ExprKind, FunctionCall};
use crate::types::domain::{base, base_of, is_domain};
use crate::types::user::{self, Class};
use crate::types::{self, format_type, ids};

/// How a value of one type becomes one of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Path {
    Same,
    Relabel,
    Function(u32),
    Text,
    Elements,
}

/// Whether the type is one of the polymorphic pseudo-types.
pub(super) const fn is_polymorphic(oid: u32) -> bool {
    matches!(
        oid,
        ids::ANYELEMENT
            | ids::ANYARRAY
            | ids::ANYNONARRAY
            | ids::ANYENUM
            | ids::ANYRANGE
            | ids::ANYCOMPATIBLE
            | ids::ANYCOMPATIBLEARRAY
            | ids::ANYCOMPATIBLENONARRAY
    )
}

/// The way from `source` to `target` that is open in `context`.
pub(super) fn path(source: u32, target: u32, context: Context) -> Option<Path> {
    // A domain's values are those of the type at its bottom.
    let (source, target) = (base(source), base(target));
    if source == target {
        return Some(Path::Same);
    }
    if let Some(cast) = casts::between(source, target) {
        return (context >= cast.context).then_some(match cast.method {
            Method::Function(oid) => Path::Function(oid),
            Method::Binary => Path::Relabel,
            Method::Text => Path::Text,
        });
    }
    // A vector is an array as a source only.
    if let (Some(from), Some(to)) = (element_type(source), types::element_of(target)) {
        let elements = path(from, to, context)?;
        return Some(match elements {
            Path::Same | Path::Relabel if !is_domain(to) || from == to => Path::Relabel,
            _ => Path::Elements,
        });
    }
    // Through the text form: to a text by assignment, from a text when it is written.
    let assigned = context >= Context::Assignment && types::category(target) == b'S';
    let written = context == Context::Explicit && types::category(source) == b'S';
    (assigned || written).then_some(Path::Text)
}

/// Whether values of `sources` can be given where `targets` are wanted.
pub(super) fn can_coerce(sources: &[u32], targets: &[u32], context: Context) -> bool {
    let mut generic = false;
    for (source, target) in sources.iter().zip(targets) {
        if source == target || *target == ids::ANY || *source == ids::UNKNOWN {
            generic |= is_polymorphic(*target);
            continue;
        }
        if is_polymorphic(*target) {
            generic = true;
            continue;
        }
        if base(*source) == ids::RECORD && is_composite(*target)
            || *target == ids::RECORD && is_composite(*source)
        {
            continue;
        }
        if *target == 2287 && types::element_of(*source).is_some_and(is_composite) {
            continue;
        }
        if path(*source, *target, context).is_none() {
            return false;
        }
    }
    !generic || super::resolve::generic_types(targets, sources).is_some()
}

/// Whether the type is a row's, or a domain over one.
pub(super) fn is_composite(oid: u32) -> bool {
    let oid = base(oid);
    oid == ids::RECORD || matches!(Class::of(oid), Some(Class::Composite))
}

impl Analyzer<'_> {
    /// `expr` as a value of `oid` with `modifier`, if that cast is open in `context`.
    pub(super) fn coerce_to(
        &mut self,
        expr: Expr,
        oid: u32,
        modifier: i32,
        context: Context,
    ) -> Result<Option<Expr>> {
        if !can_coerce(&[expr.oid], &[oid], context) {
            return Ok(None);
        }
        let location = expr.location;
        let coerced = self.coerce(expr, oid, modifier, context)?;
        Ok(Some(fitted(
            coerced,
            modifier,
            context == Context::Explicit,
            location,
        )))
    }

    /// `expr` as a value of `oid`, which [`can_coerce`] allows; modifiers are not fitted.
    pub(super) fn coerce(
        &mut self,
        mut expr: Expr,
        oid: u32,
        modifier: i32,
        context: Context,
    ) -> Result<Expr> {
        let source = expr.oid;
        let location = expr.location;
        if oid == ids::ANYARRAY && is_domain(source) {
            return Ok(self.as_base(expr));
        }
        if source == oid || matches!(oid, ids::ANY) || is_polymorphic(oid) {
            // A literal that nothing else decides is a text to a function of any type.
            return Ok(expr);
        }
        if is_domain(oid) {
            return self.coerce_to_domain(expr, oid, context);
        }
        if is_domain(source) {
            let below = self.as_base(expr);
            return self.coerce(below, oid, modifier, context);
        }
        if source == ids::UNKNOWN {
            match expr.kind {
                ExprKind::Constant(Datum::Null) => {
                    return Ok(Expr::new(ExprKind::Constant(Datum::Null), oid, location));
                }
                ExprKind::Constant(Datum::Text(text)) => {
                    return self.literal(&text, oid, modifier, location);
                }
                ExprKind::Parameter(at) => {
                    self.settle_parameter(at, oid, location)?;
                    return Ok(Expr::new(ExprKind::Parameter(at), oid, location));
                }
                _ => {
                    // A column of unknown type (a sub-select's literal): through its text.
                    return Ok(Expr::new(
                        ExprKind::ThroughText(Box::new(expr)),
                        oid,
                        location,
                    ));
                }
            }
        }
        if is_composite(oid) && is_composite(source) {
            return self.coerce_row(expr, oid, context);
        }
        match path(source, oid, context) {
            None => Err(cannot_cast(source, oid).at(location)),
            Some(Path::Same) => Ok(expr),
            Some(Path::Relabel) => {
                if let ExprKind::Constant(value) = &mut expr.kind {
                    *value = relabelled(std::mem::take(value), oid);
                    expr.oid = oid;
                    expr.modifier = -1;
                    return Ok(expr);
                }
                Ok(Expr::new(ExprKind::Relabel(Box::new(expr)), oid, location))
            }
            Some(Path::Text) => Ok(Expr::new(
                ExprKind::ThroughText(Box::new(expr)),
                oid,
                location,
            )),
            Some(Path::Function(function)) => {
                let Some(function) = functions::by_oid(function) else {
                    return Err(cannot_cast(source, oid).at(location));
                };
                let mut arguments = vec![expr];
                // A cast's function may take the modifier, and whether it is written.
                let fits = function.arguments.len() > 1;
                if fits {
                    arguments.push(Expr::constant(Datum::Int4(modifier), ids::INT4));
                }
                if function.arguments.len() > 2 {
                    let explicit = Datum::Bool(context == Context::Explicit);
                    arguments.push(Expr::constant(explicit, ids::BOOL));
                }
                let call = FunctionCall {
                    function,
                    operator: None,
                    types: arguments.iter().map(|argument| argument.oid).collect(),
                    arguments,
                };
                let mut cast = Expr::new(ExprKind::Call(Box::new(call)), function.result, location);
                // The function's own argument may be a relative of the source.
                if let ExprKind::Call(call) = &mut cast.kind
                    && call.arguments[0].oid != function.arguments[0]
                {
                    let wanted = function.arguments[0];
                    let argument = std::mem::replace(
                        &mut call.arguments[0],
                        Expr::constant(Datum::Null, wanted),
                    );
                    call.arguments[0] =
                        Expr::new(ExprKind::Relabel(Box::new(argument)), wanted, location);
                }
                if cast.oid != oid {
                    cast = Expr::new(ExprKind::Relabel(Box::new(cast)), oid, location);
                }
                Ok(if fits {
                    cast.with_modifier(modifier)
                } else {
                    cast
                })
            }
            Some(Path::Elements) => {
                let from = types::element_of(source).unwrap_or(0);
                let to = types::element_of(oid).unwrap_or(0);
                let element = Expr::new(ExprKind::Element, from, location);
                let cast = self.coerce(element, to, -1, context)?;
                Ok(Expr::new(
                    ExprKind::ArrayCast(Box::new(expr), Box::new(cast)),
                    oid,
                    location,
                ))
            }
        }
    }

    /// A domain's value as one of the type at its bottom.
    pub(super) fn as_base(&self, expr: Expr) -> Expr {
        let oid = base(expr.oid);
        if oid == expr.oid {
            return expr;
        }
        let location = expr.location;
        match expr.kind {
            kind @ ExprKind::Constant(_) => Expr::new(kind, oid, location),
            _ => Expr::new(ExprKind::Relabel(Box::new(expr)), oid, location),
        }
    }

    /// `expr` as a value of a domain, which is asked where it is computed.
    fn coerce_to_domain(&mut self, expr: Expr, oid: u32, context: Context) -> Result<Expr> {
        let location = expr.location;
        if let (ids::UNKNOWN, ExprKind::Parameter(at)) = (expr.oid, &expr.kind) {
            // As one of the type below, which is asked like any other.
            let at = *at;
            self.settle_parameter(at, base(oid), location)?;
            let value = Expr::new(ExprKind::Parameter(at), base(oid), location);
            return self.coerce_to_domain(value, oid, context);
        }
        let (below, modifier) = base_of(oid, -1);
        let value = self.coerce(expr, below, modifier, context)?;
        let value = fitted(value, modifier, context == Context::Explicit, location);
        let modifier = value.modifier;
        let checked = Expr::new(ExprKind::Checked(Box::new(value)), oid, location);
        Ok(checked.with_modifier(modifier))
    }

    fn coerce_row(&mut self, expr: Expr, oid: u32, context: Context) -> Result<Expr> {
        if oid == ids::RECORD {
            let location = expr.location;
            return Ok(Expr::new(ExprKind::Relabel(Box::new(expr)), oid, location));
        }
        let Some(columns) = self.catalog.composite(oid) else {
            return Err(cannot_cast(expr.oid, oid).at(expr.location));
        };
        let location = expr.location;
        let types: Vec<u32> = match &expr.kind {
            ExprKind::Row(parts) => parts.iter().map(|part| part.oid).collect(),
            _ => match self.row_columns(&expr) {
                Some(columns) => columns.iter().map(|column| column.oid).collect(),
                None => return Err(cannot_cast(expr.oid, oid).at(location)),
            },
        };
        if types.len() != columns.len() {
            let detail = match types.len() < columns.len() {
                true => "Input has too few columns.",
                false => "Input has too many columns.",
            };
            return Err(cannot_cast(expr.oid, oid).with_detail(detail).at(location));
        }
        if let ExprKind::Row(parts) = expr.kind {
            let mut cast = Vec::new();
            for (part, column) in parts.into_iter().zip(&columns) {
                let source = part.oid;
                let Some(part) = self.coerce_to(part, column.oid, column.modifier, context)? else {
                    return Err(cannot_cast(source, column.oid).at(location));
                };
                cast.push(part);
            }
            return Ok(Expr::new(ExprKind::Row(cast), oid, location));
        }
        let mut casts = Vec::new();
        for (at, (source, column)) in types.iter().zip(&columns).enumerate() {
            let element = Expr::new(ExprKind::Element, expr.oid, location);
            let field = Expr::new(ExprKind::Field(Box::new(element), at), *source, location);
            let Some(cast) = self.coerce_to(field, column.oid, column.modifier, context)? else {
                return Err(cannot_cast(*source, column.oid).at(location));
            };
            casts.push(cast);
        }
        Ok(Expr::new(
            ExprKind::RowCast(Box::new(expr), casts),
            oid,
            location,
        ))
    }

    /// A literal's text as a constant of the type.
    fn literal(&mut self, text: &str, oid: u32, modifier: i32, location: i32) -> Result<Expr> {
        // An interval's fields decide how a literal is read; others are fitted afterwards.
        let read_with = if oid == ids::INTERVAL { modifier } else { -1 };
        let call = Call::new(self.environment, &[], oid);
        let value = match (Class::of(oid), user::by_oid(oid)) {
            // A row of a table, whose columns the catalog knows.
            (Some(Class::Composite), None) if let Some(columns) = self.catalog.composite(oid) => {
                self.row_literal(&call, text, columns)
            }
            _ => types::input(&call, oid, text, read_with),
        };
        let value = value.map_err(|error| error.at(location))?;
        Ok(Expr::new(ExprKind::Constant(value), oid, location).with_modifier(read_with))
    }

    fn row_literal(&self, call: &Call<'_>, text: &str, columns: Vec<Column>) -> Result<Datum> {
        let types: Vec<(u32, i32)> = columns
            .iter()
            .map(|column| (column.oid, column.modifier))
            .collect();
        let values = types::record::read(call, text, &types)?;
        Ok(Datum::Record(row_of(&columns, values).into()))
    }

    /// A NULL of the type of a table's rows as the row of NULLs, for what fills its columns.
    pub(super) fn null_row(&self, oid: u32) -> Option<Datum> {
        if Class::of(oid) != Some(Class::Composite) || user::by_oid(oid).is_some() {
            return None;
        }
        let columns = self.catalog.composite(oid)?;
        let nulls = vec![Datum::Null; columns.len()];
        Some(Datum::Record(row_of(&columns, nulls).into()))
    }

    fn settle_parameter(&mut self, at: usize, oid: u32, location: i32) -> Result<()> {
        let settled = &mut self.parameters[at];
        match *settled {
            0 | ids::UNKNOWN => *settled = oid,
            before if before == oid => {}
            before => {
                return Err(QueryError::new(
                    "42P08",
                    format!("inconsistent types deduced for parameter ${}", at + 1),
                )
                .with_detail(format!(
                    "{} versus {}",
                    format_type(before, -1),
                    format_type(oid, -1)
                ))
                .at(location));
            }
        }
        Ok(())
    }

    /// `expr` as a truth value, of which clause `construct` names.
    pub(super) fn coerce_to_bool(&mut self, expr: Expr, construct: &str) -> Result<Expr> {
        self.coerce_to_specific(expr, ids::BOOL, construct)
    }

    /// `expr` as `oid`, by assignment; else an error that names the clause.
    pub(super) fn coerce_to_specific(
        &mut self,
        expr: Expr,
        oid: u32,
        construct: &str,
    ) -> Result<Expr> {
        let (source, location) = (expr.oid, expr.location);
        if returns_set(&expr) {
            return Err(QueryError::new(
                "42804",
                format!("argument of {construct} must not return a set"),
            )
            .at(location));
        }
        let coerced = self.coerce_to(expr, oid, -1, Context::Assignment)?;
        coerced.ok_or_else(|| {
            QueryError::new(
                "42804",
                format!(
                    "argument of {construct} must be type {}, not type {}",
                    format_type(oid, -1),
                    format_type(source, -1)
                ),
            )
            .at(location)
        })
    }

    /// `expr` as the common type that was chosen for `construct`.
    pub(super) fn coerce_to_common(
        &mut self,
        expr: Expr,
        oid: u32,
        construct: &str,
    ) -> Result<Expr> {
        let (source, location) = (expr.oid, expr.location);
        if source == oid {
            return Ok(expr);
        }
        if !can_coerce(&[source], &[oid], Context::Implicit) {
            return Err(QueryError::new(
                "42846",
                format!(
                    "{construct} could not convert type {} to {}",
                    format_type(source, -1),
                    format_type(oid, -1)
                ),
            )
            .at(location));
        }
        self.coerce(expr, oid, -1, Context::Implicit)
    }

    /// A literal or parameter that nothing has decided is a text.
    pub(super) fn decide_unknown(&mut self, expr: Expr) -> Result<Expr> {
        match expr.oid {
            ids::UNKNOWN => self.coerce(expr, ids::TEXT, -1, Context::Implicit),
            _ => Ok(expr),
        }
    }
}

/// The row of these values in these columns.
pub(super) fn row_of(columns: &[Column], values: Vec<Datum>) -> Record {
    Record {
        types: columns.iter().map(|column| column.oid).collect(),
        names: Some(columns.iter().map(|column| column.name.clone()).collect()),
        modifiers: Some(columns.iter().map(|column| column.modifier).collect()),
        values,
    }
}

/// Fits to the modifier, unless the expression has it already.
pub(super) fn fitted(expr: Expr, modifier: i32, explicit: bool, location: i32) -> Expr {
    if modifier < 0 && explicit {
        // What is written without a modifier has none.
        return expr.with_modifier(-1);
    }
    if modifier < 0 || expr.modifier == modifier {
        return expr;
    }
    let fits = types::by_oid(types::element_of(expr.oid).unwrap_or(expr.oid));
    let has_fit = fits.is_some_and(|row| row.fit.is_some());
    if !has_fit {
        return expr.with_modifier(modifier);
    }
    let oid = expr.oid;
    Expr::new(ExprKind::Fit(Box::new(expr), explicit), oid, location).with_modifier(modifier)
}

/// Whether an expression gives any number of rows.
pub(super) fn returns_set(expr: &Expr) -> bool {
    expr.any(&mut |expr| match &expr.kind {
        ExprKind::Call(call) => call.function.returns_set(),
        _ => false,
    })
}

/// The common type of several expressions (UNION, CASE, …). `construct` names it in errors.
pub(super) fn common_type(exprs: &[&Expr], construct: &str) -> Result<u32> {
    let Some(first) = exprs.first() else {
        return Ok(ids::TEXT);
    };
    if first.oid != ids::UNKNOWN && exprs.iter().all(|expr| expr.oid == first.oid) {
        return Ok(first.oid);
    }
    let mut chosen = base(first.oid);
    let mut from = *first;
    for expr in &exprs[1..] {
        let next = base(expr.oid);
        if next == ids::UNKNOWN || next == chosen {
            continue;
        }
        if chosen == ids::UNKNOWN {
            (chosen, from) = (next, expr);
            continue;
        }
        let (category, next_category) = (types::category(chosen), types::category(next));
        if category != next_category {
            return Err(QueryError::new(
                "42804",
                format!(
                    "{construct} types {} and {} cannot be matched",
                    format_type(chosen, -1),
                    format_type(next, -1)
                ),
            )
            .at(expr.location));
        }
        if !types::is_preferred(chosen)
            && can_coerce(&[chosen], &[next], Context::Implicit)
            && !can_coerce(&[next], &[chosen], Context::Implicit)
        {
            (chosen, from) = (next, expr);
        }
    }
    let _ = from;
    if chosen == ids::UNKNOWN {
        chosen = ids::TEXT;
    }
    Ok(chosen)
}

/// As [`common_type`] over types alone, `None` where there is none (polymorphic arguments).
pub(super) fn common_of_types(oids: &[u32]) -> Option<u32> {
    let exprs: Vec<Expr> = oids
        .iter()
        .map(|oid| Expr::constant(Datum::Null, *oid))
        .collect();
    let borrowed: Vec<&Expr> = exprs.iter().collect();
    let chosen = common_type(&borrowed, "").ok()?;
    oids.iter()
        .all(|oid| can_coerce(&[*oid], &[chosen], Context::Implicit))
        .then_some(chosen)
}

/// The common modifier, if all have the same type and modifier.
pub(super) fn common_modifier(exprs: &[&Expr], oid: u32) -> i32 {
    match exprs {
        [first, rest @ ..]
            if first.oid == oid
                && rest
                    .iter()
                    .all(|expr| expr.oid == oid && expr.modifier == first.modifier) =>
        {
            first.modifier
        }
        _ => -1,
    }
}

/// 42846.
pub(super) fn cannot_cast(source: u32, target: u32) -> QueryError {
    QueryError::new(
        "42846",
        format!(
            "cannot cast type {} to {}",
            format_type(source, -1),
            format_type(target, -1)
        ),
    )
}
