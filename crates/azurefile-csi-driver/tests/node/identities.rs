//! Tickets of identities in place of keys.

use azurefile_csi_driver::node::StoredSecret;
use tonic::Code;

use crate::world::{STAGING, TARGET, TOKENS, VOLUME, World, fails, publish, stage};

const TICKET: &str = "sec=krb5,cruid=0,upcall_target=mount";

/// FILE-122. Sections 4.6 and 4.7: the managed identity of the machine.
#[tokio::test]
async fn a_managed_identity_gets_a_ticket_for_the_public_name() {
    let world = World::new();
    let host = "acc.privatelink.file.core.windows.net";
    let service = volumes_node::simulated::FileService::new("acc", "none", &["share"]);
    world.machine.serve(host, service);
    world
        .stage(stage(&[("mountWithManagedIdentity", "true"), ("clientID", "id"), ("server", host)]))
        .await
        .unwrap();
    let journal = world.machine.take_journal();
    assert_eq!(journal[0], "azfilesauthmanager set https://acc.file.core.windows.net --imds-client-id id");
    assert!(world.mounted(STAGING).unwrap().ends_with(&format!("{TICKET},username=id")), "{journal:?}");

    let world = World::new();
    let without = stage(&[("mountWithManagedIdentity", "true")]);
    fails(world.stage(without).await, Code::InvalidArgument, "needs clientID");
}

/// Section 4.7: the token of a Secret is given to the program again when it is another one, before the mount is looked at.
#[tokio::test]
async fn a_token_of_a_secret_is_renewed_when_it_changes() {
    let world = World::new();
    let store = |token: &str| {
        let secret = StoredSecret { token: Some(token.to_owned().into()), ..StoredSecret::default() };
        world.played.0.lock().secrets.insert("default/tokens".to_owned(), secret);
    };
    store("first-token");
    let context = [("mountWithOAuthToken", "true"), ("secretName", "tokens")];
    world.stage(stage(&context)).await.unwrap();
    let set = "azfilesauthmanager set https://acc.file.core.windows.net <withheld>";
    assert_eq!(world.machine.take_journal()[0], set);
    world.publish(publish(&context, TARGET)).await.unwrap();
    assert!(world.machine.take_journal().is_empty());
    store("second-token");
    world.publish(publish(&context, TARGET)).await.unwrap();
    assert_eq!(world.machine.take_journal(), [set]);
}

/// Section 4.6, step 4: the pod's token is in a file for the program's own user, which goes with the volume.
#[tokio::test]
async fn the_pods_token_is_in_a_private_file() {
    let world = World::new();
    world.played.0.lock().place.tenant = "tenant".to_owned();
    let context = [
        ("mountWithWorkloadIdentityToken", "true"),
        ("clientID", "client"),
        ("csi.storage.k8s.io/serviceAccount.tokens", TOKENS),
    ];
    world.publish(publish(&context, TARGET)).await.unwrap();
    let journal = world.machine.take_journal();
    let file = journal[0].split(' ').find(|word| word.starts_with("/var/lib")).unwrap().to_owned();
    let name = file.strip_prefix("/var/lib/kubelet/plugins/file.csi.azure.com/client-acc-").unwrap();
    assert!(name.len() == 16 && name.chars().all(|letter| letter.is_ascii_hexdigit()), "{name}");
    assert_eq!(
        (world.machine.mode(&file), world.machine.text(&file).as_str()),
        (0o600, "service-account-token")
    );
    assert!(journal[0].contains("--workload-identity --tenant-id tenant --client-id client --token-file"));
    assert!(!format!("{journal:?}").contains("service-account-token"));
    assert!(world.mounted(TARGET).unwrap().ends_with(TICKET));

    // The same token again makes no new ticket; another one does.
    world.publish(publish(&context, TARGET)).await.unwrap();
    assert!(world.machine.take_journal().is_empty());
    let newer = TOKENS.replace("service-account-token", "newer-token");
    let context = [context[0], context[1], ("csi.storage.k8s.io/serviceAccount.tokens", newer.as_str())];
    world.publish(publish(&context, TARGET)).await.unwrap();
    assert_eq!(world.machine.take_journal().len(), 1);

    world.unpublish(TARGET).await.unwrap();
    world.unstage().await.unwrap();
    assert!(!world.machine.exists(&file), "{VOLUME}");
}

/// The kubelet may give tokens among the secrets (`serviceAccountTokenInSecrets`).
#[tokio::test]
async fn tokens_may_be_among_the_secrets() {
    let world = World::new();
    world.played.0.lock().place.tenant = "tenant".to_owned();
    let mut request = publish(&[("mountWithWorkloadIdentityToken", "true"), ("clientID", "client")], TARGET);
    request.secrets = crate::world::map(&[("csi.storage.k8s.io/serviceAccount.tokens", TOKENS)]);
    world.publish(request).await.unwrap();
    assert!(world.mounted(TARGET).is_some());
}
