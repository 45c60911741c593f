//! Code of others, compiled for the vector instructions of this machine.

#[cfg(target_arch = "x86_64")]
use super::x86::avx512::{self, Avx512};

/// Calls `f`, compiled for the widest vector instructions of this machine so far as it is inlined, whatever the kernels.
#[inline]
pub fn with_vectors<T>(f: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    if !cfg!(tokenrecords_backend = "scalar")
        && let Some(wide) = Avx512::detect()
    {
        return avx512::inside(wide, f);
    }
    f()
}
