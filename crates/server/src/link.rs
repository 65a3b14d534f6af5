//! The socket as the session sees it: results stream out through `flush`, the
//! rows of COPY FROM STDIN come in through `copy_data`. Both wait for the
//! client, so a session holds no more than one piece of a long result or of a
//! long input.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use thermocline_engine::{Cancel, WaitsFor};
use thermocline_sql::ClientLink;
use thermocline_sql::error::SqlError;

use crate::message::only_string;
use crate::socket::{NoFrame, Socket};

pub(crate) struct SocketLink {
    socket: Arc<Socket>,
    cancel: Cancel,
}

impl SocketLink {
    pub(crate) fn new(socket: Arc<Socket>, cancel: Cancel) -> Self {
        Self { socket, cancel }
    }

    async fn next_copy_data(&mut self) -> Result<Option<Bytes>, SqlError> {
        let _copying = self.socket.copying();
        loop {
            let Some(frame) = self.socket.frame().map_err(lost)? else {
                let _note = self.cancel.note_wait(WaitsFor::ClientRead);
                tokio::select! {
                    biased;
                    () = self.socket.fill() => {}
                    error = self.cancel.cancelled() => return Err(error.into()),
                    // Who stops the server does not wait for clients.
                    _ = self.cancel.idle_ended() => return Err(stopped()),
                }
                continue;
            };
            match frame.tag {
                b'd' => return Ok(Some(frame.body)),
                b'c' => return Ok(None),
                // Sent by clients that do not know yet that this is a COPY.
                b'H' | b'S' => {}
                b'f' => {
                    return Err(SqlError::new(
                        "57014",
                        format!("COPY from stdin failed: {}", only_string(&frame.body)?),
                    ));
                }
                other => {
                    return Err(SqlError::protocol(format!(
                        "unexpected message type 0x{other:02X} during COPY from stdin"
                    )));
                }
            }
        }
    }
}

fn lost(end: NoFrame) -> SqlError {
    match end {
        NoFrame::Closed => {
            SqlError::new("08006", "unexpected EOF on client connection during COPY")
        }
        NoFrame::Malformed(error) | NoFrame::Refused(_, error) => error,
    }
}

/// What a client is told when the server stops.
pub(crate) fn stopped() -> SqlError {
    SqlError::new(
        "57P01",
        "terminating connection due to administrator command",
    )
}

impl ClientLink for SocketLink {
    fn flush<'a>(
        &'a mut self,
        out: &'a mut BytesMut,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>> {
        Box::pin(self.socket.flush(out))
    }

    fn copy_data<'a>(
        &'a mut self,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Bytes>, SqlError>> + Send + 'a>> {
        Box::pin(self.next_copy_data())
    }
}
