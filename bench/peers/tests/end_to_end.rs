//! The program itself, on its two systems that are always there: a cell of a second,
//! taken up again, and drawn.

use std::path::Path;
use std::process::{Command, Output};

fn peers(directory: &Path, line: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_thermocline-peers"))
        .current_dir(directory)
        .args(line)
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line:?}: {said}");
    output
}

fn results(directory: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read(directory.join("peers.json")).expect("results");
    serde_json::from_slice(&text).expect("a list")
}

#[test]
fn cells_are_measured_taken_up_again_and_drawn() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = [
        "run",
        "--systems",
        "thermocline,hashmap",
        "--memory-limit",
        "96MB",
        "--warmup",
        "0",
        "--seconds",
        "1",
        "--cells",
        "1",
        "--stolen-max",
        "0",
        "--json",
        "peers.json",
    ];
    let output = peers(directory.path(), &run);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(
        table.contains("thermocline") && table.contains("p99.9"),
        "{table}"
    );
    let first = results(directory.path());
    assert_eq!(first.len(), 2);
    for result in &first {
        assert!(
            result["ops_per_s"]
                .as_f64()
                .is_some_and(|rate| rate > 100.0),
            "{result}"
        );
        assert!(result["rss_max_bytes"].as_u64().is_some(), "{result}");
        let stolen = result["stolen_share"].as_f64();
        assert!(
            stolen.is_some_and(|share| (0.0..1.0).contains(&share)),
            "{result}"
        );
        assert!(result["bound_ops_per_s"].is_null(), "it fits: {result}");
        assert!(
            result["ratio_to_best_rival"].is_null(),
            "no rival: {result}"
        );
    }
    peers(directory.path(), &run);
    let second = results(directory.path());
    assert_eq!(second.len(), 4);
    assert_eq!(
        second[..2],
        first[..],
        "what was measured is not measured again"
    );
    assert_ne!(second[2]["reads"], first[0]["reads"], "another cell");
    peers(
        directory.path(),
        &["chart", "peers.json", "--out", "charts"],
    );
    let chart = directory.path().join("charts/peers-0.5x-1000B.svg");
    assert!(
        std::fs::read_to_string(chart)
            .expect("a chart")
            .contains("<svg")
    );
}
