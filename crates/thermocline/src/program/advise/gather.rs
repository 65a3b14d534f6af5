//! What the server knows of its columns: their bytes, how they are used, and how fast the device is.

use tokio_postgres::{Client, NoTls, Row};

use super::choice::Column;

/// What is chosen from, and how much memory the server has for it.
pub(super) struct Facts {
    pub columns: Vec<Listed>,
    /// The server's limit.
    pub memory_limit: u64,
    /// What the pages of warm columns may take.
    pub buffer: u64,
}

/// A column as the server has it.
pub(super) struct Listed {
    pub column: Column,
    /// What it is now, as `thermocline_columns` says it.
    pub state: String,
}

/// Why there is no advice.
pub(super) enum Failed {
    ToConnect(tokio_postgres::Error),
    ToAsk(String),
}

/// Names come as SQL has them. A tablespace that was not measured has the data directory's device.
const COLUMNS: &str = "
SELECT quote_ident(u.schemaname) || '.' || quote_ident(u.relname), quote_ident(u.attname),
       c.state, c.device_bytes, c.groups, u.indexed, u.projections + u.conditions, u.conditions,
       u.chunks, u.chunk_bytes, u.single_values,
       coalesce(s.read_us, d.read_latency_us), coalesce(s.write_mb_s, d.write_mb_s)
FROM thermocline_column_use u
JOIN thermocline_columns c ON c.relid = u.relid AND c.attname = u.attname
JOIN pg_class r ON r.oid = u.relid
LEFT JOIN thermocline_tablespaces s ON s.oid = r.reltablespace
CROSS JOIN (SELECT read_latency_us, write_mb_s FROM thermocline_devices LIMIT 1) d
ORDER BY 1, 2";

const MEMORY: &str =
    "SELECT name, bytes FROM thermocline_memory WHERE name IN ('limit', 'warm_buffer_max')";

/// A chunk of up to so many bytes is read whole for a single value; of a larger one two pages are: that with the
/// value's number, and that with its word.
const WHOLE_BYTES_MAX: u64 = 16 << 10;
const PAGES_OF_LARGE: u64 = 2;

/// Asks a server.
///
/// # Errors
/// Where nobody answers, and what the server says.
pub(super) async fn ask(url: &str) -> Result<Facts, Failed> {
    let connected = tokio_postgres::connect(url, NoTls).await;
    let (client, connection) = connected.map_err(Failed::ToConnect)?;
    let connection = tokio::spawn(connection);
    let facts = of(&client).await.map_err(|error| {
        Failed::ToAsk(match error.as_db_error() {
            Some(error) => format!("{} ({})", error.message(), error.code().code()),
            None => error.to_string(),
        })
    });
    drop(client);
    // What became of the connection is said by the queries.
    let _ = connection.await;
    facts
}

async fn of(client: &Client) -> Result<Facts, tokio_postgres::Error> {
    let mut facts = Facts {
        columns: Vec::new(),
        memory_limit: 0,
        buffer: 0,
    };
    for row in client.query(MEMORY, &[]).await? {
        let name: &str = row.try_get(0)?;
        match name {
            "limit" => facts.memory_limit = count(&row, 1)?,
            _ => facts.buffer = count(&row, 1)?,
        }
    }
    for row in client.query(COLUMNS, &[]).await? {
        facts.columns.push(listed(&row)?);
    }
    Ok(facts)
}

fn count(row: &Row, place: usize) -> Result<u64, tokio_postgres::Error> {
    let count: i64 = row.try_get(place)?;
    Ok(count.max(0).cast_unsigned())
}

fn listed(row: &Row) -> Result<Listed, tokio_postgres::Error> {
    let (bytes, groups) = (count(row, 3)?, count(row, 4)?);
    let is_indexed: bool = row.try_get(5)?;
    let (chunks, chunk_bytes, singles) = (count(row, 8)?, count(row, 9)?, count(row, 10)?);
    let (read_us, mb_s): (f64, f64) = (row.try_get(11)?, row.try_get(12)?);
    let is_large = bytes / groups.max(1) > WHOLE_BYTES_MAX;
    let pages = if is_large { PAGES_OF_LARGE } else { 1 };
    let reads_ns = |reads: u64| reads as f64 * read_us * 1e3;
    let bytes_ns = chunk_bytes as f64 * 1e9 / (mb_s.max(1.0) * 1e6);
    Ok(Listed {
        state: row.try_get(2)?,
        column: Column {
            table: row.try_get(0)?,
            name: row.try_get(1)?,
            bytes,
            uses: count(row, 6)?,
            has_open_condition: !is_indexed && count(row, 7)? > 0,
            scan_ns: (reads_ns(chunks) + bytes_ns) as u64,
            single_ns: reads_ns(singles.saturating_mul(pages)) as u64,
        },
    })
}
