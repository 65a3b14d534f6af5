//! The message loop of one connection: PostgreSQL's simple and extended
//! protocol. Answers are collected in the client's buffer and written once, at
//! the batch's end (Sync, Flush, the end of a Query) or above 64 KiB. After an
//! error in an extended batch everything up to Sync is passed over.
//!
//! A connection ends in one of the ways of [`Ending`]; whichever it is, an open
//! transaction is rolled back and the slot is free again. Whoever wants it to end (a stop of
//! the server, `pg_terminate_backend`, the watch over a client that has gone) says so to the
//! session's [`Cancel`], which every wait knows.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use thermocline_engine::{Cancel, SessionEnd, WaitsFor};
use thermocline_sql::error::SqlError;
use thermocline_sql::messages;
use thermocline_sql::{Client, Session};
use tokio::time::{Instant, timeout_at};

use crate::batch::Batch;
use crate::link::{SocketLink, stopped};
use crate::message::{Bind, Execute, Parse, Target, only_string};
use crate::metrics::Metrics;
use crate::registry::Slot;
use crate::running::{Panicked, guarded, watched};
use crate::socket::{Frame, Message, NoFrame, Socket};

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The client said goodbye, closed its side, or the connection broke.
    Gone,
    /// The client must be told why, then it is closed.
    Fatal(SqlError),
    /// The session panicked, with these words.
    Panicked(String),
}

impl From<Panicked> for Ending {
    fn from(Panicked(words): Panicked) -> Self {
        Self::Panicked(words)
    }
}

impl From<SessionEnd> for Ending {
    fn from(end: SessionEnd) -> Self {
        match end {
            SessionEnd::Administrator => Self::Fatal(stopped()),
            SessionEnd::ClientLost => Self::Gone,
        }
    }
}

impl From<io::Error> for Ending {
    fn from(error: io::Error) -> Self {
        tracing::debug!("writing to a client failed: {error}");
        Self::Gone
    }
}

impl From<NoFrame> for Ending {
    fn from(end: NoFrame) -> Self {
        match end {
            NoFrame::Closed => Self::Gone,
            NoFrame::Malformed(error) | NoFrame::Refused(_, error) => Self::Fatal(error),
        }
    }
}

pub(crate) struct Connection {
    socket: Arc<Socket>,
    session: Session,
    cancel: Cancel,
    client: Client,
    slot: Slot,
    vanished_client_grace: Duration,
    /// An error happened in this batch: pass over everything up to Sync.
    skipping: bool,
    /// Messages are taken one by one up to Sync, also where they make a batch.
    one_by_one: bool,
    /// All was answered: the client is to say what comes next.
    is_ready: bool,
}

/// Runs a session's future under watch. A macro, because the future borrows
/// the session and the client while the watch needs the other fields.
macro_rules! run {
    ($self:ident, $statement:expr) => {{
        $self.slot.set_running(true);
        let statement = pin!($statement);
        let outcome = watched(
            &$self.socket,
            &$self.cancel,
            $self.vanished_client_grace,
            statement,
        )
        .await;
        $self.slot.set_running(false);
        let outcome = outcome?;
        if let Some(end) = $self.cancel.session_end() {
            return Err(end.into());
        }
        outcome
    }};
}

impl Connection {
    /// A connection whose client was let in; `out` may hold messages for it.
    pub(crate) fn new(
        socket: Arc<Socket>,
        session: Session,
        slot: Slot,
        out: BytesMut,
        vanished_client_grace: Duration,
    ) -> Self {
        let cancel = session.cancel();
        slot.set_cancel(cancel.clone());
        let link = SocketLink::new(Arc::clone(&socket), cancel.clone());
        Self {
            socket,
            session,
            cancel,
            client: Client {
                out,
                link: Box::new(link),
            },
            slot,
            vanished_client_grace,
            skipping: false,
            one_by_one: false,
            is_ready: false,
        }
    }

    /// Serves the client until the connection ends.
    pub(crate) async fn serve(mut self) {
        let mut ending = match guarded(pin!(self.converse())).await {
            Ok(Err(ending)) => ending,
            Err(panicked) => panicked.into(),
        };
        if let (Ending::Gone, Some(end)) = (&ending, self.cancel.session_end()) {
            // What was sent at last was not taken for that.
            ending = end.into();
        }
        self.end(ending).await;
    }

    async fn converse(&mut self) -> Result<Infallible, Ending> {
        self.greet().await?;
        loop {
            let message = self.next_message().await?;
            Metrics::add(&self.socket.metrics().messages_received, 1);
            match message {
                Ok(Message::Batch(batch)) => self.batch(batch).await?,
                Ok(Message::Frame(frame)) => self.step(frame).await?,
                Err((tag, error)) => self.refuse(tag, &error).await?,
            }
        }
    }

