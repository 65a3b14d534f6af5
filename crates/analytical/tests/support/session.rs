//! A session for functions that ask about the server: the running PostgreSQL answers.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_query::call::{Call, Environment, Plain, Settings};
use thermocline_query::datum::Datum;
use thermocline_query::error::{QueryError, Result};
use thermocline_query::types::{self, ids};
use tokio::runtime::Handle;
use tokio_postgres::{Client, SimpleQueryMessage};

/// The session of a client.
pub struct Session {
    pub client: Arc<Client>,
    pub plain: Plain,
    pub known: Mutex<HashMap<String, Datum>>,
}

fn literal(value: &Datum) -> Result<String> {
    let plain = Plain::default();
    let text = |oid: u32| types::to_text(&Call::new(&plain, &[], oid), oid, value);
    Ok(match value {
        Datum::Null => "NULL".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int2(value) => format!("{value}::int2"),
        Datum::Int4(value) => value.to_string(),
        Datum::Int8(value) => format!("{value}::int8"),
        Datum::Oid(value) => format!("{value}::oid"),
        Datum::Char(value) => format!("'{}'::\"char\"", char::from(*value)),
        Datum::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Datum::Array(array) => {
            let oid = types::array_of(array.element);
            let name = types::format_type(oid, -1);
            format!("'{}'::{name}", text(oid)?.replace('\'', "''"))
        }
        _ => return Err(QueryError::unsupported("an argument of another type", "")),
    })
}

impl Session {
    async fn answer(&self, sql: &str) -> Result<Datum> {
        let answer = self.client.simple_query(sql).await;
        let messages = answer.map_err(|error| match error.as_db_error() {
            Some(error) => QueryError::new("0A000", error.message().to_owned()),
            None => QueryError::internal(error.to_string()),
        })?;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        // A function of rows may have none.
        let Some((row, text)) = row.and_then(|row| Some((row, row.get(1)?))) else {
            return Ok(Datum::Null);
        };
        let oid = row.get(0).and_then(|oid| oid.parse().ok()).unwrap_or(0);
        let is_known = types::by_oid(oid).is_some() || types::element_of(oid).is_some();
        match is_known && oid != ids::CSTRING {
            true => super::oracle::value(oid, text),
            false => Ok(Datum::text(text)),
        }
    }
}

impl Environment for Session {
    fn settings(&self) -> &Settings {
        &self.plain.settings
    }

    fn transaction_time(&self) -> i64 {
        0
    }

    fn statement_time(&self) -> i64 {
        0
    }

    fn room(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn check_interrupted(&self) -> Result<()> {
        Ok(())
    }

    fn call(&self, name: &str, arguments: &[Datum]) -> Result<Datum> {
        let arguments = arguments.iter().map(literal).collect::<Result<Vec<_>>>()?;
        let call = format!("{name}({})", arguments.join(", "));
        let value = match name {
            // What reads a name gives the number.
            "regclassin" | "regtypein" | "regprocin" | "regprocedurein" | "regnamespacein"
            | "regrolein" | "regoperin" | "regoperatorin" | "regcollationin" => {
                format!("{call}::oid")
            }
            // The server reads no tree: it has to find it.
            "pg_get_expr" => {
                let more = arguments[1..].join(", ");
                format!(
                    "(select pg_get_expr(t, {more}) from (select adbin from pg_attrdef
                      union all select indexprs from pg_index union all select indpred from pg_index
                      union all select conbin from pg_constraint) x (t)
                      where t::text = {} limit 1)",
                    arguments[0]
                )
            }
            _ => call,
        };
        if let Some(known) = self.known.lock().get(&value) {
            return Ok(known.clone());
        }
        let sql = format!("select pg_typeof({value})::oid, {value}::text");
        let answer = self.answer(&sql);
        let answer = tokio::task::block_in_place(|| Handle::current().block_on(answer))?;
        if !matches!(name, "nextval" | "random" | "set_config") {
            self.known.lock().insert(value, answer.clone());
        }
        Ok(answer)
    }
}
