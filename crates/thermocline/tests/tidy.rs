//! What a reviewer would otherwise have to repeat: the length of files and of sentences, unfinished marks. Where `unsafe`
//! and file access may be, head comments, names, and which crate may know which, down to the rooms of the engine. A rule
//! that stands in the way is changed here, with its reason, and not evaded.

use std::fs;
use std::path::{Path, PathBuf};

/// A file is one idea.
const LINES_MAX: usize = 700;

/// Files that are longer and still to be taken apart.
const LONG_FILES: [&str; 7] = [
    "crates/query/src/functions/date_part.rs",
    "crates/query/src/functions/pattern/regex/parse.rs",
    "crates/query/src/functions/text.rs",
    "crates/query/src/functions/time_order.rs",
    "crates/query/src/types/datetime/pattern/read.rs",
    "crates/query/src/types/datetime/point.rs",
    "crates/query/tests/dates.rs",
];

/// The modules that may hold `unsafe` code; each says at its head why it is sound.
const UNSAFE_MODULES: [&str; 10] = [
    "bench/peers/src/rivals/lmdb_open.rs",
    "crates/device/src/buffer.rs",
    "crates/device/src/drive.rs",
    "crates/device/src/sys.rs",
    "crates/device/src/uring.rs",
    "crates/query/src/parse/position.rs",
    "crates/storage/src/arena.rs",
    "crates/storage/src/chunk.rs",
    "crates/storage/src/hash_index/line.rs",
    "crates/storage/src/heap.rs",
];

/// What touches files: the device, the program with its settings, the workloads, and the
/// simulator's figures.
const CRATES_WITH_FILES: [&str; 5] = ["device", "thermocline", "bench", "peers", "sim"];

/// File names that say nothing of what is inside.
const NAMES_BANNED: [&str; 8] = [
    "util", "utils", "common", "manager", "helper", "helpers", "misc", "stuff",
];

/// The floors of the house, and what each may stand on (ARCHITECTURE.md). Of the lower
/// four the whole list of dependencies is kept: each is a decision.
const FLOORS: [(&str, &[&str]); 11] = [
    ("device", &[]),
    ("values", &[]),
    ("storage", &["device", "values"]),
    ("engine", &["device", "values", "storage"]),
    ("query", &["values"]),
    ("analytical", &["query"]),
    (
        "sql",
        &[
            "device",
            "values",
            "storage",
            "engine",
            "query",
            "analytical",
        ],
    ),
    ("server", &["device", "storage", "engine", "sql"]),
    ("bench", &["device", "values", "storage", "engine"]),
    ("sim", &["device", "values", "storage", "engine"]),
    (
        "thermocline",
        &[
            "device", "values", "storage", "engine", "sql", "server", "bench",
        ],
    ),
];
/// The rooms of the engine, from the ground up: each imports only those before it. What two rooms
/// need of each other lies in a lower one.
const ROOMS: [&str; 18] = [
    "ground",
    "policy",
    "memory",
    "catalog",
    "format",
    "rows",
    "transaction",
    "parts",
    "cold",
    "access",
    "run",
    "define",
    "keep",
    "procedure",
    "database",
    "restart",
    "backup",
    "check",
];
const DEPENDENCIES: [(&str, &[&str]); 4] = [
    (
        "device",
        &["io-uring", "libc", "libmimalloc-sys", "parking_lot"],
    ),
    ("values", &["proptest", "serde"]),
    (
        "storage",
        &[
            "crc32c",
            "libc",
            "lz4_flex",
            "parking_lot",
            "serde",
            "xxhash-rust",
        ],
    ),
    (
        "engine",
        &[
            "crc32c",
            "hashbrown",
            "imbl",
            "libc",
            "parking_lot",
            "serde",
            "serde_json",
            "xxhash-rust",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the workspace is there")
}

/// A source file: its path from the workspace's root, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn crate_name(&self) -> &str {
        self.path.split('/').nth(1).expect("it is in a crate")
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/")
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
    }

    /// Lines with their numbers, comments left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines
            .map(|(number, line)| (number + 1, line.trim_start()))
            .filter(|(_, line)| !line.starts_with("//"))
    }
}

