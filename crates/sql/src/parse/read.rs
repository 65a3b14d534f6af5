//! A statement's tree to a statement: which file reads it.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::ObjectType;
use thermocline_query::parse::Parsed;

use super::statement::{Dropped, Statement};
use super::{
    comment, constraint, copy, cursor, domain, drop, execute, explain, extension, function, grant,
    index, lock, maintenance, materialized, query, refused, role, schema, sequence, setting, table,
    table_as, tablespace, transaction, trigger, user_type, view,
};
use crate::error::{Result, SqlError};

/// The one statement of a text. The stack must have room for its tree.
///
/// # Errors
/// 0A000 for what is not supported, and what the grammar leaves to later checks.
pub(super) fn statement(parsed: Parsed, text: &str) -> Result<Statement> {
    let mut statements = parsed.statements().stmts();
    let (Some(node), None) = (statements.next(), statements.next()) else {
        return Err(SqlError::internal("a text of one statement has several"));
    };
    let mut read = read(node, text)?;
    drop(statements);
    if let Some(query) = read.query_mut() {
        query.keep_tree(parsed);
    }
    Ok(read)
}

fn read(node: Node<'_>, text: &str) -> Result<Statement> {
    Ok(match node {
        Node::SelectStmt(select) => {
            let first = query::leftmost(select);
            if first.into_clause().is_some() {
                return table_as::select_into(first, text);
            }
            Statement::Query(query::alone(node, text)?)
        }
        Node::InsertStmt(_) | Node::UpdateStmt(_) | Node::DeleteStmt(_) | Node::MergeStmt(_) => {
            Statement::Query(query::alone(node, text)?)
        }
        Node::TransactionStmt(of) => transaction::transaction(of)?,
        Node::VariableSetStmt(of) => setting::set(of)?,
        Node::VariableShowStmt(of) => setting::show(of.name().unwrap_or_default()),
        Node::DiscardStmt(of) => setting::discard(of.target),
        Node::AlterSystemStmt(of) => setting::alter_system(of.setstmt())?,
        Node::PrepareStmt(of) => execute::prepare(of)?,
        Node::ExecuteStmt(of) => execute::execute(of)?,
        Node::DeallocateStmt(of) => Statement::Deallocate(of.name().map(str::to_owned)),
        Node::CallStmt(of) => execute::call(of)?,
        Node::DoStmt(of) => function::anonymous(of)?,
        Node::DeclareCursorStmt(of) => Statement::Declare(cursor::declare(of)?),
        Node::FetchStmt(of) => Statement::Fetch(cursor::fetch(of)),
        Node::ClosePortalStmt(of) => Statement::CloseCursor(of.portalname().map(str::to_owned)),
        Node::CopyStmt(of) => Statement::Copy(copy::copy(of, text)?),
        Node::ExplainStmt(of) => explain::explain(of, text)?,
        Node::CheckPointStmt(_) => Statement::Checkpoint,
        Node::VacuumStmt(of) => maintenance::vacuum(of),
        Node::ReindexStmt(of) => maintenance::reindex(of),
        Node::ClusterStmt(_) => Statement::Accepted(maintenance::accepted("CLUSTER")),
        Node::ListenStmt(of) => {
            Statement::Listen(of.conditionname().unwrap_or_default().to_owned())
        }
        Node::UnlistenStmt(of) => maintenance::unlisten(of),
        Node::NotifyStmt(of) => maintenance::notify(of),
        Node::LockStmt(of) => lock::lock(of),
        Node::ConstraintsSetStmt(of) => constraint::set_constraints(of),
        Node::CommentStmt(of) => comment::comment(of)?,
        Node::GrantStmt(of) => grant::grant(of)?,
        Node::AlterDefaultPrivilegesStmt(of) => grant::defaults(of)?,
        Node::GrantRoleStmt(of) => role::members(of)?,
        Node::DropOwnedStmt(of) => grant::drop_owned(of),
        Node::ReassignOwnedStmt(of) => grant::reassign(of),
        Node::AlterOwnerStmt(of) => grant::owner(of)?,
        Node::CreateRoleStmt(of) => role::create(of, text)?,
        Node::AlterRoleStmt(of) => role::alter(of, text)?,
        Node::DropRoleStmt(of) => role::drop(of),
        Node::CreateSeqStmt(of) => sequence::create(of, text)?,
        Node::AlterSeqStmt(of) => sequence::alter(of, text)?,
        Node::ViewStmt(of) => view::create(of, text)?,
        Node::CreateTableAsStmt(of) => table_as::create(of, text)?,
        Node::RefreshMatViewStmt(of) => materialized::refresh(of)?,
        Node::CreateStmt(of) => table::create(of, text)?,
        Node::AlterTableStmt(of) => match of.objtype {
            ObjectType::OBJECT_TYPE => user_type::alter_composite(of)?,
            ObjectType::OBJECT_TABLE | ObjectType::OBJECT_MATVIEW => table::alter(of, text)?,
            _ => grant::alter_other(of)?,
        },
        Node::IndexStmt(of) => index::create_index(of)?,
        Node::TruncateStmt(of) => table::truncate(of),
        Node::CreateSchemaStmt(of) => schema::create_schema(of, text)?,
        Node::DropStmt(of) => drop::drop(of, text)?,
        Node::DropdbStmt(of) => drop::drop_none(Dropped::Database, of.dbname(), of.missing_ok),
        Node::CreateTableSpaceStmt(of) => tablespace::create(of),
        Node::DropTableSpaceStmt(of) => tablespace::drop(of),
        Node::AlterTableSpaceOptionsStmt(of) => tablespace::alter(of),
        Node::RenameStmt(of) => drop::rename(of)?,
        Node::AlterObjectSchemaStmt(of) => schema::set_schema(of)?,
        Node::CreateExtensionStmt(of) => {
            extension::create(of.extname().unwrap_or_default(), of.if_not_exists)?
        }
        Node::AlterExtensionStmt(of) => {
            extension::unchanged("ALTER EXTENSION", of.extname().unwrap_or_default())?
        }
        Node::CreateDomainStmt(of) => domain::create(of)?,
        Node::AlterDomainStmt(of) => domain::alter(of)?,
        Node::CreateEnumStmt(of) => user_type::create_enum(of),
        Node::CompositeTypeStmt(of) => user_type::create_composite(of)?,
        Node::AlterEnumStmt(of) => user_type::alter_enum(of),
        Node::CreateFunctionStmt(_) => function::create(text),
        Node::AlterFunctionStmt(_) => function::alter(text),
        Node::CreateTrigStmt(of) => trigger::create(of)?,
        Node::AlterRoleSetStmt(of) => role::set(of)?,
        Node::AlterDatabaseSetStmt(of) => role::set_in_database(of)?,
        Node::CreateRangeStmt(_) => {
            return Err(SqlError::unsupported(
                "CREATE TYPE AS RANGE is not supported",
                "Use int4range, int8range, numrange, daterange, tsrange or tstzrange.",
            ));
        }
        _ => return Err(refused::statement(text)),
    })
}
