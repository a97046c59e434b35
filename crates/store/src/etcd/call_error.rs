//! Why a call to etcd failed, by what can be done about it.

use std::error::Error;

use tonic::{Code, ConnectError, Status};

use crate::error::CommitError;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// It never reached a server.
    #[error("{0}")]
    NotSent(String),
    /// The server did not take it now; nothing happened.
    #[error("{0}")]
    Busy(String),
    /// It may or may not have happened.
    #[error("{0}")]
    Lost(String),
    /// The token is unknown or has expired; nothing happened.
    #[error("{0}")]
    Token(String),
    /// We are not let in; nothing happened.
    #[error("{0}")]
    Auth(String),
    /// The revision is not kept any more.
    #[error("the revision has been compacted")]
    Compacted,
    /// The answer is larger than what is taken.
    #[error("the answer is too large")]
    LargeAnswer,
    /// The database is full. The one write that made it so may have happened.
    #[error("{0}")]
    NoRoom(String),
    /// It can never happen as it is.
    #[error("{0}")]
    Refused(String),
}

impl CallError {
    pub(crate) fn from_status(status: &Status) -> Self {
        if find::<ConnectError>(status).is_some() {
            return Self::NotSent(chain(find::<ConnectError>(status).map_or(status, |error| error)));
        }
        let said = || match status.source() {
            Some(source) => format!("{}: {}", status.message(), chain(source)),
            None => status.message().to_owned(),
        };
        match (status.code(), status.message()) {
            (_, message) if message.contains("invalid auth token") => Self::Token(said()),
            // The rules changed since the token was made.
            (_, message) if message.contains("revision of auth store is old") => Self::Token(said()),
            (Code::Unauthenticated, _) => Self::Token(said()),
            (_, message) if message.contains("has been compacted") => Self::Compacted,
            (Code::OutOfRange, message) if message.contains("decoded message length too large") => Self::LargeAnswer,
            (Code::ResourceExhausted, message) if message.contains("space exceeded") => {
                Self::NoRoom(format!("{}; compact and defragment etcd, then disarm its alarm", said()))
            }
            (Code::ResourceExhausted, message) if message.contains("larger than max") => Self::Refused(said()),
            (Code::ResourceExhausted, _) => Self::Busy(said()),
            (Code::InvalidArgument, message) if message.contains("authentication failed") => {
                Self::Auth("etcd does not know this user and password".to_owned())
            }
            (Code::InvalidArgument, message) if message.contains("user name is empty") => {
                Self::Auth("etcd wants a user and a password".to_owned())
            }
            (Code::FailedPrecondition, message) if message.contains("authentication is not enabled") => {
                Self::Auth("a user and a password are given, but etcd has authentication switched off".to_owned())
            }
            (Code::PermissionDenied, _) => {
                Self::Auth(format!("{}; grant the user read and write access to the prefix", said()))
            }
            (Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange | Code::Unimplemented, _) => {
                Self::Refused(said())
            }
            _ => Self::Lost(said()),
        }
    }

    /// Whether another endpoint may do better.
    pub(crate) fn is_about_the_connection(&self) -> bool {
        matches!(self, Self::NotSent(_) | Self::Lost(_))
    }

    /// The same, of something that went ahead of the call proper.
    pub(crate) fn before_sending(self) -> Self {
        match self {
            Self::Lost(why) => Self::NotSent(why),
            Self::Token(why) => Self::Auth(why),
            other => other,
        }
    }

    /// The answer to a writer whose batch did not happen.
    pub(crate) fn into_commit_error(self, name: &str) -> CommitError {
        match self {
            Self::NoRoom(why) => CommitError::NoRoom(format!("etcd: {why}")),
            Self::Refused(why) => CommitError::Refused(format!("etcd: {why}")),
            other => CommitError::Unavailable(format!("etcd at {name}: {other}")),
        }
    }
}

/// The first error of a type in the chain of causes.
fn find<T: Error + 'static>(status: &Status) -> Option<&T> {
    let mut cause = status.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// An error and its causes, each said once.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_etcd_says_is_understood() {
        let understood = |code, message: &str| CallError::from_status(&Status::new(code, message));
        use CallError::*;
        type Check = fn(&CallError) -> bool;
        let cases: [(Code, &str, Check); 12] = [
            (Code::Unauthenticated, "etcdserver: invalid auth token", |it| matches!(it, Token(_))),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old", |it| matches!(it, Token(_))),
            (Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID or password", |it| {
                matches!(it, Auth(_))
            }),
            (Code::PermissionDenied, "etcdserver: permission denied", |it| matches!(it, Auth(_))),
            (Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted", |it| *it == Compacted),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", |it| matches!(it, NoRoom(_))),
            (Code::ResourceExhausted, "etcdserver: too many requests", |it| matches!(it, Busy(_))),
            (Code::ResourceExhausted, "grpc: received message larger than max (3 vs. 2)", |it| {
                matches!(it, Refused(_))
            }),
            (Code::InvalidArgument, "etcdserver: request is too large", |it| matches!(it, Refused(_))),
            (Code::InvalidArgument, "etcdserver: too many operations in txn request", |it| matches!(it, Refused(_))),
            (Code::Unavailable, "etcdserver: request timed out", |it| matches!(it, Lost(_))),
            (Code::Unavailable, "etcdserver: leader changed", |it| matches!(it, Lost(_))),
        ];
        for (code, message, holds) in cases {
            let error = understood(code, message);
            assert!(holds(&error), "{message}: {error:?}");
        }
    }
}
