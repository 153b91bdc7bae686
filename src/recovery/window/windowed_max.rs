//! The maximum of recent values in constant space: Kathleen Nichols' estimator, as in both versions of BBR
//! (Linux, lib/win_minmax.c; draft-ietf-ccwg-bbr-06 §5.5.5).

/// The best three values of the window, in descending order, each newer than its predecessor. When the best
/// value is too old, the second replaces it. The caller defines the unit of time, for example round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMax {
    best: [At; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct At {
    time: u64,
    value: f64,
}

impl WindowedMax {
    pub(super) fn get(&self) -> f64 {
        self.best[0].value
    }

    /// Adds a value at `time`, with a window of length `window`. Returns the maximum.
    pub(super) fn update(&mut self, window: u64, time: u64, value: f64) -> f64 {
        let new = At { time, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || time - third.time > window {
            // The new value is the maximum, or all others are too old.
            self.best = [new; 3];
            return value;
        }
        if value >= second.value {
            (*second, *third) = (new, new);
        } else if value >= third.value {
            *third = new;
        }
        let age = time - first.time;
        if age > window {
            self.best = [*second, *third, new];
            if time - self.best[0].time > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if second.time == first.time && age > window / 4 {
            // A quarter of the window has passed without a value to replace the best.
            (*second, *third) = (new, new);
        } else if third.time == second.time && age > window / 2 {
            *third = new;
        }
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use airwire::rng::Stream;

    use super::*;

    #[test]
    fn peak_expires_after_window() {
        let mut max = WindowedMax::default();
        assert_eq!(max.update(10, 0, 100.0), 100.0);
        for time in 1..=10 {
            assert_eq!(max.update(10, time, 50.0), 100.0, "after {time}");
        }
        assert_eq!(max.update(10, 11, 50.0), 50.0);
    }

    /// Compares the estimate with the complete window: it never exceeds the window's maximum, and is never
    /// less than the maximum of its newer half.
    #[test]
    fn estimate_lies_between_half_and_full_window_maxima() {
        let mut random = Stream::new(1, "windowed max");
        let (mut max, mut all) = (WindowedMax::default(), Vec::new());
        for step in 0..5000_u64 {
            let (time, value) = (step / 3, random.unit());
            all.push((time, value));
            let said = max.update(10, time, value);
            let largest = |within: u64| {
                let recent = all.iter().filter(|(at, _)| time - at <= within).map(|(_, value)| *value);
                recent.fold(0.0, f64::max)
            };
            assert!((largest(5)..=largest(10)).contains(&said), "{said} at {time}");
        }
    }
}
