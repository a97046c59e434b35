//! MQTT 5 packets as a server reads and writes them.
//!
//! Only what the conversation needs: deliveries at most or at least once, no retained messages, no wills, no sessions that
//! outlive a connection. The answer to CONNECT says so, and a client that asks for more is refused with a reason.

mod cursor;
mod properties;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use self::{
    cursor::Cursor,
    properties::{
        ASSIGNED_CLIENT_ID, AUTHENTICATION_METHOD, MAXIMUM_PACKET, MAXIMUM_QOS, MESSAGE_EXPIRY, RECEIVE_MAXIMUM,
        RETAIN_AVAILABLE, SERVER_KEEP_ALIVE, SESSION_EXPIRY, SUBSCRIPTION_ID, SUBSCRIPTION_IDS_AVAILABLE, TOPIC_ALIAS,
    },
};

/// The type of a packet that carries a message.
const PUBLISH: u8 = 3;
/// Smaller messages are copied, so that one that waits does not keep all that was read with it: what a message keeps in memory is
/// never many times its own size.
const COPIED: usize = 16 * 1024;

/// Why a connection ends or a request fails, as MQTT numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Success = 0x00,
    NoMatchingSubscribers = 0x10,
    Malformed = 0x81,
    Protocol = 0x82,
    NotSupportedHere = 0x83,
    Version = 0x84,
    BadCredentials = 0x86,
    NotAuthorized = 0x87,
    ShuttingDown = 0x8b,
    BadMethod = 0x8c,
    KeepAlive = 0x8d,
    TakenOver = 0x8e,
    BadFilter = 0x8f,
    BadTopic = 0x90,
    AliasInvalid = 0x94,
    TooLarge = 0x95,
    Quota = 0x97,
    RetainUnsupported = 0x9a,
    QosUnsupported = 0x9b,
    NoSubscriptionIds = 0xa1,
}

/// What is wrong with what a client sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{0}")]
    Malformed(&'static str),
    #[error("{0}")]
    Protocol(&'static str),
    #[error("{1}")]
    Refused(Reason, &'static str),
    #[error("a packet of {0} bytes is larger than this broker takes")]
    TooLarge(usize),
    /// The client speaks an older MQTT, and must be told in its words.
    #[error("the client speaks version {0} of the protocol, not 5")]
    Version(u8),
}

impl Fault {
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::Malformed(_) => Reason::Malformed,
            Self::Protocol(_) => Reason::Protocol,
            Self::Refused(reason, _) => reason,
            Self::TooLarge(_) => Reason::TooLarge,
            Self::Version(_) => Reason::Version,
        }
    }
}

/// A packet from a client.
#[derive(Debug)]
pub(crate) enum Request {
    Connect(Box<Connect>),
    Publish(Publish),
    PubAck(u16),
    Subscribe { id: u16, filters: Vec<Filter> },
    Unsubscribe { id: u16, filters: Vec<String> },
    Ping,
    Disconnect,
}

/// How a client introduces itself.
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) client_id: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Bytes>,
    /// Seconds; zero means that the client promises nothing.
    pub(crate) keep_alive: u16,
    /// How many deliveries it takes before it acknowledges the first.
    pub(crate) receive_maximum: u16,
    /// The largest packet it takes.
    pub(crate) max_packet: usize,
}

/// A message on its way from one client to others.
#[derive(Clone, Debug)]
pub(crate) struct Publish {
    pub(crate) topic: Bytes,
    /// The number to acknowledge; absent from a message that needs no acknowledgement.
    pub(crate) id: Option<u16>,
    /// As they came, to be passed on as they are.
    pub(crate) properties: Bytes,
    /// Where the message's time to live stands in the properties, and what it is, in seconds.
    pub(crate) expiry: Option<(usize, u32)>,
    pub(crate) payload: Bytes,
}

impl Publish {
    pub(crate) fn topic(&self) -> &str {
        std::str::from_utf8(&self.topic).unwrap_or_default()
    }

    /// An upper bound of the bytes that the message needs on the wire, and in memory.
    pub(crate) fn bytes(&self) -> usize {
        /// Header, packet number, and the lengths of packet, topic and properties.
        const FRAME: usize = 13;
        FRAME + self.topic.len() + self.properties.len() + self.payload.len()
    }
}

