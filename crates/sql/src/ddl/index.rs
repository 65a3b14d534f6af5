//! CREATE INDEX and ALTER INDEX … RENAME. What an index computes of a row has a place in the row: a
//! generated column that only indexes read. So whatever makes rows makes it, too.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{ColumnDef, Hidden, IndexDef, IndexKind, Table, TableDef};
use thermocline_query::tree::{self, ExprKind};
use thermocline_query::types::domain::base;
use thermocline_query::types::{format_type, ids};
use thermocline_values::types::DataType;

use super::create_table::{COLUMNS_MAX, INDEX_COLUMNS_MAX, position, too_many_columns, with_key};
use super::partition_bound::covers_key;
use super::{Definition, exists, mentioned, names};
use crate::bind;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::parse::index::{CreateIndex, IndexKey};
use crate::temporary::path_within;
use crate::typed::held;

/// What a new index is made of.
struct MadeOf {
    /// The table, with the columns that the index needs.
    def: TableDef,
    /// Its columns, that of a predicate first.
    columns: Vec<usize>,
    include: Vec<usize>,
    /// The new columns, and what each of them is computed by.
    values: Vec<(usize, Expr)>,
}

impl CreateIndex {
    /// What makes an index like one that is there, for a table of the same columns.
    pub(super) fn like(table: &TableDef, index: &IndexDef, of: Vec<String>) -> Self {
        let text = |column: &usize| {
            let hidden = table.columns[*column].hidden.as_ref();
            hidden.map(|hidden| hidden.text.clone())
        };
        let named = |column: &usize| table.columns[*column].name.clone();
        let key = |column: &usize| match text(column) {
            Some(text) => IndexKey::Expression(text),
            None => IndexKey::Column(named(column)),
        };
        Self {
            name: None,
            if_not_exists: false,
            table: of,
            keys: table.key_of(index).iter().map(key).collect(),
            include: index.include.iter().map(named).collect(),
            predicate: table.predicate_of(index).as_ref().and_then(text),
            unique: index.unique,
            nulls_equal: index.nulls_equal,
            order: index.order.clone(),
            concurrently: false,
            only: false,
            access_method: match index.kind {
                IndexKind::BTree => None,
                IndexKind::Hash => Some("hash".to_owned()),
            },
        }
    }
}

