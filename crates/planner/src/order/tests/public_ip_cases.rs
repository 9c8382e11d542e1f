//! Cases of `docs/rules/public-ips.md`.

use azure_types::Tags;
use serde_json::json;

use super::*;
use crate::model::Family;
use crate::outcome::Action;
use crate::resources::public_ip::{PublicIpPlan, plan, plan_removal};
use crate::service::ServiceRemoval;

fn tags(service: &str) -> Value {
    json!({"k8s-azure-service": service, "k8s-azure-cluster-name": "testCluster"})
}

fn shared(observed: &[PublicIpAddress]) -> Vec<Arc<PublicIpAddress>> {
    observed.iter().cloned().map(Arc::new).collect()
}

fn run_in(cluster: &Cluster, service: &Svc, observed: &[PublicIpAddress]) -> Result<PublicIpPlan, Refusal> {
    plan(cluster, &service.intent(cluster), &shared(observed))
}

fn run(service: &Svc, observed: &[PublicIpAddress]) -> PublicIpPlan {
    run_in(&cluster(), service, observed).unwrap()
}

fn refused(service: &Svc, observed: &[PublicIpAddress]) -> Refusal {
    run_in(&cluster(), service, observed).unwrap_err()
}

fn removed(service: &Svc, observed: &[PublicIpAddress]) -> Vec<Step> {
    let cluster = cluster();
    plan_removal(&cluster, &ServiceRemoval::of(&cluster, &service.0), &shared(observed)).release
}

/// The action and name of each step.
fn told(steps: &[Step]) -> Vec<String> {
    steps.iter().map(|step| format!("{:?} {}", step.action, step.target.name())).collect()
}

fn web() -> Svc {
    svc("test1").tcp(80)
}

/// The public IP that the Service's own plan creates.
fn own() -> PublicIpAddress {
    public_ip(&cluster(), "testCluster-atest1", Some("20.0.0.1"), tags("default/test1"))
}

