//! What the papers measured on the parts of an engine, on ours (004 §5.4, §5.5).
//!
//! | file | holds |
//! |---|---|
//! | `chain.rs` | the order of rows by their last use: linked once, twice, or not at all |
//! | `phases.rs` | one block out and back: construct, write, fetch, merge |
//! | `indexes.rs` | what is updated when tuples leave memory |

pub(super) mod chain;
pub(super) mod indexes;
pub(super) mod phases;

use std::time::Duration;

/// A time as figures have it.
fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