    async fn greet(&mut self) -> Result<(), Ending> {
        let out = &mut self.client.out;
        messages::authentication_ok(out);
        for (name, value) in self.session.startup_parameters() {
            messages::parameter_status(out, &name, &value);
        }
        messages::backend_key_data(out, self.slot.process_id, self.slot.secret());
        messages::ready_for_query(out, b'I');
        self.is_ready = true;
        self.socket.flush(out).await?;
        Ok(())
    }

    /// Answers one message.
    async fn step(&mut self, frame: Frame) -> Result<(), Ending> {
        match frame.tag {
            b'X' => return Err(Ending::Gone),
            b'S' => return self.sync().await,
            _ if self.skipping => return Ok(()),
            b'Q' => return self.query(&frame.body).await,
            b'F' => return self.function_call().await,
            b'H' => self.socket.flush(&mut self.client.out).await?,
            // The rest of a COPY that has failed.
            b'd' | b'c' | b'f' => {}
            b'p' => {
                let error = SqlError::protocol("unexpected password message");
                return Err(Ending::Fatal(error));
            }
            _ => {
                if let Err(error) = self.extended(&frame).await? {
                    messages::error_response(&mut self.client.out, "ERROR", &error);
                    self.session.extended_error();
                    self.skipping = true;
                }
            }
        }
        self.socket.flush_if_large(&mut self.client.out).await?;
        Ok(())
    }

    /// Answers a message that got no memory.
    async fn refuse(&mut self, tag: u8, error: &SqlError) -> Result<(), Ending> {
        if self.skipping {
            return Ok(());
        }
        messages::error_response(&mut self.client.out, "ERROR", error);
        self.session.extended_error();
        match tag {
            b'Q' => self.ready().await,
            b'F' => self.sync().await,
            _ => {
                self.skipping = true;
                self.socket.flush_if_large(&mut self.client.out).await?;
                Ok(())
            }
        }
    }

    /// The next message, or the tag of one that there is no memory for, and why; before
    /// waiting for it, what the client may be waiting for is written.
    async fn next_message(&mut self) -> Result<Result<Message, (u8, SqlError)>, Ending> {
        let mut idle_until = None;
        loop {
            if let Some(end) = self.cancel.idle_end() {
                return Err(end.into());
            }
            let message = match self.skipping || self.one_by_one {
                true => self.socket.frame().map(|frame| frame.map(Message::Frame)),
                false => self.socket.message(),
            };
            match message {
                Ok(Some(message)) => {
                    self.is_ready = false;
                    return Ok(Ok(message));
                }
                Ok(None) => {}
                Err(NoFrame::Refused(tag, error)) => {
                    self.is_ready = false;
                    return Ok(Err((tag, error)));
                }
                Err(end) => return Err(end.into()),
            }
            // A client that used Flush where others use Sync learns of an
            // error only if it is written now: its Flush is passed over.
            if self.skipping {
                self.socket.flush(&mut self.client.out).await?;
            }
            if idle_until.is_none() && self.is_ready {
                let allowed = self.session.idle_timeout();
                idle_until = Some(allowed.map(|(time, error)| (Instant::now() + time, error)));
            }
            let is_idle = self.is_ready && self.session.transaction_status() == b'I';
            if is_idle {
                self.session.take_notifications(&mut self.client.out);
                if !self.client.out.is_empty() {
                    self.socket.flush(&mut self.client.out).await?;
                }
            }
            let _note = self.cancel.note_wait(WaitsFor::ClientRead);
            let said = async {
                tokio::select! {
                    biased;
                    () = self.socket.fill() => {}
                    _ = self.cancel.idle_ended() => {}
                    () = self.session.notified(), if is_idle => {}
                }
            };
            match &idle_until {
                Some(Some((until, error))) => {
                    if timeout_at(*until, said).await.is_err() {
                        return Err(Ending::Fatal(error.clone()));
                    }
                }
                Some(None) | None => said.await,
            }
        }
    }

    async fn query(&mut self, body: &[u8]) -> Result<(), Ending> {
        match only_string(body) {
            Ok(sql) => run!(self, self.session.simple_query(sql, &mut self.client)),
            Err(error) => {
                messages::error_response(&mut self.client.out, "ERROR", &error);
                self.session.extended_error();
            }
        }
        self.ready().await
    }

    async fn function_call(&mut self) -> Result<(), Ending> {
        let error = SqlError::unsupported(
            "the function call protocol is not supported",
            "Use SELECT function(…).",
        );
        messages::error_response(&mut self.client.out, "ERROR", &error);
        self.session.extended_error();
        self.sync().await
    }

