//! The commands parsed by hand, by their first word: transaction control,
//! settings, prepared statements, cursors, COPY, sequences, maintenance.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::statement::{
    Accepted, Declare, Direction, Explain, Fetch, IsolationLevel, Modes, Set, Statement,
};
use super::time_zone::zone;
use super::tokens::Tokens;
use super::{
    call, comment, copy, create_table, domain, function, grant, life, lock, parse_one, parsed,
    refused, role, sequence, system, table_as, user_type, view,
};
use crate::error::{Result, SqlError};

/// Parses a command of this module; `None` when the first words are another's.
pub(super) fn parse(tokens: &mut Tokens<'_>) -> Result<Option<Statement>> {
    let Some(Token::Word(first)) = tokens.peek() else {
        return Ok(None);
    };
    if first.quote_style.is_some() {
        return Ok(None);
    }
    let mut word = [0u8; 12];
    let Some(word) = lower_case(&first.value, &mut word) else {
        return Ok(None);
    };
    let statement = match word {
        "select" | "insert" | "update" | "delete" | "with" | "values" => return Ok(None),
        "create" if function::is_create(tokens) => return function::command(tokens).map(Some),
        "create" => return create(tokens),
        "alter" => return alter(tokens),
        "drop" if tokens.are_keywords(&["drop", "owned", "by"]) => {
            tokens.advance();
            Statement::Ddl(grant::owned_by(tokens, false)?)
        }
        "drop" if tokens.are_keywords(&["drop", "type"]) => {
            tokens.advance();
            tokens.advance();
            return user_type::dropped(tokens).map(Some);
        }
        "drop" if tokens.are_keywords(&["drop", "function"]) => {
            return function::command(tokens).map(Some);
        }
        "drop" if tokens.are_keywords(&["drop", "domain"]) => {
            tokens.advance();
            tokens.advance();
            return domain::dropped(tokens).map(Some);
        }
        "drop" => return role::dropped(tokens),
        "table" => return table(tokens).map(Some),
        _ => {
            tokens.advance();
            match word {
                "begin" => begin(tokens, false)?,
                "start" => {
                    tokens.expect_keyword("transaction")?;
                    begin(tokens, true)?
                }
                "commit" | "end" => end(tokens, true)?,
                "rollback" | "abort" => end(tokens, false)?,
                "savepoint" => Statement::Savepoint(tokens.identifier()?),
                "release" => {
                    tokens.keyword("savepoint");
                    Statement::Release(tokens.identifier()?)
                }
                "set" => set(tokens)?,
                "reset" => reset(tokens)?,
                "show" => show(tokens)?,
                "discard" => discard(tokens)?,
                "prepare" => return prepare(tokens).map(Some),
                "call" => return call::call(tokens).map(Some),
                "execute" => return execute(tokens).map(Some),
                "deallocate" => {
                    tokens.keyword("prepare");
                    Statement::Deallocate(all_or_name(tokens)?)
                }
                "declare" => return declare(tokens).map(Some),
                "fetch" => fetch(tokens, false)?,
                "move" => fetch(tokens, true)?,
                "close" => Statement::CloseCursor(all_or_name(tokens)?),
                "copy" => return copy::copy(tokens).map(|copy| Some(Statement::Copy(copy))),
                "explain" => return explain(tokens).map(Some),
                "checkpoint" => Statement::Checkpoint,
                "backup" => backup(tokens)?,
                "vacuum" | "analyze" | "analyse" => maintain(tokens, word)?,
                "lock" => lock::lock(tokens)?,
                "listen" | "unlisten" | "notify" => notify(tokens, word)?,
                "reindex" | "cluster" => skip(
                    tokens,
                    if word == "reindex" {
                        "REINDEX"
                    } else {
                        "CLUSTER"
                    },
                ),
                "comment" => comment::comment(tokens)?,
                "grant" => Statement::Ddl(grant::parse(tokens, true)?),
                "revoke" => Statement::Ddl(grant::parse(tokens, false)?),
                "reassign" => Statement::Ddl(grant::owned_by(tokens, true)?),
                "do" => {
                    return Err(SqlError::unsupported(
                        "DO is not supported",
                        "Send the statements by themselves, in one transaction.",
                    ));
                }
                _ => return Ok(None),
            }
        }
    };
    tokens.end()?;
    Ok(Some(statement))
}

