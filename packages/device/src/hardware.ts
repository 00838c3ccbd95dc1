/** A product of small matrices, [m, k] · [k, n], that one subgroup computes in hardware and adds up in float32. */
export interface SubgroupMatrix {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** What the factors are. */
  readonly component: "f16" | "f32";
}

/** What kernels choose their programs by. Devices of equal hardware run equal programs, so that they give equal sums. */
export interface Hardware {
  /** "software" where the CPU computes, else the vendor in lower case, or "unknown". */
  readonly class: string;
  /** Limits of a workgroup. */
  readonly workgroupBytes: number;
  readonly workgroupInvocations: number;
  /** The size that `@subgroup_size` may ask for where matrices are multiplied; 0 where sizes cannot be chosen or known. */
  readonly matrixSubgroupSize: number;
  /** Empty without `chromium-experimental-subgroup-matrix`. */
  readonly subgroupMatrices: readonly SubgroupMatrix[];
}

/** A configuration as Dawn's adapters report it. */
interface ReportedMatrix {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

type AdapterInfo = Partial<GPUAdapterInfo> & {
  readonly subgroupMatrixConfigs?: Iterable<ReportedMatrix>;
};

export function hardwareOf(
  info: AdapterInfo,
  features: ReadonlySet<string>,
  limits: Pick<
    GPUSupportedLimits,
    "maxComputeWorkgroupStorageSize" | "maxComputeInvocationsPerWorkgroup"
  >,
): Hardware {
  const { vendor = "", description = "", isFallbackAdapter = false } = info;
  const isSoftware = isFallbackAdapter || /llvmpipe|swiftshader/i.test(description);
  const matrixSubgroupSize = pinnedSize(info, features);
  return {
    class: isSoftware ? "software" : vendor.toLowerCase() || "unknown",
    workgroupBytes: limits.maxComputeWorkgroupStorageSize,
    workgroupInvocations: limits.maxComputeInvocationsPerWorkgroup,
    matrixSubgroupSize,
    subgroupMatrices:
      features.has("chromium-experimental-subgroup-matrix") && matrixSubgroupSize > 0
        ? usableMatrices(info.subgroupMatrixConfigs ?? [], features)
        : [],
  };
}

const matrixLanes = 32;

function pinnedSize(info: AdapterInfo, features: ReadonlySet<string>): number {
  const { subgroupMinSize = 0, subgroupMaxSize = 0 } = info;
  const isInRange = subgroupMinSize <= matrixLanes && matrixLanes <= subgroupMaxSize;
  return features.has("subgroup-size-control") && isInRange ? matrixLanes : 0;
}

/** Those that add up in float32, the most work an instruction first. */
function usableMatrices(
  reported: Iterable<ReportedMatrix>,
  features: ReadonlySet<string>,
): SubgroupMatrix[] {
  const usable: SubgroupMatrix[] = [];
  for (const { componentType, resultComponentType, M, N, K } of reported) {
    const component =
      componentType === "f16" || componentType === "f32" ? componentType : undefined;
    if (!component || resultComponentType !== "f32") continue;
    if (component === "f16" && !features.has("shader-f16")) continue;
    usable.push({ m: M, n: N, k: K, component });
  }
  return usable.sort((a, b) => b.m * b.n * b.k - a.m * a.n * a.k);
}
