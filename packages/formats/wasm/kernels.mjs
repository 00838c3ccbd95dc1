// The WebAssembly text of the bulk kernels: float32 to codes and back, four lanes at a time, the random words of stochastic
// rounding, and float64 to float32. `build.mjs` assembles it.
//
// JavaScript copies pieces of its arrays into the fixed regions of the module's one memory and calls a kernel with the number
// of elements. A kernel may run over up to 15 elements more: the regions are whole vectors, and the excess is never read.

/** Elements of a piece: numbers and codes of 4,096 elements stay in the first or second cache. */
export const pieceLength = 4096;

/** Byte offsets of the regions in memory. */
export const regions = {
  parameters: 0,
  numbers: 256,
  codes: 256 + 4 * pieceLength,
  doubles: 256 + 8 * pieceLength,
  // Random words are never needed together with doubles that are not yet narrowed.
  words: 256 + 8 * pieceLength,
};
const pages = Math.ceil((regions.doubles + 8 * pieceLength) / 65536);

/**
 * The order of the parameter region, one u32 each: what a format's constants are, `src/arrays/wasm-parameters.ts` says. Names
 * in capitals are splatted to four lanes, the others are shifts.
 */
export const encodeParameters = [
  "LIFT",
  "MAGIC",
  "BASE",
  "CAP",
  "NAN",
  "SIGN",
  "shift",
  "signShift",
];
export const decodeParameters = [
  "MAGNITUDE",
  "NORMAL",
  "REBIAS",
  "SPECIAL",
  "EXCESS",
  "shift",
  "signShift",
];

const get = (name) => `(local.get $${name})`;
const set = (name, value) => `(local.set $${name} ${value})`;
const and = (a, b) => `(v128.and ${a} ${b})`;
const or = (a, b) => `(v128.or ${a} ${b})`;
const add = (a, b) => `(i32x4.add ${a} ${b})`;
const sub = (a, b) => `(i32x4.sub ${a} ${b})`;
const shl = (a, places) => `(i32x4.shl ${a} ${places})`;
const shr = (a, places) => `(i32x4.shr_u ${a} ${places})`;
const select = (yes, no, condition) => `(v128.bitselect ${yes} ${no} ${condition})`;
const i32x4 = (value) => `(v128.const i32x4 ${Array(4).fill(value).join(" ")})`;
const isVector = (name) => name === name.toUpperCase();

const kernel = (name, parameters, temporaries, step, body, result = "") => `
  (func (export "${name}") (param $count i32) ${result && "(result i32)"}
    (local $at i32)
    ${temporaries.map((t) => `(local $${t} v128)`).join(" ")}
    ${parameters.map((p) => `(local $${p} ${isVector(p) ? "v128" : "i32"})`).join(" ")}
    ${parameters
      .map((p, i) =>
        set(p, `(${isVector(p) ? "v128.load32_splat" : "i32.load"} offset=${4 * i} (i32.const 0))`),
      )
      .join("\n    ")}
    (loop $next${body}
      (br_if $next (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const ${step})))
        (local.get $count))))
    ${result})`;

/** Where element `at` lies in a region of elements of that many bytes. */
const at = (bytes) => `(i32.mul (local.get $at) (i32.const ${bytes}))`;
const numbersAt = (vector) => `offset=${regions.numbers + 16 * vector} ${at(4)}`;

/**
 * Leaves the codes of four float32 in local `into`, rounded to nearest even by one float addition. The addend is the power of
 * two whose last place is the format's last place at that magnitude: LIFT above the magnitude's own power, but at least MAGIC,
 * whose last place is the smallest subnormal. The difference of the bits is then the rounded significand, to which the
 * exponent is added. Magnitudes too large for a lifted exponent turn negative, take MAGIC, and come out above CAP like all
 * that overflow.
 */
const encodeLanes = (vector, into, { dropsZeroSign, reportsNaN }) => `
      ${set("w", `(v128.load ${numbersAt(vector)})`)}
      ${set("m", and(get("w"), i32x4("0x7fffffff")))}
      ${set("b", `(i32x4.max_s ${add(and(get("w"), i32x4("0x7f800000")), get("LIFT"))} ${get("MAGIC")})`)}
      ${set(
        "c",
        `(i32x4.min_u ${get("CAP")} ${add(
          sub(`(f32x4.add ${get("m")} ${get("b")})`, get("b")),
          sub(shr(get("b"), get("shift")), get("BASE")),
        )})`,
      )}
      ${set("m", `(i32x4.gt_s ${get("m")} ${i32x4("0x7f800000")})`)}
      ${reportsNaN ? set("nans", or(get("nans"), get("m"))) : ""}
      ${set("c", add(get("c"), and(get("NAN"), get("m"))))}
      ${set("w", and(shr(get("w"), get("signShift")), get("SIGN")))}
      ${set(
        into,
        or(
          get("c"),
          dropsZeroSign ? and(get("w"), `(i32x4.ne ${get("c")} ${i32x4(0)})`) : get("w"),
        ),
      )}`;

