//! How even throughput is: YCSB in process, second by second, beside what eviction,
//! compaction and checkpoints did in each. Prints the lowest second by the median one and
//! the latencies; draws a chart.
//!
//! `evenness --memory-limit 256MB --rows 2100000 --seconds 600 --svg evenness.svg`

use std::fmt::Write;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use thermocline_bench::Result;
use thermocline_bench::processors::Processors;
use thermocline_bench::rss::Sampler;
use thermocline_bench::ycsb::in_process::InProcess;
use thermocline_bench::ycsb::measure::{Phase, Warmup};
use thermocline_bench::ycsb::{Options, drive};
use thermocline_engine::CountersReading;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
    /// Draws the seconds here.
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Writes them here, a line each.
    #[arg(long)]
    csv: Option<PathBuf>,
    /// How long what is called a second is, in milliseconds.
    #[arg(long, default_value_t = 1000)]
    interval: u64,
}

/// A second: operations, and what went on beside them.
struct Second {
    operations: u64,
    misses: u64,
    evictions: u64,
    compacted: u64,
    checkpoints: u64,
    log_bytes: u64,
    block_bytes: u64,
    image_bytes: u64,
    /// What the host of a virtual machine took of the processors, from 0 to 1.
    stolen: f64,
}

/// A second of which the host took more says nothing about the database.
const STOLEN_MAX: f64 = 0.02;

fn main() -> Result<()> {
    let _ = thermocline_device::huge_pages_only_when_asked();
    let line = Line::parse();
    let options = &line.options;
    let sampler = Sampler::start(std::process::id());
    let subject = InProcess::open(options)?;
    let phase = Phase::default();
    let clients = async |number| {
        let client = |_| subject.client(options.synchronous_commit);
        Ok((0..options.tasks_of(number)).map(client).collect())
    };
    let warmup = Warmup::For(Duration::from_secs(options.warmup));
    let (driven, seconds) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&phase, &subject, line.interval));
        let driven = drive(options, &phase, warmup, clients, || subject.counters());
        phase.stop();
        (driven, watcher.join())
    });
    let (measured, tally) = driven?;
    let seconds = seconds.map_err(|_| "the watcher panicked")?;
    let memory = subject.memory();
    subject.close()?;
    let rss_max = sampler.stop().unwrap_or(0);

    let mut rates: Vec<u64> = seconds.iter().map(|second| second.operations).collect();
    rates.sort_unstable();
    let median = rates.get(rates.len() / 2).copied().unwrap_or(0);
    let lowest = rates.first().copied().unwrap_or(0);
    let (before, after) = (measured.before, measured.after);
    println!("seconds measured      {}", seconds.len());
    println!("median second         {median} operations");
    println!(
        "lowest second         {lowest} operations, {:.1}% of the median",
        100.0 * lowest as f64 / median.max(1) as f64
    );
    let mut left: Vec<u64> = (seconds.iter())
        .filter(|second| second.stolen < STOLEN_MAX)
        .map(|second| second.operations)
        .collect();
    left.sort_unstable();
    let left_median = left.get(left.len() / 2).copied().unwrap_or(0);
    let left_lowest = left.first().copied().unwrap_or(0);
    println!(
        "left alone            {} seconds, of which the host took less than {:.0}% of the \
         processors: median {left_median}, lowest {:.1}% of it",
        left.len(),
        100.0 * STOLEN_MAX,
        100.0 * left_lowest as f64 / left_median.max(1) as f64
    );
    for quantile in [0.5, 0.99, 0.999, 0.9999] {
        let latency = tally.latency_us(quantile).unwrap_or(0.0);
        println!("latency p{:<12} {latency:.0} us", quantile * 100.0);
    }
    println!(
        "misses                {:.1}%",
        100.0 * tally.miss_share().unwrap_or(0.0)
    );
    println!(
        "evictions             {}",
        after.evictions - before.evictions
    );
    println!(
        "compacted             {} tuples",
        after.tuples_compacted - before.tuples_compacted
    );
    println!(
        "checkpoints           {}",
        after.checkpoints - before.checkpoints
    );
    println!("resident, highest     {} MB", rss_max >> 20);
    for (name, bytes) in [
        ("resident", memory.resident),
        ("arena", memory.arena),
        ("tuples", memory.tuples),
        ("directories", memory.directories),
        ("indexes", memory.indexes),
        ("log buffers", memory.log_buffers),
        ("read buffers", memory.read_buffers),
    ] {
        println!("{name:<21} {:.1} MB", bytes as f64 / f64::from(1 << 20));
    }
    if let Some(path) = &line.svg {
        std::fs::write(path, chart(&seconds, median))?;
        println!("chart                 {}", path.display());
    }
    if let Some(path) = &line.csv {
        std::fs::write(path, table(&seconds))?;
    }
    Ok(())
}

