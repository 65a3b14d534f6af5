//! Directories written by an earlier build, whole and damaged, as they are kept
//! with the source: what the format is cannot change by accident.

mod fixture;

use fixture::device_of;
use fixture::directories::{CHECKPOINTED, ROWS, WHOLE, expected, kept, open, row};
use fixture::table;
use std::sync::Arc;
use thermocline_device::Device;
use thermocline_engine::check::{CheckEvent, check};

/// What comes of opening a directory: which rows read as they should, and what
/// the others, or the whole, say.
fn opened(name: &str) -> Result<Vec<Result<bool, String>>, String> {
    let device = device_of(&kept(name));
    let db = open(&device).map_err(|error| error.to_string())?;
    let t = table(&db, "t");
    let rows = (0..ROWS).map(|id| match row(&db, &t, id) {
        Ok(Some(found)) => {
            assert_eq!(found, expected(id), "{name}: row {id}");
            Ok(true)
        }
        Ok(None) => Ok(false),
        Err(error) => Err(error.to_string()),
    });
    let rows = rows.collect();
    assert_eq!(row(&db, &t, ROWS).map_err(|e| e.to_string()), Ok(None));
    Ok(rows)
}

/// The files in which `check` finds something.
fn found_in(name: &str) -> Vec<String> {
    let device: Arc<dyn Device> = Arc::new(device_of(&kept(name)));
    let mut files = Vec::new();
    let checked = check(&device, &mut |event| {
        if let CheckEvent::Found(finding) = event {
            files.push(finding.file.clone());
        }
    });
    checked.expect("can be checked");
    files.dedup();
    files
}

fn refused(name: &str) -> String {
    opened(name).expect_err("must not open")
}

#[test]
fn a_whole_directory_opens_with_each_value_of_each_row() {
    let rows = opened(WHOLE).expect("opens");
    assert!(rows.iter().all(|row| *row == Ok(true)), "{rows:?}");
    assert_eq!(found_in(WHOLE), Vec::<String>::new());
}

#[test]
fn a_torn_end_of_the_log_is_the_end() {
    let rows = opened("torn-log").expect("opens");
    let (last, others) = rows.split_last().expect("rows");
    assert!(others.iter().all(|row| *row == Ok(true)), "{rows:?}");
    assert_eq!(*last, Ok(false), "it was never acknowledged");
    assert_eq!(found_in("torn-log"), Vec::<String>::new());
}

#[test]
fn a_damaged_record_before_valid_ones_is_refused() {
    let said = refused("damaged-log");
    assert!(said.contains("log-") && said.contains("at byte"), "{said}");
    assert!(found_in("damaged-log")[0].starts_with("log-"));
}

#[test]
fn a_flipped_bit_in_a_block_is_the_row_that_it_is_in() {
    let rows = opened("flipped-block").expect("opens");
    for (id, row) in rows.iter().enumerate() {
        match row {
            Err(said) => {
                assert_eq!(id, 7, "{said}");
                assert!(said.contains("blocks at byte"), "{said}");
                assert!(said.contains("table \"public.t\""), "{said}");
            }
            Ok(there) => assert!(there, "row {id}"),
        }
    }
    assert!(rows[7].is_err());
    assert!(rows.len() as i64 > CHECKPOINTED);
    assert_eq!(found_in("flipped-block"), ["blocks"]);
}

#[test]
fn a_damaged_description_or_a_missing_image_is_named() {
    let said = refused("truncated-manifest");
    assert!(said.contains("manifest: it ends too early"), "{said}");
    assert_eq!(found_in("truncated-manifest"), ["manifest"]);

    let said = refused("missing-image");
    assert!(said.contains("checkpoint-00000002-0000"), "{said}");
    assert_eq!(found_in("missing-image")[0], "checkpoint-00000002-0000");
}

#[test]
fn an_older_format_is_refused_and_says_what_to_do() {
    let said = refused("older-format");
    assert!(said.contains("format 2 is not the format"), "{said}");
    assert!(
        said.contains("copy the data out with the program that wrote it"),
        "{said}"
    );
}
