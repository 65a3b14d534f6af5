//! Where a directory is before anything is done with it: links, `.` and `..` resolved, whether it
//! is there or not; what is in it; how two lie to each other. Nothing is written here.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::LOCK_FILE_NAME;

/// How a directory lies to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    /// Neither is in the other.
    Apart,
    /// It is the other, maybe by another name.
    There,
    /// It is somewhere in the other.
    Inside,
    /// The other is somewhere in it.
    Around,
}

/// The absolute path of a directory, without links, `.` and `..`. It, and directories above it,
/// may be missing.
///
/// # Errors
/// The system's; `InvalidInput` for a `..` after a missing directory and for a link that leads
/// nowhere, since what they will mean can't be known.
pub fn resolve_directory(path: &Path) -> io::Result<PathBuf> {
    let mut there = std::path::absolute(path)?;
    let mut missing = Vec::new();
    loop {
        match there.canonicalize() {
            Ok(mut resolved) => {
                resolved.extend(missing.iter().rev());
                return Ok(resolved);
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(error) => {
                let name = match there.components().next_back() {
                    Some(Component::Normal(name)) => name.to_owned(),
                    Some(Component::ParentDir) => {
                        return Err(cannot_be(
                            path,
                            "\"..\" after a directory that is not there",
                        ));
                    }
                    _ => return Err(error),
                };
                if fs::symlink_metadata(&there).is_ok() {
                    return Err(cannot_be(path, "a symbolic link that leads nowhere"));
                }
                missing.push(name);
                there.pop();
            }
        }
    }
}

fn cannot_be(path: &Path, why: &str) -> io::Error {
    let message = format!("{}: {why}", path.display());
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// How `one` lies to `other`, both resolved. A directory that is mounted twice is one.
#[must_use]
pub fn how_it_lies(one: &Path, other: &Path) -> Lies {
    if is_same(one, other) {
        return Lies::There;
    }
    if one.ancestors().any(|above| is_same(above, other)) {
        return Lies::Inside;
    }
    if other.ancestors().any(|above| is_same(above, one)) {
        return Lies::Around;
    }
    Lies::Apart
}

fn is_same(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    one == other || matches!((number(one), number(other)), (Ok(a), Ok(b)) if a == b)
}

/// All that is in a directory, hidden files and directories too, but for the lock; sorted. None
/// if the directory is not there.
///
/// # Errors
/// It is no directory, or can't be read.
pub fn directory_entries(path: &Path) -> io::Result<Option<Vec<String>>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != LOCK_FILE_NAME {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(Some(names))
}

/// The nearest directory above `path`, or itself, that holds all these files.
#[must_use]
pub fn directory_above_with(path: &Path, files: &[&str]) -> Option<PathBuf> {
    let holds = |directory: &&Path| files.iter().all(|file| directory.join(file).is_file());
    path.ancestors().find(holds).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_is_known_by_any_of_its_names() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("data/inner")).unwrap();
        symlink(root.join("data"), root.join("link")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        let data = root.join("data");
        let cases = [
            ("data", "data", Lies::There),
            ("link", "data", Lies::There),
            ("data/../link/.", "data", Lies::There),
            ("link/inner", "data/inner", Lies::Inside),
            ("link/new/newer", "data/new/newer", Lies::Inside),
            ("link/inner/../../other", "other", Lies::Apart),
            ("data2", "data2", Lies::Apart),
            (".", "", Lies::Around),
        ];
        for (said, meant, lies) in cases {
            let resolved = resolve_directory(&root.join(said)).unwrap();
            assert_eq!(resolved, root.join(meant).components().collect::<PathBuf>());
            assert_eq!(how_it_lies(&resolved, &data), lies, "{said}");
        }
        for wrong in ["dangling", "dangling/x", "missing/../data"] {
            let error = resolve_directory(&root.join(wrong)).unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::InvalidInput,
                "{wrong}: {error}"
            );
        }
        assert_eq!(directory_entries(&root.join("missing")).unwrap(), None);
        fs::write(data.join(LOCK_FILE_NAME), "1").unwrap();
        fs::write(data.join(".hidden"), "").unwrap();
        let entries = directory_entries(&data).unwrap().unwrap();
        assert_eq!(entries, [".hidden", "inner"]);
        let found = directory_above_with(&data.join("inner/x"), &[".hidden"]);
        assert_eq!(found, Some(data));
    }
}
