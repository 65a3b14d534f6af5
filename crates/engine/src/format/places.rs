//! The file `tablespaces`: in which directory each tablespace lies. It is written before the commit
//! that makes a tablespace, and after the one that drops it, so that whatever the Block Table
//! names can be found: it is read before the catalog is known. A restore writes another one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thermocline_device::Device;

use super::manifest::{PLACES, decode_checked, encode_checked, read_file, write_file};
use crate::ground::error::{Error, Result};

const PLACES_NEW: &str = "tablespaces.new";
const FORMAT_VERSION: u32 = 1;

/// Where a tablespace lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Its number in the Block Table.
    pub number: u16,
    /// For people.
    pub name: String,
    /// The directory; empty: the database's own.
    pub directory: String,
    /// Its options, as of then.
    pub options: BTreeMap<String, String>,
}

/// All of them, by object id.
pub(crate) type Places = BTreeMap<u32, Place>;

#[derive(Serialize, Deserialize)]
struct Description {
    format: u32,
    places: Places,
}

/// What stands for the object id of a tablespace that only the log knows.
pub(crate) fn unnamed_place(number: u16) -> u32 {
    u32::MAX - u32::from(number)
}

/// Reads the file; where there is none there are no tablespaces.
///
/// # Errors
/// It is damaged, or the device fails.
pub(crate) fn read_places(device: &dyn Device) -> Result<Places> {
    let files = device.list();
    let files = files.map_err(|e| Error::io(e, "listing the data directory"))?;
    if !files.iter().any(|file| file == PLACES) {
        return Ok(Places::new());
    }
    let bytes = read_file(device, PLACES)?;
    let read: Description = decode_checked(PLACES, &bytes, FORMAT_VERSION..=FORMAT_VERSION)?;
    let mut numbers: Vec<u16> = read.places.values().map(|place| place.number).collect();
    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    if numbers.len() != count || numbers.first() == Some(&0) {
        let what = format!("{PLACES}: two tablespaces have one number");
        return Err(Error::Corrupt(what));
    }
    Ok(read.places)
}

/// Puts the file in the place of the one that is there.
///
/// # Errors
/// The device's; the old one is still there then.
pub(crate) fn write_places(device: &dyn Device, places: &Places) -> Result<()> {
    let description = Description {
        format: FORMAT_VERSION,
        places: places.clone(),
    };
    write_file(device, PLACES_NEW, &encode_checked(&description)?)?;
    device
        .rename(PLACES_NEW, PLACES)
        .and_then(|()| device.sync_directory())
        .map_err(|e| Error::io(e, format!("renaming {PLACES}")))
}
