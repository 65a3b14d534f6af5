//! What a result was measured on and when: part of each result, because a figure
//! without them can't be compared. What can't be found out is absent.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use thermocline_values::text_format;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

/// Seconds from 1970-01-01 to 2000-01-01.
const EPOCH_2000_SECONDS: i64 = 946_684_800;

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: Option<String>,
    /// Cores that this process may use.
    pub cores: Option<usize>,
    /// The machine's memory.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
}

/// The machine that this process runs on.
pub fn machine() -> Machine {
    Machine {
        cpu: field("/proc/cpuinfo", "model name"),
        cores: thread::available_parallelism()
            .ok()
            .map(|cores| cores.get()),
        memory_bytes: field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
            .map(|kilobytes| kilobytes << 10),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
            .ok()
            .map(|text| text.trim().to_owned()),
    }
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Now, as PostgreSQL writes a time stamp.
pub fn date() -> Option<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let seconds = i64::try_from(now.as_secs()).ok()? - EPOCH_2000_SECONDS;
    let mut text = Vec::new();
    let value = ValueRef::TimestampTz(seconds * 1_000_000);
    text_format::write_text(value, &DataType::TimestampTz, &mut text);
    String::from_utf8(text).ok()
}

/// The commit that the program was built from; with a mark where the sources are not as it has them, while
/// they are still there.
pub fn commit() -> Option<String> {
    let built = Some(env!("THERMOCLINE_COMMIT")).filter(|commit| !commit.is_empty())?;
    let changes = Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR")])
        .args(["status", "--porcelain", "--untracked-files=no"])
        .output();
    let is_changed =
        changes.is_ok_and(|output| output.status.success() && !output.stdout.is_empty());
    Some(match is_changed {
        true => format!("{built}-dirty"),
        false => built.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_known() {
        let machine = machine();
        assert!(machine.cores.is_some_and(|cores| cores > 0));
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn the_date_is_of_this_century() {
        let date = date().expect("the clock is after 1970");
        assert!(date.starts_with("20") && date.ends_with("+00"), "{date}");
    }
}
