//! The network of a run: it loses, repeats, delays and so reorders what is published.

use orrery_works::{Dialect, Packet, topic};

use super::{Event, LONGEST_DELAY, Node, World};

impl World<'_> {
    pub(super) fn publish(&mut self, from: Node, packet: Packet) {
        let connected = match from {
            Node::Source(index) => self.sources[index].connected,
            Node::Agent(index) => self.agents[index].connected,
        };
        if !connected {
            return;
        }
        let receivers: Vec<Node> =
            self.nodes().into_iter().filter(|node| *node != from && self.listens(*node, &packet.topic)).collect();
        let index = self.packets.len();
        self.packets.push(packet);
        for node in receivers {
            let copies = if self.chance(self.faults.repeat) { 2 } else { 1 };
            for _ in 0..copies {
                if self.chance(self.faults.lose) {
                    continue;
                }
                let slow = self.chance(self.faults.delay);
                let delay = 1 + self.random.below(if slow { LONGEST_DELAY } else { 50 });
                self.after(delay, Event::Deliver(node, index));
            }
        }
    }

    pub(super) fn listens(&self, node: Node, topic: &str) -> bool {
        let filters = match node {
            Node::Source(index) => &self.sources[index].filters,
            Node::Agent(index) => &self.agents[index].filters,
        };
        filters.iter().any(|filter| topic::matches(filter, topic))
    }

    pub(super) fn deliver(&mut self, node: Node, packet: usize) {
        let now = self.clock(node);
        let packet = &self.packets[packet];
        let dialect = Dialect::of_topic(&packet.topic);
        let message = self.codecs[usize::from(dialect == Dialect::Ocm)].decode(packet).unwrap();
        match node {
            Node::Source(index) if self.sources[index].connected => {
                self.delivered += 1;
                self.say(|| format!("-> source {index}: {message:?}"));
                let effects =
                    self.sources[index].machine.as_mut().map(|machine| machine.receive(dialect, message, now));
                self.enact_source(index, effects.unwrap_or_default());
            }
            Node::Agent(index) if self.agents[index].connected => {
                self.delivered += 1;
                self.say(|| format!("-> agent {index}: {message:?}"));
                let effects = self.agents[index].machine.as_mut().map(|machine| machine.receive(message, now));
                self.enact_agent(index, effects.unwrap_or_default());
            }
            _ => {}
        }
    }
}
