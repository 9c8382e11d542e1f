//! The catalogue of the marketplace: publishers, offers, skus and versions of images ("Virtual Machine Images").

use serde_json::{Value, json};

use crate::compute::tables::images::{IMAGES, MarketplaceImage};
use azure_engine::refusal::{Code, Handled};

/// `locations/{location}/publishers…`, from the segment `publishers` on.
pub(crate) fn answer(subscription: &str, location: &str, segments: &[&str]) -> Handled<Value> {
    let is = |segment: &&str, word: &str| segment.eq_ignore_ascii_case(word);
    // The given names, and the requested part of an image.
    let (chosen, part): (Vec<&str>, usize) = match segments {
        [a] if is(a, "publishers") => (vec![], 0),
        [a, publisher, b, c, d]
            if is(a, "publishers") && is(b, "artifacttypes") && is(c, "vmimage") && is(d, "offers") =>
        {
            (vec![publisher], 1)
        }
        [_, publisher, _, _, d, offer, e] if is(d, "offers") && is(e, "skus") => (vec![publisher, offer], 2),
        [_, publisher, _, _, _, offer, e, sku, f] if is(e, "skus") && is(f, "versions") => {
            (vec![publisher, offer, sku], 3)
        }
        [_, publisher, _, _, _, offer, _, sku, f, version] if is(f, "versions") => {
            (vec![publisher, offer, sku, version], 4)
        }
        _ => return None,
    };
    let parts = |image: &MarketplaceImage| [image.publisher, image.offer, image.sku, image.version];
    let fits = |image: &&MarketplaceImage| {
        parts(image).iter().zip(&chosen).all(|(part, wanted)| part.eq_ignore_ascii_case(wanted))
    };
    let found: Vec<&MarketplaceImage> = IMAGES.iter().filter(fits).collect();
    let Some(first) = found.first() else {
        return Some(Err(
            Code::azures(404, "NotFound").says(format_args!("Artifact: {} was not found.", chosen.join("/")))
        ));
    };
    let path = |image: &MarketplaceImage, upto: usize| {
        let [publisher, offer, sku, version] = parts(image);
        let mut path = format!(
            "/Subscriptions/{subscription}/Providers/Microsoft.Compute/Locations/{location}/Publishers/{publisher}"
        );
        for (at, words) in [
            (1, format!("/ArtifactTypes/VMImage/Offers/{offer}")),
            (2, format!("/Skus/{sku}")),
            (3, format!("/Versions/{version}")),
        ] {
            if at <= upto {
                path.push_str(&words);
            }
        }
        path
    };
    if part == 4 {
        return Some(Ok(json!({
            "location": location, "name": first.version, "id": path(first, 3),
            "properties": {
                "architecture": "x64",
                "hyperVGeneration": first.generation,
                "osDiskImage": { "operatingSystem": first.system() },
                "dataDiskImages": [],
            },
        })));
    }
    let mut names = std::collections::BTreeMap::new();
    for image in found {
        if let Some(name) = parts(image).get(part) {
            names.entry(*name).or_insert_with(|| path(image, part));
        }
    }
    let list = names.into_iter().map(|(name, id)| json!({ "location": location, "name": name, "id": id }));
    Some(Ok(Value::Array(list.collect())))
}
