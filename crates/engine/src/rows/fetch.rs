//! Retrieval of evicted tuples (004 §3.3, 000 §4.1): only the sectors that a
//! tuple lies in are read, all that a transaction needs at once, and two
//! transactions that need one tuple cause one read.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use hashbrown::HashMap;
use parking_lot::Mutex;
use thermocline_device::{AlignedBuffer, ReadRequest, SECTOR_BYTES};
use thermocline_storage::block::{self, Frame, SECTOR_STANDS_FOR_BYTES};
use thermocline_storage::block_store::Volumes;
use thermocline_storage::row_directory::ColdAddress;

use crate::catalog::storages::Storages;
use crate::ground::error::{Error, Result};
use crate::memory::fetched::Fetched;
use crate::rows::device_reads::{Arriving, FileRange, Requests};
pub(crate) use crate::rows::planned_read::{
    Missing, PlannedRead, address_key, plan, plan_under_lock, read_range,
};
use crate::rows::row_group::RowGroups;

/// A read under way, shared by all who need the tuple, or one of the block's.
struct Shared {
    state: Mutex<SharedState>,
}

#[derive(Default)]
struct SharedState {
    result: Option<Result<Arc<[u8]>>>,
    waiting: Vec<Waker>,
}

/// Reads evicted tuples.
pub(crate) struct Fetcher {
    volumes: Arc<Volumes>,
    pub groups: RowGroups,
    under_way: Arc<Mutex<HashMap<u64, Arc<Shared>>>>,
    /// Bytes of buffers handed to the device.
    in_flight_bytes: Arc<AtomicUsize>,
    /// Whose rows a damaged block holds.
    storages: Arc<Storages>,
}

impl Fetcher {
    /// `columns_room`: bytes of chunks of columns that are kept in memory; `warm_room`: of pages of
    /// warm ones.
    pub fn new(
        volumes: Arc<Volumes>,
        storages: Arc<Storages>,
        columns_room: u64,
        warm_room: u64,
    ) -> Self {
        Fetcher {
            groups: RowGroups::new(volumes.clone(), storages.clone(), columns_room, warm_room),
            volumes,
            storages,
            under_way: Arc::default(),
            in_flight_bytes: Arc::default(),
        }
    }

    pub fn in_flight_bytes(&self) -> usize {
        self.in_flight_bytes.load(Ordering::Relaxed)
    }

    /// Reads a tuple, here and now.
    pub fn fetch_now(&self, read: &PlannedRead) -> Result<Arc<[u8]>> {
        let (first, bytes) = read.range();
        let mut buffer = AlignedBuffer::used(bytes);
        self.in_flight_bytes.fetch_add(bytes, Ordering::Relaxed);
        let offset = read.block_offset + first as u64;
        let file = self.volumes.file(read.tablespace);
        let came = file.and_then(|file| file.read_at(&mut buffer, offset));
        self.in_flight_bytes.fetch_sub(bytes, Ordering::Relaxed);
        came.map_err(|error| Error::io(error, self.storages.place(read)))?;
        let came = match read.whole {
            true => Ok(Arc::from(&buffer[..])),
            false => tuple_in(&buffer, first, read),
        };
        buffer.keep();
        came.map_err(|what| self.storages.damaged(read, &what))
    }

    /// Takes a tuple from where it lies, under the lock of the row's partition; None: its file cannot be
    /// seen as memory. The checksum over the record is checked each time. A record that does not pass is
    /// read from the device, which decides whether it is damaged: what the kernel shows of a file may
    /// be older than what was written.
    pub fn take_in_place(&self, read: &PlannedRead) -> Result<Option<Arc<[u8]>>> {
        let (first, bytes) = read_range(read.address, read.block_bytes);
        let at = match read.compressed {
            // All of the frame is looked at.
            true => first,
            false => usize::from(read.address.slot) * block::SLOT_BYTES,
        };
        let mut came = None;
        let mut see = |there: &[u8]| match tuple_in(there, at, read) {
            Ok(tuple) => {
                let tuple = came.insert(tuple);
                match read.compressed {
                    true => there.len(),
                    false => block::RECORD_HEADER_BYTES + tuple.len(),
                }
            }
            Err(_) => there.len(),
        };
        let (offset, bytes) = (read.block_offset + at as u64, first + bytes - at);
        let file = self.volumes.file(read.tablespace);
        match file.and_then(|file| file.look(offset, bytes, &mut see)) {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(error) => return Err(Error::io(error, self.storages.place(read))),
            Ok(()) => {}
        }
        match came {
            None => self.fetch_now(read).map(Some),
            tuple => Ok(tuple),
        }
    }

