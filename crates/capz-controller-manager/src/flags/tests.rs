//! The command line, flag by flag.

use super::*;

fn read(arguments: &[&str]) -> CommandLine {
    match parse(std::iter::once("capz").chain(arguments.iter().copied()).map(Into::into)) {
        Ok(Start::Manager(line)) => *line,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

fn settings(arguments: &[&str], variables: &'static [(&str, &str)]) -> Settings {
    let variable = move |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    read(arguments).settings(&ProcessEnvironment::with_variables(variable))
}

#[test]
fn without_a_word_all_is_as_it_was() {
    let line = read(&[]);
    assert_eq!(line.problems(), []);
    assert!(!line.flags.enable_tracing && read(&["--enable-tracing"]).flags.enable_tracing);
    assert_eq!(settings(&[], &[]), Settings::default());
    let flags = &line.flags;
    assert!(!flags.leader_elect && !flags.insecure_diagnostics && flags.verbosity == 0);
    let json = read(&["--logging-format=json"]).flags.logging_format;
    assert_eq!((flags.logging_format.as_str(), json.as_str()), ("text", "json"));
    assert_eq!(
        (line.health_address(), line.diagnostics_address()),
        (listen_address(":9440"), listen_address(":8443"))
    );
    assert_eq!(
        (line.webhook_address().port(), read(&["--webhook-port=0"]).webhook_address().port()),
        (9443, 9443)
    );
    let election = line.election("capz-system".to_owned(), "a_1".to_owned());
    assert_eq!(
        (election.namespace.as_str(), election.name.as_str()),
        ("capz-system", "controller-leader-election-capz")
    );
    let other =
        read(&["--leader-election-namespace=other"]).election("capz-system".to_owned(), "a_1".to_owned());
    assert_eq!(other.namespace, "other");
}

/// The arguments of the established manifest, and more.
#[test]
fn flags_and_environment_become_settings() {
    let arguments = [
        "--leader-elect",
        "--diagnostics-address=:8443",
        "--insecure-diagnostics=false",
        "--feature-gates=MachinePool=true,AKSResourceHealth=false,EdgeZone=false,ASOAPI=true,APIServerILB=true,SkipMachinePoolModelReconciliation=false",
        "--v=0",
        "--namespace=a",
        "--watch-filter",
        "b",
        "--azurecluster-concurrency=2",
        "--azuremachine-concurrency=0",
        "--azuremachinepool-concurrency=4",
        "--azuremachinepoolmachine-concurrency=5",
        "--debouncing-timer=1s",
        "--sync-period=1h",
        "--reconcile-timeout=2m",
        "--service-reconcile-timeout=3s",
        "--api-call-timeout=4s",
        "--reconciler-requeue=5s",
        "--feature-gates",
        "EdgeZone=true",
        "--disable-controllers-or-webhooks=DisableASOSecretController",
        "--disable-controllers-or-webhooks=DisableAzureJSONMachineController",
    ];
    let variables = &[
        ("AZURE_SUBSCRIPTION_ID", "123\n"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/token"),
        ("AZURE_AUTHORITY_HOST", "https://login.example/"),
    ];
    assert_eq!(read(&arguments).problems(), []);
    let defaults = Settings::default();
    let expected = Settings {
        namespace: Some("a".to_owned()),
        watch_filter: Some("b".to_owned()),
        concurrency: Concurrency { clusters: 2, machines: 1, pools: 4, pool_machines: 5 },
        debouncing: Duration::from_secs(1),
        sync_period: Duration::from_secs(3600),
        timeouts: Timeouts { reconcile: Duration::from_secs(120), requeue: Duration::from_secs(5) },
        gates: Gates { api_server_ilb: true, edge_zone: true, ..Gates::default() },
        machine_secrets: false,
        aso_secrets: false,
        subscription: Some("123".to_owned()),
        federated_token_file: "/token".into(),
        endpoints: Endpoints {
            authority_host: Some("https://login.example/".to_owned()),
            ..defaults.endpoints
        },
    };
    assert_eq!(settings(&arguments, variables), expected);
    assert_eq!(settings(&["--reconcile-timeout=0"], &[]), Settings::default());
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy_that_holds() {
    for (arguments, words) in [
        (&["--feature-gates=AKS=false,EdgeZone=true"][..], "(pass --feature-gates=EdgeZone=true)"),
        (
            &["--feature-gates=EdgeZones=true"],
            "there is no feature gate \"EdgeZones\" (pass --feature-gates=EdgeZone=true; there are MachinePool",
        ),
        (&["--feature-gates=EdgeZone"], "(pass --feature-gates=EdgeZone=true)"),
        (
            &["--disable-controllers-or-webhooks=DisableASOSecretControllers"],
            "is not one of DisableASOSecretController",
        ),
        (&["--leader-elect", "--leader-elect-lease-duration=5s"], "must be longer than"),
        (&["--tls-min-version=1.3"], "is not one of VersionTLS10"),
        (&["--tls-cipher-suites=TLS_A"], "no cipher suite is called TLS_A"),
        (&["--health-addr=9440"], "--health-addr=9440: `9440` is no address"),
        (&["--diagnostics-address=here"], "(pass --diagnostics-address=:8443)"),
        (&["--sync-period=0"], "would never rest"),
        (&["--azurecluster-concurrenc=1"], "did you mean --azurecluster-concurrency?"),
        (&["--webhook-port=70000"], "70000 is not in 0..=65535"),
    ] {
        let problems = read(arguments).problems();
        let [problem] = &problems[..] else { panic!("{arguments:?}: {problems:?}") };
        let text = problem.to_string();
        assert!(text.contains(words) && !text.contains('\n'), "{text}");
        let name = |argument: &str| argument.split('=').next().unwrap_or_default().to_owned();
        let misread = name(&problem.given);
        let mut all: Vec<&str> = arguments.to_vec();
        all.retain(|argument| {
            name(argument) != misread
                && !problem.arguments.iter().any(|mended| name(mended) == name(argument))
        });
        all.extend(problem.arguments.iter().map(String::as_str));
        assert_eq!(read(&all).problems(), [], "after {:?}", problem.arguments);
    }
    // Not validated without leader election.
    assert_eq!(read(&["--leader-elect-lease-duration=5s"]).problems(), []);
}

#[test]
fn flags_without_an_effect_are_told_with_the_reason() {
    for (argument, words) in [
        (
            "--bootstrap-config-gvk=RKE2Config.v1beta1.bootstrap.cluster.x-k8s.io",
            "deprecated and no longer needed",
        ),
        ("--service-reconcile-timeout=12s", "side by side"),
        ("--api-call-timeout=2s", "from its beginning"),
        ("--profiler-address=localhost:6060", "no profiling endpoint"),
        ("--logtostderr=true", "log lines have one form"),
    ] {
        let line = read(&[argument]);
        let [(flags, reason)] = &line.without_effect[..] else { panic!("{argument}: {line:?}") };
        assert!(argument.contains(flags[0]) && reason.contains(words), "{argument}: {reason}");
        assert_eq!(line.problems(), []);
    }
}

#[test]
fn the_subcommand_of_the_established_init_container_is_known() {
    let arguments = ["capz", "migrate-aso-crds"];
    assert!(matches!(parse(arguments.map(Into::into)), Ok(Start::MigrateAsoCrds)));
    let version = parse(["capz", "--leader-elect", "--version"].map(Into::into));
    assert!(matches!(version, Ok(Start::PrintVersion)), "{version:?}");
    let help = parse(["capz", "--help"].map(Into::into)).unwrap_err();
    assert!(
        matches!(help, EarlyExit::Print(text) if text.contains("--webhook-cert-dir") && text.contains("migrate-aso-crds"))
    );
}

#[test]
fn the_kubeconfig_is_looked_for_as_controller_runtime_looks() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".kube")).unwrap();
    let own = home.path().join(".kube/config");
    std::fs::write(&own, "").unwrap();
    let home = home.path().to_str().unwrap().to_owned();
    let found = |arguments: &[&str], set: &'static [&str]| {
        let home = home.clone();
        let variable = move |name: &str| match name {
            "HOME" => Some(home.clone()),
            name => set.contains(&name).then(|| "x".to_owned()),
        };
        read(arguments).kubeconfig(&ProcessEnvironment::with_variables(variable))
    };
    assert_eq!(found(&["--kubeconfig=a"], &["KUBECONFIG"]), "a");
    assert_eq!(found(&[], &["KUBECONFIG", "KUBERNETES_SERVICE_HOST"]), "x");
    assert_eq!(found(&[], &["KUBERNETES_SERVICE_HOST"]), "");
    assert_eq!(found(&[], &[]), own.to_str().unwrap());
}
