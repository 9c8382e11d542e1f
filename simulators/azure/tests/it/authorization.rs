//! Roles and their assignments: what is built in, what is refused, what lists show.

use std::sync::Arc;

use crate::common::*;
use azure_simulator::entra::{Application, Entra, EntraOptions};
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use serde_json::{Value, json};

const V: &str = "api-version=2022-04-01";
const READER: &str = "acdd72a7-3385-48ef-bd42-f606fba81ae7";
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";
const SOMEBODY: &str = "77777777-0000-4000-8000-000000000001";
const ANOTHER: &str = "77777777-0000-4000-8000-000000000002";

fn subscription() -> ResourceId {
    ResourceId::subscription(SUBSCRIPTION)
}

fn group() -> ResourceId {
    ResourceId::group(SUBSCRIPTION, GROUP)
}

fn guid(number: u32) -> String {
    format!("aaaaaaaa-0000-4000-8000-{number:012}")
}

fn role(name: &str) -> ResourceId {
    subscription().resource("Microsoft.Authorization", "roleDefinitions", name)
}

fn assignment(scope: &ResourceId, number: u32) -> ResourceId {
    scope.resource("Microsoft.Authorization", "roleAssignments", &guid(number))
}

fn assigned(role: &ResourceId, principal: &str) -> Value {
    json!({ "properties": { "roleDefinitionId": role, "principalId": principal } })
}

fn custom(name: &str, actions: &[&str], scopes: &[&ResourceId]) -> Value {
    json!({ "properties": {
        "roleName": name, "type": "CustomRole", "permissions": [{ "actions": actions }], "assignableScopes": scopes,
    } })
}

async fn ask(client: &Client, method: &str, path: &str, body: Value) -> Reply {
    let body = (!body.is_null()).then_some(body);
    let joint = if path.contains('?') { '&' } else { '?' };
    client.send(method, &format!("{path}{joint}{V}"), body, &[]).await
}

