use super::*;

/// A message under construction.
#[derive(Default, Clone)]
struct Written(Vec<u8>);

impl Written {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: i64) -> Self {
        self.varint(field << 3);
        self.varint(value.cast_unsigned());
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: Written) -> Self {
        self.bytes(field, &message.0)
    }
}

fn written() -> Written {
    Written::default()
}

fn body(api_version: &str, kind: &str, object: Written) -> Vec<u8> {
    let envelope = written()
        .message(1, written().text(1, api_version).text(2, kind))
        .message(2, object)
        .text(3, "")
        .text(4, "");
    [MAGIC, &envelope.0].concat()
}

fn decoded(api_version: &str, kind: &str, object: Written) -> Value {
    decode(&body(api_version, kind, object)).unwrap()
}

/// Go's encoding of metadata with only a name.
fn metadata(name: &str) -> Written {
    written().text(1, name).text(2, "").text(3, "").text(4, "").text(5, "").number(7, 0).message(8, written())
}

#[test]
fn what_is_empty_is_not_there_unless_a_pointer_says_so() {
    let container = written().text(1, "c").text(2, "image").text(5, "").message(8, written()).number(16, 0);
    let spec = written().message(2, container).number(4, 0).number(11, 0).number(21, 0);
    let pod =
        decoded("v1", "Pod", written().message(1, metadata("p")).message(2, spec).message(3, written()));
    assert_eq!(
        pod,
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
            "spec": {
                "containers": [{ "name": "c", "image": "image", "resources": {} }],
                // A nil pointer would not have been sent.
                "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
            },
            "status": {},
        })
    );
}

#[test]
fn lists_maps_and_choices_of_number_and_text() {
    let port = |number: i64, target: Written| {
        written().text(1, "").text(2, "TCP").number(3, number).message(4, target).number(5, 0)
    };
    let spec = written()
        .message(1, port(80, written().number(1, 0).number(2, 8080).text(3, "")))
        .message(1, port(81, written().number(1, 1).number(2, 0).text(3, "web")))
        .message(2, written().text(1, "app").text(2, "x"))
        .message(2, written().text(1, "tier").text(2, ""));
    let service = decoded("v1", "Service", written().message(1, metadata("s")).message(2, spec));
    assert_eq!(
        service["spec"],
        json!({ "ports": [{ "protocol": "TCP", "port": 80, "targetPort": 8080 },
            { "protocol": "TCP", "port": 81, "targetPort": "web" }], "selector": { "app": "x", "tier": "" } })
    );
}

