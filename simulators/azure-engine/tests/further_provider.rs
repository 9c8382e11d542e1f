//! What a provider can be without a line of the engine: one of several in a namespace, with resources that are global,
//! in a subscription or on others' resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_engine::answer::Answer;
use azure_engine::operation::execution::Execution;
use azure_engine::operation::{Completion, OperationEnd};
use azure_engine::provider::{
    Acting, Action, AzureState, Concurrency, LiesIn, Manager, Placement, Presenting, Protocol, Provider,
    Record, Shape, StateNames, Writing,
};
use azure_engine::refusal::Refusal;
use azure_engine::request::body::Body;
use azure_engine::request::target::Target;
use azure_engine::request::{Conditions, Request};
use azure_engine::settings::latency::LatencyProfile;
use azure_engine::settings::options::Options;
use azure_engine::store::State;
use azure_types::ResourceId;
use serde_json::{Value, json};

/// A type that stores what it is sent.
macro_rules! plain {
    ($name:ident, $protocol:expr) => {
        struct $name;

        impl Shape for $name {
            fn protocol(&self) -> &'static Protocol {
                const PROTOCOL: Protocol = $protocol;
                &PROTOCOL
            }
        }

        impl Writing for $name {}
        impl Presenting for $name {}
        impl Acting for $name {}
    };
}

const VERSIONS: [&str; 1] = ["2025-01-01"];

const fn protocol(resource_type: &'static str) -> Protocol {
    Protocol {
        synchronous: true,
        synchronous_delete: true,
        ..Protocol::new(resource_type, "Thing", &VERSIONS)
    }
}

plain!(Groups, protocol("Microsoft.Resources/resourceGroups"));
plain!(Things, protocol("Test.Shop/things"));
plain!(Zones, Protocol { placement: Placement::Global, ..protocol("Test.Shop/zones") });
plain!(Plans, Protocol { lies_in: LiesIn::Subscription, tracked: false, ..protocol("Test.Rights/plans") });
plain!(Rights, Protocol { lies_in: LiesIn::Anything, tracked: false, ..protocol("Test.Rights/rights") });

/// A type that says what goes on with its resources.
struct Clusters;

impl Shape for Clusters {
    fn protocol(&self) -> &'static Protocol {
        const PROTOCOL: Protocol = Protocol {
            first_state: State::Creating,
            states: StateNames {
                creating: "ResolvingDns",
                canceled: "Canceled",
                during_actions: &[("stop", "Stopping")],
                ..StateNames::USUAL
            },
            concurrency: Concurrency::Supersede,
            ..Protocol::new("Test.Shop/clusters", "Cluster", &VERSIONS)
        };
        &PROTOCOL
    }
}

impl Writing for Clusters {
    fn state_during_write(&self, old: &Value, new: &Value) -> Option<&'static str> {
        let version = |body: &Value| body["properties"]["version"].clone();
        (version(old) != version(new)).then_some("Upgrading")
    }
}

impl Presenting for Clusters {}

impl Acting for Clusters {
    fn act(
        &self,
        _azure: &mut AzureState,
        _id: &ResourceId,
        action: &str,
        _body: &Value,
    ) -> Option<Result<Action, Refusal>> {
        let completion = Completion::Action(action.to_owned(), Value::Null);
        Some(Ok(Action { completion, answer: None }))
    }
}

struct NoManager;

impl Manager for NoManager {
    fn api_versions(&self) -> &'static [&'static str] {
        &VERSIONS
    }

    fn type_of(&self, _target: &Target) -> &'static str {
        "Microsoft.Resources/subscriptions"
    }

    fn perform(
        &self,
        _azure: &mut AzureState,
        request: &Request<'_>,
        _target: &Target,
        _execution: &Execution,
    ) -> Result<Answer, Refusal> {
        Err(Refusal::method_not_allowed(request.method))
    }

    fn check_registered(&self, _: &AzureState, _: &str, _: &str) -> Result<(), Refusal> {
        Ok(())
    }

    fn check_region(&self, _: &AzureState, location: &str, resource_type: &str) -> Result<(), Refusal> {
        match location {
            "eastus" => Ok(()),
            _ => Err(Refusal::no_such_location(location, resource_type, "eastus")),
        }
    }
}

fn azure() -> AzureState {
    let providers = vec![
        Provider::new("Microsoft.Resources", vec![&Groups]),
        Provider::new("Test.Shop", vec![&Things, &Clusters]),
        Provider::new("Test.Shop", vec![&Zones]),
        Provider::new("Test.Rights", vec![&Plans, &Rights]),
    ];
    let mut azure = AzureState::new(Arc::new(Options::default()), &NoManager, providers);
    let created = azure.now();
    let group = ResourceId::group(&azure.options.subscription, "g");
    azure.insert(Record::new(&Groups, &group, json!({ "location": "eastus" }), created));
    azure
}

/// The status, or the refusal's status and code.
fn ask(azure: &mut AzureState, method: &str, below: &str, body: Value) -> Result<u16, (u16, String)> {
    let path = format!("/subscriptions/{}{below}", azure.options.subscription);
    let query = BTreeMap::from([("api-version".to_owned(), VERSIONS[0].to_owned())]);
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (body, target) = (Body::parse(body.as_bytes()), Target::parse(&path));
    let conditions = Conditions::default();
    let request = Request {
        method,
        path: &path,
        target: target.as_ref().map_err(|bad| *bad),
        query: &query,
        conditions: &conditions,
        body: &body,
        caller: None,
    };
    let answer =
        azure.locate(&request).and_then(|located| azure.perform(&request, &located, &Execution::default()));
    answer.map(|answer| answer.status).map_err(|refusal| (refusal.status, refusal.code))
}

