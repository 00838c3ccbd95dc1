import type { Capabilities } from "@halfstep/device";
import { chooseEngine, type Engine } from "./matmul/engine.js";

/** How a device computes large products of matrices and large convolutions. */
export interface EngineReport {
  /** For factors of float16. */
  readonly float16: string;
  /** For factors of float32. */
  readonly float32: string;
  /** Why a device that should multiply matrices in hardware does not. */
  readonly warning?: string;
}

/**
 * How a device computes large products of matrices and large convolutions: by hardware matrices (tensor cores), by blocks in workgroup
 * memory, or by rows.
 *
 * @example
 * console.log(engineReport(device).float16); // matrices of 16×16×16 f16, by 32 lanes, in blocks of 128×128×32, 2 stages
 */
export function engineReport({
  capabilities,
}: {
  readonly capabilities: Pick<Capabilities, "tier" | "hardware" | "subgroupSize" | "features">;
}): EngineReport {
  const { tier, hardware, subgroupSize, features } = capabilities;
  const engineOf = (dtype: "float16" | "float32"): Engine =>
    chooseEngine("large", { tier, hardware, subgroupSize, bindings: [{ dtype }, { dtype }] });
  const float16 = engineOf("float16");
  const report = { float16: described(float16), float32: described(engineOf("float32")) };
  if (hardware.class === "software" || float16.kind === "matrix") return report;
  return { ...report, warning: missing(capabilities, features) };
}

function described(engine: Engine): string {
  if (engine.kind === "rows") return "rows, without blocks";
  const { rows, columns, depth } = engine.block;
  const blocks = `blocks of ${rows}×${columns}×${depth}`;
  if (engine.kind === "shared") return `${blocks} in workgroup memory`;
  const { m, n, k, component } = engine.matrix;
  const stages = engine.block.stages === 1 ? "1 stage" : `${engine.block.stages} stages`;
  return `matrices of ${m}×${n}×${k} ${component}, by ${engine.lanes} lanes, in ${blocks}, ${stages}`;
}

/** The first thing that a device lacks to multiply float16 matrices in hardware. */
function missing(
  { tier, hardware }: Pick<Capabilities, "tier" | "hardware">,
  features: ReadonlySet<string>,
): string {
  const without = "float16 products use no hardware matrices: ";
  if (!features.has("chromium-experimental-subgroup-matrix"))
    return `${without}the device has no "chromium-experimental-subgroup-matrix" (Chromium has it with the flag --enable-unsafe-webgpu)`;
  if (tier === "packed") return `${without}the device has no "shader-f16"`;
  if (hardware.subgroupMatrices.length === 0)
    return `${without}the adapter reports none that add up in float32 and multiply right; pass wrapDevice() the adapter's info`;
  return `${without}no block fits its ${hardware.workgroupBytes} bytes of workgroup memory`;
}
