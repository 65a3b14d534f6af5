//! PostgreSQL's dialect as sqlparser knows it, with its mistakes put right:
//! - `a IS DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`; sqlparser
//!   takes `b AND c` for the right operand.
//! - An argument of a function is no longer read twice, to see whether its name is an expression:
//!   calls in calls took twice as long with each of them.
//! - What it tries in vain, and then in another way, takes time in proportion to the text.

use std::any::TypeId;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// sqlparser's own.
const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// The dialect of all parsing.
#[derive(Debug)]
pub(crate) struct PgDialect {
    /// How often an expression may yet begin. sqlparser reads some of what it did not
    /// understand a second time, and a third; where such things are in each other the times
    /// multiply.
    beginnings: AtomicU64,
}

impl PgDialect {
    /// For texts of our own.
    pub(crate) const fn unlimited() -> Self {
        Self {
            beginnings: AtomicU64::new(u64::MAX),
        }
    }

    /// To parse this many tokens with.
    pub(crate) const fn for_tokens(tokens: usize) -> Self {
        Self {
            beginnings: AtomicU64::new(tokens as u64 * 16 + 100_000),
        }
    }
}

macro_rules! as_sqlparser_knows {
    ($($method:ident)*) => {
        $(fn $method(&self) -> bool {
            BASE.$method()
        })*
    };
}

impl Dialect for PgDialect {
    fn dialect(&self) -> TypeId {
        BASE.dialect()
    }

    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let left = self.beginnings.load(Ordering::Relaxed);
        if left == 0 {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        self.beginnings.store(left - 1, Ordering::Relaxed);
        None
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let distinct = parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]);
        if !distinct
            && !parser.parse_keywords(&[
                Keyword::IS,
                Keyword::NOT,
                Keyword::DISTINCT,
                Keyword::FROM,
            ])
        {
            return None;
        }
        let left = Box::new(left.clone());
        Some(parser.parse_subexpr(precedence).map(|right| {
            if distinct {
                Expr::IsDistinctFrom(left, Box::new(right))
            } else {
                Expr::IsNotDistinctFrom(left, Box::new(right))
            }
        }))
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        BASE.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        BASE.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        BASE.is_identifier_part(character)
    }

    fn is_custom_operator_part(&self, character: char) -> bool {
        BASE.is_custom_operator_part(character)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        BASE.is_reserved_for_identifier(keyword)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        BASE.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    as_sqlparser_knows! {
        supports_unicode_string_literal
        supports_filter_during_aggregation
        supports_group_by_expr
        allow_extract_custom
        allow_extract_single_quotes
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_listen_notify
        supports_factorial_operator
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_colon_operator
        supports_empty_projections
        supports_nested_comments
        supports_string_escape_constant
        supports_numeric_literal_underscores
        supports_array_typedef_with_brackets
        supports_geometric_types
        supports_set_names
        supports_alter_column_type_using
        supports_notnull_operator
        supports_interval_options
        supports_create_table_like_parenthesized
        supports_select_wildcard_with_alias
        supports_comma_separated_trim
        supports_xml_expressions
        supports_comment_optimizer_hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(sql: &str) -> String {
        let expr = Parser::new(&PgDialect::unlimited())
            .try_with_sql(sql)
            .unwrap()
            .parse_expr()
            .unwrap();
        match expr {
            Expr::BinaryOp { left, op, right } => format!("[{left}] {op} [{right}]"),
            other => format!("[{other}]"),
        }
    }

    #[test]
    fn is_distinct_from_binds_closer_than_and() {
        for (sql, expected) in [
            (
                "a is distinct from 1 and f",
                "[a IS DISTINCT FROM 1] AND [f]",
            ),
            (
                "a is not distinct from b + 1 or f",
                "[a IS NOT DISTINCT FROM b + 1] OR [f]",
            ),
            (
                "f and a is distinct from 1 or g",
                "[f AND a IS DISTINCT FROM 1] OR [g]",
            ),
            (
                "not a is distinct from 1 and f",
                "[NOT a IS DISTINCT FROM 1] AND [f]",
            ),
            (
                "a is distinct from (1 and f)",
                "[a IS DISTINCT FROM (1 AND f)]",
            ),
            ("a is not null and f", "[a IS NOT NULL] AND [f]"),
        ] {
            assert_eq!(parsed(sql), expected);
        }
    }
}
