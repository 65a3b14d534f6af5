//! A probe's report as people read it: the class, a table, and a picture in characters.

use std::fmt::Write;

use super::{Access, Cell, Pattern, Report, SECTOR_BYTES, SIZES};

/// The longest bar.
const BAR_MAX: usize = 48;
/// Each character of a bar is such a factor.
const BAR_FACTOR: f64 = 1.4;

impl Report {
    /// The class and why, the figures that policies are chosen by, and all that was measured.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<17}{value}");
        };
        line("device", self.device.clone());
        line("class", self.class.name().to_owned());
        line("why", self.class.why.clone());
        if let Some(kernel) = &self.kernel {
            line("kernel says", kernel.text());
        }
        let profile = &self.profile;
        line("read latency", time(profile.read_latency_us));
        line("random reads", format!("{:.0} a second", profile.read_iops));
        let write = profile.sequential_write_mb_s;
        line("sequential write", format!("{write:.0} MB a second"));
        line("small sync", time(profile.sync_us));
        text.push('\n');
        self.write_sizes(&mut text);
        self.write_depths(&mut text);
        self.write_tuples(&mut text);
        self.write_picture(&mut text);
        text
    }

    fn write_sizes(&self, text: &mut String) {
        let columns = [
            ("random read", Access::Read, Pattern::Random),
            ("sequential read", Access::Read, Pattern::Sequential),
            ("random write", Access::Write, Pattern::Random),
            ("sequential write", Access::Write, Pattern::Sequential),
        ];
        let _ = writeln!(text, "median time, and MB a second of all");
        let _ = write!(text, "{:<8}", "size");
        for (name, _, _) in columns {
            let _ = write!(text, "  {name:>22}");
        }
        text.push('\n');
        for bytes in std::iter::once(super::LINE_BYTES).chain(SIZES) {
            let cells =
                columns.map(|(_, operation, pattern)| self.cell(operation, pattern, bytes, 1));
            if cells.iter().all(Option::is_none) {
                continue;
            }
            let _ = write!(text, "{:<8}", size(bytes));
            for cell in cells {
                let _ = write!(text, "  {:>22}", cell.map_or(String::new(), time_and_rate));
            }
            text.push('\n');
        }
        text.push('\n');
    }

    fn write_depths(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "{:<8}  {:>22}  {:>22}",
            "at once", "reads of 4 KB", "writes of 4 KB"
        );
        for depth in [1, 2, 4, 8, 16, 32, 64] {
            let cells = [Access::Read, Access::Write]
                .map(|operation| self.cell(operation, Pattern::Random, SECTOR_BYTES, depth));
            let _ = write!(text, "{depth:<8}");
            for cell in cells {
                let shown = cell.map_or(String::new(), |cell| {
                    format!("{} {:>9.0} /s", time(cell.times.median_us), cell.per_second)
                });
                let _ = write!(text, "  {shown:>22}");
            }
            let trimmed = text.trim_end().len();
            text.truncate(trimmed);
            text.push('\n');
        }
        text.push('\n');
    }

    fn write_tuples(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "hash table of 1 KB tuples, Zipf 1.0, mean and deviation\n{:<8}  {:>24}  {:>24}",
            "tuples", "read", "write with its sync"
        );
        for row in &self.tuples {
            let shown = [&row.read, &row.write]
                .map(|times| format!("{} +- {}", time(times.mean_us), time(times.deviation_us)));
            let [read, write] = shown;
            let _ = writeln!(text, "{:<8}  {read:>24}  {write:>24}", row.tuples);
        }
        text.push('\n');
    }

    fn write_picture(&self, text: &mut String) {
        let bars = |operation| {
            let cells = self.cells.iter();
            cells.filter(move |cell: &&Cell| {
                (cell.operation, cell.pattern, cell.depth) == (operation, Pattern::Random, 1)
            })
        };
        let times = bars(Access::Read).chain(bars(Access::Write));
        let least = times
            .map(|cell| cell.times.median_us)
            .fold(f64::INFINITY, f64::min);
        let _ = writeln!(
            text,
            "median time at random places; one character more is {BAR_FACTOR} times as long"
        );
        for (name, operation) in [("read", Access::Read), ("write", Access::Write)] {
            for cell in bars(operation) {
                let steps = (cell.times.median_us / least).ln() / BAR_FACTOR.ln();
                let bar = "#".repeat(1 + (steps.max(0.0).round() as usize).min(BAR_MAX));
                let (size, time) = (size(cell.bytes), time(cell.times.median_us));
                let _ = writeln!(text, "{name:<5} {size:>6} {bar} {time}");
            }
        }
    }
}

impl super::KernelWord {
    fn text(&self) -> String {
        let disk = self.disk.as_deref().unwrap_or("no disk that it knows");
        let turns = match self.rotational {
            Some(true) => ", turns",
            Some(false) => ", does not turn",
            None => "",
        };
        let zoned = match self.zoned.as_deref() {
            Some("none") | None => String::new(),
            Some(zoned) => format!(", zoned ({zoned})"),
        };
        let memory = match self.in_memory {
            true => ", a file system in memory",
            false => "",
        };
        format!("{disk}{turns}{zoned}{memory}")
    }
}

fn time_and_rate(cell: &Cell) -> String {
    format!("{} {:>7.1} MB/s", time(cell.times.median_us), cell.mb_s())
}

/// A time in the unit that suits it, in nine characters.
fn time(us: f64) -> String {
    if us < 1.0 {
        format!("{:>6.0} ns", us * 1e3)
    } else if us < 1000.0 {
        format!("{us:>6.1} us")
    } else {
        format!("{:>6.1} ms", us / 1e3)
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KB", bytes >> 10),
        _ => format!("{} MB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_the_unit_that_suits_them() {
        assert_eq!(time(0.25).trim(), "250 ns");
        assert_eq!(time(88.04).trim(), "88.0 us");
        assert_eq!(time(12_700.0).trim(), "12.7 ms");
        assert_eq!([64, 4096, 1 << 20].map(size), ["64 B", "4 KB", "1 MB"]);
    }
}
