//! What is compared of two answers.

use super::oracle::{Answer, Table};

/// Whether two answers agree. Rows that are equal by the order may come in another one.
pub fn compare(theirs: &Answer, ours: &Answer) -> Result<(), String> {
    match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => {
            if !theirs.columns.is_empty() && theirs.columns != ours.columns {
                return Err(format!(
                    "columns {:?} and {:?}",
                    theirs.columns, ours.columns
                ));
            }
            if theirs.rows == ours.rows {
                return Ok(());
            }
            let sorted = |table: &Table| {
                let mut rows = table.rows.clone();
                rows.sort();
                rows
            };
            let keys = |table: &Table| -> Vec<Vec<Option<String>>> {
                let key = |row: &Vec<Option<String>>| {
                    let places = ours.order.iter();
                    places.map(|at| row.get(*at).cloned().flatten()).collect()
                };
                table.rows.iter().map(key).collect()
            };
            let in_order = keys(theirs) == keys(ours);
            let (theirs, ours) = (sorted(theirs), sorted(ours));
            if theirs == ours {
                return if in_order {
                    Ok(())
                } else {
                    Err("the rows come in another order".to_owned())
                };
            }
            let first = theirs.iter().zip(&ours).find(|(a, b)| a != b);
            Err(format!(
                "{} and {} rows, first {first:?}",
                theirs.len(),
                ours.len()
            ))
        }
        (Err(theirs), Err(ours)) if theirs.0 == ours.0 => Ok(()),
        (Err(theirs), Err(ours)) => Err(format!("theirs {theirs:?}, ours {ours:?}")),
        (Err(theirs), Ok(table)) => {
            Err(format!("theirs {theirs:?}, ours {} rows", table.rows.len()))
        }
        (Ok(table), Err(ours)) => Err(format!("theirs {} rows, ours {ours:?}", table.rows.len())),
    }
}
