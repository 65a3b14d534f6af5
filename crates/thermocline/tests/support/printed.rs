//! Parts of pages that are printed from the code. A part lies between two comments in the page,
//! `<!-- printed: NAME -->` and `<!-- end: NAME -->`. A test prints it anew and compares;
//! with `THERMOCLINE_PRINT_PAGES=1` (`scripts/reference.sh`) it is written instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Parts of one page are written one after the other.
static WRITING: Mutex<()> = Mutex::new(());

/// The workspace's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a part of a page, which is named from the workspace's root, with `text`.
///
/// # Panics
/// Where they differ, and says how to write the page anew.
pub fn compare(page: &str, name: &str, text: &str) {
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join(page);
    let whole = fs::read_to_string(&path).expect("the page");
    let (begin, end) = (
        format!("<!-- printed: {name} -->\n"),
        format!("<!-- end: {name} -->"),
    );
    let parts = whole.split_once(&begin).and_then(|(before, rest)| {
        let (there, behind) = rest.split_once(&end)?;
        Some((before, there, behind))
    });
    let (before, there, behind) =
        parts.unwrap_or_else(|| panic!("{page} has no place for {name}: {begin}{end}"));
    let wanted = format!("\n{}\n\n", text.trim());
    if there == wanted {
        return;
    }
    if std::env::var_os("THERMOCLINE_PRINT_PAGES").is_some() {
        let text = format!("{before}{begin}{wanted}{end}{behind}");
        fs::write(&path, text).expect("the page can be written");
        return;
    }
    let differing = there.lines().zip(wanted.lines()).find(|(a, b)| a != b);
    panic!(
        "{page}: {name} is not as the code has it: run scripts/reference.sh; first {differing:#?}"
    );
}

/// Cells as a line of a table: what would end a cell is escaped.
#[must_use]
pub fn row(cells: &[String]) -> String {
    let cells = cells.iter().map(|cell| cell.replace('|', "\\|"));
    let cells: Vec<String> = cells.map(|cell| cell.replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}
