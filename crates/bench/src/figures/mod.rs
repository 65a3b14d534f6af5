//! The figures of two papers, drawn from our own runs: what the paper found, what we find, and
//! whether the shape agrees, as code.
//!
//! | module | holds |
//! |---|---|
//! | [`modern_storage`], [`anti_caching`] | the figures of papers 000 and 004, one file each: panels, finding, claims |
//! | `figure`, `data` | what a figure and a claim are, and the values that claims are checked on |
//! | `scale`, `setting` | how large what is measured is; what one run is, as JSON |
//! | `runner` | conducts runs, goes on after a kill, knows what is there already |
//! | `measure`, `cold_device` | one run, in a process of its own, with its blocks on an emulated device |
//! | [`micro`] | what the papers measured on parts of an engine |
//! | `drawing` | SVG |
//! | `report`, `page` | the page, as Markdown and HTML, and a CSV beside each figure |

mod anti_caching;
mod cold_device;
mod data;
mod drawing;
mod figure;
mod measure;
mod micro;
mod modern_storage;
mod outcome;
mod page;
mod report;
mod runner;
mod scale;
mod setting;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::Result;
use data::Data;
use figure::Figure;
use report::Drawn;
use runner::{Places, Results};
use scale::Scale;

pub use measure::Options as RunOptions;

/// The command's name, and that of a single run.
const COMMAND: &str = "figures";
const RUN_COMMAND: &str = "figure-run";
/// A claim does not hold; a run failed.
const CLAIM_FAILED: u8 = 3;
const RUN_FAILED: u8 = 2;
/// Files in memory, where there are such: nearly every device is slower.
const SHARED_MEMORY: &str = "/dev/shm";

/// `thermocline bench figures`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Figures, such as 000.2 or 004.11a, or all.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Small sizes and short times: minutes, not hours.
    #[arg(long)]
    pub quick: bool,
    /// Where results, drawings and pages go; results that are there are used again.
    #[arg(long, value_name = "DIR", default_value = "thermocline-figures")]
    pub out: PathBuf,
    /// Where data is made and removed again; devices are emulated over it, so that it should be
    /// fast. Without it /dev/shm, or the directory of the results.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// How often each setting is measured; three times without --quick.
    #[arg(long)]
    pub trials: Option<u32>,
    /// Only lists the figures.
    #[arg(long)]
    pub list: bool,
    /// Runs nothing, and draws what is there, of any commit.
    #[arg(long)]
    pub redraw: bool,
}

/// All figures, in the papers' order.
fn figures() -> Vec<&'static Figure> {
    vec![
        &modern_storage::storage_comparison::FIGURE,
        &modern_storage::retrieval::FIGURE,
        &modern_storage::merge_threshold::FIGURE,
        &modern_storage::sustained::FIGURE,
        &modern_storage::access::FIGURE,
        &modern_storage::workloads::FIGURE,
        &modern_storage::best_policies::FIGURE,
        &anti_caching::ycsb::FIGURE,
        &anti_caching::tpcc::FIGURE,
        &anti_caching::merge_strategies::FIGURE,
        &anti_caching::block_size::FIGURE,
        &anti_caching::tuple_size::FIGURE,
        &anti_caching::chain::FIGURE,
        &anti_caching::costs::FIGURE,
        &anti_caching::index_costs::FIGURE,
        &anti_caching::over_time::FIGURE,
    ]
}

/// The figures of these names.
fn chosen(names: &[String]) -> Result<Vec<&'static Figure>> {
    let all = figures();
    if names.is_empty() {
        return Err("say which figures to draw, or all; --list has their names".into());
    }
    for name in names {
        if name != "all" && !all.iter().any(|figure| figure.name == name) {
            let known: Vec<&str> = all.iter().map(|figure| figure.name).collect();
            let known = known.join(", ");
            return Err(format!("there is no figure {name}; there are {known}, and all").into());
        }
    }
    let is_chosen = |figure: &&Figure| {
        names
            .iter()
            .any(|name| name == "all" || name == figure.name)
    };
    Ok(all.into_iter().filter(is_chosen).collect())
}

