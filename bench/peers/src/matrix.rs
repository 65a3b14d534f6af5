//! Which cells are measured: a dozen telling ones, or those that the project's
//! promises name. The full matrix has of all the others so many that each pair of
//! values of two fields is in one of them.

use std::collections::HashSet;

use crate::cell::{Cell, Durability};

/// Bytes of data by memory limit; a half is what surely fits.
pub const SIZE_RATIOS: [f64; 6] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0];
/// Exponents; 0 is uniform.
pub const ZIPFS: [f64; 5] = [0.0, 0.5, 0.75, 1.0, 1.25];
/// Shares of reads; 0 is inserts only.
pub const READS: [f64; 4] = [1.0, 0.9, 0.5, 0.0];
/// Bytes of a row.
pub const ROW_BYTES: [usize; 2] = [1000, 100];
/// Requests under way.
pub const IN_FLIGHT: [usize; 3] = [2, 16, 64];
/// Promises of a commit.
pub const DURABILITIES: [Durability; 2] = [Durability::Relaxed, Durability::Synchronous];
/// How many fields vary.
const FIELDS: usize = 6;

/// A matrix by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Matrix {
    /// A dozen cells.
    Quick,
    /// All that is promised, and a pairwise covering of the rest.
    Full,
}

impl Matrix {
    /// The cells, those of the same data one after the other; those that make
    /// the data grow come last.
    pub fn cells(self) -> Vec<Cell> {
        let mut cells = match self {
            Matrix::Quick => quick(),
            Matrix::Full => full(),
        };
        cells.sort_by(|a, b| {
            (b.row_bytes.cmp(&a.row_bytes))
                .then(a.size_ratio.total_cmp(&b.size_ratio))
                .then(b.reads.total_cmp(&a.reads))
                .then(a.zipf.total_cmp(&b.zipf))
                .then(a.in_flight.cmp(&b.in_flight))
                .then(a.durability.cmp(&b.durability))
        });
        cells
    }
}

fn cell(size_ratio: f64, zipf: f64, reads: f64, row_bytes: usize, in_flight: usize) -> Cell {
    Cell {
        size_ratio,
        zipf,
        reads,
        row_bytes,
        in_flight,
        durability: Durability::Relaxed,
    }
}

fn synchronous(cell: Cell) -> Cell {
    Cell {
        durability: Durability::Synchronous,
        ..cell
    }
}

fn quick() -> Vec<Cell> {
    vec![
        cell(0.5, 1.0, 1.0, 1000, 2),
        cell(0.5, 1.0, 0.5, 1000, 2),
        cell(8.0, 0.0, 1.0, 1000, 64),
        cell(8.0, 0.75, 1.0, 1000, 64),
        cell(8.0, 1.0, 1.0, 1000, 2),
        cell(8.0, 1.0, 1.0, 1000, 16),
        cell(8.0, 1.0, 1.0, 1000, 64),
        cell(8.0, 1.25, 1.0, 1000, 16),
        cell(8.0, 1.0, 0.9, 1000, 64),
        cell(8.0, 1.0, 0.5, 1000, 16),
        synchronous(cell(8.0, 1.0, 0.5, 1000, 64)),
        cell(8.0, 0.0, 0.0, 1000, 16),
    ]
}

/// The cells that a promise names.
fn promised() -> Vec<Cell> {
    let mut cells = quick();
    for zipf in [0.0, 0.75, 1.0, 1.25] {
        for in_flight in IN_FLIGHT {
            cells.push(cell(8.0, zipf, 1.0, 1000, in_flight));
        }
    }
    for zipf in [0.75, 1.0, 1.25] {
        for reads in [0.9, 0.5] {
            for in_flight in [16, 64] {
                cells.push(cell(8.0, zipf, reads, 1000, in_flight));
            }
        }
    }
    for reads in [1.0, 0.9, 0.5] {
        cells.push(cell(8.0, 1.0, reads, 100, 16));
    }
    cells.push(cell(8.0, 1.0, 1.0, 100, 64));
    for row_bytes in ROW_BYTES {
        for reads in [1.0, 0.5] {
            cells.push(cell(0.5, 1.0, reads, row_bytes, 2));
            cells.push(cell(0.5, 1.0, reads, row_bytes, 16));
        }
    }
    for size_ratio in [1.0, 2.0, 4.0, 8.0, 16.0] {
        cells.push(cell(size_ratio, 1.0, 0.9, 1000, 16));
    }
    for size_ratio in [1.0, 8.0, 16.0] {
        let inserts = cell(size_ratio, 0.0, 0.0, 1000, 16);
        cells.extend([inserts, synchronous(inserts)]);
    }
    cells
}

