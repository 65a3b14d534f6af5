//! Reads or updates rows that are in memory, on one thread, and does nothing else:
//! for counting instructions. `scripts/instructions.sh` runs it with two numbers of
//! operations and takes the difference.
//!
//! The device is simulated: valgrind does not follow io_uring.
//!
//! `hot_path read|update OPERATIONS hash|btree`

use std::env;
use std::pin::pin;
use std::sync::Arc;

use thermocline_bench::Result;
use thermocline_bench::ycsb::client::{Client, Noise};
use thermocline_bench::ycsb::in_process::InProcess;
use thermocline_bench::ycsb::{KeyChooser, Options};
use thermocline_device::SimulatedDevice;
use thermocline_engine::block_on;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: u64 = 10_000;
const ROW_BYTES: usize = 100;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().collect();
    let [_, operation, count, key] = &arguments[..] else {
        return Err("hot_path read|update OPERATIONS hash|btree".into());
    };
    let ordered = match key.as_str() {
        "hash" => false,
        "btree" => true,
        other => return Err(format!("there is no index {other}").into()),
    };
    let options = Options {
        rows: ROWS,
        row_bytes: ROW_BYTES,
        ordered,
        ..Options::default()
    };
    let engine = InProcess::on_device(Arc::new(SimulatedDevice::new()), &options)?;
    let mut client = engine.client(false);
    let mut chooser = KeyChooser::new(ROWS, 1.0, 1)?;
    let noise = Noise::new(&mut chooser, ROW_BYTES);
    // All in memory, and as warm as they get.
    for _ in 0..8 {
        for key in 0..ROWS {
            block_on(client.read(key))?;
        }
    }
    for number in 0..count.parse()? {
        let key = number * 7919 % ROWS;
        match operation.as_str() {
            // Pinned here, or the compiler copies them or not as it likes.
            "read" => block_on(pin!(client.read(key)))?,
            "update" => block_on(pin!(client.update(key, noise.payload(number, ROW_BYTES))))?,
            other => return Err(format!("there is no operation {other}").into()),
        };
    }
    engine.close()
}
