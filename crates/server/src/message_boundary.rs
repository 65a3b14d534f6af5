//! Where one message to a client ends and the next begins, in the bytes that were written so
//! far. A session may be ended while a part of a message is on its way: what is said after
//! that must not be taken for the rest of it.

/// Tag and length.
const HEADER_BYTES: usize = 5;

/// How far the message is that was written last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageBoundary {
    /// What is still to come of it, once its length is known.
    left: usize,
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
}

impl MessageBoundary {
    /// These bytes were written.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = self.pass_a_part(bytes);
        }
    }

    /// Passes what belongs to one message at most; gives the rest.
    fn pass_a_part<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.left > 0 {
            let (part, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= part.len();
            return rest;
        }
        let wanted = HEADER_BYTES - self.header_bytes;
        let (part, rest) = bytes.split_at(wanted.min(bytes.len()));
        self.header[self.header_bytes..][..part.len()].copy_from_slice(part);
        self.header_bytes += part.len();
        if self.header_bytes == HEADER_BYTES {
            let [_, length @ ..] = self.header;
            // The length counts itself.
            self.left = (u32::from_be_bytes(length) as usize).saturating_sub(4);
            self.header_bytes = 0;
        }
        rest
    }

    /// Whether all that was written are whole messages.
    fn is_reached(&self) -> bool {
        self.left == 0 && self.header_bytes == 0
    }

    /// How many bytes of `next`, which come after what was written, end with a message; none
    /// if what was begun does not end in them.
    pub(crate) fn whole_part(mut self, next: &[u8]) -> Option<usize> {
        let mut whole = self.is_reached().then_some(0);
        let mut rest = next;
        while !rest.is_empty() {
            rest = self.pass_a_part(rest);
            if self.is_reached() {
                whole = Some(next.len() - rest.len());
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use thermocline_sql::messages;

    use super::*;

    #[test]
    fn a_message_that_was_cut_is_found_wherever_the_cut_is() {
        let mut out = BytesMut::new();
        messages::parse_complete(&mut out);
        let first = out.len();
        messages::command_complete(&mut out, "SELECT 1");
        let whole = out.len();
        out.extend_from_slice(b"D\0\0\0\x10ab");
        for written in 0..=out.len() {
            let mut boundary = MessageBoundary::default();
            for byte in &out[..written] {
                boundary.pass(&[*byte]);
            }
            let mut at_once = MessageBoundary::default();
            at_once.pass(&out[..written]);
            let rest = &out[written..];
            let expected = (written <= whole).then(|| whole - written);
            assert_eq!(boundary.whole_part(rest), expected, "{written}");
            assert_eq!(at_once.whole_part(rest), expected, "{written}");
        }
        let mut boundary = MessageBoundary::default();
        boundary.pass(&out[..first]);
        assert_eq!(boundary.whole_part(&[]), Some(0));
        assert_eq!(boundary.whole_part(b"C"), Some(0));
    }
}
