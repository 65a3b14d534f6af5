//! The program of docs/guides/embed.md, which `scripts/pages.py` runs: it makes `data` in the
//! working directory.

use thermocline::{Embedded, Options, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let database = Embedded::open("data", &Options::default())?;
    let mut connection = database.connect()?;
    connection.execute(
        "CREATE TABLE IF NOT EXISTS t (id int PRIMARY KEY, v text)",
        &[],
    )?;
    connection.execute(
        "INSERT INTO t VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
        &[Value::Integer(1), Value::Text("warm".into())],
    )?;
    let rows = connection.execute("SELECT v FROM t WHERE id = $1", &[Value::Integer(1)])?;
    println!("{:?}", rows.get(0, "v"));
    database.close()?;
    Ok(())
}
