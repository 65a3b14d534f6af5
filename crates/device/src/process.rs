//! What the kernel says of this process and machine: resident memory, and how
//! much memory there is.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::{NoHugePages, huge_pages_withheld, withhold_huge_pages};

/// The process's resident memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// All of it.
    pub all: u64,
    /// Of it, pages of files: the program's code and constants, and libraries'.
    pub files: u64,
}

/// The process's resident memory in bytes; None where the kernel does not say.
pub fn resident_bytes() -> Option<u64> {
    resident().map(|resident| resident.all)
}

/// What is resident, beside what stands for devices, and of what kind; None where the kernel does not say.
/// One short read, without allocation.
pub fn resident() -> Option<Resident> {
    let mut text = [0; 128];
    let length = File::open("/proc/self/statm").ok()?.read(&mut text).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    let mut pages = text.split_ascii_whitespace().skip(1);
    let mut bytes = || Some(pages.next()?.parse::<u64>().ok()? * page_bytes());
    let (all, files) = (bytes()?, bytes()?);
    let mapped = crate::mapping::mapped_bytes().min(files);
    let devices = crate::memory::device_bytes() + mapped;
    Some(Resident {
        all: all.saturating_sub(devices),
        files: files - mapped,
    })
}

/// Has the kernel give this process huge pages only where it asks for them: an allocator
/// that gets them unasked holds megabytes for every few kilobytes in use, and of a memory
/// limit that is what rows do not get. Kernels before 6.18 that give them to all give this
/// process none then. For a program's first line.
///
/// # Errors
/// The kernel does not know the switch; then there is only more to evict.
pub fn huge_pages_only_when_asked() -> io::Result<()> {
    match withhold_huge_pages(NoHugePages::Unasked) {
        Err(_) if huge_pages_given() == Given::ToAll => withhold_huge_pages(NoHugePages::All),
        Err(_) => Ok(()),
        done => done,
    }
}

/// Whether memory of this process gets a huge page where it asks for one, and only there.
pub fn huge_pages_when_asked() -> bool {
    match (huge_pages_withheld(), huge_pages_given()) {
        (NoHugePages::All, _) | (_, Given::ToNobody) => false,
        (NoHugePages::Unasked, _) | (_, Given::WhenAsked) => true,
        (NoHugePages::Undecided, Given::ToAll) => false,
    }
}

/// To whom the system gives huge pages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    ToAll,
    WhenAsked,
    ToNobody,
}

fn huge_pages_given() -> Given {
    let chosen = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    match chosen {
        Ok(text) if text.contains("[always]") => Given::ToAll,
        Ok(text) if text.contains("[madvise]") => Given::WhenAsked,
        // Or the kernel knows of none.
        _ => Given::ToNobody,
    }
}

/// How often memory was asked back from all threads.
static ASKED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Of these times, how many this thread has followed.
    static FOLLOWED: Cell<u64> = const { Cell::new(0) };
}

/// Gives memory back as [`return_memory`], and has other threads do so, too, as soon as they
/// call [`return_memory_if_asked`]: an allocator keeps what a thread freed, or others freed
/// of what it had taken, until that thread looks at it.
pub fn ask_for_memory() {
    ASKED.fetch_add(1, Ordering::Relaxed);
    return_memory_if_asked();
}

/// Gives the memory of this thread back, if it was asked for since the last time. For threads
/// that have nothing to do.
pub fn return_memory_if_asked() {
    let asked = ASKED.load(Ordering::Relaxed);
    if FOLLOWED.replace(asked) != asked {
        return_memory();
    }
}

/// For threads whose work may wait: where others want the core, too, they get most of it.
pub fn give_way_to_other_threads() {
    // Where the system refuses it they are as the others.
    let _lowered = crate::sys::lower_priority();
}

/// For threads that have little to do, but soon: they run before others that want the core.
pub fn go_before_other_threads() {
    // Where the system refuses it they are as the others.
    let _raised = crate::sys::raise_priority();
}

/// Gives memory back to the system that the allocator holds and nobody uses, where the
/// program says which it is (feature `mimalloc`). mimalloc does so by itself only while
/// it is busy: what a start or a load has left would stay.
pub fn return_memory() {
    #[cfg(feature = "mimalloc")]
    crate::sys::collect();
}

fn page_bytes() -> u64 {
    static PAGE: OnceLock<u64> = OnceLock::new();
    *PAGE.get_or_init(crate::sys::page_bytes)
}

/// The memory that this process may use in bytes: the machine's, or its
/// cgroup's limit (v1 or v2) if that is lower.
pub fn memory_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = info.lines().find_map(|line| {
        let rest = line.strip_prefix("MemTotal:")?;
        rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    })? * 1024;
    Some(cgroup_limit().map_or(total, |limit| limit.min(total)))
}

fn cgroup_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let file = if controllers.is_empty() {
                format!("/sys/fs/cgroup{path}/memory.max")
            } else if controllers.split(',').any(|c| c == "memory") {
                format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes")
            } else {
                return None;
            };
            std::fs::read_to_string(file).ok()?.trim().parse().ok()
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_grows_with_what_is_touched() {
        let before = resident_bytes().expect("this kernel says");
        let touched = std::hint::black_box(vec![1u8; 80 << 20]);
        let after = resident_bytes().expect("this kernel says");
        // Other tests give memory back meanwhile.
        assert!(after >= before + (16 << 20), "{before} to {after}");
        assert_eq!(touched[touched.len() - 1], 1);
        assert!(memory_bytes().expect("this kernel says") > after);
    }

    #[test]
    fn what_is_in_use_stays_when_memory_is_given_back() {
        let kept = vec![7u8; 1 << 20];
        drop(vec![1u8; 8 << 20]);
        ask_for_memory();
        return_memory_if_asked();
        assert!(kept.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn huge_pages_come_only_when_asked_for() {
        huge_pages_only_when_asked().expect("this kernel has the switch");
        let withheld = huge_pages_withheld();
        assert!(withheld != NoHugePages::Undecided || huge_pages_given() != Given::ToAll);
        if withheld == NoHugePages::Unasked {
            assert_eq!(
                huge_pages_when_asked(),
                huge_pages_given() != Given::ToNobody
            );
        }
    }
}