/// A wish to receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) filter: String,
    pub(crate) at_least_once: bool,
    /// Whether the client does not want to hear itself.
    pub(crate) no_local: bool,
}

/// Takes the next packet out of what was received; `None` while it is not all there.
pub(crate) fn read(buffer: &mut BytesMut, max_packet: usize) -> Result<Option<Request>, Fault> {
    let Some(first) = buffer.first().copied() else { return Ok(None) };
    let Some((length, digits)) = cursor::variable(&buffer[1..])? else { return Ok(None) };
    let whole = 1 + digits + length;
    if whole > max_packet {
        return Err(Fault::TooLarge(whole));
    }
    if buffer.len() < whole {
        buffer.reserve(whole - buffer.len());
        return Ok(None);
    }
    let mut packet = if first >> 4 == PUBLISH && whole < COPIED {
        let copy = Bytes::copy_from_slice(&buffer[..whole]);
        buffer.advance(whole);
        copy
    } else {
        buffer.split_to(whole).freeze()
    };
    packet.advance(1 + digits);
    request(first, Cursor::new(packet)).map(Some)
}

fn request(first: u8, mut packet: Cursor) -> Result<Request, Fault> {
    let flags = first & 0x0f;
    let (kind, wanted) = match first >> 4 {
        PUBLISH => return publish(flags, packet).map(Request::Publish),
        kind @ (8 | 10) => (kind, 2),
        kind => (kind, 0),
    };
    if flags != wanted {
        return Err(Fault::Malformed("a packet has impossible flags"));
    }
    match kind {
        1 => connect(packet).map(|connect| Request::Connect(Box::new(connect))),
        4 => packet.u16().map(Request::PubAck),
        8 => subscribe(packet),
        10 => unsubscribe(packet),
        12 => Ok(Request::Ping),
        14 => Ok(Request::Disconnect),
        5..=7 => Err(Fault::Refused(Reason::QosUnsupported, "exactly-once delivery is not offered")),
        15 => Err(Fault::Refused(Reason::BadMethod, "no such authentication is offered")),
        _ => Err(Fault::Protocol("a client must not send such a packet")),
    }
}

fn connect(mut packet: Cursor) -> Result<Connect, Fault> {
    const WILL: u8 = 0x04;
    const PASSWORD: u8 = 0x40;
    const USER: u8 = 0x80;
    if packet.binary()?.as_ref() != b"MQTT" {
        return Err(Fault::Malformed("this is not MQTT"));
    }
    let version = packet.u8()?;
    if version != 5 {
        return Err(Fault::Version(version));
    }
    let flags = packet.u8()?;
    if flags & 1 != 0 {
        return Err(Fault::Malformed("a packet has impossible flags"));
    }
    if flags & WILL != 0 {
        return Err(Fault::Refused(Reason::NotSupportedHere, "wills are not offered"));
    }
    // Whether the session should be clean does not matter: every session is new, as the answer says.
    let keep_alive = packet.u16()?;
    let (mut receive_maximum, mut max_packet) = (u16::MAX, usize::MAX);
    properties::read(&mut packet, |property| {
        match property.name {
            RECEIVE_MAXIMUM => receive_maximum = property.number as u16,
            MAXIMUM_PACKET => max_packet = property.number as usize,
            AUTHENTICATION_METHOD => {
                return Err(Fault::Refused(Reason::BadMethod, "no such authentication is offered"));
            }
            _ => {}
        }
        Ok(())
    })?;
    if receive_maximum == 0 || max_packet == 0 {
        return Err(Fault::Protocol("a limit is zero"));
    }
    let client_id = packet.string()?;
    let user = (flags & USER != 0).then(|| packet.string()).transpose()?;
    let password = (flags & PASSWORD != 0).then(|| packet.binary()).transpose()?;
    Ok(Connect { client_id, user, password, keep_alive, receive_maximum, max_packet })
}

