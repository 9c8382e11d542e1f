//! `tests/corpus/charts/values`: values as people have them. The README there has the form of a case.

use serde_json::Value;

use super::command_lines::refusals;
use super::{Helm, folder, objects};
use crate::program::root;

/// The lines of a case's header with this name.
fn header<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let prefix = format!("# {name}: ");
    text.lines().filter_map(|line| line.strip_prefix(&prefix)).collect()
}

#[test]
fn values_as_people_have_them_come_out_as_they_say() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let corpus = root().join("tests/corpus/charts/values");
    let mut files: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() > 15, "{}", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!header(&text, "about").is_empty(), "{name} does not say what it is about");
        let chart = header(&text, "chart").first().copied().unwrap_or(super::CLOUD_PROVIDER);
        let values: Value = serde_saphyr::from_str(&text).unwrap();
        let (shows, hides, refused) =
            (header(&text, "shows"), header(&text, "hides"), header(&text, "refused"));
        match helm.template(&folder(chart), &values) {
            Ok(manifest) => {
                wrong.extend(refused.iter().map(|text| format!("{name}: is not refused with {text}")));
                let all = objects(&manifest);
                let json = serde_json::to_string(&all.values().collect::<Vec<_>>()).unwrap();
                let missing = shows.iter().filter(|text| !json.contains(**text));
                wrong.extend(missing.map(|text| format!("{name}: does not show {text}")));
                let there = hides.iter().filter(|text| json.contains(**text));
                wrong.extend(there.map(|text| format!("{name}: does not hide {text}")));
                wrong.extend(refusals(&all).into_iter().map(|text| format!("{name}: {text}")));
                assert!(
                    !shows.is_empty() || !hides.is_empty() || !refused.is_empty(),
                    "{name} expects nothing"
                );
            }
            Err(error) => {
                let error = error.to_string();
                if refused.is_empty() || !refused.iter().all(|text| error.contains(text)) {
                    wrong.push(format!("{name}: {error}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
