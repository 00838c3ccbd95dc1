import { type BlockFactors, blockMain, type FactorLoads, factorLoads } from "./block.js";
import { type MatrixEngine, matrixSubgroups, skew } from "./engine.js";
import { blockRowSums, noRowSums, rowSumStore } from "./row-sums.js";

/** Directives before everything else in a program of {@link matrixBlockProgram}. */
export const matrixDirectives = `enable subgroup_size_control;
enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
`;

/**
 * A product by blocks in workgroup memory, which subgroups multiply in hardware: factors of float16 (float32 where
 * `matrix` has that component) and float32 sums. The factors have the same order as in memory, along k or across it.
 * Results go through workgroup memory to `store_quad`, which `store` declares, so that edges and epilogues are those of
 * every engine.
 */
export function matrixBlockProgram(
  { block, matrix, lanes }: MatrixEngine,
  width: 2 | 4,
  { functions, range, left, right, hasRowSums }: BlockFactors,
  store: string,
): string {
  const { rows, columns, depth, subgroupRows, subgroupColumns } = block;
  const { m, n, k, component } = matrix;
  const subgroups = matrixSubgroups(block);
  const invocations = subgroups * lanes;
  const a = factorLoads(left, { size: rows, depth, first: "row0" }, invocations);
  const b = factorLoads(right, { size: columns, depth, first: "column0" }, invocations);
  // In quads, as subgroupMatrixLoad counts in elements of the array.
  const stride = ({ along }: FactorLoads, size: number): number =>
    ((along === "k" ? depth : size) + skew.matrix) / 4;
  const [aStride, bStride] = [stride(a, rows), stride(b, columns)];
  const lines = ({ along }: FactorLoads, size: number): number => (along === "k" ? size : depth);
  const quads = component === "f16" ? "vec2u" : "vec4f";
  const encode = (value: string): string =>
    component === "f16" ? `bitcast<vec2u>(vec4<f16>(${value}))` : value;
  const decode = (value: string): string =>
    component === "f16" ? `vec4f(bitcast<vec4<f16>>(${value}))` : value;
  const rowSums = hasRowSums
    ? blockRowSums(
        { rows, invocations },
        numbers(a.count).map((i) => decode(`next_a${i}`)),
        {
          capacity: (subgroups * m * n) / 4,
          get: (place) => `sums[${place}]`,
          put: (place, value) => `sums[${place}] = ${value};`,
        },
      )
    : noRowSums;
  const down = numbers(subgroupRows / m);
  const across = numbers(subgroupColumns / n);
  const load = (step: string): string =>
    numbers(a.count)
      .map((i) => `    next_a${i} = ${encode(a.load(i, step))};\n`)
      .concat(numbers(b.count).map((i) => `    next_b${i} = ${encode(b.load(i, step))};\n`))
      .concat(a.advance, b.advance)
      .join("");
  const put = (name: string, { count, line, quad }: FactorLoads, rowQuads: number): string =>
    numbers(count)
      .map(
        (i) => `    ${name}_block[(${line(i)}) * ${rowQuads}u + ${quad(i)}] = next_${name}${i};\n`,
      )
      .join("");
  const part = (
    { along }: FactorLoads,
    rowQuads: number,
    origin: string,
    offset: number,
    depthAt: number,
  ): string =>
    along === "k"
      ? `(${origin} + ${offset}u) * ${rowQuads}u + ${depthAt / 4}u`
      : `${depthAt * rowQuads}u + (${origin} + ${offset}u) / 4u`;
  const multiply = numbers(depth / k)
    .map((q) => {
      const lefts = down.map((i) => {
        const order = a.along === "k" ? "row_major" : "col_major";
        const at = part(a, aStride, "row_in_block", i * m, q * k);
        return `      let a${i} = subgroupMatrixLoad<Left, ${order}>(&a_block, ${at}, ${aStride}u);\n`;
      });
      const products = across.map((j) => {
        const order = b.along === "k" ? "col_major" : "row_major";
        const at = part(b, bStride, "column_in_block", j * n, q * k);
        const sums = down.map(
          (i) =>
            `        sum${i}_${j} = subgroupMatrixMultiplyAccumulate(a${i}, b, sum${i}_${j});\n`,
        );
        return `      { let b = subgroupMatrixLoad<Right, ${order}>(&b_block, ${at}, ${bStride}u);
${sums.join("")}      }
`;
      });
      return `    {\n${lefts.join("")}${products.join("")}    }\n`;
    })
    .join("");
  const results = down.flatMap((i) => across.map((j) => [i, j] as const));
  return `${functions}${hasRowSums ? rowSumStore : ""}${store}
alias Left = subgroup_matrix_left<${component}, ${k}, ${m}>;
alias Right = subgroup_matrix_right<${component}, ${n}, ${k}>;
alias Sum = subgroup_matrix_result<f32, ${n}, ${m}>;
var<workgroup> a_block: array<${quads}, ${lines(a, rows) * aStride}>;
var<workgroup> b_block: array<${quads}, ${lines(b, columns) * bStride}>;
var<workgroup> sums: array<vec4f, ${(subgroups * m * n) / 4}>;
${blockMain(
  block,
  width,
  invocations,
  ` @subgroup_size(${lanes})`,
  `
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) lane: u32,`,
)}${range}
  let row_in_block = subgroup / ${columns / subgroupColumns}u * ${subgroupRows}u;
  let column_in_block = subgroup % ${columns / subgroupColumns}u * ${subgroupColumns}u;
${results.map(([i, j]) => `  var sum${i}_${j} = Sum();\n`).join("")}
${numbers(a.count)
  .map((i) => `  var next_a${i}: ${quads};\n`)
  .concat(numbers(b.count).map((i) => `  var next_b${i}: ${quads};\n`))
  .join("")}
${a.before}${b.before}${rowSums.before}  if (begin < end) {
${load("begin")}  }
  for (var step = begin; step < end; step += ${depth / 4}u) {
    workgroupBarrier();
${put("a", a, aStride)}${put("b", b, bStride)}${rowSums.each}    workgroupBarrier();
    if (step + ${depth / 4}u < end) {
${load(`(step + ${depth / 4}u)`)}    }
${multiply}  }
${results
  .map(
    ([
      i,
      j,
    ]) => `  subgroupMatrixStore<row_major>(&sums, subgroup * ${(m * n) / 4}u, sum${i}_${j}, ${n / 4}u);
  workgroupBarrier();
  for (var q = lane; q < ${(m * n) / 4}u; q += ${lanes}u) {
    store_quad(
      slice,
      row0 + row_in_block + ${i * m}u + q / ${n / 4}u,
      (column0 + column_in_block + ${j * n}u) / 4u + q % ${n / 4}u,
      sums[subgroup * ${(m * n) / 4}u + q],
    );
  }
  workgroupBarrier();
`,
  )
  .join("")}${rowSums.after}}
`;
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