async fn names(client: &Client, scope: &ResourceId, list: &str, filter: &str) -> Vec<String> {
    let filter = filter.replace(' ', "%20");
    let path = format!("{scope}/providers/Microsoft.Authorization/{list}?$filter={filter}");
    let reply = ask(client, "GET", &path, Value::Null).await.expect(200);
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    reply.body["value"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn roles_of_azure_are_there_and_stay_as_they_are() {
    let client = Client::with_group(Options::default()).await;
    for scope in [subscription(), group()] {
        let path = format!("{scope}/providers/Microsoft.Authorization/roleDefinitions/{CONTRIBUTOR}");
        let shown = ask(&client, "GET", &path, Value::Null).await.expect(200).body;
        assert_eq!(shown["id"], role(CONTRIBUTOR).as_str());
        let properties = &shown["properties"];
        assert_eq!(
            (&properties["roleName"], &properties["type"]),
            (&json!("Contributor"), &json!("BuiltInRole"))
        );
        assert_eq!(properties["permissions"][0]["actions"], json!(["*"]));
        assert!(properties.get("provisioningState").is_none());
    }
    assert_eq!(names(&client, &group(), "roleDefinitions", "roleName eq 'reader'").await, [READER]);
    let filter = "roleName eq 'AcrPull' and type eq 'BuiltInRole'";
    let pull = names(&client, &subscription(), "roleDefinitions", filter).await;
    assert_eq!(pull, ["7f951dda-4ed3-4680-a7ca-43fe172d538d"]);
    ask(&client, "DELETE", role(READER).as_str(), Value::Null)
        .await
        .refused(403, "BuiltInRoleCannotBeChanged");
    ask(&client, "PUT", role(READER).as_str(), custom("Mine", &["*"], &[&subscription()]))
        .await
        .refused(403, "BuiltInRoleCannotBeChanged");
}

#[tokio::test(start_paused = true)]
async fn a_role_of_ones_own_is_made_assigned_and_removed() {
    let client = Client::with_group(Options::default()).await;
    let looks = role(&guid(1));
    let made =
        ask(&client, "PUT", looks.as_str(), custom("Looks", &["*/read"], &[&group()])).await.expect(201);
    assert_eq!(
        made.body["properties"]["permissions"],
        json!([{ "actions": ["*/read"], "notActions": [], "dataActions": [], "notDataActions": [] }])
    );
    ask(&client, "PUT", looks.as_str(), custom("Looks", &["*/read"], &[&group()])).await.expect(201);
    assert_eq!(names(&client, &subscription(), "roleDefinitions", "type eq 'CustomRole'").await, [""; 0]);
    assert_eq!(
        names(&client, &subscription(), "roleDefinitions", "atScopeAndBelow() and type eq 'CustomRole'")
            .await,
        [guid(1)]
    );
    assert_eq!(names(&client, &group(), "roleDefinitions", "type eq 'CustomRole'").await, [guid(1)]);
    let anywhere = [&subscription()];
    for (name, body, status, code) in [
        (guid(2), custom("looks", &["*/read"], &anywhere), 409, "RoleDefinitionWithSameNameExists"),
        (guid(2), custom("Other", &["everything"], &anywhere), 400, "InvalidActionOrNotAction"),
        (
            guid(2),
            custom("Other", &["Microsoft.Network/loadBalancers"], &anywhere),
            400,
            "InvalidActionOrNotAction",
        ),
        (guid(2), custom("", &["*"], &anywhere), 400, "RoleDefinitionNameMissing"),
        (guid(2), custom("Other", &["*"], &[]), 400, "InvalidAssignableScope"),
        (
            guid(2),
            custom("Other", &["*"], &[&network_id("virtualNetworks/n")]),
            400,
            "InvalidAssignableScope",
        ),
        (guid(2), json!({ "properties": { "color": "red" } }), 400, "InvalidRequestContent"),
        ("mine".into(), custom("Other", &["*"], &anywhere), 400, "InvalidRoleDefinitionId"),
    ] {
        ask(&client, "PUT", role(&name).as_str(), body).await.refused(status, code);
    }
    let given = assignment(&group(), 1);
    ask(&client, "PUT", given.as_str(), assigned(&looks, SOMEBODY)).await.expect(201);
    // It can be assigned in the group alone.
    ask(&client, "PUT", assignment(&subscription(), 2).as_str(), assigned(&looks, SOMEBODY))
        .await
        .refused(400, "RoleDefinitionDoesNotExist");
    ask(&client, "DELETE", looks.as_str(), Value::Null).await.refused(400, "RoleDefinitionHasAssignments");
    let gone = ask(&client, "DELETE", given.as_str(), Value::Null).await.expect(200);
    assert_eq!(gone.body["properties"]["principalId"], SOMEBODY);
    ask(&client, "DELETE", given.as_str(), Value::Null).await.expect(204);
    ask(&client, "DELETE", looks.as_str(), Value::Null).await.expect(200);
    ask(&client, "GET", looks.as_str(), Value::Null).await.refused(404, "RoleDefinitionDoesNotExist");
}

#[tokio::test(start_paused = true)]
async fn an_assignment_is_made_once_and_not_changed() {
    let limits = [("authorization.roleAssignmentsPerSubscription".to_owned(), 2)].into();
    let client = Client::with_group(Options { limits, ..Options::default() }).await;
    let id = assignment(&group(), 1);
    let made = ask(&client, "PUT", id.as_str(), assigned(&role(READER), SOMEBODY)).await.expect(201);
    let properties = &made.body["properties"];
    assert_eq!(properties["scope"], group().as_str());
    assert_eq!(properties["principalType"], "ServicePrincipal");
    assert_eq!(properties["createdOn"], properties["updatedOn"]);
    let tenant_wide = json!({ "properties": {
        "roleDefinitionId": format!("/providers/Microsoft.Authorization/roleDefinitions/{READER}"),
        "principalId": SOMEBODY, "description": "looks around",
    } });
    ask(&client, "PUT", id.as_str(), tenant_wide).await.expect(200);
    let two = assignment(&group(), 2);
    for (id, body, status, code) in [
        (&two, assigned(&role(READER), SOMEBODY), 409, "RoleAssignmentExists"),
        (&id, assigned(&role(READER), ANOTHER), 400, "RoleAssignmentUpdateNotPermitted"),
        (&id, assigned(&role(CONTRIBUTOR), SOMEBODY), 400, "RoleAssignmentUpdateNotPermitted"),
        (&two, assigned(&role(&guid(9)), SOMEBODY), 400, "RoleDefinitionDoesNotExist"),
        (
            &two,
            json!({ "properties": { "roleDefinitionId": READER, "principalId": SOMEBODY } }),
            400,
            "BadRequestFormat",
        ),
        (&two, json!({ "properties": { "roleDefinitionId": role(READER) } }), 400, "InvalidPrincipalId"),
        (&two, json!({ "properties": { "PrincipalKind": "x" } }), 400, "InvalidRequestContent"),
    ] {
        ask(&client, "PUT", id.as_str(), body).await.refused(status, code);
    }
    let bad = group().resource("Microsoft.Authorization", "roleAssignments", "mine");
    ask(&client, "PUT", bad.as_str(), assigned(&role(READER), ANOTHER))
        .await
        .refused(400, "InvalidRoleAssignmentId");
    ask(&client, "GET", two.as_str(), Value::Null).await.refused(404, "RoleAssignmentNotFound");
    ask(&client, "PATCH", id.as_str(), json!({ "properties": {} })).await.refused(405, "MethodNotAllowed");
    ask(&client, "PUT", two.as_str(), assigned(&role(READER), ANOTHER)).await.expect(201);
    ask(&client, "PUT", assignment(&group(), 3).as_str(), assigned(&role(CONTRIBUTOR), ANOTHER))
        .await
        .refused(400, "RoleAssignmentLimitExceeded");
}

#[tokio::test(start_paused = true)]
async fn lists_show_what_is_above_and_below_and_what_lies_on_a_resource_goes_with_it() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let network = subnet.parent().unwrap();
    let scopes = [subscription(), group(), network.clone(), subnet.clone()];
    for (number, scope) in (1..).zip(&scopes) {
        let body = assigned(&role(READER), if number % 2 == 0 { SOMEBODY } else { ANOTHER });
        ask(&client, "PUT", assignment(scope, number).as_str(), body).await.expect(201);
    }
    let somebodys = format!("principalId eq '{SOMEBODY}'");
    let anothers = format!("atScope() and assignedTo('{ANOTHER}')");
    for (scope, filter, expected) in [
        (&scopes[0], "", vec![1, 2, 3, 4]),
        (&scopes[0], "atScope()", vec![1]),
        (&scopes[1], "atScope()", vec![1, 2]),
        (&scopes[2], "", vec![1, 2, 3, 4]),
        (&scopes[3], "atScope()", vec![1, 2, 3, 4]),
        (&scopes[1], somebodys.as_str(), vec![2, 4]),
        (&scopes[2], anothers.as_str(), vec![1, 3]),
    ] {
        let mut shown = names(&client, scope, "roleAssignments", filter).await;
        shown.sort();
        assert_eq!(shown, expected.into_iter().map(guid).collect::<Vec<_>>(), "{scope} {filter}");
    }
    let strange =
        format!("{}/providers/Microsoft.Authorization/roleAssignments?$filter=color%20eq%20'red'", group());
    ask(&client, "GET", &strange, Value::Null).await.refused(400, "UnsupportedQuery");
    let absent = network_id("virtualNetworks/absent");
    ask(&client, "PUT", assignment(&absent, 9).as_str(), assigned(&role(READER), SOMEBODY))
        .await
        .refused(404, "ResourceNotFound");
    client.delete(&network).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(names(&client, &group(), "roleAssignments", "").await, [guid(1), guid(2)]);
    let permissions = format!("{}/providers/Microsoft.Authorization/permissions", group());
    let permissions = ask(&client, "GET", &permissions, Value::Null).await.expect(200);
    assert_eq!(permissions.body["value"][0]["actions"], json!(["*"]));
}

#[tokio::test(start_paused = true)]
async fn principals_are_those_of_the_directory_and_of_resources() {
    let azure = Azure::new(Options::default());
    let mut options = EntraOptions::new(azure.options().tenant.clone(), azure.clock());
    options.applications.push(Application::new("6c11a2b3-0000-4000-8000-000000000002", SOMEBODY));
    let entra = Entra::new(options).unwrap();
    azure.set_verifier(Arc::new(entra));
    let identity = group().resource("Microsoft.ManagedIdentity", "userAssignedIdentities", "worker");
    let made = azure.put(&identity, json!({})).unwrap();
    let worker = made["properties"]["principalId"].as_str().unwrap().to_owned();
    let mut typed = assigned(&role(READER), ANOTHER);
    typed["properties"]["principalType"] = "ServicePrincipal".into();
    for (number, body, expected) in [
        (1, assigned(&role(READER), SOMEBODY), Ok(())),
        (2, assigned(&role(READER), &worker), Ok(())),
        (3, assigned(&role(READER), ANOTHER), Err("PrincipalNotFound".to_owned())),
        (4, typed, Ok(())),
    ] {
        let put = azure.put(&assignment(&group(), number), body);
        assert_eq!(put.map(drop).map_err(|refusal| refusal.code), expected, "{number}");
    }
    let saved = azure.save().unwrap();
    let again = Azure::new(Options::default());
    again.restore(saved).unwrap();
    assert!(again.document(&assignment(&group(), 1)).is_some() && again.document(&role(READER)).is_some());
}
