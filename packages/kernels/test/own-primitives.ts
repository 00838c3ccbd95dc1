// Loss scaling over raw GPUBuffers, with WGSL of one's own: no library but @halfstep/grad-scaler.
import type { AmpPrimitives, Gradient } from "@halfstep/grad-scaler";
import { scaleRuleWgsl, scaleRuleWords } from "@halfstep/grad-scaler/wgsl";

// Non-finite numbers are found by their bits: compilers of WGSL may assume that no float is infinite or NaN.
const gradientWgsl = `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read_write> flag: array<atomic<u32>>;
struct Range { first: u32, length: u32, unscales: u32 }
@group(0) @binding(3) var<uniform> range: Range;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  for (var i = id.x; i < range.length; i += groups.x * 64u) {
    let bits = x[range.first + i];
    if ((bits & 0x7f800000u) == 0x7f800000u) { atomicStore(&flag[0], 0x3f800000u); }
    if (range.unscales == 1u) { x[range.first + i] = bitcast<u32>(bitcast<f32>(bits) * state[1]); }
  }
}`;

const lossWgsl = `
@group(0) @binding(0) var<storage, read> loss: array<u32>;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read_write> flag: array<u32>;
@group(0) @binding(3) var<storage, read_write> scaled: array<f32>;
@group(0) @binding(4) var<uniform> weight: f32;
@compute @workgroup_size(1) fn main() {
  if ((loss[0] & 0x7f800000u) == 0x7f800000u) { flag[0] = 0x3f800000u; }
  scaled[0] = (bitcast<f32>(loss[0]) * weight) * state[0];
}`;

const gatherWgsl = `
@group(0) @binding(0) var<storage, read_write> flag: array<u32>;
@group(0) @binding(1) var<storage, read_write> mask: array<f32>;
@group(0) @binding(2) var<uniform> bit: f32;
@compute @workgroup_size(1) fn main() {
  if (flag[0] != 0u) { mask[0] += bit; }
  flag[0] = 0u;
}`;

const updateWgsl = `${scaleRuleWgsl}
struct Update { rule: ScaleRule, tag: f32, slot: u32, isReplaced: u32, newScale: u32 }
@group(0) @binding(0) var<storage, read_write> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> mask: array<f32>;
@group(0) @binding(2) var<storage, read_write> lossFlag: array<u32>;
@group(0) @binding(3) var<storage, read_write> outcomes: array<f32>;
@group(0) @binding(4) var<uniform> update: Update;
@compute @workgroup_size(1) fn main() {
  var before: ScaleState;
  before.scale = state[0];
  before.growth = bitcast<f32>(state[2]);
  before.tolerated = bitcast<f32>(state[3]);
  before.steps = bitcast<f32>(state[4]);
  before.overflows = bitcast<f32>(state[5]);
  var after = nextScale(before, mask[0] != 0.0, false, 0, update.rule);
  if (update.isReplaced == 1u) {
    after = before;
    after.scale = update.newScale;
  }
  state[0] = after.scale;
  state[1] = quotient(0x3f800000u, after.scale);
  state[2] = bitcast<u32>(after.growth);
  if (update.rule.hysteresis > 1.0) { state[3] = bitcast<u32>(after.tolerated); }
  if (update.rule.tolerance > 0u) {
    state[4] = bitcast<u32>(after.steps);
    state[5] = bitcast<u32>(after.overflows);
  }
  if (update.tag > 0.0) {
    let at = update.slot * 8u;
    outcomes[at] = update.tag;
    outcomes[at + 1u] = mask[0];
    outcomes[at + 2u] = bitcast<f32>(before.scale);
    outcomes[at + 3u] = bitcast<f32>(after.scale);
    outcomes[at + 4u] = select(0.0, 1.0, lossFlag[0] != 0u) + select(0.0, 2.0, after.isCollapse);
    outcomes[at + 5u] = -1.0;
    outcomes[at + 6u] = -1.0;
    outcomes[at + 7u] = 0.0;
  }
  mask[0] = 0.0;
  lossFlag[0] = 0u;
}`;

