//! The command line, flag by flag. Whole command lines are in `tests/corpus/command-lines`.

use super::ranges::Ranges;
use super::*;
use crate::configuration::{SecretKey, Sources};

fn read(arguments: &[&str]) -> Result<CommandLine, EarlyExit> {
    parse(std::iter::once("ccm").chain(arguments.iter().copied()).map(Into::into))
}

fn good(arguments: &[&str]) -> CommandLine {
    read(arguments).unwrap_or_else(|instead| panic!("{arguments:?}: {instead:?}"))
}

fn help() -> String {
    match read(&["--help"]) {
        Err(EarlyExit::Print(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn flags_are_taken_in_all_of_gos_spellings() {
    let line =
        good(&["--cloud-config", "a.json", "--cluster-name=x", "--leader-elect=false", "--v=4", "--dry-run"]);
    assert_eq!(line.flags.cloud_config, "a.json");
    assert_eq!(line.flags.cluster_name, "x");
    assert!(!line.flags.leader_elect && line.flags.dry_run);
    assert_eq!(line.flags.verbosity, 4);
    assert_eq!(good(&["-v=2"]).flags.verbosity, 2);
    assert_eq!(good(&["-v", "3"]).flags.verbosity, 3);
    let twice = good(&["--cluster-name=a", "--cluster-name=b"]);
    assert_eq!(twice.flags.cluster_name, "b", "the last one wins");
}

#[test]
fn defaults_are_those_of_the_program_that_this_one_replaces() {
    let flags = good(&[]).flags;
    assert_eq!(flags.cluster_name, "kubernetes");
    assert_eq!(flags.secure_port, 10258);
    assert_eq!(flags.leader_elect_lease_duration, Duration::from_secs(15));
    assert_eq!(flags.leader_elect_resource_name, "cloud-controller-manager");
    assert_eq!(flags.node_status_update_frequency, Duration::from_secs(300));
    assert_eq!(flags.azure_resync_period, Duration::from_secs(300), "one of our own");
    assert_eq!(good(&["--azure-resync-period=0"]).flags.azure_resync_period, Duration::ZERO);
    assert!(flags.leader_elect && !flags.allocate_node_cidrs);
}

/// NODE-276: every argument that cannot be parsed is named, with a valid form.
#[test]
fn node_276_arguments_that_say_nothing_are_all_named_at_once() {
    for (arguments, words) in [
        (&["--no-such-flag"][..], "--no-such-flag: unknown flag (--help lists the flags)"),
        (
            &["--cluster-nam=x"],
            "--cluster-nam=x: unknown flag; did you mean --cluster-name? (pass --cluster-name=x)",
        ),
        (&["--cluster_name=x"], "did you mean --cluster-name?"),
        (&["--authentication-kubeconfg", "x"], "(pass --authentication-kubeconfig=x)"),
        (&["--leader-elect-lease-duration=10"], "is no duration"),
        (&["--leader-elect-lease-duration", "20"], "(pass --leader-elect-lease-duration=20s)"),
        (
            &["--leader-elect=maybe"],
            "--leader-elect=maybe: `maybe` is neither true nor false (pass --leader-elect=true)",
        ),
        (&["--profiling=maybe"], "(pass --profiling=true)"),
        (
            &["--secure-port=70000"],
            "--secure-port=70000: 70000 is not in 0..=65535 (pass --secure-port=10258)",
        ),
        (&["--v=two"], "--v=two: is no whole number (pass --v=0)"),
        (&["-v=two"], "--v=two: is no whole number"),
        (&["--bind-address=here"], "(pass --bind-address=0.0.0.0)"),
        (&["--cluster-name"], "--cluster-name: needs a value (pass --cluster-name=kubernetes)"),
        (&["stray"], "stray: unknown argument (--help lists the flags)"),
        (&["-x"], "-x: unknown argument"),
    ] {
        let mut all = vec!["--cloud-config=x"];
        all.extend(arguments);
        let problems = good(&all).problems();
        let [problem] = &problems[..] else { panic!("{arguments:?}: {problems:?}") };
        let text = problem.to_string();
        assert!(text.contains(words) && !text.contains('\n'), "{text}");
    }
    let several = [
        "--cloud-config=x",
        "--cloud-provider=external",
        "--no-such",
        "value",
        "--cloud-config-secret-name=s",
        "--cloud-config-key=",
        "--route-reconciliation-period=10",
        "--cluster-cidr=foo",
        "--node-monitor-period=abc",
        "--v=two",
    ];
    let given: Vec<String> = good(&several).problems().into_iter().map(|problem| problem.given).collect();
    let expected = [
        "--no-such=value",
        "--route-reconciliation-period=10",
        "--node-monitor-period=abc",
        "--v=two",
        "--cloud-provider=external",
        "--cloud-config-key",
        "--cluster-cidr=foo",
    ];
    assert_eq!(given, expected);
}

/// NODE-277: flags that have no effect because of other flags are named.
#[test]
fn node_277_flags_that_nobody_heeds_are_named() {
    let gives = ["--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16"];
    for (more, flag, words) in [
        (
            &["--cidr-allocator-type=CloudAllocator", "--node-cidr-mask-size-ipv4=26"][..],
            "node-cidr-mask-size-ipv4",
            "CloudAllocator",
        ),
        (&["--node-cidr-mask-size-ipv6=80"], "node-cidr-mask-size-ipv6", "no IPv6 range"),
        (
            &["--allocate-node-cidrs=false", "--service-cluster-ip-range=10.0.0.0/16"],
            "service-cluster-ip-range",
            "gives nodes no ranges",
        ),
    ] {
        let line = good(&[&gives[..], more].concat());
        let [(flags, reason)] = &line.without_effect[..] else { panic!("{:?}", line.without_effect) };
        assert!(flags == &[flag] && reason.contains(words), "{flags:?}: {reason}");
    }
    let line = good(&[&gives[..], &["--node-cidr-mask-size-ipv4=26"]].concat());
    assert_eq!(line.without_effect, []);
}

/// NODE-137, NODE-278.
#[test]
fn node_137_values_that_cannot_be_are_refused_with_a_remedy_that_holds() {
    for (arguments, words) in [
        (&["--cloud-provider="][..], "--cloud-provider cannot be empty"),
        (&["--cloud-provider=aws"], "--cloud-provider=aws: this program knows no cloud but azure"),
        (
            &["--cloud-config="],
            "--cloud-config: --cloud-config cannot be empty when --enable-dynamic-reloading is not set to true and no \
             Secret is named (pass --cloud-config=/etc/kubernetes/azure.json",
        ),
        (
            &["--cloud-config-secret-name=s", "--cloud-config-secret-namespace="],
            "--cloud-config-secret-namespace: it",
        ),
        (&["--cluster-name="], "--cluster-name: names in Azure are made of it"),
        (
            &["--allocate-node-cidrs=true"],
            "--cluster-cidr: no range is given, and --allocate-node-cidrs=true gives",
        ),
        (
            &["--configure-cloud-routes=true"],
            "--cluster-cidr: no range is given, and --configure-cloud-routes=true",
        ),
        (
            &["--cluster-cidr=10.244.0.0"],
            "--cluster-cidr=10.244.0.0: \"10.244.0.0\" is no range of addresses",
        ),
        (&["--cluster-cidr=10.1.0.0/16,10.2.0.0/16"], "one range of each family"),
        (&["--cluster-cidr=10.1.0.0/16,fd00::/56,fd01::/56"], "(pass --cluster-cidr=10.1.0.0/16,fd00::/56"),
        (
            &["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/25"],
            "--cluster-cidr=10.0.0.0/25: 10.0.0.0/25 has no room for one range of /24, as each node gets it (pass --cluster-cidr=10.0.0.0/16",
        ),
        (
            &["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/25", "--node-cidr-mask-size-ipv4=20"],
            "--node-cidr-mask-size-ipv4=20: 10.0.0.0/25 has no room",
        ),
        (
            &["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16", "--node-cidr-mask-size-ipv4=33"],
            "an IPv4 mask is at most /32",
        ),
        (
            &[
                "--allocate-node-cidrs",
                "--cluster-cidr=10.244.0.0/16",
                "--service-cluster-ip-range=10.0.0.0/8",
            ],
            "--service-cluster-ip-range=10.0.0.0/8: it holds all of --cluster-cidr=10.244.0.0/16",
        ),
        (
            &["--allocate-node-cidrs", "--cluster-cidr=fd00::/40"],
            "--node-cidr-mask-size-ipv6=64: new CIDR set failed; the node CIDR size is too big",
        ),
        (
            &["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16", "--cidr-allocator-type=Cloud"],
            "--cidr-allocator-type=Cloud: is neither RangeAllocator nor CloudAllocator",
        ),
        (
            &[
                "--allocate-node-cidrs",
                "--cluster-cidr=10.0.0.0/16",
                "--service-cluster-ip-range=10.2.0.0/16,10.3.0.0/16",
            ],
            "--service-cluster-ip-range=10.2.0.0/16,10.3.0.0/16: there may be one range of each family",
        ),
        (
            &[
                "--allocate-node-cidrs",
                "--cluster-cidr=10.0.0.0/16",
                "--service-cluster-ip-range=10.2.0.0/16,fd00::/64,x",
            ],
            "can not contain more than two entries",
        ),
        (&["--route-reconciliation-period=0"], "--route-reconciliation-period=0: would never rest"),
        (&["--concurrent-service-syncs=2"], "--concurrent-service-syncs is limited to 1 only"),
        (
            &["--controllers=nonsense"],
            "known controllers: cloud-node-controller or cloud-node, cloud-node-lifecycle",
        ),
        (&["--controllers=*,-cloud-nodes"], "(pass --controllers=*,-cloud-node)"),
        (&["--controllers=*,-node-ipam-controller"], "(pass --controllers=*,-node-ipam)"),
        (&["--controllers=service-lb"], "(pass --controllers=service-lb-controller)"),
        (&["--controllers=*,-cloud-node-life"], "(pass --controllers=*,-cloud-node-lifecycle-controller)"),
        (&["--node-monitor-period=0"], "--node-monitor-period=0: "),
        (&["--leader-elect-resource-lock=endpoints"], "must be \"leases\""),
        (&["--leader-elect-lease-duration=5s"], "must be longer than"),
        (&["--leader-elect-retry-period=9s"], "must be longer than 1.2 times"),
        (&["--leader-elect-retry-period=0"], "without a pause"),
        (&["--tls-cert-file=x"], "given together"),
        (&["--tls-private-key-file=x"], "given together"),
        (&["--tls-min-version=1.3"], "--tls-min-version=1.3: is not one of"),
        (&["--log-format=xml"], "--log-format=xml: is neither text nor json"),
    ] {
        let mut all = vec!["--cloud-config=x"];
        all.extend(arguments);
        let problems = good(&all).problems();
        let [problem] = &problems[..] else { panic!("{arguments:?}: {problems:?}") };
        let text = problem.to_string();
        assert!(text.contains(words) && text.contains(" (pass --"), "{text}");
        let name = |argument: &str| argument.split('=').next().unwrap_or_default().to_owned();
        all.retain(|argument| !problem.arguments.iter().any(|mended| name(mended) == name(argument)));
        all.extend(problem.arguments.iter().map(String::as_str));
        assert_eq!(good(&all).problems(), [], "after {:?}", problem.arguments);
    }
    assert_eq!(good(&["--cloud-config=x"]).problems(), [], "the defaults are fine");
    let without = [
        "--cloud-config=x",
        "--controllers=*,-route,-node-ipam",
        "--cluster-cidr=10.0.0.0",
        "--allocate-node-cidrs",
    ];
    assert_eq!(good(&without).problems(), [], "unused flags are not validated");
}

/// The chart's own arguments, and their defaults.
#[test]
fn ranges_of_pods_come_from_the_flags() {
    let nets = |all: &[&str]| -> Vec<ipnet::IpNet> { all.iter().map(|net| net.parse().unwrap()).collect() };
    let chart =
        ["--allocate-node-cidrs=true", "--configure-cloud-routes=true", "--cluster-cidr=10.244.0.0/16"];
    let ranges = good(&chart).ranges().unwrap();
    assert_eq!((ranges.cluster.clone(), ranges.routes), (nets(&["10.244.0.0/16"]), true));
    let ipam = ranges.ipam.unwrap();
    assert_eq!((ipam.cluster, ipam.masks), (ranges.cluster, Some(cloud::MaskSizes { v4: 24, v6: 64 })));
    let both = good(&[
        "--allocate-node-cidrs",
        "--cluster-cidr=10.244.1.0/16, fd00:1::/56",
        "--service-cluster-ip-range=10.0.0.0/16,nothing",
        "--node-cidr-mask-size-ipv4=26",
        "--controllers=*,-route",
    ]);
    let ranges = both.ranges().unwrap();
    assert!(!ranges.routes);
    let ipam = ranges.ipam.unwrap();
    assert_eq!(
        (ipam.cluster, ipam.reserved),
        (nets(&["10.244.0.0/16", "fd00:1::/56"]), nets(&["10.0.0.0/16"]))
    );
    assert_eq!(
        (ipam.masks, ranges.unreadable),
        (Some(cloud::MaskSizes { v4: 26, v6: 64 }), vec!["nothing".to_owned()])
    );
    // The sets of machines have the masks, also if the default would not fit.
    let by_sets =
        ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/25", "--cidr-allocator-type=CloudAllocator"];
    assert_eq!(good(&by_sets).ranges().unwrap().ipam.unwrap().masks, None);
    assert!(good(&["--cluster-cidr=10.0.0.0/8"]).ranges().unwrap().routes, "asked for by the ranges");
    assert_eq!(good(&[]).ranges().unwrap(), Ranges::default(), "without ranges nothing was asked");
    let off = good(&["--cluster-cidr=10.0.0.0/8", "--configure-cloud-routes=false"]);
    assert_eq!(off.ranges().unwrap(), Ranges::default());
}

#[test]
fn help_tells_flags_with_effect_from_those_without() {
    let help = help();
    let (with, without) = help.split_once("Accepted without effect: ").unwrap();
    for flag in ["--cloud-config ", "--controllers ", "--leader-elect[", "--secure-port ", "--dry-run["] {
        assert!(with.contains(flag) && !without.contains(flag), "{flag}\n{help}");
    }
    for (_, flags) in ACCEPTED.0 {
        for (flag, _) in *flags {
            assert!(
                !with.contains(&format!("--{flag} ")) && without.contains(&format!("--{flag}")),
                "{flag}"
            );
        }
    }
    assert!(!help.contains("The flags that have an effect"), "{help}");
    let routes = help.split("--configure-cloud-routes").nth(1).unwrap();
    let routes = routes.split("\n      --").next().unwrap();
    assert!(routes.contains("--cluster-cidr") && !routes.contains("[default"), "{routes}");
}

#[test]
fn every_security_flag_without_effect_has_a_reason_of_its_own() {
    for (flag, words) in [
        ("--client-ca-file=x", "bearer token"),
        ("--requestheader-client-ca-file=x", "front proxies"),
        ("--authorization-always-allow-paths=/healthz", "need no authorization"),
        ("--authentication-kubeconfig=x", "asked of the Kubernetes API"),
        ("--tls-cipher-suites=TLS_A", "cipher suites"),
        ("--profiling", "no profiling endpoint"),
    ] {
        let line = good(&[flag]);
        let [(_, reason)] = &line.without_effect[..] else { panic!("{flag}: {:?}", line.without_effect) };
        assert!(reason.contains(words), "{flag}: {reason}");
    }
}

#[test]
fn the_first_entry_that_names_a_controller_decides() {
    assert!(!good(&["--controllers=-service,service"]).enabled("service-lb-controller"));
    assert!(!good(&["--controllers=cloud-node"]).enabled("service-lb-controller"));
    assert!(good(&["--controllers=cloud-node"]).enabled("cloud-node-controller"));
}

/// NODE-138, for the flags: which documents a command line names.
#[test]
fn node_138_a_file_and_a_secret_can_be_named() {
    let secret = |namespace: &str, name: &str, key: &str| {
        let [namespace, name, key] = [namespace, name, key].map(str::to_owned);
        Some(SecretKey { namespace, name, key })
    };
    let usual = secret("kube-system", "azure-cloud-provider", "cloud-config");
    for (arguments, file, expected) in [
        (&["--cloud-config=a.json"][..], "a.json", None),
        (&["--cloud-config=a.json", "--enable-dynamic-reloading"], "a.json", None),
        (&["--enable-dynamic-reloading=true"], "", usual),
        (&["--cloud-config-secret-name=s"], "", secret("kube-system", "s", "cloud-config")),
        (
            &[
                "--cloud-config=a.json",
                "--cloud-config-secret-name=s",
                "--cloud-config-secret-namespace=n",
                "--cloud-config-key=k",
            ],
            "a.json",
            secret("n", "s", "k"),
        ),
    ] {
        let line = good(arguments);
        assert_eq!(line.problems(), [], "{arguments:?}");
        assert_eq!(Sources::of(&line.flags), Sources { file: file.to_owned(), secret: expected });
    }
}
