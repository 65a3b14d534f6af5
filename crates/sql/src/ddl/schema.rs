//! CREATE SCHEMA, and what it defines.

use std::sync::Arc;

use thermocline_engine::ddl::Change;

use super::{Definition, carried_out};
use crate::error::{Result, SqlError};
use crate::parse::grant::Owned;
use crate::parse::schema::CreateSchema;
use crate::parse::statement::Ddl;

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
            self.change_owner(&Owned::Schema(name.clone()), owner)
                .await?;
        }
        if !create.elements.is_empty() {
            self.make_elements(create, name).await?;
        }
        Ok(TAG)
    }

    /// Makes what CREATE SCHEMA defines, as the schema's owner, whose names are looked for in the
    /// schema first.
    async fn make_elements(&mut self, create: &CreateSchema, name: String) -> Result<()> {
        let role = create.owner.as_deref().map(Arc::from);
        let role = role.unwrap_or_else(|| Arc::clone(self.role));
        let path: Vec<String> = [name]
            .into_iter()
            .chain(self.search_path.iter().cloned())
            .collect();
        let mut within = Definition {
            db: self.db,
            txn: &mut *self.txn,
            options: self.options,
            search_path: &path,
            creation_path: &path,
            access_method: self.access_method,
            tablespace: self.tablespace,
            checks_bodies: self.checks_bodies,
            session: self.session,
            role: &role,
            styles: self.styles,
            session_user: self.session_user,
            now_us: self.now_us,
            truncates: None,
            notices: Vec::new(),
            on_commit: Vec::new(),
        };
        let mut made = Ok(());
        for element in &create.elements {
            made = within.make_element(element).await;
            if made.is_err() {
                break;
            }
        }
        let (notices, on_commit) = (within.notices, within.on_commit);
        self.notices.extend(notices);
        self.on_commit.extend(on_commit);
        made
    }

    async fn make_element(&mut self, element: &Ddl) -> Result<()> {
        self.lock_named(element).await?;
        carried_out(element, self).await.map(drop)
    }
}
