//! GRANT and REVOKE, of privileges and of roles, ALTER … OWNER TO, REASSIGN and DROP OWNED.

use sqlparser::tokenizer::Token;

use super::role::{RoleCommand, names};
use super::statement::Ddl;
use super::tokens::Tokens;
use crate::error::{Result, SqlError};

/// GRANT or REVOKE of privileges.
#[derive(Debug, Clone)]
pub struct GrantCommand {
    /// GRANT, not REVOKE.
    pub grant: bool,
    /// The privileges and the columns they are for; `None` for all.
    pub privileges: Option<Vec<(String, Vec<String>)>>,
    /// On what.
    pub targets: Targets,
    /// To whom; "public" is everybody.
    pub grantees: Vec<String>,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// REVOKE … CASCADE.
    pub cascade: bool,
}

/// What privileges are granted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// Tables, and sequences that are named as such.
    Tables(Vec<Vec<String>>),
    /// Sequences.
    Sequences(Vec<Vec<String>>),
    /// Schemas.
    Schemas(Vec<String>),
    /// Procedures.
    Procedures(Vec<Vec<String>>),
    /// The database.
    Database(Vec<String>),
    /// All tables in schemas.
    AllTables(Vec<String>),
    /// All sequences in schemas.
    AllSequences(Vec<String>),
}

/// What changes its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owned {
    /// A table.
    Table(Vec<String>),
    /// A view.
    View(Vec<String>),
    /// A sequence.
    Sequence(Vec<String>),
    /// A schema.
    Schema(String),
    /// A procedure.
    Procedure(Vec<String>),
    /// A type.
    Type(Vec<String>),
}

/// REASSIGN OWNED, or DROP OWNED where there is no new owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedBy {
    /// Whose objects.
    pub roles: Vec<String>,
    /// TO
    pub new_owner: Option<String>,
    /// CASCADE
    pub cascade: bool,
}

/// Parses `OWNED BY` and what follows, behind DROP or REASSIGN.
pub(super) fn owned_by(tokens: &mut Tokens<'_>, reassign: bool) -> Result<Ddl> {
    tokens.expect_keyword("owned")?;
    tokens.expect_keyword("by")?;
    let roles = names(tokens)?;
    let mut new_owner = None;
    if reassign {
        tokens.expect_keyword("to")?;
        new_owner = Some(tokens.identifier()?);
    }
    let cascade = !reassign && cascade(tokens);
    Ok(Ddl::OwnedBy(OwnedBy {
        roles,
        new_owner,
        cascade,
    }))
}

/// Parses what follows GRANT or REVOKE.
pub(super) fn parse(tokens: &mut Tokens<'_>, grant: bool) -> Result<Ddl> {
    let mut option = false;
    let mut admin = false;
    if !grant {
        option = tokens.keywords(&["grant", "option", "for"]);
        admin = tokens.keywords(&["admin", "option", "for"]);
    }
    let preposition = if grant { "to" } else { "from" };
    let all = tokens.keyword("all");
    let mut privileges = Vec::new();
    if all {
        tokens.keyword("privileges");
        if tokens.peek() == Some(&Token::LParen) {
            privileges.push(("all".to_owned(), tokens.identifier_list()?));
        }
    } else {
        loop {
            let name = tokens.identifier()?;
            let columns = match tokens.peek() {
                Some(Token::LParen) => tokens.identifier_list()?,
                _ => Vec::new(),
            };
            privileges.push((name, columns));
            if !tokens.token(&Token::Comma) {
                break;
            }
        }
        if tokens.keyword(preposition) {
            let roles = privileges.into_iter().map(|(name, _)| name).collect();
            return roles_granted(tokens, roles, grant, admin);
        }
    }
    tokens.expect_keyword("on")?;
    let targets = targets(tokens)?;
    tokens.expect_keyword(preposition)?;
    let grantees = names(tokens)?;
    if grant {
        option = tokens.keywords(&["with", "grant", "option"]);
    }
    granted_by(tokens)?;
    let cascade = cascade(tokens);
    Ok(Ddl::Grant(GrantCommand {
        grant,
        privileges: (!all || !privileges.is_empty()).then_some(privileges),
        targets,
        grantees,
        option,
        cascade,
    }))
}

