//! Who a statement is run as, and what that role may do.
//!
//! Asked where names become objects: when a statement is bound for the short path, when a
//! table is looked up for the analytical one. Also when a definition is applied, and when a
//! sequence or a procedure is called by name. There is no other way from a name to rows, so none of them
//! can be forgotten. Plans are made for a role and a catalog; a GRANT, a REVOKE or a SET ROLE
//! makes them anew. Refusals are 42501 in PostgreSQL's words.

use std::sync::Arc;

use thermocline_engine::authority::{
    Authority, FIRST_ROLE_NAME, FIRST_ROLE_OID, Object, Privileges, READ_ALL_STATS_OID,
    SIGNAL_BACKEND_OID,
};
use thermocline_engine::{Catalog, SequenceDef, Table, ViewDef};

use crate::error::{Result, SqlError};
use crate::temporary::is_temporary;

/// The role that a statement is run as, with the rights there are.
#[derive(Clone, Debug)]
pub struct Actor {
    role: u32,
    name: Arc<str>,
    superuser: bool,
    authority: Arc<Authority>,
}

impl Default for Actor {
    /// The first superuser of a database without other roles.
    fn default() -> Self {
        Self {
            role: FIRST_ROLE_OID,
            name: Arc::from(FIRST_ROLE_NAME),
            superuser: true,
            authority: Arc::default(),
        }
    }
}

impl Actor {
    /// The role of this name in `catalog`.
    ///
    /// # Errors
    /// 42704 when it is there no more.
    pub fn named(name: &Arc<str>, catalog: &Catalog) -> Result<Self> {
        let role = catalog
            .authority
            .role_by_name(name)
            .ok_or_else(|| no_role(name))?;
        Ok(Self {
            role: role.oid,
            name: Arc::clone(name),
            superuser: role.superuser,
            authority: Arc::clone(&catalog.authority),
        })
    }

    /// The role of this number in `catalog`.
    ///
    /// # Errors
    /// 42704 when it is there no more.
    pub fn numbered(oid: u32, catalog: &Catalog) -> Result<Self> {
        Self::named(&Arc::from(catalog.authority.role_name(oid)), catalog)
    }

    /// The role's object id.
    #[must_use]
    pub fn role(&self) -> u32 {
        self.role
    }

    /// The role's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it may do everything.
    #[must_use]
    pub fn is_superuser(&self) -> bool {
        self.superuser
    }

    /// The roles and rights as they were when the statement began.
    #[must_use]
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// The sessions of `who` may be stopped: by the same role, one that has its privileges or
    /// those of `pg_signal_backend`; a superuser's by superusers only.
    #[must_use]
    pub fn may_signal(&self, who: &str) -> bool {
        if self.superuser {
            return true;
        }
        let authority = &self.authority;
        let other = authority.role_by_name(who);
        other.is_some_and(|other| {
            let may = |role| authority.has_privileges_of(self.role, role);
            !other.superuser && (may(other.oid) || may(SIGNAL_BACKEND_OID))
        })
    }

    /// What the sessions of `who` do may be looked at: by the same role, one that has its
    /// privileges, and members of `pg_read_all_stats`.
    #[must_use]
    pub fn may_read_statements_of(&self, who: &str) -> bool {
        let other = self.authority.role_by_name(who);
        other.is_some_and(|other| self.may_read_statements(other.oid))
            || self.superuser
            || self.reads_all_statistics()
    }

    /// The same, by the role's number.
    #[must_use]
    pub fn may_read_statements(&self, who: u32) -> bool {
        self.superuser
            || self.authority.has_privileges_of(self.role, who)
            || self.reads_all_statistics()
    }

    fn reads_all_statistics(&self) -> bool {
        self.authority
            .has_privileges_of(self.role, READ_ALL_STATS_OID)
    }

    /// # Errors
    /// 42501 unless the role is a superuser; `what` completes "must be superuser to …".
    pub fn need_superuser(&self, what: &str) -> Result<()> {
        match self.superuser {
            true => Ok(()),
            false => Err(SqlError::new(
                "42501",
                format!("must be superuser to {what}"),
            )),
        }
    }

    /// # Errors
    /// 42501 unless the names of a schema may be used.
    pub fn need_schema(&self, catalog: &Catalog, schema: &str, needs: Privileges) -> Result<()> {
        // What is temporary its own session uses, whoever it becomes; others cannot.
        if self.superuser || is_temporary(schema) {
            return Ok(());
        }
        let Some(def) = catalog.schema(schema) else {
            return Ok(());
        };
        match self.may(&Object::Schema(def.oid), needs) {
            true => Ok(()),
            false => Err(denied("schema", schema)),
        }
    }

