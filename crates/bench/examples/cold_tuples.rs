//! What a cold tuple costs in memory: loads rows step by step, has all of them evicted
//! after each step, and prints the process's resident size. Its slope over the number of
//! evicted tuples is the price of one (004 §3.1: the tombstone).
//!
//! `cold_tuples --rows 20000000 --row-bytes 100 --memory-limit 1GB`

use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use thermocline_bench::Result;
use thermocline_bench::rss;
use thermocline_bench::ycsb::client::{Client, Noise};
use thermocline_bench::ycsb::in_process::InProcess;
use thermocline_bench::ycsb::{KeyChooser, Options};
use thermocline_engine::{MEMORY_LIMIT_MIN, block_on};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

const STEPS: u64 = 5;
/// All are evicted when the counter has stood still for so long.
const QUIET: Duration = Duration::from_millis(1500);

fn main() -> Result<()> {
    let _ = thermocline_device::huge_pages_only_when_asked();
    let options = Line::parse().options;
    let each = options.rows / STEPS;
    let subject = InProcess::open(&Options {
        rows: each,
        ..options.clone()
    })?;
    let mut client = subject.client(false);
    let mut chooser = KeyChooser::new(1, 0.0, options.seed)?;
    let noise = Noise::new(&mut chooser, options.row_bytes);
    println!(
        "| rows | cold | resident (bytes) | directories and indexes (bytes) | of these a cold row |"
    );
    println!("|---|---|---|---|---|");
    let mut points: Vec<(f64, f64)> = Vec::new();
    for step in 1..=STEPS {
        subject.set_memory_limit(options.memory_limit);
        if step > 1 {
            for key in (step - 1) * each..step * each {
                let payload = noise.payload(key.wrapping_mul(7919), options.row_bytes);
                block_on(client.insert(key, payload))?;
            }
        }
        // Less than the process needs: everything that can leave leaves.
        subject.set_memory_limit(MEMORY_LIMIT_MIN);
        let (mut evictions, mut since) = (subject.counters().evictions, Instant::now());
        while since.elapsed() < QUIET {
            thread::sleep(Duration::from_millis(50));
            let now = subject.counters().evictions;
            if now != evictions {
                (evictions, since) = (now, Instant::now());
            }
        }
        let resident = rss::resident_bytes(std::process::id()).unwrap_or(0);
        let memory = subject.memory();
        let metadata = memory.directories + memory.indexes;
        let cold = memory.cold_tuples;
        println!(
            "| {} | {cold} | {resident} | {metadata} | {:.1} |",
            step * each,
            metadata as f64 / cold.max(1) as f64
        );
        points.push((cold as f64, resident as f64));
    }
    println!(
        "\nslope: {:.1} bytes of resident memory a cold tuple",
        slope(&points)
    );
    subject.set_memory_limit(options.memory_limit);
    subject.close()
}

/// By least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
    let products = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y));
    let squares = points.iter().map(|(x, _)| (x - mean_x).powi(2));
    products.sum::<f64>() / squares.sum::<f64>()
}
