//! CREATE FUNCTION and the functions that DROP FUNCTION names, as their statements say.

use std::sync::Arc;

use pg_raw_parse::nodes::{
    CreateFunctionStmt, DropBehavior, FunctionParameter, ObjectType, ObjectWithArgs, TypeName,
};
use pg_raw_parse::raw::FunctionParameterMode as Mode;
use pg_raw_parse::{Node, deparse};

use super::call_before::CallsBefore;
use super::coerce::is_polymorphic;
use super::function_attributes::Attributes;
use super::sql_function::Bodies;
use super::{Analyzer, Argument, Catalog, Language, SqlFunction};
use crate::call::Plain;
use crate::error::{QueryError, Result};
use crate::functions::Volatility;
use crate::parse::parse;
use crate::tree::Column;
use crate::types::domain::base;
use crate::types::{element_of, format_type, ids};

/// CREATE FUNCTION.
#[derive(Clone, Debug)]
pub struct CreateFunction {
    /// OR REPLACE
    pub replace: bool,
    /// The name, with its schema if that is written.
    pub name: Vec<String>,
    /// What is made.
    pub function: SqlFunction,
    /// What it depends on.
    pub volatility: Volatility,
    /// It is a procedure: for each of its parameters, in order, `i`, `o` or `b` for both ways.
    pub procedure: Option<String>,
}

/// DROP FUNCTION.
#[derive(Clone, Debug)]
pub struct DropFunction {
    /// Which kind they are: `f`, `p`, or `r` for either.
    pub kind: char,
    /// A missing one is left alone.
    pub if_exists: bool,
    /// CASCADE
    pub cascade: bool,
    /// The functions: their names, and their arguments' types where they are written.
    pub functions: Vec<NamedFunction>,
}

/// A function by its name, and its arguments' types where they are written.
pub type NamedFunction = (Vec<String>, Option<Vec<u32>>);

