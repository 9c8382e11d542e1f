//! Collects all mistakes of a Service's owner, so that correcting one mistake does not just reveal the next.

use crate::outcome::Refusal;

/// Mistakes in the order in which they are found, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Mistakes(Vec<Refusal>);

impl Mistakes {
    /// Adds a mistake, or each one of several.
    pub(crate) fn note(&mut self, mistake: Refusal) {
        match mistake {
            Refusal::Several(mistakes) => mistakes.into_iter().for_each(|mistake| self.note(mistake)),
            one if self.0.iter().any(|known| are_one(known, &one)) => {}
            one => self.0.push(one),
        }
    }

    /// Returns what was read, or `otherwise` after adding the mistake.
    pub(crate) fn read_or<T>(&mut self, read: Result<T, Refusal>, otherwise: T) -> T {
        read.unwrap_or_else(|mistake| {
            self.note(mistake);
            otherwise
        })
    }

    /// Returns `made`.
    ///
    /// # Errors
    ///
    /// The mistakes, if there are any.
    pub(crate) fn or<T>(self, made: T) -> Result<T, Refusal> {
        match <[Refusal; 1]>::try_from(self.0) {
            Ok([mistake]) => Err(mistake),
            Err(none) if none.is_empty() => Ok(made),
            Err(several) => Err(Refusal::Several(several)),
        }
    }
}

/// Whether one correction resolves both: a port without a node port lacks it for its rule and for its probe.
fn are_one(one: &Refusal, other: &Refusal) -> bool {
    match (one, other) {
        (Refusal::NoNodePort { port, .. }, Refusal::NoNodePort { port: same, .. }) => port == same,
        _ => one == other,
    }
}
