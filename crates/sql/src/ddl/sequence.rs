//! CREATE and ALTER SEQUENCE, and the sequences of serial and identity
//! columns.

use thermocline_engine::ddl::Change;
use thermocline_engine::{Catalog, SequenceDef};
use thermocline_values::types::DataType;

use super::{Definition, exists, names};
use crate::error::{Result, SqlError};
use crate::parse::grant::Owned;
use crate::parse::sequence::SequenceOptions;
use crate::parse::statement::{AlterSequence, CreateSequence};
use crate::parse::table::{AlterOperation, AlterTable};
use crate::temporary::is_temporary;

impl Definition<'_> {
    pub(super) async fn create_sequence(
        &mut self,
        create: &CreateSequence,
    ) -> Result<&'static str> {
        const TAG: &str = "CREATE SEQUENCE";
        let options = &create.options;
        let (schema, name) = self.new_name(&create.name, create.temporary).await?;
        if self.catalog().relation_exists(&schema, &name) {
            if create.if_not_exists {
                self.notice(
                    "42P07",
                    format!("relation \"{name}\" already exists, skipping"),
                );
                return Ok(TAG);
            }
            return Err(exists(&name));
        }
        let data_type = match &options.data_type {
            Some(name) => integer_type(name)?,
            None => DataType::BigInt,
        };
        let oid = self.db.allocate_oid();
        let mut def = definition(oid, &schema, &name, options, data_type)?;
        def.owned_by = self.owner(options, &schema)?.flatten();
        self.apply(Change::CreateSequence(def)).await?;
        Ok(TAG)
    }

    pub(super) async fn alter_sequence(
        &mut self,
        name: &[String],
        if_exists: bool,
        change: &AlterSequence,
    ) -> Result<&'static str> {
        const TAG: &str = "ALTER SEQUENCE";
        let shown = name.join(".");
        let Some((schema, relation)) = self.find_relation(name) else {
            if if_exists {
                self.notice(
                    "42P01",
                    format!("relation \"{shown}\" does not exist, skipping"),
                );
                return Ok(TAG);
            }
            return Err(SqlError::undefined_table(&shown));
        };
        let catalog = self.catalog();
        let Some(old) = catalog.sequence_by_name(&schema, &relation) else {
            return Err(SqlError::new(
                "42809",
                format!("\"{relation}\" is not a sequence"),
            ));
        };
        match change {
            AlterSequence::Rename(new_name) => {
                let new_name = names::truncated(new_name);
                if catalog.relation_exists(&schema, &new_name) {
                    return Err(exists(&new_name));
                }
                let mut def = (**old).clone();
                def.name = new_name;
                let renamed = [&**old, &def].map(regclass);
                self.apply(Change::AlterSequence(def)).await?;
                self.rename_in_defaults(&renamed).await?;
            }
            AlterSequence::Options(options) => {
                let data_type = match &options.data_type {
                    Some(name) => integer_type(name)?,
                    None => old.data_type,
                };
                let mut def = altered(old, options, data_type)?;
                if let Some(owner) = self.owner(options, &schema)? {
                    not_of_identity(&catalog, old)?;
                    def.owned_by = owner;
                }
                self.apply(Change::AlterSequence(def.clone())).await?;
                if let Some(restart) = options.restart {
                    let (oid, value) = (def.oid, restart.unwrap_or(def.start));
                    self.apply(Change::RestartSequence { oid, value }).await?;
                }
            }
        }
        Ok(TAG)
    }

    /// ALTER TABLE of a sequence, if it is one: its owner and its name.
    pub(super) async fn alter_sequence_as_table(&mut self, alter: &AlterTable) -> Result<bool> {
        let Some((schema, name)) = self.find_relation(&alter.name) else {
            return Ok(false);
        };
        if self.catalog().sequence_by_name(&schema, &name).is_none() {
            return Ok(false);
        }
        let named = vec![schema, name];
        for operation in &alter.operations {
            match operation {
                AlterOperation::Owner(role) => {
                    self.change_owner(&Owned::Sequence(named.clone()), role)
                        .await?;
                }
                AlterOperation::Rename(name) => {
                    let change = AlterSequence::Rename(name.clone());
                    self.alter_sequence(&named, false, &change).await?;
                }
                _ => {
                    let message = format!("\"{}\" is not a table", named[1]);
                    return Err(SqlError::new("42809", message)
                        .with_detail("This operation is not supported for sequences."));
                }
            }
        }
        Ok(true)
    }

    /// Defaults that name a sequence name it anew. Who may rename it needs no right on their tables.
    pub(super) async fn rename_in_defaults(&mut self, [old, new]: &[String; 2]) -> Result<()> {
        let names_it = |default: &Option<String>| default.as_ref().is_some_and(|d| d.contains(old));
        for table in self.catalog().tables.values() {
            if !table.columns.iter().any(|column| names_it(&column.default)) {
                continue;
            }
            let mut def = table.def.clone();
            for default in def
                .columns
                .iter_mut()
                .filter_map(|column| column.default.as_mut())
            {
                *default = default.replace(old, new);
            }
            let change = Change::AlterTable(def);
            self.db.ddl(self.txn, self.options, change).await?;
        }
        Ok(())
    }

    /// What OWNED BY names for a sequence of this schema: table and column.
    #[allow(clippy::option_option)]
    fn owner(
        &self,
        options: &SequenceOptions,
        schema: &str,
    ) -> Result<Option<Option<(u32, usize)>>> {
        let Some(owned_by) = &options.owned_by else {
            return Ok(None);
        };
        let Some(path) = owned_by else {
            return Ok(Some(None));
        };
        let Some((column, table)) = path.split_last().filter(|(_, table)| !table.is_empty()) else {
            return Err(SqlError::syntax("invalid OWNED BY option")
                .with_hint("Specify OWNED BY table.column or OWNED BY NONE."));
        };
        let found = self
            .find_relation(table)
            .ok_or_else(|| SqlError::undefined_table(&table.join(".")))?;
        let catalog = self.catalog();
        let table = table_of(&catalog, &found)?;
        let position = super::create_table::position(&table.def, column)?;
        if (is_temporary(schema) || is_temporary(&table.schema)) && table.schema != schema {
            return Err(SqlError::new(
                "55000",
                "sequence must be in same schema as table it is linked to",
            ));
        }
        Ok(Some(Some((table.oid, position))))
    }
}

