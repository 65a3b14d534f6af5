//! CREATE, ALTER and DROP TABLESPACE: what is on the device is made before the definition is
//! committed, and removed after it is dropped.

use thermocline_engine::tablespace::{TablespaceDef, check_option};

use super::{Client, Session};
use crate::error::{Result, SqlError};
use crate::parse::statement::{Ddl, TablespaceChange};
use crate::parse::tablespace::TablespaceCommand;

impl Session {
    pub(super) async fn tablespace(
        &mut self,
        command: &TablespaceCommand,
        client: &mut Client,
    ) -> Result<&'static str> {
        let tag = command.tag();
        match command {
            TablespaceCommand::Create {
                name,
                owner,
                location,
                options,
            } => {
                self.need_by_itself(tag)?;
                self.need_superuser(
                    &format!("permission denied to create tablespace \"{name}\""),
                    "Must be superuser to create a tablespace.",
                )?;
                if owner.is_some() {
                    return Err(SqlError::unsupported(
                        "OWNER of a tablespace is not supported",
                        "Leave the clause out: tablespaces are the superuser's.",
                    ));
                }
                self.create_tablespace(name, location, options, client)
                    .await?;
            }
            TablespaceCommand::Drop { name, if_exists } => {
                self.need_by_itself(tag)?;
                self.drop_tablespace(name, *if_exists, client).await?;
            }
            TablespaceCommand::Rename { name, to } => {
                let mut def = self.tablespace_of_superuser(name)?;
                check_name(to)?;
                to.clone_into(&mut def.name);
                self.alter_tablespace(def, client).await?;
            }
            TablespaceCommand::Set { name, options } => {
                let mut def = self.tablespace_of_superuser(name)?;
                for (option, value) in options {
                    check_option(option, value)?;
                    def.options.insert(option.clone(), value.clone());
                }
                let def = self
                    .looked_at(def, options.iter().map(|(option, _)| option))
                    .await?;
                self.alter_tablespace(def, client).await?;
            }
            TablespaceCommand::Reset { name, options } => {
                let mut def = self.tablespace_of_superuser(name)?;
                for option in options {
                    def.options.remove(option);
                }
                let def = self.looked_at(def, options.iter()).await?;
                self.alter_tablespace(def, client).await?;
            }
        }
        Ok(tag)
    }

    /// A device that nothing says the sort of any more is measured; so is one again when it is said to be `auto`.
    async fn looked_at(
        &self,
        def: TablespaceDef,
        mut changed: impl Iterator<Item = &String>,
    ) -> Result<TablespaceDef> {
        if !changed.any(|option| option == "device") {
            return Ok(def);
        }
        Ok(self.engine.db.look_at_tablespace_aside(def).await?)
    }

    fn need_superuser(&self, message: &str, hint: &str) -> Result<()> {
        match self.context.actor()?.is_superuser() {
            true => Ok(()),
            false => Err(SqlError::new("42501", message.to_owned()).with_hint(hint.to_owned())),
        }
    }

    fn tablespace_of_superuser(&self, name: &str) -> Result<TablespaceDef> {
        let catalog = self.engine.db.catalog();
        if is_built_in(name) {
            return Err(SqlError::unsupported(
                format!("tablespace \"{name}\" cannot be altered"),
                "Make a tablespace of your own: CREATE TABLESPACE ... LOCATION ...",
            ));
        }
        let def = catalog.tablespace_by_name(name);
        let def = def.ok_or_else(|| missing(name))?;
        self.need_superuser(
            &format!("must be owner of tablespace {name}"),
            "Ask a superuser.",
        )?;
        Ok((**def).clone())
    }

    async fn create_tablespace(
        &mut self,
        name: &str,
        location: &str,
        options: &[(String, String)],
        client: &mut Client,
    ) -> Result<()> {
        check_name(name)?;
        let db = self.engine.db.clone();
        if is_built_in(name) || db.catalog().tablespace_by_name(name).is_some() {
            let message = format!("tablespace \"{name}\" already exists");
            return Err(SqlError::new("42710", message));
        }
        let def = TablespaceDef {
            oid: db.allocate_oid(),
            number: 0,
            name: name.to_owned(),
            location: location.trim_end_matches('/').to_owned(),
            options: options.iter().cloned().collect(),
        };
        let def = db.make_tablespace_aside(def).await?;
        let change = Ddl::Tablespace(TablespaceChange::Create(def.clone()));
        let made = self.define(&change, client).await;
        db.settle_tablespace(def.oid);
        made.map(|_| ())
    }

    async fn drop_tablespace(
        &mut self,
        name: &str,
        if_exists: bool,
        client: &mut Client,
    ) -> Result<()> {
        let db = self.engine.db.clone();
        let known = db.catalog().tablespace_by_name(name).cloned();
        let def = match known {
            Some(def) => def,
            None if is_built_in(name) => {
                let message = format!(
                    "cannot drop tablespace {name} because it is required by the database system"
                );
                return Err(SqlError::new("2BP01", message));
            }
            None if if_exists => {
                let message = format!("tablespace \"{name}\" does not exist, skipping");
                self.notify(client, "NOTICE", &SqlError::new("00000", message));
                return Ok(());
            }
            None => return Err(missing(name)),
        };
        self.need_superuser(
            &format!("must be owner of tablespace {name}"),
            "Ask a superuser.",
        )?;
        let change = Ddl::Tablespace(TablespaceChange::Drop((*def).clone()));
        let dropped = self.define(&change, client).await;
        db.settle_tablespace(def.oid);
        dropped.map(|_| ())
    }

    async fn alter_tablespace(&mut self, def: TablespaceDef, client: &mut Client) -> Result<()> {
        let oid = def.oid;
        let change = Ddl::Tablespace(TablespaceChange::Alter(def));
        let altered = self.define(&change, client).await;
        // In a block that is yet to come: the next start sees to it.
        self.engine.db.settle_tablespace(oid);
        altered.map(|_| ())
    }
}

/// Whether it is one that PostgreSQL always has.
pub(crate) fn is_built_in(name: &str) -> bool {
    matches!(name, "pg_default" | "pg_global")
}

fn check_name(name: &str) -> Result<()> {
    match name.starts_with("pg_") && !is_built_in(name) {
        true => Err(
            SqlError::new("42939", format!("unacceptable tablespace name \"{name}\""))
                .with_detail("The prefix \"pg_\" is reserved for system tablespaces."),
        ),
        false => Ok(()),
    }
}

/// 42704
pub(crate) fn missing(name: &str) -> SqlError {
    SqlError::new("42704", format!("tablespace \"{name}\" does not exist"))
}
