//! Expressions that the catalog keeps: what is accepted can be read at the next start.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;
use thermocline_engine::{Config, Database};

use crate::fixture::Server;
use crate::on_runtime;

fn server(device: &Arc<SimulatedDevice>) -> Server {
    let config = Config::new(Arc::clone(device) as _)
        .memory_limit(1 << 30)
        .partitions(2);
    Server::of(Database::open(config).expect("the database opens"))
}

#[test]
fn a_check_or_default_that_was_accepted_is_read_at_the_next_start() {
    on_runtime(|| {
        let nested = |open: &str, close: &str, size: usize| {
            format!("{}a{}", open.repeat(size), close.repeat(size))
        };
        let device = Arc::new(SimulatedDevice::new());
        let mut accepted = Vec::new();
        {
            let server = server(&device);
            let mut client = server.connect();
            for doubling in 0..14 {
                let size = 1usize << doubling;
                let expressions = [
                    format!("a{} > 0", "+1".repeat(size)),
                    format!("{} > 0", nested("(", ")", size)),
                    format!("{} > 0", nested("abs(", ")", size)),
                    format!("a > 0{}", " and a > 0".repeat(size)),
                    format!("a > 0{}", " or a = 0 and a > 1".repeat(size)),
                    format!("{} > 0", nested("case when true then ", " end", size)),
                    format!("{}a > 0", "not not ".repeat(size)),
                ];
                for (shape, check) in expressions.iter().enumerate() {
                    let name = format!("t{shape}_{size}");
                    let default = check.replace('a', "1").replace("1bs", "abs");
                    let default = default.replace("c1se", "case").replace("1nd", "and");
                    let answers = client.query(&format!(
                        "create table {name} (a int check ({check}), d bool default ({default}))"
                    ));
                    match answers.iter().find(|answer| answer.starts_with('E')) {
                        None => accepted.push(name),
                        Some(error) => assert!(
                            size > 100 && (error.contains("54001") || error.contains("54000")),
                            "{name}: {error}"
                        ),
                    }
                }
            }
        }
        assert!(accepted.len() > 60, "{accepted:?}");
        let server = server(&device);
        let mut client = server.connect();
        for name in accepted {
            assert_eq!(
                client.tag(&format!("insert into {name} (a) values (5)")),
                "INSERT 0 1"
            );
            assert_eq!(client.rows(&format!("select a, d from {name}")), ["5|t"]);
            client.tag(&format!("alter table {name} rename column a to b"));
            assert_eq!(
                client.tag(&format!("insert into {name} (b) values (6)")),
                "INSERT 0 1"
            );
        }
    });
}