/// `word` in lower case, if it is short enough to be one of ours.
fn lower_case<'a>(word: &str, buffer: &'a mut [u8; 12]) -> Option<&'a str> {
    let target = buffer.get_mut(..word.len())?;
    target.copy_from_slice(word.as_bytes());
    target.make_ascii_lowercase();
    std::str::from_utf8(target).ok()
}

/// `BACKUP TO 'directory' [WITH (max_rate = n)]`; n is kilobytes a second, as
/// in PostgreSQL's BASE_BACKUP.
fn backup(tokens: &mut Tokens<'_>) -> Result<Statement> {
    tokens.expect_keyword("to")?;
    let directory = tokens.string()?;
    let mut max_rate = None;
    if tokens.keyword("with") {
        tokens.expect(&Token::LParen)?;
        tokens.expect_keyword("max_rate")?;
        tokens.token(&Token::Eq);
        let number = tokens.try_number().ok_or_else(|| tokens.error())?;
        let kilobytes = number.parse::<u64>().ok().filter(|n| *n > 0);
        max_rate = Some(kilobytes.ok_or_else(|| {
            SqlError::new(
                "22023",
                format!("max_rate must be a number of kilobytes a second, not {number}"),
            )
        })?);
        tokens.expect(&Token::RParen)?;
    }
    Ok(Statement::Backup {
        directory,
        max_rate,
    })
}

fn begin(tokens: &mut Tokens<'_>, start: bool) -> Result<Statement> {
    if !start {
        tokens.one_of(&["transaction", "work"]);
    }
    let modes = modes(tokens)?;
    Ok(Statement::Begin { modes, start })
}

/// Transaction modes, with or without commas, up to the end.
fn modes(tokens: &mut Tokens<'_>) -> Result<Modes> {
    let mut modes = Modes::default();
    while !tokens.is_at_end() {
        if tokens.keywords(&["isolation", "level"]) {
            modes.isolation = Some(isolation(tokens)?);
        } else if tokens.keywords(&["read", "only"]) {
            modes.read_only = Some(true);
        } else if tokens.keywords(&["read", "write"]) {
            modes.read_only = Some(false);
        } else if tokens.keyword("deferrable") {
            modes.deferrable = Some(true);
        } else if tokens.keywords(&["not", "deferrable"]) {
            modes.deferrable = Some(false);
        } else {
            return Err(tokens.error());
        }
        if tokens.token(&Token::Comma) && tokens.is_at_end() {
            return Err(tokens.error());
        }
    }
    Ok(modes)
}

fn isolation(tokens: &mut Tokens<'_>) -> Result<IsolationLevel> {
    if tokens.keywords(&["read", "uncommitted"]) {
        Ok(IsolationLevel::ReadUncommitted)
    } else if tokens.keywords(&["read", "committed"]) {
        Ok(IsolationLevel::ReadCommitted)
    } else if tokens.keywords(&["repeatable", "read"]) {
        Ok(IsolationLevel::RepeatableRead)
    } else if tokens.keyword("serializable") {
        Ok(IsolationLevel::Serializable)
    } else {
        Err(tokens.error())
    }
}

/// What follows COMMIT, END, ROLLBACK and ABORT.
fn end(tokens: &mut Tokens<'_>, commit: bool) -> Result<Statement> {
    tokens.one_of(&["transaction", "work"]);
    if !commit && tokens.keyword("to") {
        tokens.keyword("savepoint");
        return Ok(Statement::RollbackTo(tokens.identifier()?));
    }
    if tokens.keyword("prepared") {
        return Err(SqlError::unsupported(
            "prepared transactions are not supported",
            "Use COMMIT or ROLLBACK.",
        ));
    }
    let mut chain = false;
    if tokens.keyword("and") {
        chain = !tokens.keyword("no");
        tokens.expect_keyword("chain")?;
    }
    Ok(if commit {
        Statement::Commit { chain }
    } else {
        Statement::Rollback { chain }
    })
}

