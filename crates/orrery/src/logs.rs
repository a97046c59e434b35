//! Logs: readable lines or JSON, on standard error.

use std::io::{self, IsTerminal};

use tracing::{Level, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// How much is logged, and how.
pub(crate) struct Config {
    /// 0 is what an operator wants to know, 1 every request, 2 everything.
    pub(crate) verbosity: u8,
    /// How it is written.
    pub(crate) format: Format,
    /// Without colours, even on a terminal.
    pub(crate) plain: bool,
}

/// Begins to log. What was started first in a process stays.
pub(crate) fn start(config: &Config) {
    let ours = match config.verbosity {
        0 => LevelFilter::from_level(Level::INFO),
        1 => LevelFilter::from_level(Level::DEBUG),
        _ => LevelFilter::from_level(Level::TRACE),
    };
    // What libraries have to say is for those who want to know everything.
    let others = if config.verbosity > 1 { Level::DEBUG } else { Level::WARN };
    let filter = Targets::new().with_default(others).with_target("orrery", ours);
    let colour = !config.plain && io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colour);
    let layer = match config.format {
        Format::Text => layer.with_target(false).boxed(),
        Format::Json => layer.json().flatten_event(true).boxed(),
    };
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}
