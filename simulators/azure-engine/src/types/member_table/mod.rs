//! Tables of the members of a type's documents: one table a type, nested where the documents are. A table drives what
//! is read, filled in and refused when a document is written, which references the document has, which referrers it
//! shows, and which members are accepted and never shown.
//!
//! ```
//! use azure_engine::types::member_table::Holds::{Children, Flag, Number, Object, Text, Uses, Users, Word};
//! use azure_engine::types::member_table::Member;
//!
//! static PROFILE: [Member; 2] = [
//!     Member::new("administrator", Text).required().fixed(),
//!     Member::new("password", Text).secret(),
//! ];
//!
//! static RULE: [Member; 2] = [
//!     Member::new("port", Number(1, 65_535)).required(),
//!     Member::new("pool", Uses("pools")),
//! ];
//!
//! static MEMBERS: [Member; 6] = [
//!     Member::new("profile", Object(&PROFILE)),
//!     Member::new("rules", Children(&RULE)).or_empty(),
//!     Member::new("tier", Word(&["Basic", "Standard"], true)),
//!     Member::new("size", Number(1, 64)).or(4).called("thing.size"),
//!     Member::new("encrypted", Flag).or_flag(false),
//!     Member::new("users", Users("things")),
//! ];
//! # let _ = &MEMBERS;
//! ```

mod member;
mod normalise;
mod pointers;

pub use member::{Fits, Fixed, Holds, Member, Otherwise};
pub use normalise::{Written, normalise};
pub use pointers::{pointers, pointers_below, secrets};

pub(crate) use normalise::normalise_below;
pub(crate) use pointers::{conceal, table_of_children};

#[cfg(test)]
mod tests {
    use azure_types::ResourceId;
    use serde_json::{Value, json};

    use super::{Holds, Member, Written, conceal, normalise, normalise_below, pointers};
    use crate::document::into_object;
    use crate::refusal::Refusal;
    use crate::refusal::words::Wrong;
    use crate::store::reference::Role;
    use crate::types::protocol::Protocol;

    const PROTOCOL: Protocol = Protocol::new("N/things", "Thing", &[]);

    fn fixed(wrong: &Wrong<'_>) -> Refusal {
        Refusal::new(409, "Fixed", wrong.member)
    }

    const TABLE: [Member; 10] = [
        Member::new("flag", Holds::Flag),
        Member::new("count", Holds::Number(1, 9)).or(3).fixed_while_used(fixed),
        Member::new("word", Holds::Word(&["One", "Two"], true)),
        Member::new("other", Holds::Uses("others")),
        Member::new("others", Holds::UsesAll("others")),
        Member::new("named", Holds::Names("others")),
        Member::new("state", Holds::Derived),
        Member::new("kind", Holds::Constant("Thing")),
        Member::new("made", Holds::Created),
        Member::new("number", Holds::Kept),
    ];

    fn id(tail: &str) -> ResourceId {
        ResourceId::group("s", "g").resource("N", "others", tail)
    }

    fn stored(given: Value, old: Option<&Value>, used: bool) -> Result<Value, String> {
        let thing = ResourceId::group("s", "g").resource("N", "things", "a");
        let written = Written { id: &thing, protocol: &PROTOCOL, old, used };
        let mut properties = into_object(given);
        match normalise(&TABLE, &written, &mut properties) {
            Ok(()) => Ok(Value::Object(properties)),
            Err(refusal) => Err(refusal.code),
        }
    }

    #[test]
    fn a_table_fills_in_and_refuses() {
        let whole = json!({ "count": 3, "word": "One", "kind": "Thing" });
        let with = |member: &str, value: Value| {
            let mut whole = whole.clone();
            whole[member] = value;
            Ok(whole)
        };
        let pointer = |to: &str| json!({ "id": id(to), "etag": "x" });
        for (given, expected) in [
            (json!({}), Ok(whole.clone())),
            (json!({ "state": "x", "KIND": "y" }), Ok(whole.clone())),
            (json!({ "Count": "5" }), with("count", json!(5))),
            (json!({ "word": "two" }), with("word", json!("Two"))),
            (json!({ "flag": "True" }), with("flag", json!(true))),
            (json!({ "other": pointer("o") }), with("other", json!({ "id": id("o") }))),
            (json!({ "others": [pointer("o")] }), with("others", json!([{ "id": id("o") }]))),
            (json!({ "count": 10 }), Err("InvalidPropertyValue".to_owned())),
            (json!({ "count": [] }), Err("InvalidRequestFormat".to_owned())),
            (json!({ "word": "three" }), Err("InvalidRequestFormat".to_owned())),
            (json!({ "stranger": 1 }), Err("InvalidRequestFormat".to_owned())),
            (
                json!({ "other": { "id": ResourceId::group("s", "g") } }),
                Err("InvalidRequestFormat".to_owned()),
            ),
        ] {
            assert_eq!(stored(given.clone(), None, false), expected, "{given}");
        }
        // A stored document is stored unchanged again.
        assert_eq!(stored(whole.clone(), Some(&whole), true), Ok(whole));
    }