    /// The outer error ends the connection, the inner one the batch.
    async fn extended(&mut self, frame: &Frame) -> Result<Result<(), SqlError>, Ending> {
        let Self {
            session, client, ..
        } = self;
        let body = &frame.body[..];
        Ok(match frame.tag {
            b'P' => match Parse::read(body) {
                Ok(parse) => run!(
                    self,
                    session.parse(parse.name, parse.sql, parse.parameter_oids.as_slice())
                )
                .map(|()| messages::parse_complete(&mut self.client.out)),
                Err(error) => Err(error),
            },
            b'B' => match Bind::read(body) {
                Ok(bind) => run!(
                    self,
                    session.bind(
                        bind.portal,
                        bind.statement,
                        bind.parameter_formats.as_slice(),
                        bind.parameters.as_slice(),
                        bind.result_formats.as_slice(),
                    )
                )
                .map(|()| messages::bind_complete(&mut self.client.out)),
                Err(error) => Err(error),
            },
            b'D' => match Target::read(body, "DESCRIBE") {
                Ok(Target::Statement(name)) => {
                    run!(self, session.describe_statement(name, client))
                }
                Ok(Target::Portal(name)) => run!(self, session.describe_portal(name, client)),
                Err(error) => Err(error),
            },
            b'E' => match Execute::read(body) {
                Ok(execute) => {
                    // Most batches are one statement: it can commit by itself.
                    session.sync_follows(self.socket.sync_is_next());
                    run!(
                        self,
                        session.execute(execute.portal, execute.max_rows, client)
                    )
                }
                Err(error) => Err(error),
            },
            b'C' => Target::read(body, "CLOSE").map(|target| {
                match target {
                    Target::Statement(name) => session.close_statement(name),
                    Target::Portal(name) => session.close_portal(name),
                }
                messages::close_complete(&mut client.out);
            }),
            other => Err(SqlError::protocol(format!(
                "invalid frontend message type {other}"
            ))),
        })
    }

    /// One statement, from its Bind to the Sync.
    async fn batch(&mut self, batch: Batch) -> Result<(), Ending> {
        let Self {
            session, client, ..
        } = self;
        let answered = match batch.bind() {
            Ok(bind) => run!(
                self,
                session.run_batch(
                    bind.statement,
                    bind.parameter_formats.as_slice(),
                    bind.parameters.as_slice(),
                    bind.result_formats.as_slice(),
                    batch.describes,
                    client,
                )
            ),
            Err(error) => Err(error),
        };
        if matches!(answered, Ok(false)) {
            self.one_by_one = true;
            Metrics::subtract(&self.socket.metrics().messages_received, 1);
            self.socket.put_back(batch);
            return Ok(());
        }
        Metrics::add(
            &self.socket.metrics().messages_received,
            batch.messages() - 1,
        );
        self.socket.give_back(batch);
        let Err(error) = answered else {
            return self.ready().await;
        };
        messages::error_response(&mut self.client.out, "ERROR", &error);
        self.session.extended_error();
        self.sync().await
    }

    async fn sync(&mut self) -> Result<(), Ending> {
        self.skipping = false;
        self.one_by_one = false;
        if let Err(error) = run!(self, self.session.sync()) {
            messages::error_response(&mut self.client.out, "ERROR", &error);
        }
        self.ready().await
    }

    /// Ends a batch: changed settings, ReadyForQuery, and the one write.
    async fn ready(&mut self) -> Result<(), Ending> {
        let out = &mut self.client.out;
        for (name, value) in self.session.changed_parameters() {
            messages::parameter_status(out, name, &value);
        }
        self.session.take_notifications(out);
        messages::ready_for_query(out, self.session.transaction_status());
        self.is_ready = true;
        self.socket.flush(out).await?;
        Ok(())
    }

    async fn end(self, ending: Ending) {
        let Self {
            socket,
            mut session,
            client,
            slot,
            ..
        } = self;
        let Client { mut out, link } = client;
        // The link holds the socket too.
        drop(link);
        let error = match ending {
            Ending::Panicked(words) => {
                Metrics::add(&socket.metrics().panics, 1);
                session.log_panic(&words);
                let error = SqlError::internal(format!("internal error: {words}"))
                    .with_detail("The session was closed; its transaction was rolled back.")
                    .with_hint("The server's log has the statement. Other sessions go on.");
                Some(error)
            }
            Ending::Fatal(error) => Some(error),
            Ending::Gone => None,
        };
        let terminated = guarded(pin!(session.terminate())).await;
        if let Err(Panicked(words)) = terminated {
            Metrics::add(&socket.metrics().panics, 1);
            session.log_panic(&words);
        }
        let told = error.is_some();
        if let Some(error) = error {
            // A panic, or a client that took nothing in, may have cut a message.
            match socket.whole_messages(&out) {
                Some(whole) => {
                    out.truncate(whole);
                    messages::error_response(&mut out, "FATAL", &error);
                }
                None => out.clear(),
            }
        }
        // Rolled back and gone before the client hears of it: whoever
        // reconnects after the error finds a free slot and no locks.
        drop(session);
        drop(slot);
        socket.flush_last(out).await;
        if let (Some(socket), true) = (Arc::into_inner(socket), told) {
            socket.close().await;
        }
    }
}
