//! A change against the catalogs that it is between.

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::catalog::authority::{Object, RoleDef};

fn def<D: DeserializeOwned>(value: serde_json::Value) -> D {
    serde_json::from_value(value).expect("a definition")
}

fn table(oid: u32, name: &str, index: &str, note: &str) -> Arc<Table> {
    let index = json!({"oid": oid + 1000, "name": index, "columns": [], "unique": false,
        "primary": false, "constraint": false, "kind": "BTree"});
    let def = def(
        json!({"oid": oid, "storage": oid, "schema": "public", "name": name,
        "columns": [], "indexes": [index], "checks": [], "partition_key": [], "evictable": true,
        "options": {"note": note}}),
    );
    Arc::new(Table::new(def, 4))
}

#[derive(Clone, Debug)]
enum Edit {
    Table(u32, String, String, String),
    DropTable(u32),
    View(u32, String, u32),
    DropView(u32),
    Sequence(u32, String),
    Schemas(u32),
    Comment(u32, Option<String>),
    Owner(u32, u32),
    Role(u32),
}

fn edit() -> impl Strategy<Value = Edit> {
    let (oid, name) = (|| 1u32..6, || "[a-c]");
    prop_oneof![
        4 => (oid(), name(), name(), name()).prop_map(|(o, n, i, t)| Edit::Table(o, n, i, t)),
        2 => oid().prop_map(Edit::DropTable),
        2 => (10u32..13, name(), 1u32..9).prop_map(|(o, n, d)| Edit::View(o, n, d)),
        1 => (10u32..13).prop_map(Edit::DropView),
        1 => (20u32..23, name()).prop_map(|(o, n)| Edit::Sequence(o, n)),
        1 => (0u32..3).prop_map(Edit::Schemas),
        2 => (oid(), prop::option::of(name())).prop_map(|(o, t)| Edit::Comment(o, t)),
        2 => (oid(), 10u32..12).prop_map(|(o, r)| Edit::Owner(o, r)),
        1 => (11u32..14).prop_map(Edit::Role),
    ]
}

fn apply(catalog: &mut Catalog, edit: Edit) {
    // A name has one meaning, as those see to who make objects.
    let is_free = |catalog: &Catalog, name: &str, oid: u32| {
        let image = catalog.image(0, 0);
        let tables = image.tables.iter().filter(|table| table.oid != oid);
        let mut names: Vec<&str> = tables
            .flat_map(|table| [&table.name, &table.indexes[0].name])
            .map(String::as_str)
            .collect();
        names.extend((image.views.iter().filter(|def| def.oid != oid)).map(|def| &*def.name));
        names.extend((image.sequences.iter().filter(|def| def.oid != oid)).map(|def| &*def.name));
        !names.contains(&name)
    };
    match edit {
        Edit::Table(oid, name, index, note) => {
            let free = is_free(catalog, &name, oid) && is_free(catalog, &index, oid);
            if free && name != index {
                catalog.tables.insert(oid, table(oid, &name, &index, &note));
            }
        }
        Edit::DropTable(oid) => drop(catalog.tables.remove(&oid)),
        Edit::View(oid, name, depth) if is_free(catalog, &name, oid) => {
            let def = def(
                json!({"oid": oid, "schema": "public", "name": name, "columns": [],
                "query": "select 1", "reads": [], "obstacle": null, "depth": depth}),
            );
            catalog.views.insert(oid, Arc::new(def));
        }
        Edit::DropView(oid) => drop(catalog.views.remove(&oid)),
        Edit::Sequence(oid, name) if is_free(catalog, &name, oid) => {
            let def = def(json!({"oid": oid, "schema": "public", "name": name,
                "data_type": "BigInt", "start": 1, "increment": 1, "min": 1, "max": 9, "cache": 1,
                "cycle": false, "owned_by": null}));
            catalog.sequences.insert(oid, Arc::new(def));
        }
        Edit::View(..) | Edit::Sequence(..) => {}
        Edit::Schemas(count) => {
            let schema = |number| def(json!({"oid": 2200 + number, "name": format!("s{number}")}));
            catalog.schemas = (0..count).map(schema).collect();
        }
        Edit::Comment(oid, text) => {
            let comments = Arc::make_mut(&mut catalog.comments);
            apply_entries(comments, vec![(CommentOn::Type(oid), text)]);
        }
        Edit::Owner(oid, role) => {
            let authority = Arc::make_mut(&mut catalog.authority);
            authority.rights_mut(Object::Table(oid)).owner = role;
        }
        Edit::Role(oid) => {
            let role = RoleDef::new(oid, &format!("r{oid}"));
            Arc::make_mut(&mut catalog.authority)
                .roles
                .insert(oid, role);
        }
    }
}

