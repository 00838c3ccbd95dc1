import type { Binding, HalfDType, Kernel, KernelView, Launch } from "@halfstep/device";
import { roundElements } from "@halfstep/formats/dtypes";
import { ByObjects } from "./by-objects.js";
import { type Domain, quadType } from "./domain.js";
import {
  domainsOf,
  type ElementwiseProgram,
  evaluateProgram,
  isRandom,
  programName,
  programScalars,
  programVariant,
  readsAreArithmetic,
  stepFunctions,
  stepStatements,
} from "./elementwise.js";
import type { ElementwiseLaunch } from "./fused-elementwise.js";
import type { EpilogueKernel } from "./kernel.js";
import { withPrefix } from "./wgsl/helper-names.js";
import type { Epilogue } from "./woven-definition.js";
import { wovenName } from "./woven-names.js";

/** How an elementwise program becomes the epilogue of a launch. */
export interface EpilogueOptions {
  /** The inputs of the program that are the launch's result; the others keep their bindings. */
  readonly results: readonly number[];
  /** Format that the result is rounded to first, where the launch alone would have stored it so. */
  readonly rounding?: HalfDType;
}

/** Whether later elementwise launches may be woven into a kernel's store. */
export const takesEpilogue = (kernel: Kernel): kernel is EpilogueKernel => "withEpilogue" in kernel;

/**
 * Whether the result of a launch can pass through an elementwise launch in its store. The elementwise launch must read the result at the
 * same index. Random numbers are drawn for whole quads, which some kernels do not store. Where the kernel weaves epilogues into its
 * body, operands that are broadcast along rows need as many elements as a row of the result.
 */
export function epilogueFits<B>(
  { kernel, bindings, scalars }: Launch<B> & { readonly kernel: EpilogueKernel },
  elementwise: ElementwiseLaunch<B>,
  { results }: Pick<EpilogueOptions, "results">,
): boolean {
  const program = elementwise.kernel.elementwise;
  const { length } = bindings.at(-1) as Binding<B>;
  if (program.outputs.length !== 1 || !storesWhatIsDrawn(kernel, program)) return false;
  return program.inputs.every((indexing, i) =>
    results.includes(i)
      ? indexing === "same" && elementwise.bindings[i]?.length === length
      : indexing !== "row" ||
        kernel.epilogue === "store" ||
        elementwise.scalars[`x${i}_size0`] === scalars.n,
  );
}

const storesWhatIsDrawn = ({ bindings }: Kernel, program: ElementwiseProgram): boolean =>
  !isRandom(program) || (bindings.at(-1)?.unit ?? 4) === 4;

/**
 * The launch whose result passes through the program of an elementwise launch before it is stored: bias, activation, residual, scale.
 * Where the kernel weaves it into its `body`, an operand that is broadcast along rows must have n elements, and n is one of its scalars.
 */
export function withEpilogue<B>(
  producer: Launch<B> & { readonly kernel: EpilogueKernel },
  elementwise: ElementwiseLaunch<B>,
  options: EpilogueOptions,
): Launch<B> {
  const program = elementwise.kernel.elementwise;
  const { outputs } = program;
  if (outputs.length !== 1)
    throw new RangeError(
      `${producer.kernel.name}+${elementwise.kernel.name}: an epilogue stores one result, not ${outputs.length}`,
    );
  if (!storesWhatIsDrawn(producer.kernel, program))
    throw new RangeError(
      `${producer.kernel.name}+${elementwise.kernel.name}: random numbers are drawn for quads, and this stores pairs`,
    );
  const more = elementwise.bindings.filter((_, i) => !options.results.includes(i));
  const scalars: Record<string, number> = {
    ...producer.scalars,
    ...(producer.kernel.epilogue === "store" && {
      [wovenName("elements")]: elementwise.scalars.count as number,
    }),
  };
  for (const { name } of programScalars(program))
    scalars[wovenName(name)] = elementwise.scalars[name] as number;
  return {
    kernel: producer.kernel.withEpilogue(epilogueOf(program, options)),
    bindings: [...producer.bindings.slice(0, -1), ...more],
    scalars,
  };
}

const epilogues = new ByObjects<Epilogue>();

/** The epilogue of a program and its options, made once. */
const epilogueOf = (program: ElementwiseProgram, options: EpilogueOptions): Epilogue =>
  epilogues.get([program], `${options.results};${options.rounding ?? ""}`, () =>
    makeEpilogue(program, options),
  );

function makeEpilogue(
  program: ElementwiseProgram,
  { results, rounding }: EpilogueOptions,
): Epilogue {
  const { inputs, steps } = program;
  const domains = domainsOf(program);
  const own = programScalars(program);
  const operands = inputs
    .map((kind, i) => ({ name: wovenName(`x${i}`), kind, domain: domains[i] as Domain, i }))
    .filter(({ i }) => !results.includes(i));
  return {
    name: programName(program),
    variant: `${programVariant(program)};${results};${rounding ?? ""}`,
    operands,
    scalars: own.map((scalar) => ({ ...scalar, name: wovenName(scalar.name) })),
    conversions: [{ rounding }, ...steps].flatMap((step) => step.rounding ?? []),
    isArithmetic: readsAreArithmetic(program),
    functions: epilogueFunctions(program, { results, ...(rounding && { rounding }) }, operands),
    call: (result, values, quad) =>
      `${wovenName("finish")}(${[result, ...values, ...(isRandom(program) ? [`${quad}`] : [])].join(", ")})`,
    reference(out, views, scalars) {
      if (rounding && out instanceof Float32Array) roundElements(out, rounding);
      const read = new Map(operands.map(({ i }, o) => [i, views[o] as KernelView]));
      evaluateProgram(program, [...inputs.map((_, i) => read.get(i) ?? out), out], {
        ...Object.fromEntries(own.map(({ name }) => [name, scalars[wovenName(name)] as number])),
        count: out.length,
      });
    },
  };
}

function epilogueFunctions(
  program: ElementwiseProgram,
  { results, rounding }: EpilogueOptions,
  operands: readonly { readonly i: number; readonly domain: Domain }[],
): string {
  const parameters = [
    "result: vec4f",
    ...operands.map(({ i, domain }) => `v${i}: ${quadType(domain)}`),
    ...(isRandom(program) ? ["quad: u32"] : []),
  ];
  // As between steps, the factor 1, unknown to the compiler, prevents it from contracting the result's computation with a step.
  const value = rounding ? `round4_${rounding}(result)` : `result * s.${wovenName("one")}`;
  const last = program.inputs.length + (program.outputs[0] as number);
  const code = `${stepFunctions(program)}
fn finish(${parameters.join(", ")}) -> vec4f {
${results.map((r) => `  let v${r} = ${value};\n`).join("")}${stepStatements(program, "quad", wovenName)}  return v${last};
}
`;
  return withPrefix(code, wovenName(""))(code);
}
