use std::path::Path;
use std::sync::Arc;

use thermocline_device::{Device, OpenMode, SimulatedDevice, read_damaged};
use thermocline_storage::arena::Arena;
use thermocline_values::value::Value;

use super::command::{self, Command};
use super::definitions::{LoggedCatalog, decode_catalog, decode_table};
use super::image::{FRAME_HEAD, ImageReader};
use super::manifest::{ImageFile, Manifest, PartitionFiles};
use super::record::{
    ChangeWriter, RecordKind, RowChange, changes, commit_head, encoded_changes, parse_commit_body,
    parse_record, push_removed, record_head,
};
use crate::catalog::logged_change::CatalogChange;
use crate::catalog::{Catalog, Table};
use crate::ground::byte_parts::ByteParts;
use crate::ground::error::Error;
use crate::ground::row_id::RowId;
use crate::restart::images::{Restored, restore_partition};
use crate::rows::partition::PartitionState;

/// A file of the directory that `tests/fixtures.rs` opens.
fn fixture(file: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/whole");
    let mut bytes = std::fs::read(directory.join(file)).expect("a fixture");
    // Zeros at the end are not kept.
    let lengths = std::fs::read_to_string(directory.join("LENGTHS")).expect("a fixture");
    let length = lengths.lines().find_map(|line| line.strip_prefix(file));
    bytes.resize(
        length
            .and_then(|n| n.trim().parse().ok())
            .expect("a length"),
        0,
    );
    bytes
}

fn device_with(file: &str, bytes: &[u8]) -> SimulatedDevice {
    let device = SimulatedDevice::new();
    let made = device.open(file, OpenMode::Create).expect("a file");
    made.write_at(bytes, 0).expect("room");
    made.set_len(bytes.len() as u64).expect("room");
    device
}

/// What was read of a fault: a file or a record is in its words.
fn words(error: Error, place: &str) -> String {
    let text = error.to_string();
    assert!(text.contains(place), "{text} does not name {place}");
    text
}

fn manifest() -> Manifest {
    let device = device_with("manifest", &fixture("manifest"));
    let read = Manifest::read(&device).expect("whole");
    read.expect("it is there")
}

#[test]
fn a_damaged_manifest_is_refused() {
    let repair = |bytes: &mut Vec<u8>| {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        bytes.truncate(end.unwrap_or(bytes.len()));
        // What is no text is read as another.
        let text = String::from_utf8_lossy(bytes).into_owned();
        let crc = crc32c::crc32c(text.as_bytes());
        *bytes = format!("{text}\n{crc:08x}\n").into_bytes();
    };
    read_damaged("manifest", &[fixture("manifest")], repair, |bytes| {
        let device = device_with("manifest", bytes);
        let read = Manifest::read(&device).map_err(|error| words(error, "manifest"))?;
        let manifest = read.expect("it is there");
        let partitions = manifest.partitions.len() as u16;
        Catalog::from_image(&manifest.catalog, partitions, &Catalog::empty());
        for draft in manifest.drafts {
            Table::new(draft, partitions);
        }
        Ok(())
    });
}

#[test]
fn damaged_definitions_in_the_log_are_refused() {
    let catalog = manifest().catalog;
    let table = catalog.tables.first().expect("a table");
    let table = serde_json::to_vec(table).expect("text");
    read_damaged(
        "table in the log",
        &[table],
        |_| (),
        |bytes| {
            let def = decode_table(bytes).map_err(|error| words(error, "table in the log"))?;
            Table::new(def, 4);
            Ok(())
        },
    );
    let whole = Catalog::from_image(&catalog, 4, &Catalog::empty());
    let change = CatalogChange::between(&Catalog::empty(), &whole);
    let change = serde_json::to_vec(&change).expect("text");
    let catalog = serde_json::to_vec(&catalog).expect("text");
    read_damaged(
        "catalog in the log",
        &[catalog, change],
        |_| (),
        |bytes| {
            let told = |error| words(error, "catalog in the log");
            match decode_catalog(bytes).map_err(told)? {
                LoggedCatalog::Whole(image) => {
                    Catalog::from_image(&image, 4, &Catalog::empty());
                }
                LoggedCatalog::Change(change) => {
                    change.apply(&Catalog::empty(), 4).map_err(told)?;
                }
            }
            Ok(())
        },
    );
}

