//! The tables are sound.

use std::collections::BTreeSet;

use rights::azure::{GRANTS, Role};
use rights::kubernetes::{RULES, Reach};
use rights::{Feature, Program};

#[test]
fn actions_are_written_as_azure_writes_them() {
    for action in GRANTS.iter().flat_map(|grant| grant.actions) {
        let (resource, verb) = action.rsplit_once('/').unwrap();
        assert!(["read", "write", "delete", "action"].contains(&verb), "{action}");
        assert!(resource.starts_with("Microsoft.") && !action.contains('*'), "{action}");
    }
    for grant in GRANTS {
        let is_join = |action: &&str| ["join", "peer", "assign/"].iter().any(|word| action.contains(word));
        assert_eq!(grant.is_join, grant.actions.iter().all(is_join), "{:?}", grant.actions);
    }
}

#[test]
fn each_feature_has_a_right_and_a_name_of_its_own() {
    let names: BTreeSet<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
    assert_eq!(names.len(), Feature::ALL.len());
    for feature in Feature::ALL {
        let in_azure = GRANTS.iter().any(|grant| grant.features.iter().any(|all| all.contains(&feature)));
        let in_kubernetes = RULES.iter().any(|rule| rule.feature == feature);
        assert!(in_azure || in_kubernetes, "{feature:?}");
    }
}

/// Every action of a grant is in a role of its program, and the role with all actions has those of all others.
#[test]
fn roles_together_have_all_actions() {
    let roles = Role::all();
    for program in Program::ALL {
        let all: BTreeSet<&str> = GRANTS
            .iter()
            .filter(|grant| grant.program == program)
            .flat_map(|grant| grant.actions)
            .copied()
            .collect();
        let of_program = roles.iter().filter(|role| role.program == program);
        let parts: BTreeSet<&str> = of_program
            .clone()
            .filter(|role| role.part != "all")
            .flat_map(|role| role.actions.clone())
            .collect();
        assert_eq!(parts, all, "{program:?}");
        let whole: BTreeSet<&str> =
            of_program.filter(|role| role.part == "all").flat_map(|role| role.actions.clone()).collect();
        assert!(whole.is_empty() || whole == all, "{program:?}");
    }
}

/// No role allows what is not needed: no wildcard, no access to roles, to pods where one decides what is mounted, and to one Secret, or
/// those of the namespaces with account keys.
#[test]
fn rules_name_what_they_allow() {
    for rule in RULES {
        assert!(!rule.resources.is_empty() && !rule.verbs.is_empty() && !rule.purpose.is_empty(), "{rule:?}");
        let all = rule.resources.iter().chain(rule.verbs);
        assert!(all.clone().all(|word| !word.contains('*')), "{rule:?}");
        assert!(all.clone().all(|word| !["escalate", "bind"].contains(word)), "{rule:?}");
        let by_pod = [Feature::ConfidentialContainers, Feature::InlineSecretReviews].contains(&rule.feature);
        assert!(!rule.resources.contains(&"pods") || (by_pod && rule.verbs == ["get"]), "{rule:?}");
        let is_limited = rule.names.len() == 1 || rule.reach == Reach::AccountKeyNamespaces;
        assert!(!rule.resources.contains(&"secrets") || is_limited, "{rule:?}");
    }
}
