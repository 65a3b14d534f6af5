//! One asynchronous read on its way: what both I/O engines agree on.
//!
//! Guarantees: the completion runs exactly once; a read that the kernel did in part is
//! carried on; past the file's end the missing tail is zeros, unless all is missing.
//! Survives: interrupted, refused-for-now and cancelled reads (tried again, with a limit).

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use crate::device::past_the_end;
use crate::file::OpenFile;
use crate::{AlignedBuffer, DeviceCounters, ReadCompletion, ReadRequest, SECTOR_BYTES, Ticket};

/// How often one read may be continued or repeated before it counts as failed.
const CONTINUATIONS_MAX: u32 = 64;

/// A read request together with the file that it reads, which stays open until the end.
pub(crate) struct ReadJob {
    file: Arc<OpenFile>,
    counters: Arc<DeviceCounters>,
    offset: u64,
    buffer: AlignedBuffer,
    filled: usize,
    continuations: u32,
    started: Instant,
    ticket: Ticket,
    completion: ReadCompletion,
}

impl ReadJob {
    pub(crate) fn new(
        file: Arc<OpenFile>,
        counters: Arc<DeviceCounters>,
        request: ReadRequest,
    ) -> ReadJob {
        counters.read_started();
        let ticket = counters.begin();
        ReadJob {
            file,
            ticket,
            counters,
            offset: request.offset,
            buffer: request.buffer,
            filled: 0,
            continuations: 0,
            started: Instant::now(),
            completion: request.completion,
        }
    }

    /// When it was submitted.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The descriptor to read from, open while the job lives.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.for_aligned().as_raw_fd()
    }

    /// The file that is read.
    pub(crate) fn file(&self) -> Arc<OpenFile> {
        Arc::clone(&self.file)
    }

    /// Where the part that is still missing begins in the file.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.filled as u64
    }

    /// The part of the buffer that is still missing.
    pub(crate) fn missing(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Takes note of what one system call did. `None`: read on from `position`.
    pub(crate) fn advance(&mut self, outcome: io::Result<usize>) -> Option<io::Result<()>> {
        match outcome {
            Ok(bytes) => {
                let missing = self.buffer.len() - self.filled;
                assert!(
                    bytes <= missing,
                    "a read of {missing} bytes returned {bytes}"
                );
                self.filled += bytes;
                if self.filled == self.buffer.len() {
                    return Some(Ok(()));
                }
                match self.file.len() {
                    Ok(len) if bytes == 0 || self.position() >= len => {
                        return Some(self.end_of_file());
                    }
                    Ok(_) => {}
                    Err(error) => return Some(Err(error)),
                }
                // Direct reads can only be continued at a sector.
                self.filled -= self.filled % SECTOR_BYTES;
            }
            Err(error) if is_transient(&error) => {
                if self.continuations == CONTINUATIONS_MAX {
                    return Some(Err(error));
                }
            }
            Err(error) => return Some(Err(error)),
        }
        self.continuations += 1;
        if self.continuations > CONTINUATIONS_MAX {
            return Some(Err(io::Error::other(format!(
                "{}: a read at {} came back short {CONTINUATIONS_MAX} times",
                self.file.name(),
                self.offset
            ))));
        }
        None
    }

    fn end_of_file(&mut self) -> io::Result<()> {
        if self.filled == 0 {
            let (name, bytes) = (self.file.name(), self.buffer.len());
            return Err(past_the_end(name, self.offset, bytes));
        }
        self.missing().fill(0);
        Ok(())
    }

    /// Hands the outcome over. A completion that panics has been reported by the panic
    /// hook; it must not take the other reads with it.
    pub(crate) fn complete(self, outcome: io::Result<()>) {
        let bytes = outcome.is_ok().then_some(self.buffer.len());
        self.counters.end(self.ticket);
        self.counters.read_finished(bytes, self.started.elapsed());
        let (buffer, completion) = (self.buffer, self.completion);
        let result = outcome.map(|()| buffer);
        if catch_unwind(AssertUnwindSafe(|| completion(result))).is_err() {
            self.counters.error();
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    // Cancelled: the kernel drops what a thread submitted when that thread ends.
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::file::OpenFile;

    fn job(file_bytes: u64) -> (ReadJob, mpsc::Receiver<io::Result<AlignedBuffer>>) {
        let (sender, receiver) = mpsc::channel();
        let mut buffer = AlignedBuffer::new_zeroed(4 * SECTOR_BYTES);
        buffer.fill(0xee);
        let request = ReadRequest {
            offset: SECTOR_BYTES as u64,
            buffer,
            completion: Box::new(move |result| sender.send(result).unwrap()),
        };
        let file = tempfile::tempfile().unwrap();
        file.set_len(file_bytes).unwrap();
        let file = Arc::new(OpenFile::buffered("data", file));
        (ReadJob::new(file, Arc::default(), request), receiver)
    }

    #[test]
    fn a_short_read_goes_on_at_the_last_whole_sector() {
        let (mut job, receiver) = job(1 << 20);
        assert!(job.advance(Ok(SECTOR_BYTES + 700)).is_none());
        assert_eq!(job.position(), 2 * SECTOR_BYTES as u64);
        assert_eq!(job.missing().len(), 3 * SECTOR_BYTES);
        let outcome = job.advance(Ok(3 * SECTOR_BYTES)).unwrap();
        job.complete(outcome);
        assert_eq!(receiver.recv().unwrap().unwrap().len(), 4 * SECTOR_BYTES);
    }

    #[test]
    fn a_read_cut_by_the_end_of_the_file_has_zeros_for_the_rest() {
        let (mut job, receiver) = job(SECTOR_BYTES as u64 + 700);
        let outcome = job.advance(Ok(700)).unwrap();
        job.complete(outcome);
        let buffer = receiver.recv().unwrap().unwrap();
        assert!(buffer[..700].iter().all(|&byte| byte == 0xee));
        assert!(buffer[700..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn what_passes_is_tried_again_with_a_limit_and_what_stays_is_reported() {
        let error = io::Error::from_raw_os_error;
        for code in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
            let (mut job, _receiver) = job(1 << 20);
            for _ in 0..CONTINUATIONS_MAX {
                assert!(job.advance(Err(error(code))).is_none());
            }
            let given_up = job.advance(Err(error(code))).unwrap().unwrap_err();
            assert_eq!(given_up.raw_os_error(), Some(code));
        }
        let (mut job, receiver) = job(1 << 20);
        let outcome = job.advance(Err(error(libc::EIO))).unwrap();
        job.complete(outcome);
        let reported = receiver.recv().unwrap().unwrap_err();
        assert_eq!(reported.raw_os_error(), Some(libc::EIO));
    }
}
