import { type BlockFactors, blockMain } from "./block.js";
import type { Copies } from "./copies.js";
import { type MatrixEngine, matrixSubgroups } from "./engine.js";
import { matrixMemory } from "./matrix-memory.js";
import { noRowSums } from "./row-sums.js";
import { type BlockForm, copiedHalves, halves, type Staging, singles, stage } from "./staging.js";

/** Directives before everything else in a program of {@link matrixBlockProgram}. */
export const matrixDirectives = `enable subgroup_size_control;
enable chromium_experimental_subgroup_matrix;
`;

/**
 * A product by blocks in workgroup memory, which subgroups multiply in hardware: factors of float16 (float32 where
 * `matrix` has that component) and float32 sums. The factors have the same order as in memory, along k or across it.
 * Results go through the same workgroup memory to `store_quad`, which `store` declares, so that edges and epilogues are
 * those of every engine.
 */
export function matrixBlockProgram(
  { block, matrix, lanes }: MatrixEngine,
  width: 2 | 4,
  { functions, range, left, right, rowSums: support }: BlockFactors,
  store: string,
  copies: Copies,
): string {
  const { rows, columns, depth, subgroupRows, subgroupColumns, stages } = block;
  const { m, n, k, component } = matrix;
  const invocations = matrixSubgroups(block) * lanes;
  const form =
    component === "f32" ? singles : copies.a === 8 && copies.b === 8 ? copiedHalves : halves;
  const staged = (factor: typeof left, name: "a" | "b", size: number, first: string): Staging =>
    stage(factor, { name, size, depth, first }, form, invocations, copies[name] !== undefined);
  const a = staged(left, "a", rows, "row0");
  const b = staged(right, "b", columns, "column0");
  const memory = matrixMemory(block, matrix, { a: a.along, b: b.along });
  const array = arrayOf(form);
  const [aLine, bLine] = [memory.aLine / array.bytes, memory.bLine / array.bytes];
  const bStart = memory.aBytes / array.bytes;
  const stageLength = memory.stageBytes / array.bytes;
  const rowSums = support
    ? support.ofBlock({ rows, invocations }, a.registers.map(form.decode), {
        ...array,
        capacity: Math.floor(memory.bytes / 16),
      })
    : noRowSums;

  const present = stages === 2 ? "present + " : "";
  const put = (factor: Staging, start: number, line: number): string =>
    factor.registers
      .map((register, i) => {
        const at = `${present}${start}u + (${factor.line(i)}) * ${line}u + ${factor.place(i)}`;
        return `    memory[${at}] = ${register};\n`;
      })
      .join("");
  const load = (step: string): string => a.load(step) + b.load(step);
  const putBoth = put(a, 0, aLine) + put(b, bStart, bLine) + rowSums.each;

  const down = numbers(subgroupRows / m);
  const across = numbers(subgroupColumns / n);
  /** The place of a matrix: `offset` across k from the subgroup's first, and `depthAt` along k. */
  const matrixAt = ({ along }: Staging, line: number, offset: number, depthAt: number): number =>
    along === "k"
      ? offset * line + depthAt / form.elements
      : depthAt * line + offset / form.elements;
  const origin = ({ along }: Staging, line: number, first: string): string =>
    along === "k" ? `${first} * ${line}u` : `${first} / ${form.elements}u`;
  const multiply = numbers(depth / k)
    .map((q) => {
      const lefts = down.map((i) => {
        const order = a.along === "k" ? "row_major" : "col_major";
        const at = `${present}a_part + ${matrixAt(a, aLine, i * m, q * k)}u`;
        return `      let a${i} = subgroupMatrixLoad<Left, ${order}>(&memory, ${at}, ${aLine}u);\n`;
      });
      const products = across.map((j) => {
        const order = b.along === "k" ? "col_major" : "row_major";
        const at = `${present}b_part + ${matrixAt(b, bLine, j * n, q * k)}u`;
        const sums = down.map(
          (i) =>
            `        sum${i}_${j} = subgroupMatrixMultiplyAccumulate(a${i}, b, sum${i}_${j});\n`,
        );
        return `      { let b = subgroupMatrixLoad<Right, ${order}>(&memory, ${at}, ${bLine}u);
${sums.join("")}      }
`;
      });
      return `    {\n${lefts.join("")}${products.join("")}    }\n`;
    })
    .join("");
  const next = `(step + ${depth / 4}u)`;
  const head = `${a.before}${b.before}${rowSums.before}`;
  const loop =
    stages === 2
      ? `  var present = 0u;
  if (begin < end) {
${load("begin")}${putBoth}  }
  workgroupBarrier();
  for (var step = begin; step < end; step += ${depth / 4}u) {
    let has_next = ${next} < end;
    if (has_next) {
${load(next)}    }
${multiply}    present = ${stageLength}u - present;
    if (has_next) {
${putBoth}    }
    workgroupBarrier();
  }
`
      : `  if (begin < end) {
${load("begin")}  }
  for (var step = begin; step < end; step += ${depth / 4}u) {
    workgroupBarrier();
${putBoth}    workgroupBarrier();
    if (${next} < end) {
${load(next)}    }
${multiply}  }
  workgroupBarrier();
`;
  const results = subgroupRows / memory.resultRows;
  const resultLine = memory.resultLine / 16;
  const storeResults = numbers(results).map((part) => {
    const first = part * memory.resultRows;
    const stores = numbers(memory.resultRows / m).flatMap((i) =>
      across.map((j) => {
        const sum = `sum${first / m + i}_${j}`;
        const at = `result_part + ${((i * m * resultLine + (j * n) / 4) * 16) / array.bytes}u`;
        return `  subgroupMatrixStore<row_major>(&memory, ${at}, ${sum}, ${(resultLine * 16) / array.bytes}u);\n`;
      }),
    );
    return `${part === 0 ? "" : "  workgroupBarrier();\n"}${stores.join("")}  workgroupBarrier();
  store_results(slice, row0 + ${first}u, column0 / 4u, local);
`;
  });
  const inResults = (columns / 4) * memory.resultRows * (rows / subgroupRows);
  return `${functions}${a.functions}${b.functions}${support?.store ?? ""}${store}
alias Left = subgroup_matrix_left<${component}, ${k}, ${m}>;
alias Right = subgroup_matrix_right<${component}, ${n}, ${k}>;
alias Sum = subgroup_matrix_result<f32, ${n}, ${m}>;
var<workgroup> memory: array<${form.type}, ${memory.bytes / array.bytes}>;
fn store_results(slice: u32, row: u32, quad: u32, local: u32) {
  for (var at = local; at < ${inResults}u; at += ${invocations}u) {
    let line = at / ${columns / 4}u;
    let place = at % ${columns / 4}u;
    let below = line / ${memory.resultRows}u * ${subgroupRows}u + line % ${memory.resultRows}u;
    store_quad(slice, row + below, quad + place, ${array.get(`(line * ${resultLine}u + place)`)});
  }
}
${blockMain(
  block,
  width,
  invocations,
  ` @subgroup_size(${lanes})`,
  `
  @builtin(subgroup_id) subgroup: u32,`,
)}${range(depth / 4)}  let row_in_block = subgroup / ${columns / subgroupColumns}u * ${subgroupRows}u;
  let column_in_block = subgroup % ${columns / subgroupColumns}u * ${subgroupColumns}u;
  let a_part = ${origin(a, aLine, "row_in_block")};
  let b_part = ${bStart}u + ${origin(b, bLine, "column_in_block")};
  let result_part = (row_in_block / ${subgroupRows / memory.resultRows}u * ${resultLine}u + column_in_block / 4u) * ${16 / array.bytes}u;
${down.flatMap((i) => across.map((j) => `  var sum${i}_${j} = Sum();\n`)).join("")}${head}${loop}${storeResults.join("")}${rowSums.after}}
`;
}

/** The array of a form in workgroup memory, also as places for `vec4f`. */
function arrayOf({ type }: BlockForm) {
  if (type === "vec2u")
    return {
      bytes: 8,
      get: (place: string) =>
        `bitcast<vec4f>(vec4u(memory[${place} * 2u], memory[${place} * 2u + 1u]))`,
      put: (place: string, value: string) =>
        `{ let v = bitcast<vec4u>(${value}); memory[${place} * 2u] = v.xy; memory[${place} * 2u + 1u] = v.zw; }`,
    };
  const [from, to] = type === "vec4u" ? ["bitcast<vec4f>", "bitcast<vec4u>"] : ["", ""];
  return {
    bytes: 16,
    get: (place: string) => `${from}(memory[${place}])`,
    put: (place: string, value: string) => `memory[${place}] = ${to}(${value});`,
  };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
