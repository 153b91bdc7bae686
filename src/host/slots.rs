//! Storage of connections: a slab with generations, so that an id never refers to another connection.

use airwire::time::Instant;

use super::ListenId;
use super::admission::AdmissionClass;
use super::demux::Ends;
use crate::tcp::Connection;

/// Identifies a connection of one host. Ids are never reused.
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
    /// The listener that still counts this connection.
    listener: Option<ListenId>,
    /// True while in the host's ready queue.
    queued: bool,
    /// True while in the host's queue of changes.
    changed: bool,
    /// True if the application does not hold the connection.
    released: bool,
    class: AdmissionClass,
    /// The connection's entry in the host's queue of deadlines.
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
                class: AdmissionClass::Ordinary,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.connection = Some(Box::new(connection));
        slot.listener = listener;
        // The application holds a passively opened connection only after accept.
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

    /// Returns true if the connection at `index` has these addresses, the local one first.
    pub(super) fn is_between(&self, index: u32, ends: Ends<'_>) -> bool {
        let slot = self.slots.get(index as usize);
        slot.and_then(|slot| slot.connection.as_deref()).is_some_and(|connection| connection.is_between(ends))
    }

    pub(super) fn listener_of(&self, index: u32) -> Option<ListenId> {
        self.slots.get(index as usize)?.listener
    }

    pub(super) fn class(&self, index: u32) -> AdmissionClass {
        self.slots.get(index as usize).map_or(AdmissionClass::Ordinary, |slot| slot.class)
    }

    /// Returns the previous class.
    pub(super) fn replace_class(&mut self, index: u32, class: AdmissionClass) -> AdmissionClass {
        std::mem::replace(&mut self.slots[index as usize].class, class)
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

    /// Returns true if the application has closed the connection, which then has no listener either.
    pub(super) fn is_orphan(&self, index: u32) -> bool {
        let slot = &self.slots[index as usize];
        slot.released && slot.listener.is_none()
    }

    /// Returns true if the connection must be added to the ready queue.
    pub(super) fn queue(&mut self, index: u32) -> bool {
        !std::mem::replace(&mut self.slots[index as usize].queued, true)
    }

    pub(super) fn unqueue(&mut self, index: u32) {
        self.slots[index as usize].queued = false;
    }

    /// Returns true if the connection must be added to the queue of changes: the application holds it, and it
    /// is not queued yet.
    pub(super) fn note_change(&mut self, index: u32) -> bool {
        let slot = &mut self.slots[index as usize];
        slot.connection.is_some() && !slot.released && !std::mem::replace(&mut slot.changed, true)
    }

    /// Called for an entry taken from the queue of changes; `None` if the application no longer holds the
    /// connection.
    pub(super) fn take_changed(&mut self, index: u32) -> Option<ConnId> {
        let slot = &mut self.slots[index as usize];
        slot.changed = false;
        (slot.connection.is_some() && !slot.released).then(|| self.id(index))
    }

    /// Records a deadline. Returns `None` if the queue has an entry that is not later: the connection's
    /// deadline is read again when that entry is due. Otherwise returns the entry that `at` replaces, if
    /// there is one.
    pub(super) fn note_deadline(&mut self, index: u32, at: Instant) -> Option<Option<Instant>> {
        let slot = &mut self.slots[index as usize];
        if slot.deadline.is_some_and(|deadline| deadline <= at) {
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
