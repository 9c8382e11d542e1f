//! Common parts of properties over worlds: a trial is determined by a seed, a failure is shrunk and printed as text,
//! and past failures are stored and tested before all others.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{quietly, shrink};

/// A trial of a property: the acts in a world, and the judgement. Its JSON, which has a member `seed`, is the form in
/// which it is printed and stored.
pub trait Trial: Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned {
    /// The property's name, for `cargo xtask explore NAME`.
    const NAME: &'static str;

    /// The folder of its past failures in `tests/corpus`.
    const FOLDER: &'static str = Self::NAME;

    /// Known defects that are not fixed yet.
    const KNOWN: &'static [KnownDefect] = &[];

    /// The lists that a smaller trial has fewer items of, as pointers in its JSON; `*` stands for every item of a list.
    const LISTS: &'static [&'static str];

    /// What is plainer in a simpler trial: a merge patch as JSON, and the pointer of the value that it is applied to.
    const PLAINER: &'static [(&'static str, &'static str)] = &[];

    /// The trial of a seed.
    fn of(seed: u64) -> Self;

    /// Whether it can be run: without some of its parts a trial may be impossible.
    fn is_possible(&self) -> bool {
        true
    }

    /// Runs it; returns its problems.
    fn run(&self) -> impl Future<Output = Vec<String>>;
}

/// The text of a trial.
pub fn write<T: Trial>(trial: &T) -> String {
    // Trials consist of texts and numbers, so serialization cannot fail.
    format!("{}\n", serde_json::to_string(trial).unwrap_or_default())
}

/// Reads the text of a trial; lines that begin with `#` are ignored.
///
/// # Errors
/// What is wrong with it.
pub fn read<T: Trial>(text: &str) -> Result<T, String> {
    let json: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    serde_json::from_str(&json).map_err(|error| error.to_string())
}

/// The smallest variant of a trial that still `fails`: first its lists get the fewest items, then it is made plainer.
fn smallest<T: Trial>(trial: &T, fails: impl Fn(&T) -> bool) -> T {
    let read = |json: &Value| T::deserialize(json).ok().filter(T::is_possible);
    let fails = |json: &Value| read(json).is_some_and(|trial| fails(&trial));
    let mut least = serde_json::to_value(trial).unwrap_or_default();
    for pattern in T::LISTS {
        for at in places(&least, pattern) {
            let items = least.pointer(&at).and_then(Value::as_array).cloned().unwrap_or_default();
            let with = |items: &[Value]| changed(&least, &at, |list| *list = items.into());
            least = with(&shrink::fewest(&items, |fewer| fails(&with(fewer))));
        }
    }
    for (patch, pattern) in T::PLAINER {
        let patch: Value = serde_json::from_str(patch).expect("patches are JSON");
        for at in places(&least, pattern) {
            let plainer = changed(&least, &at, |value| json_patch::merge(value, &patch));
            if plainer != least && fails(&plainer) {
                least = plainer;
            }
        }
    }
    read(&least).unwrap_or_else(|| trial.clone())
}

/// A copy with a change of the value at a pointer, if there is one.
fn changed(json: &Value, at: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut copy = json.clone();
    copy.pointer_mut(at).map(change);
    copy
}

/// The pointers that a pattern stands for.
fn places(json: &Value, pattern: &str) -> Vec<String> {
    let below = |at: &String, step: &str| match json.pointer(at).and_then(Value::as_array) {
        Some(items) if step == "*" => (0..items.len()).map(|number| format!("{at}/{number}")).collect(),
        _ => vec![format!("{at}/{step}")],
    };
    let steps = pattern.split('/').skip(1);
    steps.fold(vec![String::new()], |all, step| all.iter().flat_map(|at| below(at, step)).collect())
}

/// A defect that is not fixed yet, and how it is recognised.
#[derive(Debug, Clone, Copy)]
pub struct KnownDefect {
    /// The name of the defect. A trial that shows it is stored with `# known: ID`.
    pub id: &'static str,
    /// Texts that a complaint about it contains, all of them.
    pub says: &'static [&'static str],
}

impl KnownDefect {
    fn explains(&self, complaint: &str) -> bool {
        self.says.iter().all(|text| complaint.contains(text))
    }
}

/// All problems of a trial, including known defects.
pub fn all_complaints<T: Trial>(trial: &T) -> Vec<String> {
    quietly(async || trial.run().await).unwrap_or_else(|panic| vec![panic])
}

/// The problems of a trial that are not known defects. A known defect causes others: if there is one, nothing else
/// counts.
pub fn complaints<T: Trial>(trial: &T) -> Vec<String> {
    let all = all_complaints(trial);
    let is_known = |complaint: &String| T::KNOWN.iter().any(|known| known.explains(complaint));
    if all.iter().any(is_known) { Vec::new() } else { all }
}