const narrow16 = (a, b) => `(i16x8.narrow_i32x4_u ${get(a)} ${get(b)})`;

const encode16 = kernel(
  "encode16",
  encodeParameters,
  ["w", "m", "b", "c", "r0", "r1"],
  8,
  `${[0, 1].map((i) => encodeLanes(i, `r${i}`, {})).join("")}
      (v128.store offset=${regions.codes} ${at(2)} ${narrow16("r0", "r1")})`,
);

/** Returns 1 if there was a NaN, for the formats that have none. */
const encode8 = (name, dropsZeroSign) =>
  kernel(
    name,
    encodeParameters,
    ["w", "m", "b", "c", "r0", "r1", "r2", "r3", "nans"],
    16,
    `${[0, 1, 2, 3]
      .map((i) => encodeLanes(i, `r${i}`, { dropsZeroSign, reportsNaN: true }))
      .join("")}
      (v128.store offset=${regions.codes} ${at(1)}
        (i8x16.narrow_i16x8_u ${narrow16("r0", "r1")} ${narrow16("r2", "r3")}))`,
    "(v128.any_true (local.get $nans))",
  );

/** The upper halves of float32, for which rounding is an integer addition; NaNs keep their payload and become quiet. */
const encodeBfloat16 = kernel(
  "encodeBfloat16",
  [],
  ["w", "r0", "r1"],
  8,
  `${[0, 1]
    .map(
      (i) => `
      ${set("w", `(v128.load ${numbersAt(i)})`)}
      ${set(
        `r${i}`,
        shr(
          select(
            or(get("w"), i32x4("0x400000")),
            add(add(get("w"), i32x4("0x7fff")), and(shr(get("w"), "(i32.const 16)"), i32x4(1))),
            `(i32x4.gt_s ${and(get("w"), i32x4("0x7fffffff"))} ${i32x4("0x7f800000")})`,
          ),
          "(i32.const 16)",
        ),
      )}`,
    )
    .join("")}
      (v128.store offset=${regions.codes} ${at(2)} ${narrow16("r0", "r1")})`,
);

/**
 * Four codes as float32. Normal magnitudes get float32's bias (and EXCESS where infinities and NaNs begin); subnormal ones get
 * the exponent of the smallest normal number, and lose its implied bit in one exact subtraction of normal numbers.
 */
const decodeLanes = (vector, codes) => `
      ${set("w", codes)}
      ${set("m", shl(and(get("w"), get("MAGNITUDE")), get("shift")))}
      (v128.store ${numbersAt(vector)} ${or(
        select(
          `(f32x4.sub ${add(get("m"), get("NORMAL"))} ${get("NORMAL")})`,
          add(
            add(get("m"), get("REBIAS")),
            and(`(i32x4.ge_s ${get("m")} ${get("SPECIAL")})`, get("EXCESS")),
          ),
          `(i32x4.lt_s ${get("m")} ${i32x4("0x800000")})`,
        ),
        and(shl(get("w"), get("signShift")), i32x4("0x80000000")),
      )})`;

const load16 = (vector) => `(v128.load16x4_u offset=${regions.codes + 8 * vector} ${at(2)})`;
const load8 = (vector) => `(i32x4.extend_low_i16x8_u (i16x8.extend_low_i8x16_u
        (v128.load32_zero offset=${regions.codes + 4 * vector} ${at(1)})))`;

const decode = (name, load) =>
  kernel(
    name,
    decodeParameters,
    ["w", "m"],
    8,
    `${decodeLanes(0, load(0))}${decodeLanes(1, load(1))}`,
  );

const decodeBfloat16 = kernel(
  "decodeBfloat16",
  [],
  [],
  8,
  [0, 1]
    .map((i) => `\n      (v128.store ${numbersAt(i)} ${shl(load16(i), "(i32.const 16)")})`)
    .join(""),
);

/**
 * Float64 to float32, rounded to odd: inexact results end in a 1, so that the next rounding, to a format at least two bits
 * narrower, errs as if there had been one rounding. Demotion rounds to nearest; what came out too large steps back by one.
 * All NaNs become the canonical one, since JavaScript does not show a number's sign and payload there.
 */