/// A line for each second, comma-separated.
fn table(seconds: &[Second]) -> String {
    let mut lines = String::from(
        "operations,misses,evictions,compacted,checkpoints,log_bytes,block_bytes,image_bytes,\
         stolen\n",
    );
    for s in seconds {
        // Writing to a string can't fail.
        let _ = writeln!(
            lines,
            "{},{},{},{},{},{},{},{},{:.3}",
            s.operations,
            s.misses,
            s.evictions,
            s.compacted,
            s.checkpoints,
            s.log_bytes,
            s.block_bytes,
            s.image_bytes,
            s.stolen
        );
    }
    lines
}

/// Reads the counters once an interval of milliseconds while the run is measuring.
fn watch(phase: &Phase, subject: &InProcess, interval: u64) -> Vec<Second> {
    while !phase.is_measuring() && !phase.is_stopped() {
        thread::sleep(Duration::from_millis(5));
    }
    let read = || (phase.operations(), subject.counters(), Processors::read());
    let mut seconds = Vec::new();
    let begin = Instant::now();
    let mut last: (u64, CountersReading, Processors) = read();
    for number in 1.. {
        let end = begin + Duration::from_millis(number * interval);
        while Instant::now() < end && !phase.is_stopped() {
            thread::sleep(
                end.saturating_duration_since(Instant::now())
                    .min(Duration::from_millis(20)),
            );
        }
        if phase.is_stopped() {
            break;
        }
        let now = read();
        seconds.push(Second {
            operations: now.0 - last.0,
            misses: now.1.misses - last.1.misses,
            evictions: now.1.evictions - last.1.evictions,
            compacted: now.1.tuples_compacted - last.1.tuples_compacted,
            checkpoints: now.1.checkpoints - last.1.checkpoints,
            log_bytes: now.1.log_bytes - last.1.log_bytes,
            block_bytes: now.1.block_bytes_written - last.1.block_bytes_written,
            image_bytes: now.1.image_bytes_written - last.1.image_bytes_written,
            stolen: now.2.stolen_since(&last.2),
        });
        last = now;
    }
    seconds
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const PANEL_HEIGHT: f64 = 90.0;

/// A panel each for operations, evictions and compaction; a mark for each checkpoint.
fn chart(seconds: &[Second], median: u64) -> String {
    type Series = (&'static str, &'static str, fn(&Second) -> u64);
    let series: [Series; 3] = [
        ("operations/s", "#0b6e99", |second| second.operations),
        ("evicted tuples/s", "#d9a05b", |second| second.evictions),
        ("compacted tuples/s", "#888", |second| second.compacted),
    ];
    let step = (WIDTH - LEFT - 10.0) / seconds.len().max(1) as f64;
    let mut body = String::new();
    let height = series.len() as f64 * (PANEL_HEIGHT + 26.0) + 24.0;
    for (number, (name, colour, value)) in series.into_iter().enumerate() {
        let base = (number + 1) as f64 * (PANEL_HEIGHT + 26.0);
        let most = seconds.iter().map(value).max().unwrap_or(0).max(1) as f64;
        let y = |value: f64| base - value / most * PANEL_HEIGHT;
        let mut path = String::new();
        for (place, second) in seconds.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            let x = LEFT + place as f64 * step;
            // Writing to a string can't fail.
            let _ = write!(path, "{command}{x:.1} {:.1}", y(value(second) as f64));
        }
        let _ = writeln!(
            body,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\"/>\n\
             <text x=\"8\" y=\"{:.0}\">{name}, at most {most:.0}</text>",
            base - PANEL_HEIGHT - 8.0
        );
        if number == 0 {
            let seventy = y(0.7 * median as f64);
            let _ = writeln!(
                body,
                "<path d=\"M{LEFT} {seventy:.1}H{:.0}\" stroke=\"#b00\" stroke-dasharray=\"4 3\"/>\n\
                 <text x=\"8\" y=\"{seventy:.0}\" fill=\"#b00\">70% of median</text>",
                WIDTH - 10.0
            );
        }
    }
    for (place, _) in (seconds.iter().enumerate()).filter(|(_, second)| second.checkpoints > 0) {
        let x = LEFT + place as f64 * step;
        let _ = writeln!(
            body,
            "<path d=\"M{x:.1} 24V{:.0}\" stroke=\"#2a2\" stroke-width=\"0.6\"/>",
            height - 22.0
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}\
         <text x=\"8\" y=\"{:.0}\">{} seconds; green: a checkpoint ended</text>\n</svg>\n",
        height - 6.0,
        seconds.len()
    )
}
