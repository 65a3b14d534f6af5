//! How much memory there is for this process: the machine's, or less where a
//! control group (version 1 or 2) allows less. Whatever cannot be read does
//! not limit.

use std::fs;
use std::path::{Path, PathBuf};

/// A limit above this means "none" (version 1 says it so).
const UNLIMITED_BYTES: u64 = 1 << 60;

/// The memory that this process may use at most, in bytes, and what says so.
pub(crate) fn memory_bytes() -> Option<(u64, &'static str)> {
    memory_bytes_under(Path::new("/"))
}

fn memory_bytes_under(root: &Path) -> Option<(u64, &'static str)> {
    let machine = machine_bytes(root).map(|bytes| (bytes, "machine"));
    let group = group_bytes(root).map(|bytes| (bytes, "control group"));
    match (machine, group) {
        (Some(machine), Some(group)) => Some(if group.0 < machine.0 { group } else { machine }),
        (machine, group) => machine.or(group),
    }
}

fn machine_bytes(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn group_bytes(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mut least = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (mount, file) = if controllers.is_empty() {
            (root.join("sys/fs/cgroup"), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("sys/fs/cgroup/memory"), "memory.limit_in_bytes")
        } else {
            continue;
        };
        // Each group above limits too. In a container the path is often the
        // host's and not visible; then only the mount's own file is there.
        let mut group = Some(PathBuf::from(path.trim_start_matches('/')));
        while let Some(at) = group {
            if let Some(bytes) = limit(&mount.join(&at).join(file)) {
                least = Some(least.map_or(bytes, |least: u64| least.min(bytes)));
            }
            group = at.parent().map(Path::to_path_buf);
        }
    }
    least
}

fn limit(file: &Path) -> Option<u64> {
    let bytes: u64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (bytes < UNLIMITED_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemFree: 1 kB\nMemTotal:  8388608 kB\n");

    #[test]
    fn without_control_groups_it_is_the_machines() {
        let root = tree(&[MEMINFO]);
        assert_eq!(memory_bytes_under(root.path()), Some((8 << 30, "machine")));
        assert_eq!(memory_bytes_under(tree(&[]).path()), None);
    }

    #[test]
    fn version_2_limits_at_every_level() {
        let root = tree(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "1073741824\n"),
        ]);
        assert_eq!(
            memory_bytes_under(root.path()),
            Some((1 << 30, "control group"))
        );
    }

    #[test]
    fn version_1_limits_through_the_mount_when_the_path_is_the_hosts() {
        let root = tree(&[
            MEMINFO,
            ("proc/self/cgroup", "4:cpu:/x\n3:memory:/docker/123\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
        ]);
        assert_eq!(
            memory_bytes_under(root.path()),
            Some((512 << 20, "control group"))
        );
        let unlimited = tree(&[
            MEMINFO,
            ("proc/self/cgroup", "3:memory:/\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ]);
        assert_eq!(
            memory_bytes_under(unlimited.path()),
            Some((8 << 30, "machine"))
        );
    }
}
