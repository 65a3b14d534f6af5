//! `thermocline-peers run`: cell by cell, the systems in turns.
//!
//! In a cell each system runs once, then each again, as often as asked for, so that
//! what disturbs the machine disturbs all; the medians count. A system that its cgroup
//! kills, or that stands still, runs again with smaller caches, and its result says so. One that
//! fails has a result without figures that says why. A cell is written as soon as
//! it is done, and what the file has already is not run again.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use thermocline_bench::{Result, size};

use crate::bound;
use crate::cell::Cell;
use crate::child::{self, Ended};
use crate::data::{self, Data};
use crate::io_limit::IoLimit;
use crate::matrix::Matrix;
use crate::one::{Job, Outcome, threads};
use crate::page_cache;
use crate::results::{Measurement, Results, median};
use crate::system::{self, System};

/// The quick matrix's time when the data are there.
const QUICK_BUDGET_S: f64 = 14.0 * 60.0;
/// Starting and closing a system takes about this long.
const RUN_OVERHEAD_S: f64 = 1.5;
/// Seconds of measuring in the full matrix.
const FULL_SECONDS: u64 = 20;
/// What is left of the caches of a system that its cgroup has killed or that stood still,
/// and how often they are made smaller before it is given up.
const CACHES_LEFT: f64 = 0.8;
const REDUCTIONS_MAX: u32 = 6;
/// Runs of a turn until the host leaves one alone.
const QUIET_TRIES: u64 = 3;
/// What the note of a result says that has it from smaller caches.
pub const RUN_AGAIN: &str = "run again with";

/// `thermocline-peers run`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Which cells.
    #[arg(long, value_enum, default_value = "quick")]
    pub matrix: Matrix,
    /// Where data are kept; put it on the device that you mean.
    #[arg(long, default_value = "thermocline-peers-data")]
    pub dir: PathBuf,
    /// The results; those already there are not measured again.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// The memory limit of each system; its cgroup has a tenth more.
    #[arg(long, default_value = "256MB", value_parser = size::parse)]
    pub memory_limit: u64,
    /// Hold the device to so many reads a second, for all of them and for the bound.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub device_reads: Option<u64>,
    /// A run during which the host of this virtual machine took more of its processors than so
    /// many percent is repeated, twice at most; the one with the least counts.
    #[arg(long)]
    pub stolen_max: Option<f64>,
    /// Only these systems.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub systems: Vec<System>,
    /// Runs of each system in a cell [default: quick 1, full 3].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
    /// Seconds of warming up [default: quick within its 15 minutes, full until the rate is steady].
    #[arg(long)]
    pub warmup: Option<u64>,
    /// Seconds of measuring [default: quick within its 15 minutes, full 20].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Stops after the cell that passes this time; run again to go on.
    #[arg(long)]
    pub minutes: Option<u64>,
    /// Only cells whose title has this text, e.g. "8x memory" or "Zipf 1, 90% reads".
    #[arg(long)]
    pub only: Option<String>,
    /// Stops after so many cells.
    #[arg(long)]
    pub cells: Option<usize>,
}

/// How long each run warms up and measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    warmup_s: Option<u64>,
    seconds: u64,
}

impl Options {
    fn systems(&self) -> Result<Vec<System>> {
        if let Some(missing) = self.systems.iter().find(|system| !system.is_built()) {
            let why = system::left_out().unwrap_or_default();
            return Err(format!("{} is not there\n{why}", missing.name()).into());
        }
        let asked = |system: &System| match self.systems.is_empty() {
            true => system.is_built(),
            false => self.systems.contains(system),
        };
        Ok(System::ALL.into_iter().filter(asked).collect())
    }

    fn repeat(&self) -> u32 {
        self.repeat.unwrap_or(match self.matrix {
            Matrix::Quick => 1,
            Matrix::Full => 3,
        })
    }

    /// The quick matrix fits its time, whatever takes part: 10 and 10 seconds
    /// when that is possible, less with all rivals.
    fn times(&self, cells: &[Cell], systems: &[System]) -> Times {
        let chosen = match self.matrix {
            Matrix::Full => Times {
                warmup_s: None,
                seconds: FULL_SECONDS,
            },
            Matrix::Quick => {
                let runs: usize = cells.iter().map(|cell| takers(systems, cell).count()).sum();
                let each = QUICK_BUDGET_S / (runs.max(1) as f64 * f64::from(self.repeat()));
                let each = (each - RUN_OVERHEAD_S).clamp(4.0, 20.0) as u64;
                Times {
                    warmup_s: Some(each.div_ceil(2)),
                    seconds: each / 2,
                }
            }
        };
        Times {
            warmup_s: self.warmup.or(chosen.warmup_s),
            seconds: self.seconds.unwrap_or(chosen.seconds),
        }
    }
}