/// A failing trial, ready to be printed.
#[derive(Debug)]
pub struct Failure<T> {
    /// The trial, shrunk.
    pub trial: T,
    /// Its problems.
    pub complaints: Vec<String>,
}

impl<T: Trial> fmt::Display for Failure<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write(&self.trial))?;
        for complaint in &self.complaints {
            writeln!(f, "=> {complaint}")?;
        }
        let seed = serde_json::to_value(&self.trial).unwrap_or_default()["seed"].take();
        let name = T::NAME;
        writeln!(f, "to see it again: cargo xtask explore {name} --rounds 1 --seed {seed}")?;
        write!(f, "to keep it: put the lines above the first `=>` into {}/CASE.txt", folder::<T>())
    }
}

/// Runs the trial of a seed. With `CERULEAN_SHRINK=no` a failure is printed without shrinking.
///
/// # Errors
/// Its problems, shrunk.
pub fn explore<T: Trial>(seed: u64) -> Result<(), Box<Failure<T>>> {
    let trial = T::of(seed);
    let complaints_at_first = complaints(&trial);
    if complaints_at_first.is_empty() {
        return Ok(());
    }
    if std::env::var("CERULEAN_SHRINK").is_ok_and(|word| word == "no") {
        return Err(Box::new(Failure { trial, complaints: complaints_at_first }));
    }
    let trial = smallest(&trial, |trial| !complaints(trial).is_empty());
    let complaints = complaints(&trial);
    Err(Box::new(Failure { trial, complaints }))
}

/// The folder of past failures, below the workspace's root.
fn folder<T: Trial>() -> String {
    format!("tests/corpus/{}", T::FOLDER)
}

/// A trial that failed before.
#[derive(Debug, Clone)]
pub struct PastFailure<T> {
    /// The name of its file, without its extension.
    pub name: String,
    /// The trial.
    pub trial: T,
    /// The defect because of which it still fails: what follows `# known:` in the file.
    pub known: Option<String>,
}

impl<T: Trial> PastFailure<T> {
    /// Runs it.
    ///
    /// # Errors
    /// Its problems; or that a defect is fixed and its mark has to be removed.
    pub fn explore(&self) -> Result<(), String> {
        let complaints = all_complaints(&self.trial);
        let file = format!("{}/{}.txt", folder::<T>(), self.name);
        match (&self.known, complaints.is_empty()) {
            (None, true) | (Some(_), false) => Ok(()),
            (Some(id), true) => {
                Err(format!("{file} passes: take `# known: {id}` out of it, and {id} out of KNOWN"))
            }
            (None, false) => {
                let failure = Failure { trial: self.trial.clone(), complaints };
                Err(format!("{file} fails again:\n{failure}"))
            }
        }
    }
}

/// All trials that failed before, by name. A line `# known: DEFECT` of a file names the defect because of which it still
/// fails.
///
/// # Errors
/// A file cannot be read, or a known defect has no file that shows it.
pub fn past_failures<T: Trial>() -> Result<Vec<PastFailure<T>>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder::<T>());
    let failed = |problem: &dyn fmt::Display| format!("{}: {problem}", folder.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        let known = text.lines().find_map(|line| line.strip_prefix("# known:"));
        let trial = read::<T>(&text).map_err(|error| failed(&format!("{}: {error}", path.display())))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.push(PastFailure { name, trial, known: known.map(|id| id.trim().to_owned()) });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    for known in T::KNOWN {
        let shows = |one: &PastFailure<T>| one.known.as_deref().is_some_and(|id| id.starts_with(known.id));
        if !all.iter().any(shows) {
            return Err(failed(&format!("no file shows the known defect {}", known.id)));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Example {
        seed: u64,
        slow: bool,
        groups: Vec<Vec<u8>>,
    }

    impl Trial for Example {
        const NAME: &'static str = "example";
        const LISTS: &'static [&'static str] = &["/groups", "/groups/*"];
        const PLAINER: &'static [(&'static str, &'static str)] = &[(r#"{"slow": false}"#, "")];

        fn of(seed: u64) -> Self {
            Self { seed, slow: true, groups: vec![vec![1, 2], vec![3], vec![4, 5, 6]] }
        }

        fn is_possible(&self) -> bool {
            !self.groups.is_empty()
        }

        async fn run(&self) -> Vec<String> {
            Vec::new()
        }
    }

    #[test]
    fn a_trial_loses_what_its_tables_name() {
        let smallest = |fails: fn(&Example) -> bool| smallest(&Example::of(7), fails);
        let with_five = smallest(|trial| trial.groups.iter().flatten().any(|item| *item == 5));
        assert_eq!(with_five, Example { seed: 7, slow: false, groups: vec![vec![5]] });
        assert_eq!(smallest(|trial| trial.slow).groups.len(), 1, "it is impossible without a group");
        assert!(smallest(|trial| trial.slow).slow);
    }
}
