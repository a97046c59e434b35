//! The properties of packets: each is a number and a value whose shape the number says.

use bytes::Bytes;

use super::{Fault, cursor::Cursor};

pub(super) const MESSAGE_EXPIRY: u8 = 0x02;
pub(super) const SUBSCRIPTION_ID: u8 = 0x0b;
pub(super) const SESSION_EXPIRY: u8 = 0x11;
pub(super) const ASSIGNED_CLIENT_ID: u8 = 0x12;
pub(super) const SERVER_KEEP_ALIVE: u8 = 0x13;
pub(super) const AUTHENTICATION_METHOD: u8 = 0x15;
pub(super) const REASON: u8 = 0x1f;
pub(super) const RECEIVE_MAXIMUM: u8 = 0x21;
pub(super) const TOPIC_ALIAS: u8 = 0x23;
pub(super) const MAXIMUM_QOS: u8 = 0x24;
pub(super) const RETAIN_AVAILABLE: u8 = 0x25;
pub(super) const USER_PROPERTY: u8 = 0x26;
pub(super) const MAXIMUM_PACKET: u8 = 0x27;
pub(super) const SUBSCRIPTION_IDS_AVAILABLE: u8 = 0x29;

/// One property, as far as the broker cares.
pub(super) struct Property {
    pub(super) name: u8,
    /// Its value, if it is a number.
    pub(super) number: u32,
    /// How many bytes of the properties follow behind its value.
    pub(super) left: usize,
}

/// Reads all properties and shows each; returns them as they were.
pub(super) fn read(packet: &mut Cursor, mut see: impl FnMut(Property) -> Result<(), Fault>) -> Result<Bytes, Fault> {
    let length = packet.variable()?;
    let all = packet.take(length)?;
    let mut rest = Cursor::new(all.clone());
    let mut seen = 0_u64;
    while !rest.is_empty() {
        let name = rest.u8()?;
        let number = value(name, &mut rest)?;
        let bit = 1_u64 << (name & 0x3f);
        if seen & bit != 0 && !matches!(name, USER_PROPERTY | SUBSCRIPTION_ID) {
            return Err(Fault::Protocol("a property is given twice"));
        }
        seen |= bit;
        see(Property { name, number, left: rest.len() })?;
    }
    Ok(all)
}

/// Reads a value in the shape its property has; one that is no number gives zero.
fn value(name: u8, rest: &mut Cursor) -> Result<u32, Fault> {
    match name {
        0x01 | 0x17 | 0x19 | MAXIMUM_QOS | RETAIN_AVAILABLE | 0x28 | SUBSCRIPTION_IDS_AVAILABLE | 0x2a => {
            rest.u8().map(u32::from)
        }
        SERVER_KEEP_ALIVE | RECEIVE_MAXIMUM | 0x22 | TOPIC_ALIAS => rest.u16().map(u32::from),
        MESSAGE_EXPIRY | SESSION_EXPIRY | 0x18 | MAXIMUM_PACKET => rest.u32(),
        SUBSCRIPTION_ID => rest.variable().map(|number| number as u32),
        0x03 | 0x08 | ASSIGNED_CLIENT_ID | AUTHENTICATION_METHOD | 0x1a | 0x1c | REASON => rest.text().map(|_| 0),
        0x09 | 0x16 => rest.binary().map(|_| 0),
        USER_PROPERTY => rest.text().and_then(|_| rest.text()).map(|_| 0),
        _ => Err(Fault::Malformed("a property is unknown")),
    }
}
