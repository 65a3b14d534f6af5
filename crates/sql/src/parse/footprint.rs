//! What parsing a text will take, known before it is parsed: a statement of eight
//! megabytes is millions of tokens, each many times as large as its text. One pass over
//! the bytes, without allocation; an estimate from above.

/// What a token takes in PostgreSQL's tree and in what is made of it, at its most: a node, the
/// cell of a list, the text, and the typed expression.
const TOKEN_BYTES: usize = 340;

/// The bytes that the tokens, the tree and the plan of `sql` will take at their most.
#[must_use]
pub(crate) fn footprint(sql: &str) -> u64 {
    (sql.len() * 3 + tokens(sql) * TOKEN_BYTES) as u64
}

/// About how many tokens `sql` has, blanks among them.
fn tokens(sql: &str) -> usize {
    #[derive(PartialEq)]
    enum Kind {
        Word,
        Blank,
        Other,
    }
    let mut count = 0;
    let mut before = Kind::Other;
    let mut quote = None;
    for byte in sql.bytes() {
        if let Some(open) = quote {
            if byte == open {
                quote = None;
            }
            continue;
        }
        let kind = match byte {
            b'\'' | b'"' => {
                quote = Some(byte);
                Kind::Other
            }
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' | b'$' | 128.. => Kind::Word,
            b' ' | b'\t' | b'\n' | b'\r' => Kind::Blank,
            _ => Kind::Other,
        };
        // Each newline is a token of its own.
        if kind == Kind::Other || kind != before || byte == b'\n' {
            count += 1;
        }
        before = kind;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::super::scan::Tokens;
    use super::*;

    #[test]
    fn no_text_has_many_more_tokens_than_estimated() {
        for sql in [
            "select 1+1, 'a string; with ''quotes''' from t where id = $1",
            "insert into t values (1,2,'x'),(3,4,'y'), (5 , 6 , 'z')",
            "select \"a b\".c::text[] -- comment\n, x.y.z /* more */ from s.t\n\n\n  where a<>b and c->>'d' = e.f",
            "select $$dollar 'quoted$$, E'\\n', 1.5e10, äöü",
            "((((((((((((((((1))))))))))))))))",
        ] {
            let real = Tokens::new(sql).count();
            let estimated = tokens(sql);
            assert!(estimated + 4 >= real, "{estimated} for {real}: {sql}");
            assert!(estimated <= real * 4, "{estimated} for {real}: {sql}");
        }
    }

    #[test]
    fn a_long_literal_is_its_text_and_many_rows_are_their_tokens() {
        let literal = format!("select '{}'", "x".repeat(1 << 20));
        assert!(footprint(&literal) < 4 << 20);
        let rows = format!("insert into t values {}(1)", "(1,2),".repeat(100_000));
        assert!(footprint(&rows) > 100_000 * 5 * 100);
    }
}
