//! VAES generators, written once for all vector widths. Only the names of the instructions differ, and the module of a
//! width imports them under common names.

/// Makes the generator of a width, of which `$features` are needed and `$lanes` nodes fill a vector.
macro_rules! generator {
    ($name:ident, $wide:tt, $features:tt, $lanes:literal) => {
        /// Proof that the CPU has AES on vectors of this width. It is made by `detect` alone.
        #[derive(Debug, Clone, Copy)]
        pub struct $name(AesNi);

        impl $name {
            /// The proof, where the CPU has the instructions and the system saves their registers.
            #[must_use]
            pub fn detect() -> Option<Self> {
                let wide = is_x86_feature_detected!($wide) && is_x86_feature_detected!("vaes");
                AesNi::detect().filter(|_| wide).map(Self)
            }

            /// Writes the corrected children of `nodes`, which fill vectors.
            pub(super) fn grow(self, nodes: &[Node], correction: Correction, children: &mut [Node]) {
                // SAFETY: `self` exists only where the features were detected.
                unsafe { grow(self.0.round_keys(), nodes, correction, children) }
            }
        }

        #[target_feature(enable = $features)]
        fn grow(keys: &[[u128; ROUND_KEYS]; 2], nodes: &[Node], correction: Correction, children: &mut [Node]) {
            let keys: [[Vector; ROUND_KEYS]; 2] = std::array::from_fn(|side| keys[side].map(|key| broadcast(key)));
            let correction = correction.map(|block| broadcast(block));
            let mut nodes = nodes.chunks_exact($lanes).map(|nodes| {
                // SAFETY: as many nodes as a vector has lanes, which are 16 bytes each.
                unsafe { load(nodes.as_ptr().cast()) }
            });
            let mut children = children.chunks_exact_mut(2 * $lanes);
            let mut store = |blocks: [Vector; 2]| {
                let room = children.next().expect("there is room for two children per node");
                // SAFETY: the room is that of two vectors.
                unsafe {
                    store(room.as_mut_ptr().cast(), blocks[0]);
                    store(room[$lanes..].as_mut_ptr().cast(), blocks[1]);
                }
            };
            while nodes.len() >= 4 {
                let four = std::array::from_fn::<_, 4, _>(|_| nodes.next().expect("four vectors are left"));
                children_of(&keys, four, correction).into_iter().for_each(&mut store);
            }
            for one in nodes {
                children_of(&keys, [one], correction).into_iter().for_each(&mut store);
            }
        }

        /// The corrected children of `N` vectors of nodes, two vectors each: left and right in turn.
        #[inline]
        #[target_feature(enable = $features)]
        fn children_of<const N: usize>(
            keys: &[[Vector; ROUND_KEYS]; 2],
            nodes: [Vector; N],
            correction: [Vector; 2],
        ) -> [[Vector; 2]; N] {
            let control = broadcast(CONTROL);
            let seeds = nodes.map(|node| and_not(control, node));
            let mut blocks: [[Vector; 2]; N] =
                std::array::from_fn(|i| std::array::from_fn(|side| xor(seeds[i], keys[side][0])));
            for round in 1..ROUND_KEYS - 1 {
                for node in &mut blocks {
                    for (block, keys) in node.iter_mut().zip(keys) {
                        *block = encrypt(*block, keys[round]);
                    }
                }
            }
            std::array::from_fn(|i| {
                // All ones in the nodes whose control bit is set: the lowest 32 bits of each, shifted up and back, everywhere.
                let low = shuffle::<0x00>(nodes[i]);
                let corrected = shift_right::<31>(shift_left::<31>(low));
                let [left, right]: [Vector; 2] = std::array::from_fn(|side| {
                    let block = encrypt_last(blocks[i][side], keys[side][ROUND_KEYS - 1]);
                    let fix = xor(seeds[i], and(correction[side], corrected));
                    xor(block, fix)
                });
                in_turn(left, right)
            })
        }
    };
}

pub(super) use generator;
