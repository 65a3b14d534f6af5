//! Where a backup may go: into an empty directory, or one with backups of this database. All
//! else is refused before a byte is written, and nothing is removed that is not known to be the
//! rest of a backup that was cut off.
//!
//! `backup-begun` is the first file of a backup and says whose it is and what it may make; it
//! goes when the generation is there. What has such a name when it is written is refused, so
//! that what has one later was made by that backup. Two backups at once, and a directory that a
//! server uses, are told by the directory's lock.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use thermocline_device::{
    Device, DirectoryLock, FileDevice, IoEngine, Lies, Mutation, directory_above_with,
    directory_entries, how_it_lies, lock_directory, make_private_directory, resolve_directory,
};
use thermocline_storage::log::{UNFINISHED_SEGMENT, is_segment, is_segment_of};

use super::generation::{Generation, NEW, index_name, number_of, pack_name};
use crate::format::manifest::{MANIFEST, decode_checked, encode_checked, write_file};
use crate::ground::error::{Error, Result, log_broken};
use crate::parts::Parts;

/// Says that a generation is being made.
const BEGUN: &str = "backup-begun";
const FORMAT_VERSION: u32 = 1;
/// Files that a data directory has from its first moment on.
const OF_A_DATA_DIRECTORY: [&str; 2] = [MANIFEST, "blocks"];
const HINT: &str =
    "A backup goes into an empty directory, or into one with backups of this database.";

/// What `backup-begun` says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Begun {
    format: u32,
    /// Sixteen bytes in hexadecimal.
    database_id: String,
    /// The number of the generation.
    generation: u64,
    /// Its files are of checkpoints up to this one.
    checkpoint: u64,
}

/// What a backup's directory holds.
pub(super) struct Survey {
    /// Oldest first.
    pub generations: Vec<Generation>,
    /// What a backup that was cut off has left.
    leftovers: Vec<String>,
    /// Other files that no generation names.
    strangers: Vec<String>,
}

impl Survey {
    /// Looks at a directory; nothing is changed.
    ///
    /// # Errors
    /// 55000 if a backup of this database may not go there; damage; the device's.
    pub fn of(target: &dyn Device, database: u128) -> Result<Self> {
        let names = target
            .list()
            .map_err(|e| Error::io(e, "listing the backup's directory"))?;
        let anywhere = Mutation::BackupAnywhere.is_made();
        if names.iter().any(|name| name == MANIFEST) && !anywhere {
            return Err(refused("it is a data directory"));
        }
        let generations = Generation::read_all(target)?;
        let database_id = format!("{database:032x}");
        let begun = Begun::read(target, &names)?;
        let has_begun = begun.is_some();
        let ids = generations.iter().map(|g| &g.database_id);
        let ids = ids.chain(begun.iter().flatten().map(|b| &b.database_id));
        if let Some(other) = ids.into_iter().find(|id| **id != database_id) {
            return Err(refused(&format!(
                "it holds backups of another database ({other})"
            )));
        }
        let begun = begun.flatten();
        let mut others = names.iter().filter(|_| !anywhere);
        let other = others.find(|name| *name != BEGUN || !has_begun);
        if let (true, None, Some(file)) = (generations.is_empty(), &begun, other) {
            return Err(refused(&format!("{file} is no file of a backup")));
        }
        let mut survey = Survey {
            leftovers: Vec::new(),
            strangers: Vec::new(),
            generations,
        };
        let newest = survey.newest();
        let cut_off = begun.as_ref().filter(|begun| begun.generation > newest);
        let named = survey.named();
        let (mut leftovers, mut strangers) = (Vec::new(), Vec::new());
        for name in names {
            if named.contains(name.as_str()) {
                continue;
            }
            let made = match cut_off {
                _ if name == BEGUN => true,
                None => false,
                Some(begun) if is_segment(&name) => {
                    // A long log has more segments than the first, which a generation names.
                    newest == 0 && begun.is_my_segment(target, &name, database)?
                }
                Some(begun) => begun.may_make(&name),
            };
            match made {
                true => leftovers.push(name),
                false => strangers.push(name),
            }
        }
        // Last, so that a crash meanwhile leaves it to tell about the rest.
        leftovers.sort_by_key(|name| name == BEGUN);
        drop(named);
        (survey.leftovers, survey.strangers) = (leftovers, strangers);
        Ok(survey)
    }