#[test]
fn a_damaged_record_of_the_log_is_refused() {
    let mut writer = ChangeWriter::default();
    let mut removed = Vec::new();
    push_removed(&mut removed, 99, b"old key");
    for row in 0..20 {
        writer.put(3, RowId::new(2, row), &[row as u8; 50], &removed);
        writer.delete(4, RowId::new(1, row), &[]);
    }
    let written = writer.parts.whole().expect("few").to_vec();
    let commit = [&commit_head(7, &writer.parts)[..], &written, b"{}"].concat();
    let head = record_head(RecordKind::Provisional, 8);
    let provisional = [&head[..], &written].concat();
    read_damaged(
        "record",
        &[commit, provisional],
        |_| (),
        |bytes| {
            let told = |error: Error| error.to_string();
            let (kind, _, body) = parse_record(bytes).map_err(told)?;
            let body = match kind {
                RecordKind::Commit => parse_commit_body(body).map_err(told)?.0,
                _ => body,
            };
            encoded_changes(body).for_each(drop);
            for change in changes(body) {
                match change.map_err(told)? {
                    RowChange::Put { removed, .. } | RowChange::Delete { removed, .. } => {
                        removed.iter().for_each(drop);
                    }
                    RowChange::Named { .. } => {}
                }
            }
            Ok(())
        },
    );
    let arguments = [
        Value::Null,
        Value::BigInt(-1),
        Value::Text("text".into()),
        Value::Bytea(vec![0, 255]),
    ];
    let mut call = command::head(3, 9, "pay", &arguments)
        .expect("small")
        .to_vec();
    let rows = [(3, 5), (3, 6), (9, 0)];
    call.extend(command::tail(&ByteParts::default(), rows.into_iter()));
    read_damaged(
        "command",
        &[call],
        |_| (),
        |bytes| {
            Command::parse(bytes)
                .map(|_| ())
                .map_err(|error| error.to_string())
        },
    );
}

/// Makes the checksums of an image's frames right.
fn repair_image(bytes: &mut [u8]) {
    let (mut at, mut crc) = (0, 0);
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let Some(body) = bytes.get(at + FRAME_HEAD..at + FRAME_HEAD + length) else {
            return;
        };
        crc = crc32c::crc32c_append(crc, body);
        bytes[at + 4..at + FRAME_HEAD].copy_from_slice(&crc.to_le_bytes());
        at += FRAME_HEAD + length;
    }
}

/// What a manifest would say of these bytes.
fn image_file(bytes: &[u8]) -> ImageFile {
    let (mut at, mut crc) = (0, 0);
    while let Some(head) = bytes.get(at..at + FRAME_HEAD) {
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
        crc = number(4);
        at += FRAME_HEAD + number(0) as usize;
    }
    ImageFile {
        file: "checkpoint-1".into(),
        bytes: bytes.len() as u64,
        crc,
    }
}

#[test]
fn a_damaged_image_is_refused() {
    let manifest = manifest();
    let named = manifest.partitions.iter().enumerate();
    let (partition, image) = named
        .filter_map(|(partition, files)| Some((partition, files.files.first()?)))
        .max_by_key(|(_, image)| image.bytes)
        .expect("an image");
    let valid = fixture(&image.file);
    read_damaged(
        "image",
        &[valid],
        |bytes| repair_image(bytes),
        |bytes| {
            let device = device_with("checkpoint-1", bytes);
            let file = image_file(bytes);
            let mut reader =
                ImageReader::open(&device, &file).map_err(|error| words(error, "checkpoint-1"))?;
            while reader
                .next()
                .map_err(|error| words(error, "checkpoint-1"))?
                .is_some()
            {}
            Ok(())
        },
    );
    let arena = Arc::new(Arena::reserve(256 << 20).expect("address space"));
    let valid = fixture(&image.file);
    read_damaged(
        "partition of an image",
        &[valid],
        |bytes| repair_image(bytes),
        |bytes| {
            let device = device_with("checkpoint-1", bytes);
            let files = PartitionFiles {
                files: vec![image_file(bytes)],
                cut: 0,
            };
            let mut state = PartitionState::new(partition as u16, arena.clone(), Arc::default());
            restore_partition(&device, &mut state, &files, &mut Restored::default())
                .map_err(|error| words(error, "checkpoint-1"))
        },
    );
}
