//! Digests: of one sequence, and of many, several at once on each core and then by threads.

mod batch;
mod message;
mod one;
pub mod staging;
mod worker;

pub use crate::sha256::{Hash, Kernel, kernels, unusable};
pub use batch::{Stopped, digest_many};
pub use one::digest;

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    use super::*;
    use crate::testing::{Ids, expected};

    const VARIABLE: &str = "TOKENRECORDS_KERNEL";

    /// Run by itself, and by the next test in processes that force a kernel.
    #[test]
    fn what_this_process_computes() {
        let ids: Vec<_> =
            (0..40).zip([0, 5, 6, 3, 700, 14, 40].into_iter().cycle()).map(|(i, len)| Ids::new(len, i)).collect();
        let wanted: Vec<_> = ids.iter().map(|ids| expected(&ids.0)).collect();
        for (ids, &wanted) in ids.iter().zip(&wanted) {
            assert_eq!(digest(ids), Ok(wanted));
        }
        assert_eq!(digest_many(&ids, 1, &|| true).as_deref(), Ok(&*wanted));
        if let Ok(name) = env::var(VARIABLE) {
            let known = Kernel::all().iter().any(|kernel| kernel.name() == name);
            assert_eq!(unusable().is_none(), known);
            let forced = if cfg!(tokenrecords_backend = "scalar") { "portable" } else { &name };
            assert!(!known || kernels().iter().all(|kernel| kernel.name() == forced));
        }
    }

    #[test]
    fn each_kernel_forced() {
        let names = Kernel::all().into_iter().map(Kernel::name).chain(["unknown".to_owned()]);
        for name in names {
            let mut test = Command::new(env::current_exe().unwrap());
            let run = test.args(["--exact", "digest::tests::what_this_process_computes"]).env(VARIABLE, &name).output();
            let output = String::from_utf8(run.unwrap().stdout).unwrap();
            assert!(output.contains("1 passed"), "{name}: {output}");
        }
    }
}
