//! Writes `tests/fixtures` anew: a data directory of the current format, and
//! copies of it that are damaged in one place each. To be run when the format
//! changes (docs/internals/format.md, "Fixtures"):
//!
//! ```text
//! cargo run -p thermocline-engine --example make_fixtures
//! ```

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use fixture::directories::{WHOLE, expected, keep, write_whole};
use fixture::{Files, files_of};
use thermocline_device::SimulatedDevice;
use thermocline_engine::Result;

fn main() -> Result<()> {
    let device = SimulatedDevice::new();
    write_whole(&device)?;
    let mut whole = files_of(&device);
    // Space that was allocated ahead holds nothing.
    whole.retain(|name, _| !name.starts_with("log-spare-"));
    keep(WHOLE, &whole);
    let damaged = |name: &str, damage: &dyn Fn(&mut Files)| {
        let mut files = whole.clone();
        damage(&mut files);
        keep(name, &files);
    };
    let last_log = last(&whole, "log-");
    let image = last(&whole, "checkpoint-00000002-0");

    damaged("torn-log", &|files| {
        // The end of the last group never reached the device.
        let bytes = bytes(files, &last_log);
        let end = bytes.len();
        bytes.truncate(end - 20);
    });
    damaged("damaged-log", &|files| {
        // A record with valid ones behind it.
        let bytes = bytes(files, &last_log);
        let at = find(bytes, b"row 43 ");
        bytes[at] ^= 1;
    });
    damaged("flipped-block", &|files| {
        let bytes = bytes(files, "blocks");
        let at = find(bytes, b"row 7 row 7 ");
        bytes[at] ^= 1;
    });
    damaged("truncated-manifest", &|files| {
        let (length, bytes) = files.get_mut("manifest").expect("a manifest");
        bytes.truncate(bytes.len() / 2);
        *length = bytes.len() as u64;
    });
    damaged("missing-image", &|files| {
        files.remove(&image);
    });
    damaged("older-format", &|files| {
        let (length, bytes) = files.get_mut("manifest").expect("a manifest");
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().next().expect("a line");
        let rest = line.find(',').expect("a second field");
        let line = format!("{{\"format\":2{}", &line[rest..]);
        let crc = crc32c::crc32c(line.as_bytes());
        *bytes = format!("{line}\n{crc:08x}\n").into_bytes();
        *length = bytes.len() as u64;
    });
    println!("row 7 reads {}", expected(7));
    Ok(())
}

fn last(files: &Files, prefix: &str) -> String {
    let mut names = files.keys().filter(|name| name.starts_with(prefix));
    names.next_back().expect("there is one").clone()
}

fn bytes<'a>(files: &'a mut Files, name: &str) -> &'a mut Vec<u8> {
    &mut files.get_mut(name).expect("it is there").1
}

fn find(bytes: &[u8], text: &[u8]) -> usize {
    let mut windows = bytes.windows(text.len());
    windows.position(|w| w == text).expect("it is written")
}