fn set(tokens: &mut Tokens<'_>) -> Result<Statement> {
    if tokens.keywords(&["session", "characteristics", "as", "transaction"]) {
        return modes_given(tokens).map(Statement::SetSessionCharacteristics);
    }
    let local = tokens.keyword("local");
    if !local && !tokens.are_keywords(&["session", "authorization"]) {
        tokens.keyword("session");
    }
    if tokens.keyword("transaction") {
        if tokens.keyword("snapshot") {
            return Err(SqlError::unsupported(
                "SET TRANSACTION SNAPSHOT is not supported",
                "Run the statements in one REPEATABLE READ transaction.",
            ));
        }
        return modes_given(tokens).map(Statement::SetTransaction);
    }
    let set = |name: &str, value| {
        Statement::Set(Set {
            name: name.to_owned(),
            value,
            local,
        })
    };
    if tokens.keywords(&["time", "zone"]) {
        if tokens.keyword("local") || tokens.keyword("default") {
            return Ok(set("timezone", None));
        }
        return Ok(set("timezone", Some(vec![zone(tokens)?])));
    }
    if tokens.keyword("names") {
        if tokens.keyword("default") {
            return Ok(set("client_encoding", None));
        }
        return Ok(set("client_encoding", Some(vec![value(tokens)?])));
    }
    if tokens.keywords(&["session", "authorization"]) {
        if tokens.keyword("default") {
            return Ok(set("session_authorization", None));
        }
        return Ok(set("session_authorization", Some(vec![value(tokens)?])));
    }
    if tokens.keyword("role") {
        let _ = tokens.token(&Token::Eq) || tokens.keyword("to");
        return Ok(set("role", Some(vec![value(tokens)?])));
    }
    let name = tokens.qualified_name()?.join(".").to_lowercase();
    if !tokens.token(&Token::Eq) {
        tokens.expect_keyword("to")?;
    }
    if tokens.keyword("default") {
        return Ok(set(&name, None));
    }
    let mut values = vec![value(tokens)?];
    while tokens.token(&Token::Comma) {
        values.push(value(tokens)?);
    }
    Ok(set(&name, Some(values)))
}

fn modes_given(tokens: &mut Tokens<'_>) -> Result<Modes> {
    if tokens.is_at_end() {
        return Err(tokens.error());
    }
    modes(tokens)
}

/// A setting's value: a word, a string or a number.
pub(super) fn value(tokens: &mut Tokens<'_>) -> Result<String> {
    if let Some(text) = tokens.try_string() {
        return Ok(text);
    }
    if let Some(number) = tokens.try_number() {
        return Ok(number);
    }
    tokens.identifier()
}

/// The name of a setting as SHOW and RESET take it.
fn setting_name(tokens: &mut Tokens<'_>) -> Result<String> {
    if tokens.keywords(&["time", "zone"]) {
        return Ok("timezone".to_owned());
    }
    if tokens.keywords(&["transaction", "isolation", "level"]) {
        return Ok("transaction_isolation".to_owned());
    }
    if tokens.keywords(&["session", "authorization"]) {
        return Ok("session_authorization".to_owned());
    }
    Ok(tokens.qualified_name()?.join(".").to_lowercase())
}

fn reset(tokens: &mut Tokens<'_>) -> Result<Statement> {
    if tokens.keyword("all") {
        return Ok(Statement::ResetAll);
    }
    Ok(Statement::Reset(setting_name(tokens)?))
}

fn show(tokens: &mut Tokens<'_>) -> Result<Statement> {
    if tokens.keyword("all") {
        return Ok(Statement::ShowAll);
    }
    Ok(Statement::Show(setting_name(tokens)?))
}

