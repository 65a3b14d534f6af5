//! CREATE SCHEMA.

use thermocline_engine::ddl::Change;

use super::Definition;
use crate::error::{Result, SqlError};
use crate::parse::grant::Owned;
use crate::parse::statement::CreateSchema;

impl Definition<'_> {
    pub(super) async fn create_schema(&mut self, create: &CreateSchema) -> Result<&'static str> {
        const TAG: &str = "CREATE SCHEMA";
        let name = super::names::truncated(&create.name);
        if name.starts_with("pg_") || name == "information_schema" {
            return Err(
                SqlError::new("42939", format!("unacceptable schema name \"{name}\""))
                    .with_detail("The prefix \"pg_\" is reserved for system schemas."),
            );
        }
        if self.catalog().schema(&name).is_some() {
            if create.if_not_exists {
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
        self.apply(Change::CreateSchema(name.clone())).await?;
        if let Some(owner) = &create.owner {
            self.lock_authority().await?;
            self.change_owner(&Owned::Schema(name), owner).await?;
        }
        Ok(TAG)
    }
}
