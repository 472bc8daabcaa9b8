//! HTTP: one request after the other on each connection, or the beginning of a WebSocket.

use std::time::Duration;

use axum::body::{to_bytes, Body};
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{header, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower_http::cors::CorsLayer;

use super::{answer, socket, Context, MAX_BODY};

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, context: Context) {
    let patience = context.patience;
    let app = Router::new().fallback(entry).layer(CorsLayer::permissive()).with_state(context);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely the process has no descriptors left; some connection will end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Small answers on a kept connection: waiting to fill a segment would cost 40 ms each.
        let _ = stream.set_nodelay(true);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience.head)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app.clone()))
            .with_upgrades();
        // It ends with an error if the client leaves or is silent for too long.
        tokio::spawn(async move { drop(connection.await) });
    }
}

/// One HTTP request, or the beginning of a WebSocket.
async fn entry(State(context): State<Context>, request: Request) -> Response {
    if request.headers().contains_key(header::UPGRADE) {
        let (mut parts, _) = request.into_parts();
        return match WebSocketUpgrade::from_request_parts(&mut parts, &context).await {
            Ok(upgrade) => upgrade
                .max_message_size(MAX_BODY)
                .max_frame_size(MAX_BODY)
                .on_upgrade(move |socket| socket::serve(socket, context)),
            Err(rejection) => rejection.into_response(),
        };
    }
    match *request.method() {
        Method::POST => {}
        // Health checks.
        Method::GET | Method::HEAD => return StatusCode::OK.into_response(),
        _ => return (StatusCode::METHOD_NOT_ALLOWED, "method not allowed").into_response(),
    }
    let announced =
        request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if let Some(length) = announced.filter(|n| *n > MAX_BODY as u64) {
        return too_large(&format!("content length too large ({length}>{MAX_BODY})"));
    }
    if !request.headers().get(header::CONTENT_TYPE).is_none_or(is_json) {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid content type, only application/json is supported").into_response();
    }
    let body = match tokio::time::timeout(context.patience.body, to_bytes(request.into_body(), MAX_BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return too_large(&format!("content length too large (limit {MAX_BODY})")),
        Err(_) => {
            let close = [(header::CONNECTION, "close")];
            return (StatusCode::REQUEST_TIMEOUT, close, "the body did not arrive in time").into_response();
        }
    };
    let answer = answer(&context, &body, None).await.unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], Body::from(answer)).into_response()
}

/// The content types that go-ethereum takes.
fn is_json(value: &axum::http::HeaderValue) -> bool {
    let kind = value.to_str().ok().and_then(|v| v.split(';').next()).map(str::trim);
    kind.is_some_and(|kind| {
        ["application/json", "application/json-rpc", "application/jsonrequest"]
            .iter()
            .any(|known| kind.eq_ignore_ascii_case(known))
    })
}

fn too_large(reason: &str) -> Response {
    (StatusCode::PAYLOAD_TOO_LARGE, reason.to_owned()).into_response()
}
