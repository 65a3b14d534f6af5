//! A row by its primary key, by a prepared statement of a session: what each read costs above the
//! engine, counted in instructions by callgrind (scripts/instructions.sh counts the engine's).
//!
//! `prepared_read READS [SETTING=VALUE …]`: run it for two numbers of reads, the difference is
//! what reads cost.
//!
//! ```text
//! valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file=out prepared_read 20000
//! ```

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use thermocline_device::SimulatedDevice;
use thermocline_engine::{Config, Database, block_on};
use thermocline_sql::session::SendFuture;
use thermocline_sql::{Client, ClientLink, Engine, Session, SqlError};

/// Rows of the table.
const ROWS: u32 = 1000;

/// A client that reads nothing of its answers.
struct Nobody;

impl ClientLink for Nobody {
    fn flush<'a>(&'a mut self, out: &'a mut BytesMut) -> SendFuture<'a, io::Result<()>> {
        out.clear();
        Box::pin(async { Ok(()) })
    }

    fn copy_data<'a>(&'a mut self) -> SendFuture<'a, Result<Option<Bytes>, SqlError>> {
        Box::pin(async { Ok(None) })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let reads: u32 = arguments.next().ok_or("prepared_read READS")?.parse()?;
    let config = Config::new(Arc::new(SimulatedDevice::new())).memory_limit(1 << 30);
    let database = Database::open(config)?;
    let engine = Engine::new(Arc::clone(&database))?;
    let mut session = Session::new(engine, "postgres", "postgres", &[], 1, 0)?;
    let mut client = Client {
        out: BytesMut::new(),
        link: Box::new(Nobody),
    };
    let mut prepare = String::from("create table t (a int primary key, b text)");
    for row in 0..ROWS {
        prepare.push_str(&format!("; insert into t values ({row}, 'row {row}')"));
    }
    for setting in arguments {
        let (name, value) = setting.split_once('=').ok_or("SETTING=VALUE")?;
        prepare.push_str(&format!("; set {name} = '{value}'"));
    }
    block_on(session.simple_query(&prepare, &mut client));
    block_on(session.parse("s", "select b from t where a = $1", &[23]))?;
    for read in 0..reads {
        let key = (read % ROWS).to_be_bytes();
        client.out.clear();
        block_on(session.bind("", "s", &[1], &[Some(&key)], &[1]))?;
        session.sync_follows(true);
        block_on(session.execute("", 0, &mut client))?;
        block_on(session.sync())?;
        if !client.out.ends_with(b"C\0\0\0\rSELECT 1\0") {
            return Err(format!("not a row: {:?}", client.out).into());
        }
    }
    drop(session);
    database.close()?;
    Ok(())
}
