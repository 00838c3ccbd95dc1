import { type BlockFactors, blockMain, type FactorLoads, factorLoads } from "./block.js";
import type { SharedBlock } from "./block-table.js";
import { sharedInvocations, skew } from "./engine.js";
import { blockRowSums, type MeetingPlace, noRowSums, rowSumStore } from "./row-sums.js";

/**
 * A product by blocks in workgroup memory, exact in float32, for devices whose barriers are fast. Both factors are stored
 * there with k outermost. An invocation computes every (rows / perInvocation · 4)-th group of four rows and columns, so that
 * neighbours read neighbouring quads; the next block is loaded during the products of the present one. `store` declares
 * `store_quad`.
 */
export function sharedBlockProgram(
  block: SharedBlock,
  width: 2 | 4,
  { functions, range, left, right, hasRowSums }: BlockFactors,
  store: string,
): string {
  const { rows, columns, depth, perInvocation } = block;
  const invocations = sharedInvocations(block);
  const acrossInvocations = columns / perInvocation;
  const a = factorLoads(left, { size: rows, depth, first: "row0" }, invocations);
  const b = factorLoads(right, { size: columns, depth, first: "column0" }, invocations);
  const [aStride, bStride] = [rows + skew.shared, columns + skew.shared];
  const groups = perInvocation / 4;
  const sums = hasRowSums
    ? blockRowSums(
        { rows, invocations },
        numbers(a.count).map((i) => `next_a${i}`),
        rowSumPlaces(depth * aStride),
      )
    : noRowSums;
  const load = (step: string): string =>
    numbers(a.count)
      .map((i) => `    next_a${i} = ${a.load(i, step)};\n`)
      .concat(numbers(b.count).map((i) => `    next_b${i} = ${b.load(i, step)};\n`))
      .concat(a.advance, b.advance)
      .join("");
  const quad = (array: string, stride: number, size: number, g: number, lane: string): string => {
    const at = `k * ${stride}u + ${(g * size) / groups}u + ${lane} * 4u`;
    return `let ${array}${g}_at = ${at};
    let ${array}${g} = vec4f(${[0, 1, 2, 3].map((e) => `${array}_block[${array}${g}_at + ${e}u]`).join(", ")});
`;
  };
  const results = numbers(perInvocation).flatMap((i) =>
    numbers(groups).map((g) => [i, g] as const),
  );
  return `${functions}${hasRowSums ? rowSumStore : ""}${store}
var<workgroup> a_block: array<f32, ${depth * aStride}>;
var<workgroup> b_block: array<f32, ${depth * bStride}>;
${blockMain(block, width, invocations)}${range}
  let x = local % ${acrossInvocations}u;
  let y = local / ${acrossInvocations}u;
${results.map(([i, g]) => `  var sum${i}_${g} = vec4f();\n`).join("")}
${numbers(a.count)
  .map((i) => `  var next_a${i}: vec4f;\n`)
  .concat(numbers(b.count).map((i) => `  var next_b${i}: vec4f;\n`))
  .join("")}
${a.before}${b.before}${sums.before}  if (begin < end) {
${load("begin")}  }
  for (var step = begin; step < end; step += ${depth / 4}u) {
    workgroupBarrier();
${put("a", a, aStride)}${put("b", b, bStride)}${sums.each}    workgroupBarrier();
    if (step + ${depth / 4}u < end) {
${load(`(step + ${depth / 4}u)`)}    }
    for (var k = 0u; k < ${depth}u; k++) {
    ${numbers(groups)
      .map((g) => quad("a", aStride, rows, g, "y") + quad("b", bStride, columns, g, "x"))
      .join("")}
${results
  .map(
    ([i, g]) =>
      `    sum${i}_${g} = fma(vec4f(a${Math.floor(i / 4)}[${i % 4}]), b${g}, sum${i}_${g});\n`,
  )
  .join("")}    }
  }
${sums.after}${results
  .map(([i, g]) => {
    const row = `row0 + ${(Math.floor(i / 4) * rows) / groups + (i % 4)}u + y * 4u`;
    const column = `(column0 + ${(g * columns) / groups}u) / 4u + x`;
    return `  store_quad(slice, ${row}, ${column}, sum${i}_${g});\n`;
  })
  .join("")}}
`;
}

/** The left factor's block, after its last read. */
const rowSumPlaces = (elements: number): MeetingPlace => ({
  capacity: Math.floor(elements / 4),
  get: (place) =>
    `vec4f(${numbers(4)
      .map((e) => `a_block[${place} * 4u + ${e}u]`)
      .join(", ")})`,
  put: (place, value) =>
    `let v = ${value}; ${numbers(4)
      .map((e) => `a_block[${place} * 4u + ${e}u] = v[${e}];`)
      .join(" ")}`,
});

/** Statements that store loaded quads in workgroup memory, k outermost. */
function put(name: string, { count, along, line, quad }: FactorLoads, stride: number): string {
  let code = "";
  for (let i = 0; i < count; i++) {
    const at =
      along === "k"
        ? `${quad(i)} * ${4 * stride}u + ${line(i)}`
        : `(${line(i)}) * ${stride}u + (${quad(i)}) * 4u`;
    code += `    { let at = ${at};\n`;
    for (const [e, member] of ["x", "y", "z", "w"].entries())
      code += `    ${name}_block[at + ${along === "k" ? e * stride : e}u] = next_${name}${i}.${member};\n`;
    code += "    }\n";
  }
  return code;
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