fn roles_granted(
    tokens: &mut Tokens<'_>,
    roles: Vec<String>,
    grant: bool,
    mut admin: bool,
) -> Result<Ddl> {
    let members = names(tokens)?;
    if grant && tokens.keyword("with") {
        tokens.expect_keyword("admin")?;
        admin = tokens.one_of(&["option", "true"]).is_some() || !tokens.keyword("false");
    }
    granted_by(tokens)?;
    cascade(tokens);
    Ok(Ddl::Role(RoleCommand::Members {
        roles,
        members,
        grant,
        admin,
    }))
}

fn granted_by(tokens: &mut Tokens<'_>) -> Result<()> {
    if tokens.keywords(&["granted", "by"]) {
        tokens.identifier()?;
    }
    Ok(())
}

fn cascade(tokens: &mut Tokens<'_>) -> bool {
    tokens.one_of(&["cascade", "restrict"]) == Some("cascade")
}

fn targets(tokens: &mut Tokens<'_>) -> Result<Targets> {
    const OTHERS: [&str; 7] = [
        "domain",
        "foreign",
        "language",
        "large",
        "parameter",
        "tablespace",
        "type",
    ];
    if tokens.keyword("all") {
        let kind = tokens.one_of(&["tables", "sequences", "functions", "procedures", "routines"]);
        let kind = kind.ok_or_else(|| tokens.error())?;
        tokens.expect_keyword("in")?;
        tokens.expect_keyword("schema")?;
        let schemas = names(tokens)?;
        return Ok(match kind {
            "tables" => Targets::AllTables(schemas),
            "sequences" => Targets::AllSequences(schemas),
            // Procedures lie in no schema.
            _ => Targets::Procedures(Vec::new()),
        });
    }
    if tokens.keyword("schema") {
        return names(tokens).map(Targets::Schemas);
    }
    if tokens.keyword("database") {
        return names(tokens).map(Targets::Database);
    }
    if tokens.keyword("sequence") {
        return qualified(tokens, false).map(Targets::Sequences);
    }
    if tokens
        .one_of(&["function", "procedure", "routine"])
        .is_some()
    {
        return qualified(tokens, true).map(Targets::Procedures);
    }
    if let Some(other) = OTHERS.iter().find(|word| tokens.is_keyword(word)) {
        return Err(SqlError::unsupported(
            format!("privileges on a {other} are not supported"),
            "Grant privileges on tables, sequences, functions, schemas or the database.",
        ));
    }
    tokens.keyword("table");
    qualified(tokens, false).map(Targets::Tables)
}

fn qualified(tokens: &mut Tokens<'_>, arguments: bool) -> Result<Vec<Vec<String>>> {
    let mut names = Vec::new();
    loop {
        names.push(tokens.qualified_name()?);
        if arguments && tokens.token(&Token::LParen) {
            tokens.until_closing()?;
        }
        if !tokens.token(&Token::Comma) {
            return Ok(names);
        }
    }
}

/// `ALTER SCHEMA s OWNER TO role` and the like, behind the kind; `None` when it is something
/// else that is altered.
pub(super) fn owner(tokens: &mut Tokens<'_>) -> Result<Option<Ddl>> {
    let owned = if tokens.keyword("schema") {
        Owned::Schema(tokens.identifier()?)
    } else if tokens
        .one_of(&["function", "procedure", "routine"])
        .is_some()
    {
        let name = tokens.qualified_name()?;
        if tokens.token(&Token::LParen) {
            tokens.until_closing()?;
        }
        Owned::Procedure(name)
    } else {
        return Ok(None);
    };
    if !tokens.keywords(&["owner", "to"]) {
        return Ok(None);
    }
    Ok(Some(Ddl::Owner {
        owned,
        role: tokens.identifier()?,
    }))
}
