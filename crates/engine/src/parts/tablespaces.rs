//! The tablespaces of an open database: where each lies, the device that was opened there, what its
//! tables begin with.
//!
//! A tablespace that is not there, is full or fails is no reason not to work: what would go there goes
//! into the database's own directory, and is moved when it takes blocks again (`cold/compaction.rs`).
//! What lies there cannot be read meanwhile, and whoever needs it is told so.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_device::{
    Device, DeviceKind, DeviceProfile, DirectoryLock, EmulatedDevice, EmulatedProfile, FileDevice,
    IoEngine, Lies, Probing, glance, how_it_lies, lock_directory, make_new_directory,
    make_private_directory, remove_device_directory, resolve_directory,
};
use thermocline_storage::block_store::{HOME, TablespaceFile, file_named};

use crate::catalog::tablespace::{Measured, TablespaceDef, TablespaceOptions};
use crate::format::places::{Place, Places, read_places, write_places};
use crate::ground::error::{Error, Result};
use crate::policy::book::PolicyBook;
use crate::policy::table_policy::Policies;
use crate::policy::{ColdAccess, Policy};

/// The file of blocks in a directory of its own.
const FILE: &str = "blocks";
/// One that refused a block is tried again after this time.
const REFUSED_REST: Duration = Duration::from_secs(5);
/// A look at a device takes a third of it.
const LOOK: Duration = Duration::from_secs(3);

/// A device that was opened for a tablespace; the lock lasts as long.
struct OpenDevice {
    device: Arc<dyn Device>,
    /// Why it is not the emulated one that it should be.
    not_emulated: Option<String>,
    _lock: Option<DirectoryLock>,
}

/// See the module's head.
pub(crate) struct Tablespaces {
    home: Arc<dyn Device>,
    database_id: u128,
    io: IoEngine,
    places: Mutex<Places>,
    open: Mutex<HashMap<u16, OpenDevice>>,
    /// When each refused a block last.
    refused: Mutex<HashMap<u16, Duration>>,
    /// Held while a number is chosen, until the place that has it is noted.
    pub making: Mutex<()>,
    book: Arc<PolicyBook>,
}

impl Tablespaces {
    /// Reads where they lie.
    ///
    /// # Errors
    /// The file that says so is damaged, or the device fails.
    pub fn read(
        home: Arc<dyn Device>,
        database_id: u128,
        io: IoEngine,
        server: Option<Policy>,
    ) -> Result<Self> {
        let profile = home.profile();
        let policies = Policies {
            server: server.unwrap_or_else(|| Policy::for_device(&profile)),
            paper: Policy::of_papers(&profile),
            // A program that gives a policy knows its device.
            on_memory: profile.kind.is_memory()
                || server.is_some_and(|policy| policy.access == ColdAccess::Byte),
        };
        Ok(Tablespaces {
            places: Mutex::new(read_places(&*home)?),
            home,
            database_id,
            io,
            open: Mutex::default(),
            refused: Mutex::default(),
            making: Mutex::default(),
            book: Arc::new(PolicyBook::of_server(policies)),
        })
    }

    /// What tables begin with.
    pub fn book(&self) -> &Arc<PolicyBook> {
        &self.book
    }

    /// Opens the devices of all that there are.
    pub fn open_all(&self) -> Vec<TablespaceFile> {
        let places = self.places.lock();
        places.values().map(|place| self.open(place)).collect()
    }

    /// As [`Self::open_all`], of a database that is not open: whoever checks it has its directory, and is
    /// not to be held up by what is emulated.
    pub fn open_all_to_check(&self) -> Vec<TablespaceFile> {
        let places = self.places.lock();
        let open = |place: &Place| {
            self.open_as(place, |path| {
                let device: Arc<dyn Device> = Arc::new(FileDevice::open(path, self.io)?);
                Ok(OpenDevice {
                    device,
                    not_emulated: None,
                    _lock: None,
                })
            })
        };
        places.values().map(open).collect()
    }

    /// Opens the device of one. That it is not there is told by who needs it.
    pub fn open(&self, place: &Place) -> TablespaceFile {
        self.open_as(place, |path| self.open_to_use(place, path))
    }

    fn open_as(
        &self,
        place: &Place,
        open: impl FnOnce(&Path) -> io::Result<OpenDevice>,
    ) -> TablespaceFile {
        let path = Path::new(&place.directory);
        let opened = match place.directory.is_empty() {
            true => Ok(OpenDevice {
                device: self.home.clone(),
                not_emulated: None,
                _lock: None,
            }),
            false if !path.is_dir() => {
                let why = format!("there is no directory {}", place.directory);
                Err(io::Error::new(ErrorKind::NotFound, why))
            }
            false => open(path),
        };
        let device = opened.map(|opened| {
            let device = opened.device.clone();
            self.open.lock().insert(place.number, opened);
            device
        });
        let options = TablespaceOptions::of(&place.options);
        TablespaceFile {
            number: place.number,
            device: device.map_err(|error| error.to_string()),
            name: file_name(place),
            capacity: options.capacity,
        }
    }

