//! Open files of a simulated device: what the seam's methods do to the file's contents, and
//! what the faults asked for make of them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::faults::{Direction, Fault, astray};
use super::image::{Change, Inode};
use super::stalled::StalledRead;
use super::{Operation, Shared, State, Turn, check_size, halted};
use crate::device::past_the_end;
use crate::{DeviceFile, ReadRequest, SECTOR_BYTES};

/// An open file of a [`SimulatedDevice`](super::SimulatedDevice).
pub(super) struct SimulatedFile {
    pub(super) device: Arc<Shared>,
    pub(super) name: String,
    pub(super) inode: u64,
    pub(super) generation: u64,
    /// Not a part of a stalled read: an open handle, which keeps the file.
    pub(super) is_handle: bool,
}

impl SimulatedFile {
    /// Finds the file in the state, unless a crash came between.
    pub(super) fn inode<'a>(&self, state: &'a mut State) -> io::Result<&'a mut Inode> {
        match state.inodes.get_mut(&self.inode) {
            Some(inode) if self.generation == state.generation => Ok(inode),
            _ => Err(io::Error::other(format!(
                "{}: opened before the simulated device crashed",
                self.name
            ))),
        }
    }

    fn act<T>(
        &self,
        operation: Operation,
        act: impl FnOnce(&mut State, Turn) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.device.state.lock();
        let result = self
            .inode(&mut state)
            .map(|_| ())
            .and_then(|()| state.take_turn(operation))
            .and_then(|turn| {
                let done = act(&mut state, turn)?;
                turn.end(done)
            });
        if result.is_err() && operation != Operation::Read {
            self.device.counters.error();
        }
        result
    }

    /// Reads as much as there is before the file's end; how much that is.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.act(Operation::Read, |state, _| {
            let fault = state.take_fault(&self.name, Direction::Read);
            let image = self.inode(state)?.live();
            let there = image.len().saturating_sub(offset);
            match fault {
                Some(Fault::MisdirectedRead { sectors }) => {
                    image.read(buffer, astray(offset, sectors));
                }
                Some(Fault::ShortRead) => {
                    let half = buffer.len() / 2;
                    image.read(&mut buffer[..half], offset);
                }
                _ => image.read(buffer, offset),
            }
            Ok(buffer
                .len()
                .min(usize::try_from(there).unwrap_or(usize::MAX)))
        })
    }
}

impl DeviceFile for SimulatedFile {
    fn len(&self) -> io::Result<u64> {
        let mut state = self.device.state.lock();
        if state.halted {
            return Err(halted());
        }
        Ok(self.inode(&mut state)?.live().len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        check_size(Some(bytes))?;
        self.act(Operation::SetLen, |state, _| {
            let len = self.inode(state)?.live().len();
            let sector = SECTOR_BYTES as u64;
            let growth = bytes.div_ceil(sector).saturating_sub(len.div_ceil(sector));
            state.check_room(growth.saturating_mul(sector))?;
            self.inode(state)?.change(Change::SetLen(bytes));
            Ok(())
        })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.device.counters.read_started();
        let wanted = buffer.len();
        let result = match self.read(buffer, offset) {
            Ok(bytes) if bytes < wanted => Err(past_the_end(&self.name, offset, wanted)),
            other => other.map(|_| ()),
        };
        let bytes = result.is_ok().then_some(wanted);
        self.device.counters.read_finished(bytes, Duration::ZERO);
        result
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        check_size(offset.checked_add(bytes.len() as u64))?;
        self.act(Operation::Write, |state, _| {
            let growth = self.inode(state)?.live().growth_bytes(offset, bytes.len());
            state.check_room(growth)?;
            let (place, kept, result) = match state.take_fault(&self.name, Direction::Write) {
                Some(Fault::LostWrite) => return Ok(()),
                Some(Fault::MisdirectedWrite { sectors }) => {
                    (astray(offset, sectors), bytes.len(), Ok(()))
                }
                Some(Fault::ShortWrite) => {
                    let error = io::Error::other(format!("{}: written in part", self.name));
                    (offset, bytes.len() / 2, Err(error))
                }
                _ => (offset, bytes.len(), Ok(())),
            };
            self.inode(state)?.change(Change::Write {
                offset: place,
                bytes: bytes[..kept].to_vec(),
            });
            result
        })?;
        self.device.counters.wrote(bytes.len());
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut guard = self.device.state.lock();
        let state = &mut *guard;
        self.inode(state)?;
        let turn = state.take_turn(Operation::Sync);
        let mut random = state.random.clone();
        let atomic_bytes = state.atomic_write_bytes;
        let halted_before = turn.is_err() && state.halted;
        let inode = self.inode(state)?;
        match turn {
            Ok(Turn::Ordinary) => inode.persist_all(),
            // Nothing reaches a device that has halted.
            Err(_) if halted_before => {}
            Ok(Turn::Last) | Err(_) => inode.persist_some(&mut random, atomic_bytes),
        }
        state.random = random;
        let result = turn.and_then(|turn| turn.end(()));
        match result {
            Ok(()) => self.device.counters.synced(Duration::ZERO),
            Err(_) => self.device.counters.error(),
        }
        result
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.act(Operation::PunchHole, |state, _| {
            self.inode(state)?.change(Change::Punch { offset, bytes });
            Ok(())
        })
    }

    fn look(
        &self,
        offset: u64,
        bytes: usize,
        see: &mut dyn FnMut(&[u8]) -> usize,
    ) -> io::Result<()> {
        let mut state = self.device.state.lock();
        if state.halted {
            return Err(halted());
        }
        let image = self.inode(&mut state)?.live();
        if offset.saturating_add(bytes as u64) > image.len() {
            return Err(past_the_end(&self.name, offset, bytes));
        }
        let mut there = vec![0; bytes];
        image.read(&mut there, offset);
        see(&there);
        Ok(())
    }

    fn submit_reads(&self, requests: Vec<ReadRequest>) {
        let stalls = {
            let state = self.device.state.lock();
            state.stalls && !state.halted
        };
        for request in requests {
            self.device.counters.read_started();
            let ticket = self.device.counters.begin();
            let read = StalledRead::new(&self.name, self.inode, self.generation, request, ticket);
            if stalls {
                self.device.stalled.lock().push(read);
            } else {
                read.complete(&self.device);
            }
        }
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.device.state.lock();
        if self.is_handle
            && let Ok(inode) = self.inode(&mut state)
        {
            inode.open_handles -= 1;
            state.forget_unreachable();
        }
    }
}
