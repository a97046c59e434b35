//! What carries packets between the two ends: a broker seen through one small trait.

pub mod loopback;

use tokio::{sync::mpsc, task::JoinHandle};

use crate::Packet;

/// A way to a broker. Opening it subscribes, and subscribes again after every loss of the connection.
pub trait Transport {
    /// Why it cannot be opened at all. A broker that is away is no reason: the link waits for it.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Opens a link that receives what matches one of the filters.
    fn open(self, filters: Vec<String>) -> Result<Link, Self::Error>;
}

/// The two ends of an open way to a broker. Dropping it closes the way.
#[derive(Debug)]
pub struct Link {
    /// Where packets go. It is bounded: a slow broker makes the sender wait.
    pub outgoing: mpsc::Sender<Packet>,
    /// Where packets come from. It is bounded: a slow receiver makes the broker wait.
    pub incoming: mpsc::Receiver<Incoming>,
    /// The task behind the link, for those who want to see it end.
    pub task: Option<JoinHandle<()>>,
}

/// What comes from a broker.
#[derive(Debug)]
pub enum Incoming {
    /// The subscriptions are in place, for the first time or again.
    Connected {
        /// The largest packet the broker takes, if it said so.
        max_packet: Option<usize>,
    },
    /// The connection is lost.
    Disconnected,
    /// A packet.
    Packet(Packet),
}
