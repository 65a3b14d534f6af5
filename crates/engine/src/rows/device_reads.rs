//! Reads of the files of blocks, all under way at once.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use thermocline_device::{AlignedBuffer, ReadRequest};
use thermocline_storage::block_store::Volumes;

/// Requests that go out together: nearly always to the file of one tablespace.
pub(super) struct Requests {
    number: u16,
    requests: Vec<ReadRequest>,
    others: Vec<(u16, ReadRequest)>,
}

impl Requests {
    /// None yet, and most of them of this tablespace.
    pub fn of(number: u16) -> Self {
        Requests {
            number,
            requests: Vec::new(),
            others: Vec::new(),
        }
    }

    pub fn push(&mut self, number: u16, request: ReadRequest) {
        match number == self.number {
            true => self.requests.push(request),
            false => self.others.push((number, request)),
        }
    }

    /// Starts all of them. Those of a tablespace that is not there fail.
    pub fn submit(mut self, volumes: &Volumes) {
        submit_to(volumes, self.number, self.requests);
        while let Some((number, _)) = self.others.first() {
            let number = *number;
            let of_it = self.others.extract_if(.., |(other, _)| *other == number);
            let of_it = of_it.map(|(_, request)| request).collect();
            submit_to(volumes, number, of_it);
        }
    }
}

fn submit_to(volumes: &Volumes, number: u16, requests: Vec<ReadRequest>) {
    if requests.is_empty() {
        return;
    }
    match volumes.file(number) {
        Ok(file) => file.submit_reads(requests),
        Err(error) => {
            for request in requests {
                let error = io::Error::new(error.kind(), error.to_string());
                (request.completion)(Err(error));
            }
        }
    }
}

/// A range of a tablespace's file, in bytes.
pub(super) struct FileRange {
    pub tablespace: u16,
    pub offset: u64,
    pub bytes: usize,
}

#[derive(Default)]
struct Arrived {
    buffers: Vec<(usize, std::io::Result<AlignedBuffer>)>,
    waiting: Option<Waker>,
}

/// Reads under way, in whatever order they come.
pub(super) struct Arriving {
    arrived: Arc<Mutex<Arrived>>,
    left: usize,
}

impl Arriving {
    /// Reads ranges, all at once.
    pub fn submit(volumes: &Volumes, ranges: impl Iterator<Item = FileRange>) -> Arriving {
        let arrived: Arc<Mutex<Arrived>> = Arc::default();
        let request = |number, range: FileRange| {
            let arrived = arrived.clone();
            ReadRequest {
                offset: range.offset,
                buffer: AlignedBuffer::new_zeroed(range.bytes),
                completion: Box::new(move |outcome| {
                    let waker = {
                        let mut arrived = arrived.lock();
                        arrived.buffers.push((number, outcome));
                        arrived.waiting.take()
                    };
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                }),
            }
        };
        let mut requests: Option<Requests> = None;
        let mut left = 0;
        for (number, range) in ranges.enumerate() {
            left += 1;
            let tablespace = range.tablespace;
            let requests = requests.get_or_insert_with(|| Requests::of(tablespace));
            requests.push(tablespace, request(number, range));
        }
        if let Some(requests) = requests {
            requests.submit(volumes);
        }
        Arriving { arrived, left }
    }

    /// The next one that has come, with its number among the ranges; `None` after the last.
    pub async fn next(&mut self) -> Option<(usize, std::io::Result<AlignedBuffer>)> {
        self.left = self.left.checked_sub(1)?;
        let next = poll_fn(|context| {
            let mut arrived = self.arrived.lock();
            match arrived.buffers.pop() {
                Some(buffer) => Poll::Ready(buffer),
                None => {
                    arrived.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        });
        Some(next.await)
    }
}
