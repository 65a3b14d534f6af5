//! CREATE, ALTER and DROP DOMAIN. What tables have in columns of a domain is asked before a
//! condition is added.

use std::sync::Arc;

use thermocline_engine::authority::Object;
use thermocline_engine::ddl::Change;
use thermocline_engine::user_type::{DomainCheckDef, DomainDef};
use thermocline_engine::{Catalog, Table, TypeDef, TypeKind};
use thermocline_query::domain::condition;
use thermocline_query::types::domain::base_of;
use thermocline_query::types::user::Class;
use thermocline_query::types::{self, format_type};

use super::user_type::types_in;
use super::{Definition, names};
use crate::bind::{self, domain_checks, domain_condition, type_of_text};
use crate::error::{Result, SqlError};
use crate::exec::of_no_domain;
use crate::parse::domain::{AlterDomain, CreateDomain, DomainCheck, DomainCommand};
use crate::privilege::not_owner;
use crate::typed::held;

impl Definition<'_> {
    pub(super) async fn domain_command(&mut self, command: &DomainCommand) -> Result<&'static str> {
        match command {
            DomainCommand::Create(create) => {
                self.create_domain(create).await?;
                Ok("CREATE DOMAIN")
            }
            DomainCommand::Alter { name, change } => {
                self.alter_domain(name, change).await?;
                Ok("ALTER DOMAIN")
            }
            DomainCommand::Drop {
                names,
                if_exists,
                cascade,
            } => {
                for name in names {
                    if let Ok(def) = self.find_type(name) {
                        domain_of(&def)?;
                    }
                    self.drop_type(name, *if_exists, *cascade).await?;
                }
                Ok("DROP DOMAIN")
            }
        }
    }

    async fn create_domain(&mut self, create: &CreateDomain) -> Result<()> {
        let catalog = self.catalog();
        let name = create.name.last().map_or("", String::as_str);
        let (below, modifier) = type_of_text(&create.type_text, self.type_names(&catalog))?;
        let element = types::element_of(below).unwrap_or(below);
        if types::by_oid(element).is_none_or(|row| row.category == b'P') {
            let shown = format_type(below, -1);
            let message = format!("\"{shown}\" is not a valid base type for a domain");
            return Err(SqlError::new("42804", message));
        }
        if held(below, modifier).is_none() {
            let shown = format_type(below, -1);
            let message = format!("domains over type {shown} are not supported");
            return Err(SqlError::unsupported(
                message,
                "Store the value as text, and cast it where it is used.",
            ));
        }
        let mut domain = DomainDef {
            below,
            modifier,
            not_null: create.not_null,
            default: None,
            checks: Vec::new(),
        };
        domain.default = self.domain_default(name, &domain, create.default.as_deref())?;
        for check in &create.checks {
            self.add_domain_check(name, &mut domain, check)?;
        }
        let kind = TypeKind::Domain(domain);
        self.create_type(&create.name, Class::Domain, kind).await
    }

    /// The text of a default, if it suits.
    fn domain_default(
        &self,
        name: &str,
        domain: &DomainDef,
        text: Option<&str>,
    ) -> Result<Option<String>> {
        let Some(text) = text else {
            return Ok(None);
        };
        let catalog = self.catalog();
        if !types_in(text, &catalog, self.search_path)?.is_empty() {
            let message = "a domain's default that names a type of a user is not supported";
            return Err(SqlError::unsupported(
                message,
                "Set the default of each column with ALTER TABLE ... ALTER COLUMN ... SET DEFAULT.",
            ));
        }
        let (oid, modifier) = base_of(domain.below, domain.modifier);
        let data_type = held(oid, modifier);
        let data_type = data_type.ok_or_else(|| SqlError::internal("a domain of no type"))?;
        let schema = self.search_path.first().map_or("public", String::as_str);
        self.kept(schema, |context| {
            bind::bind_default(text, name, data_type, context)
        })?;
        self.with_schemas(text, schema).map(Some)
    }

    fn add_domain_check(
        &self,
        of: &str,
        domain: &mut DomainDef,
        check: &DomainCheck,
    ) -> Result<()> {
        let taken = |name: &str| domain.checks.iter().any(|known| known.name == name);
        let name = match &check.name {
            Some(name) => {
                let name = names::truncated(name);
                if taken(&name) {
                    let message =
                        format!("constraint \"{name}\" for domain \"{of}\" already exists");
                    return Err(SqlError::new("42710", message));
                }
                name
            }
            None => {
                let numbers =
                    std::iter::once(String::new()).chain((1..).map(|n: u32| n.to_string()));
                let mut all =
                    numbers.map(|number| names::truncated(&format!("{of}_check{number}")));
                all.find(|name| !taken(name)).unwrap_or_default()
            }
        };
        if !types_in(&check.text, &self.catalog(), self.search_path)?.is_empty() {
            let message = "a domain's condition that names a type of a user is not supported";
            return Err(SqlError::unsupported(
                message,
                "Write the condition as a CHECK of each table.",
            ));
        }
        condition(&check.text, domain.below, domain.modifier)?;
        domain.checks.push(DomainCheckDef {
            name,
            expression: check.text.clone(),
            valid: check.valid,
        });
        // As PostgreSQL asks them.
        domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    async fn alter_domain(&mut self, name: &[String], change: &AlterDomain) -> Result<()> {
        let old = self.find_type(name)?;
        let mut domain = domain_of(&old)?.clone();
        if !self.actor()?.owns(&Object::Type(old.oid)) {
            return Err(not_owner("domain", &old.name));
        }
        let missing = |constraint: &str| {
            let message = format!(
                "constraint \"{constraint}\" of domain \"{}\" does not exist",
                old.name
            );
            SqlError::new("42704", message)
        };
        let place = |domain: &DomainDef, constraint: &str| {
            let mut checks = domain.checks.iter();
            let at = checks.position(|check| check.name == constraint);
            at.ok_or_else(|| missing(constraint))
        };
        match change {
            AlterDomain::Default(text) => {
                domain.default = self.domain_default(&old.name, &domain, text.as_deref())?;
            }
            AlterDomain::NotNull(true) if !domain.not_null => {
                self.verify_domain(&old, &NewCondition::NotNull).await?;
                domain.not_null = true;
            }
            AlterDomain::NotNull(not_null) => domain.not_null = *not_null,
            AlterDomain::AddCheck(check) => {
                self.add_domain_check(&old.name, &mut domain, check)?;
                if check.valid {
                    let new = NewCondition::Check(&check.text);
                    self.verify_domain(&old, &new).await?;
                }
            }
            AlterDomain::Validate(name) => {
                let at = place(&domain, name)?;
                if !domain.checks[at].valid {
                    let text = domain.checks[at].expression.clone();
                    self.verify_domain(&old, &NewCondition::Check(&text))
                        .await?;
                    domain.checks[at].valid = true;
                }
            }
            AlterDomain::DropCheck { name, if_exists } => match place(&domain, name) {
                Ok(at) => {
                    domain.checks.remove(at);
                }
                Err(missing) if *if_exists => {
                    self.notice("42704", format!("{}, skipping", missing.message));
                    return Ok(());
                }
                Err(missing) => return Err(missing),
            },
            AlterDomain::RenameCheck { from, to } => {
                let at = place(&domain, from)?;
                let to = names::truncated(to);
                if domain.checks.iter().any(|check| check.name == to) {
                    let message = format!(
                        "constraint \"{to}\" for domain \"{}\" already exists",
                        old.name
                    );
                    return Err(SqlError::new("42710", message));
                }
                domain.checks[at].name = to;
                domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
            }
            AlterDomain::Rename(to) => return self.rename_type(&old, to).await,
            AlterDomain::Schema(to) => return self.move_type(&old, to).await,
        }
        let mut def = (*old).clone();
        def.kind = TypeKind::Domain(domain);
        self.apply(Change::AlterType(def)).await
    }

    /// Asks what there is in columns of a domain. Whoever writes such a table waits until the
    /// transaction ends, and asks the condition, too, then.
    async fn verify_domain(&mut self, def: &TypeDef, new: &NewCondition<'_>) -> Result<()> {
        let catalog = self.catalog();
        if let Some(user) = self.holder_of(&catalog, def.oid) {
            return Err(SqlError::unsupported(
                format!("cannot alter type \"{}\" because {user} uses it", def.name),
                "Make a new domain with the condition, and change the columns to it.",
            ));
        }
        let domain = domain_of(def)?;
        for table in catalog.tables.values() {
            let columns = table.live_columns();
            let of_it = columns.filter(|(_, column)| {
                column
                    .domain
                    .is_some_and(|domain| is_made_of(&catalog, domain, def.oid))
            });
            let places: Vec<usize> = of_it.map(|(place, _)| place).collect();
            if places.is_empty() {
                continue;
            }
            self.apply(Change::AlterTable(table.def.clone())).await?;
            let table = self.current(table.oid)?;
            for place in places {
                self.verify_column(&table, place, domain, new).await?;
            }
        }
        Ok(())
    }

    async fn verify_column(
        &mut self,
        table: &Arc<Table>,
        place: usize,
        domain: &DomainDef,
        new: &NewCondition<'_>,
    ) -> Result<()> {
        let name = &table.columns[place].name;
        let what = match new {
            NewCondition::NotNull => {
                if !self.has_null(table, place).await? {
                    return Ok(());
                }
                return Err(SqlError::new(
                    "23502",
                    format!(
                        "column \"{name}\" of table \"{}\" contains null values",
                        table.name
                    ),
                ));
            }
            NewCondition::Check(text) => domain_condition(text, domain, table, place)?,
        };
        match self.some_row_is_not(table, &what).await? {
            false => Ok(()),
            true => Err(SqlError::new(
                "23514",
                format!(
                    "column \"{name}\" of table \"{}\" contains values that violate the new constraint",
                    table.name
                ),
            )),
        }
    }

    /// Who has values of a domain within others.
    fn holder_of(&self, catalog: &Catalog, oid: u32) -> Option<String> {
        for table in catalog.tables.values() {
            for (_, column) in table.live_columns() {
                let of = match column.domain {
                    Some(domain) if is_made_of(catalog, domain, oid) => continue,
                    _ => column.type_oid(),
                };
                if holds(catalog, of, oid) {
                    return Some(format!("column \"{}.{}\"", table.name, column.name));
                }
            }
        }
        None
    }

    /// Asks the rows that are there about a column that has become one of a domain.
    pub(super) async fn verify_new_domain(&mut self, oid: u32, column: usize) -> Result<()> {
        let table = self.current(oid)?;
        if table.columns[column].domain.is_none() || self.db.row_estimate(&table) == 0 {
            return Ok(());
        }
        let catalog = self.catalog();
        for check in domain_checks(&catalog, &table, column)? {
            if self.some_row_is_not(&table, &check.condition).await? {
                return Err(of_no_domain(check.of.domain(), &check.name));
            }
        }
        Ok(())
    }
}

