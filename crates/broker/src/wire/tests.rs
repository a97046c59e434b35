//! Packets as clients send them, whole, in pieces and broken.

use super::*;

/// A CONNECT of version 5 with a receive maximum of 20, user `u` and password `p`.
fn connect_packet() -> Vec<u8> {
    let mut body = vec![0, 4];
    body.extend(b"MQTT");
    body.extend([5, 0xc2, 0, 60, 3, 0x21, 0, 20, 0, 2]);
    body.extend(b"id");
    body.extend([0, 1, b'u', 0, 1, b'p']);
    let mut packet = vec![0x10, body.len() as u8];
    packet.extend(body);
    packet
}

/// A PUBLISH to `t` as number 7 with a time to live of ten seconds, a user property and the payload `hi`.
fn publish_packet() -> Vec<u8> {
    let properties = [0x02, 0, 0, 0, 10, 0x26, 0, 1, b'a', 0, 1, b'b'];
    let mut packet = vec![0x32, 2 + 1 + 2 + 1 + properties.len() as u8 + 2, 0, 1, b't', 0, 7, properties.len() as u8];
    packet.extend(properties);
    packet.extend(b"hi");
    packet
}

fn read_all(bytes: &[u8]) -> Result<Option<Request>, Fault> {
    read(&mut BytesMut::from(bytes), 1000)
}

#[test]
fn a_client_introduces_itself() {
    let Ok(Some(Request::Connect(connect))) = read_all(&connect_packet()) else { panic!() };
    assert_eq!((connect.client_id.as_str(), connect.user.as_deref()), ("id", Some("u")));
    assert_eq!((connect.keep_alive, connect.receive_maximum, connect.max_packet), (60, 20, usize::MAX));
    assert_eq!(connect.password.as_deref(), Some(&b"p"[..]));
}

#[test]
fn packets_come_in_pieces() {
    let mut bytes = connect_packet();
    bytes.extend(publish_packet());
    let mut buffer = BytesMut::new();
    let mut seen = 0;
    for byte in bytes {
        buffer.put_u8(byte);
        seen += usize::from(read(&mut buffer, 1000).unwrap().is_some());
    }
    assert_eq!((seen, buffer.len()), (2, 0));
}

#[test]
fn a_message_passes_unchanged_but_for_its_age() {
    let Ok(Some(Request::Publish(message))) = read_all(&publish_packet()) else { panic!() };
    assert_eq!((message.topic(), message.id, message.payload.as_ref()), ("t", Some(7), &b"hi"[..]));
    let mut out = BytesMut::new();
    write_publish(&mut out, &message, Some(7), 0);
    assert_eq!(out.as_ref(), publish_packet());
    assert!(message.bytes() >= out.len());
    out.clear();
    write_publish(&mut out, &message, None, 4);
    let Ok(Some(Request::Publish(older))) = read_all(&out) else { panic!() };
    assert_eq!((older.id, older.expiry.map(|(_, seconds)| seconds)), (None, Some(6)));
}

#[test]
fn what_is_not_offered_is_refused_with_its_reason() {
    let publish = |first: u8| {
        let mut packet = publish_packet();
        packet[0] = first;
        read_all(&packet).unwrap_err().reason()
    };
    assert_eq!(publish(0x33), Reason::RetainUnsupported);
    assert_eq!(publish(0x34), Reason::QosUnsupported);
    assert_eq!(publish(0x36), Reason::Malformed);
    let mut older = connect_packet();
    older[8] = 4;
    assert_eq!(read_all(&older).unwrap_err(), Fault::Version(4));
    let mut will = connect_packet();
    will[9] |= 0x04;
    assert_eq!(read_all(&will).unwrap_err().reason(), Reason::NotSupportedHere);
    assert_eq!(read_all(&[0x30, 4, 0, 1, b'#', 0]).unwrap_err().reason(), Reason::BadTopic);
    assert_eq!(read_all(&[0x30, 7, 0, 1, b't', 3, 0x23, 0, 1]).unwrap_err().reason(), Reason::AliasInvalid);
    assert_eq!(read_all(&[0x30, 0xff, 0xff, 0xff, 0x7f]).unwrap_err(), Fault::TooLarge(268_435_460));
}

#[test]
fn broken_packets_are_faults() {
    for packet in [
        &[0x30, 0xff, 0xff, 0xff, 0xff, 0xff][..],
        &[0x82, 5, 0, 1, 0, 0, 9],
        &[0x82, 3, 0, 1, 0],
        &[0x80, 3, 0, 1, 0],
        &[0x00, 0],
        &[0x20, 2, 0, 0],
        &[0x40, 1, 0],
        &[0x10, 2, 0, 4],
        &[0x30, 5, 0, 2, 0xff, 0xfe, 0],
        &[0x30, 5, 0, 2, b'a', 0, 0],
        &[0x30, 6, 0, 1, b't', 2, 0x7f, 0],
        &[0x30, 8, 0, 1, b't', 4, 0x01, 0, 0x01, 0],
    ] {
        assert!(read_all(packet).is_err(), "{packet:x?}");
    }
}

/// Every packet with every byte changed, and every beginning of it, is read, refused, or waits for more.
#[test]
fn damage_never_panics() {
    let subscribe = vec![0x82, 9, 0, 1, 0, 0, 3, b'a', b'/', b'+', 1];
    for packet in [connect_packet(), publish_packet(), subscribe] {
        for index in 0..packet.len() {
            for byte in 0..=255 {
                let mut damaged = packet.clone();
                damaged[index] = byte;
                let _any = read_all(&damaged);
                damaged.truncate(index + 1);
                let _any = read_all(&damaged);
            }
        }
    }
}

#[test]
fn answers_are_what_the_standard_says() {
    let mut out = BytesMut::new();
    write_puback(&mut out, 7, Reason::Success);
    write_puback(&mut out, 7, Reason::NotAuthorized);
    write_suback(&mut out, 1, &[1, 0x87]);
    write_disconnect(&mut out, Reason::ShuttingDown);
    write_refusal(&mut out, Reason::Version);
    let want = [
        &[0x40, 2, 0, 7][..],
        &[0x40, 3, 0, 7, 0x87],
        &[0x90, 5, 0, 1, 0, 1, 0x87],
        &[0xe0, 1, 0x8b],
        &[0x20, 2, 0, 1],
    ];
    assert_eq!(out.as_ref(), want.concat());
}

#[test]
fn a_small_message_keeps_nothing_but_itself() {
    let mut buffer = BytesMut::with_capacity(64 * 1024);
    buffer.extend_from_slice(&publish_packet());
    let place = buffer.as_ptr();
    let Ok(Some(Request::Publish(message))) = read(&mut buffer, 1000) else { panic!() };
    // The whole buffer can be used again while the message waits.
    buffer.reserve(64 * 1024);
    assert_eq!(buffer.as_ptr(), place);
    assert_eq!(message.payload.as_ref(), b"hi");
}
