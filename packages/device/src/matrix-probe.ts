import type { SubgroupMatrix } from "./hardware.js";

/**
 * A program that multiplies two matrices in hardware and writes the sum of four products, m × n words, to `out`: each factor is loaded
 * in both orders of memory. Most of these sums are not exact in float16, and some overflow it, so that a driver that adds in float16
 * fails.
 */
export function matrixProbe({ m, n, k, component }: SubgroupMatrix, lanes: number): string {
  const orders = ["row_major", "col_major"] as const;
  const loads = orders
    .flatMap((left) => orders.map((right) => [left, right] as const))
    .map(([left, right]) => {
      const [leftStride, rightStride] = [
        left === "row_major" ? k : m,
        right === "row_major" ? n : k,
      ];
      return `  sum = subgroupMatrixMultiplyAccumulate(
    subgroupMatrixLoad<subgroup_matrix_left<${component}, ${k}, ${m}>, ${left}>(&a_${left}, 0u, ${leftStride}u),
    subgroupMatrixLoad<subgroup_matrix_right<${component}, ${n}, ${k}>, ${right}>(&b_${right}, 0u, ${rightStride}u),
    sum);
`;
    });
  return `${component === "f16" ? "enable f16;\n" : ""}enable subgroups;
enable subgroup_size_control;
enable chromium_experimental_subgroup_matrix;
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
var<workgroup> a_row_major: array<${component}, ${m * k}>;
var<workgroup> a_col_major: array<${component}, ${m * k}>;
var<workgroup> b_row_major: array<${component}, ${k * n}>;
var<workgroup> b_col_major: array<${component}, ${k * n}>;
@compute @workgroup_size(${lanes}) @subgroup_size(${lanes}) fn main(@builtin(local_invocation_index) local: u32) {
  for (var i = local; i < ${m * k}u; i += ${lanes}u) {
    let value = ${component}(i % 61u);
    a_row_major[i] = value;
    a_col_major[i % ${k}u * ${m}u + i / ${k}u] = value;
  }
  for (var i = local; i < ${k * n}u; i += ${lanes}u) {
    let value = ${component}(i % 59u);
    b_row_major[i] = value;
    b_col_major[i % ${n}u * ${k}u + i / ${n}u] = value;
  }
  workgroupBarrier();
  var sum = subgroup_matrix_result<f32, ${n}, ${m}>();
${loads.join("")}  subgroupMatrixStore<row_major>(&out, 0u, sum, ${n}u);
}
`;
}

/** The output of {@link matrixProbe} on correct hardware. */
export function matrixProbeSums({ m, n, k }: SubgroupMatrix): Float32Array {
  const sums = new Float32Array(m * n);
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++)
      for (let p = 0; p < k; p++)
        sums[i * n + j] =
          (sums[i * n + j] as number) + 4 * factorAt.left(i * k + p) * factorAt.right(p * n + j);
  return sums;
}

/** The factors' elements by their places, in row-major order: integers that are exact in every component type. */
const factorAt = {
  left: (place: number): number => place % 61,
  right: (place: number): number => place % 59,
};
