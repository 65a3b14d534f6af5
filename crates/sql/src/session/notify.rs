//! LISTEN and NOTIFY: messages from committed transactions to the sessions that listen.
//!
//! What a transaction asks for waits until it commits; then its messages go to the inboxes of
//! all who listen, all at once: everybody gets the messages of two transactions in the same
//! order. The client gets them when its session is in no transaction. Messages are charged to
//! one account from NOTIFY until the last client has them.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use parking_lot::Mutex;
use thermocline_engine::{Account, Charge, ChargeKind, Database, Event};

use super::Session;
use super::context::SessionContext;
use crate::error::{Result, SqlError};
use crate::messages;

/// A channel's name is shorter, in bytes.
const CHANNEL_BYTES: usize = 64;
/// A payload is shorter, in bytes.
const PAYLOAD_BYTES: usize = 8000;
/// What a message takes beside its texts, in bytes.
const MESSAGE_BYTES: usize = 128;
/// What it takes in an inbox, in bytes.
const INBOX_BYTES: usize = 16;

/// One message.
struct Message {
    channel: String,
    payload: String,
    _charge: Charge,
}

impl Message {
    fn said(&self) -> (&str, &str) {
        (&self.channel, &self.payload)
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.said() == other.said()
    }
}

impl Eq for Message {}

impl Hash for Message {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.said().hash(state);
    }
}

/// What a transaction does when it commits.
enum Action {
    Listen(String, Charge),
    Unlisten(Option<String>),
    Notify(Message),
}

/// Who listens to which channel, and the account of all messages.
pub(super) struct Notifications {
    account: Account,
    /// The sessions by channel and process id.
    channels: Mutex<BTreeMap<String, BTreeMap<i32, Listener>>>,
}

impl Notifications {
    pub(super) fn new(db: &Database) -> Self {
        Self {
            account: db.clients().open(),
            channels: Mutex::default(),
        }
    }

    /// The share of what they may hold that messages hold.
    fn usage(&self) -> f64 {
        let most = self.account.pool().account_max().max(1);
        self.account.total() as f64 / most as f64
    }
}

/// Where its messages go, and what its name in the list is charged.
type Listener = (Arc<Inbox>, Charge);

/// What came for a session and its client has not got yet.
#[derive(Default)]
struct Inbox {
    messages: Mutex<VecDeque<(i32, Arc<Message>)>>,
    arrived: Event,
}

/// A session's part in it.
#[derive(Default)]
pub(super) struct Listening {
    inbox: Arc<Inbox>,
    listens: AtomicBool,
    /// What the transaction has asked for.
    pending: Mutex<Vec<Action>>,
}

impl SessionContext {
    /// LISTEN, when the transaction commits.
    ///
    /// # Errors
    /// 22023 for a channel that cannot be, 53200 without memory for its name.
    pub(super) fn listen(&self, channel: &str) -> Result<()> {
        check_channel(channel)?;
        let bytes = MESSAGE_BYTES + channel.len();
        let charge = self.account.charge(ChargeKind::Session, bytes as u64)?;
        self.listening
            .add(Action::Listen(channel.to_owned(), charge));
        Ok(())
    }

    /// UNLISTEN, all for None, likewise.
    pub(super) fn unlisten(&self, channel: Option<&str>) {
        self.listening
            .add(Action::Unlisten(channel.map(str::to_owned)));
    }

