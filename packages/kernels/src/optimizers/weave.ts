import type { Kernel, KernelScalar, ProgramContext } from "@halfstep/device";
import { encode4Bfloat16Stochastic } from "@halfstep/formats/wgsl";
import { ByObjects } from "../by-objects.js";
import { type WrittenFormula, writeWgsl } from "../formula/write-wgsl.js";
import { defineKernel, linearWorkgroups, walkMain, walkWorkgroups } from "../kernel.js";
import { blockWords, blockwiseWgsl, smallestPeakBits } from "./blockwise.js";
import { drawScalars, drawStep, drawWgsl } from "./draws.js";
import { type ParameterKind, parameterStorages } from "./parameter-storage.js";
import { type MomentStorage, type PassPlan, type PassState, planPass } from "./pass-plan.js";
import type { UpdateRule } from "./rule.js";
import { chunkLength } from "./segment-table.js";
import { rootsOf } from "./trace-rule.js";
import { referenceOf } from "./weave-reference.js";

const groupSize = 64;
const lanes = "vec4u(0u, 1u, 2u, 3u)";

const kernels = new ByObjects<Kernel>();

/** The kernel of one pass of a rule over one storage of parameters and of moments. */
export function passKernel(
  rule: UpdateRule,
  index: number,
  parameters: ParameterKind,
  moments: MomentStorage,
): Kernel {
  return kernels.get([rule], `${index}/${parameters}/${moments}`, () => {
    const plan = planPass(rule, index, parameters, moments);
    const kernel = makeKernel(plan, index);
    return plan.storesParameter && parameters === "inPlace"
      ? ({ ...kernel, copying: () => passKernel(rule, index, "copied", moments) } as Kernel)
      : kernel;
  });
}

/** The last pass of an update in place, which can store a 16-bit copy of float32 values as well. */
export interface CopyingKernel extends Kernel {
  copying(): Kernel;
}

/** Whether a kernel updates parameters, and may keep half copies of them. */
export const canCopy = (kernel: Kernel): kernel is CopyingKernel => "copying" in kernel;

function makeKernel(plan: PassPlan, index: number): Kernel {
  const { rule, bindings, walksChunks, storesParameter } = plan;
  const storage = parameterStorages[plan.parameters];
  const written = writePass(plan);
  const scalars: KernelScalar[] = [
    { name: "first", type: "u32" },
    { name: "end", type: "u32" },
    { name: "sign", type: "f32", runtime: true },
    ...rule.scalars.map((name): KernelScalar => ({ name, type: "f32", runtime: true })),
    ...(plan.draws ? drawScalars : []),
  ];
  return defineKernel({
    name: `update ${rule.name}`,
    variant: [index, plan.parameters, plan.moments].join(" "),
    bindings,
    scalars,
    body: (context) =>
      (plan.loadsParameter || storesParameter ? storage.functions : "") +
      (plan.draws ? drawWgsl + encode4Bfloat16Stochastic : "") +
      written.functions +
      (walksChunks ? chunkProgram(plan, written) : flatProgram(plan, written, context)),
    workgroups({ first, end }, _, context) {
      const count = (end as number) - (first as number);
      return walksChunks ? linearWorkgroups(count, 1) : walkWorkgroups(count, context);
    },
    reference: referenceOf(plan),
  });
}

/** The head of flat and chunk programs: a skipped step returns at once. */
const head = (plan: PassPlan): string => `  let control = load_control(0u);
  if (control.x == 0.0) { return; }
${controlLets(plan.rule, plan.used)}${scalarLets(plan.rule, plan.used)}${plan.draws ? drawStep : ""}`;

/** `let` declarations of the learning rate and the columns among some names. */
export function controlLets(rule: UpdateRule, used: ReadonlySet<string>): string {
  const { columns = [] } = rule;
  const lets: string[] = [];
  if (used.has("lr")) lets.push("let lr = control.z;");
  if (used.has("first")) lets.push("let first = control.w;");
  if (columns.some((name) => used.has(name))) lets.push("let row = load_control(1u);");
  for (const [i, name] of columns.entries())
    if (used.has(name)) lets.push(`let ${name} = row.${"yzw"[i]};`);
  return lets.map((line) => `  ${line}\n`).join("");
}

/** `let` declarations of the scalars among some names. */
export const scalarLets = (rule: UpdateRule, used: ReadonlySet<string>): string =>
  rule.scalars
    .filter((name) => used.has(name))
    .map((name) => `  let ${name} = s.${name};\n`)
    .join("");

/** The WGSL of a pass. Each result has a name of its own. */
interface WrittenPass extends WrittenFormula {
  /** The names of the terms of totals. */
  readonly terms: readonly string[];
}

function writePass({ trace }: PassPlan): WrittenPass {
  const written = writeWgsl(rootsOf(trace), {
    prefix: "rule",
    nameOf: (variable) => variable,
    names: true,
  });
  return { ...written, terms: written.values.slice(Object.keys(trace.next).length) };
}

/** Loads of quad `q` and the formulas of the rule, without stores. */
function update(
  plan: PassPlan,
  { statements, values }: WrittenPass,
  loadState: (state: PassState) => string,
): string {
  const { parameters, pass, trace, storesParameter } = plan;
  const storage = parameterStorages[parameters];
  const lines: string[] = [];
  if (plan.usesGradient)
    lines.push("let g = load_gradients(q) * control.x * (control.y * s.sign);");
  if (plan.loadsParameter) lines.push(`${storesParameter ? "var" : "let"} p = ${storage.load};`);
  for (const state of plan.states)
    lines.push(`${state.isStored ? "var" : "let"} ${state.name} = ${loadState(state)};`);
  if (pass.inputs) lines.push(pass.inputs.wgsl);
  lines.push(...statements);
  for (const [i, name] of Object.keys(trace.next).entries()) lines.push(`${name} = ${values[i]};`);
  return lines.map((line) => `  ${line}\n`).join("");
}