fn discard(tokens: &mut Tokens<'_>) -> Result<Statement> {
    match tokens.one_of(&["all", "plans", "sequences", "temporary", "temp"]) {
        Some(what) => Ok(Statement::Discard(what)),
        None => Err(tokens.error()),
    }
}

fn all_or_name(tokens: &mut Tokens<'_>) -> Result<Option<String>> {
    if tokens.keyword("all") {
        Ok(None)
    } else {
        tokens.identifier().map(Some)
    }
}

/// The query inside of another command. Nothing else may stand there, least
/// of all another such command: each would be a level of the stack.
fn inner_query(tokens: &Tokens<'_>) -> Result<Statement> {
    const FIRST: [&str; 7] = [
        "select", "insert", "update", "delete", "with", "values", "table",
    ];
    let query =
        FIRST.iter().any(|word| tokens.is_keyword(word)) || tokens.peek() == Some(&Token::LParen);
    if !query {
        return Err(tokens.error());
    }
    match parse_one(tokens.sql(), tokens.rest().to_vec())?.0 {
        Statement::TableAs(_) => Err(SqlError::unsupported(
            "SELECT INTO within another command is not supported",
            "Run SELECT INTO as a statement of its own.",
        )),
        statement => Ok(statement),
    }
}

fn prepare(tokens: &mut Tokens<'_>) -> Result<Statement> {
    if tokens.keyword("transaction") {
        return Err(SqlError::unsupported(
            "prepared transactions are not supported",
            "Use COMMIT or ROLLBACK.",
        ));
    }
    let name = tokens.identifier()?;
    let mut types = Vec::new();
    if tokens.token(&Token::LParen) {
        let inner = tokens.until_closing()?.to_vec();
        (types, _) = parsed(tokens.sql(), inner, |parser| {
            parser.parse_comma_separated(Parser::parse_data_type)
        })?;
    }
    tokens.expect_keyword("as")?;
    let statement = inner_query(tokens)?;
    Ok(Statement::Prepare {
        name,
        types,
        statement: Box::new(statement),
    })
}

fn execute(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let name = tokens.identifier()?;
    let mut arguments = Vec::new();
    if tokens.token(&Token::LParen) {
        let inner = tokens.until_closing()?.to_vec();
        (arguments, _) = parsed(tokens.sql(), inner, |parser| {
            parser.parse_comma_separated(Parser::parse_expr)
        })?;
    }
    tokens.end()?;
    Ok(Statement::Execute { name, arguments })
}

fn declare(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let name = tokens.identifier()?;
    let (mut binary, mut scroll) = (false, None);
    while let Some(word) = tokens.one_of(&["binary", "insensitive", "asensitive", "no", "scroll"]) {
        match word {
            "binary" => binary = true,
            "no" => {
                tokens.expect_keyword("scroll")?;
                scroll = Some(false);
            }
            "scroll" => scroll = Some(true),
            _ => {}
        }
    }
    tokens.expect_keyword("cursor")?;
    let mut hold = false;
    if let Some(with) = tokens.one_of(&["with", "without"]) {
        tokens.expect_keyword("hold")?;
        hold = with == "with";
    }
    tokens.expect_keyword("for")?;
    let Statement::Query(query) = inner_query(tokens)? else {
        return Err(SqlError::syntax("DECLARE CURSOR takes a query"));
    };
    if !query.is_query() {
        return Err(SqlError::syntax("DECLARE CURSOR takes SELECT or VALUES"));
    }
    Ok(Statement::Declare(Declare {
        name,
        hold,
        binary,
        scroll,
        query,
    }))
}

fn fetch(tokens: &mut Tokens<'_>, skip: bool) -> Result<Statement> {
    // A direction may also be the cursor's name: `fetch next` is of cursor "next".
    let named = tokens.rest().len() == 1;
    let direction = if named {
        Direction::Forward(Some(1))
    } else {
        direction(tokens)?
    };
    if !named {
        let _ = tokens.keyword("from") || tokens.keyword("in");
    }
    Ok(Statement::Fetch(Fetch {
        cursor: tokens.identifier()?,
        direction,
        skip,
    }))
}

