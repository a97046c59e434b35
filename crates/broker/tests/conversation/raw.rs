//! A client that writes its own packets, and reads only when it is told to.

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::stage::{Stage, password};

/// A connection on which nothing happens by itself.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    received: BytesMut,
}

/// A packet: its first byte, and what follows the length.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) first: u8,
    pub(crate) body: Vec<u8>,
}

impl Raw {
    /// Knocks without a word.
    pub(crate) async fn knock(stage: &Stage) -> Self {
        Self { stream: TcpStream::connect(stage.address()).await.unwrap(), received: BytesMut::new() }
    }

    /// Comes in as this user. Returns with what reason the broker answered.
    pub(crate) async fn introduce(&mut self, user: &str) -> u8 {
        self.stream.write_all(&connect(user)).await.unwrap();
        let answer = self.read().await.expect("an answer");
        assert_eq!(answer.first, 0x20, "{answer:x?}");
        answer.body[1]
    }

    /// A client that was let in.
    pub(crate) async fn of(stage: &Stage, user: &str) -> Self {
        let mut client = Self::knock(stage).await;
        assert_eq!(client.introduce(user).await, 0);
        client
    }

    pub(crate) async fn subscribe(&mut self, filter: &str) {
        let mut body = vec![0, 1, 0];
        put(&mut body, filter);
        body.push(1);
        self.stream.write_all(&packet(0x82, &body)).await.unwrap();
        let answer = self.read().await.expect("an answer");
        assert_eq!((answer.first, &answer.body[3..]), (0x90, &[1][..]), "{answer:x?}");
    }

    /// The next packet; `None` when the broker has hung up.
    pub(crate) async fn read(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = self.take() {
                return Some(packet);
            }
            match self.stream.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    fn take(&mut self) -> Option<Packet> {
        let first = *self.received.first()?;
        let (mut length, mut digits) = (0, 0);
        loop {
            let digit = usize::from(*self.received.get(1 + digits)?);
            length |= (digit & 0x7f) << (7 * digits);
            digits += 1;
            if digit < 0x80 {
                break;
            }
        }
        if self.received.len() < 1 + digits + length {
            return None;
        }
        self.received.advance(1 + digits);
        Some(Packet { first, body: self.received.split_to(length).to_vec() })
    }
}

/// A CONNECT with a random client id.
pub(crate) fn connect(user: &str) -> Vec<u8> {
    let mut body = Vec::new();
    put(&mut body, "MQTT");
    body.extend([5, 0xc2, 0, 60, 0]);
    for text in ["", user, &password(user)] {
        put(&mut body, text);
    }
    packet(0x10, &body)
}

/// A message that is to be acknowledged.
pub(crate) fn publish(topic: &str, payload: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    put(&mut body, topic);
    body.extend([0, 1, 0]);
    body.extend(payload);
    packet(0x32, &body)
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16).to_be_bytes());
    out.extend(text.as_bytes());
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    let mut length = body.len();
    while length >= 0x80 {
        packet.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    packet.push(length as u8);
    packet.extend(body);
    packet
}
