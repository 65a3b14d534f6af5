//! The names that calls of our functions have within plans. DataFusion asks for them again and
//! again, of every expression, and spells out all arguments: for calls in calls in calls that
//! takes the cube of their number. So arguments that are calls themselves stand as their hash.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use datafusion::error::Result;
use datafusion::logical_expr::Expr;

/// The name of a call: the same for the same arguments, and for no others.
pub(super) fn call_name(function: &str, arguments: &[Expr]) -> Result<String> {
    let mut name = format!("{function}(");
    for (place, argument) in arguments.iter().enumerate() {
        if place > 0 {
            name.push(',');
        }
        match is_short(argument) {
            true => write!(name, "{}", argument.schema_name())?,
            false => write!(
                name,
                "#{:016x}{:016x}",
                hash(0, argument),
                hash(1, argument)
            )?,
        }
    }
    name.push(')');
    Ok(name)
}

fn is_short(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::Placeholder(_) => true,
        Expr::Literal(value, _) => value.size() < 256,
        Expr::Cast(cast) => is_short(&cast.expr),
        Expr::Alias(alias) => is_short(&alias.expr),
        _ => false,
    }
}

/// The same whenever the program runs.
fn hash(seed: u8, expr: &Expr) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    expr.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn a_call_has_the_name_of_its_arguments_and_only_of_them() {
        let name = |arguments: &[Expr]| call_name("f", arguments).unwrap();
        assert_eq!(name(&[col("a"), lit(1)]), "f(a,Int32(1))");
        let (sum, other) = (col("a") + lit(1), col("a") + lit(2));
        let sums = [sum];
        assert_eq!(name(&sums), name(&sums.clone()));
        assert_ne!(name(&sums), name(&[other]));
        assert!(name(&[lit("x".repeat(1000))]).len() < 100);
    }
}