    /// NOTIFY, likewise.
    ///
    /// # Errors
    /// 22023 for a channel or a payload that cannot be, 54000 when clients do not take what is
    /// there already.
    pub(crate) fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        check_channel(channel)?;
        if payload.len() >= PAYLOAD_BYTES {
            return Err(SqlError::new("22023", "payload string too long"));
        }
        let notifications = self.sessions.notifications();
        let channels = notifications.channels.lock();
        let listeners = channels.get(channel).map_or(0, BTreeMap::len);
        drop(channels);
        let bytes = MESSAGE_BYTES + channel.len() + payload.len() + listeners * INBOX_BYTES;
        let charge = notifications
            .account
            .charge(ChargeKind::Message, bytes as u64)
            .map_err(|_| {
                SqlError::new("54000", "too many notifications in the NOTIFY queue")
                    .with_detail("Sessions that listen have not taken what was sent before.")
                    .with_hint("End transactions that are open in sessions that listen.")
            })?;
        self.listening.add(Action::Notify(Message {
            channel: channel.to_owned(),
            payload: payload.to_owned(),
            _charge: charge,
        }));
        Ok(())
    }

    /// The channels that it listens to.
    pub(crate) fn listening_channels(&self) -> Vec<String> {
        let channels = self.sessions.notifications().channels.lock();
        let own = |(_, of): &(&String, &BTreeMap<i32, Listener>)| of.contains_key(&self.process_id);
        channels
            .iter()
            .filter(own)
            .map(|(channel, _)| channel.clone())
            .collect()
    }

    /// The share of the room for messages that they take.
    pub(crate) fn notification_usage(&self) -> f64 {
        self.sessions.notifications().usage()
    }

    /// How much the transaction has asked for, for [`SessionContext::forget_asked`].
    pub(super) fn asked(&self) -> usize {
        self.listening.pending.lock().len()
    }

    /// What was asked for after this point will not be.
    pub(super) fn forget_asked(&self, after: usize) {
        self.listening.pending.lock().truncate(after);
    }

    /// The transaction has committed: what it asked for happens.
    #[expect(
        clippy::mutable_key_type,
        reason = "a message is told apart by its texts"
    )]
    pub(super) fn do_asked(&self) {
        let pending = std::mem::take(&mut *self.listening.pending.lock());
        if pending.is_empty() {
            return;
        }
        let mut told: BTreeMap<i32, Arc<Inbox>> = BTreeMap::new();
        let mut sent = HashSet::new();
        let mut channels = self.sessions.notifications().channels.lock();
        for action in pending {
            match action {
                Action::Listen(channel, charge) => {
                    let inbox = Arc::clone(&self.listening.inbox);
                    let of = channels.entry(channel).or_default();
                    of.insert(self.process_id, (inbox, charge));
                    self.listening.listens.store(true, Ordering::Relaxed);
                }
                Action::Unlisten(channel) => channels.retain(|name, of| {
                    if channel.as_ref().is_none_or(|channel| channel == name) {
                        of.remove(&self.process_id);
                    }
                    !of.is_empty()
                }),
                Action::Notify(message) => {
                    let message = Arc::new(message);
                    // One and the same is sent once.
                    if !sent.insert(Arc::clone(&message)) {
                        continue;
                    }
                    let Some(of) = channels.get(&message.channel) else {
                        continue;
                    };
                    for (process_id, (inbox, _)) in of {
                        let mut messages = inbox.messages.lock();
                        messages.push_back((self.process_id, Arc::clone(&message)));
                        drop(messages);
                        told.insert(*process_id, Arc::clone(inbox));
                    }
                }
            }
        }
        drop(channels);
        for inbox in told.values() {
            inbox.arrived.notify();
        }
    }

    /// The session listens to nothing any more.
    pub(super) fn stop_listening(&self) {
        if self.listening.listens.load(Ordering::Relaxed) {
            self.forget_asked(0);
            self.unlisten(None);
            self.do_asked();
        }
    }
}

impl Listening {
    fn add(&self, action: Action) {
        self.pending.lock().push(action);
    }
}

impl Session {
    /// Ends when there are messages for the client that it may have now: that it is in no
    /// transaction the caller knows.
    pub async fn notified(&self) {
        let listening = &self.context.listening;
        if !listening.listens.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let arrived = listening.inbox.arrived.listen();
        if listening.inbox.messages.lock().is_empty() {
            arrived.await;
        }
    }

    /// Writes the messages for the client, if the session is in no transaction; for before
    /// ReadyForQuery, and when [`Session::notified`] has ended.
    pub fn take_notifications(&mut self, out: &mut BytesMut) {
        let listening = &self.context.listening;
        if !listening.listens.load(Ordering::Relaxed) || self.transaction.status() != b'I' {
            return;
        }
        let came = std::mem::take(&mut *listening.inbox.messages.lock());
        for (process_id, message) in came {
            messages::notification(out, process_id, &message.channel, &message.payload);
        }
    }
}

fn check_channel(channel: &str) -> Result<()> {
    let message = match channel.len() {
        0 => "channel name cannot be empty",
        length if length >= CHANNEL_BYTES => "channel name too long",
        _ => return Ok(()),
    };
    Err(SqlError::new("22023", message))
}
