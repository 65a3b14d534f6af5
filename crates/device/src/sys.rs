//! The system calls that the standard library lacks, and one of the allocator's. Linux.
//!
//! Each function checks its arguments, makes one call (again when a signal interrupts it)
//! and turns the outcome into an `io::Result`; nothing here keeps state.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

/// `open(2)` flag for direct I/O.
pub(crate) const O_DIRECT: i32 = libc::O_DIRECT;

/// What is known of the file system that a path lies on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSystem {
    /// `ext4` and so on; `unknown` for those not in our list.
    pub(crate) name: &'static str,
    /// Whether files lie in memory, so that "direct" would mean nothing.
    pub(crate) in_memory: bool,
    /// Bytes that an ordinary user may still write.
    pub(crate) free_bytes: u64,
}

/// The file system under a path.
pub(crate) fn file_system(path: &Path) -> io::Result<FileSystem> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stat = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the path is a C string, and `stat` is memory of the type that the call fills.
    again(|| unsafe { libc::statfs(path.as_ptr(), stat.as_mut_ptr()) })?;
    // SAFETY: all-zero bytes are a valid `statfs`, and the call succeeded in filling it.
    let stat = unsafe { stat.assume_init() };
    // The type of the field differs by architecture; magic numbers have 32 bits.
    let (name, in_memory) = match stat.f_type as u32 {
        0xef53 => ("ext4", false),
        0x5846_5342 => ("xfs", false),
        0x9123_683e => ("btrfs", false),
        0xf2f5_2010 => ("f2fs", false),
        0x2fc1_2fc1 => ("zfs", false),
        0x794c_7630 => ("overlayfs", false),
        0x6969 => ("nfs", false),
        0x6573_5546 => ("fuse", false),
        0x0102_1997 => ("9p", false),
        0x0102_1994 => ("tmpfs", true),
        0x8584_58f6 => ("ramfs", true),
        _ => ("unknown", false),
    };
    Ok(FileSystem {
        name,
        in_memory,
        free_bytes: stat.f_bavail.saturating_mul(stat.f_bsize as u64),
    })
}

/// Ends this process as `kill -9` would: no destructor runs, nothing is flushed.
#[cfg(feature = "stop-points")]
pub(crate) fn kill_this_process() -> ! {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    loop {
        std::thread::park();
    }
}

/// Reserves space for a range, extending the file; `false` where that is not supported.
pub(crate) fn allocate(file: &File, offset: u64, bytes: u64) -> io::Result<bool> {
    fallocate(file, 0, offset, bytes)
}

/// Gives the space of a range back; `false` where that is not supported.
pub(crate) fn punch_hole(file: &File, offset: u64, bytes: u64) -> io::Result<bool> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    fallocate(file, mode, offset, bytes)
}

