use super::*;

fn settings() -> Settings {
    Settings::new("postgres", &[("memory_limit", "256MB".to_owned())])
}

fn set(settings: &mut Settings, name: &str, value: &str) -> Result<()> {
    settings.set(name, Some(&[value.to_owned()]), false)
}

#[test]
fn defaults_are_postgresqls_but_for_isolation() {
    let settings = settings();
    assert_eq!(settings.show("datestyle").unwrap(), "ISO, MDY");
    assert_eq!(
        settings.show("DEFAULT_TRANSACTION_ISOLATION").unwrap(),
        "serializable"
    );
    assert_eq!(settings.show("memory_limit").unwrap(), "256MB");
    assert_eq!(settings.show("statement_timeout").unwrap(), "0");
    assert_eq!(
        *settings.search_path(),
        ["postgres".to_owned(), "public".to_owned()]
    );
    assert_eq!(settings.show("nothing").unwrap_err().sqlstate, "42704");
    assert!(
        settings
            .reported()
            .iter()
            .any(|(name, value)| name == "TimeZone" && value == "UTC")
    );
    assert_eq!(settings.reported().len(), 13);
}

#[test]
fn times_have_units() {
    let mut settings = settings();
    for (given, shown) in [
        ("5s", "5s"),
        ("5000", "5s"),
        ("1500ms", "1500ms"),
        ("2min", "2min"),
        ("0", "0"),
        ("1.5s", "1500ms"),
    ] {
        set(&mut settings, "statement_timeout", given).unwrap();
        assert_eq!(
            settings.show("statement_timeout").unwrap(),
            shown,
            "{given}"
        );
    }
    set(&mut settings, "lock_timeout", "1min").unwrap();
    assert_eq!(settings.lock_timeout(), Some(Duration::from_secs(60)));
    assert_eq!(
        set(&mut settings, "lock_timeout", "5 parsecs")
            .unwrap_err()
            .sqlstate,
        "22023"
    );
    assert_eq!(
        set(&mut settings, "lock_timeout", "-1")
            .unwrap_err()
            .sqlstate,
        "22023"
    );
}

#[test]
fn values_are_checked_and_written_in_one_form() {
    let mut settings = settings();
    set(&mut settings, "jit", "FALSE").unwrap();
    assert_eq!(settings.show("jit").unwrap(), "off");
    set(&mut settings, "synchronous_commit", "false").unwrap();
    assert!(!settings.synchronous_commit());
    set(&mut settings, "client_encoding", "'utf-8'").unwrap();
    assert_eq!(settings.show("client_encoding").unwrap(), "UTF8");
    assert!(set(&mut settings, "client_encoding", "latin1").is_err());
    assert!(set(&mut settings, "timezone", "Europe/Nowhere").is_err());
    assert_eq!(
        set(&mut settings, "server_version", "9")
            .unwrap_err()
            .sqlstate,
        "55P02"
    );
    assert_eq!(
        set(&mut settings, "no_such", "9").unwrap_err().sqlstate,
        "42704"
    );
    set(&mut settings, "app.user", "x").unwrap();
    assert_eq!(settings.show("app.user").unwrap(), "x");
    assert_eq!(
        set(&mut settings, "extra_float_digits", "99")
            .unwrap_err()
            .message,
        "99 is outside the valid range for parameter \"extra_float_digits\" (-15 .. 3)"
    );
}

#[test]
fn the_search_path_is_a_list_of_names() {
    let mut settings = settings();
    settings
        .set("search_path", Some(&["a".into(), "B c".into()]), false)
        .unwrap();
    assert_eq!(settings.show("search_path").unwrap(), "a, \"B c\"");
    assert_eq!(*settings.search_path(), ["a".to_owned(), "B c".to_owned()]);
    set(&mut settings, "search_path", "").unwrap();
    assert_eq!(*settings.search_path(), [] as [String; 0]);
    assert_eq!(names("\"a\"\"b\", C"), ["a\"b", "c"]);
}

#[test]
fn a_rolled_back_transaction_takes_its_settings_along() {
    let mut settings = settings();
    let saved = settings.save();
    set(&mut settings, "application_name", "x").unwrap();
    settings.set("jit", Some(&["on".into()]), true).unwrap();
    settings.restore(&saved);
    assert_eq!(settings.show("application_name").unwrap(), "");
    assert_eq!(settings.show("jit").unwrap(), "off");
    settings
        .set("application_name", Some(&["y".into()]), true)
        .unwrap();
    set(&mut settings, "jit", "on").unwrap();
    settings.take_changed();
    settings.end_transaction();
    assert_eq!(settings.show("application_name").unwrap(), "");
    assert_eq!(settings.show("jit").unwrap(), "on");
    assert_eq!(
        settings.take_changed(),
        [("application_name", String::new())]
    );
}

#[test]
fn reset_goes_back_to_the_start_up_value() {
    let mut settings = settings();
    settings.start_up("application_name", "psql").unwrap();
    set(&mut settings, "application_name", "x").unwrap();
    settings.set("application_name", None, false).unwrap();
    assert_eq!(settings.show("application_name").unwrap(), "psql");
    set(&mut settings, "timezone", "GMT").unwrap();
    settings.reset_all();
    assert_eq!(settings.show("timezone").unwrap(), "UTC");
}