    fn open_to_use(&self, place: &Place, path: &Path) -> io::Result<OpenDevice> {
        let lock = lock_directory(path)?;
        make_private_directory(path, |name| name == FILE)?;
        let below: Arc<dyn Device> = Arc::new(FileDevice::open(path, self.io)?);
        let emulated = TablespaceOptions::of(&place.options).emulate;
        let emulate = |profile| EmulatedDevice::new(below.clone(), profile);
        let (device, not_emulated): (Arc<dyn Device>, _) =
            match emulated.and_then(EmulatedProfile::of).map(emulate) {
                Some(Ok(device)) => (Arc::new(device), None),
                // Rows that lie there can be read all the same.
                Some(Err(error)) => (below, Some(error.to_string())),
                None => (below, None),
            };
        Ok(OpenDevice {
            device,
            not_emulated,
            _lock: Some(lock),
        })
    }

    /// Makes the directory of a new tablespace and notes where it is; its file.
    ///
    /// # Errors
    /// 42P17, 58P01, 42809 and 42501 for a location that cannot be; the device's.
    pub fn make(&self, def: &TablespaceDef, ours: &[PathBuf]) -> Result<TablespaceFile> {
        let directory = match def.location.is_empty() {
            true => String::new(),
            false => self.make_directory(def, ours)?,
        };
        let place = Place {
            number: def.number,
            name: def.name.clone(),
            directory,
            options: def.options.clone(),
        };
        let file = self.open(&place);
        let not_emulated = self.not_emulated(def.number);
        let usable = match (&file.device, &not_emulated) {
            (Err(why), _) | (Ok(_), Some(why)) => Err(why),
            (Ok(_), None) => Ok(()),
        };
        let noted = match usable {
            Err(why) => Err(Error::Refused {
                sqlstate: "58030",
                message: format!("could not use \"{}\" as a tablespace: {why}", def.location),
                hint: "Give a directory that belongs to the server's user; to emulate a device, one on a faster device.",
            }),
            Ok(_) => self.note(def.oid, Some(place.clone())),
        };
        if let Err(error) = noted {
            self.remove_files(&place);
            return Err(error);
        }
        Ok(file)
    }

