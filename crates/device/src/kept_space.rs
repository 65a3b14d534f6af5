//! Space of a device that ordinary growth leaves free, so that what makes room finds it there.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::Device;

/// So many bytes of a device that growth leaves free.
pub struct KeptSpace {
    device: Arc<dyn Device>,
    bytes: AtomicU64,
}

impl KeptSpace {
    /// Nothing is kept yet.
    #[must_use]
    pub fn new(device: Arc<dyn Device>) -> Self {
        KeptSpace {
            device,
            bytes: AtomicU64::new(0),
        }
    }

    /// Keeps so many bytes from now on.
    pub fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether so many more bytes leave free what is kept. Where nothing is kept the device is not
    /// asked: one that is full says so itself.
    #[must_use]
    pub fn leaves(&self, bytes: u64) -> bool {
        let kept = self.bytes.load(Ordering::Relaxed);
        let wanted = kept.saturating_add(bytes);
        kept == 0 || self.device.free_bytes().is_ok_and(|free| free >= wanted)
    }
}

impl fmt::Debug for KeptSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.load(Ordering::Relaxed);
        f.debug_struct("KeptSpace").field("bytes", &bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::SimulatedDevice;

    #[test]
    fn growth_leaves_what_is_kept() {
        let device = SimulatedDevice::new();
        device.set_capacity_bytes(Some(100_000));
        let kept = KeptSpace::new(Arc::new(device));
        assert!(kept.leaves(200_000), "nothing is kept");
        kept.set(80_000);
        assert!(kept.leaves(20_000));
        assert!(!kept.leaves(20_001));
        kept.set(u64::MAX);
        assert!(!kept.leaves(1));
    }
}