const storesOf = (plan: PassPlan): string =>
  [
    ...plan.states
      .filter(({ isStored, is8Bit }) => isStored && !is8Bit)
      .map(({ name, place, isBfloat16 }) =>
        isBfloat16
          ? `${name}_data[q] = encode4_bfloat16_stochastic(${name}, draw(q, step_drawn, ${place + 1}u));`
          : `store_${name}(q, ${name});`,
      ),
    ...(plan.storesParameter ? [parameterStorages[plan.parameters].store] : []),
  ]
    .map((line) => `    ${line}\n`)
    .join("");

const flatProgram = (
  plan: PassPlan,
  written: WrittenPass,
  context: ProgramContext,
): string => `${walkMain("s.end - s.first", context, head(plan))}  let q = s.first + index;
${update(plan, written, ({ name }) => `load_${name}(q)`)}  {
${storesOf(plan)}  }
  }
}
`;

/**
 * A workgroup processes a chunk in rounds of one block of the 8-bit moments. All conditions before a barrier come from
 * read-only memory by the same index, so that control flow is uniform.
 */
function chunkProgram(plan: PassPlan, written: WrittenPass): string {
  const { pass, states, factors } = plan;
  const eightBit = states.filter((state) => state.is8Bit);
  const coded = eightBit.filter(({ isStored }) => isStored);
  const { terms } = written;
  const isMax = pass.totals?.fold === "max";
  const rounds = chunkLength / (groupSize * 4);
  const maps = new Set(eightBit.map(({ kind }) => kind as "signed" | "unsigned"));

  const load = ({ name, kind, is8Bit }: PassState): string =>
    is8Bit
      ? `decode8_${kind}(load_${name}(word + 1u + local), bitcast<f32>(load_${name}(word)))`
      : `load_${name}(q)`;
  const fold = (total: string, value: string): string =>
    isMax ? `max(${total}, ${value})` : `${total} + ${value}`;
  const lane = (total: string): string =>
    isMax
      ? `max(max(${total}.x, ${total}.y), max(${total}.z, ${total}.w))`
      : `(${total}.x + ${total}.y) + (${total}.z + ${total}.w)`;

  const collect = terms.map(
    (term, i) => `    total${i} = ${fold(`total${i}`, `select(vec4f(), ${term}, inside)`)};\n`,
  );
  const encode = coded.map(
    ({ name }, i) => `    let kept_${name} = select(vec4f(), ${name}, inside);
    let bits_${name} = bitcast<vec4u>(abs(kept_${name}));
    atomicMax(&peaks[k * ${coded.length}u + ${i}u], max(max(bits_${name}.x, bits_${name}.y), max(bits_${name}.z, bits_${name}.w)));
`,
  );
  const storeCodes = coded.map(
    ({ name, kind, place }, i) => `    {
      let bits = atomicLoad(&peaks[k * ${coded.length}u + ${i}u]);
      let peak = select(0u, bits, bits >= ${smallestPeakBits}u);
      var codes = 0u;
      if (peak != 0u) { codes = encode8_${kind}(kept_${name}, bitcast<f32>(peak), draw(q, step_drawn, ${place + 1}u)); }
      store_${name}(word + 1u + local, codes);
      if (local == 0u) { store_${name}(word, peak); }
    }
`,
  );

  return `${[...maps].map(blockwiseWgsl).join("")}${
    coded.length > 0 ? `var<workgroup> peaks: array<atomic<u32>, ${rounds * coded.length}>;\n` : ""
  }${terms.length > 0 ? `var<workgroup> gathered: array<vec4f, ${groupSize}>;\n` : ""}
@compute @workgroup_size(${groupSize})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let chunk = s.first + group.x + group.y * groups.x;
  if (chunk >= s.end) { return; }
${head(plan)}  let record = load_chunks(chunk);
${factors.length > 0 ? "  let made = load_factors(record.z);\n" : ""}${factors
  .map(({ name, place }) => `  let ${name} = made.${"xyzw"[place]};\n`)
  .join("")}${terms.map((_, i) => `  var total${i} = vec4f();\n`).join("")}
  for (var k = 0u; k < ${rounds}u; k++) {
    if (k * ${groupSize * 4}u >= record.y) { break; }
    let at = k * ${groupSize}u + local;
    let q = record.x + at;
    let inside = vec4u(at * 4u) + ${lanes} < vec4u(record.y);
${eightBit.length > 0 ? `    let word = (record.w + k) * ${blockWords}u;\n` : ""}${update(plan, written, load)}${collect.join("")}${encode.join("")}${
  coded.length > 0 ? "    workgroupBarrier();\n" : ""
}${storeCodes.join("")}    if (inside.x) {
${storesOf(plan)}    }
  }
${terms.length > 0 ? gather(terms.length, fold, lane) : ""}}
`;
}

/** One total of a chunk: lanes and invocations in a fixed order. */
const gather = (
  count: number,
  fold: (total: string, value: string) => string,
  lane: (total: string) => string,
): string => `  gathered[local] = vec4f(${[0, 1, 2, 3].map((i) => (i < count ? lane(`total${i}`) : "0.0")).join(", ")});
  workgroupBarrier();
  if (local > 0u) { return; }
  var all = gathered[0];
  for (var i = 1u; i < ${groupSize}u; i++) { all = ${fold("all", "gathered[i]")}; }
  store_partials(chunk, all);
`;