impl Definition<'_> {
    pub(super) async fn create_index(&mut self, create: &CreateIndex) -> Result<&'static str> {
        const TAG: &str = "CREATE INDEX";
        let table = self.find_table(&create.table)?;
        let kind = index_kind(create.access_method.as_deref())?;
        if kind == IndexKind::Hash && create.unique {
            return Err(SqlError::unsupported(
                "access method \"hash\" does not support unique indexes",
                "Use btree, which is the default.",
            ));
        }
        if kind == IndexKind::Hash && !create.include.is_empty() {
            return Err(SqlError::unsupported(
                "access method \"hash\" does not support included columns",
                "Use btree, which is the default.",
            ));
        }
        if kind == IndexKind::Hash && !create.order.is_empty() {
            return Err(SqlError::unsupported(
                "access method \"hash\" does not support ASC/DESC options",
                "Use btree, which is the default.",
            ));
        }
        if create.keys.len() + create.include.len() > INDEX_COLUMNS_MAX {
            return Err(too_many_columns());
        }
        let made = self.made_of(&table, create)?;
        if create.unique {
            covers_key(&table.def, &made.columns, None)?;
        }
        if !made.values.is_empty() && !self.has_place_for(&table, &made) {
            return Err(SqlError::unsupported(
                "an index over an expression, or with a predicate, of a partition alone is not supported",
                "Create it on the partitioned table, which makes it on each partition.",
            ));
        }
        let shown = made.columns.iter().filter(|column| {
            let def = made.def.columns.get(**column);
            def.is_some_and(|def| !def.is_predicate())
        });
        let shown: Vec<usize> = shown.chain(&made.include).copied().collect();
        let column_names = column_names(&made.def, &shown);
        let catalog = self.catalog();
        let taken = |name: &str| catalog.relation_exists(&table.schema, name);
        let name = match &create.name {
            Some(name) => {
                let name = names::truncated(name);
                if taken(&name) {
                    if create.if_not_exists {
                        self.notice(
                            "42P07",
                            format!("relation \"{name}\" already exists, skipping"),
                        );
                        return Ok(TAG);
                    }
                    return Err(exists(&name));
                }
                name
            }
            None => {
                let joined = names::joined(column_names.iter().map(String::as_str));
                names::choose(&table.name, &joined, "idx", taken)
            }
        };
        if !made.values.is_empty() {
            self.rewrite(&table, made.def, &made.values, "CREATE INDEX")
                .await?;
        }
        let index = IndexDef {
            oid: self.db.allocate_oid(),
            name,
            columns: made.columns,
            unique: create.unique,
            primary: false,
            constraint: false,
            kind,
            include: made.include,
            nulls_equal: create.nulls_equal,
            order: create.order.clone(),
        };
        self.apply(Change::CreateIndex {
            table: table.oid,
            index,
        })
        .await?;
        if table.partitioned.is_some() && !create.only {
            Box::pin(self.index_below(table.oid)).await?;
        }
        Ok(TAG)
    }

    /// Whether the columns that an index needs have the places of the partitioned table's.
    fn has_place_for(&self, table: &Table, made: &MadeOf) -> bool {
        let catalog = self.catalog();
        let Some(parent) = table.partition_of.and_then(|oid| catalog.table(oid)) else {
            return true;
        };
        made.values.iter().all(|(place, _)| {
            let of = parent.columns.get(*place);
            of.is_some_and(|of| of.hidden == made.def.columns[*place].hidden)
        })
    }

    /// What a new index is made of, and the columns that have to be computed for it first.
    fn made_of(&self, table: &Arc<Table>, create: &CreateIndex) -> Result<MadeOf> {
        let mut made = MadeOf {
            def: table.def.clone(),
            columns: Vec::new(),
            include: Vec::new(),
            values: Vec::new(),
        };
        let catalog = self.catalog();
        let path = path_within(&table.schema, self.search_path);
        let context = self.bind_context(&catalog, &path);
        let predicate = create.predicate.as_deref();
        let predicate = predicate.map(|text| self.of_table(text, &table.def));
        let predicate = predicate.transpose()?;
        if let Some(text) = &predicate {
            bind::index_predicate(text, table, &context)?;
            let hidden = Hidden {
                text: text.clone(),
                name: String::new(),
                predicate: true,
            };
            let computed = format!("CASE WHEN {text} THEN 1::smallint END");
            self.computed(table, &mut made, (hidden, computed), DataType::SmallInt)?;
        }
        for key in &create.keys {
            let text = match key {
                IndexKey::Column(name) => {
                    let column = position(&table.def, name)?;
                    with_key(&table.columns[column])?;
                    made.columns.push(column);
                    continue;
                }
                IndexKey::Expression(text) => self.of_table(text, &table.def)?,
            };
            let (expr, name) = bind::index_expression(&text, table, &context)?;
            if let ExprKind::Column { column, .. } = expr.kind {
                with_key(&table.columns[column])?;
                made.columns.push(column);
                continue;
            }
            let data_type = key_type(&expr)?;
            // Nothing is computed of a row that is beyond the predicate.
            let computed = match &predicate {
                Some(predicate) => format!("CASE WHEN {predicate} THEN {text} END"),
                None => text.clone(),
            };
            let hidden = Hidden {
                text,
                name,
                predicate: false,
            };
            self.computed(table, &mut made, (hidden, computed), data_type)?;
        }
        let include = create.include.iter();
        let include = include.map(|name| position(&table.def, name));
        made.include = include.collect::<Result<_>>()?;
        Ok(made)
    }

    /// A column for what an index needs: one that is there, or a new one.
    fn computed(
        &self,
        table: &Arc<Table>,
        made: &mut MadeOf,
        (hidden, computed): (Hidden, String),
        data_type: DataType,
    ) -> Result<()> {
        let is_it = |column: &ColumnDef| {
            column.hidden.as_ref() == Some(&hidden)
                && column.default.as_ref() == Some(&computed)
                && column.data_type == data_type
        };
        if let Some(place) = made.def.columns.iter().position(is_it) {
            made.columns.push(place);
            return Ok(());
        }
        let place = made.def.columns.len();
        if place >= COLUMNS_MAX {
            let message = format!("tables can have at most {COLUMNS_MAX} columns");
            return Err(SqlError::new("54011", message).with_hint(
                "What an index computes takes a column's place, and so do dropped columns.",
            ));
        }
        let value = self.kept(&table.schema, |context| {
            bind::bind_generated(&computed, table, &hidden.text, data_type, context)
        })?;
        let column = ColumnDef::hidden(place, data_type, hidden, computed);
        made.def.columns.push(column);
        made.columns.push(place);
        made.values.push((place, value));
        Ok(())
    }

    /// Drops an index, and what was computed for it alone.
    pub(super) async fn drop_index(&mut self, table: u32, index: u32) -> Result<()> {
        let below = self.indexes_below(&*self.current(table)?, index);
        for (table, index) in below {
            let table = self.current(table)?;
            self.lock_whole(&table).await?;
            self.drop_index_alone(table.oid, index).await?;
        }
        self.drop_index_alone(table, index).await
    }

    async fn drop_index_alone(&mut self, table: u32, index: u32) -> Result<()> {
        self.apply(Change::DropIndex { table, index }).await?;
        let mut def = self.current(table)?.def.clone();
        match def.drop_unread() {
            true => self.apply(Change::AlterTable(def)).await,
            false => Ok(()),
        }
    }

    pub(super) async fn rename_index(
        &mut self,
        parts: &[String],
        if_exists: bool,
        to: &str,
    ) -> Result<&'static str> {
        const TAG: &str = "ALTER INDEX";
        let found = self.find_relation(parts);
        if found.is_none() && if_exists {
            let name = parts.join(".");
            self.notice(
                "42P01",
                format!("relation \"{name}\" does not exist, skipping"),
            );
            return Ok(TAG);
        }
        let catalog = self.catalog();
        let Some((table, at)) = found
            .as_ref()
            .and_then(|(schema, relation)| catalog.index_by_name(schema, relation))
        else {
            return Err(match found {
                Some((_, relation)) => {
                    SqlError::new("42809", format!("\"{relation}\" is not an index"))
                }
                None => SqlError::undefined_table(&parts.join(".")),
            });
        };
        let new_name = names::truncated(to);
        if catalog.relation_exists(&table.schema, &new_name) {
            return Err(exists(&new_name));
        }
        let mut def = table.def.clone();
        def.indexes[at].name = new_name;
        self.apply(Change::AlterTable(def)).await?;
        Ok(TAG)
    }
}

