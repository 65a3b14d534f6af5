//! Where a directory is before anything is done with it: links, `.` and `..` resolved, whether it
//! is there or not; what is in it; how two lie to each other. And how one is made: for nobody
//! but this user, whatever the umask, and so are the files in it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::LOCK_FILE_NAME;

/// What others may do with a directory of ours: nothing.
const DIRECTORY_MODE: u32 = 0o700;
/// And with a file.
pub(crate) const FILE_MODE: u32 = 0o600;

/// Makes a directory, and those above it that are missing, for this user alone; one that is there
/// stays as it is.
///
/// # Errors
/// The system's.
pub fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY_MODE).create(path)
}

/// As [`make_directory`]; and from one that is there others' rights are taken, and from the files
/// in it that `is_ours` knows by name. A directory that holds something, but nothing of ours, is
/// refused instead: it may be anybody's.
///
/// # Errors
/// `InvalidInput` for such a directory; the system's, `PermissionDenied` among them if it is
/// another user's.
pub fn make_private_directory(path: &Path, is_ours: fn(&str) -> bool) -> io::Result<()> {
    make_directory(path)?;
    let entries = directory_entries(path)?.unwrap_or_default();
    let ours = entries.iter().filter(|name| is_ours(name));
    let mode = fs::metadata(path)?.permissions().mode() & 0o777;
    if let (Some(stranger), None) = (entries.first(), ours.clone().next())
        && mode & 0o077 != 0
    {
        let message = format!(
            "others may use it (its mode is {mode:o}), and {stranger} is in it; give an empty \
             directory, or one of mode 700"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    tighten(path)?;
    ours.map(|name| path.join(name))
        .chain([path.join(LOCK_FILE_NAME)])
        .filter(|path| path.is_file())
        .try_for_each(|path| tighten(&path))
}

/// Makes a directory that is not there yet, for this user alone.
///
/// # Errors
/// The system's; `AlreadyExists` among them.
pub fn make_new_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path)
}

/// Removes a directory of a device with no files in it but the lock.
///
/// # Errors
/// The system's; it is not empty, for instance.
pub fn remove_device_directory(path: &Path) -> io::Result<()> {
    match fs::remove_file(path.join(LOCK_FILE_NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_dir(path),
    }
}

/// Takes from group and others whatever they may do with it.
fn tighten(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode & DIRECTORY_MODE))
}

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
    fn others_lose_their_rights_and_get_none() {
        let root = tempfile::tempdir().unwrap();
        let mode = |name: &str| fs::metadata(root.path().join(name)).unwrap().mode() & 0o777;
        let open = root.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::write(open.join("file"), "rows").unwrap();
        for (name, wide) in [("open", 0o755), ("open/file", 0o664)] {
            let wide = fs::Permissions::from_mode(wide);
            fs::set_permissions(root.path().join(name), wide).unwrap();
        }
        make_directory(&open).unwrap();
        assert_eq!((mode("open"), mode("open/file")), (0o755, 0o664));
        let error = make_private_directory(&open, |name| name == "rows").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!((mode("open"), mode("open/file")), (0o755, 0o664));
        fs::write(open.join("other"), "").unwrap();
        let others = mode("open/other");
        make_private_directory(&open, |name| name == "file").unwrap();
        assert_eq!((mode("open"), mode("open/file")), (0o700, 0o600));
        assert_eq!(mode("open/other"), others);
        make_private_directory(&root.path().join("new/inner"), |_| false).unwrap();
        assert_eq!((mode("new"), mode("new/inner")), (0o700, 0o700));
    }

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
