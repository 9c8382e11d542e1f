//! Compact storage of rows of similar texts.
//!
//! A load balancer lists thousands of members whose IDs of three hundred letters differ in a number. A row is stored as
//! its difference from the row before it: for each text, how many bytes at its beginning and its end are the same, and
//! the bytes between. A member then takes some 40 bytes instead of 700.

/// Packs rows of `N` texts, each of which may be absent.
#[derive(Debug)]
pub(crate) struct Packer<const N: usize> {
    bytes: Vec<u8>,
    before: [Vec<u8>; N],
}

impl<const N: usize> Default for Packer<N> {
    fn default() -> Self {
        Self { bytes: Vec::new(), before: std::array::from_fn(|_| Vec::new()) }
    }
}

impl<const N: usize> Packer<N> {
    /// Adds a row.
    pub(crate) fn push(&mut self, row: [Option<&str>; N]) {
        for (text, before) in row.into_iter().zip(&mut self.before) {
            let Some(text) = text.map(str::as_bytes) else {
                self.bytes.push(ABSENT);
                continue;
            };
            if text == before.as_slice() {
                self.bytes.push(SAME);
                continue;
            }
            self.bytes.push(DIFFERENT);
            let begin = alike(text.iter().zip(before.iter()));
            let (text_end, before_end) = (&text[begin..], &before[begin..]);
            let end = alike(text_end.iter().rev().zip(before_end.iter().rev()));
            let middle = &text_end[..text_end.len() - end];
            for number in [begin, end, middle.len()] {
                push_number(&mut self.bytes, number);
            }
            self.bytes.extend_from_slice(middle);
            before.clear();
            before.extend_from_slice(text);
        }
    }

    /// The rows, packed.
    pub(crate) fn finish(self) -> Box<[u8]> {
        self.bytes.into_boxed_slice()
    }
}

/// The row has no such text.
const ABSENT: u8 = 0;
/// The same text as in the previous row.
const SAME: u8 = 1;
/// The numbers of equal bytes at the beginning and at the end, the number of bytes between, and these.
const DIFFERENT: u8 = 2;

fn alike<'a>(pairs: impl Iterator<Item = (&'a u8, &'a u8)>) -> usize {
    pairs.take_while(|(one, other)| one == other).count()
}

/// Seven bits in each byte, the lowest first; the eighth means that more follow.
fn push_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The rows that a [`Packer`] packed.
#[derive(Debug)]
pub(crate) struct Unpacker<'a, const N: usize> {
    bytes: &'a [u8],
    before: [Vec<u8>; N],
}

impl<'a, const N: usize> Unpacker<'a, N> {
    /// `bytes` are what [`Packer::finish`] gave.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, before: std::array::from_fn(|_| Vec::new()) }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.bytes.split_at_checked(count)?;
        self.bytes = left;
        Some(taken)
    }

    fn take_number(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = *self.take(1)?.first()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take_text(&mut self, place: usize) -> Option<Option<String>> {
        match *self.take(1)?.first()? {
            ABSENT => return Some(None),
            SAME => {}
            _ => {
                let (begin, end) = (self.take_number()?, self.take_number()?);
                let length = self.take_number()?;
                let middle = self.take(length)?;
                let before = self.before.get_mut(place)?;
                let replaced = begin..before.len().checked_sub(end)?;
                before.get(replaced.clone())?;
                drop(before.splice(replaced, middle.iter().copied()));
            }
        }
        let text = str::from_utf8(self.before.get(place)?).ok()?;
        Some(Some(text.to_owned()))
    }
}

impl<const N: usize> Iterator for Unpacker<'_, N> {
    type Item = [Option<String>; N];

    fn next(&mut self) -> Option<Self::Item> {
        let mut row = std::array::from_fn(|_| None);
        for (place, text) in row.iter_mut().enumerate() {
            *text = self.take_text(place)?;
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unpacked(bytes: &[u8]) -> Vec<[Option<String>; 3]> {
        Unpacker::new(bytes).collect()
    }

    fn pack(rows: &[[Option<String>; 3]]) -> Box<[u8]> {
        let mut packer = Packer::<3>::default();
        for row in rows {
            packer.push(row.each_ref().map(Option::as_deref));
        }
        packer.finish()
    }

    proptest! {
        /// NODE-287: packed rows are restored, and equal rows take the same bytes.
        #[test]
        fn node_287_rows_come_back_as_they_were(rows: Vec<[Option<String>; 3]>, alike in "[ab]{0,6}", number: u16) {
            let bytes = pack(&rows);
            prop_assert_eq!(unpacked(&bytes), rows);
            let beside = |number: u16| [Some(format!("{alike}{number}{alike}ü{number}")), Some(alike.clone()), None];
            let rows: Vec<_> = (number.saturating_sub(40)..=number).map(beside).collect();
            prop_assert_eq!(unpacked(&pack(&rows)), rows);
        }
    }

    /// NODE-287
    #[test]
    fn node_287_rows_that_differ_in_a_number_take_a_few_bytes() {
        let long = "x".repeat(300);
        let row = |number: usize| [Some(format!("{long}/{number}/{long}")), Some(long.clone()), None];
        let rows: Vec<_> = (0..1000).map(row).collect();
        let bytes = pack(&rows);
        assert_eq!(unpacked(&bytes), rows);
        assert!(bytes.len() < 1000 * 10 + 1000, "{} bytes", bytes.len());
    }

    #[test]
    fn what_was_cut_off_ends_the_list() {
        let rows: Vec<_> = (0..3).map(|number: u32| [Some(number.to_string()), None, None]).collect();
        let bytes = pack(&rows);
        for cut in 0..bytes.len() {
            assert!(unpacked(&bytes[..cut]).len() < 3);
        }
    }
}