    fn newest(&self) -> u64 {
        self.generations.last().map_or(0, |last| last.generation)
    }

    /// What the generations name.
    fn named(&self) -> HashSet<&str> {
        let mut named = HashSet::new();
        for generation in &self.generations {
            named.extend(generation.files.iter().map(|file| file.file.as_str()));
            named.insert(&generation.log);
            named.insert(&generation.index);
        }
        named
    }

    /// Removes what a backup that was cut off has left, and says that generation `number` is
    /// being made of files of checkpoints up to `checkpoint`.
    ///
    /// # Errors
    /// 58P02 if a file is there that it would replace; the device's.
    pub fn begin(
        &self,
        target: &dyn Device,
        database: u128,
        number: u64,
        checkpoint: u64,
    ) -> Result<()> {
        let begun = Begun {
            format: FORMAT_VERSION,
            database_id: format!("{database:032x}"),
            generation: number,
            checkpoint,
        };
        if let Some(name) = self.strangers.iter().find(|name| begun.may_make(name)) {
            return Err(Error::Refused {
                sqlstate: "58P02",
                message: format!(
                    "the backup would replace {name}, which no generation in its directory names"
                ),
                hint: "Move the file away, or take an empty directory.",
            });
        }
        for name in &self.leftovers {
            target
                .remove(name)
                .map_err(|e| Error::io(e, format!("removing {name}")))?;
        }
        let sync = || {
            let synced = target.sync_directory();
            synced.map_err(|e| Error::io(e, "syncing the backup's directory"))
        };
        sync()?;
        write_file(target, BEGUN, &encode_checked(&begun)?)?;
        sync()
    }
}

/// The generation is there: nothing is being made any more.
pub(super) fn end(target: &dyn Device) -> Result<()> {
    target
        .remove(BEGUN)
        .and_then(|()| target.sync_directory())
        .map_err(|e| Error::io(e, format!("removing {BEGUN}")))
}