    fn make_directory(&self, def: &TablespaceDef, ours: &[PathBuf]) -> Result<String> {
        let location = Path::new(&def.location);
        let refused = |sqlstate, message, hint| Error::Refused {
            sqlstate,
            message,
            hint,
        };
        if !location.is_absolute() {
            return Err(refused(
                "42P17",
                "tablespace location must be an absolute path".into(),
                "Give the directory by its whole path.",
            ));
        }
        if !location.exists() {
            return Err(refused(
                "58P01",
                format!("directory \"{}\" does not exist", def.location),
                "Make the directory first, for the user that the server runs as.",
            ));
        }
        if !location.is_dir() {
            return Err(refused(
                "42809",
                format!("\"{}\" is not a directory", def.location),
                "Give a directory.",
            ));
        }
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::PermissionDenied => refused(
                "42501",
                format!(
                    "could not make a directory in \"{}\": {error}",
                    def.location
                ),
                "The directory must belong to the user that the server runs as.",
            ),
            _ => Error::io(error, def.location.clone()),
        };
        let resolved = resolve_directory(location).map_err(failed)?;
        for other in ours {
            if how_it_lies(&resolved, other) != Lies::Apart {
                return Err(refused(
                    "42P17",
                    format!(
                        "tablespace location \"{}\" and {} must lie apart",
                        def.location,
                        other.display()
                    ),
                    "Take a directory outside of the database's own directories.",
                ));
            }
        }
        let name = format!("thermocline-{:032x}-{}", self.database_id, def.oid);
        let directory = resolved.join(name);
        make_new_directory(&directory).map_err(failed)?;
        Ok(directory.to_string_lossy().into_owned())
    }

    /// Looks at the device of a tablespace that has one of its own, for about a second; None: it has not.
    ///
    /// # Errors
    /// The device's, and that there is no room.
    pub fn look_at_device(&self, number: u16) -> io::Result<Option<Measured>> {
        let open = self.open.lock();
        let device = open.get(&number).filter(|opened| opened._lock.is_some());
        let Some(device) = device.map(|opened| opened.device.clone()) else {
            return Ok(None);
        };
        drop(open);
        let (_, profile) = glance(&*device, &Probing::for_about(LOOK))?;
        Ok(Some(Measured::of(&profile)))
    }

    /// Notes where a tablespace lies, durably; None: it is nowhere any more.
    pub fn note(&self, oid: u32, place: Option<Place>) -> Result<()> {
        self.change(|places| {
            match place {
                Some(place) => places.insert(oid, place),
                None => places.remove(&oid),
            };
        })
    }

    /// Notes that a place is another tablespace's than was known.
    pub fn rename_place(&self, from: u32, to: u32, place: Place) -> Result<()> {
        self.change(|places| {
            places.remove(&from);
            places.insert(to, place);
        })
    }

    fn change(&self, change: impl FnOnce(&mut Places)) -> Result<()> {
        let mut places = self.places.lock();
        let mut changed = places.clone();
        change(&mut changed);
        write_places(&*self.home, &changed)?;
        *places = changed;
        Ok(())
    }

    /// Where a tablespace lies.
    pub fn place(&self, oid: u32) -> Option<Place> {
        self.places.lock().get(&oid).cloned()
    }

    /// All places by object id.
    pub fn places(&self) -> Places {
        self.places.lock().clone()
    }

    /// Removes what a tablespace has on its device, in which nobody has any rows. What cannot be
    /// removed stays: it is nobody's.
    pub fn remove_files(&self, place: &Place) {
        let opened = self.open.lock().remove(&place.number);
        if let Some(opened) = opened {
            let _ = opened.device.remove(&file_name(place));
            let _ = opened.device.sync_directory();
        }
        if !place.directory.is_empty() {
            let _ = remove_device_directory(Path::new(&place.directory));
        }
    }

    /// Why the device of a tablespace is not emulated, though it should be.
    pub fn not_emulated(&self, number: u16) -> Option<String> {
        let open = self.open.lock();
        open.get(&number)?.not_emulated.clone()
    }

    /// What the options of a tablespace say. Where a restore put its blocks into the data directory, what its
    /// own was like says nothing.
    pub fn options_of(&self, def: &TablespaceDef) -> TablespaceOptions {
        let mut options = TablespaceOptions::of(&def.options);
        if self
            .places
            .lock()
            .get(&def.oid)
            .is_some_and(|place| place.directory.is_empty())
        {
            options.measured = None;
        }
        options
    }

    /// Whether the device of a tablespace is memory, as far as it is known; None: of the data
    /// directory. There lie the blocks of all that a restore brought back, too.
    pub fn is_on_memory(&self, def: Option<&TablespaceDef>) -> bool {
        let kind = def.and_then(|def| {
            let place = self.place(def.oid);
            let is_restored = place.is_some_and(|place| place.directory.is_empty());
            match is_restored && !def.location.is_empty() {
                true => None,
                false => self.options_of(def).kind(),
            }
        });
        kind.map_or(self.book.home().on_memory, DeviceKind::is_memory)
    }

    /// What the tables of a tablespace begin with from now on.
    pub fn tell(&self, def: &TablespaceDef) {
        let options = self.options_of(def);
        let home = self.book.home();
        let policies = match options.kind().map(DeviceProfile::typical) {
            None => home,
            Some(profile) => Policies {
                server: Policy {
                    retrieval: Policy::for_device(&profile).retrieval,
                    merge: Policy::for_device(&profile).merge,
                    ..home.server
                },
                paper: Policy::of_papers(&profile),
                on_memory: home.on_memory,
            },
        };
        let policies = Policies {
            on_memory: self.is_on_memory(Some(def)),
            ..policies
        };
        let policies = Policies {
            server: options.policy.over(&policies),
            ..policies
        };
        self.book.put(def.oid, policies);
    }

    /// The devices that are not the database's own, with the numbers of the tablespaces.
    pub fn devices(&self) -> Vec<(Arc<dyn Device>, u16)> {
        let open = self.open.lock();
        let others = open.iter().filter(|(_, opened)| opened._lock.is_some());
        let others = others.map(|(number, opened)| (opened.device.clone(), *number));
        let mut others: Vec<_> = others.collect();
        others.sort_unstable_by_key(|(_, number)| *number);
        others
    }

    /// Notes that a tablespace refused a block.
    pub fn refused(&self, number: u16, now: Duration) {
        self.refused.lock().insert(number, now);
    }

    /// A tablespace may take blocks again.
    pub fn tries_again(&self, number: u16) {
        self.refused.lock().remove(&number);
    }

    /// Whether a tablespace has refused a block a short time ago.
    pub fn refuses(&self, number: u16, now: Duration) -> bool {
        if number == HOME {
            return false;
        }
        let refused = self.refused.lock();
        refused
            .get(&number)
            .is_some_and(|then| now < *then + REFUSED_REST)
    }
}

/// The name of a tablespace's file of blocks.
pub(crate) fn file_name(place: &Place) -> String {
    match place.directory.is_empty() {
        true => file_named(place.number),
        false => FILE.into(),
    }
}
