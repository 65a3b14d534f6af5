//! A procedure in Rust, called from Rust and from SQL (docs/guides/procedures.md).
//!
//! `cargo run --example procedure -- DIRECTORY`

use std::error::Error as StdError;

use thermocline::{Call, DataType, Embedded, Error, Options, Procedure, Procedures, Reach, Value};

/// Takes an amount from an account and returns what is left.
fn withdraw(call: &mut Call<'_, '_>, arguments: &[Value]) -> Result<Vec<Value>, Error> {
    let accounts = call.table("accounts")?;
    let Some(mut account) = call.get(&accounts, &arguments[..1])? else {
        return Err(Error::raised("P0002", "there is no such account"));
    };
    let (Value::BigInt(balance), Value::BigInt(amount)) = (&account.values[1], &arguments[1])
    else {
        return Err(Error::raised("22004", "an amount is wanted"));
    };
    if balance < amount {
        return Err(Error::raised("P0001", format!("only {balance} is left")));
    }
    account.values[1] = Value::BigInt(balance - amount);
    call.update(&accounts, &account)?;
    Ok(vec![account.values[1].clone()])
}

fn main() -> Result<(), Box<dyn StdError>> {
    let directory = std::env::args().nth(1).unwrap_or("procedure-data".into());
    let procedures = Procedures::new();
    procedures.register(
        Procedure::new("withdraw", withdraw)
            .parameter("account", DataType::BigInt)
            .parameter("amount", DataType::BigInt)
            .result("balance", DataType::BigInt)
            .reach(|arguments| Ok(Reach::row("accounts", &arguments[..1])))
            .deterministic(),
    )?;
    let options = Options {
        procedures,
        ..Options::default()
    };
    let database = Embedded::open(directory, &options)?;
    let mut connection = database.connect()?;
    connection.execute(
        "CREATE TABLE IF NOT EXISTS accounts (id bigint PRIMARY KEY, balance bigint NOT NULL)",
        &[],
    )?;
    connection.execute(
        "INSERT INTO accounts VALUES (1, 100) ON CONFLICT (id) DO UPDATE SET balance = 100",
        &[],
    )?;
    let left = database.call("withdraw", &[Value::BigInt(1), Value::BigInt(30)])?;
    println!("from Rust: {left:?}");
    let rows = connection.execute("CALL withdraw(1, $1)", &[Value::BigInt(20)])?;
    println!("from SQL:  {:?}", rows.get(0, "balance"));
    let refused = connection.execute("CALL withdraw(1, 500)", &[]);
    println!(
        "refused:   {}",
        refused
            .err()
            .map_or_else(String::new, |error| error.to_string())
    );
    database.close()?;
    Ok(())
}
