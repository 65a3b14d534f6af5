//! CREATE SCHEMA.

use sqlparser::ast::SchemaName;
use thermocline_engine::ddl::Change;

use super::Definition;
use crate::error::{Result, SqlError};
use crate::parse::tokens::{fold, fold_parts};

impl Definition<'_> {
    pub(super) async fn create_schema(
        &mut self,
        name: &SchemaName,
        if_not_exists: bool,
    ) -> Result<&'static str> {
        const TAG: &str = "CREATE SCHEMA";
        let name = match name {
            SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => {
                fold_parts(name).pop().unwrap_or_default()
            }
            SchemaName::UnnamedAuthorization(user) => fold(user),
        };
        let name = super::names::truncated(&name);
        if name.starts_with("pg_") || name == "information_schema" {
            return Err(
                SqlError::new("42939", format!("unacceptable schema name \"{name}\""))
                    .with_detail("The prefix \"pg_\" is reserved for system schemas."),
            );
        }
        if self.catalog().schema(&name).is_some() {
            if if_not_exists {
                self.notice(
                    "42P06",
                    format!("schema \"{name}\" already exists, skipping"),
                );
                return Ok(TAG);
            }
            return Err(SqlError::new(
                "42P06",
                format!("schema \"{name}\" already exists"),
            ));
        }
        self.apply(Change::CreateSchema(name)).await?;
        Ok(TAG)
    }
}
