//! The rounds over vectors with a lane in each element, written once for the kernels of every vector length.

/// Sixteen rounds of all lanes on `state`, by the message words in the ring `words`; with `schedule` each word is then
/// replaced by that of sixteen rounds later.
///
/// The kernel that uses it has functions of its vectors: `add`, `splat`, `choose`, `majority`, `rotations`, `shifted`.
macro_rules! sixteen {
    ($state:ident, $words:ident, $k:expr $(, $schedule:ident)?) => {
        let k = $k;
        sixteen!($state $words k $($schedule)?: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    };
    ($state:ident $words:ident $k:ident: $($i:literal)*) => { $(sixteen!(round $state $words $k $i);)* };
    ($state:ident $words:ident $k:ident schedule: $($i:literal)*) => {
        $(
            sixteen!(round $state $words $k $i);
            let s0 = shifted::<7, 18, 3>($words[($i + 1) % 16]);
            let s1 = shifted::<17, 19, 10>($words[($i + 14) % 16]);
            $words[$i] = add(add($words[$i], $words[($i + 9) % 16]), add(s0, s1));
        )*
    };
    (round $state:ident $words:ident $k:ident $i:literal) => {
        // The variables a to h do not move: from round to round their names do.
        let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(|name| (name + 16 - $i) % 8);
        let t = add(add($state[h], splat($k[$i])), $words[$i]);
        let t = add(t, choose($state[e], $state[f], $state[g]));
        let t = add(t, rotations::<6, 11, 25>($state[e]));
        let u = add(majority($state[a], $state[b], $state[c]), rotations::<2, 13, 22>($state[a]));
        $state[d] = add($state[d], t);
        $state[h] = add(t, u);
    };
}

pub(super) use sixteen;