/// What a CREATE FUNCTION makes.
///
/// # Errors
/// 42601, 42704 and others of its types and options; 0A000 for other languages than SQL, and for
/// what is not done.
pub fn create_function(text: &str, catalog: &dyn Catalog) -> Result<CreateFunction> {
    let parsed = parse(text)?;
    let Some(Node::CreateFunctionStmt(create)) = parsed.statements().stmts().next() else {
        return Err(QueryError::internal("no CREATE FUNCTION"));
    };
    let options = Options::of(create, text)?;
    if create.is_procedure {
        may_be_procedure(&options.attributes)?;
    }
    let mut modes = String::new();
    let environment = Plain::default();
    let analyzer = analyzer(catalog, &environment);
    let mut arguments = Vec::new();
    let mut columns = Vec::new();
    let (mut input_names, mut output_names) = (Vec::new(), Vec::new());
    let (mut returns_set, mut variadic) = (false, false);
    for parameter in create.parameters().iter() {
        let mode = parameter.mode;
        let one = argument(parameter, text, &analyzer)?;
        let is_out = matches!(mode, Mode::FUNC_PARAM_TABLE | Mode::FUNC_PARAM_OUT);
        if variadic && !is_out {
            let message = "VARIADIC parameter must be the last input parameter";
            return Err(QueryError::new("42P13", message));
        }
        if mode == Mode::FUNC_PARAM_VARIADIC {
            variadic = true;
            may_be_variadic(one.oid)?;
            if create.is_procedure {
                return Err(QueryError::unsupported(
                    "VARIADIC arguments of procedures are not supported",
                    "Take an array.",
                ));
            }
        }
        let is_table = mode == Mode::FUNC_PARAM_TABLE;
        let is_input = !is_table && mode != Mode::FUNC_PARAM_OUT;
        let is_output = !is_input || mode == Mode::FUNC_PARAM_INOUT;
        if one.default.is_some() && !is_input {
            let message = "only input parameters can have default values";
            return Err(QueryError::new("42P13", message));
        }
        if let Some(name) = &one.name {
            // An input and an output may have one name.
            let taken = |names: &[Arc<str>], asked: bool| asked && names.contains(name);
            if taken(&input_names, is_input) || taken(&output_names, is_output) {
                let message = format!("parameter name \"{name}\" used more than once");
                return Err(QueryError::new("42P13", message));
            }
            input_names.extend(is_input.then(|| Arc::clone(name)));
            output_names.extend(is_output.then(|| Arc::clone(name)));
        }
        returns_set |= is_table;
        modes.push(match (is_input, is_output) {
            (true, true) => 'b',
            (false, _) => 'o',
            _ => 'i',
        });
        let has_defaults = arguments.iter().any(|of: &Argument| of.default.is_some());
        if create.is_procedure && !is_input && has_defaults {
            let message = "procedure OUT parameters cannot appear after one with a default value";
            return Err(QueryError::new("42P13", message));
        }
        if is_output {
            let number = columns.len() + 1;
            columns.push(Column {
                name: one
                    .name
                    .clone()
                    .unwrap_or_else(|| format!("column{number}").into()),
                oid: one.oid,
                modifier: -1,
                origin: None,
            });
        }
        if is_input {
            if one.default.is_none() && arguments.iter().any(|of: &Argument| of.default.is_some()) {
                let message =
                    "input parameters after one with a default value must also have defaults";
                return Err(QueryError::new("42P13", message));
            }
            arguments.push(one);
        }
    }
    let is_plpgsql = options.language == Language::PlPgSql;
    if create.is_procedure && !is_plpgsql && !columns.is_empty() {
        return Err(QueryError::unsupported(
            "procedures of SQL with OUT arguments are not supported",
            "Write it in PL/pgSQL.",
        ));
    }
    let result = match create.return_type() {
        Some(name) if is_trigger(name) => {
            may_be_trigger(name, is_plpgsql, arguments.is_empty() && columns.is_empty())?;
            ids::TRIGGER
        }
        Some(name) => {
            returns_set |= name.setof;
            analyzer.type_of(name)?.0
        }
        None => match columns.as_slice() {
            [] if create.is_procedure => ids::VOID,
            [] => {
                return Err(QueryError::new(
                    "42P13",
                    "function result type must be specified",
                ));
            }
            [one] => one.oid,
            _ => ids::RECORD,
        },
    };
    let inputs: Vec<u32> = arguments.iter().map(|of| of.oid).collect();
    let outputs = columns.iter().map(|column: &Column| column.oid);
    for output in outputs.chain([result]) {
        determined(output, &inputs)?;
    }
    let mut out = None;
    if columns.len() == 1 && !create.is_procedure {
        out = columns.pop().map(|column| column.name);
    } else if !columns.is_empty() && result != ids::RECORD && !create.is_procedure {
        // RETURNS TABLE of several columns says the first one's type only.
        let all_table = create.return_type().is_some_and(|name| name.setof);
        if !all_table {
            let message = "function result type must be record because of OUT parameters";
            return Err(QueryError::new("42P13", message));
        }
    }
    let result = match columns.is_empty() {
        true => result,
        false => ids::RECORD,
    };
    let attributes = options.attributes;
    let volatility = attributes.volatility.unwrap_or(Volatility::Volatile);
    let definer = attributes.definer.unwrap_or(false);
    let settings = attributes.of_settings(Vec::new());
    let language = match is_plpgsql {
        true => Language::PlPgSql,
        false => Language::of_sql(&options.body, result, !columns.is_empty())
            .around(definer || !settings.is_empty()),
    };
    let mut named = inputs.iter().chain([&result]);
    if language != Language::Sql && named.any(|oid| is_polymorphic(*oid)) {
        let what = match is_plpgsql {
            true => "functions of PL/pgSQL",
            false => "functions of several statements, or with settings or rights of their own,",
        };
        return Err(QueryError::unsupported(
            format!("{what} with polymorphic types are not supported"),
            "Name the types.",
        ));
    }
    let name = names(create.funcname().iter());
    let last = name.last().cloned().unwrap_or_default();
    Ok(CreateFunction {
        replace: create.replace,
        name,
        volatility,
        procedure: create.is_procedure.then_some(modes),
        function: SqlFunction {
            oid: 0,
            name: Arc::from(last),
            arguments,
            result,
            returns_set,
            columns,
            strict: attributes.strict.unwrap_or(false),
            variadic,
            body: Arc::from(options.body),
            language,
            out,
            reads_only: volatility != Volatility::Volatile,
            definer,
            settings: settings.into(),
        },
    })
}

/// Whether arguments may be gathered in one of this type.
///
/// # Errors
/// 42P13 for what is no array; 0A000 for arguments of any types.
fn may_be_variadic(oid: u32) -> Result<()> {
    let is_array = oid == ids::ANYARRAY || element_of(base(oid)).is_some();
    match (is_array, oid) {
        (true, _) => Ok(()),
        (_, ids::ANY | ids::ANYCOMPATIBLEARRAY) => Err(QueryError::unsupported(
            "VARIADIC arguments of such a type are not supported",
            "Declare the argument as anyarray, or as an array of one type.",
        )),
        _ => Err(QueryError::new(
            "42P13",
            "VARIADIC parameter must be an array",
        )),
    }
}

