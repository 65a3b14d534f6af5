//! The options of a sequence, in any order as PostgreSQL takes them: of CREATE
//! and ALTER SEQUENCE and of identity columns.

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::grant::Owned;
use super::life;
use super::statement::{AlterSequence, CreateSequence, Ddl, Statement};
use super::tokens::Tokens;
use crate::error::{Result, SqlError};

/// What was said of a sequence; what was not said is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SequenceOptions {
    /// AS type, as written.
    pub data_type: Option<String>,
    /// START WITH
    pub start: Option<i64>,
    /// RESTART [WITH]; the inner `None` means at its start.
    pub restart: Option<Option<i64>>,
    /// INCREMENT BY
    pub increment: Option<i64>,
    /// MINVALUE; the inner `None` is NO MINVALUE.
    pub min: Option<Option<i64>>,
    /// MAXVALUE; the inner `None` is NO MAXVALUE.
    pub max: Option<Option<i64>>,
    /// CACHE
    pub cache: Option<i64>,
    /// CYCLE or NO CYCLE
    pub cycle: Option<bool>,
    /// OWNED BY table.column; the inner `None` is OWNED BY NONE.
    pub owned_by: Option<Option<Vec<String>>>,
}

/// A CREATE of a sequence, behind CREATE; `None` if something else is made.
pub(super) fn create(tokens: &mut Tokens<'_>) -> Result<Option<Statement>> {
    let whole = Tokens::new(tokens.sql(), tokens.rest());
    let temporary = life::temporary(tokens);
    if !tokens.keyword("sequence") {
        *tokens = whole;
        return Ok(None);
    }
    let if_not_exists = tokens.keywords(&["if", "not", "exists"]);
    let name = tokens.qualified_name()?;
    let options = options(tokens)?;
    Ok(Some(Statement::Ddl(Ddl::CreateSequence(CreateSequence {
        temporary,
        name,
        if_not_exists,
        options,
    }))))
}

/// Reads options up to the end of the tokens.
pub(crate) fn options(tokens: &mut Tokens<'_>) -> Result<SequenceOptions> {
    let mut options = SequenceOptions::default();
    while !tokens.is_at_end() {
        let error = tokens.error();
        let fresh = if tokens.keyword("as") {
            replace(&mut options.data_type, tokens.identifier()?)
        } else if tokens.keyword("start") {
            tokens.keyword("with");
            replace(&mut options.start, tokens.integer()?)
        } else if tokens.keyword("restart") {
            let with = tokens.keyword("with");
            let number = matches!(tokens.peek(), Some(Token::Number(..) | Token::Minus));
            let at = if with || number {
                Some(tokens.integer()?)
            } else {
                None
            };
            replace(&mut options.restart, at)
        } else if tokens.keyword("increment") {
            tokens.keyword("by");
            replace(&mut options.increment, tokens.integer()?)
        } else if tokens.keyword("minvalue") {
            replace(&mut options.min, Some(tokens.integer()?))
        } else if tokens.keyword("maxvalue") {
            replace(&mut options.max, Some(tokens.integer()?))
        } else if tokens.keyword("cache") {
            replace(&mut options.cache, tokens.integer()?)
        } else if tokens.keyword("cycle") {
            replace(&mut options.cycle, true)
        } else if tokens.keywords(&["owned", "by"]) {
            let owner = tokens.qualified_name()?;
            let none = owner.len() == 1 && owner[0] == "none";
            replace(&mut options.owned_by, (!none).then_some(owner))
        } else if tokens.keyword("no") {
            match tokens.one_of(&["minvalue", "maxvalue", "cycle"]) {
                Some("minvalue") => replace(&mut options.min, None),
                Some("maxvalue") => replace(&mut options.max, None),
                Some(_) => replace(&mut options.cycle, false),
                None => return Err(tokens.error()),
            }
        } else {
            return Err(error);
        };
        if !fresh {
            return Err(
                SqlError::syntax("conflicting or redundant options").with_position(error.position)
            );
        }
    }
    Ok(options)
}

/// The options of an identity column that is added, as the parser has them.
pub(crate) fn of_identity(given: &[ast::SequenceOptions]) -> Result<SequenceOptions> {
    use ast::SequenceOptions as Given;
    let number = |expr: &ast::Expr| {
        let text = expr.to_string();
        let number = text.parse::<i64>();
        number.map_err(|_| SqlError::syntax(format!("syntax error at or near \"{text}\"")))
    };
    let mut options = SequenceOptions::default();
    for option in given {
        match option {
            Given::IncrementBy(by, _) => options.increment = Some(number(by)?),
            Given::MinValue(min) => options.min = Some(min.as_ref().map(number).transpose()?),
            Given::MaxValue(max) => options.max = Some(max.as_ref().map(number).transpose()?),
            Given::StartWith(start, _) => options.start = Some(number(start)?),
            Given::Cache(cache) => options.cache = Some(number(cache)?),
            Given::Cycle(no) => options.cycle = Some(!no),
        }
    }
    Ok(options)
}

fn replace<T>(option: &mut Option<T>, value: T) -> bool {
    option.replace(value).is_none()
}

/// What follows ALTER SEQUENCE.
pub(super) fn alter(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let if_exists = tokens.keywords(&["if", "exists"]);
    let name = tokens.qualified_name()?;
    let change = if tokens.keywords(&["rename", "to"]) {
        let change = AlterSequence::Rename(tokens.identifier()?);
        tokens.end()?;
        change
    } else if tokens.keywords(&["owner", "to"]) {
        let role = tokens.identifier()?;
        tokens.end()?;
        return Ok(Statement::Ddl(Ddl::Owner {
            owned: Owned::Sequence(name),
            role,
        }));
    } else {
        AlterSequence::Options(options(tokens)?)
    };
    Ok(Statement::Ddl(Ddl::AlterSequence {
        name,
        if_exists,
        change,
    }))
}
