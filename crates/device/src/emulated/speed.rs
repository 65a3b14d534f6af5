//! Whether a device is fast enough for another to be emulated over it: five figures, each a
//! median of a few operations, beside the profile's.

use std::io;
use std::time::{Duration, Instant};

use super::Access;
use super::profiles::EmulatedProfile;
use crate::random::SplitMix64;
use crate::{AlignedBuffer, Device, DeviceFile, SECTOR_BYTES};

const LARGE_BYTES: usize = 1 << 20;
const FILE_BYTES: u64 = 8 << 20;
const REPETITIONS: usize = 15;
/// A device so slow that this is not over by then has said enough.
const TIME_MAX: Duration = Duration::from_secs(2);

/// Fails with `Unsupported` if the device takes longer than the profile. What its syncs take.
pub(super) fn refuse_what_is_faster(
    device: &dyn Device,
    profile: &EmulatedProfile,
) -> io::Result<u64> {
    let file = device.temporary()?;
    let compared = compare(device, &*file, profile);
    drop(file);
    device.remove_temporary()?;
    compared
}

fn compare(
    device: &dyn Device,
    file: &dyn DeviceFile,
    profile: &EmulatedProfile,
) -> io::Result<u64> {
    let mut large = AlignedBuffer::new_zeroed(LARGE_BYTES);
    SplitMix64::new(1).fill(&mut large);
    for offset in (0..FILE_BYTES).step_by(LARGE_BYTES) {
        file.write_at(&large, offset)?;
    }
    file.sync_data()?;
    let mut write_ns = 0.0;
    let mut sync_ns = 0.0;
    for (operation, bytes) in [
        (Access::Read, SECTOR_BYTES),
        (Access::Write, SECTOR_BYTES),
        (Access::Sync, SECTOR_BYTES),
        (Access::Read, LARGE_BYTES),
        (Access::Write, LARGE_BYTES),
    ] {
        let mut measured_ns = median_ns(file, operation, &mut large[..bytes])?;
        let mut wanted_ns = profile.mean_ns(operation, bytes as u64, 1);
        match operation {
            Access::Sync => {
                // A sync belongs to a write: a disk has done the work before, others do it now.
                sync_ns = measured_ns;
                measured_ns += write_ns;
                wanted_ns += profile.mean_ns(Access::Write, bytes as u64, 1);
            }
            Access::Write => write_ns = measured_ns,
            Access::Read => {}
        }
        if measured_ns > wanted_ns {
            let text = too_slow(device, profile, operation, bytes, measured_ns, wanted_ns);
            return Err(text);
        }
    }
    Ok(sync_ns as u64)
}

fn too_slow(
    device: &dyn Device,
    profile: &EmulatedProfile,
    operation: Access,
    bytes: usize,
    measured_ns: f64,
    wanted_ns: f64,
) -> io::Error {
    let what = match operation {
        Access::Read => format!("a read of {} KB", bytes >> 10),
        Access::Write => format!("a write of {} KB", bytes >> 10),
        Access::Sync => "a write of 4 KB with its sync".to_owned(),
    };
    let message = format!(
        "the device below is too slow to emulate {}: {what} takes {:.1} us on {}, and must take \
         {:.1} us at most; emulate a slower device, or give a directory on a faster one, such \
         as /dev/shm",
        profile.kind.name(),
        measured_ns / 1e3,
        device.describe(),
        wanted_ns / 1e3,
    );
    io::Error::new(io::ErrorKind::Unsupported, message)
}

fn median_ns(file: &dyn DeviceFile, operation: Access, bytes: &mut [u8]) -> io::Result<f64> {
    let mut random = SplitMix64::new(2);
    let places = FILE_BYTES / bytes.len() as u64;
    let began = Instant::now();
    let mut times = Vec::with_capacity(REPETITIONS);
    while times.len() < REPETITIONS && (times.is_empty() || began.elapsed() < TIME_MAX) {
        let offset = random.below(places) * bytes.len() as u64;
        if operation == Access::Sync {
            file.write_at(bytes, offset)?;
        }
        let before = Instant::now();
        match operation {
            Access::Read => file.read_at(bytes, offset)?,
            Access::Write => file.write_at(bytes, offset)?,
            Access::Sync => file.sync_data()?,
        }
        times.push(before.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_nanos() as f64)
}
