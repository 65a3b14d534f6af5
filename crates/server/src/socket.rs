//! A client's socket: frames come out of it, batches of answers go into it.
//!
//! Shared by the connection's loop, the session's link and the watch over a
//! running statement, which all live in one task: reading and writing need no
//! more than `&self`, and one party reads at a time (`copying` says when it is
//! the session). Every buffer is counted in the metrics; one that grew is given
//! back once it is empty. A frame is handed out whole or not at all. Of a large one
//! nothing is taken in before its session's account has room for all of it; what
//! gets none is read past and refused (`large_message.rs`).

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use thermocline_engine::{Account, Cancel, Charge, Database, WaitsFor};
use thermocline_sql::error::SqlError;
use tokio::io::Interest;
use tokio::time::timeout;

use crate::batch::Batch;
use crate::config::{
    FLUSH_BYTES, IDLE_BUFFER_BYTES, KEPT_BUFFER_BYTES, READ_AHEAD_BYTES, READ_BYTES,
    SMALL_MESSAGE_BYTES_MAX, STARTUP_PACKET_BYTES_MAX, TURN_BYTES,
};
use crate::large_message::LargeMessage;
use crate::message_boundary::MessageBoundary;
use crate::metrics::Metrics;
use crate::stream::Stream;

/// How long a closed connection still takes in what the client was sending, so
/// that the client gets to read why.
const LINGER: Duration = Duration::from_secs(1);

/// One message of a client.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Bytes,
}

/// What a client has sent, as it is handed out.
#[derive(Debug)]
pub(crate) enum Message {
    Frame(Frame),
    Batch(Batch),
}

/// Why there is no frame.
#[derive(Debug)]
pub(crate) enum NoFrame {
    /// The client ended its side, or the connection broke.
    Closed,
    /// What was sent cannot be a frame; nothing after it can be understood.
    Malformed(SqlError),
    /// There was no memory for a frame of this tag; it was read past.
    Refused(u8, SqlError),
}

struct Input {
    buffer: BytesMut,
    /// The client will send no more.
    ended: bool,
    charged_bytes: usize,
    /// Read since others had their turn.
    turn_bytes: usize,
    /// The message at the front of the buffer, if it is a large one.
    large: Option<LargeMessage>,
}

pub(crate) struct Socket {
    stream: Stream,
    input: Mutex<Input>,
    /// The session reads by itself now (COPY FROM STDIN).
    copying: AtomicBool,
    output_charged_bytes: AtomicUsize,
    written: Mutex<MessageBoundary>,
    max_message_bytes: usize,
    metrics: Arc<Metrics>,
    /// None before it is there, and until then there are only start-up packets.
    session: OnceLock<OfSession>,
}

/// What a socket has to know of its session.
struct OfSession {
    db: Arc<Database>,
    /// Large messages are charged to it.
    account: Account,
    /// Nothing is written any more to a client whose session has to end.
    cancel: Cancel,
}

impl Input {
    /// Throws away what has come of a message that got no memory.
    fn read_past(&mut self) {
        if let Some(large) = &mut self.large {
            let past = large.read_past(self.buffer.len());
            self.buffer.advance(past);
        }
    }

    /// A message that got no memory, once all of it was read past.
    fn take_refused(&mut self) -> Option<NoFrame> {
        self.read_past();
        let (tag, error) = self.large.take_if(|l| l.is_past())?.into_refusal()?;
        Some(NoFrame::Refused(tag, error))
    }
}

impl Socket {
    /// `first` was read already.
    pub(crate) fn new(
        stream: Stream,
        first: BytesMut,
        max_message_bytes: usize,
        metrics: Arc<Metrics>,
    ) -> Self {
        // Without it a batch's last segment would wait for an acknowledgement;
        // where it cannot be set, that is the cost and nothing else.
        if let Err(error) = stream.set_nodelay() {
            tracing::debug!("TCP_NODELAY: {error}");
        }
        Self {
            stream,
            input: Mutex::new(Input {
                buffer: first,
                ended: false,
                charged_bytes: 0,
                turn_bytes: 0,
                large: None,
            }),
            copying: AtomicBool::new(false),
            output_charged_bytes: AtomicUsize::new(0),
            written: Mutex::default(),
            max_message_bytes,
            metrics,
            session: OnceLock::new(),
        }
    }