/// What is asked anew.
enum NewCondition<'a> {
    NotNull,
    /// The text of a condition.
    Check(&'a str),
}

/// What a type is as a domain.
pub(super) fn domain_of(def: &TypeDef) -> Result<&DomainDef> {
    match &def.kind {
        TypeKind::Domain(domain) => Ok(domain),
        TypeKind::Enum(_) | TypeKind::Composite(_) => Err(SqlError::new(
            "42809",
            format!("\"{}\" is not a domain", def.name),
        )),
    }
}

/// Whether a domain is another, or made of it.
pub(super) fn is_made_of(catalog: &Catalog, domain: u32, oid: u32) -> bool {
    let mut at = domain;
    loop {
        if at == oid {
            return true;
        }
        match catalog.types.get(&at).map(|def| &def.kind) {
            Some(TypeKind::Domain(domain)) => at = domain.below,
            _ => return false,
        }
    }
}

/// Whether values of a type have such of another in them.
fn holds(catalog: &Catalog, of: u32, oid: u32) -> bool {
    let Some(def) = catalog.type_of(of) else {
        return false;
    };
    def.oid == oid
        || match &def.kind {
            TypeKind::Domain(domain) => holds(catalog, domain.below, oid),
            TypeKind::Composite(_) => {
                let mut attributes = def.attributes();
                attributes.any(|attribute| holds(catalog, attribute.type_oid, oid))
            }
            TypeKind::Enum(_) => false,
        }
}