fn fallocate(file: &File, mode: i32, offset: u64, bytes: u64) -> io::Result<bool> {
    let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let offset = libc::off64_t::try_from(offset).map_err(too_large)?;
    let bytes = libc::off64_t::try_from(bytes).map_err(too_large)?;
    // SAFETY: the descriptor is open for as long as `file` is borrowed; no memory is passed.
    match again(|| unsafe { libc::fallocate64(file.as_raw_fd(), mode, offset, bytes) }) {
        Ok(()) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Makes a call until no signal interrupts it.
fn again(mut call: impl FnMut() -> i32) -> io::Result<()> {
    loop {
        if call() == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Bytes of a page of memory.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: sysconf only reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// A new private mapping of `len` zero bytes, which takes no memory until it is written
/// to. For good, unless it is unmapped.
///
/// # Errors
/// The system's, when it has no room for it.
pub fn map_zeroed(len: usize) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh anonymous mapping; no existing memory is affected.
    let address = unsafe { libc::mmap(null_mut(), len, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// Unmaps a mapping.
///
/// # Safety
/// [`map_zeroed`] or `mmap` gave `start` for this `len`, and nobody uses the memory any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, len: usize) {
    // SAFETY: the caller's promise. It fails only for arguments that no mapping has.
    let outcome = unsafe { libc::munmap(start.as_ptr().cast(), len) };
    debug_assert_eq!(outcome, 0, "unmapping {len} bytes");
}

/// A file's bytes as memory, for reading.
///
/// The bytes change only when the file is written to, and the file's bytes must not be cut where
/// they are looked at. Both are as the seam has it: who reads and writes overlapping ranges at
/// once makes a mistake. See `mapping.rs`.
pub(crate) struct MappedFile {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: memory that nobody writes to through it, and that stays mapped as long as it lives.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps the file's first bytes. They may be more than there are, so that the file can grow.
    pub(crate) fn of(file: &File, len: usize) -> io::Result<MappedFile> {
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED | libc::MAP_NORESERVE);
        // SAFETY: a fresh mapping; no existing memory is affected.
        let address = unsafe { libc::mmap(null_mut(), len, read, shared, file.as_raw_fd(), 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // What is asked for lies anywhere. That the kernel may refuse costs reads ahead.
        // SAFETY: the mapping just made; its bytes stay what they are.
        unsafe { libc::madvise(address, len, libc::MADV_RANDOM) };
        Ok(MappedFile { start, len })
    }

    /// How many bytes are mapped.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A range of it, which must lie before the file's end: the process is killed otherwise.
    pub(crate) fn bytes(&self, offset: usize, bytes: usize) -> Option<&[u8]> {
        if offset.checked_add(bytes)? > self.len {
            return None;
        }
        // SAFETY: it lies in the mapping, which lives as long as the borrow; bytes of any value
        // are bytes, and nobody writes to these meanwhile (see the type).
        Some(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), bytes) })
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `of`; whoever borrowed from it is gone.
        unsafe { unmap(self.start, self.len) };
    }
}

/// Gives the pages of a private anonymous mapping back: they read as zero from now on.
/// False where these are not whole pages or the system refuses, and the bytes are what
/// they were.
pub fn forget_pages(mapped: &mut [u8]) -> bool {
    // The kernel would take the rest of a page that ends with somebody else's bytes.
    if !(mapped.len() as u64).is_multiple_of(page_bytes()) {
        return false;
    }
    let (start, len) = (mapped.as_mut_ptr().cast(), mapped.len());
    // SAFETY: whole pages (a start within one is refused), borrowed for writing, that stay
    // mapped; bytes of any value are bytes.
    unsafe { libc::madvise(start, len, libc::MADV_DONTNEED) == 0 }
}

/// Has the calling thread run on what others leave: whoever wakes goes first (where the kernel
/// knows slices, Linux 6.12 and later, at once), and of a core that both want others get nearly
/// all. Whether the system did so.
pub(crate) fn lower_priority() -> bool {
    // The longer a thread's slice, the sooner others may cut it short.
    scheduled(19, 100_000_000)
}

/// Has the calling thread run soon after it wakes, however many others want the cores: by its
/// priority, where the system lets it, and by a short slice. For what runs for microseconds. Whether
/// the system did so.
pub(crate) fn raise_priority() -> bool {
    const SLICE_NS: u64 = 100_000;
    scheduled(-10, SLICE_NS) || scheduled(0, SLICE_NS)
}

/// Schedules the calling thread so.
fn scheduled(nice: i32, slice_ns: u64) -> bool {
    /// As `sched_setattr(2)` wants it.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime_ns: slice_ns,
        deadline_ns: 0,
        period_ns: 0,
    };
    let (this_thread, no_flags): (libc::pid_t, libc::c_uint) = (0, 0);
    // SAFETY: the kernel reads `attributes`, which says how long it is, and keeps no pointer.
    unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            this_thread,
            &raw const attributes,
            no_flags,
        ) == 0
    }
}

/// Unmaps the pages of this program's code and constants from the process: what is used on is
/// mapped again, from the page cache or the file, when it is reached. Of the rest, megabytes may
/// be resident: the kernel maps sixteen pages, or more, for each that was used once.
pub fn forget_code() {
    static CODE: OnceLock<Option<(usize, usize)>> = OnceLock::new();
    if let Some((start, end)) = *CODE.get_or_init(code) {
        // SAFETY: a private mapping of a file that cannot be written to: nothing ever was, so
        // that what comes back is the same. That the kernel may refuse costs nothing.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

/// First and last address of the mapping that this program's code lies in, with the constants
/// that are mapped right before it: linkers put there what is only read. (Behind it lies what was
/// written to while the program was loaded.)
fn code() -> Option<(usize, usize)> {
    let here = forget_code as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut constants = None;
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        // Of a file, privately, and never written to.
        let access = words.next()?;
        let file = words.last()?;
        if access == "r-xp" && file.starts_with('/') && (start..end).contains(&here) {
            let before = constants.filter(|(_, end, of)| *end == start && *of == file);
            return Some((before.map_or(start, |(start, ..)| start), end));
        }
        constants = (access == "r--p").then_some((start, end, file));
        None
    })
}

/// Which of this process's memory gets no huge pages, whatever the system gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoHugePages {
    /// The system decides.
    Undecided = 0,
    All = 1,
    /// That for which none are asked. Linux 6.18.
    Unasked = 3,
}

/// Has the kernel give some of this process's memory no huge pages from now on.
pub(crate) fn withhold_huge_pages(from: NoHugePages) -> io::Result<()> {
    let switch = from as libc::c_ulong;
    let (on, flags, none): (_, _, libc::c_ulong) = (switch & 1, switch & !1, 0);
    // SAFETY: a switch of the process; no memory is passed.
    let outcome = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, on, flags, none, none) };
    if outcome == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What [`withhold_huge_pages`] was last called with, here or in the parent process.
