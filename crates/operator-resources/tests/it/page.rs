//! The page for users and the table of kinds agree.

use std::path::Path;

use operator_resources::{KINDS, Kind, Place};

const HEAD: &str = "| Kind | Group | Type in Azure | Owner | Exports |\n|---|---|---|---|---|\n";

fn row(kind: &Kind) -> String {
    let owner = match kind.place {
        Place::Subscription => "none".to_owned(),
        Place::Group => "`ResourceGroup`".to_owned(),
        Place::Child(_, owner) => format!("`{owner}`"),
        Place::Extension => "any".to_owned(),
    };
    let exports: Vec<String> =
        kind.exports.iter().map(|(keeper, name, _)| format!("`{name}` ({})", keeper.as_str())).collect();
    let Kind { group, kind, resource_type, .. } = kind;
    format!("| `{kind}` | `{group}` | `{resource_type}` | {owner} | {} |\n", exports.join(", "))
}

/// Each kind that is served has a row; `UPDATE_DOCS=1` writes the table.
#[test]
fn the_page_lists_the_kinds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clusters/operator-resources.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(HEAD).unwrap();
    let end = rest.find("\n\n").map_or(0, |end| if rest.starts_with('|') { end + 1 } else { 0 });
    let table: String = KINDS.iter().map(row).collect();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{HEAD}{table}{}", &rest[end..])).unwrap();
        return;
    }
    assert_eq!(&rest[..end], table, "run with UPDATE_DOCS=1 to write the table");
}