fn publish(flags: u8, mut packet: Cursor) -> Result<Publish, Fault> {
    if flags & 1 != 0 {
        return Err(Fault::Refused(Reason::RetainUnsupported, "retained messages are not offered"));
    }
    let at_least_once = match flags >> 1 & 3 {
        0 => false,
        1 => true,
        2 => return Err(Fault::Refused(Reason::QosUnsupported, "exactly-once delivery is not offered")),
        _ => return Err(Fault::Malformed("there is no such quality of service")),
    };
    let topic = packet.text()?;
    if topic.is_empty() || topic.iter().any(|byte| matches!(byte, b'+' | b'#')) {
        return Err(Fault::Refused(Reason::BadTopic, "nobody can publish on such a topic"));
    }
    let id = at_least_once.then(|| packet.u16()).transpose()?;
    if id == Some(0) {
        return Err(Fault::Protocol("packets are numbered from one"));
    }
    let mut expiry = None;
    let properties = properties::read(&mut packet, |property| {
        match property.name {
            MESSAGE_EXPIRY => expiry = Some((property.left, property.number)),
            TOPIC_ALIAS => return Err(Fault::Refused(Reason::AliasInvalid, "topic aliases are not offered")),
            SUBSCRIPTION_ID => return Err(Fault::Protocol("a client must not send such a property")),
            _ => {}
        }
        Ok(())
    })?;
    // The value is the last four bytes before what is left.
    let expiry = expiry.map(|(left, seconds)| (properties.len() - left - 4, seconds));
    Ok(Publish { topic, id, properties, expiry, payload: packet.rest() })
}

fn subscribe(mut packet: Cursor) -> Result<Request, Fault> {
    let id = packet.u16()?;
    properties::read(&mut packet, |property| match property.name {
        SUBSCRIPTION_ID => {
            Err(Fault::Refused(Reason::NoSubscriptionIds, "subscriptions are not numbered by this broker"))
        }
        _ => Ok(()),
    })?;
    let mut filters = Vec::new();
    while !packet.is_empty() {
        let filter = packet.string()?;
        let options = packet.u8()?;
        if options & 3 == 3 || options & 0xc0 != 0 {
            return Err(Fault::Protocol("a subscription has impossible options"));
        }
        filters.push(Filter { filter, at_least_once: options & 3 != 0, no_local: options & 4 != 0 });
    }
    match filters.is_empty() || id == 0 {
        true => Err(Fault::Protocol("a subscription asks for nothing")),
        false => Ok(Request::Subscribe { id, filters }),
    }
}

fn unsubscribe(mut packet: Cursor) -> Result<Request, Fault> {
    let id = packet.u16()?;
    properties::read(&mut packet, |_| Ok(()))?;
    let mut filters = Vec::new();
    while !packet.is_empty() {
        filters.push(packet.string()?);
    }
    Ok(Request::Unsubscribe { id, filters })
}

/// What a client is told when it may come in.
pub(crate) struct Welcome<'a> {
    pub(crate) max_packet: u32,
    pub(crate) receive_maximum: u16,
    /// The keep-alive it must use, if not the one it wished.
    pub(crate) keep_alive: Option<u16>,
    /// The name it got, if it had none.
    pub(crate) client_id: Option<&'a str>,
}

/// Appends the answer to CONNECT.
pub(crate) fn write_welcome(out: &mut BytesMut, welcome: &Welcome<'_>) {
    let mut properties = BytesMut::with_capacity(64);
    properties.put_u8(SESSION_EXPIRY);
    properties.put_u32(0);
    properties.put_u8(RECEIVE_MAXIMUM);
    properties.put_u16(welcome.receive_maximum);
    for (name, value) in [(MAXIMUM_QOS, 1), (RETAIN_AVAILABLE, 0), (SUBSCRIPTION_IDS_AVAILABLE, 0)] {
        properties.put_slice(&[name, value]);
    }
    properties.put_u8(MAXIMUM_PACKET);
    properties.put_u32(welcome.max_packet);
    if let Some(keep_alive) = welcome.keep_alive {
        properties.put_u8(SERVER_KEEP_ALIVE);
        properties.put_u16(keep_alive);
    }
    if let Some(client_id) = welcome.client_id {
        properties.put_u8(ASSIGNED_CLIENT_ID);
        put_text(&mut properties, client_id.as_bytes());
    }
    write_frame(out, 0x20, &[0, Reason::Success as u8], &properties, &[]);
}

