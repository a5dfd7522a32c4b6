//! Requests to the kernel about a perf event (ioctl(2)).

/// `PERF_EVENT_IOC_PERIOD` (include/uapi/linux/perf_event.h): `_IOW('$', 4, __u64)`.
pub(super) const PERF_EVENT_IOC_PERIOD: libc::Ioctl = 0x4008_2404;
