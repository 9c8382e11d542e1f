//! Resource IDs: validity, comparison, and preservation of the text.

use std::collections::HashSet;

use azure_types::{ResourceId, ResourceIdError};
use proptest::prelude::*;

const PROBE: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/lb/probes/p";

#[test]
fn the_parts_of_an_id_can_be_asked_for() {
    let id = ResourceId::parse(PROBE).unwrap();
    assert_eq!(id.subscription_id(), "s");
    assert_eq!(id.group_name(), Some("g"));
    assert_eq!(id.namespace(), Some("Microsoft.Network"));
    assert_eq!(id.resource_type(), "Microsoft.Network/loadBalancers/probes");
    assert_eq!(id.name(), "p");
    assert_eq!(id.type_and_name_pairs(), [("loadBalancers", "lb"), ("probes", "p")]);
}

#[test]
fn parents_lead_up_to_the_subscription() {
    let up: Vec<String> = std::iter::successors(Some(ResourceId::parse(PROBE).unwrap()), ResourceId::parent)
        .map(|id| id.to_string())
        .collect();
    assert_eq!(
        up,
        [
            PROBE,
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/lb",
            "/subscriptions/s/resourceGroups/g",
            "/subscriptions/s",
        ]
    );
}

#[test]
fn builders_and_the_parser_agree() {
    let built =
        ResourceId::group("s", "g").resource("Microsoft.Network", "loadBalancers", "lb").child("probes", "p");
    assert_eq!(built.as_str(), PROBE);
    assert_eq!(built, ResourceId::parse(PROBE).unwrap());
}

#[test]
fn what_is_no_id_is_refused_with_a_reason() {
    let malformed =
        |id: &str, segment: &str| ResourceIdError::Malformed { id: id.into(), segment: segment.into() };
    for (text, error) in [
        ("", ResourceIdError::NotInSubscription(String::new())),
        ("subscriptions/s", ResourceIdError::NotInSubscription("subscriptions/s".into())),
        ("/tenants/t", ResourceIdError::NotInSubscription("/tenants/t".into())),
        ("/subscriptions", ResourceIdError::NotInSubscription("/subscriptions".into())),
        ("/subscriptions//x", ResourceIdError::EmptySegment("/subscriptions//x".into())),
        ("/subscriptions/s/", ResourceIdError::EmptySegment("/subscriptions/s/".into())),
        ("/subscriptions/s/resourceGroups", malformed("/subscriptions/s/resourceGroups", "resourceGroups")),
        ("/subscriptions/s/things/t", malformed("/subscriptions/s/things/t", "things")),
        ("/subscriptions/s/providers/N", malformed("/subscriptions/s/providers/N", "providers")),
        ("/subscriptions/s/providers/N/kinds", malformed("/subscriptions/s/providers/N/kinds", "kinds")),
        (
            "/subscriptions/s?x",
            ResourceIdError::ForbiddenCharacter { id: "/subscriptions/s?x".into(), character: '?' },
        ),
    ] {
        assert_eq!(ResourceId::parse(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn an_id_is_within_itself_and_its_ancestors_but_not_within_a_longer_name() {
    let balancer = ResourceId::group("s", "g").resource("Microsoft.Network", "loadBalancers", "lb");
    assert!(ResourceId::parse(PROBE).unwrap().is_within(&balancer));
    assert!(balancer.is_within(&balancer));
    let longer = ResourceId::group("s", "g").resource("Microsoft.Network", "loadBalancers", "lb-internal");
    assert!(!longer.is_within(&balancer));
}

fn segment() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_.()-]{1,12}"
}

prop_compose! {
    fn id()(subscription in segment(), group in segment(), namespace in segment(),
            pairs in prop::collection::vec((segment(), segment()), 1..4)) -> ResourceId {
        let tail: String = pairs.iter().map(|(kind, name)| format!("/{kind}/{name}")).collect();
        ResourceId::parse(&format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/{namespace}{tail}"))
            .expect("well-formed")
    }
}

/// Flips the case of the letters chosen by `flips`.
fn respell(text: &str, flips: &[bool]) -> String {
    let flip = |(c, flip): (char, &bool)| match (flip, c.is_ascii_lowercase()) {
        (false, _) => c,
        (true, true) => c.to_ascii_uppercase(),
        (true, false) => c.to_ascii_lowercase(),
    };
    text.chars().zip(flips.iter().cycle()).map(flip).collect()
}

proptest! {
    #[test]
    fn parsing_never_panics_and_keeps_the_text(text in ".{0,60}") {
        if let Ok(id) = ResourceId::parse(&text) {
            prop_assert_eq!(id.as_str(), text);
        }
    }

    #[test]
    fn spelling_does_not_matter_for_equality_hash_and_order(id in id(), flips in prop::collection::vec(any::<bool>(), 16)) {
        let other = ResourceId::parse(&respell(id.as_str(), &flips)).unwrap();
        prop_assert_eq!(&id, &other);
        prop_assert_eq!(id.cmp(&other), std::cmp::Ordering::Equal);
        prop_assert!(HashSet::from([id.clone()]).contains(&other));
        prop_assert!(other.is_within(&id));
    }

    #[test]
    fn a_child_comes_back_to_its_parent(id in id(), kind in segment(), name in segment()) {
        let child = id.child(&kind, &name);
        prop_assert_eq!(child.parent(), Some(id.clone()));
        prop_assert!(child.is_within(&id));
        let text = serde_json::to_string(&child).unwrap();
        prop_assert_eq!(serde_json::from_str::<ResourceId>(&text).unwrap(), child);
    }
}
