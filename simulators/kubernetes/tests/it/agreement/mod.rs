//! One suite of behaviours, run against the simulator and against a real kube-apiserver.
//!
//! The real one is started from `KUBEBUILDER_ASSETS` (a folder with `etcd` and `kube-apiserver` of the minor version
//! that the simulator reports). If the variable is unset that half is skipped with a message; in CI it fails. Where the
//! two differ, the simulator is wrong.

mod apply;
mod bodies;
mod caller;
mod changes;
mod collections;
mod conversions;
mod custom;
mod documents;
mod exchanges;
mod kinds;
mod kubelets;
mod lifecycle;
mod listening;
mod objects;
mod patches;
mod pods;
mod sequences;
mod services;
mod watches;
mod webhooks;

use caller::Caller;
use kubernetes_simulator::{Collection, Kubernetes, Options};

/// Each behaviour is a test of the simulator and a step of the run against a real server.
macro_rules! behaviours {
    ($($file:ident: $($name:ident),* $(,)?;)*) => {
        mod simulator {
            $($(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    let kubernetes = super::alone();
                    let client = kube::Client::new(kubernetes.router(), "default");
                    super::$file::$name(super::Caller::new(client, stringify!($name)).await).await;
                }
            )*)*
        }

        /// Starts every behaviour. Each ends before the next one starts, except for those that mostly wait.
        async fn start_all(client: &kube::Client) -> Vec<Running> {
            let mut running = vec![];
            $($(
                let caller = Caller::new(client.clone(), stringify!($name)).await;
                let mut task = Running::new(stringify!($name), $file::$name(caller));
                if stringify!($file) != "kubelets" {
                    task.finish().await;
                }
                running.push(task);
            )*)*
            running
        }
    };
}

/// The simulator as an API server alone: the real one has no controllers beside it either.
fn alone() -> Kubernetes {
    Kubernetes::new(Options { collection: Collection::Off, ..Options::default() })
}

/// How many random sequences on objects of random kinds are run on both.
const RANDOM_LIVES: u64 = 60;

/// A behaviour at the real server.
struct Running {
    name: String,
    task: Option<tokio::task::JoinHandle<()>>,
    failed: bool,
}

impl Running {
    fn new(name: impl Into<String>, behaviour: impl Future<Output = ()> + Send + 'static) -> Running {
        Running { name: name.into(), task: Some(tokio::spawn(behaviour)), failed: false }
    }

    async fn finish(&mut self) {
        if let Some(task) = self.task.take() {
            self.failed = task.await.is_err();
        }
    }
}

