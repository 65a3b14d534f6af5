//! The protocol, byte by byte: what well-behaved drivers rely on and what
//! broken or hostile clients try. Each test has its own server.

mod support;

use std::time::{Duration, Instant};

use support::database::{WAITING, rows};
use support::{Running, Wire, bind, execute, flush, message, parse, query, sync, tags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const GSSENC_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30];

#[tokio::test]
async fn encryption_is_declined_and_the_client_may_go_on() {
    let server = Running::start(|_| {}).await;
    let mut wire = Wire::connect(server.address).await;
    let mut answer = [0];
    for request in [GSSENC_REQUEST, SSL_REQUEST] {
        wire.send(&request).await;
        wire.stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"N");
    }
    wire.startup(3 << 16, &[("user", "postgres")]).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(messages[0].tag, b'R');
    assert!(messages.iter().any(|message| message.tag == b'K'));
    let status: Vec<_> = messages
        .iter()
        .filter(|message| message.tag == b'S')
        .filter_map(|message| message.body.split(|byte| *byte == 0).next())
        .collect();
    assert!(status.contains(&&b"server_version"[..]));
    assert!(status.contains(&&b"client_encoding"[..]));
    assert_eq!(&messages.last().unwrap().body[..], b"I");
}

#[tokio::test]
async fn a_newer_minor_version_is_negotiated_down() {
    let server = Running::start(|_| {}).await;
    let mut wire = Wire::connect(server.address).await;
    let parameters = [("user", "postgres"), ("_pq_.unheard", "1")];
    wire.startup(3 << 16 | 2, &parameters).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(messages[0].tag, b'v');
    assert_eq!(&messages[0].body[..], b"\0\0\0\0\0\0\0\x01_pq_.unheard\0");
    assert_eq!(tags(&wire.query("select 1").await), "TDCZ");
}

#[tokio::test]
async fn wrong_start_up_packets_are_answered_and_closed() {
    let server = Running::start(|_| {}).await;
    let packets: [(&[u8], &str); 6] = [
        (b"\0\0\0\x04", "08P01"),
        (b"\0\0\x40\0\0\x03\0\0", "08P01"),
        (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
        (b"\0\0\0\x09\0\x02\0\0\0", "0A000"),
        (b"\0\0\0\x09\0\x03\0\0\0", "28000"),
        (b"\0\0\0\x0d\0\x03\0\0user\0", "08P01"),
    ];
    for (packet, sqlstate) in packets {
        let mut wire = Wire::connect(server.address).await;
        wire.send(packet).await;
        assert_eq!(wire.fatal().await.sqlstate(), sqlstate, "{packet:?}");
    }
    // One that never says anything, and one that stops in the middle.
    for packet in [&b""[..], b"\0\0\0"] {
        let mut wire = Wire::connect(server.address).await;
        wire.send(packet).await;
        wire.stream.shutdown().await.unwrap();
        assert!(wire.next().await.is_none());
    }
    server.client().await;
}

#[tokio::test]
async fn who_takes_too_long_to_start_is_closed() {
    let quick = Duration::from_millis(100);
    let server = Running::start(|config| config.authentication_timeout = quick).await;
    let mut wire = Wire::connect(server.address).await;
    wire.send(&SSL_REQUEST).await;
    assert_eq!(wire.stream.read_u8().await.unwrap(), b'N');
    assert!(wire.next().await.is_none());
    // The limit ends with the start.
    let mut patient = server.client().await;
    tokio::time::sleep(quick * 2).await;
    assert_eq!(tags(&patient.query("select 1").await), "TDCZ");
}

#[tokio::test]
async fn unknown_roles_and_databases_are_refused() {
    let server = Running::start(|_| {}).await;
    for (user, database, sqlstate) in [
        ("eve", "postgres", "28000"),
        ("postgres", "elsewhere", "3D000"),
    ] {
        let mut wire = Wire::connect(server.address).await;
        wire.startup(3 << 16, &[("user", user), ("database", database)])
            .await;
        assert_eq!(wire.fatal().await.sqlstate(), sqlstate);
    }
    server.until(|metrics| metrics.connections_open == 0).await;
    assert_eq!(server.metrics.snapshot().startups_failed, 2);
}

#[tokio::test]
async fn an_empty_query_has_its_own_answer() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    assert_eq!(tags(&wire.query("").await), "IZ");
    assert_eq!(tags(&wire.query("-- ping").await), "IZ");
}

