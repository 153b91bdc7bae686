//! Where connections live: a slab with generations, so that an id never means another connection.

use airwire::time::Instant;

use super::ListenId;
use super::demux::Tuple;
use super::standing::Standing;
use crate::tcp::Connection;

/// Names a connection of one host. It is never given to another one, so an old id names nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnId {
    index: u32,
    generation: u32,
}

impl ConnId {
    pub(super) fn index(self) -> u32 {
        self.index
    }
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
    /// The listener that still counts it.
    listener: Option<ListenId>,
    /// Waiting in the host's ready queue.
    queued: bool,
    /// Waiting in the host's queue of changes.
    changed: bool,
    /// The application has let go of it.
    released: bool,
    standing: Standing,
    /// What the host's queue of deadlines holds for it.
    deadline: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    pub(super) fn insert(&mut self, connection: Connection, listener: Option<ListenId>) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                connection: None,
                listener: None,
                queued: false,
                changed: false,
                released: false,
                deadline: None,
                standing: Standing::Ordinary,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.connection = Some(Box::new(connection));
        slot.listener = listener;
        // Until it is accepted, nobody but the host holds it.
        slot.released = listener.is_some();
        slot.deadline = None;
        index
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<(Box<Connection>, Option<ListenId>)> {
        let slot = self.slots.get_mut(index as usize)?;
        let connection = slot.connection.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        slot.deadline = None;
        self.free.push(index);
        Some((connection, slot.listener.take()))
    }

    pub(super) fn id(&self, index: u32) -> ConnId {
        ConnId { index, generation: self.slots[index as usize].generation }
    }

    pub(super) fn get(&self, id: ConnId) -> Option<&Connection> {
        let slot = self.slots.get(id.index as usize)?;
        slot.connection.as_deref().filter(|_| slot.generation == id.generation)
    }

    pub(super) fn get_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(id.index as usize)?;
        slot.connection.as_deref_mut().filter(|_| slot.generation == id.generation)
    }

    pub(super) fn at_mut(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.connection.as_deref_mut()
    }

    /// The connection there has these two ends, the local one first.
    pub(super) fn is_between(&self, index: u32, ends: &Tuple) -> bool {
        let slot = self.slots.get(index as usize);
        slot.and_then(|slot| slot.connection.as_deref()).is_some_and(|connection| connection.ends() == *ends)
    }

    pub(super) fn listener_of(&self, index: u32) -> Option<ListenId> {
        self.slots.get(index as usize)?.listener
    }

    pub(super) fn standing(&self, index: u32) -> Standing {
        self.slots.get(index as usize).map_or(Standing::Ordinary, |slot| slot.standing)
    }

    /// Returns what it was before.
    pub(super) fn replace_standing(&mut self, index: u32, standing: Standing) -> Standing {
        std::mem::replace(&mut self.slots[index as usize].standing, standing)
    }

    pub(super) fn of_listener(&self, id: ListenId) -> Vec<u32> {
        (0..self.slots.len() as u32).filter(|i| self.listener_of(*i) == Some(id)).collect()
    }

    pub(super) fn accepted(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.listener = None;
        slot.released = false;
    }

    pub(super) fn release(&mut self, index: u32) {
        self.slots[index as usize].released = true;
    }

    pub(super) fn is_released(&self, index: u32) -> bool {
        self.slots[index as usize].released
    }

    /// The application had it, and has let go of it.
    pub(super) fn is_let_go(&self, index: u32) -> bool {
        let slot = &self.slots[index as usize];
        slot.released && slot.listener.is_none()
    }

    /// Returns true if it has to be put into the ready queue.
    pub(super) fn queue(&mut self, index: u32) -> bool {
        !std::mem::replace(&mut self.slots[index as usize].queued, true)
    }

    pub(super) fn unqueue(&mut self, index: u32) {
        self.slots[index as usize].queued = false;
    }

    /// Returns true if it has to be put into the queue of changes: the application holds it, and it is not there yet.
    pub(super) fn note_change(&mut self, index: u32) -> bool {
        let slot = &mut self.slots[index as usize];
        slot.connection.is_some() && !slot.released && !std::mem::replace(&mut slot.changed, true)
    }

    /// Called for what is taken out of the queue of changes; `None` if the application has let go of it.
    pub(super) fn take_changed(&mut self, index: u32) -> Option<ConnId> {
        let slot = &mut self.slots[index as usize];
        slot.changed = false;
        (slot.connection.is_some() && !slot.released).then(|| self.id(index))
    }

    /// Returns what the queue holds for it, if that is nothing or too late. An early entry may stay: when its time has
    /// come, the connection is asked again.
    pub(super) fn note_deadline(&mut self, index: u32, at: Instant) -> Option<Option<Instant>> {
        let slot = &mut self.slots[index as usize];
        if slot.deadline.is_some_and(|known| known <= at) {
            return None;
        }
        Some(slot.deadline.replace(at))
    }

    pub(super) fn take_deadline(&mut self, index: u32) -> Option<Instant> {
        self.slots.get_mut(index as usize)?.deadline.take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|slot| slot.connection.as_deref())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().filter_map(|slot| slot.connection.as_deref_mut())
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
