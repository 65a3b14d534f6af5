//! Reads of ranges of a file, all under way at once.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use thermocline_device::{AlignedBuffer, DeviceFile, ReadRequest};

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
    /// Reads ranges of the file, offset and length in bytes, all at once.
    pub fn submit(file: &dyn DeviceFile, ranges: impl Iterator<Item = (u64, usize)>) -> Arriving {
        let arrived: Arc<Mutex<Arrived>> = Arc::default();
        let request = |(number, (offset, bytes))| {
            let arrived = arrived.clone();
            ReadRequest {
                offset,
                buffer: AlignedBuffer::new_zeroed(bytes),
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
        let requests: Vec<ReadRequest> = ranges.enumerate().map(request).collect();
        let left = requests.len();
        file.submit_reads(requests);
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