/// Whether a function gives what a trigger takes.
fn is_trigger(name: &TypeName) -> bool {
    let mut parts = name.names().iter().filter_map(|part| part.sval());
    parts.any(|part| matches!(part, "trigger" | "event_trigger"))
}

/// Whether these may be the options of a procedure.
///
/// # Errors
/// 42P13 for what only functions have.
pub(super) fn may_be_procedure(attributes: &Attributes) -> Result<()> {
    match attributes.is_functions {
        false => Ok(()),
        true => Err(QueryError::new(
            "42P13",
            "invalid attribute in procedure definition",
        )),
    }
}

/// Whether a function may give what a trigger takes.
///
/// # Errors
/// 42P13 for one with arguments, and for one of SQL; 0A000 for triggers of events.
fn may_be_trigger(name: &TypeName, is_plpgsql: bool, has_no_arguments: bool) -> Result<()> {
    let mut parts = name.names().iter().filter_map(|part| part.sval());
    if parts.any(|part| part == "event_trigger") {
        return Err(QueryError::unsupported(
            "event triggers are not supported",
            "Grant the right to change definitions to fewer roles.",
        ));
    }
    if !is_plpgsql {
        let message = "SQL functions cannot return type trigger";
        return Err(QueryError::new("42P13", message));
    }
    match has_no_arguments {
        true => Ok(()),
        false => Err(QueryError::new(
            "42P13",
            "trigger functions cannot have declared arguments",
        )
        .with_hint(
            "The arguments of the trigger can be accessed through TG_NARGS and TG_ARGV instead.",
        )),
    }
}

/// Whether the inputs say what a polymorphic result is.
///
/// # Errors
/// 42P13 where they do not.
fn determined(result: u32, inputs: &[u32]) -> Result<()> {
    const RANGES: &[u32] = &[ids::ANYRANGE, ids::ANYMULTIRANGE];
    const SIMPLE: &[u32] = &[
        ids::ANYELEMENT,
        ids::ANYARRAY,
        ids::ANYNONARRAY,
        ids::ANYENUM,
        ids::ANYRANGE,
        ids::ANYMULTIRANGE,
    ];
    const COMPATIBLE: &[u32] = &[
        ids::ANYCOMPATIBLE,
        ids::ANYCOMPATIBLEARRAY,
        ids::ANYCOMPATIBLENONARRAY,
    ];
    let (by, shown) = match result {
        oid if RANGES.contains(&oid) => (RANGES, "anyrange or anymultirange"),
        oid if SIMPLE.contains(&oid) => (
            SIMPLE,
            "anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange",
        ),
        oid if COMPATIBLE.contains(&oid) => (
            COMPATIBLE,
            "anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or \
             anycompatiblemultirange",
        ),
        _ => return Ok(()),
    };
    if inputs.iter().any(|oid| by.contains(oid)) {
        return Ok(());
    }
    let result = format_type(result, -1);
    let detail = format!("A result of type {result} requires at least one input of type {shown}.");
    Err(QueryError::new("42P13", "cannot determine result data type").with_detail(detail))
}

/// The functions that a DROP FUNCTION names.
///
/// # Errors
/// As [`create_function`].
pub fn drop_function(text: &str, catalog: &dyn Catalog) -> Result<DropFunction> {
    let parsed = parse(text)?;
    let Some(Node::DropStmt(drop)) = parsed.statements().stmts().next() else {
        return Err(QueryError::internal("no DROP FUNCTION"));
    };
    let environment = Plain::default();
    let analyzer = analyzer(catalog, &environment);
    let mut functions = Vec::new();
    for object in drop.objects().iter() {
        let Node::ObjectWithArgs(object) = object else {
            return Err(QueryError::internal("DROP FUNCTION of no function"));
        };
        functions.push((names(object.objname().iter()), types_of(object, &analyzer)?));
    }
    Ok(DropFunction {
        kind: match drop.remove_type {
            ObjectType::OBJECT_PROCEDURE => 'p',
            ObjectType::OBJECT_ROUTINE => 'r',
            _ => 'f',
        },
        if_exists: drop.missing_ok,
        cascade: drop.behavior == DropBehavior::DROP_CASCADE,
        functions,
    })
}

pub(super) fn types_of(
    object: &ObjectWithArgs,
    analyzer: &Analyzer<'_>,
) -> Result<Option<Vec<u32>>> {
    if object.args_unspecified {
        return Ok(None);
    }
    let mut types = Vec::new();
    for node in object.objargs().iter() {
        if let Node::TypeName(name) = node {
            types.push(analyzer.type_of(name)?.0);
        }
    }
    Ok(Some(types))
}