/** The primitives of a scaler on a device of one's own. Losses are single float32 numbers in buffers. */
export function ownPrimitives(device: GPUDevice): AmpPrimitives<GPUBuffer> {
  const { STORAGE, COPY_SRC, COPY_DST, UNIFORM, MAP_READ } = GPUBufferUsage;
  const pipeline = (code: string): GPUComputePipeline =>
    device.createComputePipeline({
      layout: "auto",
      compute: { module: device.createShaderModule({ code }) },
    });
  const [gradients, losses, gather, update] = [gradientWgsl, lossWgsl, gatherWgsl, updateWgsl].map(
    pipeline,
  ) as [GPUComputePipeline, GPUComputePipeline, GPUComputePipeline, GPUComputePipeline];

  /** Enqueues a program over buffers and, as its last binding, a few uniform words. */
  function run(
    program: GPUComputePipeline,
    buffers: readonly GPUBuffer[],
    words: Uint32Array<ArrayBuffer>,
    groups = 1,
  ): void {
    const uniform = device.createBuffer({ size: words.byteLength, usage: UNIFORM | COPY_DST });
    device.queue.writeBuffer(uniform, 0, words);
    const entries = [...buffers, uniform].map((buffer, binding) => ({
      binding,
      resource: { buffer },
    }));
    const layout = program.getBindGroupLayout(0);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(program);
    pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
    pass.dispatchWorkgroups(groups);
    pass.end();
    device.queue.submit([encoder.finish()]);
    uniform.destroy();
  }

  const allocate = (length: number): GPUBuffer =>
    device.createBuffer({ size: length * 4, usage: STORAGE | COPY_SRC | COPY_DST });
  const [mask, unused] = [allocate(1), allocate(2)];

  function eachGradient(
    all: readonly Gradient<GPUBuffer>[],
    state: GPUBuffer,
    foundInf: GPUBuffer,
    unscales: number,
  ): void {
    for (const { buffer, offset = 0, length = (buffer.size - offset) / 4 } of all) {
      const range = Uint32Array.of(offset / 4, length, unscales);
      run(gradients, [buffer, state, foundInf], range, Math.min(Math.ceil(length / 64), 1024));
    }
  }

  return {
    allocate,
    writeState: (state, words) => device.queue.writeBuffer(state, 0, Float32Array.from(words)),
    scaleLoss(loss, state, { weight, lossFlag }) {
      const scaled = allocate(1);
      run(losses, [loss, state, lossFlag, scaled], floatBits(weight));
      return scaled;
    },
    check: (all, foundInf) => eachGradient(all, unused, foundInf, 0),
    unscale: (all, state, foundInf) => eachGradient(all, state, foundInf, 1),
    updateScale({ state, foundInfs, rule, newScale, lossFlag, outcomes, tag }) {
      for (const [i, flag] of foundInfs.entries()) run(gather, [flag, mask], floatBits(2 ** i));
      const slot = tag > 0 ? (tag - 1) % 256 : 0;
      const words = [...scaleRuleWords(rule), ...floatBits(tag), slot];
      words.push(newScale === undefined ? 0 : 1, ...floatBits(newScale ?? 0));
      run(update, [state, mask, lossFlag, outcomes], Uint32Array.from(words));
    },
    async read(buffer) {
      const staging = device.createBuffer({ size: buffer.size, usage: MAP_READ | COPY_DST });
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
      device.queue.submit([encoder.finish()]);
      await staging.mapAsync(GPUMapMode.READ);
      const words = new Float32Array(staging.getMappedRange().slice(0));
      staging.destroy();
      return words;
    },
  };
}

const floatBits = (value: number): Uint32Array<ArrayBuffer> =>
  new Uint32Array(Float32Array.of(value).buffer);