fn scale_of(options: &Options) -> Result<Scale> {
    let mut scale = match options.quick {
        true => Scale::quick(),
        false => Scale::full(),
    };
    if options.trials == Some(0) {
        return Err("--trials must be at least 1".into());
    }
    scale.trials = options.trials.unwrap_or(scale.trials);
    Ok(scale)
}

/// Runs what is missing, draws, and writes the pages. The exit code is 3 where a claim does not
/// hold, and 2 where a run failed.
///
/// # Errors
/// What cannot be done, before any run: no such figure, no room, a device that this machine
/// cannot emulate. Later: a file that cannot be written.
pub fn run(options: &Options) -> Result<ExitCode> {
    if options.list {
        for figure in figures() {
            println!("{:<8} {:<32} {}", figure.name, figure.title, figure.finding);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let figures = chosen(&options.names)?;
    let scale = scale_of(options)?;
    let shared = Path::new(SHARED_MEMORY);
    let data = match &options.dir {
        Some(directory) => directory.as_path(),
        None if shared.is_dir() => shared,
        None => options.out.as_path(),
    };
    let places = Places::take(&options.out, data)?;
    let whats = figures.iter().flat_map(|figure| figure.whats(&scale));
    let runs = runner::plan(whats, scale.trials)?;
    let mut results = runner::found(&places, &runs, options.redraw);
    if !options.redraw {
        runner::conduct(&places, &runs, &mut results)?;
    }
    let drawn = write(&options.out, &figures, &scale, &results)?;
    for one in &drawn {
        println!(
            "{:<8} {:<32} {}",
            one.figure.name,
            one.figure.title,
            one.agreement().words()
        );
        for (claim, verdict) in one.figure.claims.iter().zip(&one.verdicts) {
            if let Some(verdict) = verdict.as_ref().filter(|verdict| !verdict.holds) {
                println!("         not: {} ({})", claim.says, verdict.ours);
            }
        }
    }
    println!("{}", options.out.join("figures.html").display());
    Ok(
        match (results.failed.is_empty(), drawn.iter().any(Drawn::fails)) {
            (false, _) => ExitCode::from(RUN_FAILED),
            (true, true) => ExitCode::from(CLAIM_FAILED),
            (true, false) => ExitCode::SUCCESS,
        },
    )
}

/// A single run, for [`run`].
///
/// # Errors
/// What went wrong in it.
pub fn run_one(options: &RunOptions) -> Result<ExitCode> {
    measure::run(options)?;
    Ok(ExitCode::SUCCESS)
}

/// Draws the figures, and writes them with their pages.
fn write<'a>(
    out: &Path,
    figures: &[&'a Figure],
    scale: &Scale,
    results: &Results,
) -> Result<Vec<Drawn<'a>>> {
    let put = |name: String, text: &str| -> Result<()> {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()).into())
    };
    let mut all = Vec::new();
    for figure in figures {
        let panels = (figure.panels)(scale);
        let data = Data::of(&panels, |what| results.of(what, scale.trials));
        let verdicts = figure.verdicts(&data);
        let drawn = Drawn {
            figure,
            panels,
            data,
            verdicts,
        };
        let svg = drawing::draw(&drawn.title(), &drawn.panels, &drawn.data);
        put(format!("{}.svg", figure.name), &svg)?;
        put(format!("{}.csv", figure.name), &drawn.csv())?;
        if let Some(csv) = drawn.seconds_csv() {
            put(format!("{}-seconds.csv", figure.name), &csv)?;
        }
        all.push(drawn);
    }
    let parts = report::parts(&all, scale, results.all(), &results.failed);
    put("figures.md".into(), &page::markdown(&parts))?;
    put(
        "figures.html".into(),
        &page::html("The papers' figures", &parts),
    )?;
    Ok(all)
}

#[cfg(test)]
mod tests;
