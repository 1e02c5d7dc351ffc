//! Gauges of a control: the rows of its `GAUGES`, and how to read them.

/// Where a figure is in a control's state, and how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning of the state.
    pub offset: u32,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// Whether it can be negative.
    pub signed: bool,
    /// The divisor of the number.
    pub scale: u32,
}

/// A figure that a control publishes of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Name.
    pub name: String,
    /// Its unit; empty: none.
    pub unit: String,
    /// Description.
    pub doc: String,
    /// Where it is.
    pub place: Place,
}

impl Place {
    /// Its value in `state`; none if the control has none now (every bit is set), or the state ends before it.
    #[inline]
    pub fn read(&self, state: &[u8]) -> Option<f64> {
        let field = state.get(self.offset as usize..)?;
        // Each size is read as one number. A copy of its bytes among eight would have to be waited for before these are read.
        let number = match self.size {
            1 => u8::from_le_bytes(*field.first_chunk()?).into(),
            2 => u16::from_le_bytes(*field.first_chunk()?).into(),
            4 => u32::from_le_bytes(*field.first_chunk()?).into(),
            8 => u64::from_le_bytes(*field.first_chunk()?),
            _ => return None,
        };
        let bits_above = 64 - 8 * self.size;
        if !self.signed && number == u64::MAX >> bits_above {
            return None;
        }
        // The bits that the field lacks are its sign's.
        let signed = (number << bits_above) as i64 >> bits_above;
        let number = if self.signed { signed as f64 } else { number as f64 };
        Some(number / f64::from(self.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u32, size: u32, signed: bool, scale: u32) -> Place {
        Place { offset, size, signed, scale }
    }

    #[test]
    fn a_figure_is_read_where_it_is_and_divided_by_its_scale() {
        let state = [9, 0, 4, 0, 0, 0xfe, 0xff, 0xff];
        assert_eq!(place(1, 4, false, 1024).read(&state), Some(1.0));
        assert_eq!(place(0, 1, false, 2).read(&state), Some(4.5));
        assert_eq!(place(5, 2, true, 1).read(&state), Some(-2.0));
        assert_eq!(place(5, 2, false, 1).read(&state), Some(65534.0));
    }

    #[test]
    fn an_unsigned_figure_with_every_bit_set_has_no_value() {
        let state = [0xff; 8];
        for size in [1, 2, 4, 8] {
            assert_eq!(place(0, size, false, 1).read(&state), None);
            assert_eq!(place(0, size, true, 1).read(&state), Some(-1.0));
        }
    }

    #[test]
    fn the_largest_numbers_keep_their_sign() {
        let state = 0xffff_ffff_ffff_fffe_u64.to_le_bytes();
        assert_eq!(place(0, 8, false, 1).read(&state), Some(18_446_744_073_709_551_614.0));
        assert_eq!(place(0, 8, true, 1).read(&state), Some(-2.0));
    }

    #[test]
    fn a_state_that_ends_before_it_has_no_value() {
        assert_eq!(place(6, 4, false, 1).read(&[0; 8]), None);
        assert_eq!(place(0, 16, false, 1).read(&[0; 32]), None, "no number is so large");
    }
}
