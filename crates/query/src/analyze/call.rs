//! Calls: functions, aggregates, window functions.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{FuncCall, SortBy};

use super::Analyzer;
use super::resolve::{Choice, Found, function, generic_types, shown_call};
use super::scope::Clause;
use crate::call::Call;
use crate::casts::Context;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions::extension::is_of_extension;
use crate::functions::{Function, POPULATING};
use crate::tree::{Expr, ExprKind, FunctionCall, SortKey};
use crate::types::domain::base;
use crate::types::{self, ids};

/// What a call has beside its arguments.
#[derive(Default)]
pub(super) struct Decoration<'n> {
    pub(super) star: bool,
    pub(super) distinct: bool,
    pub(super) within_group: bool,
    pub(super) variadic: bool,
    pub(super) order: Vec<&'n SortBy>,
}

impl Analyzer<'_> {
    pub(super) fn call(&mut self, call: &FuncCall) -> Result<Expr> {
        let location = call.location;
        let parts: Vec<&str> = call.funcname().iter().filter_map(Node::as_str).collect();
        let name = match parts.as_slice() {
            [name] | ["pg_catalog", name] => *name,
            // Functions of the information schema are known by their names alone.
            ["information_schema", name] if name.starts_with("_pg_") => *name,
            // A dump of PostgreSQL has those of extensions so.
            ["public", name] if is_of_extension(name) => *name,
            [schema, name] => return self.call_of_schema(call, schema, name),
            _ => {
                return Err(QueryError::new(
                    "42601",
                    format!(
                        "improper qualified name (too many dotted names): {}",
                        parts.join(".")
                    ),
                )
                .at(location));
            }
        };
        let decoration = Decoration {
            star: call.agg_star,
            distinct: call.agg_distinct,
            within_group: call.agg_within_group,
            variadic: call.func_variadic,
            order: call.agg_order().iter().collect(),
        };
        // Arguments of a window function may not hold another; what an aggregate holds is checked afterwards.
        let in_window = self.level().in_window;
        if call.over().is_some() {
            self.level().in_window = true;
        }
        let arguments = self.arguments(call);
        self.level().in_window = in_window;
        let (mut arguments, names) = arguments?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        // What an ordered set is over are arguments, too.
        let mut order = Vec::new();
        for sort in &decoration.order {
            let mut expr = self.expr(sort.node())?;
            if decoration.within_group {
                let (descending, nulls_first) = self.sort_options(sort)?;
                arguments.push(expr.clone());
                order.push(SortKey {
                    expr,
                    descending,
                    nulls_first,
                });
            } else {
                let (descending, nulls_first) = self.direction(sort, &mut expr)?;
                order.push(SortKey {
                    expr,
                    descending,
                    nulls_first,
                });
            }
        }
        let filter = match call.agg_filter() {
            Node::None => None,
            node => {
                let clause = std::mem::replace(&mut self.level().clause, Clause::Filter);
                let expr = self.expr(node);
                self.level().clause = clause;
                Some(self.coerce_to_bool(expr?, "FILTER")?)
            }
        };
        if let Some(expr) = self.users(&parts, &arguments, &names, &decoration, location)? {
            return Ok(expr);
        }
        let last = arguments.last().map(|last| (last.oid, last.location));
        let resolved = self.resolve(name, arguments, &names, &decoration, location)?;
        let (function, arguments, result) = match resolved {
            Resolved::Expr(expr) => return Ok(expr),
            Resolved::Call(function, arguments, result) => (function, arguments, result),
        };
        let spread = decoration.variadic && function.variadic == ids::ANY;
        if spread
            && let Some(last) = last
            && types::element_of(base(last.0)).is_none()
        {
            let message = "VARIADIC argument must be an array";
            return Err(QueryError::new("42804", message).at(last.1));
        }
        if let Some(over) = call.over() {
            return self.window_call(
                function,
                arguments,
                result,
                filter,
                over,
                &decoration,
                location,
            );
        }
        if function.is_window() {
            return Err(QueryError::new(
                "42809",
                format!("window function {name} requires an OVER clause"),
            )
            .at(location));
        }
        if function.is_aggregate() {
            return self.aggregate(
                function,
                arguments,
                result,
                order,
                filter,
                &decoration,
                location,
            );
        }
        let refused = match () {
            () if decoration.star => Some(format!(
                "{name}(*) specified, but {name} is not an aggregate function"
            )),
            () if decoration.distinct => Some(format!(
                "DISTINCT specified, but {name} is not an aggregate function"
            )),
            () if decoration.within_group => Some(format!(
                "WITHIN GROUP specified, but {name} is not an aggregate function"
            )),
            () if !decoration.order.is_empty() => Some(format!(
                "ORDER BY specified, but {name} is not an aggregate function"
            )),
            () if filter.is_some() => Some(format!(
                "FILTER specified, but {name} is not an aggregate function"
            )),
            () => None,
        };
        if let Some(message) = refused {
            return Err(QueryError::new("42809", message).at(location));
        }
        let mut expr = self.plain_call(function, arguments, result, location)?;
        // An array given as all further arguments is told by its type in the call.
        if let ExprKind::Call(call) = &mut expr.kind
            && spread
            && let Some(last) = call.types.last_mut()
        {
            *last = ids::ANYARRAY;
        }
        Ok(expr)
    }

    /// A call of a function of a schema that is not PostgreSQL's.
    fn call_of_schema(&mut self, call: &FuncCall, schema: &str, name: &str) -> Result<Expr> {
        let (arguments, names) = self.arguments(call)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let functions = self.catalog.functions(Some(schema), name);
        let location = call.location;
        let given = (&names[..], call.func_variadic);
        let called = self.call_sql(&functions, &arguments, given, false, location)?;
        called.ok_or_else(|| {
            let given: Vec<u32> = arguments.iter().map(|argument| argument.oid).collect();
            let shown = shown_call(&format!("{schema}.{name}"), &given, &names);
            undefined_function(&shown).at(location)
        })
    }

    /// The call of a user's function, if it is one: PostgreSQL's own go before, unless the
    /// arguments are of the very types that the user's takes.
    fn users(
        &mut self,
        parts: &[&str],
        arguments: &[Expr],
        names: &[&str],
        decoration: &Decoration<'_>,
        location: i32,
    ) -> Result<Option<Expr>> {
        let [name] = parts else {
            return Ok(None);
        };
        let is_plain = !decoration.star
            && !decoration.distinct
            && !decoration.within_group
            && decoration.order.is_empty();
        let functions = match is_plain {
            true => self.catalog.functions(None, name),
            false => Vec::new(),
        };
        if functions.is_empty() {
            return Ok(None);
        }
        let given: Vec<u32> = arguments.iter().map(|argument| argument.oid).collect();
        let own = function(name, &given, names, decoration.variadic, false);
        let exactly = !matches!(own, Found::None { .. });
        let said = (names, decoration.variadic);
        self.call_sql(&functions, arguments, said, exactly, location)
    }

    /// A function by its name, with arguments that are analysed.
    pub(super) fn call_named(
        &mut self,
        name: &str,
        arguments: Vec<Expr>,
        location: i32,
    ) -> Result<Expr> {
        match self.resolve(name, arguments, &[], &Decoration::default(), location)? {
            Resolved::Expr(expr) => Ok(expr),
            Resolved::Call(function, arguments, result) => {
                self.plain_call(function, arguments, result, location)
            }
        }
    }

    fn plain_call(
        &mut self,
        function: &'static Function,
        arguments: Vec<Expr>,
        result: u32,
        location: i32,
    ) -> Result<Expr> {
        if function.returns_set() {
            self.check_set(location)?;
        }
        let call = FunctionCall {
            function,
            operator: None,
            types: arguments.iter().map(|argument| argument.oid).collect(),
            arguments,
        };
        Ok(Expr::new(ExprKind::Call(Box::new(call)), result, location))
    }

    /// Whether a function that gives rows may stand here.
    fn check_set(&mut self, location: i32) -> Result<()> {
        let level = self.level();
        if let Some(construct) = level.no_sets {
            return Err(QueryError::unsupported(
                format!("set-returning functions are not allowed in {construct}"),
                "You might be able to move the set-returning function into a LATERAL FROM item.",
            )
            .at(location));
        }
        match level.clause {
            Clause::Targets
            | Clause::Order
            | Clause::Group
            | Clause::DistinctOn
            | Clause::ValuesOfOneRow
            | Clause::FromFunction => Ok(()),
            clause => {
                let place = match clause {
                    Clause::Join => "JOIN conditions",
                    Clause::MergeWhen => "MERGE WHEN conditions",
                    Clause::WindowPartition | Clause::WindowOrder | Clause::WindowFrame => {
                        "window definitions"
                    }
                    other => other.name(),
                };
                Err(QueryError::unsupported(
                    format!("set-returning functions are not allowed in {place}"),
                    "Call the function in a subquery or in FROM.",
                )
                .at(location))
            }
        }
    }

    fn arguments(&mut self, call: &FuncCall) -> Result<(Vec<Expr>, Vec<String>)> {
        let mut arguments = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for node in call.args().iter() {
            if let Node::NamedArgExpr(named) = node {
                let name = named.name().unwrap_or_default();
                if names.iter().any(|other| other == name) {
                    return Err(QueryError::new(
                        "42601",
                        format!("argument name \"{name}\" used more than once"),
                    )
                    .at(named.location));
                }
                arguments.push(self.expr(named.arg())?);
                names.push(name.to_owned());
                continue;
            }
            if !names.is_empty() {
                return Err(QueryError::new(
                    "42601",
                    "positional argument cannot follow named argument",
                )
                .at(call.location));
            }
            arguments.push(self.expr(node)?);
        }
        Ok((arguments, names))
    }

    fn resolve(
        &mut self,
        name: &str,
        mut arguments: Vec<Expr>,
        names: &[&str],
        decoration: &Decoration<'_>,
        location: i32,
    ) -> Result<Resolved> {
        // `f(row)` may be the column `f` of the row.
        if let [only] = arguments.as_slice()
            && super::coerce::is_composite(only.oid)
            && let Some(columns) = self.row_columns(only)
            && let Some(at) = columns.iter().position(|column| *column.name == *name)
        {
            let only = arguments.remove(0);
            let field = Expr::new(
                ExprKind::Field(Box::new(only), at),
                columns[at].oid,
                location,
            )
            .with_modifier(columns[at].modifier);
            return Ok(Resolved::Expr(field));
        }
        let given: Vec<u32> = arguments.iter().map(|argument| argument.oid).collect();
        let is_literal = matches!(
            arguments.as_slice(),
            [Expr {
                kind: ExprKind::Constant(_),
                ..
            }]
        );
        let choice = match function(name, &given, names, decoration.variadic, is_literal) {
            Found::Function(choice) => choice,
            Found::Cast(oid) => {
                let only = arguments.remove(0);
                return self.cast(only, oid, -1, location).map(Resolved::Expr);
            }
            Found::None { ambiguous, exists } => {
                let shown = shown_call(name, &given, names);
                if ambiguous {
                    return Err(QueryError::new("42725", format!("function {shown} is not unique"))
                        .with_hint("Could not choose a best candidate function. You might need to add explicit type casts.")
                        .at(location));
                }
                let mut error = undefined_function(&shown);
                if decoration.star && exists {
                    error = QueryError::new("42883", format!("function {name}() does not exist"))
                        .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.");
                }
                return Err(error.at(location));
            }
        };
        self.give(choice, arguments, location)
    }

    /// The arguments as the function takes them: cast, gathered, with defaults.
    fn give(&mut self, choice: Choice, arguments: Vec<Expr>, location: i32) -> Result<Resolved> {
        let Choice {
            function,
            declared,
            gathered,
            places,
        } = choice;
        let given: Vec<u32> = arguments.iter().map(|argument| argument.oid).collect();
        let Some(generic) = generic_types(&declared, &given) else {
            return Err(QueryError::internal("a function's types do not agree").at(location));
        };
        let mut cast = Vec::with_capacity(arguments.len());
        for (argument, declared) in arguments.into_iter().zip(&declared) {
            let place = argument.location;
            let wanted = generic.actual(*declared, argument.oid)?;
            let argument = match *declared {
                // A literal given to a function of any type is a text.
                ids::ANY => self.decide_any(argument, function)?,
                _ => self
                    .coerce(argument, wanted, -1, Context::Implicit)
                    .map_err(|error| error.at(place))?,
            };
            cast.push(argument);
        }
        let result = generic.result(function.result)?;
        if function.variadic == ids::ANY {
            return Ok(Resolved::Call(function, cast, result));
        }
        if gathered > 0 {
            let rest = cast.split_off(cast.len() - gathered);
            let element = rest.first().map_or(function.variadic, |expr| expr.oid);
            let array = Expr::new(
                ExprKind::Array(rest, false),
                types::array_of(element),
                location,
            );
            cast.push(array);
            return Ok(Resolved::Call(function, cast, result));
        }
        // In the function's order, with defaults where nothing was given.
        let mut given: Vec<Option<Expr>> = cast.into_iter().map(Some).collect();
        let first_default = function.arguments.len() - function.optional;
        let mut ordered = Vec::with_capacity(places.len());
        for (at, place) in places.iter().enumerate() {
            let argument = match place {
                Some(place) => given.get_mut(*place).and_then(Option::take),
                None => None,
            };
            let argument = match argument {
                Some(argument) => argument,
                None => {
                    let oid = function.arguments[at];
                    let text = at
                        .checked_sub(first_default)
                        .and_then(|at| function.defaults.get(at).copied().flatten());
                    let value = match text {
                        None => Datum::Null,
                        Some(text) => {
                            let call = Call::new(self.environment, &[], oid);
                            types::input(&call, oid, text, -1)?
                        }
                    };
                    Expr::constant(value, oid)
                }
            };
            ordered.push(argument);
        }
        if POPULATING.iter().any(|(_, fills)| *fills == function.oid)
            && let Some(base) = ordered.first_mut()
            && matches!(base.kind, ExprKind::Constant(Datum::Null))
            && let Some(nulls) = self.null_row(base.oid)
        {
            base.kind = ExprKind::Constant(nulls);
        }
        Ok(Resolved::Call(function, ordered, result))
    }

    fn decide_any(&mut self, argument: Expr, function: &Function) -> Result<Expr> {
        // `pg_typeof('x')` says unknown, as PostgreSQL's.
        match function.name {
            "pg_typeof" if matches!(argument.kind, ExprKind::Constant(_)) => Ok(argument),
            _ => self.decide_unknown(argument),
        }
    }

    fn sort_options(&self, sort: &SortBy) -> Result<(bool, bool)> {
        use pg_raw_parse::raw::{SortByDir, SortByNulls};
        let descending = sort.sortby_dir == SortByDir::SORTBY_DESC;
        let nulls_first = match sort.sortby_nulls {
            SortByNulls::SORTBY_NULLS_FIRST => true,
            SortByNulls::SORTBY_NULLS_LAST => false,
            _ => descending,
        };
        Ok((descending, nulls_first))
    }
}

/// What a name and arguments are.
enum Resolved {
    Expr(Expr),
    Call(&'static Function, Vec<Expr>, u32),
}

fn undefined_function(shown: &str) -> QueryError {
    QueryError::new("42883", format!("function {shown} does not exist"))
        .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}
