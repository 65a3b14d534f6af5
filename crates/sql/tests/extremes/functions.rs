//! Every function, operator and cast that there is, with extreme values of its types: as
//! constants, of a row by key, and of the rows of a join.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::fixture::Server;
use crate::values::{COLUMNS, TYPES, column, tables, value};
use crate::{Victim, generator, on_runtime, seconds};

const OPERATORS: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "||",
    "=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "&",
    "|",
    "#",
    "<<",
    ">>",
    "~",
    "~*",
    "!~",
    "like",
    "ilike",
    "not like",
    "similar to",
    "is distinct from",
    "and",
    "or",
    "@>",
    "<@",
    "&&",
    "->",
    "->>",
];
const PREFIXES: &[&str] = &["-", "+", "not ", "~", "@", "|/ ", "||/ "];
/// The most arguments that are tried.
const ARGUMENTS_MAX: usize = 4;

/// Functions that wait or end sessions.
fn is_harmless(name: &str) -> bool {
    !["pg_sleep", "pg_cancel_backend", "pg_terminate_backend"].contains(&name)
}

/// What is called.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Call {
    Function(String),
    Operator(&'static str),
    Prefix(&'static str),
    Cast(&'static str),
    Extract(&'static str),
}

impl Call {
    fn write(&self, arguments: &[String]) -> String {
        let argument = |at: usize| arguments.get(at).map_or("null", String::as_str);
        match self {
            Self::Function(name) => format!("\"{name}\"({})", arguments.join(", ")),
            Self::Operator(operator) => format!("({}) {operator} ({})", argument(0), argument(1)),
            Self::Prefix(operator) => format!("{operator}({})", argument(0)),
            Self::Cast(to) => format!("({})::{to}", argument(0)),
            Self::Extract(field) => format!("extract({field} from {})", argument(0)),
        }
    }

    fn arguments(&self, random: &mut StdRng) -> usize {
        match self {
            Self::Function(_) => random.random_range(0..=ARGUMENTS_MAX),
            Self::Operator(_) => 2,
            _ => 1,
        }
    }
}

const FIELDS: &[&str] = &[
    "century",
    "day",
    "decade",
    "dow",
    "doy",
    "epoch",
    "hour",
    "isodow",
    "isoyear",
    "julian",
    "microseconds",
    "millennium",
    "milliseconds",
    "minute",
    "month",
    "quarter",
    "second",
    "timezone",
    "week",
    "year",
];

fn calls(server: &Server) -> Vec<Call> {
    let names = server.engine.function_names();
    assert!(names.len() > 300, "{}", names.len());
    let functions = names.into_iter().filter(|name| is_harmless(name));
    functions
        .map(Call::Function)
        .chain(OPERATORS.iter().copied().map(Call::Operator))
        .chain(PREFIXES.iter().copied().map(Call::Prefix))
        .chain(TYPES.iter().map(|(name, _)| Call::Cast(name)))
        .chain(
            [
                "varchar(1)",
                "char(1)",
                "numeric(3,2)",
                "numeric(38,38)",
                "regclass",
                "json",
            ]
            .map(Call::Cast),
        )
        .chain(FIELDS.iter().copied().map(Call::Extract))
        .collect()
}

/// The SQLSTATEs of a call that there is not.
const NO_SUCH: &[&str] = &[
    "42883", "42804", "0A000", "42846", "42725", "42809", "42601", "42P01", "42703",
];

#[test]
fn no_function_operator_or_cast_panics() {
    on_runtime(|| {
        let mut random = generator("functions");
        let server = Arc::new(Server::new());
        let tables = tables(&mut random);
        let set_up: Vec<&str> = tables.iter().map(String::as_str).collect();
        let mut victim = Victim::new(Arc::clone(&server), &set_up);
        let calls = calls(&server);
        // The types that calls were seen to take.
        let mut taken: BTreeMap<Call, Vec<Vec<&str>>> = BTreeMap::new();
        let until = Instant::now() + Duration::from_secs(seconds());
        let (mut asked, mut answered) = (0u64, 0u64);
        let order: Vec<&Call> = calls.iter().collect();
        'rounds: loop {
            for call in &order {
                if Instant::now() > until {
                    break 'rounds;
                }
                let known = taken.get(*call).and_then(|known| known.choose(&mut random));
                let types: Vec<&str> = match known {
                    Some(types) if random.random_ratio(3, 4) => types.clone(),
                    _ => (0..call.arguments(&mut random))
                        .map(|_| TYPES.choose(&mut random).unwrap().0)
                        .collect(),
                };
                let place = random.random_range(0..4);
                let arguments: Vec<String> = types
                    .iter()
                    .map(|data_type| match place {
                        0 | 1 => value(&mut random, data_type),
                        _ if COLUMNS.contains(data_type) && random.random_ratio(2, 3) => {
                            column(data_type)
                        }
                        _ => value(&mut random, data_type),
                    })
                    .collect();
                let expression = call.write(&arguments);
                let sql = match place {
                    0 => format!("select {expression}"),
                    1 => format!("select {expression} from pg_class where relname = 'x'"),
                    2 => {
                        let key = random.random_range(0..12);
                        format!("select {expression} from x where k = {key}")
                    }
                    _ => format!("select {expression} from x join y using (k)"),
                };
                asked += 1;
                match victim.ask(&sql) {
                    Some(state) if NO_SUCH.contains(&state.as_str()) => {}
                    _ => {
                        answered += 1;
                        let known = taken.entry((*call).clone()).or_default();
                        if known.len() < 40 && !known.contains(&types) {
                            known.push(types);
                        }
                    }
                }
            }
        }
        println!(
            "{asked} calls, {answered} of calls that there are, {} of {} things",
            taken.len(),
            calls.len()
        );
        victim.end();
    });
}
