//! Features of the running kernel, read from its types. Distributions change older kernels, so the release says less.

use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType as _};

/// Features that the loader and the programs depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kernel {
    /// Whether a control is registered by a link (Linux 6.4), which goes with the process that holds it.
    pub(crate) links: bool,
    /// Whether a control may write `tcp_sock.app_limited`. The types do not say it; Linux allows it since 6.4 as well.
    pub(crate) writes_app_limited: bool,
    /// How many arguments `tcp_congestion_ops.cong_control` takes: 2 before Linux 6.10, 4 since.
    pub(crate) cong_control_arguments: Option<u32>,
}

impl Kernel {
    /// The one that runs; none if it does not describe its types.
    pub(crate) fn running() -> Option<Kernel> {
        Btf::from_vmlinux().ok().map(|types| Kernel::read(&types))
    }

    fn read(types: &Btf<'_>) -> Kernel {
        let links = types.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some();
        Kernel { links, writes_app_limited: links, cong_control_arguments: cong_control_arguments(types) }
    }
}

fn cong_control_arguments(types: &Btf<'_>) -> Option<u32> {
    let operations = types.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer = types.type_by_id::<Ptr<'_>>(member.ty)?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    u32::try_from(function.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types of a C text; none without a compiler.
    fn types_of(text: &str) -> Option<Btf<'static>> {
        let object =
            std::env::temp_dir().join(format!("tcplab-types-{}-{}.o", std::process::id(), text.len()));
        let mut clang = std::process::Command::new("clang")
            .args(["-target", "bpf", "-g", "-x", "c", "-c", "-", "-o"])
            .arg(&object)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .ok()?;
        std::io::Write::write_all(&mut clang.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(clang.wait().unwrap().success());
        let btf = Btf::from_path(&object);
        std::fs::remove_file(&object).unwrap();
        Some(btf.unwrap())
    }

    #[test]
    fn the_types_say_how_cong_control_is_called_and_whether_there_are_links() {
        let link = "struct bpf_struct_ops_link { int map; } link; ";
        let sources = [
            // Linux 4.9 to 6.3, 6.4 to 6.9, and since 6.10.
            ("", "struct sock *sk, const struct rate_sample *rs", false, 2),
            (link, "struct sock *sk, const struct rate_sample *rs", true, 2),
            (link, "struct sock *sk, unsigned ack, int flag, const struct rate_sample *rs", true, 4),
        ];
        for (link, arguments, links, count) in sources {
            let operations = format!(
                "struct sock; struct rate_sample; {link}\
                 struct tcp_congestion_ops {{ int flags; void (*cong_control)({arguments}); }} ops;"
            );
            let Some(types) = types_of(&operations) else { return eprintln!("skipped: no clang") };
            let kernel = Kernel { links, writes_app_limited: links, cong_control_arguments: Some(count) };
            assert_eq!(Kernel::read(&types), kernel);
        }
        let Some(types) = types_of("struct tcp_congestion_ops { int flags; } ops;") else { return };
        assert_eq!(Kernel::read(&types).cong_control_arguments, None);
    }
}
