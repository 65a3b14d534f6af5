//! `thermocline bench identification` without the rest of the program, which takes long
//! to build.

use clap::Parser;
use thermocline_bench::identification::{Options, run};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

fn main() -> thermocline_bench::Result<()> {
    run(&Line::parse().options)
}
