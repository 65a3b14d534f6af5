//! Elements of arrays in bodies of PL/pgSQL.

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "do $$ declare a int[]; b numeric(5,2)[]; c char(3)[]; i int := 2; begin a[1] := 5; a[i + 1] := '7'; raise notice '% %', a, a[2]; b[1] := 1.239; c[1] := 'x'; raise notice '% % |%|', b, c, c[1]; a[0] := 9; raise notice '%', a; end $$",
        &[
            "N 00000 {5,NULL,7} <NULL> [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 {1.24} {\"x  \"} |x  | [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 [0:3]={9,5,NULL,7} [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare a int[] := '{{1,2},{3,4}}'; begin a[1][2] := 9; a[2][1] = a[1][2] + 1; raise notice '%', a; end $$",
        &[
            "N 00000 {{1,9},{10,4}} [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare a int[]; begin a[null] := 1; end $$",
        &[
            "E 22004 array subscript in assignment must not be null [context PL/pgSQL function inline_code_block line 1 at assignment]",
        ],
    ),
    (
        "do $$ declare a int; begin a[1] := 1; end $$",
        &[
            "E 42804 cannot subscript type integer because it does not support subscripting [context PL/pgSQL function inline_code_block line 1 at assignment]",
        ],
    ),
    (
        "do $$ declare a int[]; begin a[1] := 'x'; end $$",
        &[
            "E 22P02 invalid input syntax for type integer: \"x\" [context PL/pgSQL function inline_code_block line 1 at assignment]",
        ],
    ),
    (
        "do $$ declare r record; begin select array[1,2] as x, 3 as y into r; r.x[2] := 7; raise notice '%', r; end $$",
        &[
            "N 00000 (\"{1,7}\",3) [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare a text[]; begin for n in 1..5 loop a[n] := 'v' || n; end loop; raise notice '%', array_to_string(a, ','); for n in array_lower(a, 1)..array_upper(a, 1) loop if a[n] = 'v3' then raise notice 'at %', n; end if; end loop; end $$",
        &[
            "N 00000 v1,v2,v3,v4,v5 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 at 3 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
];
