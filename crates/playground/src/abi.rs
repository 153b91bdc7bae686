//! The interface to JavaScript: the functions that the page calls, and the functions that it provides. All
//! arguments are numbers. A module has one core and one thread.

#![expect(unsafe_code, reason = "only numbers, among them addresses, can be passed to JavaScript")]

use std::cell::RefCell;

use crate::{Core, Progress};

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Reports the completed share of the run, from 0 to 1, and the virtual time in seconds.
    safe fn progress(share: f64, seconds: f64);
    /// Reports a panic, after which the module stops.
    fn failed(text: *const u8, length: usize);
}

thread_local! {
    static CORE: RefCell<Core> = RefCell::default();
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns the address for a request of this length.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn request(length: usize) -> *mut u8 {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        // SAFETY: the text exists until the call returns, and the page only reads it.
        unsafe { failed(text.as_ptr(), text.len()) };
    }));
    REQUEST.with_borrow_mut(|request| {
        request.resize(length, 0);
        request.as_mut_ptr()
    })
}

/// Answers the request, and returns the length of the answer.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn answer() -> usize {
    let request = REQUEST.take();
    let mut report = |current: Progress| progress(current.share, current.seconds);
    let answer = CORE.with_borrow_mut(|core| core.answer(&request, &mut report));
    let length = answer.len();
    ANSWER.set(answer);
    length
}

/// Returns the address of the answer, which remains valid until the next request is answered.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn answer_at() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}