#[test]
fn amounts_bytes_and_times() {
    let hard = written().text(1, "pods").message(2, written().text(1, "10"));
    let quota = written().message(1, metadata("q")).message(2, written().message(1, hard));
    assert_eq!(decoded("v1", "ResourceQuota", quota)["spec"], json!({ "hard": { "pods": "10" } }));

    let secret =
        written().message(2, written().text(1, "k").bytes(2, &[0, 255])).text(3, "Opaque").number(5, 0);
    let secret = decoded("v1", "Secret", secret);
    assert_eq!((&secret["data"], &secret["immutable"]), (&json!({ "k": "AP8=" }), &json!(false)));

    let at = |nanos| written().number(1, 1_767_225_600).number(2, nanos);
    let lease = written().message(1, metadata("l")).message(2, written().text(1, "me").message(4, at(5_000)));
    assert_eq!(
        decoded("coordination.k8s.io/v1", "Lease", lease)["spec"],
        json!({ "holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000005Z" })
    );
    let deleted = written().message(1, metadata("l").message(9, at(0)));
    assert_eq!(decoded("v1", "Pod", deleted)["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z");
}

#[test]
fn members_of_other_messages_stand_among_the_own_ones() {
    let source = written().message(19, written().message(1, written().text(1, "settings")));
    let volume = written().text(1, "v").message(2, source);
    let probe = written()
        .message(1, written().message(2, written().text(1, "/").message(2, written().number(2, 80))));
    let container = written().text(1, "c").message(11, probe.number(2, 0).number(3, 5));
    let spec = written().message(1, volume).message(2, container);
    let pod = decoded("v1", "Pod", written().message(2, spec));
    assert_eq!(pod["spec"]["volumes"], json!([{ "name": "v", "configMap": { "name": "settings" } }]));
    assert_eq!(
        pod["spec"]["containers"][0]["readinessProbe"],
        json!({ "httpGet": { "path": "/", "port": 80 }, "timeoutSeconds": 5 })
    );
}

#[test]
fn lists_within_messages_and_json_within_schemas() {
    let extra = written().text(1, "scopes").message(2, written().text(1, "a").text(1, "b"));
    let review = written().message(2, written().text(3, "me").message(5, extra));
    assert_eq!(
        decoded("authorization.k8s.io/v1", "SubjectAccessReview", review)["spec"],
        json!({ "user": "me", "extra": { "scopes": ["a", "b"] } })
    );

    let property = written().text(5, "array").message(24, written().message(1, written().text(5, "string")));
    let map = written().text(5, "object").message(30, written().number(1, 1));
    let schema = written()
        .text(5, "object")
        .message(8, written().text(1, r#"{"a":[1]}"#))
        .message(29, written().text(1, "list").message(2, property))
        .message(29, written().text(1, "map").message(2, map));
    let version = written().text(1, "v1").number(2, 1).number(3, 1).message(4, written().message(1, schema));
    let definition = written().message(2, written().text(1, "example.com").message(7, version));
    let definition = decoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition);
    assert_eq!(
        definition["spec"]["versions"][0],
        json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
            "type": "object", "default": { "a": [1] }, "properties": {
                "list": { "type": "array", "items": { "type": "string" } },
                "map": { "type": "object", "additionalProperties": true } } } } })
    );
}

#[test]
fn options_and_subresources_have_types_of_their_own() {
    let options = written().number(1, 0).message(2, written().text(1, "some-uid")).text(4, "Foreground");
    assert_eq!(
        decoded("apps/v1", "DeleteOptions", options),
        json!({ "apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": { "uid": "some-uid" }, "propagationPolicy": "Foreground" })
    );
    let scale = written().message(1, metadata("d")).message(2, written().number(1, 3));
    assert_eq!(decoded("autoscaling/v1", "Scale", scale)["spec"], json!({ "replicas": 3 }));
    let eviction = written().message(1, metadata("p"));
    assert_eq!(decoded("policy/v1", "Eviction", eviction)["metadata"], json!({ "name": "p" }));
    let request = written().message(2, written().text(1, "me").number(4, 3600));
    assert_eq!(
        decoded("authentication.k8s.io/v1", "TokenRequest", request)["spec"],
        json!({ "audiences": ["me"], "expirationSeconds": 3600 })
    );
}

#[test]
fn what_is_no_such_message_is_refused_and_never_panics() {
    assert_eq!(decode(b"{}").unwrap_err(), Malformed::NoMagic);
    let unknown = body("example.com/v1", "Widget", written());
    assert!(matches!(decode(&unknown).unwrap_err(), Malformed::UnknownType { .. }));
    let wrong = body("v1", "Pod", written().number(1, 5));
    assert!(matches!(decode(&wrong).unwrap_err(), Malformed::WrongWireType(_)));
    let binary = body("v1", "Pod", written().message(1, written().bytes(1, &[0xff])));
    assert!(matches!(decode(&binary).unwrap_err(), Malformed::NoText(_)));
    let whole = body("v1", "Pod", written().message(1, metadata("p")));
    for length in 0..whole.len() {
        let _ = decode(&whole[..length]);
    }
    let mut schema = written();
    for _ in 0..1000 {
        schema = written().message(24, written().message(1, schema));
    }
    let version = written().message(4, written().message(1, schema));
    let deep = written().message(2, written().message(7, version));
    let deep = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", deep);
    assert_eq!(decode(&deep).unwrap_err(), Malformed::TooDeep);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_an_object_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = decode(&body("v1", "Pod", Written(bytes.clone())));
        let _ = decode(&[MAGIC, &bytes].concat());
    }
}
