//! The body of an answer: whole, in pieces that are made as they are read, or a stream of what happens.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use http_body::{Frame, SizeHint};

/// The body of an answer.
pub struct Body(Kind);

enum Kind {
    Whole(Bytes),
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    /// All of it at once.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(bytes.into()))
    }

    /// Piece by piece, each made when the client is ready for it.
    pub fn pieces(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Pieces(Box::new(pieces)))
    }

    /// As it happens.
    pub fn stream(stream: impl futures_util::Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Stream(stream.boxed()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.0 {
            Kind::Whole(bytes) if bytes.is_empty() => None,
            Kind::Whole(bytes) => Some(std::mem::take(bytes)),
            Kind::Pieces(pieces) => pieces.next(),
            Kind::Stream(stream) => match stream.poll_next_unpin(context) {
                Poll::Ready(bytes) => bytes,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
