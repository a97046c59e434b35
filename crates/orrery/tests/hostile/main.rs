//! Whatever comes through the socket: the answer that Kubernetes gives, a process that stays healthy, and others who notice nothing.

mod cases;
mod idle_watches;
mod slow;
mod wire;
