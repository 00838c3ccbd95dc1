// The WebAssembly text of the kernels by which chunks of all ranks become their mean: float32 sums, four lanes at a time. `build.mjs`
// assembles it. Each computes as JavaScript does, in float64 with one rounding to float32, so that both give the same bits.
//
// Kernels may run over up to 3 elements more than they are asked for: regions are whole vectors, and the excess is never read.

/** Elements of a piece: sums and numbers of 16,384 elements stay in the second cache. */
export const pieceLength = 16384;

/** Byte offsets of the regions in memory. */
export const regions = { sums: 0, numbers: 4 * pieceLength };
const pages = Math.ceil((8 * pieceLength) / 65536);

const load = (region) => `(v128.load offset=${regions[region]} (local.get $at))`;
/** Two of the four elements as float64. */
const low = (x) => `(f64x2.promote_low_f32x4 ${x})`;
const high = (x) => low(`(i8x16.shuffle 8 9 10 11 12 13 14 15 8 9 10 11 12 13 14 15 ${x} ${x})`);
/** Four float32 of two pairs of float64. */
const narrow = (a, b) =>
  `(i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (f32x4.demote_f64x2_zero ${a}) (f32x4.demote_f64x2_zero ${b}))`;

/** Replaces the sums, one vector after another. */
const eachVector = (value) => `
    (local.set $at (i32.const 0))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $at) (i32.shl (local.get $count) (i32.const 2))))
      (v128.store offset=${regions.sums} (local.get $at) ${value})
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br $next)))`;

const kernel = (name, parameter, body) => `
  (func (export "${name}") (param $count i32) (param $${parameter} f64) (local $at i32)
    ${body})`;

const inFloat64 = (of) => eachVector(narrow(of(low), of(high)));
const splat = (parameter) => `(f64x2.splat (local.get $${parameter}))`;

export const text = `(module
  (memory (export "memory") ${pages})
  ${kernel(
    "add",
    "factor",
    // Sums of two float32 have the same bits, in whichever of the two formats they are computed.
    `(if (f64.eq (local.get $factor) (f64.const 1))
      (then ${eachVector(`(f32x4.add ${load("sums")} ${load("numbers")})`)})
      (else ${inFloat64(
        (half) =>
          `(f64x2.add ${half(load("sums"))} (f64x2.mul ${half(load("numbers"))} ${splat("factor")}))`,
      )}))`,
  )}
  ${kernel(
    "scale",
    "factor",
    inFloat64((half) => `(f64x2.mul ${half(load("sums"))} ${splat("factor")})`),
  )}
  ${kernel(
    "divide",
    "divisor",
    inFloat64((half) => `(f64x2.div ${half(load("sums"))} ${splat("divisor")})`),
  )}
)`;