fn sources() -> Vec<Source> {
    let root = root();
    let mut waiting = vec![root.join("crates"), root.join("bench")];
    let mut found = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("a readable directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    waiting.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.strip_prefix(&root).expect("below the root");
                found.push(Source {
                    path: name.to_string_lossy().replace('\\', "/"),
                    text: fs::read_to_string(&path).expect("a text"),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 50, "the sources were found");
    found
}

fn none_of(violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let long = sources().into_iter().filter_map(|source| {
        let lines = source.text.lines().count();
        let known = LONG_FILES.contains(&source.path.as_str());
        (lines > LINES_MAX && !known)
            .then(|| format!("{}: {lines} lines, at most {LINES_MAX}", source.path))
    });
    none_of(long.collect());
}

/// Functions of the engine and what is below it have fewer lines.
const FUNCTION_LINES: usize = 100;

/// The functions of a text that is formatted: where each begins, its name, and its lines.
fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let words = [
            "pub ",
            "pub(crate) ",
            "pub(super) ",
            "const ",
            "async ",
            "unsafe ",
        ];
        let code = words
            .iter()
            .fold(code, |code, word| code.strip_prefix(word).unwrap_or(code));
        let Some(rest) = code.strip_prefix("fn ").filter(|_| !line.ends_with('}')) else {
            continue;
        };
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let body = lines[at..].iter().position(|line| line.starts_with(&end));
        let name = rest.split(['(', '<']).next().unwrap_or_default();
        found.push((at + 1, name.to_owned(), body.map_or(1, |last| last + 1)));
    }
    found
}

#[test]
fn no_function_of_the_lower_floors_is_too_long() {
    let lower = [
        "crates/device/src/",
        "crates/values/src/",
        "crates/storage/src/",
        "crates/engine/src/",
    ];
    let mut long = Vec::new();
    for source in sources() {
        if lower.iter().any(|floor| source.path.starts_with(floor)) {
            for (line, name, lines) in functions(&source.text) {
                if lines >= FUNCTION_LINES {
                    long.push(format!("{}:{line}: {name} has {lines} lines", source.path));
                }
            }
        }
    }
    none_of(long);
}

#[test]
fn functions_are_found() {
    let text = "impl A {\n    pub async fn b(\n        c: u8,\n    ) {\n        d();\n    }\n}\nfn e() {\n}\nfn f() {}\n";
    let found = functions(text);
    assert_eq!(found, [(2, "b".to_owned(), 5), (8, "e".to_owned(), 2)]);
}

/// What everybody uses has no field that others could write: the database, what its rooms share,
/// and the rows of a table, whose words only `row_state` changes.
const CLOSED: [(&str, &str); 3] = [
    ("crates/engine/src/database/mod.rs", "pub struct Database {"),
    ("crates/engine/src/parts/mod.rs", "pub struct Parts {"),
    (
        "crates/engine/src/rows/row_state.rs",
        "pub(crate) struct TablePartition {",
    ),
];

#[test]
fn what_all_rooms_use_has_no_open_fields() {
    let sources = sources();
    for (path, begin) in CLOSED {
        let source = sources.iter().find(|source| source.path == path);
        let text = &source.expect("it is there").text;
        let (_, rest) = text.split_once(begin).expect(begin);
        let fields = rest.split("\n}").next().unwrap_or_default();
        let mut fields = fields.lines().map(str::trim_start);
        assert!(
            fields.all(|line| !line.starts_with("pub")),
            "{begin} has an open field"
        );
    }
}

/// A policy of identification is a file of its own, and its line in the lists of the folder's.
#[test]
fn a_policy_of_identification_is_in_two_files() {
    let is_named = |source: &Source| source.code().any(|(_, line)| line.contains("S3Fifo"));
    let engine = sources().into_iter().filter(|source| {
        let is_product = source.path.starts_with("crates/engine/src/") && !source.is_test();
        is_product && is_named(source)
    });
    let files: Vec<String> = engine.map(|source| source.path).collect();
    let folder = "crates/engine/src/policy/identification";
    assert_eq!(
        files,
        [format!("{folder}/mod.rs"), format!("{folder}/s3_fifo.rs")]
    );
}

