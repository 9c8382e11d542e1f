//! The number of acceptance cases that ours matches, and from which it differs: `docs/rules` in numbers.

mod ledger;

use anyhow::Context as _;

use crate::print;
use crate::program::root;
use ledger::Relation;

/// What to print.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Also print each case in which ours is narrower or the opposite, with the reason.
    #[arg(long)]
    differences: bool,
}

/// Prints the counts.
///
/// # Errors
/// A page cannot be read.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let rows = ledger::rows(&root())?;
    let index = std::fs::read_to_string(root().join(ledger::INDEX))
        .with_context(|| format!("cannot read {}", ledger::INDEX))?;
    print::line(format_args!("{}", ledger::counts(&rows, &index)));
    for row in rows.iter().filter(|_| arguments.differences) {
        if let Some(Relation::Narrower(_) | Relation::Opposite(_)) = row.relation() {
            print::line(format_args!("{} ({}): {}", row.id(), row.page, row.cells[5]));
        }
    }
    Ok(())
}
