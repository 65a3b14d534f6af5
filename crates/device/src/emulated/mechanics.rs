//! A disk's mechanics: where the head stands, how the platter turns, which of the waiting
//! requests is next, and what a shingled disk does when its cache is full. No clock: times
//! are nanoseconds that the caller gives.
//!
//! A file system is far smaller here than the disk is taken to be. Its bytes are spread over
//! the whole stroke, as on a full disk, so that seeks have a full disk's distances.

use std::collections::{BTreeMap, VecDeque};

use super::profiles::{EmulatedProfile, Mechanics, Shingles};
use super::{Access, Request};

/// A shingled disk that nobody uses for so long begins to clean its cache.
const IDLE_NS: u64 = 1_000_000_000;

/// A disk: one head over one platter.
#[derive(Debug)]
pub(super) struct Disk {
    /// Where the head stands, in bytes.
    head: u64,
    /// Bytes that the files take: the whole stroke.
    span: u64,
    /// When the last request that was begun is over.
    free_at: u64,
    /// What a request must be to go on where the last one ended.
    stream: Option<(Access, u64)>,
    /// Requests that nobody has begun, by place.
    waiting: BTreeMap<(u64, u64), Waiting>,
    cache: Cache,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    arrived: u64,
    request: Request,
}

/// What a shingled disk's cache holds, by band, the oldest band first.
#[derive(Debug, Default)]
struct Cache {
    used_bytes: u64,
    bands: VecDeque<u64>,
    bytes_by_band: BTreeMap<u64, u64>,
}

impl Disk {
    pub fn new() -> Disk {
        Disk {
            head: 0,
            span: 1,
            free_at: 0,
            stream: None,
            waiting: BTreeMap::new(),
            cache: Cache::default(),
        }
    }

    /// A request arrives and waits.
    pub fn arrive(&mut self, now: u64, ticket: u64, request: Request) {
        self.span = self.span.max(request.place + request.bytes);
        let waiting = Waiting {
            arrived: now,
            request,
        };
        self.waiting.insert((request.place, ticket), waiting);
    }

    /// All that was written is on the platter; but the next sector has passed the head.
    pub fn sync(&mut self) {
        if matches!(self.stream, Some((Access::Write, _))) {
            self.stream = None;
        }
    }

    /// When a request may be begun next, at the earliest.
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// Begins the next request, if the head is free by `now`: its ticket, and when it is over.
    pub fn begin(&mut self, now: u64, profile: &EmulatedProfile) -> Option<(u64, u64)> {
        let mechanics = profile.mechanics.as_ref()?;
        if self.free_at > now {
            return None;
        }
        let key = self.next()?;
        let Waiting { arrived, request } = self.waiting.remove(&key)?;
        let start = self.free_at.max(arrived);
        if let Some(shingles) = &mechanics.shingles {
            self.cache.rest(start - self.free_at, shingles);
        }
        self.free_at = start + self.service_ns(start, request, profile, mechanics);
        self.head = request.place + request.bytes;
        self.stream = Some((request.operation, self.head));
        Some((key.1, self.free_at))
    }

    /// The elevator goes one way: the nearest at or beyond the head, or the first of all.
    fn next(&self) -> Option<(u64, u64)> {
        let beyond = self.waiting.range((self.head, 0)..).next();
        beyond
            .or_else(|| self.waiting.iter().next())
            .map(|(key, _)| *key)
    }

    fn service_ns(
        &mut self,
        start: u64,
        request: Request,
        profile: &EmulatedProfile,
        mechanics: &Mechanics,
    ) -> u64 {
        let command = profile.base_ns(request.operation);
        let rate = profile.rate(request.operation);
        let transfer = nanoseconds(request.bytes, rate);
        // The disk reads ahead, and a stream of writes is there before the head is.
        if self.stream == Some((request.operation, request.place)) {
            return command + transfer;
        }
        let seek = self.seek_ns(request, rate, mechanics);
        let turn = mechanics.turn_ns;
        let target = nanoseconds(request.place, rate) % turn;
        let angle = (start + command + seek) % turn;
        let rotation = (turn + target - angle) % turn;
        let cleaning = match (&mechanics.shingles, request.operation) {
            (Some(shingles), Access::Write) => self.cache.write(request, shingles),
            _ => 0,
        };
        command + seek + rotation + transfer + cleaning
    }

    fn seek_ns(&self, request: Request, rate: u64, mechanics: &Mechanics) -> u64 {
        let distance = self.head.abs_diff(request.place);
        let settle = match request.operation {
            Access::Write => mechanics.write_settle_ns,
            _ => 0,
        };
        if nanoseconds(distance, rate) < mechanics.turn_ns && distance < self.span / 1000 {
            return settle;
        }
        let share = distance as f64 / self.span as f64;
        let stroke = mechanics.stroke_ns as f64 * share.sqrt();
        settle + mechanics.settle_ns + stroke as u64
    }
}

impl Cache {
    /// Takes a write in, and cleans as many bands as that needs first: how long that takes.
    fn write(&mut self, request: Request, shingles: &Shingles) -> u64 {
        let band = request.place / shingles.band_bytes;
        let mut took = 0;
        while self.used_bytes + request.bytes > shingles.cache_bytes && self.clean() {
            took += shingles.clean_ns;
        }
        self.used_bytes += request.bytes;
        let bands = &mut self.bands;
        *self.bytes_by_band.entry(band).or_insert_with(|| {
            bands.push_back(band);
            0
        }) += request.bytes;
        took
    }

    /// Cleans what there is time for while nobody asks for anything.
    fn rest(&mut self, idle_ns: u64, shingles: &Shingles) {
        let bands = idle_ns.saturating_sub(IDLE_NS) / shingles.clean_ns.max(1);
        for _ in 0..bands {
            if !self.clean() {
                return;
            }
        }
    }

    /// Writes the oldest band anew; false if there is none.
    fn clean(&mut self) -> bool {
        let Some(band) = self.bands.pop_front() else {
            return false;
        };
        self.used_bytes -= self.bytes_by_band.remove(&band).unwrap_or(0);
        true
    }
}

/// What `bytes` take at `rate` bytes a second.
pub(super) fn nanoseconds(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1))) as u64
}
