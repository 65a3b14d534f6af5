//! CREATE, ALTER and DROP FUNCTION.

use std::sync::Arc;

use thermocline_engine::authority::Object;
use thermocline_engine::ddl::Change;
use thermocline_engine::{
    FunctionArgument, FunctionDef, FunctionLanguage, FunctionVolatility, Table, TriggerDef,
};
use thermocline_query::analyze::{
    Language, NamedFunction, SqlFunction, alter_function, drop_function,
};
use thermocline_query::functions::Volatility;
use thermocline_query::types::format_type;

use super::Definition;
use super::named::calls;
use super::view::fits_catalog;
use super::view_query::facts;
use crate::analysis;
use crate::error::{Result, SqlError};
use crate::parse::function::FunctionCommand;
use crate::privilege::not_owner;
use crate::temporary::{is_temporary, meant};

impl Definition<'_> {
    pub(super) async fn function_command(
        &mut self,
        command: &FunctionCommand,
    ) -> Result<&'static str> {
        match command {
            FunctionCommand::Create(text) => self.create_function(text).await,
            FunctionCommand::Drop(text) => self.drop_functions(text).await,
            FunctionCommand::Alter(text) => self.alter_function(text).await,
        }
    }

    async fn create_function(&mut self, text: &str) -> Result<&'static str> {
        fits_catalog("the text of a function", text)?;
        let (facts, catalog) = (facts(self)?, self.catalog());
        let create = analysis::create_function(text, &catalog, self.db, facts, self.checks_bodies)?;
        let (schema, name) = self.new_name(&create.name, false).await?;
        if is_temporary(&schema) {
            return Err(SqlError::unsupported(
                "functions in temporary schemas are not supported",
                "Use a schema that is not temporary.",
            ));
        }
        let of = &create.function;
        let catalog = self.catalog();
        let same = |def: &&Arc<FunctionDef>| def.types().eq(of.arguments.iter().map(|of| of.oid));
        let old = catalog.functions_named(&schema, &name).find(same).cloned();
        if let Some(old) = &old {
            if !create.replace {
                let message =
                    format!("function \"{name}\" already exists with same argument types");
                return Err(SqlError::new("42723", message));
            }
            if old.procedure.is_some() != create.procedure.is_some() {
                let what = if old.procedure.is_some() {
                    "procedure"
                } else {
                    "function"
                };
                return Err(SqlError::new("42809", "cannot change routine kind")
                    .with_detail(format!("\"{name}\" is a {what}.")));
            }
            self.may_replace(old, of)?;
        }
        let oid = old
            .as_ref()
            .map_or_else(|| self.db.allocate_oid(), |old| old.oid);
        let def = FunctionDef {
            oid,
            schema,
            name,
            arguments: of.arguments.iter().map(kept).collect(),
            result: of.result,
            returns_set: of.returns_set,
            columns: of
                .columns
                .iter()
                .map(|column| FunctionArgument {
                    name: Some(column.name.to_string()),
                    type_oid: column.oid,
                    default: None,
                })
                .collect(),
            strict: of.strict,
            variadic: of.variadic,
            volatility: kept_volatility(create.volatility),
            body: of.body.to_string(),
            language: match of.language {
                Language::Sql | Language::Statements => FunctionLanguage::Sql,
                Language::PlPgSql => FunctionLanguage::PlPgSql,
            },
            out: of.out.as_deref().map(str::to_owned),
            procedure: create.procedure.clone(),
            definer: of.definer,
            settings: of.settings.to_vec(),
        };
        self.apply(match old {
            Some(_) => Change::ReplaceFunction(def),
            None => Change::CreateFunction(def),
        })
        .await?;
        Ok(match create.procedure {
            Some(_) => "CREATE PROCEDURE",
            None => "CREATE FUNCTION",
        })
    }

    async fn alter_function(&mut self, text: &str) -> Result<&'static str> {
        let (facts, catalog) = (facts(self)?, self.catalog());
        let alter = analysis::of_functions(text, &catalog, self.db, facts, alter_function)?;
        let old = self.found_routine(&alter.function, alter.kind)?;
        let of = &alter.attributes;
        let def = FunctionDef {
            volatility: of.volatility.map_or(old.volatility, kept_volatility),
            strict: of.strict.unwrap_or(old.strict),
            definer: of.definer.unwrap_or(old.definer),
            settings: of.of_settings(old.settings.clone()),
            ..FunctionDef::clone(&old)
        };
        self.apply(Change::ReplaceFunction(def)).await?;
        Ok(match alter.kind {
            'p' => "ALTER PROCEDURE",
            'r' => "ALTER ROUTINE",
            _ => "ALTER FUNCTION",
        })
    }

    fn may_replace(&self, old: &FunctionDef, new: &SqlFunction) -> Result<()> {
        if !self.actor()?.owns(&Object::Function(old.oid)) {
            return Err(not_owner("function", &old.name));
        }
        let columns = old.columns.iter().map(|column| column.type_oid);
        let same_columns = columns.eq(new.columns.iter().map(|column| column.oid));
        if old.result != new.result || old.returns_set != new.returns_set || !same_columns {
            return Err(
                SqlError::new("42P13", "cannot change return type of existing function")
                    .with_hint(format!("Use DROP FUNCTION {} first.", signature(old))),
            );
        }
        let mut names = old.arguments.iter().zip(&new.arguments);
        let renamed = names.find_map(|(old, new)| match (&old.name, new.name.as_deref()) {
            (Some(old), given) if given != Some(old) => Some(old),
            _ => None,
        });
        match renamed {
            None => Ok(()),
            Some(name) => Err(SqlError::new(
                "42P13",
                format!("cannot change name of input parameter \"{name}\""),
            )
            .with_hint(format!("Use DROP FUNCTION {} first.", signature(old)))),
        }
    }

    async fn drop_functions(&mut self, text: &str) -> Result<&'static str> {
        let (facts, catalog) = (facts(self)?, self.catalog());
        let drop = match analysis::of_functions(text, &catalog, self.db, facts, drop_function) {
            // A type that is not there is of no function.
            Err(error)
                if error.sqlstate == "42704" && text.to_lowercase().contains("if exists") =>
            {
                self.notice("00000", format!("{}, skipping", error.message));
                return Ok("DROP FUNCTION");
            }
            drop => drop?,
        };
        for named in &drop.functions {
            match self.found_routine(named, drop.kind) {
                Ok(def) => self.drop_function(&def, drop.cascade).await?,
                Err(error) if drop.if_exists && matches!(error.sqlstate, "42883" | "3F000") => {
                    self.notice("00000", format!("{}, skipping", error.message));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(match drop.kind {
            'p' => "DROP PROCEDURE",
            'r' => "DROP ROUTINE",
            _ => "DROP FUNCTION",
        })
    }

    pub(super) async fn drop_function(&mut self, def: &FunctionDef, cascade: bool) -> Result<()> {
        let what = format!("function {}", signature(def));
        let hanging = self.hanging_on_function(def)?;
        Box::pin(self.drop_hanging(&what, &hanging, cascade)).await?;
        let needs = |_: &Table, trigger: &TriggerDef| match &trigger.condition {
            Some(condition) if trigger.function != def.oid => calls(condition, def),
            _ => Ok(trigger.function == def.oid),
        };
        self.drop_triggers_of(&what, needs, cascade).await?;
        self.apply(Change::DropFunction(def.oid)).await
    }

    /// The function that a name means, alone or with types.
    pub(super) fn found_function(&self, named: &NamedFunction) -> Result<Arc<FunctionDef>> {
        self.found_routine(named, 'f')
    }

    /// The same of a kind: `f`, `p`, or `r` for either.
    pub(super) fn found_routine(
        &self,
        (parts, types): &NamedFunction,
        kind: char,
    ) -> Result<Arc<FunctionDef>> {
        let what = match kind {
            'p' => "procedure",
            'r' => "routine",
            _ => "function",
        };
        let is_kind = |def: &&Arc<FunctionDef>| def.is_of_kind(kind);
        let catalog = self.catalog();
        let shown = parts.join(".");
        let (schemas, name): (Vec<&str>, &str) = match parts.as_slice() {
            [name] => (self.search_path.iter().map(String::as_str).collect(), name),
            [schema, name] | [_, schema, name] => (vec![meant(schema, self.search_path)], name),
            _ => return Err(SqlError::syntax("improper qualified name")),
        };
        let mut found = schemas
            .iter()
            .flat_map(|schema| catalog.functions_named(schema, name))
            .filter(is_kind);
        let Some(types) = types else {
            return match (found.next(), found.next()) {
                (Some(def), None) => Ok(Arc::clone(def)),
                (None, _) => Err(SqlError::new(
                    "42883",
                    format!("could not find a {what} named \"{shown}\""),
                )),
                (Some(_), Some(_)) => Err(SqlError::new(
                    "42725",
                    format!("{what} name \"{shown}\" is not unique"),
                )
                .with_hint("Specify the argument list to select the function unambiguously.")),
            };
        };
        // A procedure is also named with the types of what it gives.
        let same = |def: &&Arc<FunctionDef>| {
            let parameters = def.parameters();
            let all = parameters.iter().map(|(_, of)| of.type_oid);
            def.types().eq(types.iter().copied())
                || def.procedure.is_some() && all.eq(types.iter().copied())
        };
        found.find(same).cloned().ok_or_else(|| {
            let types: Vec<String> = types.iter().map(|oid| format_type(*oid, -1)).collect();
            let mut others = schemas
                .iter()
                .flat_map(|schema| catalog.functions_named(schema, name));
            if others.any(|def| same(&def)) {
                let message = format!("{shown}({}) is not a {what}", types.join(", "));
                return SqlError::new("42809", message);
            }
            let message = format!("{what} {shown}({}) does not exist", types.join(", "));
            SqlError::new("42883", message)
        })
    }
}

const fn kept_volatility(of: Volatility) -> FunctionVolatility {
    match of {
        Volatility::Immutable => FunctionVolatility::Immutable,
        Volatility::Stable => FunctionVolatility::Stable,
        Volatility::Volatile => FunctionVolatility::Volatile,
    }
}

fn kept(argument: &thermocline_query::analyze::Argument) -> FunctionArgument {
    FunctionArgument {
        name: argument.name.as_deref().map(str::to_owned),
        type_oid: argument.oid,
        default: argument.default.as_deref().map(str::to_owned),
    }
}

/// A function as messages name it.
fn signature(def: &FunctionDef) -> String {
    let types: Vec<String> = def.types().map(|oid| format_type(oid, -1)).collect();
    format!("{}({})", def.name, types.join(","))
}
