//! The conversion webhook.

use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::conversion::convert;
use crate::objects::{list, text};

/// Returns a router that answers ConversionReviews at `/convert`. Its address is in the definitions
/// ([`crate::ConversionWebhook`]).
pub fn conversion_router() -> Router {
    Router::new().route("/convert", post(async |Json(review): Json<Value>| Json(answer(&review))))
}

fn answer(review: &Value) -> Value {
    let request = &review["request"];
    let to = text(&request["desiredAPIVersion"]);
    let converted: Result<Vec<Value>, String> =
        list(&request["objects"]).iter().map(|object| convert(object, to)).collect();
    let response = match converted {
        Ok(objects) => {
            json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects})
        }
        Err(why) => json!({"uid": request["uid"], "result": {"status": "Failed", "message": why}}),
    };
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response})
}
