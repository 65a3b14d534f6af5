//! Which source wins, and what is refused.

use super::*;

fn load(flags: &Flags, environment: &[(&str, &str)], directory: &Path) -> Result<Settings, Wrong> {
    let lookup = |wanted: &str| {
        environment
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| (*value).to_owned())
    };
    Settings::load(flags, lookup, directory)
}

fn flags(change: impl FnOnce(&mut Flags)) -> Flags {
    let mut flags = Flags::default();
    change(&mut flags);
    flags
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let directory = tempfile::tempdir().unwrap();
    let none = Flags::default();
    assert_eq!(load(&none, &[], directory.path()).unwrap().port, 5433);
    fs::write(directory.path().join(FILE_NAME), "port = 1001").unwrap();
    let settings = load(&none, &[], directory.path()).unwrap();
    assert_eq!(settings.port, 1001);
    assert_eq!(settings.file, Some(PathBuf::from(FILE_NAME)));
    let environment = [("THERMOCLINE_PORT", "1002")];
    let settings = load(&none, &environment, directory.path()).unwrap();
    assert_eq!(settings.port, 1002);
    let flag = flags(|flags| flags.port = Some("1003".to_owned()));
    let settings = load(&flag, &environment, directory.path()).unwrap();
    assert_eq!(settings.port, 1003);
}

#[test]
fn every_setting_can_be_said_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let text = "data_dir = 'd'\nport = 1\nlisten = '::1'\nmemory_limit = '256MB'\npartitions = 4\n\
                max_connections = 7\nsuperuser_reserved_connections = 2\n\
                idle_in_transaction_session_timeout = '90s'\nidle_session_timeout = '1h'\nmax_message_bytes = '1MB'\nio = 'threads'\narchive_directory = 'a'\n\
                backup_directory = 'b, /c'\ntemp_file_limit = '1GB'\nwarm_buffer = '8MB'\ndisk_reserve = '0'\n\
                identification = 'lru'\nmerge = 'always'\nlog = 'debug'\nlog_format = 'json'\n\
                log_min_duration_statement = '1500'\nunix_socket_permissions = '0700'\n\
                metrics_listen = '::1:9187'\nrecovery_target = '1.5min'\n\
                hba = 'local all all trust'\nunix_socket_directory = 's'\nssl = 'on'\n\
                ssl_cert_file = 'c'\nssl_key_file = 'k'\n";
    fs::write(directory.path().join(FILE_NAME), text).unwrap();
    let settings = load(&Flags::default(), &[], directory.path()).unwrap();
    let expected = Settings {
        data_dir: "d".into(),
        port: 1,
        listen: "::1".parse().unwrap(),
        memory_limit: 256 << 20,
        memory_limit_source: "thermocline.toml: memory_limit".to_owned(),
        memory_limit_given: 256 << 20,
        partitions: 4,
        max_connections: 7,
        superuser_reserved_connections: Some(2),
        idle_in_transaction_session_timeout: "90s".to_owned(),
        idle_session_timeout: "1h".to_owned(),
        max_message_bytes: 1 << 20,
        io: IoEngine::Threads,
        archive_directory: Some("a".into()),
        backup_directories: vec!["b".into(), "/c".into()],
        temp_file_limit: Some(1 << 30),
        warm_buffer: Some(8 << 20),
        warm_buffer_given: Some(8 << 20),
        disk_reserve: 0,
        identification: Some(Identification::Lru),
        merge: Some(Merge::Always),
        log: "debug".to_owned(),
        log_json: true,
        log_min_duration_statement: "1500ms".to_owned(),
        hba: Rules::parse("local all all trust").unwrap(),
        unix_socket_directory: Some("s".into()),
        unix_socket_permissions: 0o700,
        metrics_listen: Some("[::1]:9187".parse().unwrap()),
        recovery_target: Duration::from_secs(90),
        ssl: true,
        ssl_cert_file: Some("c".into()),
        ssl_key_file: Some("k".into()),
        file: Some(FILE_NAME.into()),
    };
    assert_eq!(settings, expected);
    assert_eq!(text.lines().count(), Flags::default().given().len());
}