pub(super) fn analyzer<'a>(catalog: &'a dyn Catalog, environment: &'a Plain) -> Analyzer<'a> {
    Analyzer {
        catalog,
        environment,
        parameters: Vec::new(),
        levels: Vec::new(),
        takes_changes: false,
        named: None,
        variables: None,
        calls: CallsBefore::default(),
        bodies: Bodies::default(),
        given: None,
        given_name: None,
        rows_given: Vec::new(),
    }
}

pub(super) fn names<'n>(nodes: impl Iterator<Item = Node<'n>>) -> Vec<String> {
    nodes.filter_map(Node::as_str).map(str::to_owned).collect()
}

fn argument(
    parameter: &FunctionParameter,
    text: &str,
    analyzer: &Analyzer<'_>,
) -> Result<Argument> {
    let Some(name) = parameter.arg_type() else {
        return Err(QueryError::internal("an argument without a type"));
    };
    if name.setof {
        return Err(QueryError::new(
            "42P13",
            "functions cannot accept set arguments",
        ));
    }
    let default = match parameter.defexpr() {
        Node::None => None,
        _ => {
            let place = usize::try_from(parameter.location).unwrap_or(0);
            let rest = text.get(place..).unwrap_or_default();
            let default = behind(rest, |piece| {
                piece == "=" || piece.eq_ignore_ascii_case("default")
            });
            let default = default.map(|rest| before(rest, &[",", ")"]));
            Some(default.ok_or_else(|| QueryError::internal("a default without its text"))?)
        }
    };
    Ok(Argument {
        name: parameter.name().map(Arc::from),
        oid: analyzer.type_of(name)?.0,
        default: default.map(Arc::from),
    })
}

/// What of a text follows the first piece that is so and in no parentheses.
fn behind(text: &str, is_it: impl Fn(&str) -> bool) -> Option<&str> {
    let mut pieces = Pieces { text, at: 0 };
    let mut depth = 0_u32;
    while let Some(piece) = pieces.next() {
        match piece {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_it(piece) => return text.get(pieces.at..),
            _ => {}
        }
    }
    None
}

/// What of a text comes before the first of these that is in no parentheses of its own.
fn before<'t>(text: &'t str, ends: &[&str]) -> &'t str {
    let mut pieces = Pieces { text, at: 0 };
    let mut depth = 0_u32;
    loop {
        let start = pieces.at;
        match pieces.next() {
            None => return text.trim(),
            Some(piece) if depth == 0 && ends.contains(&piece) => {
                return text.get(..start).unwrap_or_default().trim();
            }
            Some("(" | "[") => depth += 1,
            Some(")" | "]") => depth = depth.saturating_sub(1),
            Some(_) => {}
        }
    }
}

/// The pieces of a text that PostgreSQL's grammar has read: words, texts in quotes, comments and
/// blanks, single signs.
struct Pieces<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.text.get(self.at..)?;
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let until = |end: &str, from: usize| {
            let found = rest.get(from..).and_then(|inner| inner.find(end));
            found.map_or(rest.len(), |at| from + at + end.len())
        };
        let length = match first {
            '\'' | '"' => {
                let before = self.text.get(..self.at).unwrap_or_default();
                let escapes = first == '\'' && before.ends_with(['e', 'E']);
                quoted(rest, first, escapes)
            }
            '$' => match rest[1..].find('$') {
                Some(end) if rest[1..=end].chars().all(is_word) => until(&rest[..end + 2], end + 2),
                _ => 1,
            },
            '-' if rest.starts_with("--") => until("\n", 2),
            '/' if rest.starts_with("/*") => until("*/", 2),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        self.at += length;
        rest.get(..length)
    }
}

/// How long a text in quotes is at the beginning of a text.
fn quoted(text: &str, quote: char, escapes: bool) -> usize {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if escapes && c == '\\' {
            characters.next();
        } else if c == quote {
            // Twice, it is one in the text: the second begins another piece.
            return at + quote.len_utf8();
        }
    }
    text.len()
}

/// What stands behind the arguments and the result.
struct Options {
    attributes: Attributes,
    body: String,
    language: Language,
}