    #[test]
    fn what_is_fixed_changes_only_while_nobody_needs_it() {
        let old = json!({ "count": 3 });
        assert!(stored(json!({ "count": 4 }), Some(&old), false).is_ok());
        assert!(stored(json!({ "count": 3 }), Some(&old), true).is_ok());
        assert_eq!(stored(json!({ "count": 4 }), Some(&old), true), Err("Fixed".to_owned()));
    }

    #[test]
    fn what_the_service_chose_is_not_the_client_s_to_say() {
        let old = json!({ "number": 7 });
        for sent in [json!({ "number": 8, "made": "today" }), json!({})] {
            for (old, expected) in [(Some(&old), Some(&json!(7))), (None, None)] {
                let stored = stored(sent.clone(), old, false).unwrap();
                assert_eq!((stored.get("number"), stored.get("made")), (expected, None), "{sent}");
            }
        }
    }

    #[test]
    fn pointers_are_what_uses_and_not_what_names() {
        let thing = ResourceId::group("s", "g").resource("N", "things", "a");
        let document = json!({ "properties": {
            "other": { "id": id("a") }, "others": [{ "id": id("b") }, { "id": id("c") }], "named": { "id": id("d") },
        } });
        let found: Vec<ResourceId> =
            pointers(&TABLE, &thing, &document).into_iter().map(|one| one.to).collect();
        assert_eq!(found, [id("a"), id("b"), id("c")]);
    }

    #[test]
    fn pointers_say_why_and_hold_addresses() {
        static TABLE: [Member; 3] = [
            Member::new("subnet", Holds::Uses("others")).addressed(),
            Member::new("peer", Holds::Uses("others")).role(Role::Names),
            Member::new("groups", Holds::UsesAll("others")).none_if_empty(),
        ];
        let thing = ResourceId::group("s", "g").resource("N", "things", "a");
        let mut properties = into_object(json!({
            "subnet": { "id": id("a") }, "peer": { "id": id("b") }, "privateIPAddress": "10.0.0.4", "groups": [],
        }));
        let with_address: Vec<Member> =
            TABLE.into_iter().chain([Member::new("privateIPAddress", Holds::Text)]).collect();
        let written = Written { id: &thing, protocol: &PROTOCOL, old: None, used: false };
        normalise(&with_address, &written, &mut properties).unwrap();
        assert!(!properties.contains_key("groups"));
        let found = pointers(&TABLE, &thing, &json!({ "properties": properties }));
        let found: Vec<_> = found.into_iter().map(|one| (one.to, one.role, one.address)).collect();
        let address = "10.0.0.4".parse().ok();
        assert_eq!(found, [(id("a"), Role::Uses, address), (id("b"), Role::Names, None)]);
    }

    const CHILD: [Member; 2] = [
        Member::new("port", Holds::Number(1, 65_535)).required(),
        Member::new("other", Holds::Uses("Elsewhere/others")),
    ];
    const PROFILE: [Member; 5] = [
        Member::new("user", Holds::Text).fixed().fits(|text| text != "root", "no reserved name"),
        Member::new("password", Holds::Text).secret(),
        Member::new("since", Holds::Time),
        Member::new("lasts", Holds::Duration).or_text("PT5M"),
        Member::new("open", Holds::Flag).or_flag(false),
    ];
    const ITEM: [Member; 2] = [
        Member::new("lun", Holds::Number(0, 63)).required().called("item.lun"),
        Member::new("id", Holds::Derived),
    ];
    static NESTED: [Member; 7] = [
        Member::new("profile", Holds::Object(&PROFILE)),
        Member::new("filled", Holds::Object(&PROFILE)).or_empty(),
        Member::new("items", Holds::Objects(&ITEM)),
        Member::new("rules", Holds::Children(&CHILD)).or_empty(),
        Member::new("labels", Holds::TextMap),
        Member::new("words", Holds::Texts),
        Member::new("subnet", Holds::UsesId("others")),
    ];

    fn nested(given: Value, old: Option<&Value>) -> Result<Value, Refusal> {
        let thing = ResourceId::group("s", "g").resource("N", "things", "a");
        let written = Written { id: &thing, protocol: &PROTOCOL, old, used: false };
        let mut properties = into_object(given);
        normalise(&NESTED, &written, &mut properties).map(|()| Value::Object(properties))
    }

