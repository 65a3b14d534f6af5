//! Emulated devices: slower ones over the one that is there (anti-caching on modern storage,
//! 000 §2 and §5). A profile says what a request takes; the data lies on the device below.
//!
//! | file | holds |
//! |---|---|
//! | `profiles.rs` | the table of devices, and the figures that follow |
//! | `model.rs` | when a request is over; pure, without a clock |
//! | `mechanics.rs` | of disks: head, platter, elevator, the cache of a shingled one |
//! | `placement.rs` | where files lie under the head |
//! | `device.rs`, `reads.rs` | [`EmulatedDevice`], the wrapper, and its asynchronous reads |
//! | `time.rs` | sleeping, spinning and simulated time |
//! | `speed.rs` | refuses what would be faster than the device below |

mod device;
mod mechanics;
mod model;
mod placement;
mod profiles;
mod reads;
mod speed;
mod time;

pub use device::{EmulatedDevice, EmulationCounts};
pub use model::Access;
use model::Request;
pub use profiles::{EmulatedProfile, Mechanics, Shingles};

#[cfg(test)]
mod tests;