/// The systems that take part in a cell: the map and RocksDB's page cache only where rows
/// could be in memory, our hash index where it costs no hot rows their place. Batches only
/// where several reads are under way on a thread.
fn takers(systems: &[System], cell: &Cell) -> impl Iterator<Item = System> {
    let larger = cell.is_larger_than_memory();
    let batches = cell.reads == 1.0 && cell.in_flight > 2;
    let takes_part = move |system: &System| match system {
        System::Hashmap | System::RocksdbBuffered | System::RocksdbRowCacheBuffered => !larger,
        System::ThermoclineHash => cell.surely_fits(),
        System::ThermoclineGetMany => batches,
        _ => true,
    };
    systems.iter().copied().filter(takes_part)
}

/// Runs the matrix.
pub fn run(options: &Options) -> Result<()> {
    if let Some(text) = system::left_out() {
        eprintln!("{text}\n");
    }
    let systems = options.systems()?;
    let mut cells = options.matrix.cells();
    if let Some(text) = &options.only {
        cells.retain(|cell| cell.to_string().contains(text));
    }
    let times = options.times(&cells, &systems);
    let warmup = times
        .warmup_s
        .map_or("warm-up until steady".into(), |s| format!("{s} s warm-up"));
    eprintln!(
        "{} cells, {warmup}, {} s measured",
        cells.len(),
        times.seconds
    );
    std::fs::create_dir_all(&options.dir)?;
    let dir = options.dir.canonicalize()?;
    let held = |reads| IoLimit::new(&dir, reads);
    let io_limit = options.device_reads.map(held).transpose()?;
    let program = dir.join("program");
    child::copy_program(&program)?;
    let mut results = Results::open(options.json.as_deref())?;
    let todo: Vec<(Cell, Vec<System>)> = cells
        .iter()
        .map(|cell| {
            let open = |system: &System| !results.has(cell, *system);
            (*cell, takers(&systems, cell).filter(open).collect())
        })
        .filter(|(_, systems): &(_, Vec<_>)| !systems.is_empty())
        .collect();
    let runs: usize = todo.iter().map(|(_, systems)| systems.len()).sum();
    let bar = progress_bar(runs as u64 * u64::from(options.repeat()));
    let begin = Instant::now();
    for (number, (cell, systems)) in todo.iter().enumerate() {
        let bench = Bench {
            options,
            dir: &dir,
            program: &program,
            io_limit: io_limit.as_ref(),
            times,
            bar: &bar,
        };
        let measured = bench.measure(cell, systems)?;
        results.add(cell, measured)?;
        bar.suspend(|| println!("{}", results.table(cell)));
        let group = |cell: &Cell| data::group(&dir, cell, options.memory_limit);
        let next = todo.get(number + 1).map(|(next, _)| group(next));
        if options.matrix == Matrix::Full && next.is_none_or(|next| next != group(cell)) {
            std::fs::remove_dir_all(group(cell))?;
        }
        let minutes = begin.elapsed().as_secs() / 60;
        let enough = options.minutes.is_some_and(|most| minutes >= most)
            || options.cells.is_some_and(|most| number + 1 >= most);
        if enough && number + 1 < todo.len() {
            bar.finish_and_clear();
            println!(
                "\n{} cells are left; the same command goes on",
                todo.len() - number - 1
            );
            return Ok(());
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// Whether a run came to less than an operation a second for each request in flight: its
/// memory has no room left to work in, though nobody killed it.
fn stands_still(outcome: &Outcome, cell: &Cell) -> bool {
    let least = cell.in_flight as f64;
    outcome.ops_per_s.is_none_or(|rate| rate < least)
}

/// A bar on stderr; nothing where stderr is not a terminal.
fn progress_bar(runs: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(runs);
    let template = "{elapsed_precise} {wide_bar} {pos}/{len} runs, {eta} left\n{msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

struct Bench<'a> {
    options: &'a Options,
    dir: &'a Path,
    program: &'a Path,
    io_limit: Option<&'a IoLimit>,
    times: Times,
    bar: &'a ProgressBar,
}

/// A system's turns in a cell.
struct Turns {
    system: System,
    data: Data,
    cache_scale: f64,
    outcomes: Vec<Outcome>,
    rss_max_bytes: Option<u64>,
    notes: Vec<String>,
    failed: bool,
}

impl Turns {
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn fail(&mut self, why: String) {
        self.failed = true;
        self.note(why);
    }

    fn middle(&self, of: fn(&Outcome) -> Option<f64>) -> Option<f64> {
        let values = self.outcomes.iter().filter_map(of).collect();
        if self.failed { None } else { median(values) }
    }
}

impl Bench<'_> {
    fn measure(&self, cell: &Cell, systems: &[System]) -> Result<Vec<Measurement>> {
        let limit = self.options.memory_limit;
        let mut turns: Vec<Turns> = systems
            .iter()
            .map(|&system| Turns {
                system,
                data: Data::new(self.dir, cell, limit, system),
                cache_scale: 1.0,
                outcomes: Vec::new(),
                rss_max_bytes: None,
                notes: Vec::new(),
                failed: false,
            })
            .collect();
        let bound = self.bound(cell)?;
        for _ in 0..self.options.repeat() {
            let seed = rand::random::<u64>() >> 2;
            for turn in &mut turns {
                if !turn.failed {
                    self.bar
                        .set_message(format!("{}: {cell}", turn.system.name()));
                    self.quiet_turn(cell, turn, seed)?;
                }
                self.bar.inc(1);
            }
        }
        let measured = turns.into_iter().map(|turns| Measurement {
            system: turns.system,
            size_ratio: cell.size_ratio,
            zipf: cell.zipf,
            reads: cell.reads,
            row_bytes: cell.row_bytes,
            in_flight: cell.in_flight,
            threads: threads(turns.system, cell.in_flight),
            durability: cell.durability,
            ops_per_s: turns.middle(|outcome| outcome.ops_per_s),
            p999_us: turns.middle(|outcome| outcome.p999_us),
            miss_share: turns.middle(|outcome| outcome.miss_share),
            stolen_share: turns.middle(|outcome| Some(outcome.stolen_share)),
            rss_max_bytes: turns.rss_max_bytes,
            device_reads_per_s: self.options.device_reads.filter(|_| !cell.surely_fits()),
            bound_ops_per_s: bound,
            ratio_to_best_rival: None,
            note: (!turns.notes.is_empty()).then(|| turns.notes.join("; ")),
        });
        Ok(measured.collect())
    }

    /// The bound, by the device as it is now.
    fn bound(&self, cell: &Cell) -> Result<Option<f64>> {
        if !cell.is_larger_than_memory() || cell.inserts() {
            return Ok(None);
        }
        self.bar.set_message(format!("the device: {cell}"));
        let limit = self.options.memory_limit;
        let (rows, row_bytes) = (cell.rows(limit), cell.row_bytes as u64);
        let place = data::group(self.dir, cell, limit).join("device");
        let time = Duration::from_secs(self.times.seconds.clamp(2, 6));
        self.hold(true)?;
        let reads = bound::device_reads(&place, rows * row_bytes, cell.in_flight, time)?;
        self.hold(false)?;
        let missed = bound::miss_share(rows, cell.zipf, row_bytes, limit);
        Ok(reads.map(|reads| reads / missed))
    }

    fn hold(&self, held: bool) -> Result<()> {
        self.io_limit.map_or(Ok(()), |limit| limit.hold(held))
    }

    fn job(&self, cell: &Cell, turn: &Turns, seed: u64) -> Job {
        Job {
            system: turn.system,
            directory: turn.data.directory(),
            cell: *cell,
            rows: cell.rows(self.options.memory_limit),
            memory_limit: self.options.memory_limit,
            cache_scale: turn.cache_scale,
            load_only: false,
            inserted: turn.data.inserted().unwrap_or(0),
            seed,
            warmup_s: self.times.warmup_s,
            seconds: self.times.seconds,
            io_switch: self
                .io_limit
                .filter(|_| !cell.surely_fits())
                .map(|limit| limit.switch().clone()),
        }
    }

    /// A turn, taken again while the host takes too much of the processors.
    fn quiet_turn(&self, cell: &Cell, turn: &mut Turns, seed: u64) -> Result<()> {
        let most = self.options.stolen_max.map_or(1.0, |most| most / 100.0);
        let mut quietest: Option<Outcome> = None;
        for attempt in 0..QUIET_TRIES {
            let cache_scale = turn.cache_scale;
            // Other keys each time, the same for all systems.
            self.turn(cell, turn, seed.saturating_sub(attempt))?;
            let Some(outcome) = turn.outcomes.pop_if(|_| !turn.failed) else {
                return Ok(());
            };
            // What was measured with larger caches isn't comparable.
            quietest = quietest
                .filter(|_| turn.cache_scale == cache_scale)
                .filter(|quietest| quietest.stolen_share <= outcome.stolen_share)
                .or(Some(outcome));
            if quietest
                .as_ref()
                .is_none_or(|outcome| outcome.stolen_share <= most)
            {
                break;
            }
        }
        turn.outcomes.extend(quietest);
        Ok(())
    }

    fn turn(&self, cell: &Cell, turn: &mut Turns, seed: u64) -> Result<()> {
        // The map shows what memory allows: it has what it needs.
        let limited = turn.system != System::Hashmap;
        for reductions in 0..=REDUCTIONS_MAX {
            if let Err(why) = self.load(cell, turn) {
                turn.fail(format!("not loaded: {why}"));
                return Ok(());
            }
            let job = self.job(cell, turn, seed);
            // Only what may write can spoil the data.
            turn.data.unmark()?;
            page_cache::forget(&turn.data.directory())?;
            let (ended, note) = child::run(self.program, &job, &turn.data.log("run.log"), limited)?;
            // The run has held it when it was warm.
            self.hold(false)?;
            note.into_iter().for_each(|note| turn.note(note));
            let may_shrink = reductions < REDUCTIONS_MAX && turn.system.is_rival();
            let shrunk = match ended {
                Ended::Measured(outcome, rss) => {
                    turn.data.mark(outcome.inserted)?;
                    if !stands_still(&outcome, cell) {
                        turn.rss_max_bytes = turn.rss_max_bytes.max(rss);
                        turn.outcomes.push(outcome);
                        return Ok(());
                    }
                    if !may_shrink {
                        turn.fail("stood still".into());
                        return Ok(());
                    }
                    "stood still"
                }
                Ended::Killed if may_shrink => "killed by its cgroup",
                Ended::Killed => {
                    turn.fail("killed by its cgroup".into());
                    return Ok(());
                }
                Ended::Failed(why) => {
                    turn.fail(why);
                    return Ok(());
                }
            };
            turn.cache_scale *= CACHES_LEFT;
            turn.notes.retain(|note| !note.contains(RUN_AGAIN));
            turn.note(format!(
                "{shrunk}, {RUN_AGAIN} {:.0}% of its caches",
                turn.cache_scale * 100.0
            ));
            // What was measured with larger caches isn't comparable.
            turn.outcomes.clear();
        }
        Ok(())
    }

    /// Loads the rows if they are not there; without a cgroup, for the time that
    /// takes is nobody's result.
    fn load(&self, cell: &Cell, turn: &Turns) -> Result<()> {
        if turn.data.inserted().is_some() {
            return Ok(());
        }
        turn.data.begin_load()?;
        if turn.system == System::Hashmap {
            return turn.data.mark(0);
        }
        let job = Job {
            load_only: true,
            inserted: 0,
            cell: Cell {
                reads: 1.0,
                ..*cell
            },
            cache_scale: 1.0,
            ..self.job(cell, turn, 1)
        };
        match child::run(self.program, &job, &turn.data.log("load.log"), false)?.0 {
            Ended::Measured(..) => turn.data.mark(0),
            Ended::Killed => Err("killed".into()),
            Ended::Failed(why) => Err(why.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(line: &[&str]) -> Options {
        let line = std::iter::once(&"run").chain(line);
        Line::try_parse_from(line).expect("a valid line").options
    }

    #[test]
    fn the_quick_matrix_fits_its_time_with_all_rivals_and_has_twenty_seconds_with_few() {
        let cells = Matrix::Quick.cells();
        let all = System::ALL.to_vec();
        let times = options(&[]).times(&cells, &all);
        let runs: usize = cells.iter().map(|cell| takers(&all, cell).count()).sum();
        let each = times.warmup_s.expect("fixed") + times.seconds;
        assert!(runs as f64 * (each as f64 + RUN_OVERHEAD_S) < 15.0 * 60.0);
        let few = options(&[]).times(&cells, &[System::Thermocline, System::Lmdb]);
        assert_eq!((few.warmup_s, few.seconds), (Some(10), 10));
        let told = options(&["--warmup", "3", "--seconds", "7"]).times(&cells, &all);
        assert_eq!((told.warmup_s, told.seconds), (Some(3), 7));
    }

    #[test]
    fn a_run_without_operations_stands_still_and_a_slow_one_does_not() {
        let cell = Matrix::Full.cells()[0];
        let run = |ops_per_s| Outcome {
            ops_per_s,
            ..Outcome::default()
        };
        let least = cell.in_flight as f64;
        assert!(stands_still(&run(None), &cell));
        assert!(stands_still(&run(Some(least * 0.9)), &cell));
        assert!(!stands_still(&run(Some(least)), &cell));
    }

    #[test]
    fn the_map_takes_part_only_where_rows_fit() {
        for cell in Matrix::Full.cells() {
            let there = takers(&System::ALL, &cell).any(|system| system == System::Hashmap);
            assert_eq!(there, cell.size_ratio <= 1.0, "{cell}");
        }
    }
}
