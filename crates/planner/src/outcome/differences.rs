//! Sets members of a document to their desired values, and notes what differed.

use std::fmt::Display;

use azure_types::{ResourceId, SubResource, Word};

use super::change::{Change, Difference};

/// The members that differed, in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct Differences(Vec<Difference>);

impl Differences {
    fn note(&mut self, member: &'static str, from: Option<impl Display>, to: Option<impl Display>) {
        let (from, to) = (or_none(from), or_none(to));
        self.0.push(Difference { member, from, to });
    }

    /// Sets a member that is known to differ.
    pub(crate) fn replace<T: Display>(
        &mut self,
        member: &'static str,
        current: &mut Option<T>,
        desired: Option<T>,
    ) {
        self.note(member, current.as_ref(), desired.as_ref());
        *current = desired;
    }

    pub(crate) fn set<T: Display + PartialEq>(
        &mut self,
        member: &'static str,
        current: &mut Option<T>,
        desired: T,
    ) {
        if current.as_ref() != Some(&desired) {
            self.replace(member, current, Some(desired));
        }
    }

    /// The same for a word, whose case does not matter.
    pub(crate) fn set_word(&mut self, member: &'static str, current: &mut Option<Word>, desired: &str) {
        if !current.as_ref().is_some_and(|word| word.is(desired)) {
            self.replace(member, current, Some(Word::from(desired)));
        }
    }

    /// The same for a switch, which is off where it is absent.
    pub(crate) fn set_switch(&mut self, member: &'static str, current: &mut Option<bool>, desired: bool) {
        if current.unwrap_or_default() != desired {
            let word = |on: bool| Some(if on { "on" } else { "off" });
            self.note(member, word(!desired), word(desired));
            *current = Some(desired);
        }
    }

    /// The same for a reference, which is noted by the resource's name. Returns whether it differed.
    pub(crate) fn set_reference(
        &mut self,
        member: &'static str,
        current: &mut Option<SubResource>,
        desired: Option<&ResourceId>,
    ) -> bool {
        let old = current.as_ref().and_then(|reference| reference.id.as_ref());
        let differs = old != desired;
        if differs {
            self.note(member, old.map(ResourceId::name), desired.map(ResourceId::name));
            *current = desired.cloned().map(SubResource::to);
        }
        differs
    }

    pub(crate) fn into_changes(self, change: impl Fn(Difference) -> Change) -> Vec<Change> {
        self.0.into_iter().map(change).collect()
    }
}

fn or_none(value: Option<impl Display>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}
