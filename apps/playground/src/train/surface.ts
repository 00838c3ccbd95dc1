import type { Device } from "@halfstep/device";
import type { Tensor } from "@halfstep/tensor";
import type { SurfaceColours } from "./protocol.js";
import { gridSize } from "./two-moons.js";

/** Draws two logits for each point of a grid. */
export type SurfacePainter = (logits: Tensor) => Promise<void>;

const code = /* wgsl */ `
struct Colours { first: vec4f, second: vec4f }
@group(0) @binding(0) var<storage, read> logits: array<vec2f>;
@group(0) @binding(1) var<uniform> colours: Colours;

@vertex fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4f {
  return vec4f(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment fn shade(@builtin(position) at: vec4f) -> @location(0) vec4f {
  let cell = vec2u(at.xy);
  let pair = logits[cell.y * ${gridSize}u + cell.x];
  let share = 1.0 / (1.0 + exp(clamp(pair.x - pair.y, -30.0, 30.0)));
  return mix(colours.first, colours.second, share);
}
`;

/** Draws on the device that computed the logits, from the buffer that they are in: nothing is read back. */
export function gpuPainter(
  { gpu, enqueue }: Device,
  canvas: OffscreenCanvas,
  { first, second }: SurfaceColours,
): SurfacePainter {
  const context = canvas.getContext("webgpu");
  if (context === null) throw new Error("the browser has WebGPU but does not draw with it");
  const format = navigator.gpu.getPreferredCanvasFormat();
  context.configure({ device: gpu, format });
  const module = gpu.createShaderModule({ code, label: "surface" });
  const pipeline = gpu.createRenderPipeline({
    layout: "auto",
    vertex: { module },
    fragment: { module, targets: [{ format }] },
  });
  const colours = gpu.createBuffer({
    size: 32,
    usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
  });
  gpu.queue.writeBuffer(colours, 0, Float32Array.of(...first, 1, ...second, 1));
  return async (logits) => {
    const { buffer, offset } = logits;
    enqueue(() => {
      const encoder = gpu.createCommandEncoder();
      const pass = encoder.beginRenderPass({
        colorAttachments: [
          { view: context.getCurrentTexture().createView(), loadOp: "clear", storeOp: "store" },
        ],
      });
      pass.setPipeline(pipeline);
      pass.setBindGroup(
        0,
        gpu.createBindGroup({
          layout: pipeline.getBindGroupLayout(0),
          entries: [
            { binding: 0, resource: { buffer, offset, size: 8 * gridSize ** 2 } },
            { binding: 1, resource: { buffer: colours } },
          ],
        }),
      );
      pass.draw(3);
      pass.end();
      gpu.queue.submit([encoder.finish()]);
    });
  };
}

/** Reads the logits back and draws with the CPU: what the CPU computed, and on software adapters, which do not draw on canvases. */
export function cpuPainter(canvas: OffscreenCanvas, colours: SurfaceColours): SurfacePainter {
  const context = canvas.getContext("2d");
  const picture = new ImageData(gridSize, gridSize);
  return async (logits) => {
    const values = await logits.toArray();
    for (let i = 0; i < gridSize ** 2; i++) {
      const difference = (values[2 * i] as number) - (values[2 * i + 1] as number);
      picture.data.set(pixelOf(difference, colours), 4 * i);
    }
    context?.putImageData(picture, 0, 0);
  };
}

/** As the fragment shader. */
function pixelOf(difference: number, { first, second }: SurfaceColours): number[] {
  const share = 1 / (1 + Math.exp(Math.min(Math.max(difference, -30), 30)));
  const mixed = [0, 1, 2].map(
    (i) => 255 * ((first[i] as number) * (1 - share) + (second[i] as number) * share),
  );
  return [...mixed, 255];
}