#[tokio::test]
async fn a_hundred_pipelined_statements_are_answered_with_one_write() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    let mut batch = Vec::new();
    for _ in 0..100 {
        batch.extend(parse("", "select 1"));
        batch.extend(bind(""));
        batch.extend(execute());
    }
    batch.extend(sync());
    let writes = server.metrics.snapshot().writes;
    wire.send(&batch).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(tags(&messages), "12DC".repeat(100) + "Z");
    assert_eq!(server.metrics.snapshot().writes - writes, 1);
}

#[tokio::test]
async fn after_an_error_everything_up_to_sync_is_passed_over() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    let batch = [
        parse("", "this is no syntax"),
        bind(""),
        execute(),
        query("select 1"),
        sync(),
        parse("", "select 1"),
        bind(""),
        execute(),
        sync(),
    ];
    wire.send(&batch.concat()).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(tags(&messages), "EZ");
    assert_eq!(messages[0].sqlstate(), "42601");
    assert_eq!(messages[0].field(b'S').unwrap(), "ERROR");
    assert_eq!(tags(&wire.until(b'Z').await), "12DCZ");
}

#[tokio::test]
async fn a_client_that_flushes_instead_of_syncing_is_answered() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    let good = [parse("s", "select 1"), message(b'D', b"Ss\0"), flush()];
    wire.send(&good.concat()).await;
    assert_eq!(tags(&wire.until(b'T').await), "1tT");
    let bad = [parse("", "this is no syntax"), flush()];
    wire.send(&bad.concat()).await;
    assert_eq!(wire.next().await.unwrap().sqlstate(), "42601");
    wire.send(&sync()).await;
    assert_eq!(tags(&wire.until(b'Z').await), "Z");
}

#[tokio::test]
async fn a_malformed_message_in_a_whole_frame_ends_the_batch_only() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    let broken: [Vec<u8>; 6] = [
        message(b'B', b"\0\0\0\0\0\x05"),
        message(b'B', b"\0\0\0\x02\0\0\0\0\0\x01\0\0\0\0\0\0"),
        message(b'P', b"no end"),
        message(b'D', b"Xname\0"),
        message(b'E', b"\0\0"),
        message(b'C', b""),
    ];
    for frame in broken {
        wire.send(&[frame, sync()].concat()).await;
        let messages = wire.until(b'Z').await;
        assert_eq!(tags(&messages), "EZ");
        assert_eq!(messages[0].sqlstate(), "08P01");
    }
    wire.send(&message(b'Q', b"select '\xff'\0")).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(messages[0].sqlstate(), "22021");
    assert_eq!(tags(&wire.query("select 1").await), "TDCZ");
}

#[tokio::test]
async fn a_frame_that_cannot_be_one_closes_that_connection_only() {
    let server = Running::start(|config| config.max_message_bytes = 100_000).await;
    let mut neighbour = server.client().await;
    let frames: [(&[u8], &str); 5] = [
        (b"?\0\0\0\x04", "08P01"),
        (b"Q\0\0\0\x03", "08P01"),
        (b"Q\xff\xff\xff\xff", "08P01"),
        (b"Q\0\x02\0\0", "54000"),
        (b"S\0\0\xff\xff", "54000"),
    ];
    for (frame, sqlstate) in frames {
        let mut wire = server.client().await;
        wire.send(frame).await;
        assert_eq!(wire.fatal().await.sqlstate(), sqlstate, "{frame:?}");
    }
    assert_eq!(tags(&neighbour.query("select 1").await), "TDCZ");
}

#[tokio::test]
async fn an_oversized_message_is_explained_to_who_sends_all_of_it() {
    let server = Running::start(|config| config.max_message_bytes = 100_000).await;
    let mut wire = server.client().await;
    let text = format!("select '{}'", "x".repeat(1_000_000));
    // The server closes while this is under way.
    let _ = wire.stream.write_all(&query(&text)).await;
    assert_eq!(wire.fatal().await.sqlstate(), "54000");
    server.until(|metrics| metrics.connections_open == 0).await;
}

/// What is beyond what a session may hold is read past, however it comes, and the
/// connection goes on; nothing stays charged for it.
#[tokio::test]
async fn a_message_without_memory_is_refused_and_the_connection_goes_on() {
    let server = Running::start(|_| {}).await;
    server.set_memory_limit(256 << 20);
    let mut wire = server.client().await;
    let before = server.charged();
    let large = "x".repeat(40 << 20);
    wire.send(&query(&large)).await;
    let answer = wire.until(b'Z').await;
    assert_eq!(tags(&answer), "EZ");
    assert_eq!(answer[0].sqlstate(), "53200");
    // In a batch of the extended protocol, all up to Sync is passed over.
    let batch = [parse("a", &large), bind("a"), execute(), sync()].concat();
    wire.send(&batch).await;
    let answer = wire.until(b'Z').await;
    assert_eq!(tags(&answer), "EZ");
    assert_eq!(answer[0].sqlstate(), "53200");
    // One that has room as a message, and none for the tokens of its text.
    let rows = format!("values {}(1)", "(1),".repeat(1 << 20));
    wire.send(&query(&rows)).await;
    let answer = wire.until(b'Z').await;
    assert_eq!(answer[0].sqlstate(), "53200");
    let answer = wire.query("select 1").await;
    assert_eq!(tags(&answer), "TDCZ");
    assert!(
        server.charged() <= before + (256 << 10),
        "{}",
        server.charged()
    );
}