    /// The tuple in what a read has brought.
    pub fn tuple_of(&self, read: &PlannedRead, came: &Arc<[u8]>) -> Result<Arc<[u8]>> {
        match read.whole {
            false => Ok(came.clone()),
            true => {
                let tuple = tuple_in(came, 0, read);
                tuple.map_err(|what| self.storages.damaged(read, &what))
            }
        }
    }

    /// Reads all of them; the tuples go to `fetched`, which is to hold at most `most` bytes
    /// of them. As many at once as have room in one part of that in [`BUFFERS_DIVISOR`], and in
    /// [`BUFFERS_BYTES_MAX`].
    pub async fn fetch(
        &self,
        mut reads: &[PlannedRead],
        fetched: &mut Fetched,
        most: u64,
    ) -> Result<()> {
        let mut held: u64 = fetched.values().map(|tuple| tuple.len() as u64).sum();
        let buffers = usize::try_from(most / BUFFERS_DIVISOR).unwrap_or(usize::MAX);
        let buffers = buffers.clamp(BUFFERS_BYTES_MIN, BUFFERS_BYTES_MAX);
        while !reads.is_empty() {
            let in_group = of_one_group(reads);
            let (part, rest) = match in_group {
                0 => reads.split_at(at_once(reads, buffers)),
                _ => reads.split_at(in_group),
            };
            held += match in_group {
                0 => {
                    let most_kept = most / BLOCKS_DIVISOR;
                    self.fetch_at_once(part, fetched, most_kept).await?
                }
                _ => self.groups.fetch(part, fetched).await?,
            };
            if held > most {
                let mb = most >> 20;
                return Err(Error::OutOfMemory(format!(
                    "the evicted rows that the statement needs at once take more than {mb} MB, a quarter of memory_limit: \
                     take fewer at a time, or read them by the analytical path"
                )));
            }
            reads = rest;
        }
        Ok(())
    }

    /// Reads them together; how many bytes their tuples have.
    /// Whole blocks go to `fetched`, too, as long as they come to no more than `most_kept`.
    async fn fetch_at_once(
        &self,
        reads: &[PlannedRead],
        fetched: &mut Fetched,
        most_kept: u64,
    ) -> Result<u64> {
        let mut bytes = 0;
        let mut shared = Vec::with_capacity(reads.len());
        let mut requests = Requests::of(reads.first().map_or(0, |read| read.tablespace));
        {
            let mut under_way = self.under_way.lock();
            for read in reads {
                let key = read.key();
                let entry = under_way.entry(key).or_insert_with(|| {
                    let entry = Arc::new(Shared {
                        state: Mutex::default(),
                    });
                    requests.push(read.tablespace, self.request(*read, entry.clone()));
                    entry
                });
                shared.push((read, entry.clone()));
            }
        }
        requests.submit(&self.volumes);
        for (read, entry) in shared {
            let came = poll_fn(|context| {
                let mut state = entry.state.lock();
                match &state.result {
                    Some(result) => Poll::Ready(result.clone()),
                    None => {
                        if !state.waiting.iter().any(|w| w.will_wake(context.waker())) {
                            state.waiting.push(context.waker().clone());
                        }
                        Poll::Pending
                    }
                }
            })
            .await?;
            let tuple = self.tuple_of(read, &came)?;
            bytes += tuple.len() as u64;
            fetched.insert(address_key(read.address), tuple);
            if read.whole {
                fetched.keep_block(read.address.block, came, most_kept);
            }
        }
        Ok(bytes)
    }

    /// Reads tuples in the order of their addresses, in large reads where they
    /// lie close together, and gives each to `each`. For scans: the tuples are
    /// not shared with others and not kept.
    pub async fn read_in_order(
        &self,
        mut reads: &[PlannedRead],
        each: &mut impl FnMut(&PlannedRead, &[u8]),
    ) -> Result<()> {
        let mut group = None;
        while !reads.is_empty() {
            let in_group = of_one_group(reads);
            let other = || reads.iter().position(|read| read.address.is_in_columns());
            let count = match in_group {
                0 => other().unwrap_or(reads.len()),
                count => count,
            };
            let (part, rest) = reads.split_at(count);
            match in_group {
                0 => self.read_records_in_order(part, each).await?,
                _ => self.groups.each(part, &mut group, each).await?,
            }
            reads = rest;
        }
        Ok(())
    }