    #[test]
    fn tables_reach_into_objects_lists_and_children() {
        let stored = nested(
            json!({
                "Profile": { "USER": "a", "password": 5, "since": "2026-01-01T00:00:00Z", "open": "true" },
                "items": [{ "lun": "3", "id": "sent" }],
                "rules": [{ "name": "r", "id": "sent", "properties": { "port": 80 } }],
                "labels": { "a": true },
                "words": ["x", 1],
                "subnet": id("o"),
            }),
            None,
        );
        let mut expected = json!({
            "profile": {
                "user": "a", "password": "5", "since": "2026-01-01T00:00:00Z", "lasts": "PT5M",
                "open": true,
            },
            "filled": { "lasts": "PT5M", "open": false },
            "items": [{ "lun": 3 }],
            "rules": [{ "name": "r", "properties": { "port": 80 } }],
            "labels": { "a": "true" },
            "words": ["x", "1"],
            "subnet": id("o"),
        });
        assert_eq!(stored, Ok(expected.clone()));
        // A fixed member keeps its value if it is omitted, and cannot be changed.
        let old = expected.clone();
        let again =
            nested(json!({ "profile": {} }), Some(&old)).map(|stored| stored["profile"]["user"].clone());
        assert_eq!(again, Ok(json!("a")));
        assert_eq!(
            nested(json!({ "profile": { "user": "b" } }), Some(&old)).map_err(|refusal| refusal.code),
            Err("PropertyChangeNotAllowed".to_owned())
        );
        assert!(nested(json!({ "profile": { "user": "A" } }), Some(&old)).is_ok());
        // The secret is never shown.
        let mut shown = into_object(expected.clone());
        conceal(&NESTED, &mut shown);
        if let Some(profile) = expected["profile"].as_object_mut() {
            profile.remove("password");
        }
        assert_eq!(Value::Object(shown), expected);
    }

    #[test]
    fn a_closed_table_leaves_out_what_it_does_not_have() {
        static CLOSED: [Member; 2] = [
            Member::new("item", Holds::Object(&ITEM)).closed(),
            Member::new("items", Holds::Objects(&ITEM)).closed(),
        ];
        let thing = ResourceId::group("s", "g").resource("N", "things", "a");
        let written = Written { id: &thing, protocol: &PROTOCOL, old: None, used: false };
        let item = json!({ "LUN": 3, "stranger": 1 });
        let mut document = into_object(json!({ "item": item, "items": [item] }));
        // Only `properties` refuse unknown members.
        normalise_below(&CLOSED, &written, "", &mut document).unwrap();
        let item = json!({ "lun": 3 });
        assert_eq!(Value::Object(document), json!({ "item": item, "items": [item] }));
    }

    #[test]
    fn refusals_say_where_and_never_what_is_secret() {
        let with = |member: &str, value: Value| json!({ member: value });
        for (given, said) in [
            (with("profile", json!([])), "properties.profile"),
            (with("profile", json!({ "password": {} })), "properties.profile.password"),
            (with("profile", json!({ "user": "root" })), "no reserved name"),
            (with("profile", json!({ "since": "today" })), "profile.since"),
            (with("profile", json!({ "lasts": "soon" })), "profile.lasts"),
            (with("profile", json!({ "stranger": 1 })), "properties.profile.stranger"),
            (with("items", json!({})), "properties.items"),
            (with("items", json!([{}])), "item.lun"),
            (with("items", json!([{ "lun": 64 }])), "item.lun"),
            (with("rules", json!([{ "properties": { "port": 1 } }])), "rules[0].name"),
            (with("rules", json!([{ "name": "r" }])), "rules[0].properties.port"),
            (
                with("rules", json!([{ "name": "r", "properties": { "port": 1 } }, { "name": "R" }])),
                "duplicate",
            ),
            (
                with(
                    "rules",
                    json!([{ "name": "r", "properties": { "port": 1, "other": { "id": id("a") } } }]),
                ),
                "properties.rules[0].properties.other",
            ),
            (with("labels", json!({ "a": [] })), "properties.labels"),
            (with("words", json!("x")), "properties.words"),
            (with("subnet", json!("x")), "properties.subnet"),
        ] {
            let refusal = nested(given.clone(), None).expect_err(&given.to_string());
            assert!(format!("{refusal:?}").contains(said), "{given}: {refusal:?}");
        }
        let refusal = nested(json!({ "profile": { "password": ["hush"] } }), None).expect_err("no text");
        assert!(!format!("{refusal:?}").contains("hush"), "{refusal:?}");
    }

    #[test]
    fn children_point_in_their_own_name() {
        let thing = ResourceId::group("s", "g").resource("N", "things", "a");
        let document = json!({ "properties": {
            "subnet": id("o"),
            "rules": [{ "name": "r", "properties": { "other": { "id": id("p") } } }],
        } });
        let found: Vec<(ResourceId, ResourceId)> =
            pointers(&NESTED, &thing, &document).into_iter().map(|one| (one.from, one.to)).collect();
        assert_eq!(found, [(thing.child("rules", "r"), id("p")), (thing.clone(), id("o"))]);
    }
}