impl Options {
    fn of(create: &CreateFunctionStmt, text: &str) -> Result<Self> {
        let mut language = None;
        let mut body = None;
        let mut attributes = Attributes::default();
        for option in create.options().iter() {
            match option.defname().unwrap_or_default() {
                "as" => {
                    let parts = option.arg().as_node_list();
                    let mut parts = parts.into_iter().flat_map(|list| list.iter());
                    body = parts.next().and_then(Node::as_str).map(str::to_owned);
                }
                "language" => language = option.arg().as_str().map(str::to_owned),
                _ => attributes.take(option)?,
            }
        }
        let of_body = match create.sql_body() {
            Node::None => None,
            Node::ReturnStmt(_) => {
                let expr = behind(text, |piece| piece.eq_ignore_ascii_case("return"));
                let expr = expr.map(|rest| before(rest, &[";"]));
                expr.map(|expr| format!("SELECT {expr}"))
            }
            block => Some(block_text(block)?),
        };
        let mut is_plpgsql = false;
        match language.as_deref().or(of_body.as_ref().map(|_| "sql")) {
            Some("sql") => {}
            Some("plpgsql") => is_plpgsql = true,
            Some(other) => {
                return Err(QueryError::unsupported(
                    format!("functions of language {other} are not supported"),
                    "Write it in SQL or in PL/pgSQL.",
                ));
            }
            None => return Err(QueryError::new("42P13", "no language specified")),
        }
        let body = body.or(of_body);
        let body = body.ok_or_else(|| QueryError::new("42P13", "no function body specified"))?;
        Ok(Self {
            attributes,
            body,
            language: match is_plpgsql {
                true => Language::PlPgSql,
                false => Language::Sql,
            },
        })
    }
}

/// The statements of BEGIN ATOMIC … END.
fn block_text(block: Node<'_>) -> Result<String> {
    let mut statements = Vec::new();
    gather(block, &mut statements);
    let failed = |_| QueryError::internal("a statement that cannot be written");
    let texts = statements.iter().map(|one| deparse(*one).map_err(failed));
    let texts = texts.map(|text| Ok(text?.as_str().to_owned()));
    Ok(texts.collect::<Result<Vec<String>>>()?.join(";\n"))
}

fn gather<'n>(node: Node<'n>, statements: &mut Vec<Node<'n>>) {
    match node.as_node_list() {
        Some(list) => list.iter().for_each(|inner| gather(inner, statements)),
        None => statements.push(node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::Stored;

    struct Nothing;

    impl Catalog for Nothing {
        fn relation(&self, _: Option<&str>, _: &str) -> Result<Option<Stored>> {
            Ok(None)
        }
    }

    #[test]
    fn a_function_is_what_its_statement_says() {
        let made = create_function(
            "create or replace function s.f(a int, b text default 'x,)'||$$y$$) returns setof text \
             language sql stable strict as 'select b from t'",
            &Nothing,
        )
        .unwrap();
        assert!(made.replace);
        assert_eq!(made.name, ["s", "f"]);
        assert_eq!(made.volatility, Volatility::Stable);
        let function = made.function;
        assert!(function.strict && function.returns_set);
        assert_eq!(
            (function.result, &*function.body),
            (ids::TEXT, "select b from t")
        );
        assert_eq!(function.arguments.len(), 2);
        let default = function.arguments[1].default.as_deref();
        assert_eq!(default, Some("'x,)'||$$y$$"));
    }

    #[test]
    fn bodies_have_three_forms() {
        let body = |text: &str| create_function(text, &Nothing).map(|made| made.function.body);
        let returned = body("create function f(a int) returns int return a + 1 ; ").unwrap();
        assert_eq!(&*returned, "SELECT a + 1");
        let block = "create function f() returns int begin atomic select 1; end";
        assert_eq!(&*body(block).unwrap(), "SELECT 1");
        let error = body("create function f() returns int language plperl as 'begin end'");
        assert_eq!(error.unwrap_err().sqlstate, "0A000");
        // What is no single query is run statement by statement.
        let language =
            |text: &str| create_function(text, &Nothing).map(|made| made.function.language);
        for (returns, text, expected) in [
            ("int", "select 1", Language::Sql),
            ("void", "select 1", Language::Statements),
            ("int", "select 1; select 2;", Language::Statements),
            ("int", "delete from t returning 1", Language::Statements),
        ] {
            let create = format!("create function f() returns {returns} language sql as '{text}'");
            assert_eq!(language(&create).unwrap(), expected, "{create}");
        }
        let block = "create function f() returns int begin atomic delete from t; select 1; end";
        assert_eq!(&*body(block).unwrap(), "DELETE FROM t;\nSELECT 1");
    }

    #[test]
    fn functions_are_dropped_by_name_and_types() {
        let drop = drop_function("drop function if exists f(int, text[]), s.g", &Nothing).unwrap();
        assert!(drop.if_exists);
        assert_eq!(
            drop.functions,
            [
                (vec!["f".to_owned()], Some(vec![ids::INT4, 1009])),
                (vec!["s".to_owned(), "g".to_owned()], None)
            ]
        );
    }
}
