import type { HalfDType, Kernel, KernelView, Launch, ProgramContext } from "@halfstep/device";
import { roundArray } from "@halfstep/formats";
import { formatOf } from "./cpu.js";
import {
  type ElementwiseKernel,
  type ElementwiseProgram,
  evaluateProgram,
  programDTypes,
  programScalars,
  programVariant,
  readsAreArithmetic,
  stepFunctions,
  stepStatements,
} from "./elementwise.js";
import type { Indexing } from "./indexing.js";
import { defineKernel, type KernelDefinition } from "./kernel.js";

/** An elementwise program that a product's result passes through before it is stored: bias, activation, residual, scale. */
export interface Epilogue {
  readonly program: ElementwiseProgram;
  /** The inputs of the program that are the result; the others keep their bindings. */
  readonly results: readonly number[];
  /** Format that the result is rounded to first, where the product alone would have stored it so. */
  readonly rounding?: HalfDType;
}

/** A kernel whose last binding is the result `out` [..., m, n], with a scalar `n`, and which takes an {@link Epilogue}. */
export interface ProductKernel extends Kernel {
  withEpilogue(epilogue: Epilogue): Kernel;
}

export const takesEpilogue = (kernel: Kernel): kernel is ProductKernel => "withEpilogue" in kernel;

/**
 * The launch of a product whose result passes through the program of an elementwise launch. An operand that is broadcast along
 * rows must have n elements.
 *
 * @param results the inputs of the elementwise launch that are the product's result.
 */
export function withEpilogue<B>(
  product: Launch<B> & { readonly kernel: ProductKernel },
  elementwise: Launch<B> & { readonly kernel: ElementwiseKernel },
  { results, rounding }: Omit<Epilogue, "program">,
): Launch<B> {
  const program = elementwise.kernel.elementwise;
  const kernel = product.kernel.withEpilogue({
    program,
    results,
    ...(rounding && { rounding }),
  });
  const more = elementwise.bindings.filter((_, i) => !results.includes(i));
  const scalars: Record<string, number> = { ...product.scalars };
  for (const { name } of programScalars(program))
    scalars[name] = elementwise.scalars[name] as number;
  return { kernel, bindings: [...product.bindings.slice(0, -1), ...more], scalars };
}

/** An epilogue as WGSL. */
export interface EpilogueCode {
  /** WGSL of what `call` calls. */
  readonly functions: string;
  /** The program's operands besides the result. */
  readonly operands: readonly { readonly name: string; readonly kind: Indexing }[];
  /** A `vec4f` expression: four elements of the result, and those of each operand, through the program. */
  call(result: string, operands: readonly string[]): string;
}

/** A kernel's definition whose body stores its result through an epilogue, where there is one. */
export interface ProductDefinition extends Omit<KernelDefinition, "body"> {
  /** Elements in a store of the result. */
  readonly unit: 2 | 4;
  body(context: ProgramContext, epilogue?: EpilogueCode): string;
}

export function defineProduct(definition: ProductDefinition): ProductKernel {
  const woven = new Map<string, Kernel>();
  return {
    ...defineKernel({ ...definition, body: (context) => definition.body(context) }),
    withEpilogue(epilogue) {
      const { program, results, rounding = "" } = epilogue;
      const steps = program.steps.map(({ expression }) => expression.name).join("+");
      const variant = `${programVariant(program)};${results};${rounding}`;
      const key = `${steps} ${variant}`;
      let kernel = woven.get(key);
      if (!kernel) {
        const name = `${definition.name}+${steps}`;
        kernel = weave(definition, epilogue, name, `${definition.variant ?? ""} ${variant}`);
        woven.set(key, kernel);
      }
      return kernel;
    },
  };
}

function weave(
  { unit, ...product }: ProductDefinition,
  epilogue: Epilogue,
  name: string,
  variant: string,
): Kernel {
  const { program, results, rounding } = epilogue;
  const { inputs, steps, outputs } = program;
  if (outputs.length !== 1)
    throw new RangeError(`${name}: an epilogue stores one result, not ${outputs.length}`);
  const operands = inputs
    .map((kind, i) => ({ name: `x${i}`, kind, i }))
    .filter(({ i }) => !results.includes(i));
  const code: EpilogueCode = {
    functions: epilogueFunctions(epilogue, operands),
    operands,
    call: (result, values) => `finish(${[result, ...values].join(", ")})`,
  };
  const own = product.bindings.length - 1;
  return defineKernel({
    ...product,
    name,
    variant,
    bindings: [
      ...product.bindings.slice(0, own),
      ...operands.map((x) => ({
        name: x.name,
        access: "read" as const,
        unit,
        dtypes: programDTypes,
      })),
      ...product.bindings.slice(own),
    ],
    ...(product.operations && {
      factors: own + (readsAreArithmetic(program) ? operands.length : 0),
    }),
    scalars: [...(product.scalars ?? []), ...programScalars(program)],
    conversions: [
      ...(product.conversions ?? []),
      ...[{ rounding }, ...steps].flatMap((step) => step.rounding ?? []),
    ],
    body: (context) => product.body(context, code),
    reference(views, scalars) {
      const out = views.at(-1) as KernelView;
      product.reference([...views.slice(0, own), out], scalars);
      if (rounding && out instanceof Float32Array) roundArray(out, formatOf(rounding), out);
      const read = new Map(operands.map(({ i }, o) => [i, views[own + o] as KernelView]));
      evaluateProgram(program, [...inputs.map((_, i) => read.get(i) ?? out), out], {
        ...scalars,
        count: out.length,
      });
    },
  });
}

function epilogueFunctions(
  { program, results, rounding }: Epilogue,
  operands: readonly { readonly i: number }[],
): string {
  const parameters = ["result: vec4f", ...operands.map(({ i }) => `v${i}: vec4f`)];
  const value = rounding ? `round4_${rounding}(result)` : "result";
  const last = program.inputs.length + (program.outputs[0] as number);
  return `${stepFunctions(program)}
fn finish(${parameters.join(", ")}) -> vec4f {
${results.map((r) => `  let v${r} = ${value};\n`).join("")}${stepStatements(program)}  return v${last};
}
`;
}