const narrowDoubles = kernel(
  "narrowDoubles",
  [],
  ["x", "y", "n", "b", "inexact", "larger"],
  4,
  `
      ${set("x", `(v128.load offset=${regions.doubles} ${at(8)})`)}
      ${set("y", `(v128.load offset=${regions.doubles + 16} ${at(8)})`)}
      ${set("n", pair("(f32x4.demote_f64x2_zero (local.get $x))", "(f32x4.demote_f64x2_zero (local.get $y))", "low"))}
      ${set("b", "(f64x2.promote_low_f32x4 (local.get $n))")}
      ${set("inexact", "(f64x2.ne (local.get $b) (local.get $x))")}
      ${set("larger", "(f64x2.gt (f64x2.abs (local.get $b)) (f64x2.abs (local.get $x)))")}
      ${set("b", `(f64x2.promote_low_f32x4 ${pair(get("n"), get("n"), "high")})`)}
      ${set("inexact", pair(get("inexact"), "(f64x2.ne (local.get $b) (local.get $y))", "even"))}
      ${set("larger", pair(get("larger"), "(f64x2.gt (f64x2.abs (local.get $b)) (f64x2.abs (local.get $y)))", "even"))}
      (v128.store ${numbersAt(0)} ${select(
        or(add(get("n"), get("larger")), and(get("inexact"), i32x4(1))),
        i32x4("0x7fc00000"),
        "(f32x4.eq (local.get $n) (local.get $n))",
      )})`,
);

/** Two vectors' low halves, both high halves of the first, or the even words of both, in one. */
function pair(a, b, part) {
  const words = { low: [0, 1, 4, 5], high: [2, 3, 2, 3], even: [0, 2, 4, 6] }[part];
  const bytes = words.flatMap((word) => [0, 1, 2, 3].map((byte) => 4 * word + byte));
  return `(i8x16.shuffle ${bytes.join(" ")} ${a} ${b})`;
}

/** Philox4x32-10 (Salmon et al. 2011), four words for each counter from `first` on; one round is unrolled in the loop. */
const philox = `
  (func (export "philox") (param $count i32) (param $first i32) (param $c2 i32) (param $c3 i32) (param $k0 i32) (param $k1 i32)
    (local $at i32) (local $round i32) (local $a i32) (local $b i32) (local $c i32) (local $d i32)
    (local $p i64) (local $q i64) (local $x i32) (local $y i32)
    (loop $next
      ${set("a", "(i32.add (local.get $first) (i32.shr_u (local.get $at) (i32.const 2)))")}
      ${set("b", "(i32.const 0)")} ${set("c", get("c2"))} ${set("d", get("c3"))}
      ${set("x", get("k0"))} ${set("y", get("k1"))} ${set("round", "(i32.const 10)")}
      (loop $again
        ${set("p", "(i64.mul (i64.extend_i32_u (local.get $a)) (i64.const 0xd2511f53))")}
        ${set("q", "(i64.mul (i64.extend_i32_u (local.get $c)) (i64.const 0xcd9e8d57))")}
        ${set("a", xor3(high("q"), get("b"), get("x")))}
        ${set("b", "(i32.wrap_i64 (local.get $q))")}
        ${set("c", xor3(high("p"), get("d"), get("y")))}
        ${set("d", "(i32.wrap_i64 (local.get $p))")}
        ${set("x", "(i32.add (local.get $x) (i32.const 0x9e3779b9))")}
        ${set("y", "(i32.add (local.get $y) (i32.const 0xbb67ae85))")}
        (br_if $again (local.tee $round (i32.sub (local.get $round) (i32.const 1)))))
      ${["a", "b", "c", "d"]
        .map((word, i) => `(i32.store offset=${regions.words + 4 * i} ${at(4)} ${get(word)})`)
        .join("\n      ")}
      (br_if $next (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 4)))
        (local.get $count)))))`;

function high(product) {
  return `(i32.wrap_i64 (i64.shr_u (local.get $${product}) (i64.const 32)))`;
}

function xor3(a, b, c) {
  return `(i32.xor (i32.xor ${a} ${b}) ${c})`;
}

export const text = `(module
  (memory (export "memory") ${pages} ${pages})
${encode16}
${encodeBfloat16}
${encode8("encode8", false)}
${encode8("encode8UnsignedZero", true)}
${decode("decode16", load16)}
${decode("decode8", load8)}
${decodeBfloat16}
${narrowDoubles}
${philox}
)`;
