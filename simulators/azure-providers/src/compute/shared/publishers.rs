//! The catalogue of the marketplace: publishers, offers, skus and versions of images ("Virtual Machine Images").

use serde_json::{Value, json};

use azure_engine::code::Code;
use azure_engine::error::Refusal;

struct Listed {
    publisher: &'static str,
    offer: &'static str,
    sku: &'static str,
    version: &'static str,
    system: &'static str,
    generation: &'static str,
}

const fn listed(
    [publisher, offer, sku, version]: [&'static str; 4],
    system: &'static str,
    generation: &'static str,
) -> Listed {
    Listed { publisher, offer, sku, version, system, generation }
}

/// What documents about clusters name; machines are made of other images, too.
static IMAGES: [Listed; 9] = [
    listed(["Canonical", "ubuntu-24_04-lts", "server", "24.04.202601160"], "Linux", "V2"),
    listed(["Canonical", "0001-com-ubuntu-server-jammy", "22_04-lts-gen2", "22.04.202601160"], "Linux", "V2"),
    listed(["Debian", "debian-12", "12-gen2", "0.20260112.2355"], "Linux", "V2"),
    listed(
        ["MicrosoftWindowsServer", "WindowsServer", "2019-datacenter", "17763.8276.260109"],
        "Windows",
        "V1",
    ),
    listed(
        ["MicrosoftWindowsServer", "WindowsServer", "2022-datacenter", "20348.4648.260108"],
        "Windows",
        "V1",
    ),
    listed(
        ["MicrosoftWindowsServer", "WindowsServer", "2025-datacenter", "26100.32230.260111"],
        "Windows",
        "V1",
    ),
    listed(["cncf-upstream", "capi", "ubuntu-2204-gen1", "130.3.20240717"], "Linux", "V1"),
    listed(["cncf-upstream", "capi", "ubuntu-2204-gen1", "129.7.20240717"], "Linux", "V1"),
    listed(
        ["cncf-upstream", "capi-windows", "windows-2019-containerd-gen1", "130.3.20240717"],
        "Windows",
        "V1",
    ),
];

const NOT_FOUND: Code = Code::azures(404, "NotFound");

/// `locations/{location}/publishers…`, from the segment `publishers` on.
pub(crate) fn answer(
    subscription: &str,
    location: &str,
    segments: &[&str],
) -> Option<Result<Value, Refusal>> {
    let is = |segment: &&str, word: &str| segment.eq_ignore_ascii_case(word);
    // Names that are chosen, and which part of an image is asked for.
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
    let parts = |image: &Listed| [image.publisher, image.offer, image.sku, image.version];
    let fits = |image: &&Listed| {
        parts(image).iter().zip(&chosen).all(|(part, wanted)| part.eq_ignore_ascii_case(wanted))
    };
    let found: Vec<&Listed> = IMAGES.iter().filter(fits).collect();
    let Some(first) = found.first() else {
        return Some(Err(NOT_FOUND.says(format_args!("Artifact: {} was not found.", chosen.join("/")))));
    };
    let path = |image: &Listed, upto: usize| {
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
                "osDiskImage": { "operatingSystem": first.system },
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