fn table_of<'c>(
    catalog: &'c Catalog,
    (schema, name): &(String, String),
) -> Result<&'c thermocline_engine::Table> {
    catalog
        .table_by_name(schema, name)
        .map(|table| &**table)
        .ok_or_else(|| SqlError::new("42809", format!("\"{name}\" is not a table")))
}

/// A relation's name as a constant of type `regclass` has it, with its schema: what is kept means
/// the same by any search path.
pub(super) fn quoted(schema: &str, name: &str) -> String {
    let quote = |name: &str| {
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit());
        if plain {
            name.to_owned()
        } else {
            format!("\"{}\"", name.replace('"', "\"\""))
        }
    };
    let full = format!("{}.{}", quote(schema), quote(name));
    full.replace('\'', "''")
}

/// 0A000 for the sequence of an identity column, which belongs to it.
fn not_of_identity(catalog: &Catalog, sequence: &SequenceDef) -> Result<()> {
    let table = sequence
        .owned_by
        .and_then(|(table, place)| Some((catalog.table(table)?, place)));
    match table {
        Some((table, place)) if table.columns[place].identity.is_some() => {
            Err(SqlError::unsupported(
                "cannot change ownership of identity sequence",
                "Drop the identity first, with ALTER TABLE ... DROP IDENTITY.",
            )
            .with_detail(format!(
                "Sequence \"{}\" is linked to table \"{}\".",
                sequence.name, table.name
            )))
        }
        _ => Ok(()),
    }
}

/// A sequence as a constant in a default.
pub(super) fn regclass(sequence: &SequenceDef) -> String {
    format!("'{}'::regclass", quoted(&sequence.schema, &sequence.name))
}

/// The default that is the next value of a sequence.
pub(super) fn next_of(sequence: &SequenceDef) -> String {
    format!("nextval({})", regclass(sequence))
}

fn integer_type(name: &str) -> Result<DataType> {
    Ok(match name {
        "smallint" | "int2" => DataType::SmallInt,
        "integer" | "int" | "int4" => DataType::Integer,
        "bigint" | "int8" => DataType::BigInt,
        _ => {
            return Err(SqlError::new(
                "22023",
                "sequence type must be smallint, integer, or bigint",
            ));
        }
    })
}

/// The definition that the options give.
pub(super) fn definition(
    oid: u32,
    schema: &str,
    name: &str,
    options: &SequenceOptions,
    data_type: DataType,
) -> Result<SequenceDef> {
    let increment = options.increment.unwrap_or(1);
    let (type_min, type_max) = bounds(data_type);
    let ascending = increment > 0;
    let min = options
        .min
        .flatten()
        .unwrap_or(if ascending { 1 } else { type_min });
    let max = options
        .max
        .flatten()
        .unwrap_or(if ascending { type_max } else { -1 });
    let def = SequenceDef {
        oid,
        schema: schema.to_owned(),
        name: name.to_owned(),
        data_type,
        start: options.start.unwrap_or(if ascending { min } else { max }),
        increment,
        min,
        max,
        cache: options.cache.unwrap_or(1),
        cycle: options.cycle.unwrap_or(false),
        owned_by: None,
        restarted_by: 0,
    };
    check(&def)?;
    Ok(def)
}

