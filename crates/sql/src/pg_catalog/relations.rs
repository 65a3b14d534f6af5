//! The relations of `pg_catalog`, `information_schema` and our own views: their
//! columns are those of PostgreSQL 15 (`data/relations.tsv`); their content is
//! made by [`super::content`].

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::pg_type::PgType;

/// A column of a catalog relation.
#[derive(Debug, Clone)]
pub(crate) struct RelationColumn {
    pub name: &'static str,
    pub data_type: PgType,
}

/// A catalog relation.
#[derive(Debug)]
pub(crate) struct Relation {
    pub oid: u32,
    pub schema: &'static str,
    pub name: &'static str,
    /// `r` a table, `v` a view.
    pub kind: &'static str,
    pub columns: Vec<RelationColumn>,
}

impl Relation {
    /// The place of a column.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Tables of `pg_catalog` have the hidden column `tableoid`.
    pub(crate) fn has_table_oid(&self) -> bool {
        self.kind == "r"
    }
}

fn parse(line: &'static str) -> Option<Relation> {
    let mut fields = line.split('\t');
    let schema = fields.next()?;
    let name = fields.next()?;
    let oid = fields.next()?.parse().ok()?;
    let kind = fields.next()?;
    let columns = fields
        .next()?
        .split(',')
        .map(|column| {
            let (name, oid) = column.split_once(' ')?;
            Some(RelationColumn {
                name,
                data_type: PgType::of(oid.parse().ok()?),
            })
        })
        .collect::<Option<Vec<_>>>()?;
    Some(Relation {
        oid,
        schema,
        name,
        kind,
        columns,
    })
}

/// All of them, ours last.
pub(crate) static RELATIONS: LazyLock<Vec<Arc<Relation>>> = LazyLock::new(|| {
    include_str!("data/relations.tsv")
        .lines()
        .chain(crate::system_views::DEFINITIONS.lines())
        .filter_map(parse)
        .map(Arc::new)
        .collect()
});

static BY_NAME: LazyLock<HashMap<(&'static str, &'static str), usize>> = LazyLock::new(|| {
    RELATIONS
        .iter()
        .enumerate()
        .map(|(at, relation)| ((relation.schema, relation.name), at))
        .collect()
});

/// The relation of this name.
pub(crate) fn relation(schema: &str, name: &str) -> Option<&'static Arc<Relation>> {
    BY_NAME
        .get(&(schema, name))
        .and_then(|&at| RELATIONS.get(at))
}

/// The relation with this number.
pub(crate) fn relation_by_oid(oid: u32) -> Option<&'static Arc<Relation>> {
    RELATIONS.iter().find(|relation| relation.oid == oid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_data_is_read() {
        let lines = include_str!("data/relations.tsv").lines().count();
        assert!(RELATIONS.len() > lines);
        let class = relation("pg_catalog", "pg_class").unwrap();
        assert_eq!(class.oid, 1259);
        assert_eq!(class.columns[1].data_type, PgType::of(19));
        assert!(relation("information_schema", "tables").is_some());
        assert!(relation("pg_catalog", "thermocline_memory").is_some());
    }

    #[test]
    fn numbers_are_unique() {
        let mut seen = std::collections::HashSet::new();
        assert!(RELATIONS.iter().all(|relation| seen.insert(relation.oid)));
    }
}
