/**
 * Measures the cost of rounding in loads: `round4_…` against encoding followed by decoding, which it replaces, and
 * against no rounding. Values stay in registers, so that only arithmetic is timed: `npx vitest bench --run
 * bench/conversions.bench.ts`.
 */
import { requestTestDevice } from "@halfstep/device/testing";
import * as wgsl from "@halfstep/formats/wgsl";
import { bench, describe } from "vitest";
import { defineKernel, linearMain, linearWorkgroups } from "../src/kernel.js";

const quads = 16_384;
const rounds = 512;
const device = await requestTestDevice({ tier: "packed" });
const buffer = device.allocate(quads * 16);

/** One dispatch that applies `expression` repeatedly to vec4f `v` of each invocation. */
const time = (name: string, functions: string, expression: string): void => {
  const kernel = defineKernel({
    name,
    bindings: [{ name: "x", access: "readwrite", dtypes: ["float32"] }],
    body: () => `${functions}${linearMain()}  var v = load_x(index) + vec4f(f32(index) * 1e-3);
  var sum = vec4f();
  for (var i = 0u; i < ${rounds}u; i++) {
    sum += ${expression};
    v *= 1.0001;
  }
  store_x(index, sum);
}
`,
    workgroups: () => linearWorkgroups(quads),
    reference() {
      throw new Error("runs on a GPU only");
    },
  });
  const x = { buffer, offset: 0, length: quads * 4, dtype: "float32" } as const;
  bench(name, async () => {
    const target = device.encoder();
    target.launch({ kernel, bindings: [x], scalars: {} });
    target.submit();
    await device.gpu.queue.onSubmittedWorkDone();
  });
};

describe(`${quads * rounds * 4} elements`, () => {
  time("no rounding", "", "v");
  const { encode4Float16, decode4Float16, round4Float16 } = wgsl;
  time("round4_float16", round4Float16, "round4_float16(v)");
  const decoded = "decode4_float16(encode4_float16(v))";
  time("encode4_float16, decode4_float16", encode4Float16 + decode4Float16, decoded);
  // As kernels loaded before: the packed tier decodes by the hardware.
  const unpacked =
    "vec4f(unpack2x16float(encode4_float16(v).x), unpack2x16float(encode4_float16(v).y))";
  time("encode4_float16, unpack2x16float", encode4Float16, unpacked);
  time("round4_bfloat16", wgsl.round4Bfloat16, "round4_bfloat16(v)");
});