    /// From now on large messages are charged to the session's account, and what waits for
    /// the client waits no longer than the session lasts.
    pub(crate) fn belongs_to(&self, db: Arc<Database>, account: Account, cancel: Cancel) {
        let session = OfSession {
            db,
            account,
            cancel,
        };
        let first = self.session.set(session).is_ok();
        assert!(first, "a socket belongs to one session");
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Marks that the session reads by itself, until the guard is dropped.
    pub(crate) fn copying(&self) -> CopyingGuard<'_> {
        self.copying.store(true, Relaxed);
        CopyingGuard(self)
    }

    pub(crate) fn is_copying(&self) -> bool {
        self.copying.load(Relaxed)
    }

    // ---- in

    /// The next message, if all of it is here.
    pub(crate) fn frame(&self) -> Result<Option<Frame>, NoFrame> {
        self.next_frame(&mut self.input.lock())
    }

    /// The next message, or a batch of one statement, if all of it is here.
    pub(crate) fn message(&self) -> Result<Option<Message>, NoFrame> {
        let mut input = self.input.lock();
        if input.large.is_none()
            && let Some(batch) = Batch::take(&mut input.buffer, self.max_message_bytes)
        {
            return Ok(Some(Message::Batch(batch)));
        }
        let frame = self.next_frame(&mut input)?;
        Ok(frame.map(Message::Frame))
    }

    /// A batch comes again, message by message.
    pub(crate) fn put_back(&self, batch: Batch) {
        let mut input = self.input.lock();
        let rest = std::mem::take(&mut input.buffer);
        input.buffer = batch.into_bytes();
        input.buffer.unsplit(rest);
    }

    /// A batch was answered: what it lay in is used again.
    pub(crate) fn give_back(&self, batch: Batch) {
        let mut input = self.input.lock();
        if input.buffer.capacity() == 0 {
            input.buffer = batch.into_buffer();
        }
    }

