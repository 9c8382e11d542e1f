//! The bytes of a file or blob. Only those that were written take memory; the others are zeros.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Bytes; copies share them until one is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Saved", try_from = "Saved")]
pub(super) struct Bytes {
    length: u64,
    /// Written parts by their beginning. None is empty, none overlaps another.
    parts: BTreeMap<u64, Arc<[u8]>>,
}

/// The saved form: the parts as (beginning, base64).
#[derive(Clone, Serialize, Deserialize)]
struct Saved {
    length: u64,
    parts: Vec<(u64, String)>,
}

impl From<Bytes> for Saved {
    fn from(bytes: Bytes) -> Self {
        let parts = bytes.parts.into_iter().map(|(first, part)| (first, STANDARD.encode(part))).collect();
        Self { length: bytes.length, parts }
    }
}

impl TryFrom<Saved> for Bytes {
    type Error = base64::DecodeError;

    fn try_from(saved: Saved) -> Result<Self, Self::Error> {
        let mut bytes = Self::zeros(saved.length);
        for (first, part) in saved.parts {
            bytes.write(first, &STANDARD.decode(part)?);
        }
        Ok(bytes)
    }
}

fn size(part: &[u8]) -> u64 {
    part.len() as u64
}

impl Bytes {
    /// That many zeros.
    pub(super) fn zeros(length: u64) -> Self {
        Self { length, parts: BTreeMap::new() }
    }

    /// Exactly these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut all = Self::zeros(size(bytes));
        all.write(0, bytes);
        all
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// How many were written.
    pub(super) fn written(&self) -> u64 {
        self.parts.values().map(|part| size(part)).sum()
    }

    /// The bytes from `first` to before `end`; `None` where there are not so many.
    pub(super) fn read(&self, first: u64, end: u64) -> Option<Vec<u8>> {
        let wanted = usize::try_from(end.checked_sub(first)?).ok().filter(|_| end <= self.length)?;
        let mut read = vec![0; wanted];
        for (at, part) in self.parts.range(..end) {
            let (from, to) = (first.max(*at), end.min(at + size(part)));
            let target = (from.saturating_sub(first), to.saturating_sub(first));
            let source = (from.saturating_sub(*at), to.saturating_sub(*at));
            let slice = |(from, to): (u64, u64)| Some(usize::try_from(from).ok()?..usize::try_from(to).ok()?);
            let (Some(target), Some(source)) = (slice(target), slice(source)) else { continue };
            if let (Some(target), Some(source)) = (read.get_mut(target), part.get(source)) {
                target.copy_from_slice(source);
            }
        }
        Some(read)
    }

    /// Writes bytes at `first`; `false` where there is no room.
    pub(super) fn write(&mut self, first: u64, bytes: &[u8]) -> bool {
        let fits = self.clear(first, first.saturating_add(size(bytes)));
        if fits && !bytes.is_empty() {
            self.parts.insert(first, bytes.into());
        }
        fits
    }

    /// Makes the bytes from `first` to before `end` zeros again; `false` where there are not so many.
    pub(super) fn clear(&mut self, first: u64, end: u64) -> bool {
        if first > end || end > self.length {
            return false;
        }
        let touched: Vec<u64> = self.parts.range(..end).map(|(at, _)| *at).collect();
        for at in touched {
            let Some(part) = self.parts.get(&at).filter(|part| at + size(part) > first).cloned() else {
                continue;
            };
            self.parts.remove(&at);
            let cut =
                |place: u64| usize::try_from(place.saturating_sub(at)).unwrap_or(usize::MAX).min(part.len());
            let (before, behind) = (part.get(..cut(first)), part.get(cut(end)..));
            for (at, kept) in [(at, before), (end, behind)] {
                if let Some(kept) = kept.filter(|kept| !kept.is_empty()) {
                    self.parts.insert(at, kept.into());
                }
            }
        }
        true
    }

    /// Adds others behind them.
    pub(super) fn append(&mut self, others: &Self) {
        let parts = others.parts.iter().map(|(at, part)| (self.length + at, part.clone()));
        self.parts.extend(parts);
        self.length += others.length;
    }

    /// Cuts them, or adds zeros.
    pub(super) fn resize(&mut self, length: u64) {
        if length < self.length {
            self.clear(length, self.length);
        }
        self.length = length;
    }

    /// First and last byte of each range that was written.
    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (at, part) in &self.parts {
            let last = at + size(part) - 1;
            match ranges.last_mut() {
                Some(before) if before.1 + 1 == *at => before.1 = last,
                _ => ranges.push((*at, last)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Bytes;

    const LENGTH: u64 = 64;

    proptest! {
        /// Written, cleared, cut and read in any order, they are as a vector would be.
        #[test]
        fn they_are_as_if_all_took_memory(
            acts in proptest::collection::vec((0_u8..4, 0..LENGTH + 4, 0..LENGTH / 2, 1_u8..), 0..40)
        ) {
            let (mut sparse, mut plain) = (Bytes::zeros(LENGTH), vec![0_u8; LENGTH as usize]);
            for (act, first, count, byte) in acts {
                let range = first as usize..(first + count) as usize;
                let fits = range.end <= plain.len();
                match act {
                    0 => {
                        prop_assert_eq!(sparse.write(first, &vec![byte; count as usize]), fits);
                        plain.get_mut(range).into_iter().for_each(|part| part.fill(byte));
                    }
                    1 => {
                        prop_assert_eq!(sparse.clear(first, first + count), fits);
                        plain.get_mut(range).into_iter().for_each(|part| part.fill(0));
                    }
                    2 => {
                        sparse.resize(first);
                        plain.resize(first as usize, 0);
                    }
                    _ => prop_assert_eq!(sparse.read(first, first + count), plain.get(range).map(<[u8]>::to_vec)),
                }
                prop_assert_eq!(sparse.len(), plain.len() as u64);
                prop_assert_eq!(sparse.read(0, sparse.len()), Some(plain.clone()));
                let written: u64 = sparse.ranges().iter().map(|(first, last)| last - first + 1).sum();
                prop_assert_eq!(written, sparse.written());
                prop_assert!(written >= plain.iter().filter(|byte| **byte != 0).count() as u64);
                let saved = serde_json::to_string(&sparse).unwrap();
                prop_assert_eq!(&serde_json::from_str::<Bytes>(&saved).unwrap(), &sparse);
            }
        }
    }

    #[test]
    fn large_ones_take_the_memory_of_what_was_written() {
        let length = 4 << 40;
        let mut bytes = Bytes::zeros(length);
        assert!(bytes.write(length - 512, &[1; 512]) && bytes.write(0, &[2; 512]));
        assert_eq!((bytes.len(), bytes.written()), (length, 1_024));
        assert_eq!(bytes.ranges(), [(0, 511), (length - 512, length - 1)]);
        assert_eq!(bytes.read(length - 513, length - 511), Some(vec![0, 1]));
    }
}
