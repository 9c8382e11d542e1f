//! The encoding of messages: that of `prost`, which also leaves the text of a decoded request with the [`Call`] in progress.

use std::fmt;
use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::ProstCodec;

use crate::call::Call;

/// The codec of the generated clients and servers.
#[derive(Debug, Clone)]
pub struct RecordingCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for RecordingCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for RecordingCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + fmt::Debug + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = RecordingDecoder<<ProstCodec<T, U> as Codec>::Decoder>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        RecordingDecoder(ProstCodec::<T, U>::default().decoder())
    }
}

/// Decodes messages, and records them.
#[derive(Debug)]
pub struct RecordingDecoder<D>(D);

impl<D> Decoder for RecordingDecoder<D>
where
    D: Decoder<Error = Status>,
    D::Item: fmt::Debug,
{
    type Item = D::Item;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let message = self.0.decode(source)?;
        if let Some(message) = &message {
            Call::current().received(message);
        }
        Ok(message)
    }

    fn buffer_settings(&self) -> BufferSettings {
        self.0.buffer_settings()
    }
}
