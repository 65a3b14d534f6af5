//! Bytes that are appended to each other and read again, in parts: however many there are, none
//! is moved, so that nothing needs twice the memory to grow. What is small is one part, which is
//! used again from run to run.

/// Bytes of a part, unless what begins it is larger.
const PART_BYTES: usize = 256 << 10;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct ByteParts {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
}

/// Where kept bytes lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    part: u32,
    start: u32,
    end: u32,
}

impl ByteParts {
    /// Where `bytes` more are to be appended, in one part.
    #[inline]
    pub fn room_for(&mut self, bytes: usize) -> &mut Vec<u8> {
        if self.last.len() + bytes > PART_BYTES && !self.last.is_empty() {
            self.begin_part(bytes);
        }
        &mut self.last
    }

    #[cold]
    fn begin_part(&mut self, bytes: usize) {
        let next = Vec::with_capacity(bytes.max(PART_BYTES));
        self.full.push(std::mem::replace(&mut self.last, next));
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn keep(&mut self, bytes: &[u8]) -> Place {
        let last = self.room_for(bytes.len());
        let start = last.len() as u32;
        last.extend_from_slice(bytes);
        Place {
            start,
            end: last.len() as u32,
            part: self.full.len() as u32,
        }
    }

    /// What was kept.
    #[inline]
    pub fn kept(&self, place: Place) -> &[u8] {
        let part = self.full.get(place.part as usize).unwrap_or(&self.last);
        &part[place.start as usize..place.end as usize]
    }

    /// The parts in order. What was appended at once lies in one of them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let all = self.full.iter().chain([&self.last]);
        all.map(Vec::as_slice)
    }

    /// How many bytes there are.
    #[inline]
    pub fn len(&self) -> usize {
        let full: usize = self.full.iter().map(Vec::len).sum();
        full + self.last.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// The bytes, if they are few enough to be one part.
    #[inline]
    pub fn whole(&self) -> Option<&[u8]> {
        self.full.is_empty().then_some(&self.last)
    }

    pub fn clear(&mut self) {
        self.full.clear();
        self.last.clear();
    }

    /// Whether it has more memory than this.
    pub fn is_above(&self, bytes: usize) -> bool {
        !self.full.is_empty() || self.last.capacity() > bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again_in_its_part() {
        let mut parts = ByteParts::default();
        let small = parts.keep(b"small");
        let large: Vec<_> = (1..=9u8)
            .map(|n| (n, parts.keep(&vec![n; 100_000 * usize::from(n)])))
            .collect();
        let last = parts.keep(b"last");
        assert_eq!(
            (parts.kept(small), parts.kept(last)),
            (&b"small"[..], &b"last"[..])
        );
        for (n, place) in large {
            assert_eq!(parts.kept(place), vec![n; 100_000 * usize::from(n)]);
        }
        assert_eq!(parts.len(), 9 + 4_500_000);
        assert_eq!(parts.iter().map(<[u8]>::len).sum::<usize>(), parts.len());
        assert!(parts.whole().is_none() && parts.is_above(1 << 30));
        parts.clear();
        assert!(parts.is_empty() && parts.whole() == Some(&[][..]));
    }
}
