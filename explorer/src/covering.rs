//! Rows that cover every pair of values of every two factors (a pairwise covering array), found by a deterministic
//! greedy search.
//!
//! A value may be a mistake: a row with a mistake is refused whatever its other values. So a pair of two valid values
//! counts only in a row without mistakes, and a pair with a mistake only in a row without another one.

use std::collections::BTreeSet;

/// The number of candidates for each row: more candidates mean fewer rows.
const CANDIDATES: usize = 12;

/// A value: the factor's number and the value's.
type Choice = (usize, usize);

/// The factors and values to cover.
pub struct Space<'a> {
    /// The number of values of each factor. The first, 0, is the default.
    pub values: Vec<usize>,
    /// Whether a value is a mistake.
    pub is_mistake: &'a dyn Fn(usize, usize) -> bool,
    /// Whether a row is possible: some values exclude each other.
    pub is_possible: &'a dyn Fn(&[usize]) -> bool,
}

/// Rows that cover all possible pairs, in the order in which they were found. A row has a value for each factor.
pub fn rows(space: &Space<'_>) -> Vec<Vec<usize>> {
    let mut open = pairs(space);
    let mut rows = Vec::new();
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    while let Some(first) = open.first().copied() {
        let candidates = (0..CANDIDATES).filter_map(|_| build(space, &open, first, &mut draw));
        let best = candidates.max_by_key(|row| covered(space, &open, row).count());
        // The pair is not possible with any values of the others.
        let Some(best) = best else {
            open.remove(&first);
            continue;
        };
        let done: Vec<_> = covered(space, &open, &best).collect();
        for pair in done {
            open.remove(&pair);
        }
        rows.push(best);
    }
    rows
}

fn pairs(space: &Space<'_>) -> BTreeSet<(Choice, Choice)> {
    let mut pairs = BTreeSet::new();
    for (a, many) in space.values.iter().enumerate() {
        for (b, others) in space.values.iter().enumerate().skip(a + 1) {
            for one in 0..*many {
                for other in 0..*others {
                    if (space.is_mistake)(a, one) && (space.is_mistake)(b, other) {
                        continue;
                    }
                    let mut row = vec![0; space.values.len()];
                    (row[a], row[b]) = (one, other);
                    pairs.insert(((a, one), (b, other)));
                }
            }
        }
    }
    pairs
}

/// The open pairs that a row covers.
fn covered<'a>(
    space: &'a Space<'_>,
    open: &'a BTreeSet<(Choice, Choice)>,
    row: &'a [usize],
) -> impl Iterator<Item = (Choice, Choice)> + 'a {
    let mistakes: Vec<usize> =
        row.iter().enumerate().filter(|(f, v)| (space.is_mistake)(*f, **v)).map(|(f, _)| f).collect();
    let counts = move |a: usize, b: usize| mistakes.iter().all(|mistake| *mistake == a || *mistake == b);
    let all = (0..row.len()).flat_map(move |a| (a + 1..row.len()).map(move |b| (a, b)));
    all.filter(move |(a, b)| counts(*a, *b))
        .map(move |(a, b)| ((a, row[a]), (b, row[b])))
        .filter(move |pair| open.contains(pair))
}

/// A row with `first`; every other factor gets the value that covers most pairs.
fn build(
    space: &Space<'_>,
    open: &BTreeSet<(Choice, Choice)>,
    first: (Choice, Choice),
    draw: &mut Draw,
) -> Option<Vec<usize>> {
    let mut row = vec![0; space.values.len()];
    let mut set = vec![first.0.0, first.1.0];
    row[first.0.0] = first.0.1;
    row[first.1.0] = first.1.1;
    if !(space.is_possible)(&row) {
        // The default of another factor may exclude the pair: try its other values.
        let rescue = (0..row.len()).filter(|factor| !set.contains(factor)).find_map(|factor| {
            (1..space.values[factor]).find_map(|value| {
                let mut other = row.clone();
                other[factor] = value;
                let sound = !(space.is_mistake)(factor, value) && (space.is_possible)(&other);
                sound.then_some((factor, value))
            })
        });
        let (factor, value) = rescue?;
        row[factor] = value;
        set.push(factor);
    }
    let mut order: Vec<usize> = (0..row.len()).filter(|factor| !set.contains(factor)).collect();
    draw.shuffle(&mut order);
    for factor in order {
        let gain = |value: usize| {
            let with = |other: usize| {
                let pair = ((factor, value), (other, row[other]));
                let ordered = if factor < other { pair } else { (pair.1, pair.0) };
                open.contains(&ordered)
            };
            set.iter().filter(|other| with(**other)).count()
        };
        let mut best: Option<(usize, usize)> = None;
        let begin = draw.below(space.values[factor]);
        for step in 0..space.values[factor] {
            let value = (begin + step) % space.values[factor];
            let mut with = row.clone();
            with[factor] = value;
            if (space.is_mistake)(factor, value) || !(space.is_possible)(&with) {
                continue;
            }
            let gained = gain(value);
            if best.is_none_or(|(most, _)| gained > most) {
                best = Some((gained, value));
            }
        }
        row[factor] = best?.1;
        set.push(factor);
    }
    Some(row)
}

/// Deterministic pseudo-random numbers (xorshift).
#[derive(Debug)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).unwrap_or(1)).unwrap_or_default()
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(place + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_that_can_be_stands_in_a_row() {
        let is_mistake = |factor: usize, value: usize| factor == 2 && value == 3;
        let is_possible = |row: &[usize]| !(row[0] == 1 && row[1] == 2);
        let space = Space { values: vec![3, 4, 4, 2, 5], is_mistake: &is_mistake, is_possible: &is_possible };
        let rows = rows(&space);
        assert!(rows.iter().all(|row| is_possible(row)));
        for ((a, one), (b, other)) in pairs(&space) {
            let holds = |row: &&Vec<usize>| row[a] == one && row[b] == other;
            let alone = |row: &&Vec<usize>| row[2] != 3 || a == 2 || b == 2;
            let found = rows.iter().filter(holds).any(|row| alone(&row));
            let impossible = (a, one, b, other) == (0, 1, 1, 2);
            assert_eq!(found, !impossible, "{a}={one} with {b}={other}");
        }
        assert!(rows.len() < 40, "{} rows", rows.len());
        assert_eq!(rows, super::rows(&space), "always the same");
    }
}
