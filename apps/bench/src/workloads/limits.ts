import type { Device } from "@halfstep/device";
import type { HalfstepLibrary } from "../lanes/halfstep.js";
import type { Prepared } from "../lanes/prepared.js";
import type { Case } from "../workload.js";

/**
 * What the machine itself can do, with kernels of a few lines: the copy bandwidth and the rate of float32 additions and
 * multiplications. They are measured in the rounds of each workload, so that its rows can be given as a fraction of them.
 */
export const limitCases = (isSoftware: boolean): readonly Case[] =>
  isSoftware
    ? [copyLimit("copy", 32 * 2 ** 20), arithmeticLimit("fma", 64, 256)]
    : [
        copyLimit("copy on hardware", 256 * 2 ** 20),
        arithmeticLimit("fma on hardware", 1024, 16_384),
      ];

/** A copy of more bytes than caches hold: reads and writes count both. */
function copyLimit(name: string, bytes: number): Case {
  return limit(name, { operations: 0, bytes: 2 * bytes }, (device) => {
    const [source, copy] = [device.allocate(bytes), device.allocate(bytes)];
    return rawKernel(
      device,
      `@group(0) @binding(0) var<storage, read_write> copy: array<vec4f>;
@group(0) @binding(1) var<storage, read> source: array<vec4f>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
  copy[id.x] = source[id.x];
}`,
      [copy, source],
      bytes / 16 / 256,
    );
  });
}

/**
 * Scalars that each take the next one's last value: enough that none waits for it, and few enough for registers. Chains that
 * are independent would not do: LLVM puts one behind the other in llvmpipe's code, and a core that shares its registers with
 * a busy neighbour then waits for each sum (15 instead of 35 GFLOP/s).
 */
function arithmeticLimit(title: string, rounds: number, workgroups: number): Case {
  const [scalars, unrolled] = [12, 16];
  const operations = 2 * scalars * unrolled * rounds * workgroups * 64;
  const names = Array.from({ length: scalars }, (_, i) => `x${i}`);
  const round = names
    .map((name, i) => `    ${name} = fma(${name}, ${names[(i + 1) % scalars]}, offset);\n`)
    .join("");
  return limit(title, { operations, bytes: 0 }, (device) =>
    rawKernel(
      device,
      `@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  let offset = out[0] + 0.1 + f32(id.x) * 1e-6;
${names.map((name, i) => `  var ${name} = offset + ${i * 0.01};`).join("\n")}
  for (var i = 0u; i < ${rounds}u; i++) {
${round.repeat(unrolled)}  }
  let sum = ${names.join(" + ")};
  if (sum == 1e30) { out[id.x % 64u] = sum; }
}`,
      [device.allocate(1024)],
      workgroups,
    ),
  );
}

function limit(
  name: string,
  cost: { readonly operations: number; readonly bytes: number },
  make: (device: Device) => Promise<Pick<Prepared, "run">>,
): Case {
  return {
    name,
    isQuick: true,
    precisions: ["float32"],
    cost: () => cost,
    tolerance: { float32: 0, float16: 0, bfloat16: 0 },
    on: {
      async halfstep(library: HalfstepLibrary) {
        const { device } = await library.open();
        return {
          ...(await make(device)),
          result: async () => new Float32Array(1),
          drain: () => device.gpu.queue.onSubmittedWorkDone(),
          dispose: () => device.destroy(),
        };
      },
    },
  };
}

async function rawKernel(
  { gpu }: Device,
  code: string,
  buffers: readonly GPUBuffer[],
  workgroups: number,
): Promise<Pick<Prepared, "run">> {
  const module = gpu.createShaderModule({ code });
  const pipeline = await gpu.createComputePipelineAsync({ layout: "auto", compute: { module } });
  const group = gpu.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  return {
    run() {
      const commands = gpu.createCommandEncoder();
      const pass = commands.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(workgroups);
      pass.end();
      gpu.queue.submit([commands.finish()]);
    },
  };
}
