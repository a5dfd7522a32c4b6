//! Publishes this process to other processes: its resource, and its threads' contexts.
//!
//! Each thread's pointer leads to the thread's context at all times (`context::thread_pointer`). Outside
//! readers look for these pointers if the process context announces them. This module publishes the process
//! context for the length of a session, unless another publisher has published one already: a process may
//! have only one.

use otlpprof_context::slot_names::SLOT_NAMES;
use otlpprof_context::{published_threads, thread_pointer};
use otlpprof_export::process_context::{ProcessContext, ProcessContextError};
use otlpprof_model::Resource;
use otlpprof_options::{ContextPublication, Options};
use otlpprof_otlp::process_context::encode_process_context;
use parking_lot::Mutex;

use super::virtual_contexts;
use super::vm::Vm;

struct Publication {
    context: ProcessContext,
    resource: Resource,
    with_attributes: bool,
}

/// The current publication. There is one at most, as there is one session.
static PUBLICATION: Mutex<Option<Publication>> = Mutex::new(None);

/// Publishes what the options request. A failure is logged in one line.
pub(super) fn begin(vm: &Vm, options: &Options, resource: &Resource) {
    let with_attributes = options.context_publication == ContextPublication::Attributes;
    if options.context_publication == ContextPublication::Off {
        return;
    }
    if !thread_pointer::IS_EXPORTED {
        log::info!("this build of the agent publishes no contexts to other processes");
        return;
    }
    let mut publication = PUBLICATION.lock();
    let published = ProcessContext::publish(encode(resource, with_attributes));
    *publication = published
        .map(|context| Publication { context, resource: resource.clone(), with_attributes })
        .inspect_err(|error| match error {
            ProcessContextError::Taken => log::info!("{error}: the agent does not publish its own"),
            error => log::warn!("threads' contexts are not published to other processes: {error}"),
        })
        .ok();
    // Without a process context of our own, readers do not know the names of our attributes, so these stay
    // unpublished.
    if publication.is_some() {
        virtual_contexts::show_outside(vm, options.publishes_virtual_threads);
        if with_attributes {
            published_threads::open();
        }
    }
}

/// Withdraws the publication.
pub(super) fn end(vm: &Vm) {
    let publication = PUBLICATION.lock().take();
    take_back(vm, publication);
}

/// Withdraws contexts. Must be called without the lock, for which VMDeath waits: the VM may wait for a thread
/// here.
fn take_back(vm: &Vm, publication: Option<Publication>) {
    if publication.is_some() {
        published_threads::close();
        virtual_contexts::show_outside(vm, false);
    }
}

/// Publishes the process context again after an attribute was added.
pub(super) fn names_changed() {
    let mut publication = PUBLICATION.lock();
    if let Some(publication) = publication.as_mut().filter(|publication| publication.with_attributes) {
        let payload = encode(&publication.resource, true);
        if let Err(error) = publication.context.update(payload) {
            log::warn!("a new context attribute is not published to other processes: {error}");
        }
    }
}

/// Withdraws our process context if another publisher has published one later, regardless of ours.
pub(super) fn withdraw_if_contested(vm: &Vm) {
    let contested = PUBLICATION.lock().take_if(|publication| publication.context.is_contested());
    if contested.is_some() {
        take_back(vm, contested);
        // Logged afterwards: whoever reads this line finds only the other publisher's context.
        log::info!("{}: the agent withdraws its own", ProcessContextError::Taken);
    }
}

/// Encodes the process context. The attributes' names are included only if attributes are published.
fn encode(resource: &Resource, with_attributes: bool) -> Vec<u8> {
    let names = if with_attributes { SLOT_NAMES.list().to_vec() } else { Vec::new() };
    encode_process_context(resource, Some(&names))
}
