//! What is a violation, by a small contract of all kinds of shapes.

use azure_contract::{BadContract, Contract, Side};
use serde_json::{Value, json};

/// A contract of one type in one version.
fn contract() -> (tempfile::TempDir, Contract) {
    let folder = tempfile::tempdir().unwrap();
    let file = json!({
        "resources": { "microsoft.test/things": 0 },
        "types": {
            "0": { "o": { "location": [1, 1], "properties": [2, 0], "tags": [9, 0], "id": [1, 3], "kind": [10, 0] } },
            "1": { "t": "string" },
            "2": { "o": { "size": [3, 0], "mode": [4, 0], "key": [5, 4], "parts": [6, 0], "name": [11, 0], "on": [12, 0] } },
            "3": { "t": "integer", "minValue": 1, "maxValue": 9 },
            "4": { "u": [7, 8] },
            "5": { "t": "string" },
            "6": { "l": 13 },
            "7": { "s": "Fast" },
            "8": { "s": "Slow" },
            "9": { "o": {}, "a": 1 },
            "10": { "u": [7, 1] },
            "11": { "t": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$" },
            "12": { "t": "boolean" },
            "13": { "b": { "name": [1, 1] }, "d": "type", "e": { "Round": 14 } },
            "14": { "o": { "type": [15, 1], "radius": [3, 1] } },
            "15": { "s": "Round" }
        }
    });
    std::fs::write(folder.path().join("microsoft.test@2024-01-01.json"), file.to_string()).unwrap();
    let contract = Contract::read(folder.path()).unwrap();
    (folder, contract)
}

#[test]
fn what_departs_is_named_by_its_member() {
    let (_folder, contract) = contract();
    let properties = |properties: Value| json!({ "location": "eastus", "properties": properties });
    let cases: [(&str, Side, Value, &[&str]); 22] = [
        ("whole", Side::Request, properties(json!({ "size": 1, "mode": "Fast", "key": "k" })), &[]),
        ("a required member", Side::Request, json!({}), &["location is required and absent"]),
        ("nothing is required of a part", Side::Patch, json!({}), &[]),
        ("nor of an answer", Side::Answer, json!({}), &[]),
        ("an unknown member", Side::Patch, json!({ "sise": 1 }), &["sise is not in the contract"]),
        (
            "other letters",
            Side::Patch,
            json!({ "Location": "e" }),
            &["Location is spelled 'location' in the contract"],
        ),
        (
            "a wrong type",
            Side::Patch,
            properties(json!({ "size": "1" })),
            &["properties.size is of JSON type string, not integer"],
        ),
        ("a whole number with a point", Side::Patch, properties(json!({ "size": 1.0 })), &[]),
        (
            "a boolean as text",
            Side::Patch,
            properties(json!({ "on": "true" })),
            &["properties.on is of JSON type string, not boolean"],
        ),
        (
            "no object",
            Side::Patch,
            json!({ "properties": [] }),
            &["properties is of JSON type array, not object"],
        ),
        (
            "no list",
            Side::Patch,
            properties(json!({ "parts": {} })),
            &["properties.parts is of JSON type object, not array"],
        ),
        (
            "out of range",
            Side::Answer,
            properties(json!({ "size": 10 })),
            &["properties.size is 10, which is out of range"],
        ),
        (
            "too long",
            Side::Patch,
            properties(json!({ "name": "abcdef" })),
            &["properties.name has 6 characters, which is out of bounds"],
        ),
        (
            "another form",
            Side::Patch,
            properties(json!({ "name": "a1" })),
            &["properties.name is 'a1', which does not match the contract's pattern"],
        ),
        (
            "none of the values",
            Side::Patch,
            properties(json!({ "mode": "Odd" })),
            &["properties.mode is \"Odd\", which is not one of the contract's values"],
        ),
        (
            "a value in other letters",
            Side::Patch,
            properties(json!({ "mode": "fast" })),
            &["properties.mode is spelled 'Fast' in the contract"],
        ),
        ("an open enumeration", Side::Patch, json!({ "kind": "Odd" }), &[]),
        (
            "what is only written",
            Side::Answer,
            properties(json!({ "key": "k" })),
            &["properties.key is shown, though it is only written"],
        ),
        ("what is only read is passed over", Side::Request, json!({ "location": "e", "id": 1 }), &[]),
        (
            "names of the user's choice",
            Side::Patch,
            json!({ "tags": { "a": 1 } }),
            &["tags.* is of JSON type integer, not string"],
        ),
        (
            "an object that a member decides",
            Side::Request,
            properties(json!({ "parts": [{ "name": "p", "type": "Round", "edge": 1 }] })),
            &[
                "properties.parts[].edge is not in the contract",
                "properties.parts[].radius is required and absent",
            ],
        ),
        (
            "an object of an unknown kind",
            Side::Request,
            properties(json!({ "parts": [{ "name": "p", "type": "Odd" }] })),
            &[],
        ),
    ];
    for (case, side, document, expected) in cases {
        let judgement = contract.judge("Microsoft.Test/things", "2024-01-01", side, &document).unwrap();
        let found: Vec<_> = judgement.violations.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn the_next_later_version_judges_where_one_is_not_at_hand() {
    let (folder, _) = contract();
    let old = folder.path().join("microsoft.test@2024-01-01.json");
    std::fs::copy(&old, folder.path().join("microsoft.test@2025-01-01.json")).unwrap();
    let contract = Contract::read(folder.path()).unwrap();
    assert_eq!(contract.versions("Microsoft.Test/Things"), ["2024-01-01", "2025-01-01"]);
    for (asked, by) in
        [("2023-05-05", "2024-01-01"), ("2024-05-05", "2025-01-01"), ("2026-05-05", "2025-01-01")]
    {
        let judgement = contract.judge("microsoft.test/things", asked, Side::Answer, &json!({})).unwrap();
        assert_eq!(judgement.version, by, "{asked}");
    }
    assert_eq!(contract.judge("microsoft.test/others", "2024-01-01", Side::Answer, &json!({})), None);
}

#[test]
fn a_folder_without_a_contract_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Contract::read(folder.path()), Err(BadContract::Empty(_))));
    std::fs::write(folder.path().join("microsoft.test@2024-01-01.json"), "[]").unwrap();
    assert!(matches!(Contract::read(folder.path()), Err(BadContract::Parse(..))));
    assert!(matches!(Contract::read(&folder.path().join("absent")), Err(BadContract::Folder(..))));
}