    fn next_frame(&self, input: &mut Input) -> Result<Option<Frame>, NoFrame> {
        if let Some(refused) = input.take_refused() {
            return Err(refused);
        }
        let Some((&tag, rest)) = input.buffer.split_first() else {
            return if input.ended {
                Err(NoFrame::Closed)
            } else {
                Ok(None)
            };
        };
        let limit = match tag {
            b'Q' | b'P' | b'B' | b'F' | b'd' => self.max_message_bytes,
            b'E' | b'D' | b'C' | b'H' | b'S' | b'X' | b'c' | b'f' | b'p' => SMALL_MESSAGE_BYTES_MAX,
            other => {
                return Err(NoFrame::Malformed(SqlError::protocol(format!(
                    "invalid frontend message type {other}"
                ))));
            }
        };
        let Some(length) = rest.first_chunk() else {
            return self.incomplete(input);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length < 4 {
            return Err(NoFrame::Malformed(SqlError::protocol(
                "invalid message length",
            )));
        }
        if length > limit {
            return Err(NoFrame::Malformed(too_large(length, limit)));
        }
        if input.buffer.len() < 1 + length {
            if length > KEPT_BUFFER_BYTES && input.large.is_none() {
                input.large = Some(LargeMessage::announced(tag, 1 + length));
            }
            return self.incomplete(input);
        }
        let body = if length > KEPT_BUFFER_BYTES {
            self.split_large(input, 1 + length)
        } else {
            input.buffer.split_to(1 + length).freeze()
        };
        Ok(Some(Frame {
            tag,
            body: body.slice(5..),
        }))
    }

    /// A frame so large that the buffer which grew for it goes away with it.
    fn split_large(&self, input: &mut Input, frame_bytes: usize) -> Bytes {
        let rest = BytesMut::from(&input.buffer[frame_bytes..]);
        let mut frame = std::mem::replace(&mut input.buffer, rest);
        frame.truncate(frame_bytes);
        self.charge(&mut input.charged_bytes, input.buffer.capacity());
        let mut large = LargeFrame {
            frame,
            charged_bytes: 0,
            metrics: Arc::clone(&self.metrics),
            _charge: input.large.take().and_then(LargeMessage::into_charge),
        };
        self.charge(&mut large.charged_bytes, large.frame.capacity());
        Bytes::from_owner(large)
    }

    /// Whether the message after the one last handed out is a Sync.
    pub(crate) fn sync_is_next(&self) -> bool {
        self.input.lock().buffer.starts_with(b"S\0\0\0\x04")
    }

    /// The next start-up packet (no tag), if all of it is here.
    pub(crate) fn startup_packet(&self) -> Result<Option<Bytes>, NoFrame> {
        let mut input = self.input.lock();
        let Some(length) = input.buffer.first_chunk() else {
            return self.incomplete(&input);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if !(8..=STARTUP_PACKET_BYTES_MAX).contains(&length) {
            return Err(NoFrame::Malformed(SqlError::protocol(
                "invalid length of startup packet",
            )));
        }
        if input.buffer.len() < length {
            return self.incomplete(&input);
        }
        let mut packet = input.buffer.split_to(length);
        packet.advance(4);
        Ok(Some(packet.freeze()))
    }

    fn incomplete<T>(&self, input: &Input) -> Result<Option<T>, NoFrame> {
        if input.ended {
            Err(NoFrame::Closed)
        } else {
            Ok(None)
        }
    }

    /// Waits until more has arrived, or the end. A connection that broke has
    /// ended. A large message waits here for its memory first. Who sends faster than is read
    /// gives way all the same.
    pub(crate) async fn fill(&self) {
        if let Some(session) = self.session.get() {
            let announced = self.input.lock().large.as_ref().and_then(|l| l.uncharged());
            if let Some(bytes) = announced {
                let granted = LargeMessage::grant(&session.db, &session.account, bytes).await;
                if let Some(large) = &mut self.input.lock().large {
                    large.settle(granted);
                }
            }
        }
        while !self.fill_now() && !self.input.lock().ended {
            self.readable().await;
        }
        let turn_is_over = {
            let mut input = self.input.lock();
            let over = input.turn_bytes >= TURN_BYTES;
            if over {
                input.turn_bytes = 0;
            }
            over
        };
        if turn_is_over {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until there is something to read; a large message that keeps others
    /// waiting for memory must come.
    async fn readable(&self) {
        let awaited = self.session.get().filter(|_| {
            let input = self.input.lock();
            input.large.as_ref().is_some_and(LargeMessage::holds_memory)
        });
        let readable = self.stream.readable();
        let failed = match awaited {
            None => readable.await.err(),
            Some(session) => match timeout(LargeMessage::PAUSE_MAX, readable).await {
                Ok(readable) => readable.err(),
                Err(_) => {
                    if session.account.pool().report().waiting > 0
                        && let Some(large) = &mut self.input.lock().large
                    {
                        large.give_up();
                    }
                    None
                }
            },
        };
        if let Some(error) = failed {
            tracing::debug!("waiting for a client failed: {error}");
            self.input.lock().ended = true;
        }
    }

    /// Takes in what has arrived; whether that was something.
    fn fill_now(&self) -> bool {
        let mut input = self.input.lock();
        let input = &mut *input;
        if input.ended {
            return false;
        }
        if input.buffer.is_empty() && input.buffer.capacity() > IDLE_BUFFER_BYTES {
            input.buffer = BytesMut::new();
        }
        if let Some(left) = input
            .large
            .as_ref()
            .and_then(|l| l.left(input.buffer.len()))
        {
            // Once, and not by doubling: this much is charged.
            input.buffer.reserve(left);
        } else if input.buffer.capacity() - input.buffer.len() < READ_BYTES / 4 {
            input.buffer.reserve(READ_BYTES);
        }
        let read = self.stream.try_read_buf(&mut input.buffer);
        self.charge(&mut input.charged_bytes, input.buffer.capacity());
        match read {
            Ok(0) => {
                input.ended = true;
                false
            }
            Ok(bytes) => {
                Metrics::add(&self.metrics.received_bytes, bytes as u64);
                Metrics::add(&self.metrics.reads, 1);
                input.turn_bytes += bytes;
                input.read_past();
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => {
                tracing::debug!("reading from a client failed: {error}");
                input.ended = true;
                false
            }
        }
    }

    /// Waits for the end of what the client sends, reading ahead only so far
    /// that memory stays bounded. Ready at once when the end was seen before.
    pub(crate) async fn ended(&self) {
        loop {
            let (ended, ahead) = {
                let input = self.input.lock();
                (input.ended, input.buffer.len())
            };
            if ended {
                return;
            }
            if ahead < READ_AHEAD_BYTES {
                if !self.fill_now() && !self.input.lock().ended {
                    self.readable().await;
                }
                continue;
            }
            // No more is read, so the end itself stays hidden; the kernel
            // still tells that the other side has closed.
            tokio::time::sleep(Duration::from_secs(1)).await;
            match self.stream.ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => {}
                _ => return,
            }
        }
    }

    // ---- out

    /// Writes all of `out` and empties it. One system call, unless the client
    /// is slower than we are. An error when the session has to end before the client has
    /// taken it in.
    pub(crate) async fn flush(&self, out: &mut BytesMut) -> io::Result<()> {
        let cancel = self.session.get().map(|session| &session.cancel);
        if cancel.is_some_and(|cancel| cancel.session_end().is_some()) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.write(out, cancel).await
    }

    async fn write(&self, out: &mut BytesMut, cancel: Option<&Cancel>) -> io::Result<()> {
        // Asked now: what has been written is no longer part of a capacity.
        let allocated_bytes = out.capacity();
        self.charge_output(allocated_bytes);
        while !out.is_empty() {
            // Counted first: who has read an answer finds it in the counters.
            let offered = out.len();
            Metrics::add(&self.metrics.writes, 1);
            Metrics::add(&self.metrics.sent_bytes, offered as u64);
            let taken = self.stream.try_write(out);
            let left = offered - *taken.as_ref().unwrap_or(&0);
            Metrics::subtract(&self.metrics.sent_bytes, left as u64);
            match taken {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.written.lock().pass(&out[..bytes]);
                    // Before the next wait, at which this may be dropped.
                    if left == 0 {
                        out.clear();
                    } else {
                        out.advance(bytes);
                    }
                }
                Err(error) => {
                    Metrics::subtract(&self.metrics.writes, 1);
                    if error.kind() != io::ErrorKind::WouldBlock {
                        return Err(error);
                    }
                    self.writable(cancel).await?;
                }
            }
        }
        if allocated_bytes > IDLE_BUFFER_BYTES {
            *out = BytesMut::new();
            self.charge_output(0);
        }
        Ok(())
    }

    async fn writable(&self, cancel: Option<&Cancel>) -> io::Result<()> {
        let Some(cancel) = cancel else {
            return self.stream.writable().await;
        };
        let _note = cancel.note_wait(WaitsFor::ClientWrite);
        tokio::select! {
            biased;
            _ = cancel.session_ended() => Err(io::ErrorKind::Interrupted.into()),
            writable = self.stream.writable() => writable,
        }
    }

    /// How much of `out`, which was not written yet, are whole messages. None if a message is
    /// on its way whose rest is not there, so that nothing more can be said.
    pub(crate) fn whole_messages(&self, out: &[u8]) -> Option<usize> {
        self.written.lock().whole_part(out)
    }

    /// Says something if the client takes it in at once.
    pub(crate) async fn write_at_once(&self, mut out: BytesMut) {
        if timeout(Duration::ZERO, self.write(&mut out, None))
            .await
            .is_err()
        {
            tracing::debug!("a client did not read the last words");
        }
    }

    /// Writes the last words: who does not take them in time goes without.
    pub(crate) async fn flush_last(&self, mut out: BytesMut) {
        match timeout(LINGER, self.write(&mut out, None)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("the last words to a client: {error}"),
            Err(_) => tracing::debug!("a client did not read the last words"),
        }
    }

    /// Writes `out` if it is large enough not to wait for the batch's end.
    pub(crate) async fn flush_if_large(&self, out: &mut BytesMut) -> io::Result<()> {
        if out.len() > FLUSH_BYTES {
            self.flush(out).await
        } else {
            Ok(())
        }
    }

    fn charge(&self, charged: &mut usize, bytes: usize) {
        if bytes > *charged {
            Metrics::add(&self.metrics.buffer_bytes, (bytes - *charged) as u64);
        } else if bytes < *charged {
            Metrics::subtract(&self.metrics.buffer_bytes, (*charged - bytes) as u64);
        }
        *charged = bytes;
    }

    fn charge_output(&self, bytes: usize) {
        let mut charged = self.output_charged_bytes.load(Relaxed);
        self.charge(&mut charged, bytes);
        self.output_charged_bytes.store(charged, Relaxed);
    }

    // ---- end

    /// Closes so that what was written last arrives: a socket that is closed
    /// with unread input is reset, and a reset discards what is on its way.
    pub(crate) async fn close(mut self) {
        if let Err(error) = self.stream.shutdown().await {
            tracing::debug!("closing a connection: {error}");
            return;
        }
        let drained = timeout(LINGER, async {
            loop {
                self.fill().await;
                let mut input = self.input.lock();
                if input.ended {
                    return;
                }
                input.large = None;
                input.buffer.clear();
            }
        });
        if drained.await.is_err() {
            tracing::debug!("a client went on sending after it was closed");
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut charged = self.input.get_mut().charged_bytes;
        self.charge(&mut charged, 0);
        self.charge_output(0);
    }
}

/// The memory of a large frame, charged until its last reader lets go.
struct LargeFrame {
    frame: BytesMut,
    charged_bytes: usize,
    metrics: Arc<Metrics>,
    _charge: Option<Charge>,
}

impl AsRef<[u8]> for LargeFrame {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

impl Drop for LargeFrame {
    fn drop(&mut self) {
        Metrics::subtract(&self.metrics.buffer_bytes, self.charged_bytes as u64);
    }
}

/// See [`Socket::copying`].
pub(crate) struct CopyingGuard<'a>(&'a Socket);

impl Drop for CopyingGuard<'_> {
    fn drop(&mut self) {
        self.0.copying.store(false, Relaxed);
    }
}

#[cold]
fn too_large(length: usize, limit: usize) -> SqlError {
    // Above this no limit of ours would be the reason.
    if length > i32::MAX as usize {
        return SqlError::protocol("invalid message length");
    }
    SqlError::new(
        "54000",
        format!("message of {length} bytes exceeds the limit of {limit} bytes"),
    )
    .with_hint("Send the value in smaller pieces, or raise max_message_bytes.")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// All that is read is there from the start, so that nothing has to be waited for.
    #[tokio::test]
    async fn who_sends_much_gives_way() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let (served, _) = listener.accept().unwrap();
        served.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while sent < 64 * TURN_BYTES
            && let Ok(bytes) = client.write(&[0; READ_BYTES])
        {
            sent += bytes;
        }
        let turns = sent / TURN_BYTES;
        assert!(turns > 1, "the kernel keeps only {sent} bytes");
        drop(client);

        let stream = Stream::Tcp(tokio::net::TcpStream::from_std(served).unwrap());
        let socket = Socket::new(stream, BytesMut::new(), 1 << 20, Arc::default());
        let others = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&others);
        let counting = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
            }
        });
        while !socket.input.lock().ended {
            socket.fill().await;
            socket.input.lock().buffer.clear();
        }
        counting.abort();
        assert!(
            others.load(Relaxed) >= turns as u64,
            "{others:?} of {turns}"
        );
    }
}
