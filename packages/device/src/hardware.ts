/** A product of small matrices, [m, k] · [k, n], that one subgroup computes in hardware and adds up in float32. */
export interface SubgroupMatrix {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** The dtype of the factors. */
  readonly component: "f16" | "f32";
}

/** The properties by which kernels choose their programs. Devices of equal hardware run equal programs with equal sums. */
export interface Hardware {
  /** "software" where the CPU computes, else the vendor in lower case, or "unknown". */
  readonly class: string;
  /** Limits of a workgroup. */
  readonly workgroupBytes: number;
  readonly workgroupInvocations: number;
  /** The size of subgroups by which the device multiplies `subgroupMatrices` right: programs pin it. 0 where there are none. */
  readonly matrixSubgroupSize: number;
  /** Those whose products were right when the device was opened. Empty without `chromium-experimental-subgroup-matrix`. */
  readonly subgroupMatrices: readonly SubgroupMatrix[];
  /** True where sizes of subgroups vary: programs whose lanes work together pin the one that they count on. */
  readonly pinsSubgroups?: boolean;
}

/** A configuration as Dawn's adapters report it. */
interface ReportedMatrix {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

/** What an adapter, or its device, says of itself. Dawn's Node binding gives `subgroupMatrixConfigs` for adapters only. */
export type AdapterInfo = Partial<GPUAdapterInfo> & {
  readonly subgroupMatrixConfigs?: Iterable<ReportedMatrix>;
};

/** The class of a device and the limits of its workgroups. */
export function hardwareOf(
  info: AdapterInfo,
  limits: Pick<
    GPUSupportedLimits,
    "maxComputeWorkgroupStorageSize" | "maxComputeInvocationsPerWorkgroup"
  >,
): Pick<Hardware, "class" | "workgroupBytes" | "workgroupInvocations"> {
  const { vendor = "", description = "", isFallbackAdapter = false } = info;
  const isSoftware = isFallbackAdapter || /llvmpipe|swiftshader/i.test(description);
  return {
    class: isSoftware ? "software" : vendor.toLowerCase() || "unknown",
    workgroupBytes: limits.maxComputeWorkgroupStorageSize,
    workgroupInvocations: limits.maxComputeInvocationsPerWorkgroup,
  };
}

/**
 * The sizes for `@subgroup_size`, in the order in which they are tried. Drivers multiply matrices by 32 invocations (NVIDIA, AMD, Apple),
 * by 16 or 8 (Intel) or by 64 (AMD's servers), and some by only one of their sizes.
 */
export function pinnableSizes(info: AdapterInfo, features: ReadonlySet<string>): readonly number[] {
  const { subgroupMinSize = 0, subgroupMaxSize = 0 } = info;
  if (!features.has("subgroup-size-control")) return [];
  return [32, 16, 8, 64, 128, 4].filter(
    (size) => subgroupMinSize <= size && size <= subgroupMaxSize,
  );
}

/** The matrices that an adapter reports and kernels could use: those that add up in float32, the most work an instruction first. */
export function reportedMatrices(
  { subgroupMatrixConfigs: reported = [] }: AdapterInfo,
  features: ReadonlySet<string>,
): readonly SubgroupMatrix[] {
  if (!features.has("chromium-experimental-subgroup-matrix")) return [];
  const usable: SubgroupMatrix[] = [];
  for (const { componentType, resultComponentType, M, N, K } of reported) {
    const component =
      componentType === "f16" || componentType === "f32" ? componentType : undefined;
    if (!component || resultComponentType !== "f32") continue;
    if (component === "f16" && !features.has("shader-f16")) continue;
    // AMD's driver on D3D12 crashes while it compiles float32 matrices of 16 × 16 × 16.
    if (component === "f32" && M * N * K > 512) continue;
    usable.push({ m: M, n: N, k: K, component });
  }
  return usable.sort((a, b) => b.m * b.n * b.k - a.m * a.n * a.k);
}
