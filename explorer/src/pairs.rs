//! Many generated Services in one world, and the features that fail.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::corpus::Expectations;
use crate::features::{self, Row};
use crate::preview;
use crate::stage::Stage;
use crate::trial;
use crate::{quietly, shrink};

/// Applies the Services of all rows at once, judges them, judges them again after a restart, and deletes them. Returns
/// the differences from the expected results.
pub async fn try_rows(rows: &[Row]) -> Vec<String> {
    let resources: Vec<_> =
        rows.iter().enumerate().flat_map(|(number, row)| features::initial_resources(row, number)).collect();
    let mut stage = Stage::set(&resources).await;
    let (mut manifests, mut expect): (Vec<_>, Expectations) = (Vec::new(), BTreeMap::new());
    for (number, row) in rows.iter().enumerate() {
        let name = format!("s{number:03}");
        let manifest = features::manifest(row, number, "pairs", &name);
        manifests.push((features::leaves_to_kubernetes(row), manifest));
        let key = format!("pairs/{name}");
        expect.insert(key.clone(), features::expectation(row, number, &key));
    }
    manifests.sort_by_key(|(leaves, _)| *leaves);
    let objects: Vec<Value> = manifests.into_iter().map(|(_, manifest)| manifest).collect();
    trial::fill_in(&stage, &mut expect);
    stage.world.stop().await;
    if let Err(error) = stage.apply(&objects).await {
        return vec![format!("the API refuses a manifest: {error}")];
    }
    let planned = preview::planned(&stage.world).await;
    stage.world.azure.clear_journal();
    stage.world.start();
    stage.rest(&expect).await;
    let previewed = preview::differences_of_crowd(&planned, &stage.world);
    let name_features = |complaint: String| {
        let number = complaint.strip_prefix("pairs/s").and_then(|rest| rest.get(..3)?.parse::<usize>().ok());
        let row = number.and_then(|number| rows.get(number));
        row.map_or(complaint.clone(), |row| {
            format!("[{}]\n    {complaint}", features::features(row).join(" "))
        })
    };
    let mut complaints: Vec<String> = trial::judge(&stage, &expect).into_iter().map(name_features).collect();
    stage.world.azure.clear_journal();
    stage.world.restart().await;
    stage.rest(&expect).await;
    complaints.extend(trial::judge_second_pass(&stage.world, &expect));
    let (left, planned) = stage.clear(&objects, &features::stays_changed(rows)).await;
    let at_the_end = preview::differences_of_crowd(&planned, &stage.world);
    complaints.extend(previewed.into_iter().chain(left).chain(at_the_end));
    complaints
}

/// A failure, shrunk.
#[derive(Debug)]
pub struct Shrunk {
    /// The fewest features that fail, a list per Service.
    pub services: Vec<Vec<String>>,
    /// The remaining problems.
    pub complaints: Vec<String>,
}

/// The problems of these rows, in a world of their own; a panic is a problem, too.
pub fn complaints(rows: &[Row]) -> Vec<String> {
    quietly(async || try_rows(rows).await).unwrap_or_else(|panic| vec![panic])
}

/// The fewest Services, and of those the fewest features, that still cause a problem.
pub fn shrink(rows: &[Row]) -> Shrunk {
    let mut rows = shrink::fewest(rows, |fewer| !fewer.is_empty() && !complaints(fewer).is_empty());
    for place in 0..rows.len() {
        let features = features::features(&rows[place]);
        let with = |features: &[String]| features::with_features(features.iter().map(String::as_str)).ok();
        let fewest = shrink::fewest(&features, |fewer| {
            let Some(row) = with(fewer).filter(|row| features::is_possible(row)) else { return false };
            let mut rows = rows.clone();
            rows[place] = row;
            !complaints(&rows).is_empty()
        });
        if let Some(row) = with(&fewest) {
            rows[place] = row;
        }
    }
    let complaints = complaints(&rows);
    Shrunk { services: rows.iter().map(|row| features::features(row)).collect(), complaints }
}