impl Begun {
    /// None: no backup was begun. Some(None): one was cut off while it said so, and has made
    /// nothing else.
    fn read(target: &dyn Device, names: &[String]) -> Result<Option<Option<Self>>> {
        if !names.iter().any(|name| name == BEGUN) {
            return Ok(None);
        }
        let bytes = crate::format::manifest::read_file(target, BEGUN)?;
        match decode_checked(BEGUN, &bytes, FORMAT_VERSION..=FORMAT_VERSION) {
            Ok(begun) => Ok(Some(Some(begun))),
            // It was not durable yet: its one sector never came, or came in part.
            Err(_) if bytes.iter().all(|b| *b == 0) || bytes.starts_with(b"{\"format\":") => {
                Ok(Some(None))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the backup makes a file of this name, segments of the log aside.
    fn may_make(&self, name: &str) -> bool {
        name == pack_name(self.generation)
            || name == index_name(self.generation)
            || name == NEW
            || name == UNFINISHED_SEGMENT
            || number_of_checkpoint(name).is_some_and(|number| number <= self.checkpoint)
    }

    fn is_my_segment(&self, target: &dyn Device, name: &str, database: u128) -> Result<bool> {
        is_segment_of(target, name, database).map_err(log_broken)
    }
}

/// The checkpoint that a file is of, if its name is that of such a file.
fn number_of_checkpoint(name: &str) -> Option<u64> {
    let (number, rest) = name.strip_prefix("checkpoint-")?.split_once('-')?;
    let is_partition = rest.len() == 4 && rest.bytes().all(|digit| digit.is_ascii_digit());
    (is_partition || rest == "blocks").then(|| number_of(number))?
}

/// Whether a name is like those in a backup, whose own the directory is known to be.
fn is_of_a_backup(name: &str) -> bool {
    ["backup-", "blocks-", "packs-", "checkpoint-", "log-"]
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

fn refused(why: &str) -> Error {
    Error::Refused {
        sqlstate: "55000",
        message: format!("the directory cannot hold the backup: {why}"),
        hint: HINT,
    }
}

/// A directory that a backup may go into, for this backup alone.
pub(super) struct Place {
    pub device: Arc<dyn Device>,
    _lock: DirectoryLock,
}

impl Parts {
    /// The place that `path` means, made if it is absent.
    ///
    /// # Errors
    /// 42501 where `backup_directory` does not allow it and `by_client` is set; 55000 if it
    /// may not go there, 55006 if somebody uses it; the file system's.
    pub(super) fn backup_place(&self, path: &Path, by_client: bool) -> Result<Place> {
        let failed = |e: std::io::Error| match e.kind() {
            ErrorKind::InvalidInput => Error::Refused {
                sqlstate: "42602",
                message: e.to_string(),
                hint: "Give the directory by its own path.",
            },
            _ => Error::io(e, path.display().to_string()),
        };
        let resolved = resolve_directory(path).map_err(failed)?;
        if by_client {
            self.check_allowed(&resolved)?;
        }
        let archive = self.settings().archive.as_ref();
        let ours = [
            (self.device().path(), "the data directory"),
            (archive.and_then(|a| a.path()), "the archive directory"),
        ];
        for (ours, what) in ours {
            match ours.map(|ours| how_it_lies(&resolved, ours)) {
                None | Some(Lies::Apart) => {}
                Some(Lies::There) => return Err(refused(&format!("it is {what}"))),
                Some(Lies::Inside) => return Err(refused(&format!("it lies in {what}"))),
                Some(Lies::Around) => return Err(refused(&format!("{what} lies in it"))),
            }
        }
        if let Some(data) = directory_above_with(&resolved, &OF_A_DATA_DIRECTORY) {
            let data = data.display();
            return Err(refused(&format!("{data} is a data directory")));
        }
        if let Some(entries) = directory_entries(&resolved).map_err(failed)? {
            let of_a_backup =
                |name: &String| name == BEGUN || Generation::number_in(name).is_some();
            match entries.first() {
                None => {}
                Some(first) if !entries.iter().any(of_a_backup) => {
                    return Err(refused(&format!("{first} is no file of a backup")));
                }
                Some(_) => {
                    let device = FileDevice::for_reading(&resolved).map_err(failed)?;
                    Survey::of(&device, self.database_id())?;
                }
            }
        }
        let lock = lock_directory(&resolved).map_err(|e| match e.kind() {
            ErrorKind::WouldBlock => Error::Refused {
                sqlstate: "55006",
                message: e.to_string(),
                hint: "Wait for the other backup, or take another directory.",
            },
            _ => failed(e),
        })?;
        make_private_directory(&resolved, is_of_a_backup).map_err(failed)?;
        let device = FileDevice::open(&resolved, IoEngine::Threads).map_err(failed)?;
        Ok(Place {
            device: Arc::new(device),
            _lock: lock,
        })
    }

    /// Whether clients may have backups written here.
    fn check_allowed(&self, resolved: &Path) -> Result<()> {
        let allowed = &self.settings().backup_directories;
        for directory in allowed {
            let directory = resolve_directory(directory)
                .map_err(|e| Error::io(e, directory.display().to_string()))?;
            if matches!(
                how_it_lies(resolved, &directory),
                Lies::There | Lies::Inside
            ) {
                return Ok(());
            }
        }
        let message = match allowed.is_empty() {
            true => "BACKUP TO is not allowed: backup_directory is not set".to_owned(),
            false => format!("{} is not below backup_directory", resolved.display()),
        };
        Err(Error::Refused {
            sqlstate: "42501",
            message,
            hint: "Start the server with --backup-directory, the directory below which backups may \
                   go.",
        })
    }

    /// An archive is of one database, and nothing else.
    pub(crate) fn check_archive(archive: &dyn Device, database: u128) -> Result<()> {
        let refused = |why: String| Error::Refused {
            sqlstate: "55000",
            message: format!("the directory cannot be the archive: {why}"),
            hint: "The archive's directory is empty at first, and of one database.",
        };
        let names = archive
            .list()
            .map_err(|e| Error::io(e, "listing the archive"))?;
        let other = |name: &&String| *name == MANIFEST || Generation::number_in(name).is_some();
        if let Some(name) = names.iter().find(other) {
            return Err(refused(format!("{name} is no file of an archive")));
        }
        let mut segments = names.iter().filter(|name| is_segment(name));
        for segment in [segments.next(), segments.next_back()]
            .into_iter()
            .flatten()
        {
            if !is_segment_of(archive, segment, database).map_err(log_broken)? {
                return Err(refused(format!("{segment} is another database's")));
            }
        }
        Ok(())
    }
}