behaviours! {
    objects:
        create_and_create_again, names_are_generated, update_under_a_version, update_without_a_version,
        update_of_another_name, an_update_that_changes_nothing_keeps_the_version, status_is_apart,
        a_finalizer_holds_an_object, deletion_under_preconditions, a_lease_is_taken_by_one,
        a_dry_run_stores_nothing, what_is_not_there, a_definition_has_a_schema_for_each_version,
        the_server_is_a_service, everything_is_allowed_to_administrators, a_workload_is_scaled,
        claims_and_volumes_are_protected;
    bodies:
        unknown_members_are_dropped, wrong_types_are_refused, null_and_empty_are_nothing, objects_come_in_protobuf,
        objects_come_in_yaml;
    patches:
        merge_patch, json_patch, strategic_patch_of_a_service, strategic_order, strategic_patch_of_addresses,
        patch_under_a_version, patches_that_are_none;
    collections:
        pages, labels_select, fields_select, a_collection_is_deleted, tables;
    watches:
        changes_come_in_order, a_watch_resumes, a_watch_follows_its_selector, a_watch_ends_in_time;
    services:
        cluster_addresses, node_ports, node_ports_follow_the_type, health_check_ports, refusals,
        nodes_are_tainted, nodes_have_ranges, events_in_both_groups;
    apply:
        apply_creates_and_repeats, apply_removes_what_it_drops, apply_conflicts, apply_after_an_update, apply_removes_what_it_was_given,
        apply_without_a_manager;
    lifecycle:
        deletions_wait_for_a_collector, a_finalizer_of_its_own_and_the_collectors,
        a_namespace_waits_for_its_finalizers, a_service_account_has_tokens, a_job_ends_in_its_steps;
    webhooks:
        a_mutating_webhook_changes_objects, a_mutating_webhook_makes_a_mistake,
        a_collection_is_deleted_up_to_what_is_refused, webhooks_see_custom_resources_in_their_version,
        webhooks_see_what_subresources_take, a_validating_webhook_refuses, a_webhook_that_is_down;
    pods:
        a_pod_is_bound_once, a_pod_has_time_to_end, a_pod_is_evicted, a_budget_is_respected;
    custom:
        unknown_members_go_and_defaults_come, values_are_held_against_the_schema,
        generation_counts_changes_of_all_but_status_and_metadata, scale_follows_the_paths_of_the_definition,
        columns_are_those_of_the_definition, strategic_patches_are_for_built_in_kinds,
        apply_knows_lists_and_maps_of_custom_kinds,
        apply_keeps_what_is_nobodys_in_an_empty_object, several_versions_show_one_object, definitions_must_be_sound,
        a_name_in_use_is_not_granted, a_definition_takes_its_objects_along,
        fields_of_custom_kinds_are_not_selected_unless_named, watches_end_with_their_kind,
        deprecated_versions_are_warned_of;
    conversions:
        a_webhook_shows_objects_in_every_version, a_webhook_is_asked_for_one_object_at_a_time,
        a_webhook_changes_labels_and_annotations_alone, a_webhook_that_fails, a_webhook_of_the_older_review,
        watches_and_tables_show_converted_objects, the_storage_version_changes_under_a_webhook,
        defaults_are_those_of_the_stored_version, fields_have_owners_in_every_version,
        admission_sees_what_the_conversion_made, a_conversion_webhook_that_is_down;
    kubelets:
        a_machine_becomes_a_node, a_silent_node_is_unknown, pretend_pods_answer;
}

#[test]
fn kube_apiserver() {
    let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") else {
        assert!(
            std::env::var_os("CI").is_none(),
            "KUBEBUILDER_ASSETS is not set: in CI the suite must run against a real kube-apiserver"
        );
        println!("skipped: KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (count, agreeing, failures) = runtime.block_on(async {
        let server = real_kubernetes::RealKubernetes::start(assets.as_ref(), directory.path()).await.unwrap();
        let client = server.client().await.unwrap();
        let mut running = start_all(&client).await;
        let simulator = kube::Client::new(alone().router(), "default");
        running.push(Running::new("documents", documents::agree(simulator, client.clone())));
        let simulator = kube::Client::new(alone().router(), "default");
        running.push(Running::new("changes", changes::agree(simulator, client.clone())));
        for seed in 1..=4 {
            let kubernetes = alone();
            let simulator = kube::Client::new(kubernetes.router(), "default");
            let agreement = sequences::agree(simulator, client.clone(), seed);
            running.push(Running::new(format!("sequence {seed}"), agreement));
        }
        for seed in 1..=RANDOM_LIVES {
            let simulator = kube::Client::new(alone().router(), "default");
            let lives = exchanges::random_lives(simulator, client.clone(), seed);
            running.push(Running::new(format!("random lives {seed}"), lives));
        }
        let simulator = kube::Client::new(alone().router(), "default");
        let (agreeing, differing) = exchanges::lives(simulator, client.clone()).await;
        for behaviour in &mut running {
            behaviour.finish().await;
        }
        let failed = running.iter().filter(|behaviour| behaviour.failed);
        let failures: Vec<String> = failed.map(|behaviour| behaviour.name.clone()).chain(differing).collect();
        let behaviours = running.iter().filter(|behaviour| !behaviour.failed).count();
        (running.len() + agreeing, behaviours + agreeing, failures)
    });
    println!("{agreeing} checks agree");
    assert!(failures.is_empty(), "{} of {count} checks differ:\n{}", failures.len(), failures.join("\n"));
}