/// LB-090.
#[test]
fn lb_090_a_new_public_ip() {
    let planned = run(&web(), &[]);
    assert_eq!(told(&planned.ensure), ["Create testCluster-atest1"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&planned.ensure[0].document).unwrap(), @r#"
    {
      "name": "testCluster-atest1",
      "location": "westus",
      "tags": {
        "k8s-azure-cluster-name": "testCluster",
        "k8s-azure-service": "default/test1"
      },
      "sku": {
        "name": "Standard"
      },
      "zones": [
        "1",
        "2",
        "3"
      ],
      "properties": {
        "publicIPAllocationMethod": "Static",
        "publicIPAddressVersion": "IPv4"
      }
    }
    "#);
}

/// LB-091.
#[test]
fn lb_091_what_the_service_has_and_does_not_want_is_released() {
    let named = |name: &str, ip| public_ip(&cluster(), name, Some(ip), tags("default/test1"));
    let old = |suffix: &str, ip| named(&format!("testCluster-atest1-{suffix}"), ip);
    let mut v6 = old("IPv6", "2001:db8::1");
    v6.properties.as_mut().unwrap().public_ip_address_version = Some("IPv6".into());
    let observed = [old("one", "20.0.0.1"), old("two", "20.0.0.2"), v6];
    let planned = run(&web(), &observed);
    assert_eq!(told(&planned.ensure), ["Create testCluster-atest1"]);
    let released =
        ["Delete testCluster-atest1-IPv6", "Delete testCluster-atest1-one", "Delete testCluster-atest1-two"];
    assert_eq!(told(&planned.release), released);
    let dual = run(&web().dual(), &observed[..2]);
    assert_eq!(told(&dual.ensure), ["Create testCluster-atest1", "Create testCluster-atest1-IPv6"]);
}

/// LB-602, S10: a tag that says that a Service uses an address does not prove that the address was created for it. An
/// address that a user tagged, as older releases did too, is used if the Service asks for it, and stays.
#[test]
fn what_a_user_tagged_is_used_and_stays() {
    let by_hand = [json!({"service": "default/test1"}), json!({"k8s-azure-service": "default/test1"})];
    for tags in by_hand {
        let pip = public_ip(&cluster(), "mine", Some("20.0.0.9"), tags);
        assert_eq!(told(&run(&web(), std::slice::from_ref(&pip)).release), Vec::<String>::new());
        let asks = web().annotate("azure-pip-name", "mine");
        let planned = run(&asks, std::slice::from_ref(&pip));
        assert_eq!((told(&planned.ensure), planned.use_ids[&Family::V4].name()), (vec![], "mine"));
        for service in [web(), asks] {
            assert_eq!(removed(&service, std::slice::from_ref(&pip)), []);
            let removal = ServiceRemoval::of(&cluster(), &service.0);
            let notices =
                crate::resources::public_ip::kept(&cluster(), &removal, &shared(std::slice::from_ref(&pip)));
            let [notice] = &notices[..] else { panic!("{notices:?}") };
            assert!(
                !notice.warning && notice.message.starts_with("public IP mine stays"),
                "{}",
                notice.message
            );
        }
    }
    // An address that the cluster's programs have tagged since loses their tags, and stays as well.
    let asks = web().annotate("azure-pip-name", "mine");
    let steps = removed(&asks, &[public_ip(&cluster(), "mine", Some("20.0.0.9"), tags("default/test1"))]);
    assert_eq!(steps[0].changes, [Change::PublicIpKept { service: web().0.key() }]);
    let left = public_ip_of(&steps[0]);
    assert_eq!(left.tags, Some(Tags::new()));
    assert_eq!(removed(&asks, std::slice::from_ref(left)), []);
}

/// LB-604, S10: a second cluster of the same name has a Service of the same name, and keeps its public IPs in the same
/// group.
#[test]
fn addresses_of_a_cluster_of_the_same_name_stay() {
    let name = "testCluster-a257b965551374ad2b091ef3f07043ad";
    for users in ["default/test1", "default/test1,default/other"] {
        let theirs = public_ip(&cluster(), name, Some("20.0.0.9"), tags(users));
        assert_eq!(told(&run(&web(), std::slice::from_ref(&theirs)).release), Vec::<String>::new());
        assert_eq!(removed(&web(), std::slice::from_ref(&theirs)), []);
    }
}

/// LB-603, F1: a Service is listed on its own public IP again when it uses it again, and the last user deletes it.
#[test]
fn who_uses_an_address_is_listed_on_it_however_it_was_found() {
    let primary = web().uid("257b9655-5137-4ad2-b091-ef3f07043ad3");
    let name = "testCluster-a257b965551374ad2b091ef3f07043ad";
    let second = svc("test2").tcp(81).annotate("azure-load-balancer-ipv4", "20.0.0.1");
    let mut pip = public_ip(&cluster(), name, Some("20.0.0.1"), tags("default/test1"));
    let listed = |pip: &PublicIpAddress| pip.tags.as_ref().unwrap()["k8s-azure-service"].clone();
    let steps = [(run(&second, std::slice::from_ref(&pip)).ensure, "default/test1,default/test2")];
    for (steps, expected) in steps {
        pip = public_ip_of(&steps[0]).clone();
        assert_eq!(listed(&pip), expected);
    }
    let inside = run(&primary.clone().internal(), std::slice::from_ref(&pip));
    pip = public_ip_of(&inside.release[0]).clone();
    assert_eq!(listed(&pip), "default/test2");
    let back = run(&primary, std::slice::from_ref(&pip));
    pip = public_ip_of(&back.ensure[0]).clone();
    assert_eq!(listed(&pip), "default/test2,default/test1");
    assert!(run(&primary, std::slice::from_ref(&pip)).ensure.is_empty());
    pip = public_ip_of(&removed(&second, std::slice::from_ref(&pip))[0]).clone();
    assert_eq!(listed(&pip), "default/test1");
    assert_eq!(told(&removed(&primary, std::slice::from_ref(&pip))), [format!("Delete {name}")]);
    // The other order: the Service that it was created for leaves first.
    let both = public_ip(&cluster(), name, Some("20.0.0.1"), tags("default/test1,default/test2"));
    let left = public_ip_of(&removed(&primary, &[both])[0]).clone();
    assert_eq!(told(&removed(&second, std::slice::from_ref(&left))), [format!("Delete {name}")]);
    // Its status still contains the address that it joined, after it does not ask for it any more.
    let changed = svc("test2").tcp(81).published(&["20.0.0.1"]);
    assert_eq!(told(&run(&changed, &[left]).release), [format!("Delete {name}")]);
}

/// LB-605: removed tags of the Service's own public IP are added again.
#[test]
fn the_tags_of_its_own_public_ip_are_written_again() {
    let bare = public_ip(&cluster(), "testCluster-atest1", Some("20.0.0.1"), json!({}));
    let planned = run(&web(), &[bare]);
    let written = public_ip_of(&planned.ensure[0]);
    assert_eq!(serde_json::to_value(&written.tags).unwrap(), tags("default/test1"));
}

/// LB-092, LB-093.
#[test]
fn lb_092_lb_093_named_public_ips_must_exist_and_are_not_ours() {
    let service = web().annotate("azure-pip-name", "PIP1");
    let missing = refused(&service, &[own()]);
    assert!(matches!(&missing, Refusal::PublicIpNotFound { name, .. } if name == "PIP1"), "{missing}");
    let mine = public_ip(&cluster(), "pip1", Some("20.0.0.9"), json!({}));
    let planned = run(&service, std::slice::from_ref(&mine));
    assert_eq!((planned.ensure.len(), planned.release.len()), (0, 0));
    assert_eq!(planned.use_ids[&Family::V4], mine.id.clone().unwrap());
    assert_eq!(removed(&service, &[mine]), []);
}

/// LB-094, LB-095.
#[test]
fn lb_094_lb_095_shared_public_ips_lose_the_name_alone() {
    let joined = web().annotate("azure-load-balancer-ipv4", "20.0.0.2");
    let pip = public_ip(&cluster(), "pip2", Some("20.0.0.2"), tags("default/test1,default/test2"));
    let steps = removed(&joined, std::slice::from_ref(&pip));
    assert_eq!(told(&steps), ["Update pip2"]);
    assert_eq!(steps[0].if_match.as_deref(), Some("p0"));
    assert_eq!(public_ip_of(&steps[0]).tags.as_ref().unwrap()["k8s-azure-service"], "default/test2");
    let planned = run(&web().published(&["20.0.0.2"]), &[pip]);
    assert_eq!(told(&planned.release), ["Update pip2"], "not deleted");
}

/// LB-096, LB-097, LB-098, LB-099.
#[test]
fn lb_096_lb_097_lb_098_lb_099_ownership_is_proven_by_name_and_tags() {
    let ours = json!({"k8s-azure-service": "DEFAULT/test1", "k8s-azure-cluster-name": "TESTCLUSTER"});
    for (name, tags, address, owned) in [
        (
            "testCluster-atest1",
            json!({"k8s-azure-service": "default/test1", "k8s-azure-cluster-name": "otherCluster"}),
            Some("20.0.0.1"),
            false,
        ),
        ("testCluster-atest1", json!({"k8s-azure-service": "default/test1"}), Some("20.0.0.1"), true),
        ("pip1", json!({"k8s-azure-service": "default/test1"}), Some("20.0.0.1"), false),
        ("testCluster-atest1", ours.clone(), None, true),
        ("TESTCLUSTER-ATEST1-prefix-IPv6", ours.clone(), None, true),
        ("testCluster-atest10", ours.clone(), None, false),
        ("pip1", ours, None, false),
        ("testCluster-atest1", json!({}), None, false),
        ("testCluster-atest1", json!({"k8s-azure-service": ""}), Some("20.0.0.1"), false),
        ("testCluster-atest1", json!({"k8s-azure-service": "default/test10"}), Some("20.0.0.1"), false),
    ] {
        let steps = removed(&web(), &[public_ip(&cluster(), name, address, tags.clone())]);
        assert_eq!(!steps.is_empty(), owned, "{name} {tags}");
    }
}

/// LB-100.
#[test]
fn lb_100_a_second_service_joins_by_address() {
    let pip = public_ip(&cluster(), "pip1", Some("20.0.0.1"), tags("default/test2"));
    for service in [
        web().change(|s| s.spec.load_balancer_ip = "20.0.0.1".into()),
        web().annotate("azure-load-balancer-ipv4", "20.0.0.1"),
        web().annotate("azure-pip-name", "pip1"),
    ] {
        let planned = run(&service, std::slice::from_ref(&pip));
        assert_eq!(told(&planned.ensure), ["Update pip1"]);
        let written = public_ip_of(&planned.ensure[0]);
        assert_eq!(written.tags.as_ref().unwrap()["k8s-azure-service"], "default/test2,default/test1");
        assert!(run(&service, std::slice::from_ref(written)).ensure.is_empty());
    }
}

/// LB-101.
#[test]
fn lb_101_older_tags_are_read_and_new_ones_written() {
    let old = json!({"service": "default/test1", "kubernetes-cluster-name": "testCluster"});
    let pip = public_ip(&cluster(), "testCluster-atest1", Some("20.0.0.1"), old);
    let planned = run(&web(), &[pip]);
    let tags = public_ip_of(&planned.ensure[0]).tags.clone().unwrap();
    assert_eq!(tags["k8s-azure-service"], "default/test1");
    assert_eq!(tags["k8s-azure-cluster-name"], "testCluster");
    assert_eq!(tags["service"], "default/test1", "stays");
    assert!(planned.release.is_empty());
}

/// LB-102, LB-103, LB-105, LB-106.
#[test]
fn lb_102_lb_103_lb_105_lb_106_ip_tags_are_changed_in_place_or_by_replacement() {
    let service = web().annotate("azure-pip-ip-tags", "a=b,c=d=e,f");
    let planned = run(&service, &[own()]);
    assert_eq!(told(&planned.release), ["Delete testCluster-atest1"]);
    assert!(planned.recreates && planned.use_ids.is_empty() && planned.ensure.is_empty());
    let created = run(&service, &[]);
    let written = public_ip_of(&created.ensure[0]);
    let ip_tags = written.properties.as_ref().unwrap().ip_tags.clone().unwrap();
    assert_eq!(serde_json::to_value(&ip_tags).unwrap(), json!([{"ipTagType": "a", "tag": "b"}]));

    let mutable = cluster_with(json!({"enableIPTagMutationForExistingPublicIP": true}));
    let planned = run_in(&mutable, &service, &[own()]).unwrap();
    assert_eq!(planned.ensure[0].changes, [Change::IpTagsChanged]);
    assert!(planned.release.is_empty() && !planned.recreates);

    let mut two = own();
    two.properties.as_mut().unwrap().ip_tags =
        serde_json::from_value(json!([{"ipTagType": "x", "tag": "y"}, {"ipTagType": "a", "tag": "b"}]))
            .unwrap();
    let same = run(&web().annotate("azure-pip-ip-tags", " a = b , x=y"), &[two]);
    assert_eq!((same.ensure.len(), same.release.len()), (0, 0));
}

/// LB-107, LB-108, LB-109.
#[test]
fn lb_107_lb_108_lb_109_the_dns_label_follows_the_annotation_where_there_is_one() {
    let foo = web().annotate("azure-dns-label-name", "foo");
    let planned = run(&foo, &[own()]);
    let labelled = public_ip_of(&planned.ensure[0]).clone();
    let label = |ip: &PublicIpAddress| {
        ip.properties.as_ref().unwrap().dns_settings.as_ref().and_then(|dns| dns.domain_name_label.clone())
    };
    assert_eq!(label(&labelled).as_deref(), Some("foo"));
    assert_eq!(labelled.tags.as_ref().unwrap()["k8s-azure-dns-label-service"], "default/test1");
    assert!(run(&foo, std::slice::from_ref(&labelled)).ensure.is_empty());
    assert!(run(&web(), std::slice::from_ref(&labelled)).ensure.is_empty(), "left as it is");
    let cleared = run(&web().annotate("azure-dns-label-name", ""), &[labelled]);
    assert_eq!(label(public_ip_of(&cleared.ensure[0])), None);
    assert_eq!(label(public_ip_of(&run(&foo, &[]).ensure[0])).as_deref(), Some("foo"), "from the start");
}

/// LB-451: Azure gives a label to one public IP at a time.
#[test]
fn a_dns_label_leaves_the_public_ip_that_is_given_up_before_another_gets_it() {
    let label = |ip: &PublicIpAddress| {
        ip.properties.as_ref().unwrap().dns_settings.as_ref().and_then(|dns| dns.domain_name_label.clone())
    };
    let foo = web().annotate("azure-dns-label-name", "foo");
    let old = public_ip_of(&run(&foo, &[own()]).ensure[0]).clone();
    let elsewhere = foo.clone().annotate("azure-load-balancer-resource-group", "other");
    let planned = run(&elsewhere, std::slice::from_ref(&old));
    assert_eq!(told(&planned.ensure).len(), 1);
    assert_eq!(planned.before.len(), 1, "{planned:#?}");
    assert_eq!(
        planned.before[0].changes,
        [
            Change::DnsLabelRemoved { label: "foo".to_owned() },
            Change::TagRemoved { name: "k8s-azure-dns-label-service".to_owned() },
        ]
    );
    assert_eq!(planned.before[0].target, old.id.clone().unwrap());
    let bare = public_ip_of(&planned.before[0]).clone();
    assert_eq!(label(&bare), None);
    let next = run(&elsewhere, std::slice::from_ref(&bare));
    assert_eq!((next.before, &next.ensure, next.release.len()), (Vec::new(), &planned.ensure, 1));

    assert!(run(&foo, std::slice::from_ref(&old)).before.is_empty(), "it stays where it is");
    let other = elsewhere.clone().annotate("azure-dns-label-name", "bar");
    assert!(run(&other, std::slice::from_ref(&old)).before.is_empty(), "another label does not conflict");
    let with_owner = |users: &str, owner: &str| {
        let mut shared = old.clone();
        let tags = shared.tags.as_mut().unwrap();
        tags.insert("k8s-azure-service".to_owned(), users.to_owned());
        tags.insert("k8s-azure-dns-label-service".to_owned(), owner.to_owned());
        run(&elsewhere, &[shared]).before.len()
    };
    assert_eq!(
        with_owner("default/test1,default/test2", "default/test1"),
        1,
        "shared, but the label is ours"
    );
    assert_eq!(with_owner("default/test1,default/test2", "default/test2"), 0, "the label of another");
    assert_eq!(with_owner("default/test1,default/test2", ""), 0, "the label's owner is unknown");
    assert_eq!(with_owner("default/test1", ""), 1, "it is ours alone");
}

/// The owner of a label decides nothing else: tags are written if they differ.
#[test]
fn a_label_that_is_ours_already_leaves_nothing_else_undone() {
    let foo = web().annotate("azure-dns-label-name", "foo");
    let labelled = public_ip_of(&run(&foo, &[own()]).ensure[0]).clone();
    let planned = run(&foo.annotate("azure-pip-tags", "team=net"), &[labelled]);
    assert_eq!(
        planned.ensure[0].changes,
        [Change::TagAdded { name: "team".to_owned(), value: "net".to_owned() }]
    );
}

/// A Service is in the tag once, in any case; when it leaves, all of its spellings are removed.
#[test]
fn names_in_the_service_tag_have_no_case() {
    let named = web().annotate("azure-pip-name", "pip1");
    let pip = |users: &str| public_ip(&cluster(), "pip1", Some("20.0.0.1"), tags(users));
    let planned = run(&named, &[pip("default/test2,DEFAULT/Test1")]);
    assert!(planned.ensure.is_empty(), "{:?}", planned.ensure);
    let steps = removed(&named, &[pip("default/test1,default/test2,Default/TEST1")]);
    assert_eq!(public_ip_of(&steps[0]).tags.as_ref().unwrap()["k8s-azure-service"], "default/test2");
}

/// A public IP without properties has no owner, and is no reason to fail.
#[test]
fn a_public_ip_without_properties_is_passed_over() {
    let mut bare = public_ip(&cluster(), "bare", None, json!({}));
    bare.properties = None;
    let asks = web().change(|s| s.spec.load_balancer_ip = "20.0.0.1".into());
    let planned = run(&asks, &[bare.clone(), own()]);
    assert_eq!(planned.use_ids[&Family::V4], own().id.unwrap());
    assert_eq!(removed(&web(), &[bare]), []);
}

/// LB-110, LB-111.
#[test]
fn lb_110_lb_111_labels_of_others_are_theirs() {
    let mut shared = tags("default/test2,default/test1");
    shared["k8s-azure-dns-label-service"] = json!("default/test2");
    let pip = public_ip(&cluster(), "pip1", Some("20.0.0.1"), shared);
    let named = web().annotate("azure-pip-name", "pip1");
    let refusal = refused(&named.clone().annotate("azure-dns-label-name", "foo"), std::slice::from_ref(&pip));
    assert!(matches!(&refusal, Refusal::DnsLabelClaimed { owner, .. } if owner == "default/test2"));
    let clearing = run(&named.clone().annotate("azure-dns-label-name", ""), &[pip]);
    assert!(clearing.ensure.is_empty(), "nothing of ours to remove");

    let mine = public_ip(&cluster(), "pip1", Some("20.0.0.1"), json!({}));
    let planned = run(&named.annotate("azure-dns-label-name", "foo"), &[mine]);
    let written = public_ip_of(&planned.ensure[0]);
    assert!(written.properties.as_ref().unwrap().dns_settings.is_some());
    assert_eq!(written.tags, Some(Tags::new()), "user-assigned addresses are not tagged");
}

/// LB-112.
#[test]
fn lb_112_basic_public_ips_become_standard() {
    let mut basic = own();
    basic.sku.as_mut().unwrap().name = Some("Basic".into());
    basic.properties.as_mut().unwrap().public_ip_allocation_method = Some("Dynamic".into());
    // The address has to become static before (SE-22).
    let planned = run(&web(), &[basic]);
    assert_eq!(planned.before[0].changes, [Change::PublicIp(difference("allocation", "Dynamic", "Static"))]);
    let planned = run(&web(), &[public_ip_of(&planned.before[0]).clone()]);
    assert!(planned.before.is_empty());
    let written = public_ip_of(&planned.ensure[0]);
    assert_eq!(written.sku.as_ref().unwrap().name.as_deref(), Some("Standard"));
    let properties = written.properties.as_ref().unwrap();
    assert_eq!(properties.ip_address.as_deref(), Some("20.0.0.1"));
    assert!(properties.public_ip_allocation_method.as_ref().unwrap().is("Static"));
}

/// LB-113: next to a basic load balancer they are dynamic.
#[test]
fn standard_ipv6_addresses_are_static() {
    let mut v6 = public_ip(&cluster(), "testCluster-atest1", Some("2001:db8::1"), tags("default/test1"));
    v6.properties.as_mut().unwrap().public_ip_allocation_method = Some("Dynamic".into());
    let planned = run(&web().families(&["IPv6"]), &[v6]);
    assert_eq!(planned.ensure[0].changes, [Change::PublicIp(difference("allocation", "Dynamic", "Static"))]);

    let basic = cluster_with(json!({"loadBalancerSku": "basic"}));
    for (cluster, allocation) in [(cluster(), "Static"), (basic, "Dynamic")] {
        let made = run_in(&cluster, &web().families(&["IPv6"]), &[]).unwrap();
        let properties = public_ip_of(&made.ensure[0]).properties.clone().unwrap();
        assert!(properties.public_ip_allocation_method.unwrap().is(allocation), "{allocation}");
    }
}

/// LB-114.
#[test]
fn lb_114_annotated_tags_go_over_configured_ones() {
    let cluster = cluster_with(json!({"tags": "a=b"}));
    let service = web().annotate("azure-pip-tags", "A=c,k8s-azure-service=mine");
    let planned = run_in(&cluster, &service, &[]).unwrap();
    let tags = public_ip_of(&planned.ensure[0]).tags.clone().unwrap();
    assert_eq!(tags["A"], "c");
    assert_eq!(tags["k8s-azure-service"], "default/test1", "managed tags win");
    assert_eq!(tags.len(), 3);
}

/// LB-115.
#[test]
fn lb_115_addresses_from_a_prefix() {
    let prefix = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/publicIPPrefixes/prefix-id";
    let planned = run(&web().annotate("azure-pip-prefix-id", prefix), &[]);
    assert_eq!(told(&planned.ensure), ["Create testCluster-atest1-prefix-id"]);
    let written = public_ip_of(&planned.ensure[0]).properties.clone().unwrap();
    assert_eq!(written.public_ip_prefix.unwrap().id.unwrap().as_str(), prefix);
    let refusal = web().annotate("azure-pip-prefix-id", "no id").refusal();
    assert!(matches!(refusal, Refusal::InvalidPrefixId { value, .. } if value == "no id"));
}

/// LB-116, LB-117, LB-118.
#[test]
fn lb_116_lb_117_lb_118_requested_addresses_must_be_public_addresses() {
    for address in ["10.0.0.1", "100.64.0.1", "168.63.129.16", "127.0.0.1", "::ffff:10.0.0.1"] {
        let refusal = web().change(|s| s.spec.load_balancer_ip = address.into()).refusal();
        assert!(matches!(refusal, Refusal::NonPublicAddress { .. }), "{address}: {refusal}");
    }
    for service in [
        web().change(|s| s.spec.load_balancer_ip = "abc".into()),
        web().annotate("azure-load-balancer-ipv4", "abc"),
        web().annotate("azure-load-balancer-ipv4", "2001:db8::1"),
    ] {
        let refusal = service.refusal();
        assert!(matches!(refusal, Refusal::InvalidAddress { .. }), "{refusal}");
    }
}

/// LB-119.
#[test]
fn an_address_that_no_public_ip_has_is_named_with_its_group() {
    let refusal = refused(&web().change(|s| s.spec.load_balancer_ip = "20.1.2.3".into()), &[own()]);
    assert_eq!(refusal, Refusal::AddressNotFound { address: [20, 1, 2, 3].into(), group: "rg".into() });
}

/// LB-120, LB-121.
#[test]
fn lb_120_lb_121_a_change_of_group_releases_where_the_address_is() {
    let service = web().annotate("azure-load-balancer-resource-group", " other ");
    let planned = run(&service, &[own()]);
    assert_eq!(planned.ensure[0].target.group_name(), Some("other"));
    assert_eq!(
        (planned.release[0].action, planned.release[0].target.group_name()),
        (Action::Delete, Some("rg"))
    );
    let mut shared = own();
    shared.tags = serde_json::from_value(tags("default/test1,default/test2")).unwrap();
    let planned = run(&service, &[shared]);
    assert_eq!(
        (planned.release[0].action, planned.release[0].target.group_name()),
        (Action::Update, Some("rg"))
    );
}

/// LB-404: while the public IP is found by its frontend only.
#[test]
fn a_public_ip_in_a_group_that_is_no_longer_named_is_given_up() {
    let in_group = |group: &str| web().annotate("azure-load-balancer-resource-group", group);
    let nodes = nodes([node("alpha", 0)]);
    for then in [web(), in_group("third"), in_group("other").deleting(), web().deleting()] {
        let mut azure = Azure::new();
        azure.converge(&[in_group("other").arc()], &nodes);
        let group_of =
            |public_ip: &Arc<PublicIpAddress>| public_ip.id.as_ref()?.group_name().map(str::to_owned);
        assert_eq!(azure.observed.public_ips.iter().filter_map(group_of).collect::<Vec<_>>(), ["other"]);
        azure.converge(&[then.arc()], &nodes);
        let left: Vec<String> = azure.observed.public_ips.iter().filter_map(group_of).collect();
        assert!(!left.contains(&"other".to_owned()), "{left:?}");
        assert_eq!(left.is_empty(), then.0.metadata.deletion_timestamp.is_some());
    }
}

/// LB-405.
#[test]
fn a_prefix_wins_over_a_requested_address_and_the_owner_is_told() {
    let prefix = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPPrefixes/p4";
    let service = web().change(|s| s.spec.load_balancer_ip = "20.1.2.3".into());
    let service = service.annotate("azure-pip-prefix-id", prefix);
    let planned = run(&service, &[]);
    assert_eq!(planned.ensure[0].target.name(), "testCluster-atest1-p4");
    let intent = service.intent(&cluster());
    let [notice] = &intent.notices[..] else { panic!("{:?}", intent.notices) };
    assert!(notice.warning && notice.message.contains("20.1.2.3 is not used"), "{}", notice.message);
    // It is used, or nothing is asked for beside the prefix.
    for other in [
        service.clone().annotate("azure-pip-name", "theirs"),
        service.clone().change(|s| s.spec.load_balancer_ip = "10.0.0.9".into()).internal(),
        web().change(|s| s.spec.load_balancer_ip = "20.1.2.3".into()),
        web().annotate("azure-pip-prefix-id", prefix),
    ] {
        let notices = other.intent(&cluster()).notices.clone();
        assert!(
            notices.iter().all(|notice| !notice.message.contains("is not used")),
            "{other:?}: {notices:?}"
        );
    }
}

/// LB-124.
#[test]
fn lb_124_edge_zones_hold_the_address_instead_of_zones() {
    let edge = cluster_with(json!({"extendedLocationName": "edge", "extendedLocationType": "EdgeZone"}));
    let planned = run_in(&edge, &web(), &[]).unwrap();
    let written = public_ip_of(&planned.ensure[0]);
    assert_eq!(written.zones, None);
    assert_eq!(written.extended_location.as_ref().unwrap().name.as_deref(), Some("edge"));
}

/// Names compare as Azure compares them.
#[test]
fn another_spelling_of_the_name_is_the_same_address() {
    let mut pip = own();
    pip.name = Some("TESTCLUSTER-atest1".into());
    pip.id = Some(cluster().public_ip_id("RG", "TESTCLUSTER-atest1"));
    let planned = run(&web(), &[pip]);
    assert_eq!((planned.ensure.len(), planned.release.len()), (0, 0));
}

#[test]
fn addresses_of_other_clusters_are_not_taken_over() {
    let theirs = json!({"k8s-azure-service": "default/test1", "k8s-azure-cluster-name": "other"});
    // For a public IP with the name of the Service's own, the tag of the cluster alone decides.
    for tags in [theirs, json!({"k8s-azure-cluster-name": "other"})] {
        let pip = public_ip(&cluster(), "testCluster-atest1", Some("20.0.0.1"), tags);
        let refusal = refused(&web(), &[pip]);
        assert!(matches!(refusal, Refusal::PublicIpOfOtherCluster { cluster, .. } if cluster == "other"));
    }
}

#[test]
fn a_service_tag_that_azure_would_refuse_is_told() {
    let many: Vec<String> = (0..20).map(|n| format!("default/service-{n}")).collect();
    let pip = public_ip(&cluster(), "pip1", Some("20.0.0.1"), tags(&many.join(",")));
    let refusal = refused(&web().annotate("azure-pip-name", "pip1"), &[pip]);
    assert!(matches!(refusal, Refusal::PublicIpSharedByTooMany { limit: 256, .. }), "{refusal}");
    // With `,default/test1` behind them, the longest users that fit, and one character more.
    for (length, fits) in [(242, true), (243, false)] {
        let users = format!("default/{}", "s".repeat(length - "default/".len()));
        let pip = public_ip(&cluster(), "pip1", Some("20.0.0.1"), tags(&users));
        let planned = run_in(&cluster(), &web().annotate("azure-pip-name", "pip1"), &[pip]);
        assert_eq!(planned.is_ok(), fits, "{length}: {planned:?}");
    }
}

/// LB-079.
#[test]
fn a_family_that_is_given_up_releases_its_address() {
    let v6 = public_ip(&cluster(), "testCluster-atest1-IPv6", Some("2001:db8::1"), tags("default/test1"));
    let planned = run(&web(), &[own(), v6]);
    assert_eq!(told(&planned.release), ["Delete testCluster-atest1-IPv6"]);
}