fn full() -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for cell in promised() {
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    let candidates = meaningful();
    let mut missing: HashSet<Pair> = candidates.iter().flat_map(pairs).collect();
    for covered in cells.iter().flat_map(pairs) {
        missing.remove(&covered);
    }
    while !missing.is_empty() {
        let gain = |cell: &Cell| pairs(cell).filter(|pair| missing.contains(pair)).count();
        // The first of the best: the same cells each time.
        let best = candidates.iter().rev().max_by_key(|cell| gain(cell));
        let Some(best) = best.filter(|cell| gain(cell) > 0) else {
            break;
        };
        for pair in pairs(best) {
            missing.remove(&pair);
        }
        cells.push(*best);
    }
    cells
}

/// Every cell that means something.
fn meaningful() -> Vec<Cell> {
    let mut cells = Vec::new();
    for size_ratio in SIZE_RATIOS {
        for zipf in ZIPFS {
            for reads in READS {
                for row_bytes in ROW_BYTES {
                    for in_flight in IN_FLIGHT {
                        for durability in DURABILITIES {
                            let cell = Cell {
                                durability,
                                ..cell(size_ratio, zipf, reads, row_bytes, in_flight)
                            };
                            cells.extend(cell.is_meaningful().then_some(cell));
                        }
                    }
                }
            }
        }
    }
    cells
}

/// Values of two fields: field and place of the value, twice.
type Pair = (usize, usize, usize, usize);

fn places(cell: &Cell) -> [usize; FIELDS] {
    let place = |found: Option<usize>| found.unwrap_or(usize::MAX);
    [
        place(SIZE_RATIOS.iter().position(|v| *v == cell.size_ratio)),
        place(ZIPFS.iter().position(|v| *v == cell.zipf)),
        place(READS.iter().position(|v| *v == cell.reads)),
        place(ROW_BYTES.iter().position(|v| *v == cell.row_bytes)),
        place(IN_FLIGHT.iter().position(|v| *v == cell.in_flight)),
        place(DURABILITIES.iter().position(|v| *v == cell.durability)),
    ]
}

fn pairs(cell: &Cell) -> impl Iterator<Item = Pair> + use<> {
    let places = places(cell);
    (0..FIELDS).flat_map(move |a| (a + 1..FIELDS).map(move |b| (a, places[a], b, places[b])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_matrix_is_a_dozen_cells_and_part_of_the_full_one() {
        let (quick, full) = (Matrix::Quick.cells(), Matrix::Full.cells());
        assert_eq!(quick.len(), 12);
        assert!(quick.iter().all(|cell| full.contains(cell)));
    }

    #[test]
    fn each_cell_is_there_once_means_something_and_uses_known_values() {
        let cells = Matrix::Full.cells();
        for (number, cell) in cells.iter().enumerate() {
            assert!(cell.is_meaningful(), "{cell}");
            assert!(!cells[..number].contains(cell), "{cell} twice");
            assert!(places(cell).iter().all(|place| *place < 10), "{cell}");
        }
    }

    /// By brute force over the fields themselves, not over `pairs`.
    #[test]
    fn every_pair_of_values_that_can_meet_meets_in_the_full_matrix() {
        let (all, chosen) = (meaningful(), Matrix::Full.cells());
        let fields: [fn(&Cell) -> String; FIELDS] = [
            |cell| cell.size_ratio.to_string(),
            |cell| cell.zipf.to_string(),
            |cell| cell.reads.to_string(),
            |cell| cell.row_bytes.to_string(),
            |cell| cell.in_flight.to_string(),
            |cell| format!("{:?}", cell.durability),
        ];
        for a in 0..FIELDS {
            for b in 0..a {
                let meeting = |cell: &Cell| (fields[a](cell), fields[b](cell));
                let wanted: HashSet<_> = all.iter().map(meeting).collect();
                let found: HashSet<_> = chosen.iter().map(meeting).collect();
                assert_eq!(wanted.difference(&found).count(), 0, "fields {a} and {b}");
            }
        }
        assert!(chosen.len() < all.len() / 8, "{} cells", chosen.len());
    }

    #[test]
    fn cells_of_the_same_data_follow_one_another_and_inserts_end_them() {
        let cells = Matrix::Full.cells();
        let mut seen = HashSet::new();
        for group in
            cells.chunk_by(|a, b| (a.row_bytes, a.size_ratio) == (b.row_bytes, b.size_ratio))
        {
            assert!(seen.insert((group[0].row_bytes, group[0].size_ratio.to_bits())));
            assert!(group.is_sorted_by_key(Cell::inserts));
        }
    }
}