#[tokio::test(start_paused = true)]
async fn two_providers_share_a_namespace_and_one_of_them_is_global() {
    let mut azure = azure();
    let shop = "/resourceGroups/g/providers/Test.Shop";
    for (path, location, expected) in [
        ("things/a", "eastus", Ok(201)),
        ("things/b", "global", Err((400, "LocationNotAvailableForResourceType".to_owned()))),
        ("zones/a", "global", Ok(201)),
        ("zones/b", "eastus", Err((400, "LocationNotAvailableForResourceType".to_owned()))),
    ] {
        let asked = ask(&mut azure, "PUT", &format!("{shop}/{path}"), json!({ "location": location }));
        assert_eq!(asked, expected, "{path} in {location}");
    }
    assert_eq!(ask(&mut azure, "GET", &format!("{shop}/zones/a"), Value::Null), Ok(200));
    assert_eq!(azure.documents_of_type("Test.Shop/things").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn resources_lie_where_their_type_says() {
    let mut azure = azure();
    let thing = "/resourceGroups/g/providers/Test.Shop/things/a";
    assert_eq!(ask(&mut azure, "PUT", thing, json!({ "location": "eastus" })), Ok(201));
    let bad_path = || Err((404, "InvalidRequestPath".to_owned()));
    for (path, expected) in [
        ("/providers/Test.Rights/plans/p", Ok(201)),
        ("/resourceGroups/g/providers/Test.Rights/plans/p", bad_path()),
        ("/providers/Test.Shop/things/a", bad_path()),
        ("/providers/Test.Rights/rights/r", Ok(201)),
        ("/resourceGroups/g/providers/Test.Rights/rights/r", Ok(201)),
        (&format!("{thing}/providers/Test.Rights/rights/r"), Ok(201)),
        (&format!("{thing}/providers/Test.Rights/rights/r"), Ok(200)),
        (
            "/resourceGroups/g/providers/Test.Shop/things/absent/providers/Test.Rights/rights/r",
            Err((404, "ResourceNotFound".to_owned())),
        ),
    ] {
        assert_eq!(ask(&mut azure, "PUT", path, json!({ "properties": {} })), expected, "{path}");
    }
    let on_thing = format!("{thing}/providers/Test.Rights/rights");
    assert_eq!(ask(&mut azure, "GET", &format!("{on_thing}/r"), Value::Null), Ok(200));
    assert_eq!(ask(&mut azure, "GET", &on_thing, Value::Null), Ok(200));
    assert_eq!(azure.documents_of_type("Test.Rights/rights").len(), 3);
    // What lies on a resource goes with it.
    assert_eq!(ask(&mut azure, "DELETE", thing, Value::Null), Ok(202));
    assert_eq!(azure.documents_of_type("Test.Rights/rights").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_provider_makes_a_group_for_what_it_makes() {
    let mut azure = azure();
    let group = ResourceId::group(&azure.options.subscription, "made");
    let thing = group.resource("Test.Shop", "things", "a");
    for id in [&group, &thing] {
        let body = json!({ "location": "eastus" }).as_object().cloned().unwrap_or_default();
        assert_eq!(azure.make(id, body), Ok(()), "{id}");
    }
    let below = "/resourceGroups/made/providers/Test.Shop/things/a";
    assert_eq!(ask(&mut azure, "GET", below, Value::Null), Ok(200));
}

#[tokio::test(start_paused = true)]
async fn a_resource_says_in_its_types_words_what_goes_on_with_it() {
    let mut azure = azure();
    azure.latency = LatencyProfile { otherwise_ms: 60_000, ..LatencyProfile::instant() };
    let below = "/resourceGroups/g/providers/Test.Shop/clusters/a";
    let id = ResourceId::parse(&format!("/subscriptions/{}{below}", azure.options.subscription)).unwrap();
    let put = |version: u64| json!({ "location": "eastus", "properties": { "version": version } });
    let state = |azure: &AzureState| azure.document(&id).unwrap()["properties"]["provisioningState"].clone();
    let succeed = |azure: &mut AzureState| {
        let key = azure.store.get(&id).unwrap().operation.clone().unwrap();
        azure.end(&key, OperationEnd::Succeeded.status());
        assert_eq!(state(azure), "Succeeded");
    };
    for (method, path, body, expected) in [
        ("PUT", below.to_owned(), put(1), "ResolvingDns"),
        ("PUT", below.to_owned(), put(2), "Upgrading"),
        ("PUT", below.to_owned(), put(2), "Updating"),
        ("POST", format!("{below}/stop"), Value::Null, "Stopping"),
        ("POST", format!("{below}/start"), Value::Null, "Updating"),
    ] {
        assert!(ask(&mut azure, method, &path, body).is_ok(), "{method} {path}");
        assert_eq!(state(&azure), expected, "{method} {path}");
        succeed(&mut azure);
    }
    // A phase that comes in the middle, and an end of its own name.
    ask(&mut azure, "PUT", below, put(3)).unwrap();
    azure.show_state(&id, "Migrating");
    let saved = azure.save().unwrap();
    azure.restore(saved).unwrap();
    assert_eq!(state(&azure), "Migrating");
    let key = azure.store.get(&id).unwrap().operation.clone().unwrap();
    azure.end(&key, OperationEnd::Canceled.status());
    assert_eq!(state(&azure), "Canceled");
}