    async fn read_records_in_order(
        &self,
        reads: &[PlannedRead],
        each: &mut impl FnMut(&PlannedRead, &[u8]),
    ) -> Result<()> {
        let mut runs: Vec<Run> = Vec::new();
        for (number, read) in reads.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.takes(read) => run.push(read),
                _ => runs.push(Run::new(number, read)),
            }
        }
        let ranges = runs.iter().map(|run| FileRange {
            tablespace: reads[run.reads.start].tablespace,
            offset: run.offset + run.first as u64,
            bytes: run.end - run.first,
        });
        let mut arriving = Arriving::submit(&self.volumes, ranges);
        let mut frame = Frame::default();
        while let Some((number, outcome)) = arriving.next().await {
            let run = &runs[number];
            let buffer = outcome
                .map_err(|error| Error::io(error, self.storages.place(&reads[run.reads.start])))?;
            for read in &reads[run.reads.clone()] {
                let (first, _) = read_range(read.address, read.block_bytes);
                let sectors = &buffer[first - run.first..];
                let tuple = verified(sectors, first, read, &mut frame);
                each(
                    read,
                    tuple.map_err(|what| self.storages.damaged(read, &what))?,
                );
            }
        }
        Ok(())
    }

    fn request(&self, read: PlannedRead, shared: Arc<Shared>) -> ReadRequest {
        let (first, bytes) = read.range();
        let under_way = self.under_way.clone();
        let in_flight = self.in_flight_bytes.clone();
        let storages = self.storages.clone();
        in_flight.fetch_add(bytes, Ordering::Relaxed);
        ReadRequest {
            offset: read.block_offset + first as u64,
            buffer: AlignedBuffer::used(bytes),
            completion: Box::new(move |outcome| {
                in_flight.fetch_sub(bytes, Ordering::Relaxed);
                let result = match outcome {
                    Ok(buffer) => {
                        let came = match read.whole {
                            // Each who needs one of its tuples looks for himself.
                            true => Ok(Arc::from(&buffer[..])),
                            false => tuple_in(&buffer, first, &read),
                        };
                        buffer.keep();
                        came.map_err(|what| storages.damaged(&read, &what))
                    }
                    Err(error) => Err(Error::io(error, storages.place(&read))),
                };
                under_way.lock().remove(&read.key());
                let wakers = {
                    let mut state = shared.state.lock();
                    state.result = Some(result);
                    std::mem::take(&mut state.waiting)
                };
                for waker in wakers {
                    waker.wake();
                }
            }),
        }
    }
}

/// About as many bytes as reading a row will take in memory: those of its sectors; of a row in
/// columns nobody knows.
pub(crate) fn read_bytes(address: ColdAddress, block_bytes: u64) -> u64 {
    match address.is_in_columns() {
        true => COLUMN_ROW_BYTES,
        false => read_range(address, block_bytes).1 as u64,
    }
}

/// About as many bytes as these reads, in the order of their addresses, bring into memory: of the
/// sectors that they need together. What is compressed may be more than its sectors.
pub(crate) fn span_bytes(reads: &[PlannedRead]) -> u64 {
    let [mut plain, mut compressed] = [Span::default(), Span::default()];
    let mut last = None;
    for read in reads {
        let span = match read.compressed {
            true => &mut compressed,
            false => &mut plain,
        };
        match read.whole {
            false => span.add(read.address, read.block_bytes),
            true if last != Some(read.address.block) => span.bytes += read.block_bytes,
            true => {}
        }
        last = Some(read.address.block);
    }
    plain.bytes + compressed.bytes * (SECTOR_STANDS_FOR_BYTES / SECTOR_BYTES) as u64
}

/// Adds up the sectors of records; those of neighbours count once.
#[derive(Default)]
pub(crate) struct Span {
    pub bytes: u64,
    block: u32,
    end: usize,
}

impl Span {
    pub fn add(&mut self, address: ColdAddress, block_bytes: u64) {
        if address.is_in_columns() {
            self.bytes += COLUMN_ROW_BYTES;
            return;
        }
        let (first, bytes) = read_range(address, block_bytes);
        let end = first + bytes;
        let from = match address.block == self.block && first < self.end {
            true => self.end.min(end),
            false => first,
        };
        self.bytes += (end - from) as u64;
        (self.block, self.end) = (address.block, end);
    }
}

