//! Notes the commit that the program is built from: results name it, whatever is checked out later.

use std::process::Command;

fn main() {
    // Each commit and each checkout adds a line there.
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    let commit = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
    println!(
        "cargo:rustc-env=THERMOCLINE_COMMIT={}",
        commit.as_deref().unwrap_or("").trim()
    );
}