/// The longest sentence of a comment, in words. A colon ends one.
const COMMENT_WORDS_MAX: usize = 30;

/// The sentences of a file's comments, without code, tables and headings, each with the line that
/// its paragraph begins on. An item of a list begins a sentence.
fn comment_sentences(text: &str) -> Vec<(usize, String)> {
    let mut sentences = Vec::new();
    let (mut paragraph, mut begin, mut in_code) = (String::new(), 0, false);
    for (number, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim_start();
        let words = line.strip_prefix("//").map(|rest| {
            let rest = rest.strip_prefix(['/', '!']).unwrap_or(rest);
            rest.trim()
        });
        let is_fence = words.is_some_and(|words| words.starts_with("```"));
        in_code = in_code != is_fence;
        let words = words.filter(|_| !in_code && !is_fence).unwrap_or_default();
        let begins = ["|", "#", "* ", "- "]
            .iter()
            .any(|mark| words.starts_with(mark));
        if words.is_empty() || begins {
            let ends = [". ", "? ", "! ", ": "];
            let ended = ends
                .iter()
                .fold(paragraph, |text, end| text.replace(end, "\n"));
            sentences.extend(ended.lines().map(|sentence| (begin, sentence.to_owned())));
            paragraph = String::new();
            begin = number + 1;
        }
        if !words.starts_with(['|', '#']) {
            paragraph.push_str(words);
            paragraph.push(' ');
        }
    }
    sentences
}

#[test]
fn sentences_of_comments_are_short() {
    let mut long = Vec::new();
    for source in sources() {
        for (line, sentence) in comment_sentences(&source.text) {
            let words = sentence.split_whitespace().count();
            if words > COMMENT_WORDS_MAX {
                long.push(format!("{}:{line}: {words} words: {sentence}", source.path));
            }
        }
    }
    none_of(long);
}

#[test]
fn sentences_of_comments_are_found() {
    let text = "//! One. Two\n//! goes on: three\n//! * four\n//! ```\n//! code\n//! ```\nlet a = 1;\n/// five\n";
    let found = comment_sentences(text).into_iter();
    let found: Vec<_> = found.map(|(_, words)| words.trim().to_owned()).collect();
    let found: Vec<_> = found.iter().filter(|words| !words.is_empty()).collect();
    assert_eq!(found, ["One", "Two goes on", "three", "* four", "five"]);
}

#[test]
fn nothing_is_marked_unfinished() {
    // In pieces, so that this file does not find itself.
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("todo", "!("),
        concat!("unimpl", "emented!("),
        concat!("db", "g!("),
        concat!("#[ig", "nore"),
    ];
    let mut found = Vec::new();
    for source in sources() {
        for (number, line) in source.text.lines().enumerate() {
            for mark in marks.iter().filter(|mark| line.contains(**mark)) {
                found.push(format!("{}:{}: {mark}", source.path, number + 1));
            }
        }
    }
    none_of(found);
}

#[test]
fn unsafe_code_is_only_where_it_has_an_address() {
    let opening = concat!("uns", "afe ");
    let permission = concat!("allow(uns", "afe_code)");
    let mut found = Vec::new();
    for source in sources() {
        let may = UNSAFE_MODULES.contains(&source.path.as_str());
        let has_permission = source.text.contains(permission);
        if may && !has_permission {
            found.push(format!(
                "{}: holds none any more; take it off the list",
                source.path
            ));
        }
        for (number, line) in source.code() {
            let opens = line.contains(&format!("{opening}{{"))
                || line.contains(&format!("{opening}fn"))
                || line.contains(&format!("{opening}impl"))
                || line.contains(permission);
            if opens && !may {
                found.push(format!("{}:{number}: {line}", source.path));
            }
        }
    }
    none_of(found);
}

