//! As much HTTP/1 as a collector of metrics and a health check speak: one request a connection,
//! GET or HEAD, no body, an answer that is whole before it is sent.
//!
//! Whatever comes in, a connection holds [`REQUEST_BYTES_MAX`] of it and one answer. How long
//! it may take is for the caller to say.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The most bytes of a request, head and all.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 << 10;

/// What is answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    status: Status,
    content_type: &'static str,
    body: String,
}

/// The statuses there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    HeadTooLarge,
    Unavailable,
}

impl Status {
    const fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Unavailable => "503 Service Unavailable",
        }
    }
}

impl Answer {
    /// A line of text.
    pub(crate) fn text(status: Status, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{text}\n"),
        }
    }

    /// Metrics in Prometheus' text format.
    pub(crate) fn metrics(body: String) -> Self {
        Self {
            status: Status::Ok,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body,
        }
    }

    fn bytes(&self, with_body: bool) -> String {
        let Self {
            status,
            content_type,
            body,
        } = self;
        let (line, length) = (status.line(), body.len());
        let allow = match status {
            Status::MethodNotAllowed => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        let body = if with_body { body } else { "" };
        format!(
            "HTTP/1.1 {line}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\n{allow}Connection: close\r\n\r\n{body}"
        )
    }
}

/// Takes one request and answers it by its path.
pub(crate) async fn converse<S>(mut stream: S, answer: impl FnOnce(&str) -> Answer)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut head = Vec::with_capacity(512);
    let Some(answer) = receive(&mut stream, &mut head, answer).await else {
        return;
    };
    if stream.write_all(answer.as_bytes()).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    // What was not read would have the answer thrown away, where the system resets a
    // connection that is closed with bytes in it.
    let mut rest = [0; 512];
    let mut left = REQUEST_BYTES_MAX;
    while let Ok(count @ 1..) = stream.read(&mut rest).await
        && left > 0
    {
        left = left.saturating_sub(count);
    }
}

/// The answer to what comes; none if the client goes before its request is whole.
async fn receive<S: AsyncRead + Unpin>(
    stream: &mut S,
    head: &mut Vec<u8>,
    answer: impl FnOnce(&str) -> Answer,
) -> Option<String> {
    loop {
        if ends(head) {
            break;
        }
        if head.len() >= REQUEST_BYTES_MAX {
            let refused = Answer::text(Status::HeadTooLarge, "the request is too large");
            return Some(refused.bytes(true));
        }
        let mut part = [0; 512];
        let most = part.len().min(REQUEST_BYTES_MAX - head.len());
        match stream.read(&mut part[..most]).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => head.extend_from_slice(&part[..count]),
        }
    }
    Some(match request(head) {
        Some(("GET", path)) => answer(path).bytes(true),
        Some(("HEAD", path)) => answer(path).bytes(false),
        Some(_) => Answer::text(Status::MethodNotAllowed, "GET or HEAD").bytes(true),
        None => Answer::text(Status::BadRequest, "this is no HTTP request").bytes(true),
    })
}

/// Whether the head is whole.
fn ends(head: &[u8]) -> bool {
    let has = |end: &[u8]| head.windows(end.len()).any(|there| there == end);
    has(b"\r\n\r\n") || has(b"\n\n")
}

/// The method and the path of a request's first line.
fn request(head: &[u8]) -> Option<(&str, &str)> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.strip_suffix('\r').unwrap_or(line).split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_http = matches!(version, "HTTP/1.1" | "HTTP/1.0") && words.next().is_none();
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let path = target.split(['?', '#']).next()?;
    (is_http && is_method && path.starts_with('/')).then_some((method, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answered(request: &[u8]) -> String {
        let (mut client, server) = tokio::io::duplex(16 << 10);
        let task = tokio::spawn(converse(server, |path| match path {
            "/metrics" => Answer::metrics("a 1\n".to_owned()),
            "/health" => Answer::text(Status::Unavailable, "starting"),
            _ => Answer::text(Status::NotFound, "nothing here"),
        }));
        let _ = client.write_all(request).await;
        let mut said = String::new();
        let _ = client.shutdown().await;
        let _ = client.read_to_string(&mut said).await;
        task.await.unwrap();
        said
    }

    #[tokio::test]
    async fn requests_and_their_answers() {
        let said = answered(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        assert!(said.contains("version=0.0.4"), "{said}");
        assert!(
            said.ends_with(
                "\r\nContent-Length: 4\r\nCache-Control: no-store\r\nConnection: close\r\n\r\na 1\n"
            ),
            "{said}"
        );
        let said = answered(b"HEAD /metrics HTTP/1.0\n\n").await;
        assert!(said.contains("Content-Length: 4\r\n"), "{said}");
        assert!(said.ends_with("\r\n\r\n"), "{said}");
        let said = answered(b"GET /health HTTP/1.1\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
        assert!(said.ends_with("\r\n\r\nstarting\n"), "{said}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"get /metrics HTTP/1.1\r\n\r\n", "400"),
            (b"GET metrics HTTP/1.1\r\n\r\n", "400"),
            (b"GET  /metrics HTTP/1.1\r\n\r\n", "400"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400"),
            (b"GET /metrics\r\n\r\n", "400"),
            (b"\x16\x03\x01\x02\0\x01\xfc\xff\n\n", "400"),
            (b"\r\n\r\n", "400"),
        ] {
            let said = answered(request).await;
            let expected = format!("HTTP/1.1 {status} ");
            assert!(said.starts_with(&expected), "{request:?}: {said}");
        }
    }

    #[tokio::test]
    async fn what_never_ends_is_not_kept() {
        let mut endless = b"GET /metrics HTTP/1.1\r\n".to_vec();
        endless.extend_from_slice(&b"X: yyyyyyyy\r\n".repeat(1000));
        let said = answered(&endless[..REQUEST_BYTES_MAX + 100]).await;
        assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
        assert_eq!(answered(b"GET /metr").await, "");
        assert_eq!(answered(b"").await, "");
    }
}