fn index_kind(method: Option<&str>) -> Result<IndexKind> {
    match method {
        None | Some("btree") => Ok(IndexKind::BTree),
        Some("hash") => Ok(IndexKind::Hash),
        Some(name @ ("gin" | "gist" | "spgist" | "brin" | "bloom")) => Err(SqlError::unsupported(
            format!("access method \"{name}\" is not supported"),
            "Use btree or hash.",
        )),
        Some(name) => {
            let message = format!("access method \"{name}\" does not exist");
            Err(SqlError::new("42704", message))
        }
    }
}

/// The type of the column that has an expression's values.
fn key_type(expr: &tree::Expr) -> Result<DataType> {
    // A `char` without a length is stored without its blanks, which its value has.
    let is_whole = expr.modifier >= 0 || base(expr.oid) != ids::BPCHAR;
    let data_type = held(expr.oid, expr.modifier).filter(|of| is_whole && of.has_key());
    data_type.ok_or_else(|| {
        SqlError::unsupported(
            format!(
                "an index over an expression of type {} is not supported",
                format_type(expr.oid, expr.modifier)
            ),
            "Cast it to a type that can be compared, such as text.",
        )
    })
}

/// What PostgreSQL calls the columns of an index over these of a table.
pub(crate) fn column_names(table: &TableDef, columns: &[usize]) -> Vec<String> {
    let of = columns.iter().map(|column| {
        let def = &table.columns[*column];
        match &def.hidden {
            Some(hidden) => hidden.name.as_str(),
            None => def.name.as_str(),
        }
    });
    names::of_index_columns(of)
}

/// The numbers of the indexes that read a column, by themselves or in what they compute.
pub(super) fn indexes_over(table: &Table, column: usize) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for index in &table.indexes {
        let mut reads = index.columns.contains(&column) || index.include.contains(&column);
        for place in &index.columns {
            reads = reads || computed_by(&table.def, *place, column)?;
        }
        if reads {
            found.push(index.oid);
        }
    }
    Ok(found)
}

/// Whether a column that only indexes read is computed by another.
pub(super) fn computed_by(table: &TableDef, place: usize, column: usize) -> Result<bool> {
    match table.columns[place].computed() {
        Some(text) => Ok(mentioned::columns(text, table)?.contains(&column)),
        None => Ok(false),
    }
}