pub(crate) fn huge_pages_withheld() -> NoHugePages {
    let none: libc::c_ulong = 0;
    // SAFETY: asks for a switch of the process; no memory is passed.
    match unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, none, none, none, none) } {
        0 => NoHugePages::Undecided,
        3 => NoHugePages::Unasked,
        _ => NoHugePages::All,
    }
}

/// Gives huge pages to all that this process has allocated; how many bytes got them.
/// What had gone back to the system is resident then, so this is for measurements of
/// what memory can do, and not for those who have a limit.
pub fn join_all_memory() -> usize {
    const HUGE: usize = 2 << 20;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut joined = 0;
    for line in maps.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [range, "rw-p", _, _, "0"] = words[..] else {
            continue;
        };
        let hex = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let (start, end) = range.split_once('-').unwrap_or(("0", "0"));
        for at in (hex(start).next_multiple_of(HUGE)..hex(end)).step_by(HUGE) {
            let place = std::ptr::without_provenance_mut(at);
            // SAFETY: what is in the memory stays the same; none is given back.
            if unsafe { libc::madvise(place, HUGE, libc::MADV_COLLAPSE) } == 0 {
                joined += HUGE;
            }
        }
    }
    joined
}

/// Has the allocator give back what it holds and nobody uses.
#[cfg(feature = "mimalloc")]
pub(crate) fn collect() {
    // SAFETY: mimalloc looks at its own memory only, whether it is the allocator or not.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests would bring code back meanwhile: this one has a process of its own.
    #[test]
    fn a_lowered_priority_is_that_of_one_thread() {
        fn nice() -> i64 {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            // The name before it may have blanks; this is the 17th field behind it.
            let (_, fields) = stat.rsplit_once(')').unwrap();
            fields
                .split_ascii_whitespace()
                .nth(16)
                .unwrap()
                .parse()
                .unwrap()
        }
        let before = nice();
        let lowered = std::thread::spawn(|| (lower_priority(), nice()));
        assert_eq!(lowered.join().unwrap(), (true, 19));
        let raised = std::thread::spawn(|| (raise_priority(), nice()));
        let (done, raised) = raised.join().unwrap();
        assert!(done && [-10, before.min(0)].contains(&raised), "{raised}");
        assert_eq!(nice(), before);
    }

    #[test]
    fn code_is_forgotten_and_runs_again() {
        const ALONE: &str = "CODE_IS_FORGOTTEN_ALONE";
        if std::env::var_os(ALONE).is_none() {
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["sys::tests::code_is_forgotten_and_runs_again", "--exact"])
                .arg("--test-threads=1")
                .env(ALONE, "1")
                .status()
                .unwrap();
            assert!(status.success());
            return;
        }
        let (start, end) = code().expect("the kernel says where");
        let resident = || crate::resident().expect("the kernel says").files;
        // SAFETY: this program's code, by the kernel's word.
        let touched: usize = (start..end)
            .step_by(4096)
            .map(|at| usize::from(unsafe { *(at as *const u8) }))
            .sum();
        assert!(touched > 0);
        let before = resident();
        forget_code();
        let after = resident();
        let forgotten = before.saturating_sub(after);
        assert!(
            forgotten > (end - start) as u64 / 2,
            "{before} to {after} bytes"
        );
    }

    #[test]
    fn a_file_system_has_a_name_and_a_path_that_is_absent_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let found = file_system(directory.path()).unwrap();
        assert!(!found.name.is_empty() && found.free_bytes > 0, "{found:?}");
        let absent = file_system(&directory.path().join("absent")).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_whole_pages_are_forgotten() {
        let page = page_bytes() as usize;
        let start = map_zeroed(2 * page).unwrap();
        // SAFETY: mapped just now, and nobody else's until it is unmapped.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), 2 * page) };
        bytes.fill(7);
        assert!(!forget_pages(&mut bytes[..page + 1]));
        assert!(!forget_pages(&mut bytes[1..=page]));
        assert!(bytes.iter().all(|byte| *byte == 7));
        assert!(forget_pages(&mut bytes[..page]));
        assert!(bytes[..page].iter().all(|byte| *byte == 0));
        assert!(bytes[page..].iter().all(|byte| *byte == 7));
        // SAFETY: `map_zeroed` gave it for this length, and `bytes` is not used any more.
        unsafe { unmap(start, 2 * page) };
    }

    #[test]
    fn what_is_allocated_stays_the_same_when_it_is_joined() {
        let kept: Vec<u32> = (0..4 << 20).collect();
        let joined = join_all_memory();
        assert!(kept.iter().zip(0..).all(|(word, number)| *word == number));
        assert_eq!(joined % (2 << 20), 0);
    }

    #[test]
    fn allocating_extends_and_punching_keeps_the_length() {
        let file = tempfile::tempfile().unwrap();
        if !allocate(&file, 0, 1 << 20).unwrap() {
            return;
        }
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
        assert!(punch_hole(&file, 0, 1 << 19).is_ok());
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
        assert!(allocate(&file, u64::MAX, 1).is_err());
    }
}
