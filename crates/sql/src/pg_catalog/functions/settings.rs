//! `current_setting`, `set_config`, `current_schemas`.

use crate::analysis::SettingChange;
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::environment::SystemEnvironment;
use crate::pg_catalog::session::SystemSession;

pub(super) fn current_schemas(session: &SystemSession, values: &[Datum]) -> Datum {
    let implicit = values.first().is_some_and(Datum::is_true);
    let path: Vec<&str> = match implicit {
        true => session.search_path().collect(),
        false => {
            let listed = session.facts.creation_path.iter();
            listed.map(String::as_str).collect()
        }
    };
    let there = path.into_iter();
    let there = there.filter(|name| session.schema_oid(name).is_some());
    Datum::array(there.map(Datum::text))
}

pub(super) fn current_setting(run: &SystemEnvironment, values: &[Datum]) -> Result<Datum> {
    let Some(name) = values.first().and_then(Datum::as_text) else {
        return Ok(Datum::Null);
    };
    if let Some(value) = run.requested_setting(name) {
        return Ok(Datum::text(value));
    }
    let settings = run.session().facts.settings.as_ref();
    match settings.and_then(|settings| settings.get(name)) {
        Some(value) => Ok(Datum::text(&value)),
        None if values.get(1).is_some_and(Datum::is_true) => Ok(Datum::Null),
        None => Err(SqlError::new(
            "42704",
            format!("unrecognized configuration parameter \"{name}\""),
        )),
    }
}

/// Notes the change; the session applies it when the query has run.
pub(super) fn set_config(run: &SystemEnvironment, values: &[Datum]) -> Result<Datum> {
    let Some(name) = values.first().and_then(Datum::as_text) else {
        return Err(SqlError::new("22004", "SET requires parameter name"));
    };
    let value = values
        .get(1)
        .and_then(Datum::as_text)
        .unwrap_or("")
        .to_owned();
    run.change_setting(SettingChange {
        name: name.to_owned(),
        value: value.clone(),
        local: values.get(2).is_some_and(Datum::is_true),
    });
    Ok(Datum::text(value))
}