    /// # Errors
    /// 42501 unless the role has all of `needs` on the whole table, and its schema's USAGE.
    pub fn need_table(&self, catalog: &Catalog, table: &Table, needs: Privileges) -> Result<()> {
        if self.superuser {
            return Ok(());
        }
        self.need_schema(catalog, &table.schema, Privileges::USAGE)?;
        match self.may(&Object::Table(table.oid), needs) {
            true => Ok(()),
            false => Err(denied(table.kind(), &table.name)),
        }
    }

    /// # Errors
    /// 42501 unless the role has all of `needs` on the view, and its schema's USAGE.
    pub fn need_view(&self, catalog: &Catalog, view: &ViewDef, needs: Privileges) -> Result<()> {
        self.need_schema(catalog, &view.schema, Privileges::USAGE)?;
        match self.may(&Object::Table(view.oid), needs) {
            true => Ok(()),
            false => Err(denied("view", &view.name)),
        }
    }

    /// # Errors
    /// 42501 unless the role has `needs` on the table or on some of its columns.
    pub fn need_some_column(
        &self,
        catalog: &Catalog,
        table: &Table,
        needs: Privileges,
    ) -> Result<()> {
        if self.superuser {
            return Ok(());
        }
        self.need_schema(catalog, &table.schema, Privileges::USAGE)?;
        let has = self
            .authority
            .some_column_privileges(self.role, table.oid)
            .contains(needs);
        match has {
            true => Ok(()),
            false => Err(denied(table.kind(), &table.name)),
        }
    }

    /// # Errors
    /// 42501 unless the role has `needs` on the table or on this column.
    pub fn need_column(&self, table: &Table, column: usize, needs: Privileges) -> Result<()> {
        match self.has_column(table, column, needs) {
            true => Ok(()),
            false => Err(denied("table", &table.name)),
        }
    }

    /// Whether the role has `needs` on the table or on this column.
    #[must_use]
    pub fn has_column(&self, table: &Table, column: usize, needs: Privileges) -> bool {
        self.superuser
            || self
                .authority
                .column_privileges(self.role, table.oid, column)
                .contains(needs)
    }

    /// The columns that must not be read, none if the whole table may be.
    #[must_use]
    pub fn hidden_columns(&self, table: &Table) -> Vec<usize> {
        if self.may(&Object::Table(table.oid), Privileges::SELECT) {
            return Vec::new();
        }
        let live = table.live_columns().map(|(column, _)| column);
        live.filter(|column| !self.has_column(table, *column, Privileges::SELECT))
            .collect()
    }

    /// # Errors
    /// 42501 unless the role has one of `needs` on the sequence, and its schema's USAGE.
    pub fn need_sequence(
        &self,
        catalog: &Catalog,
        sequence: &SequenceDef,
        needs: Privileges,
    ) -> Result<()> {
        if self.superuser {
            return Ok(());
        }
        self.need_schema(catalog, &sequence.schema, Privileges::USAGE)?;
        let has = self
            .authority
            .privileges(self.role, &Object::Sequence(sequence.oid));
        match (has & needs).is_empty() {
            false => Ok(()),
            true => Err(denied("sequence", &sequence.name)),
        }
    }

    /// # Errors
    /// 42501 unless the procedure may be called.
    pub fn need_procedure(&self, name: &str) -> Result<()> {
        match self.may(&Object::Procedure(name.to_owned()), Privileges::EXECUTE) {
            true => Ok(()),
            false => Err(denied("procedure", name)),
        }
    }

    /// # Errors
    /// 42501 unless the function of this number may be called.
    pub fn need_function(&self, oid: u32, name: &str) -> Result<()> {
        match self.may(&Object::Function(oid), Privileges::EXECUTE) {
            true => Ok(()),
            false => Err(denied("function", name)),
        }
    }

    /// Whether the role owns an object or is a superuser.
    #[must_use]
    pub fn owns(&self, object: &Object) -> bool {
        self.superuser || self.authority.owns(self.role, object)
    }

    fn may(&self, object: &Object, needs: Privileges) -> bool {
        self.superuser || self.authority.privileges(self.role, object).contains(needs)
    }
}

/// 42501 for an object, in PostgreSQL's words.
#[cold]
pub(crate) fn denied(kind: &str, name: &str) -> SqlError {
    SqlError::new("42501", format!("permission denied for {kind} {name}"))
}

/// 42501 for what only an owner may do.
#[cold]
pub(crate) fn not_owner(kind: &str, name: &str) -> SqlError {
    SqlError::new("42501", format!("must be owner of {kind} {name}"))
}

/// 42704 for a role that is not there.
#[cold]
pub(crate) fn no_role(name: &str) -> SqlError {
    SqlError::new("42704", format!("role \"{name}\" does not exist"))
}
