//! The rows of `docs/rules`: the rows of each page, the relation of ours to each case as it was written, and their
//! counts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// The cells of a row.
pub const HEAD: [&str; 6] = ["id", "rule", "source", "decided in", "proven by", "case"];

/// The prefixes of IDs.
pub const AREAS: [&str; 5] = ["LB", "NODE", "CAPZ", "CSI", "FILE"];

/// The page that explains all others, and lists the cases that are not served.
pub const INDEX: &str = "docs/rules/README.md";

/// The head of the table of counts.
const COUNTS: &str = "| area | cases | as the case | narrower | opposite | not served | rules of ours |\n|---|---|---|---|---|---|---|\n";

/// A rule, as on its page.
pub struct Row {
    /// The page, from the root of the repository.
    pub page: String,
    /// In the order of [`HEAD`].
    pub cells: [String; 6],
}

/// The relation of ours to a case as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation<'a> {
    /// The result is what the case expects.
    AsTheCase,
    /// Part of it is; the text says which part is not.
    Narrower(&'a str),
    /// The result differs on purpose; the text says why.
    Opposite(&'a str),
    /// There is no case.
    Own,
}

impl<'a> Relation<'a> {
    /// Parses a cell; `None` if it is not a known relation, or lacks the required text.
    pub fn read(cell: &'a str) -> Option<Self> {
        let after = |word: &str| cell.strip_prefix(word).map(str::trim).filter(|words| !words.is_empty());
        match cell {
            "as the case" => Some(Self::AsTheCase),
            "own" => Some(Self::Own),
            _ => after("narrower:").map(Self::Narrower).or_else(|| after("opposite:").map(Self::Opposite)),
        }
    }
}

impl Row {
    /// The ID, such as LB-130.
    pub fn id(&self) -> &str {
        &self.cells[0]
    }

    /// Its relation to its case.
    pub fn relation(&self) -> Option<Relation<'_>> {
        Relation::read(&self.cells[5])
    }

    /// Area and number of the ID.
    pub fn order(&self) -> (&str, u32) {
        parts(self.id())
    }
}

fn parts(id: &str) -> (&str, u32) {
    let (area, number) = id.split_once('-').unwrap_or((id, "0"));
    (area, number.parse().unwrap_or(0))
}

/// The files below a folder with this suffix, as sorted paths from the root of the repository.
///
/// # Errors
/// A folder cannot be read.
pub fn files(root: &Path, folder: &str, end: &str) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                let path = path.strip_prefix(root).map_err(io::Error::other)?;
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The pages with rows.
///
/// # Errors
/// A folder cannot be read.
pub fn pages(root: &Path) -> io::Result<Vec<String>> {
    let mut pages = files(root, "docs/rules", ".md")?;
    pages.retain(|page| page != INDEX);
    Ok(pages)
}

/// All rows, page by page.
///
/// # Errors
/// A page cannot be read, or a row has another number of cells; the error names page and line.
pub fn rows(root: &Path) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for page in pages(root)? {
        let text = std::fs::read_to_string(root.join(&page))?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
            let cells = line.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            let cells: [String; 6] = cells.collect::<Vec<_>>().try_into().map_err(|cells: Vec<_>| {
                let (line, count) = (number + 1, cells.len());
                io::Error::other(format!("{page}:{line}: a row has the cells {HEAD:?}, this one has {count}"))
            })?;
            if cells != HEAD && !cells.iter().all(|cell| cell == "---") {
                rows.push(Row { page: page.clone(), cells });
            }
        }
    }
    Ok(rows)
}

/// The cases that the index lists as not served: `* FIRST to LAST: why`.
pub fn not_served(index: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for line in index.lines() {
        let range = line.strip_prefix("* ").and_then(|line| line.split_once(':')?.0.split_once(" to "));
        let Some(((area, first), (other, last))) = range.map(|(first, last)| (parts(first), parts(last)))
        else {
            continue;
        };
        if area == other && AREAS.contains(&area) {
            ids.extend((first..=last).map(|number| format!("{area}-{number:03}")));
        }
    }
    ids
}

/// The table of counts, as in the index.
pub fn counts(rows: &[Row], index: &str) -> String {
    let not_served = not_served(index);
    let mut table = COUNTS.to_owned();
    for area in AREAS {
        let of_area = || rows.iter().filter(|row| row.order().0 == area);
        let count =
            |is: fn(Relation<'_>) -> bool| of_area().filter(|row| row.relation().is_some_and(is)).count();
        let as_the_case = count(|relation| relation == Relation::AsTheCase);
        let narrower = count(|relation| matches!(relation, Relation::Narrower(_)));
        let opposite = count(|relation| matches!(relation, Relation::Opposite(_)));
        let own = count(|relation| relation == Relation::Own);
        let absent = not_served.iter().filter(|id| parts(id).0 == area).count();
        let cases = as_the_case + narrower + opposite + absent;
        // Writing to a text cannot fail.
        let _ = writeln!(
            table,
            "| {area} | {cases} | {as_the_case} | {narrower} | {opposite} | {absent} | {own} |"
        );
    }
    table
}
