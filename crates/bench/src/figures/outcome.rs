//! What a run measured: one JSON file each. It is written under another name and renamed, so
//! that a run is there as a whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::setting::Run;
use crate::Result;

/// Operations a second: what most figures draw.
pub(super) const OPS: &str = "ops_per_s";
/// The standard error of [`OPS`], from the seconds of one run.
pub(super) const OPS_ERROR: &str = "ops_per_s_error";

/// A second of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Moment {
    pub end_s: f64,
    pub ops_per_s: f64,
    /// Blocks that were written for evictions in it.
    pub blocks: u64,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub run: Run,
    pub commit: Option<String>,
    pub date: Option<String>,
    /// How it was emulated, and over what.
    pub device: Option<String>,
    pub values: BTreeMap<String, f64>,
    pub moments: Vec<Moment>,
}

impl Outcome {
    pub fn read(path: &Path) -> Option<Self> {
        // What is damaged is measured again.
        serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let beside = path.with_extension("new");
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(&beside, text).map_err(|error| format!("{}: {error}", beside.display()))?;
        fs::rename(&beside, path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(())
    }
}