/// How many of these reads have room in `buffers`, in bytes. One at least.
fn at_once(reads: &[PlannedRead], buffers: usize) -> usize {
    let mut bytes = 0;
    let fits = |read: &&PlannedRead| {
        bytes += read.range().1;
        bytes <= buffers && !read.address.is_in_columns()
    };
    reads.iter().take_while(fits).count().clamp(1, reads.len())
}

/// Bytes of buffers that a statement hands to the device at once: a thousand reads of a
/// sector are more than any device does side by side.
const BUFFERS_BYTES_MAX: usize = 4 << 20;
const BUFFERS_BYTES_MIN: usize = 256 << 10;
const BUFFERS_DIVISOR: u64 = 32;
/// Of what a statement may have, one part in so many may be the rest of blocks that were read whole.
const BLOCKS_DIVISOR: u64 = 4;
/// What a row in columns is taken to have before it is read.
const COLUMN_ROW_BYTES: u64 = 512;
/// Reads of a scan are joined across gaps up to this.
pub(super) const GAP_BYTES_MAX: usize = 32 << 10;
/// The longest joined read.
const RUN_BYTES_MAX: usize = 256 << 10;

/// Neighbouring records of one block that are read at once.
struct Run {
    block: u32,
    offset: u64,
    first: usize,
    end: usize,
    reads: std::ops::Range<usize>,
}

impl Run {
    /// A run of one read, the `number`th.
    fn new(number: usize, read: &PlannedRead) -> Self {
        let (first, bytes) = read_range(read.address, read.block_bytes);
        Run {
            block: read.address.block,
            offset: read.block_offset,
            first,
            end: first + bytes,
            reads: number..number + 1,
        }
    }

    /// Whether the next read is near enough to be read together.
    fn takes(&self, read: &PlannedRead) -> bool {
        let (first, bytes) = read_range(read.address, read.block_bytes);
        self.block == read.address.block
            && first <= self.end + GAP_BYTES_MAX
            && (first + bytes).max(self.end) - self.first <= RUN_BYTES_MAX
    }

    fn push(&mut self, read: &PlannedRead) {
        let (first, bytes) = read_range(read.address, read.block_bytes);
        self.end = self.end.max(first + bytes);
        self.reads.end += 1;
    }
}

/// How many of these reads, which are in the order of their addresses, come to about
/// `bytes` of the device, gaps included, in at most `runs` reads of it. One at least.
pub(crate) fn batch_of(reads: &[PlannedRead], bytes: usize, runs: usize) -> usize {
    let (mut before, mut number) = (0, 0);
    let mut last: Option<Run> = None;
    for (place, read) in reads.iter().enumerate() {
        match &mut last {
            Some(run) if run.takes(read) => run.push(read),
            _ => {
                before += last.as_ref().map_or(0, |run| run.end - run.first);
                number += 1;
                last = Some(Run::new(place, read));
            }
        }
        let so_far = before + last.as_ref().map_or(0, |run| run.end - run.first);
        if place > 0 && (so_far > bytes || number > runs) {
            return place;
        }
    }
    reads.len()
}

/// How many of these reads, from the first on, are of one block of columns.
fn of_one_group(reads: &[PlannedRead]) -> usize {
    let Some(first) = reads.first().filter(|read| read.address.is_in_columns()) else {
        return 0;
    };
    let same = |read: &&PlannedRead| read.address.block == first.address.block;
    reads.iter().take_while(same).count()
}

thread_local! {
    static FRAME: RefCell<Frame> = RefCell::default();
}

/// The verified tuple in the sectors that were read; what is wrong with it.
fn tuple_in(
    sectors: &[u8],
    first: usize,
    read: &PlannedRead,
) -> std::result::Result<Arc<[u8]>, String> {
    FRAME.with_borrow_mut(|frame| {
        let tuple = verified(sectors, first, read, frame).map(Arc::from);
        // The next read may be another database's.
        frame.forget();
        tuple
    })
}

/// As [`tuple_in`]. A frame that was read stays in `frame` for the next of its records.
fn verified<'a>(
    sectors: &'a [u8],
    first: usize,
    read: &PlannedRead,
    frame: &'a mut Frame,
) -> std::result::Result<&'a [u8], String> {
    let (address, row) = (read.address, read.row.row());
    let record = match read.compressed {
        true => frame.record(sectors, address.block, address.slot, first),
        false => block::read_record(sectors, address.block, address.slot, first),
    };
    let record = record.map_err(|error| error.to_string())?;
    if record.row != row {
        return Err(format!(
            "block {}, slot {}: row {} is in row {row}'s place",
            address.block, address.slot, record.row
        ));
    }
    Ok(record.payload)
}