/// All that is kept of a catalog, as text; and which names it knows.
fn shown(catalog: &Catalog) -> (String, Vec<String>, u32) {
    let image = serde_json::to_string(&catalog.image(0, 0)).expect("text");
    let names = ["a", "b", "c"].map(|name| format!("{:?}", catalog.named("public", name)));
    (image, names.to_vec(), catalog.deepest_view())
}

proptest! {
    #[test]
    fn a_change_that_was_logged_makes_the_catalog_that_was_committed(
        first in prop::collection::vec(edit(), 0..30),
        then in prop::collection::vec(edit(), 0..12),
    ) {
        let mut old = Catalog::empty();
        first.into_iter().for_each(|edit| apply(&mut old, edit));
        old.index_names(&Catalog::empty());
        let mut new = old.clone();
        then.into_iter().for_each(|edit| apply(&mut new, edit));
        new.version += 3;
        new.index_names(&old);
        let logged = serde_json::to_vec(&CatalogChange::between(&old, &new)).expect("text");
        prop_assert!(logged.starts_with(CHANGE_BEGINS));
        let change: CatalogChange = serde_json::from_slice(&logged).expect("a change");
        prop_assert!(change.check("here").is_ok());
        let put = change.tables().len();
        let made = change.apply(&old, 4).expect("it is the one that was changed");
        prop_assert_eq!(shown(&made), shown(&new));
        // What was not changed is shared, and so is not told anew.
        prop_assert!(changes(&old.tables, &made.tables).filter(|it| it.2.is_some()).count() <= put);
        let image = new.image(0, 0);
        let mut numbers = image.tables.iter().flat_map(|table| [table.oid, table.indexes[0].oid]);
        prop_assert!(numbers.all(|oid| new.uses_oid(oid) && made.uses_oid(oid)));
        prop_assert!(!made.uses_oid(5000));
        // As if all were read from an image.
        prop_assert_eq!(shown(&Catalog::from_image(&image, 4, &Catalog::empty())), shown(&new));
    }
}

#[test]
fn a_change_of_another_catalog_is_refused() {
    let old = Catalog::empty();
    let mut new = old.clone();
    new.version += 1;
    let change = || CatalogChange::between(&old, &new);
    let error = change()
        .apply(&new, 4)
        .expect_err("it changes the one before");
    assert!(
        error.to_string().contains("version 2 comes before it"),
        "{error}"
    );
    assert!(change().apply(&old, 4).is_ok());
}

/// With each definition all that was there before was logged.
#[test]
fn a_record_is_as_long_as_the_change() {
    let mut old = Catalog::empty();
    for oid in 1..500 {
        let table = table(oid, &format!("t{oid}"), &format!("i{oid}"), "");
        old.tables.insert(oid, table);
        let authority = Arc::make_mut(&mut old.authority);
        authority.rights_mut(Object::Table(oid)).owner = 77;
    }
    let mut new = old.clone();
    new.tables.insert(900, table(900, "new", "new_index", ""));
    let authority = Arc::make_mut(&mut new.authority);
    authority.rights_mut(Object::Table(900)).owner = 77;
    new.tables.remove(&7);
    let logged = serde_json::to_vec(&CatalogChange::between(&old, &new)).expect("text");
    assert!(logged.len() < 1200, "{} bytes", logged.len());
}