/// Clients that announce large messages and stop in the middle hold no memory for long,
/// and keep nobody from their own.
#[tokio::test]
async fn half_messages_keep_nobody_out() {
    let server = Running::start(|_| {}).await;
    server.set_memory_limit(256 << 20);
    let mut halves = Vec::new();
    for _ in 0..12 {
        let mut wire = server.client().await;
        wire.send(&query(&"x".repeat(20 << 20))[..1 << 20]).await;
        halves.push(wire);
    }
    let mut wire = server.client().await;
    let small = "y".repeat(1 << 20);
    wire.send(&query(&format!("select length('{small}')")))
        .await;
    let answer = wire.until(b'Z').await;
    assert_eq!(tags(&answer), "TDCZ");
}

#[tokio::test]
async fn one_too_many_is_told_so_and_places_come_back() {
    let server = Running::start(|config| config.max_connections = 3).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(server.client().await);
    }
    let mut refused = Wire::connect(server.address).await;
    refused.startup(3 << 16, &[("user", "postgres")]).await;
    let error = refused.fatal().await;
    assert_eq!(error.sqlstate(), "53300");
    assert_eq!(
        error.field(b'M').unwrap(),
        "sorry, too many clients already"
    );
    assert_eq!(server.metrics.snapshot().connections_refused, 1);
    let mut leaving = clients.pop().unwrap();
    leaving.send(&message(b'X', b"")).await;
    assert!(leaving.next().await.is_none());
    server.client().await;
}

/// As the pool of an application does. All are in the kernel's queue before the server runs.
#[tokio::test]
async fn many_that_come_at_once_are_all_let_in() {
    let server = Running::start(|config| config.max_connections = 300).await;
    let mut wires = Vec::new();
    for _ in 0..200 {
        let stream = std::net::TcpStream::connect(server.address).unwrap();
        stream.set_nonblocking(true).unwrap();
        wires.push(Wire::over(tokio::net::TcpStream::from_std(stream).unwrap()));
    }
    for wire in &mut wires {
        wire.startup(3 << 16, &[("user", "postgres")]).await;
    }
    for wire in &mut wires {
        wire.until(b'Z').await;
    }
}

#[tokio::test]
async fn a_cancel_request_needs_the_key() {
    let server = Running::start(|_| {}).await;
    let mut holder = server.client().await;
    support::database::hold_a_row(&mut holder).await;
    let mut waiting = server.client().await;
    waiting.send(&query(WAITING)).await;
    let cancel = |secret: i32| {
        let mut packet = vec![0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e];
        packet.extend(waiting.process_id.to_be_bytes());
        packet.extend(secret.to_be_bytes());
        packet
    };
    let (wrong, right) = (cancel(waiting.secret ^ 1), cancel(waiting.secret));
    for packet in [wrong, right] {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(
            waiting.stream.try_read(&mut [0; 1]).is_err(),
            "still waiting"
        );
        let mut wire = Wire::connect(server.address).await;
        wire.send(&packet).await;
        assert!(wire.next().await.is_none(), "a cancel has no answer");
    }
    let messages = waiting.until(b'Z').await;
    assert_eq!(tags(&messages), "EZ");
    assert_eq!(messages[0].sqlstate(), "57014");
    // The next statement is not struck by it.
    assert_eq!(tags(&waiting.query("select 1").await), "TDCZ");
}

#[tokio::test]
async fn a_client_that_vanishes_does_not_keep_its_statement() {
    let server = Running::start(|_| {}).await;
    let mut holder = server.client().await;
    support::database::hold_a_row(&mut holder).await;
    let mut waiting = server.client().await;
    waiting.send(&query(WAITING)).await;
    server.until(|metrics| metrics.connections_open == 2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(waiting);
    server.until(|metrics| metrics.connections_open == 1).await;
    assert_eq!(server.metrics.snapshot().clients_vanished, 1);
}

#[tokio::test]
async fn a_half_closed_client_gets_the_answers_of_what_it_sent() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    wire.send(&[query("select 1"), query("select 1")].concat())
        .await;
    wire.stream.shutdown().await.unwrap();
    assert_eq!(tags(&wire.until(b'Z').await), "TDCZ");
    assert_eq!(tags(&wire.until(b'Z').await), "TDCZ");
    assert!(wire.next().await.is_none());
    server.until(|metrics| metrics.connections_open == 0).await;
}

