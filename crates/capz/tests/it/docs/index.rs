//! The tables of `docs/clusters/README.md`: every feature in the established provider's book has its row, and a
//! manifest unless the page says why there can be none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::page::{anchor, folder, pages};

/// The number of features in the book.
const FEATURES: u32 = 120;
/// The numbers of a row: `7`, or `61–84`.
fn numbers(cell: &str) -> Option<(u32, u32)> {
    let (first, last) = cell.split_once('–').unwrap_or((cell, cell));
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// The targets of links in a text.
fn links(text: &str) -> Vec<String> {
    text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

#[test]
fn each_feature_of_the_book_has_a_section_with_a_manifest() {
    let pages = pages();
    // The sections, and whether a test applies a manifest of each.
    let mut sections: BTreeMap<String, bool> = BTreeMap::new();
    for page in &pages {
        for section in &page.sections {
            let tested = section.examples.iter().any(|example| !example.expected.is_empty());
            let known = sections.insert(format!("{}#{}", page.file, anchor(&section.title)), tested);
            assert_eq!(known, None, "{} has two sections {}", page.file, section.title);
        }
    }
    let table = fs::read_to_string(folder().join("README.md")).unwrap();
    let mut found: BTreeMap<u32, bool> = BTreeMap::new();
    let mut without: BTreeSet<u32> = BTreeSet::new();
    let mut wrong = String::new();
    for line in table.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", number, why, ""] = cells[..]
            && let Some((first, last)) = numbers(number)
        {
            assert!(!why.is_empty(), "{number}: why is there no manifest?");
            without.extend(first..=last);
        }
        let ["", number, _, place, change, ""] = cells[..] else { continue };
        let Some((first, last)) = numbers(number) else { continue };
        let links = links(place);
        for link in &links {
            if link.contains('#') && !sections.contains_key(link) {
                wrong += &format!("{number}: there is no section {link}\n");
            }
        }
        if links.is_empty() || change.is_empty() {
            wrong += &format!("{number}: no place, or nothing about how it is now\n");
        }
        let tested = links.iter().any(|link| sections.get(link) == Some(&true));
        for number in first..=last {
            if found.insert(number, tested).is_some() {
                wrong += &format!("{number} is there twice\n");
            }
        }
    }
    for number in 1..=FEATURES {
        let needs = !without.contains(&number);
        match found.get(&number) {
            None => wrong += &format!("{number} is missing\n"),
            Some(false) if needs => wrong += &format!("{number} has no manifest with what comes of it\n"),
            Some(true) if !needs => {
                wrong += &format!("{number} has a manifest, though the page says that there can be none\n")
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