fn direction(tokens: &mut Tokens<'_>) -> Result<Direction> {
    const WORDS: [&str; 9] = [
        "next", "prior", "first", "last", "absolute", "relative", "all", "forward", "backward",
    ];
    let word = tokens.one_of(&WORDS);
    match word {
        Some("next") => return Ok(Direction::Forward(Some(1))),
        Some("prior") => return Ok(Direction::Backward(Some(1))),
        Some("first") => return Ok(Direction::Absolute(1)),
        Some("last") => return Ok(Direction::Absolute(-1)),
        Some("absolute") => return Ok(Direction::Absolute(tokens.integer()?)),
        Some("relative") => return Ok(Direction::Relative(tokens.integer()?)),
        Some("all") => return Ok(Direction::Forward(None)),
        _ => {}
    }
    let backward = word == Some("backward");
    let count = if word.is_some() && tokens.keyword("all") {
        None
    } else if matches!(
        tokens.peek(),
        Some(Token::Number(..) | Token::Minus | Token::Plus)
    ) {
        Some(tokens.integer()?)
    } else {
        Some(1)
    };
    let back = backward != count.is_some_and(|count| count < 0);
    let count = count.map(i64::unsigned_abs);
    Ok(match back {
        true => Direction::Backward(count),
        false => Direction::Forward(count),
    })
}

fn explain(tokens: &mut Tokens<'_>) -> Result<Statement> {
    let mut analyze = false;
    if tokens.token(&Token::LParen) {
        let sql = tokens.sql();
        let mut options = Tokens::new(sql, tokens.until_closing()?);
        while !options.is_at_end() {
            let name = options.identifier()?;
            let value = match options.peek() {
                None | Some(Token::Comma) => "on".to_owned(),
                _ => value(&mut options)?,
            };
            let on = !matches!(value.to_lowercase().as_str(), "off" | "false" | "0");
            match name.as_str() {
                "analyze" | "analyse" => analyze = on,
                "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary"
                | "generic_plan" | "memory" => {}
                "format" if value.eq_ignore_ascii_case("text") => {}
                "format" => {
                    return Err(SqlError::unsupported(
                        format!("EXPLAIN FORMAT {} is not supported", value.to_uppercase()),
                        "Use FORMAT TEXT.",
                    ));
                }
                _ => {
                    return Err(SqlError::syntax(format!(
                        "unrecognized EXPLAIN option \"{name}\""
                    )));
                }
            }
            if !options.is_at_end() {
                options.expect(&Token::Comma)?;
            }
        }
    } else {
        analyze = tokens.keyword("analyze") || tokens.keyword("analyse");
        tokens.keyword("verbose");
    }
    if tokens.is_keyword("execute") || tokens.is_keyword("declare") {
        return Err(SqlError::unsupported(
            "EXPLAIN of EXECUTE or DECLARE is not supported",
            "Explain the query itself.",
        ));
    }
    let statement = inner_query(tokens)?;
    Ok(Statement::Explain(Explain {
        analyze,
        statement: Box::new(statement),
    }))
}

fn accepted(tag: &'static str) -> Accepted {
    Accepted {
        tag,
        notice: None,
        tables: Vec::new(),
        outside_transaction: false,
    }
}

/// VACUUM and ANALYZE: options in words or parentheses, then tables.
fn maintain(tokens: &mut Tokens<'_>, word: &str) -> Result<Statement> {
    let vacuum = word == "vacuum";
    let mut command = accepted(if vacuum { "VACUUM" } else { "ANALYZE" });
    command.outside_transaction = vacuum;
    if tokens.token(&Token::LParen) {
        tokens.until_closing()?;
    } else {
        while tokens
            .one_of(&["full", "freeze", "verbose", "analyze", "analyse"])
            .is_some()
        {}
    }
    while !tokens.is_at_end() {
        command.tables.push(tokens.qualified_name()?);
        if tokens.token(&Token::LParen) {
            tokens.until_closing()?;
        }
        if !tokens.is_at_end() {
            tokens.expect(&Token::Comma)?;
        }
    }
    Ok(Statement::Accepted(command))
}

