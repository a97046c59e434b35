//! An independent subscriber: mosquitto's own client, which knows nothing of us.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use crate::{board::Board, stage::Stage};

/// One message as `mosquitto_sub` saw it.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) topic: String,
    pub(crate) content_type: String,
    pub(crate) properties: String,
    pub(crate) payload: String,
}

/// Subscribers that see everything of the conversation, each message once.
pub(crate) struct Witness {
    children: Vec<Child>,
    seen: Board<Sighting>,
}

impl Witness {
    pub(crate) fn of(stage: &Stage) -> Self {
        let mut witness = Self { children: Vec::new(), seen: Board::default() };
        for (user, filters) in stage.audience() {
            let (child, notices) = subscriber(stage, user, &filters, witness.seen.clone());
            witness.children.push(child);
            notices.wait("mosquitto_sub to subscribe", |lines| {
                lines.iter().any(|line| line.contains("received SUBACK")).then_some(())
            });
        }
        witness
    }

    pub(crate) fn on(&self, topic: &str) -> Vec<Sighting> {
        self.seen.all().into_iter().filter(|sighting| sighting.topic == topic).collect()
    }

    /// Every topic of the conversation that was used, each once, in order.
    pub(crate) fn topics(&self) -> Vec<String> {
        let mut topics: Vec<String> = self.seen.all().into_iter().map(|sighting| sighting.topic).collect();
        topics.sort();
        topics.dedup();
        topics
    }

    pub(crate) fn wait_for(&self, topic: &str, wanted: impl Fn(&Sighting) -> bool) -> Sighting {
        self.seen.wait(&format!("a message on {topic}"), |seen| {
            seen.iter().find(|sighting| sighting.topic == topic && wanted(sighting)).cloned()
        })
    }

    /// Waits until at least so many messages were seen on these topics together.
    pub(crate) fn wait_for_count(&self, topics: &[&str], count: usize) {
        self.seen.wait(&format!("{count} messages on {topics:?}"), |seen| {
            (seen.iter().filter(|sighting| topics.contains(&sighting.topic.as_str())).count() >= count).then_some(())
        });
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _dead = child.kill();
            let _reaped = child.wait();
        }
    }
}

/// Starts a subscriber. Messages have tabs, everything else it says is a notice.
pub(crate) fn subscriber(
    stage: &Stage,
    user: &str,
    filters: &[String],
    seen: Board<Sighting>,
) -> (Child, Board<String>) {
    // By itself it shows what it says about itself only when its buffer is full.
    let mut command = Command::new("stdbuf");
    command.args(["-oL", "mosquitto_sub"]).args(stage.arguments(user)).args(["-d", "-q", "1", "-F", "%t\t%C\t%P\t%p"]);
    for filter in filters {
        command.args(["-t", filter]);
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("mosquitto_sub should be installed (Debian package mosquitto-clients)");
    let notices = Board::default();
    let (lines, said) = (BufReader::new(child.stdout.take().unwrap()), notices.clone());
    std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            if !line.contains('\t') {
                said.push(line);
                continue;
            }
            let mut parts = line.splitn(4, '\t').map(str::to_owned);
            let mut next = || parts.next().unwrap_or_default();
            seen.push(Sighting { topic: next(), content_type: next(), properties: next(), payload: next() });
        }
        said.push("ended".to_owned());
    });
    (child, notices)
}
