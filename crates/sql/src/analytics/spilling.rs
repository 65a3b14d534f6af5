//! What DataFusion's operators put aside when their memory is used up: sorted runs, parts of
//! hash tables. It goes into temporary files of the engine's, which have no names, count
//! against `temp_file_limit` with all others, and are gone when the statement is.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::spill_file::{SpillFile, SpillWriter, TempFileFactory};
use futures::{Stream, stream};
use parking_lot::Mutex;
use thermocline_engine::Error;
use thermocline_engine::spill::{self, Spill, SpillReader};

use crate::error::SqlError;

/// What is written is one record of about so many bytes after the other.
const RECORD_BYTES: usize = 32 << 10;
/// How much is read at a time: a merge reads many files at once.
const READ_BYTES: usize = 16 << 10;

/// Makes files for operators.
pub(super) struct SpillFiles(pub(super) Arc<Spill>);

impl TempFileFactory for SpillFiles {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let file = self.0.create().map_err(external)?;
        Ok(Arc::new(OperatorFile(Arc::new(Mutex::new(file)))))
    }
}

struct OperatorFile(Arc<Mutex<spill::SpillFile>>);

impl SpillFile for OperatorFile {
    fn size(&self) -> Option<u64> {
        Some(self.0.lock().bytes())
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let from = (Arc::clone(&self.0), SpillReader::new(READ_BYTES));
        let records = stream::unfold(Some(from), |from| async move {
            let (file, mut reader) = from?;
            let next = reader.next(&file.lock()).map(|record| {
                // Arrow reads numbers in place where they are aligned.
                record.map(Bytes::copy_from_slice)
            });
            match next {
                Ok(None) => None,
                Ok(Some(record)) => Some((Ok(record), Some((file, reader)))),
                Err(error) => Some((Err(external(error)), None)),
            }
        });
        Ok(Box::pin(records))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        Ok(Box::new(OperatorWriter {
            file: Arc::clone(&self.0),
            record: Vec::with_capacity(RECORD_BYTES),
        }))
    }
}

struct OperatorWriter {
    file: Arc<Mutex<spill::SpillFile>>,
    record: Vec<u8>,
}

impl OperatorWriter {
    fn append(&mut self) -> std::result::Result<(), Error> {
        if !self.record.is_empty() {
            self.file.lock().append(&self.record)?;
            self.record.clear();
        }
        Ok(())
    }
}

impl io::Write for OperatorWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = RECORD_BYTES - self.record.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.record.extend_from_slice(taken);
        if self.record.len() == RECORD_BYTES {
            self.append()
                .map_err(|error| io::Error::other(SqlError::from(error)))?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.append()
            .map_err(|error| io::Error::other(SqlError::from(error)))
    }
}

impl SpillWriter for OperatorWriter {
    fn finish(&mut self) -> Result<()> {
        self.append().map_err(external)?;
        self.file.lock().seal().map_err(external)
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(SqlError::from(error)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use futures::StreamExt;
    use thermocline_device::{Device, KeptSpace, SimulatedDevice};
    use thermocline_engine::block_on;

    use super::*;

    fn files(limit: Option<u64>) -> (Arc<Spill>, SpillFiles) {
        let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new());
        let kept = Arc::new(KeptSpace::new(device.clone()));
        let spill = Spill::new(device, kept, limit).unwrap();
        (Arc::clone(&spill), SpillFiles(spill))
    }

    #[test]
    fn bytes_come_back_in_order_by_any_number_of_readers() {
        let (spill, factory) = files(None);
        let file = factory.create_temp_file("a run").unwrap();
        let mut writer = file.open_writer().unwrap();
        let bytes: Vec<u8> = (0..300_000u32).map(|at| (at * 7 % 251) as u8).collect();
        for piece in bytes.chunks(1111) {
            writer.write_all(piece).unwrap();
        }
        writer.finish().unwrap();
        for _ in 0..2 {
            let mut records = file.read_stream().unwrap();
            let mut read = Vec::new();
            while let Some(record) = block_on(records.next()) {
                read.extend_from_slice(&record.unwrap());
            }
            assert!(read == bytes);
        }
        drop((writer, file));
        assert_eq!(spill.report().bytes, 0);
    }

    #[test]
    fn the_limit_is_heard_through_arrow() {
        let (_, factory) = files(Some(100_000));
        let file = factory.create_temp_file("a run").unwrap();
        let mut writer = file.open_writer().unwrap();
        let error = writer.write_all(&[1; 300_000]).unwrap_err();
        let error = datafusion::arrow::error::ArrowError::from(error);
        let error = super::super::sql_error(&DataFusionError::from(error));
        assert_eq!(error.sqlstate, "53400");
    }
}
