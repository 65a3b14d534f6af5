//! Functions that users make. To the engine they are texts: what the names in a body mean is found
//! out by the floor above, whenever the function is called.

use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::error::{Error, Result};

/// A function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionDef {
    /// Object id; stays for the function's life.
    pub oid: u32,
    /// Schema's name.
    pub schema: String,
    /// Name. Several functions may have it, with arguments of other types.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<FunctionArgument>,
    /// The number of the type that it gives; of one row, where it gives several.
    pub result: u32,
    /// It gives any number of rows.
    pub returns_set: bool,
    /// The columns of what it gives, where they are declared with it (OUT, TABLE).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<FunctionArgument>,
    /// It gives NULL where an argument is NULL.
    pub strict: bool,
    /// What it depends on.
    pub volatility: FunctionVolatility,
    /// The text of its body.
    pub body: String,
}

/// An argument, or a column of what a function gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionArgument {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The number of its type.
    pub type_oid: u32,
    /// The SQL text of what it is where nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// What a function's result depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionVolatility {
    /// On its arguments alone.
    Immutable,
    /// On the database, too, as a statement sees it.
    Stable,
    /// On anything; it may change rows.
    Volatile,
}

impl FunctionDef {
    /// The numbers of its arguments' types.
    pub fn types(&self) -> impl Iterator<Item = u32> {
        self.arguments.iter().map(|argument| argument.type_oid)
    }

    /// Whether a type is one of its arguments, its result or its columns.
    pub fn names_type(&self, oid: u32) -> bool {
        let mut columns = self.columns.iter().map(|column| column.type_oid);
        self.result == oid || self.types().any(|of| of == oid) || columns.any(|of| of == oid)
    }

    /// Whether it is called as another one is.
    fn is_called_as(&self, other: &Self) -> bool {
        self.schema == other.schema && self.name == other.name && self.types().eq(other.types())
    }

    /// About what it takes in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let argument = |argument: &FunctionArgument| {
            let default = argument.default.as_ref().map_or(0, String::len);
            64 + argument.name.as_ref().map_or(0, String::len) + default
        };
        let arguments = self.arguments.iter().chain(&self.columns).map(argument);
        size_of::<Self>() + self.name.len() + self.body.len() + arguments.sum::<usize>()
    }
}

impl Catalog {
    /// The functions of this name in a schema.
    pub fn functions_named(
        &self,
        schema: &str,
        name: &str,
    ) -> impl Iterator<Item = &std::sync::Arc<FunctionDef>> {
        let all = self.functions.values();
        all.filter(move |def| def.name == name && def.schema == schema)
    }
}

/// Puts a function into a catalog, new or in the place of the one of its number.
pub(crate) fn put_function(catalog: &mut Catalog, def: FunctionDef) -> Result<()> {
    catalog.functions.remove(&def.oid);
    crate::ddl::has_schema(catalog, &def.schema)?;
    let mut functions = catalog.functions.values();
    if functions.any(|other| other.is_called_as(&def)) {
        let message = format!(
            "function \"{}\" already exists with same argument types",
            def.name
        );
        return Err(Error::catalog("42723", message));
    }
    catalog.functions.insert(def.oid, std::sync::Arc::new(def));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(oid: u32, name: &str, types: &[u32]) -> FunctionDef {
        let argument = |type_oid: &u32| FunctionArgument {
            name: None,
            type_oid: *type_oid,
            default: None,
        };
        FunctionDef {
            oid,
            schema: "public".into(),
            name: name.into(),
            arguments: types.iter().map(argument).collect(),
            result: 23,
            returns_set: false,
            columns: Vec::new(),
            strict: false,
            volatility: FunctionVolatility::Volatile,
            body: "select 1".into(),
        }
    }

    #[test]
    fn functions_of_one_name_differ_in_their_arguments() {
        let mut catalog = Catalog::empty();
        put_function(&mut catalog, named(20_000, "f", &[23])).unwrap();
        put_function(&mut catalog, named(20_001, "f", &[25])).unwrap();
        let error = put_function(&mut catalog, named(20_002, "f", &[23])).unwrap_err();
        assert_eq!(error.sqlstate(), "42723");
        // In its own place.
        put_function(&mut catalog, named(20_000, "f", &[23])).unwrap();
        assert_eq!(catalog.functions_named("public", "f").count(), 2);
        assert_eq!(catalog.functions_named("public", "g").count(), 0);
    }

    #[test]
    fn a_catalog_keeps_functions() {
        let mut catalog = Catalog::empty();
        put_function(&mut catalog, named(20_000, "f", &[23, 25])).unwrap();
        let image = catalog.image(30_000, 1);
        let text = serde_json::to_string(&image).unwrap();
        let read: crate::catalog::CatalogImage = serde_json::from_str(&text).unwrap();
        let again = Catalog::from_image(&read, 4, &catalog);
        assert_eq!(again.functions, catalog.functions);
    }
}
