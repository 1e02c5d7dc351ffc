//! Names under which controls register. They are host-wide, and there may be several of one control.

/// Longest name of a control, one less than Linux's TCP_CA_NAME_MAX, which counts the final zero.
const LONGEST: usize = 15;

/// The names of the control called `name`, in the order in which they are tried: `tl_NAME`, `tl_NAME_1`, and so
/// on. Of a long name the end is left out.
pub(crate) fn candidates(name: &str) -> impl Iterator<Item = String> {
    (0..100).map(move |number| {
        let suffix = if number == 0 { String::new() } else { format!("_{number}") };
        let room = LONGEST - "tl_".len() - suffix.len();
        let kept: String = name.chars().take(room).collect();
        format!("tl_{kept}{suffix}")
    })
}

/// The controls TCP offers now.
pub(crate) fn taken() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    text.unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_of_the_same_control_gets_a_number() {
        let names: Vec<String> = candidates("cubic").take(3).collect();
        assert_eq!(names, ["tl_cubic", "tl_cubic_1", "tl_cubic_2"]);
    }

    #[test]
    fn no_name_is_longer_than_the_kernel_takes() {
        assert!(candidates("averylongcontrol").all(|name| name.len() <= 15));
        assert_eq!(candidates("averylongcontrol").nth(12).unwrap(), "tl_averylong_12");
    }
}