#[tokio::test]
async fn a_function_call_is_declined() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    wire.send(&message(b'F', b"\0\0\0\x01\0\0\0\0\0\0")).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(tags(&messages), "EZ");
    assert_eq!(messages[0].sqlstate(), "0A000");
}

#[tokio::test]
async fn copy_takes_its_rows_and_nothing_else() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    wire.query("create table copied (v text)").await;
    let copy = query("copy copied from stdin");
    let data = |text: &[u8]| message(b'd', text);

    // Sync and Flush during a COPY mean nothing.
    let rows = [
        data(b"a\nb"),
        sync(),
        data(b"\n"),
        flush(),
        message(b'c', b""),
    ];
    wire.send(&[copy.clone(), rows.concat()].concat()).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(tags(&messages), "GCZ");
    assert_eq!(&messages[1].body[..], b"COPY 2\0");

    wire.send(&copy).await;
    assert_eq!(wire.next().await.unwrap().tag, b'G');
    wire.send(&[data(b"c\n"), message(b'f', b"no more\0")].concat())
        .await;
    let messages = wire.until(b'Z').await;
    assert_eq!(tags(&messages), "EZ");
    assert_eq!(messages[0].sqlstate(), "57014");
    assert_eq!(
        messages[0].field(b'M').unwrap(),
        "COPY from stdin failed: no more"
    );

    // What is left of a COPY that failed is passed over.
    wire.send(
        &[
            copy.clone(),
            query("select 1"),
            data(b"d\n"),
            message(b'c', b""),
        ]
        .concat(),
    )
    .await;
    let messages = wire.until(b'Z').await;
    assert_eq!(tags(&messages), "GEZ");
    assert_eq!(messages[1].sqlstate(), "08P01");
    assert_eq!(tags(&wire.query("select 1").await), "TDCZ");

    // A client that goes away in the middle leaves nothing running.
    wire.send(&[copy, data(b"e\n")].concat()).await;
    drop(wire);
    server.until(|metrics| metrics.connections_open == 0).await;
}

#[tokio::test]
async fn buffers_are_given_back() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    let text = format!("select 1 -- {}", "x".repeat(2_000_000));
    let bytes = query(&text);
    let (most, last) = bytes.split_at(bytes.len() - 1);
    wire.send(most).await;
    server
        .until(|metrics| metrics.buffer_bytes > 2_000_000)
        .await;
    wire.send(last).await;
    assert_eq!(tags(&wire.until(b'Z').await), "TDCZ");
    server.until(|metrics| metrics.buffer_bytes < 300_000).await;
    drop(wire);
    server.until(|metrics| metrics.connections_open == 0).await;
    server.until(|metrics| metrics.buffer_bytes == 0).await;
}

#[tokio::test]
async fn a_slow_reader_is_waited_for_in_constant_memory() {
    let server = Running::start(|_| {}).await;
    let mut wire = server.client().await;
    let count = 1_000_000;
    wire.send(&query(&rows(count))).await;
    // It does not read: the answer has to wait in the server.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let held = server.metrics.snapshot();
    assert!(held.buffer_bytes < 1 << 20, "{} bytes", held.buffer_bytes);
    let mut received = 0;
    loop {
        match wire.next().await.unwrap().tag {
            b'D' => received += 1,
            b'Z' => break,
            _ => {}
        }
    }
    assert_eq!(received, count);
    assert!(server.metrics.snapshot().sent_bytes > held.sent_bytes);
}

#[tokio::test]
async fn a_stop_tells_idle_clients_and_ends_running_statements() {
    let mut server = Running::start(|_| {}).await;
    let mut holder = server.client().await;
    support::database::hold_a_row(&mut holder).await;
    let mut idle = server.client().await;
    let mut starting = Wire::connect(server.address).await;
    let mut waiting = server.client().await;
    waiting.send(&query(&format!("{WAITING}; select 1"))).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begin = Instant::now();
    server.stop();
    assert_eq!(idle.fatal().await.sqlstate(), "57P01");
    assert_eq!(starting.fatal().await.sqlstate(), "57P01");
    // The holder's transaction is rolled back, which lets the waiting
    // statement finish before its connection ends.
    assert_eq!(holder.fatal().await.sqlstate(), "57P01");
    assert_eq!(waiting.fatal().await.sqlstate(), "57P01");
    let address = server.address;
    server.stopped().await;
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
