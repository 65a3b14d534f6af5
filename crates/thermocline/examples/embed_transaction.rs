//! The transaction and the prepared statement of docs/guides/embed.md, which `scripts/pages.py`
//! runs behind the program of that page, in the same directory.

use thermocline::{Embedded, Options, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let database = Embedded::open("data", &Options::default())?;
    let mut connection = database.connect()?;
    connection.execute("DELETE FROM t WHERE id = 2", &[])?;
    connection.transaction(|connection| {
        connection.execute("UPDATE t SET v = 'hot' WHERE id = 1", &[])?;
        connection.execute("INSERT INTO t VALUES (2, 'cold')", &[])
    })?;
    let statement = connection.prepare("SELECT v FROM t WHERE id = $1")?;
    let rows = connection.run(&statement, &[Value::Integer(2)])?;
    println!("{:?}", rows.get(0, "v"));
    connection.forget(&statement);
    database.close()?;
    Ok(())
}
