//! What CREATE FUNCTION and ALTER FUNCTION say of a function beside its arguments and its body.

use pg_raw_parse::nodes::{AlterFunctionStmt, DefElem, ObjectType, VariableSetKind};
use pg_raw_parse::{ConstValue, Node};

use super::create_function::{NamedFunction, analyzer, may_be_procedure, names, types_of};
use super::{Catalog, Language};
use crate::call::Plain;
use crate::error::{QueryError, Result};
use crate::functions::Volatility;
use crate::parse::parse;

/// Settings with their values.
pub type FunctionSettings = Vec<(String, Vec<String>)>;

/// What is said; what is not stays as it is.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// IMMUTABLE, STABLE, VOLATILE
    pub volatility: Option<Volatility>,
    /// STRICT, CALLED ON NULL INPUT
    pub strict: Option<bool>,
    /// SECURITY DEFINER, SECURITY INVOKER
    pub definer: Option<bool>,
    /// SET, and RESET without values.
    settings: Vec<(String, Option<Vec<String>>)>,
    /// RESET ALL
    resets_all: bool,
    /// Something that only a function has.
    pub(super) is_functions: bool,
}

/// ALTER FUNCTION of attributes.
#[derive(Clone, Debug)]
pub struct AlterFunction {
    /// Which kind it is: `f`, `p`, or `r` for either.
    pub kind: char,
    /// The function.
    pub function: NamedFunction,
    /// What it is to be.
    pub attributes: Attributes,
}

impl Attributes {
    /// Takes what an option says.
    pub(super) fn take(&mut self, option: &DefElem) -> Result<()> {
        let name = option.defname().unwrap_or_default();
        self.is_functions |= matches!(
            name,
            "volatility" | "strict" | "cost" | "rows" | "leakproof" | "parallel"
        );
        match name {
            "volatility" => {
                self.volatility = Some(match option.arg().as_str() {
                    Some("immutable") => Volatility::Immutable,
                    Some("stable") => Volatility::Stable,
                    _ => Volatility::Volatile,
                });
            }
            "strict" => self.strict = Some(is_true(option)),
            "security" => self.definer = Some(is_true(option)),
            "set" => self.take_setting(option)?,
            "window" => return Err(refused("WINDOW")),
            "transform" => return Err(refused("TRANSFORM")),
            "support" => return Err(refused("SUPPORT")),
            // Costs and hints change no answer.
            _ => {}
        }
        Ok(())
    }

    fn take_setting(&mut self, option: &DefElem) -> Result<()> {
        let Node::VariableSetStmt(set) = option.arg() else {
            return Err(QueryError::internal("SET of a function without a setting"));
        };
        let name = set.name().unwrap_or_default().to_lowercase();
        let values = match set.kind {
            VariableSetKind::VAR_RESET_ALL => {
                self.settings.clear();
                self.resets_all = true;
                return Ok(());
            }
            VariableSetKind::VAR_SET_VALUE => {
                let values = set.args().iter().map(value_of);
                Some(
                    values
                        .collect::<Option<_>>()
                        .ok_or_else(|| refused("SET of such a value"))?,
                )
            }
            VariableSetKind::VAR_SET_DEFAULT | VariableSetKind::VAR_RESET => None,
            _ => return Err(refused("SET … FROM CURRENT")),
        };
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, values));
        Ok(())
    }

    /// The settings of a function that had these before.
    #[must_use]
    pub fn of_settings(&self, mut before: FunctionSettings) -> FunctionSettings {
        if self.resets_all {
            before.clear();
        }
        for (name, values) in &self.settings {
            before.retain(|(known, _)| known != name);
            before.extend(values.clone().map(|values| (name.clone(), values)));
        }
        before
    }
}

fn is_true(option: &DefElem) -> bool {
    match option.arg() {
        Node::Boolean(value) => value.boolval,
        _ => true,
    }
}

/// A value of a setting, as it is written.
fn value_of(node: Node<'_>) -> Option<String> {
    let Node::A_Const(constant) = node else {
        return None;
    };
    Some(match constant.val()? {
        ConstValue::Integer(value) => value.to_string(),
        ConstValue::Boolean(value) => if value { "on" } else { "off" }.to_owned(),
        ConstValue::Float(text) | ConstValue::String(text) | ConstValue::BitString(text) => {
            text.to_owned()
        }
        _ => return None,
    })
}

#[cold]
fn refused(what: &str) -> QueryError {
    QueryError::unsupported(
        format!("{what} of a function is not supported"),
        "Leave the clause out.",
    )
}

impl Language {
    /// The same for a function with settings or rights of its own: it is called, and does not take the
    /// place of its call.
    #[must_use]
    pub fn around(self, is_around: bool) -> Self {
        match self {
            Self::Sql if is_around => Self::Statements,
            language => language,
        }
    }
}

/// What an ALTER FUNCTION changes.
///
/// # Errors
/// 42704 for a type that is not there; 42P13 for what no procedure has; 0A000 for what is not done.
pub fn alter_function(text: &str, catalog: &dyn Catalog) -> Result<AlterFunction> {
    let parsed = parse(text)?;
    let Some(Node::AlterFunctionStmt(alter)) = parsed.statements().stmts().next() else {
        return Err(QueryError::internal("no ALTER FUNCTION"));
    };
    altered(alter, catalog)
}

fn altered(alter: &AlterFunctionStmt, catalog: &dyn Catalog) -> Result<AlterFunction> {
    let Some(object) = alter.func() else {
        return Err(QueryError::internal("ALTER FUNCTION of no function"));
    };
    let environment = Plain::default();
    let types = types_of(object, &analyzer(catalog, &environment))?;
    let mut attributes = Attributes::default();
    for option in alter.actions().iter() {
        attributes.take(option)?;
    }
    let kind = match alter.objtype {
        ObjectType::OBJECT_PROCEDURE => 'p',
        ObjectType::OBJECT_ROUTINE => 'r',
        _ => 'f',
    };
    if kind == 'p' {
        may_be_procedure(&attributes)?;
    }
    Ok(AlterFunction {
        kind,
        function: (names(object.objname().iter()), types),
        attributes,
    })
}
