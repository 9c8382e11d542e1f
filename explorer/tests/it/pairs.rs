//! All pairs of features, in worlds of many Services.

use explorer::{features, pairs, workers};

/// The number of Services in a world.
const BATCH: usize = 60;

#[test]
fn every_pair_of_features_comes_out_as_the_rules_say() {
    let rows = features::pairwise();
    let batches: Vec<_> = rows.chunks(BATCH).collect();
    let mut wrong = Vec::new();
    for batches in batches.chunks(workers()) {
        std::thread::scope(|scope| {
            let running: Vec<_> =
                batches.iter().map(|batch| scope.spawn(|| (pairs::complaints(batch), *batch))).collect();
            wrong.extend(running.into_iter().map(|one| one.join().unwrap()).filter(|(c, _)| !c.is_empty()));
        });
    }
    let Some((complaints, batch)) = wrong.first() else { return };
    if std::env::var("CERULEAN_SHRINK").is_ok_and(|word| word == "no") {
        panic!("{}", complaints.join("\n"));
    }
    let shrunk = pairs::shrink(batch);
    let services: Vec<String> = shrunk.services.iter().map(|features| features.join(" ")).collect();
    panic!(
        "{} Services of {} are not as they must be. The fewest features:\n  {}\n{}\n\nall of this batch:\n{}",
        complaints.len(),
        rows.len(),
        services.join("\n  "),
        shrunk.complaints.join("\n"),
        complaints.join("\n"),
    );
}

/// The mark of a fixed bug has to be removed.
#[test]
fn features_that_are_known_to_fail_together_still_do() {
    for known in features::KNOWN {
        let row = features::with_features(known.shown_by.iter().copied()).unwrap();
        assert!((known.holds)(&row), "{:?} do not show `{}`", known.shown_by, known.bug);
        let complaints = pairs::complaints(&[row]);
        assert!(
            !complaints.is_empty(),
            "{:?} come out right: take `{}` out of KNOWN",
            known.shown_by,
            known.bug
        );
    }
}