#[test]
fn files_are_touched_through_devices_only() {
    let patterns = ["std::fs", "tokio::fs", "File::open(", "OpenOptions::new("];
    let mut found = Vec::new();
    for source in sources() {
        // An example makes its own directory, as a test does.
        let excused = source.is_test() || source.path.contains("/examples/");
        if CRATES_WITH_FILES.contains(&source.crate_name()) || excused {
            continue;
        }
        for (number, line) in source.code() {
            if patterns.iter().any(|pattern| line.contains(pattern)) {
                found.push(format!("{}:{number}: {line}", source.path));
            }
        }
    }
    none_of(found);
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent = sources().into_iter().filter_map(|source| {
        let first = source.text.lines().next().unwrap_or_default();
        // A module of tests is explained by the module beside it.
        let excused = source.is_test() && source.path.contains("/src/");
        (!excused && !first.starts_with("//! "))
            .then(|| format!("{}: no head comment", source.path))
    });
    none_of(silent.collect());
}

/// The module that a file is, and the directory of its parent; none for the roots of crates.
fn module_of(path: &str) -> Option<(&str, &str)> {
    let (folder, file) = path.rsplit_once('/')?;
    let stem = file.strip_suffix(".rs")?;
    match stem {
        "lib" | "main" => None,
        "mod" => folder.rsplit_once('/').map(|(parent, name)| (name, parent)),
        _ => Some((stem, folder)),
    }
}

/// Nobody compiles a file that no module names, and so nobody misses it.
#[test]
fn every_file_is_a_module() {
    let all = sources();
    let names = |path: &str, stem: &str| {
        let source = all.iter().find(|source| source.path == path);
        source.is_some_and(|source| source.text.contains(&format!("mod {stem};")))
    };
    let orphans = all.iter().filter_map(|source| {
        let in_src = source.path.contains("/src/") && !source.path.contains("/src/bin/");
        let (stem, folder) = module_of(&source.path).filter(|_| in_src)?;
        let files = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"];
        let mut parents = files.iter().map(|file| format!("{folder}{file}"));
        let by_path = format!("#[path = \"{stem}.rs\"]");
        let mut beside = all.iter().filter(|other| other.path.starts_with(folder));
        let named = parents.any(|parent| names(&parent, stem))
            || beside.any(|other| other.text.contains(&by_path));
        (!named).then(|| format!("{}: no module names it", source.path))
    });
    none_of(orphans.collect());
}

#[test]
fn file_names_mean_something() {
    let empty = sources().into_iter().filter_map(|source| {
        let stem = Path::new(&source.path).file_stem()?.to_str()?.to_owned();
        let folder = Path::new(&source.path).parent()?.file_name()?.to_str()?;
        let banned = |name: &str| NAMES_BANNED.contains(&name);
        (banned(&stem) || banned(folder)).then(|| format!("{}: a name for anything", source.path))
    });
    none_of(empty.collect());
}

