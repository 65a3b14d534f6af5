//! Statements that give a row whole, or delete it, do not read it where it is evicted.

use super::database::Fixture;

/// Pairs 1 to 3 and three lines, all of them evicted.
fn evicted() -> Fixture {
    let fixture = Fixture::new();
    fixture.pairs();
    fixture.lines();
    fixture.count("INSERT INTO pairs VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)");
    fixture.count("INSERT INTO lines VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c')");
    fixture.reopened()
}

#[test]
fn evicted_rows_that_are_given_whole_are_not_read() {
    let fixture = evicted();
    let counts = || {
        let counters = fixture.db.counters();
        (counters.misses, counters.overwrites)
    };
    assert_eq!(
        fixture.rows("UPDATE pairs SET a = 'new', b = 7 WHERE id = 2 RETURNING b, a, id"),
        ["7|new|2"]
    );
    assert_eq!(
        fixture.count("UPDATE lines SET c = 'new' WHERE a = 1 AND b = 2"),
        1
    );
    assert_eq!(
        fixture.count("UPDATE lines SET c = 'x' WHERE a = 9 AND b = 2"),
        0
    );
    assert_eq!(counts(), (0, 2));
    assert_eq!(
        fixture.rows(
            "INSERT INTO pairs VALUES (3, 'put', 3), (5, 'put', 5) ON CONFLICT (id)
             DO UPDATE SET b = EXCLUDED.b, a = EXCLUDED.a RETURNING id, a"
        ),
        ["3|put", "5|put"]
    );
    assert_eq!(counts(), (0, 3));
    let error = fixture.error(
        "INSERT INTO pairs VALUES (1, 'put', 3), (1, 'put', 5) ON CONFLICT (id)
         DO UPDATE SET b = EXCLUDED.b, a = EXCLUDED.a",
    );
    assert_eq!(error.sqlstate, "21000");
    // What is asked of the new row is asked only where there is a row.
    for (sql, sqlstate) in [
        ("UPDATE pairs SET a = NULL, b = 1 WHERE id = 3", "23502"),
        ("UPDATE pairs SET a = 'x', b = -1 WHERE id = 3", "23514"),
    ] {
        assert_eq!(fixture.error(sql).sqlstate, sqlstate, "{sql}");
        assert_eq!(fixture.count(&sql.replace("id = 3", "id = 4")), 0, "{sql}");
    }
    assert_eq!(counts().0, 0);
    // These need what was there.
    assert_eq!(
        fixture.rows("UPDATE pairs SET a = a || '!', b = 1 WHERE id = 1 RETURNING a"),
        ["one!"]
    );
    assert_eq!(
        fixture.count("UPDATE lines SET c = 'y' WHERE a = 2 AND b = 1 AND c = 'z'"),
        0
    );
    assert_eq!(counts(), (2, 4));
    assert_eq!(
        fixture.rows("SELECT * FROM pairs WHERE id IN (1, 2, 3) ORDER BY id"),
        ["1|one!|1", "2|new|7", "3|put|3"]
    );
    assert_eq!(
        fixture.rows("SELECT c FROM lines WHERE a IN (1, 2) ORDER BY c"),
        ["a", "c", "new"]
    );
}

#[test]
fn evicted_rows_that_are_deleted_by_their_keys_are_not_read() {
    let fixture = evicted();
    let counts = || {
        let counters = fixture.db.counters();
        (counters.misses, counters.overwrites)
    };
    assert_eq!(fixture.count("DELETE FROM pairs WHERE id = 2"), 1);
    assert_eq!(fixture.count("DELETE FROM pairs WHERE id = 2"), 0);
    assert_eq!(fixture.count("DELETE FROM lines WHERE b = 2 AND a = 1"), 1);
    assert_eq!(counts(), (0, 2));
    // These need what was there.
    assert_eq!(
        fixture.rows("DELETE FROM pairs WHERE id = 3 RETURNING a"),
        ["three"]
    );
    assert_eq!(
        fixture.count("DELETE FROM lines WHERE a = 2 AND b = 1 AND c = 'z'"),
        0
    );
    assert_eq!(counts(), (2, 2));
    assert_eq!(fixture.rows("SELECT id FROM pairs"), ["1"]);
    assert_eq!(fixture.rows("SELECT c FROM lines ORDER BY c"), ["a", "c"]);
}