fn altered(
    old: &SequenceDef,
    options: &SequenceOptions,
    data_type: DataType,
) -> Result<SequenceDef> {
    let (type_min, type_max) = bounds(data_type);
    let (old_min, old_max) = bounds(old.data_type);
    let mut def = old.clone();
    def.data_type = data_type;
    def.increment = options.increment.unwrap_or(old.increment);
    let ascending = def.increment > 0;
    // Bounds that were the type's own follow the type.
    def.min = match options.min {
        Some(min) => min.unwrap_or(if ascending { 1 } else { type_min }),
        None if old.min == old_min => type_min,
        None => old.min,
    };
    def.max = match options.max {
        Some(max) => max.unwrap_or(if ascending { type_max } else { -1 }),
        None if old.max == old_max => type_max,
        None => old.max,
    };
    def.start = options.start.unwrap_or(old.start);
    def.cache = options.cache.unwrap_or(old.cache);
    def.cycle = options.cycle.unwrap_or(old.cycle);
    check(&def)?;
    if let Some(Some(restart)) = options.restart {
        if restart < def.min {
            return Err(invalid(format!(
                "RESTART value ({restart}) cannot be less than MINVALUE ({})",
                def.min
            )));
        }
        if restart > def.max {
            return Err(invalid(format!(
                "RESTART value ({restart}) cannot be greater than MAXVALUE ({})",
                def.max
            )));
        }
    }
    Ok(def)
}

const fn bounds(data_type: DataType) -> (i64, i64) {
    match data_type {
        DataType::SmallInt => (i16::MIN as i64, i16::MAX as i64),
        DataType::Integer => (i32::MIN as i64, i32::MAX as i64),
        _ => (i64::MIN, i64::MAX),
    }
}

/// PostgreSQL's checks, in its order and words.
fn check(def: &SequenceDef) -> Result<()> {
    let (type_min, type_max) = bounds(def.data_type);
    let type_name = def.data_type.base_name();
    if def.increment == 0 {
        return Err(invalid("INCREMENT must not be zero".to_owned()));
    }
    if def.max < type_min || def.max > type_max {
        return Err(invalid(format!(
            "MAXVALUE ({}) is out of range for sequence data type {type_name}",
            def.max
        )));
    }
    if def.min < type_min || def.min > type_max {
        return Err(invalid(format!(
            "MINVALUE ({}) is out of range for sequence data type {type_name}",
            def.min
        )));
    }
    if def.min >= def.max {
        return Err(invalid(format!(
            "MINVALUE ({}) must be less than MAXVALUE ({})",
            def.min, def.max
        )));
    }
    if def.start < def.min {
        return Err(invalid(format!(
            "START value ({}) cannot be less than MINVALUE ({})",
            def.start, def.min
        )));
    }
    if def.start > def.max {
        return Err(invalid(format!(
            "START value ({}) cannot be greater than MAXVALUE ({})",
            def.start, def.max
        )));
    }
    if def.cache <= 0 {
        return Err(invalid(format!(
            "CACHE ({}) must be greater than zero",
            def.cache
        )));
    }
    Ok(())
}

#[cold]
fn invalid(message: String) -> SqlError {
    SqlError::new("22023", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(options: SequenceOptions, data_type: DataType) -> Result<SequenceDef> {
        definition(1, "public", "s", &options, data_type)
    }

    #[test]
    fn defaults_depend_on_type_and_direction() {
        let up = made(SequenceOptions::default(), DataType::Integer).unwrap();
        assert_eq!((up.start, up.min, up.max), (1, 1, i64::from(i32::MAX)));
        let down = SequenceOptions {
            increment: Some(-1),
            ..SequenceOptions::default()
        };
        let down = made(down, DataType::SmallInt).unwrap();
        assert_eq!(
            (down.start, down.min, down.max),
            (-1, i64::from(i16::MIN), -1)
        );
    }

    #[test]
    fn contradictions_are_refused_in_postgresqls_words() {
        let bad = |options| {
            made(options, DataType::SmallInt)
                .unwrap_err()
                .message
                .clone()
        };
        let options = SequenceOptions::default;
        assert_eq!(
            bad(SequenceOptions {
                increment: Some(0),
                ..options()
            }),
            "INCREMENT must not be zero"
        );
        assert_eq!(
            bad(SequenceOptions {
                start: Some(0),
                ..options()
            }),
            "START value (0) cannot be less than MINVALUE (1)"
        );
        assert_eq!(
            bad(SequenceOptions {
                max: Some(Some(100_000)),
                ..options()
            }),
            "MAXVALUE (100000) is out of range for sequence data type smallint"
        );
    }

    #[test]
    fn names_for_nextval_are_quoted_where_needed() {
        assert_eq!(quoted("public", "t_a_seq"), "public.t_a_seq");
        assert_eq!(quoted("app", "T_seq"), "app.\"T_seq\"");
        assert_eq!(quoted("public", "o'x"), "public.\"o''x\"");
    }
}