fn notify(tokens: &mut Tokens<'_>, word: &str) -> Result<Statement> {
    Ok(match word {
        "listen" => Statement::Listen(tokens.identifier()?),
        "unlisten" if tokens.token(&Token::Mul) => Statement::Unlisten(None),
        "unlisten" => Statement::Unlisten(Some(tokens.identifier()?)),
        _ => Statement::Notify {
            channel: tokens.identifier()?,
            payload: match tokens.token(&Token::Comma) {
                true => tokens.string()?,
                false => String::new(),
            },
        },
    })
}

fn skip(tokens: &mut Tokens<'_>, tag: &'static str) -> Statement {
    skip_rest(tokens, accepted(tag))
}

fn skip_rest(tokens: &mut Tokens<'_>, command: Accepted) -> Statement {
    while !tokens.is_at_end() {
        tokens.advance();
    }
    Statement::Accepted(command)
}

/// `TABLE t` is `SELECT * FROM t`.
fn table(tokens: &mut Tokens<'_>) -> Result<Statement> {
    tokens.advance();
    let name = tokens.qualified_name()?;
    tokens.end()?;
    let quoted: Vec<String> = name
        .iter()
        .map(|part| format!("\"{}\"", part.replace('"', "\"\"")))
        .collect();
    let sql = format!("SELECT * FROM {}", quoted.join("."));
    parse_one(&sql, super::tokenize(&sql)?).map(|(statement, _)| statement)
}

fn create(tokens: &mut Tokens<'_>) -> Result<Option<Statement>> {
    let all = tokens.rest();
    let sql = tokens.sql();
    tokens.advance();
    if let Some(created) = sequence::create(tokens)? {
        return Ok(Some(created));
    }
    if let Some(created) = view::create(tokens)? {
        return Ok(Some(created));
    }
    if let Some(created) = role::created(tokens)? {
        return Ok(Some(created));
    }
    if tokens.keyword("type") {
        return user_type::create(tokens).map(Some);
    }
    if tokens.keyword("domain") {
        return domain::create(tokens).map(Some);
    }
    if !life::temporary(tokens) {
        tokens.keyword("unlogged");
    }
    if tokens.is_keyword("table") {
        if let Some(created) = table_as::create(sql, all)? {
            return Ok(Some(created));
        }
        return create_table::create_table(sql, all).map(Some);
    }
    // What sqlparser would read.
    let missing = ["database", "trigger", "extension", "tablespace"];
    match missing.iter().find(|word| tokens.is_keyword(word)) {
        Some(word) => Err(refused::command_missing(&format!(
            "CREATE {}",
            word.to_uppercase()
        ))),
        None => Ok(None),
    }
}

fn alter(tokens: &mut Tokens<'_>) -> Result<Option<Statement>> {
    tokens.advance();
    if tokens.keyword("system") {
        return system::alter_system(tokens).map(Some);
    }
    if let Some(altered) = role::altered(tokens)? {
        return Ok(Some(altered));
    }
    if let Some(ddl) = grant::owner(tokens)? {
        tokens.end()?;
        return Ok(Some(Statement::Ddl(ddl)));
    }
    if tokens.keyword("view") {
        return view::alter(tokens).map(Some);
    }
    if tokens.keyword("type") {
        return user_type::alter(tokens).map(Some);
    }
    if tokens.keyword("domain") {
        return domain::alter(tokens).map(Some);
    }
    if tokens.are_keywords(&["materialized", "view"]) {
        return Err(SqlError::unsupported(
            "materialized views are not supported yet",
            "Use CREATE TABLE ... AS, and fill the table again when you need it.",
        ));
    }
    if !tokens.keyword("sequence") {
        return Ok(None);
    }
    sequence::alter(tokens).map(Some)
}