#[test]
fn the_data_directorys_file_comes_before_the_working_directorys() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join(FILE_NAME), "port = 1").unwrap();
    fs::write(directory.path().join(FILE_NAME), "port = 2").unwrap();
    fs::write(directory.path().join("named"), "port = 3").unwrap();
    let there = flags(|flags| flags.data_dir = Some("data".to_owned()));
    assert_eq!(load(&there, &[], directory.path()).unwrap().port, 1);
    let none = Flags::default();
    assert_eq!(load(&none, &[], directory.path()).unwrap().port, 2);
    let environment = [("THERMOCLINE_CONFIG", "named")];
    assert_eq!(load(&none, &environment, directory.path()).unwrap().port, 3);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let said = |flags: &Flags, environment: &[(&str, &str)]| {
        load(flags, environment, directory.path()).unwrap_err().0
    };
    let reserved = flags(|flags| {
        flags.max_connections = Some("3".to_owned());
        flags.superuser_reserved_connections = Some("3".to_owned());
    });
    assert_eq!(
        said(&reserved, &[]),
        "superuser_reserved_connections (3) must be less than max_connections (3)"
    );
    let few = flags(|flags| flags.max_connections = Some("1".to_owned()));
    let few = load(&few, &[], directory.path()).unwrap();
    assert_eq!(few.reserved_connections(), 0);
    let bad = flags(|flags| flags.memory_limit = Some("lots".to_owned()));
    assert!(said(&bad, &[]).starts_with("--memory-limit: \"lots\" is not a size"));
    let little = flags(|flags| flags.memory_limit = Some("1MB".to_owned()));
    assert!(said(&little, &[]).contains("too little"));
    let none = Flags::default();
    for (name, value) in [
        ("THERMOCLINE_PORT", "65536"),
        ("THERMOCLINE_LISTEN", "nowhere"),
        ("THERMOCLINE_PARTITIONS", "3"),
        ("THERMOCLINE_MAX_CONNECTIONS", "0"),
        ("THERMOCLINE_IO", "tape"),
        ("THERMOCLINE_DATA_DIR", ""),
        ("THERMOCLINE_LOG", "a=b=c"),
        ("THERMOCLINE_MAX_MESSAGE_BYTES", "1kB"),
        ("THERMOCLINE_BACKUP_DIRECTORY", "/backups,"),
        ("THERMOCLINE_TEMP_FILE_LIMIT", "much"),
        ("THERMOCLINE_LOG_MIN_DURATION_STATEMENT", "-2"),
        ("THERMOCLINE_UNIX_SOCKET_PERMISSIONS", "0778"),
        ("THERMOCLINE_UNIX_SOCKET_PERMISSIONS", "01777"),
        ("THERMOCLINE_METRICS_LISTEN", "nowhere:9187"),
        ("THERMOCLINE_METRICS_LISTEN", "127.0.0.1"),
        ("THERMOCLINE_RECOVERY_TARGET", "10ms"),
        ("THERMOCLINE_RECOVERY_TARGET", "soon"),
    ] {
        let error = said(&none, &[(name, value)]);
        assert!(error.starts_with(&format!("{name}: ")), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    assert!(said(&none, &[("THERMOCLINE_CONFIG", "absent")]).starts_with("absent: "));
    let file = directory.path().join(FILE_NAME);
    fs::write(&file, "port = 1\nmemory_limt = '1GB'\n").unwrap();
    assert!(said(&none, &[]).starts_with("thermocline.toml: memory_limt: unknown setting"));
    fs::write(&file, "port = 1\nport\n").unwrap();
    assert!(said(&none, &[]).starts_with("thermocline.toml, line 2: "));
    fs::write(&file, "port = [1]").unwrap();
    assert!(said(&none, &[]).contains("not array"));
}

#[test]
fn metrics_are_for_this_machine_unless_asked_for() {
    for (said, meant) in [
        ("off", None),
        ("9187", Some("127.0.0.1:9187")),
        ("localhost:1", Some("127.0.0.1:1")),
        ("10.0.0.7:9187", Some("10.0.0.7:9187")),
        ("[::1]:9187", Some("[::1]:9187")),
        ("*:9187", Some("[::]:9187")),
    ] {
        let meant = meant.map(|address| address.parse().unwrap());
        assert_eq!(metrics_listen(said), Ok(meant), "{said}");
    }
}
