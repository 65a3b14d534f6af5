use thermocline_query::analyze::Conflict;

use super::read::{Signature, read};
use super::tree::Kind;

fn of_do() -> Signature {
    Signature {
        returns_nothing: true,
        ..Signature::default()
    }
}

#[test]
fn statements_have_their_lines_and_names_their_slots() {
    let text = "
        declare
          a int := 1; b alias for a; r record;
        begin
          <<outer>>
          for i in 1..10 loop
            b := a + i;
            select x into strict r from t where y = a;
            exit outer when b > 5;
          end loop;
          for i in reverse 3 .. 1 by 2 loop null; end loop;
        exception when division_by_zero or sqlstate '22012' then
          raise notice 'at %, %%', sqlerrm;
        end";
    let body = read(text, &of_do()).unwrap();
    let Kind::Block(block) = &body.block.kind else {
        panic!("no block");
    };
    assert_eq!(body.block.line, 2);
    let lines: Vec<(u32, &str)> = block
        .body
        .iter()
        .map(|one| (one.line, one.name()))
        .collect();
    let for_loop = "at FOR with integer loop variable";
    assert_eq!(lines, [(6, for_loop), (11, for_loop)]);
    assert_eq!(block.handlers[0].conditions.len(), 2);
    let Kind::ForIntegers(bounds, of) = &block.body[0].kind else {
        panic!("no loop over integers");
    };
    assert_eq!(
        (&*bounds.from.text, &*bounds.to.text),
        ("SELECT 1", "SELECT 10")
    );
    let Kind::Assign(target, _) = &of.body[0].kind else {
        panic!("no assignment");
    };
    // FOUND is the first slot.
    assert_eq!(target.slot, 1);
    let Kind::Sql(statement, Some(into)) = &of.body[1].kind else {
        panic!("no statement with INTO");
    };
    assert!(into.strict);
    assert_eq!(
        statement
            .text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        "select x from t where y = a"
    );
}

#[test]
fn what_is_wrong_is_refused() {
    for (text, sqlstate) in [
        ("begin", "42601"),
        ("begin x := 1; end", "42601"),
        ("begin if true then null; end; end", "42601"),
        ("begin exit; end", "42601"),
        ("begin raise notice '%'; end", "42601"),
        ("begin raise notice 'a', 1; end", "42601"),
        ("begin raise; end", "0Z002"),
        ("begin raise no_such_condition; end", "42704"),
        ("begin return 1; end", "42804"),
        ("begin return next 1; end", "42804"),
        ("begin perform 1 +; end", "42601"),
        ("begin select 1 into; end", "42601"),
        ("begin end loop", "42601"),
        ("declare a int; a int; begin end", "42601"),
        ("declare a constant int := 1; begin a := 2; end", "22005"),
        ("declare a int not null; begin end", "22004"),
        ("begin perform (1; end", "42601"),
        ("begin commit and chain; end", "0A000"),
        ("begin <<a>> begin continue a; end; end", "42601"),
        ("begin null; end; select 1", "42601"),
        ("", "42601"),
    ] {
        let error = read(text, &of_do()).unwrap_err();
        assert_eq!(error.sqlstate, sqlstate, "{text}: {error}");
    }
}

#[test]
fn nesting_has_an_end() {
    let deep = format!("{}null;{}", "begin ".repeat(10_000), " end;".repeat(10_000));
    assert_eq!(read(&deep, &of_do()).unwrap_err().sqlstate, "54001");
    let deep = format!(
        "begin perform {}1{}; end",
        "(".repeat(50_000),
        ")".repeat(50_000)
    );
    assert_eq!(read(&deep, &of_do()).unwrap_err().sqlstate, "54001");
    let long = format!("begin {} end", "null;".repeat(300_000));
    assert_eq!(read(&long, &of_do()).unwrap_err().sqlstate, "54000");
}

#[test]
fn any_tokens_come_to_an_end() {
    let words = [
        "begin",
        "end",
        "if",
        "then",
        "loop",
        "for",
        "in",
        "1..2",
        "..",
        "a",
        ":=",
        ";",
        "(",
        ")",
        "declare",
        "int",
        "exception",
        "when",
        "others",
        "case",
        "raise",
        "'x'",
        "<<",
        ">>",
        "$1",
        "return",
        "query",
        "into",
        "select",
        "%",
        "[",
        ".",
        "execute",
        "using",
        ",",
        "cursor",
    ];
    let mut seed = 42_u64;
    for _ in 0..3000 {
        let mut text = String::from("declare a int; begin ");
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text += words[(seed >> 33) as usize % words.len()];
            text += " ";
        }
        let _ = read(&text, &of_do());
    }
}

#[test]
fn options_of_a_body_say_what_a_name_means() {
    let conflict = |text: &str| read(text, &of_do()).map(|body| body.conflict);
    for (options, expected) in [
        ("", Conflict::Error),
        ("#variable_conflict use_column", Conflict::Column),
        (
            "#option dump\n#variable_conflict use_variable",
            Conflict::Variable,
        ),
        (
            "#variable_conflict error\n#print_strict_params on",
            Conflict::Error,
        ),
    ] {
        let body = format!("{options}\nbegin end");
        assert_eq!(conflict(&body).unwrap(), expected, "{body}");
    }
    for options in [
        "#variable_conflict use_nothing",
        "#print_strict_params maybe",
        "#unknown on",
        "#variable_conflict",
    ] {
        let error = conflict(&format!("{options}\nbegin end")).unwrap_err();
        assert_eq!(error.sqlstate, "42601", "{options}");
    }
}