/// Appends the refusal of a CONNECT.
pub(crate) fn write_refusal(out: &mut BytesMut, fault: Reason) {
    match fault {
        // Clients of versions 3 know this one only by its old number, in a packet without properties.
        Reason::Version => out.put_slice(&[0x20, 2, 0, 1]),
        reason => write_frame(out, 0x20, &[0, reason as u8], &[], &[]),
    }
}

pub(crate) fn write_puback(out: &mut BytesMut, id: u16, reason: Reason) {
    let [high, low] = id.to_be_bytes();
    match reason {
        Reason::Success => out.put_slice(&[0x40, 2, high, low]),
        reason => out.put_slice(&[0x40, 3, high, low, reason as u8]),
    }
}

/// Appends the answer to SUBSCRIBE.
pub(crate) fn write_suback(out: &mut BytesMut, id: u16, results: &[u8]) {
    write_frame(out, 0x90, &id.to_be_bytes(), &[], results);
}

/// Appends the answer to UNSUBSCRIBE.
pub(crate) fn write_unsuback(out: &mut BytesMut, id: u16, results: &[u8]) {
    write_frame(out, 0xb0, &id.to_be_bytes(), &[], results);
}

pub(crate) fn write_pong(out: &mut BytesMut) {
    out.put_slice(&[0xd0, 0]);
}

pub(crate) fn write_disconnect(out: &mut BytesMut, reason: Reason) {
    out.put_slice(&[0xe0, 1, reason as u8]);
}

/// Appends a message for one receiver, which waited for some seconds.
pub(crate) fn write_publish(out: &mut BytesMut, message: &Publish, id: Option<u16>, waited: u32) {
    let id_bytes = if id.is_some() { 2 } else { 0 };
    let properties = message.properties.len();
    let length = 2 + message.topic.len() + id_bytes + digits(properties) + properties + message.payload.len();
    out.reserve(1 + digits(length) + length);
    out.put_u8(if id.is_some() { 0x32 } else { 0x30 });
    put_variable(out, length);
    put_text(out, &message.topic);
    id.into_iter().for_each(|id| out.put_u16(id));
    put_variable(out, properties);
    let start = out.len();
    out.put_slice(&message.properties);
    if let Some((place, seconds)) = message.expiry.filter(|_| waited > 0) {
        let left = seconds.saturating_sub(waited).to_be_bytes();
        out[start + place..start + place + left.len()].copy_from_slice(&left);
    }
    out.put_slice(&message.payload);
}

fn write_frame(out: &mut BytesMut, first: u8, head: &[u8], properties: &[u8], payload: &[u8]) {
    out.put_u8(first);
    put_variable(out, head.len() + digits(properties.len()) + properties.len() + payload.len());
    out.put_slice(head);
    put_variable(out, properties.len());
    out.put_slice(properties);
    out.put_slice(payload);
}

fn put_text(out: &mut BytesMut, text: &[u8]) {
    out.put_u16(u16::try_from(text.len()).unwrap_or(u16::MAX));
    out.put_slice(text);
}

fn put_variable(out: &mut BytesMut, mut number: usize) {
    loop {
        let digit = (number & 0x7f) as u8;
        number >>= 7;
        out.put_u8(if number > 0 { digit | 0x80 } else { digit });
        if number == 0 {
            return;
        }
    }
}

/// How many bytes a variable number has.
fn digits(number: usize) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

/// What must hold for anything a client sends: it is refused or read, and a message that is read goes on as it came. For
/// fuzzing; panics when it does not hold.
pub fn check_any(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    while let Ok(Some(request)) = read(&mut buffer, 1 << 20) {
        let Request::Publish(message) = request else { continue };
        let mut out = BytesMut::new();
        write_publish(&mut out, &message, message.id, 0);
        assert!(out.len() <= message.bytes());
        let Ok(Some(Request::Publish(again))) = read(&mut out, usize::MAX) else { panic!("what we write can be read") };
        assert_eq!((&again.topic, &again.payload, again.id), (&message.topic, &message.payload, message.id));
        assert_eq!((&again.properties, again.expiry), (&message.properties, message.expiry));
    }
}

#[cfg(test)]
mod tests;