/// The names under `[dependencies]` of a crate's manifest.
fn dependencies(name: &str) -> Vec<String> {
    let path = root().join(format!("crates/{name}/Cargo.toml"));
    let manifest = fs::read_to_string(path).expect("a manifest");
    let section = manifest
        .split("\n[dependencies]\n")
        .nth(1)
        .unwrap_or_default();
    section
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_floor_stands_on_the_floors_below_it() {
    let mut found = Vec::new();
    for (name, below) in FLOORS {
        for dependency in dependencies(name) {
            if let Some(floor) = dependency.strip_prefix("thermocline-")
                && !below.contains(&floor)
            {
                found.push(format!("{name} must not know {floor}"));
            }
        }
    }
    none_of(found);
}

#[test]
fn the_lower_floors_take_no_new_dependency_by_accident() {
    let mut found = Vec::new();
    for (name, allowed) in DEPENDENCIES {
        let taken = dependencies(name);
        assert!(taken.len() > 1, "the manifest of {name} was read");
        for dependency in taken {
            let ours = dependency.starts_with("thermocline-");
            if !ours && !allowed.contains(&dependency.as_str()) {
                found.push(format!("{name}: {dependency}"));
            }
        }
    }
    none_of(found);
}

/// A file of the engine: its path as a module's, and the modules that its code, but for its tests,
/// takes names from.
struct Module {
    path: Vec<String>,
    imports: Vec<Vec<String>>,
}

fn engine_modules() -> Vec<Module> {
    let mut modules = Vec::new();
    for source in sources() {
        let Some(path) = source.path.strip_prefix("crates/engine/src/") else {
            continue;
        };
        if source.is_test() || path == "lib.rs" {
            continue;
        }
        let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let path: Vec<String> = path.split('/').map(str::to_owned).collect();
        let code: Vec<&str> = source.code().map(|(_, line)| line).collect();
        let code = code.join("\n");
        let code = code.split("#[cfg(test)]\nmod tests {").next();
        let mut imports = Vec::new();
        for (from, base) in [("crate::", &[][..]), ("super::", &path[..path.len() - 1])] {
            for (at, _) in code.unwrap_or_default().match_indices(from) {
                let rest = &code.unwrap_or_default()[at + from.len()..];
                names_of(rest, base, &mut imports);
            }
        }
        modules.push(Module { path, imports });
    }
    assert!(modules.len() > 100, "the engine's files were found");
    modules
}

/// The paths that a text begins with, as `a::b` or `a::{b, c::{d}}`. Returns what follows.
fn names_of<'t>(text: &'t str, base: &[String], found: &mut Vec<Vec<String>>) -> &'t str {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (mut rest, mut path) = (text, base.to_vec());
    loop {
        if let Some(mut inside) = rest.strip_prefix('{') {
            while let Some(next) = inside.find(|c: char| is_name(c) || c == '}') {
                inside = &inside[next..];
                if let Some(after) = inside.strip_prefix('}') {
                    return after;
                }
                inside = names_of(inside, &path, found);
            }
            return "";
        }
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        path.push(rest[..end].to_owned());
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(after) => rest = after,
            None => {
                found.push(path);
                return rest;
            }
        }
    }
}

#[test]
fn a_room_of_the_engine_imports_only_rooms_below_it() {
    let floor = |room: &String| ROOMS.iter().position(|known| known == room);
    let mut found = Vec::new();
    for module in engine_modules() {
        let name = module.path.join("::");
        let Some(own) = floor(&module.path[0]) else {
            found.push(format!("{name} is in no room"));
            continue;
        };
        for import in &module.imports {
            if import.first().and_then(floor).is_some_and(|of| of > own) {
                found.push(format!("{name} imports {}", import.join("::")));
            }
        }
    }
    none_of(found);
}

#[test]
fn no_files_of_the_engine_import_each_other_in_a_circle() {
    let modules = engine_modules();
    let file_of = |import: &Vec<String>| {
        let beginnings = (1..=import.len()).rev().map(|length| &import[..length]);
        let mut places = beginnings.map(|path| modules.iter().position(|m| m.path == path));
        places.find_map(|place| place)
    };
    let imports = |module: usize| {
        let files = modules[module].imports.iter().filter_map(file_of);
        files.filter(|file| *file != module).collect::<Vec<_>>()
    };
    let mut left: Vec<(usize, Vec<usize>)> = (0..modules.len())
        .map(|file| (file, imports(file)))
        .collect();
    // What imports nothing that is left is in no circle, nor what nothing imports.
    loop {
        let there: Vec<usize> = left.iter().map(|(file, _)| *file).collect();
        let imported: Vec<usize> = left
            .iter()
            .flat_map(|(_, imports)| imports.clone())
            .collect();
        let before = left.len();
        left.retain(|(file, imports)| {
            imported.contains(file) && imports.iter().any(|import| there.contains(import))
        });
        if left.len() == before {
            break;
        }
    }
    let names = left.iter().map(|(file, _)| modules[*file].path.join("::"));
    none_of(names.collect());
}
