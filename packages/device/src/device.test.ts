import { describe, expect, test } from "vitest";
import type { Binding, DType, Kernel, Launch } from "./index.js";
import { requestTestDevice, testTiers } from "./testing.js";

/** y = x, as words: right for every storage, for 16-bit ones in pairs. */
const copyWords: Kernel = {
  name: "copy_words",
  variant: "",
  bindings: [
    { name: "x", access: "read" },
    { name: "y", access: "write" },
  ],
  scalars: [
    { name: "words", type: "u32" },
    { name: "unused", type: "f32", runtime: true },
  ],
  program: () => ({
    code: /* wgsl */ `struct Scalars { words: u32, unused: f32 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> s: Scalars;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < s.words) { y[id.x] = x[id.x] + u32(s.unused); }
}`,
    workgroups: ({ words = 0 }) => [Math.ceil(words / 64), 1, 1],
  }),
  reference: () => {},
};

const bind = (buffer: GPUBuffer, length: number, dtype: DType): Binding<GPUBuffer> => ({
  buffer,
  offset: 0,
  length,
  dtype,
});

test("smoke", async () => {
  const device = await requestTestDevice();
  console.log(device.label, device.capabilities);
  const x = device.allocate(1024);
  const y = device.allocate(1024);
  device.write(
    x,
    0,
    new Uint32Array(256).map((_, i) => i * 7),
  );
  const encoder = device.encoder();
  encoder.launch({
    kernel: copyWords,
    bindings: [bind(x, 250, "float32"), bind(y, 250, "float32")],
    scalars: { words: 250, unused: 0 },
  });
  encoder.submit();
  const out = new Uint32Array(await device.read(y, 0, 1000));
  expect([...out]).toEqual([...new Uint32Array(250).map((_, i) => i * 7)]);
  const p = device.prepare([
    {
      kernel: copyWords,
      bindings: [bind(x, 250, "float32"), bind(y, 250, "float32")],
      scalars: { words: 250, unused: 1 },
    },
  ]);
  const c = device.gpu.createCommandEncoder();
  const pass = c.beginComputePass();
  p.encode(pass);
  pass.end();
  device.submit([c.finish()]);
  console.log(new Uint32Array(await device.read(y, 0, 16)));
  await device.settled();
  const t = await device.timed(() => {
    encoder.launch({
      kernel: copyWords,
      bindings: [bind(x, 250, "float32"), bind(y, 250, "float32")],
      scalars: { words: 250, unused: 0 },
    });
    encoder.submit();
  });
  console.log(t, device.counters, device.memory.live);
});
