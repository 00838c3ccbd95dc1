import { isDeepStrictEqual } from "node:util";
import type { DType, Kernel, KernelBinding } from "@halfstep/device";
import { scalerRule } from "@halfstep/grad-scaler";
import type { Expression, KernelDefinition, ResidentTarget } from "@halfstep/kernels";
import type { Op, Operand, Runtime, Tensor } from "@halfstep/tensor";
import { afterAll, expect, test, vi } from "vitest";

// Every kernel of the library between strangers of its name, in one step: it computes what it computes without them, and they compute
// what they say. Pipelines of a GPU and programs of several expressions: packages/kernels/test/shadowed.gpu.test.ts.

interface Defined {
  readonly definition: KernelDefinition;
  readonly kernel: Kernel;
  runs: number;
}

const defined = vi.hoisted(() => {
  // Test files share a process and its modules: the kernels are defined once more here, and counted.
  vi.resetModules();
  return [] as Defined[];
});
/** Later files do not define kernels that are counted, and therefore held, here. */
afterAll(() => vi.resetModules());

vi.mock("../../kernels/src/kernel.js", async (importOriginal) => {
  type Define = typeof import("@halfstep/kernels").defineKernel;
  const actual =
    await importOriginal<Readonly<Record<"defineKernel" | "defineWovenKernel", Define>>>();
  const noted = (definition: KernelDefinition) => {
    const kernel = actual.defineWovenKernel({
      ...definition,
      reference(views, scalars) {
        own.runs++;
        definition.reference(views, scalars);
      },
    });
    const own = { definition, kernel, runs: 0 };
    defined.push(own);
    return kernel;
  };
  return { ...actual, defineKernel: noted, defineWovenKernel: noted };
});

const library = await import("@halfstep/kernels");
const { ampPrimitives } = await import("@halfstep/kernels/amp");
const { cpuRuntime, defineOp, grad } = await import("@halfstep/tensor");
const { gradientCases } = await import("../../tensor/test/gradient-cases.js");
const { basics } = await import("../../optim/test/catalogue.js");
const { matrices, mixed, noise, Parameters } = await import("../../optim/test/targets.js");

/** What was defined while the library was loaded. The rest is made as it is needed. */
const known: readonly Defined[] = [...defined];
const expressions: readonly Expression[] = Object.values(library).filter(
  (value): value is Expression =>
    typeof value === "object" && value !== null && "evaluate" in value && "arity" in value,
);

const mark = 3;
const length = 16;

const isWritten = ({ access }: KernelBinding): boolean => access !== "read";
const dtypeOf = ({ dtypes }: KernelBinding): DType => dtypes?.[0] ?? "float32";

/** An op that launches a kernel once, on operands of a few elements. */
const opAround = (kernel: Kernel, { name, bindings, scalars = [] }: KernelDefinition): Op<null> =>
  defineOp<null>({
    name,
    castPolicy: "none",
    shape: () =>
      bindings.filter(isWritten).map((each) => ({ shape: [length], dtype: dtypeOf(each) })),
    forward({ target, inputs, outputs }) {
      // One more operand than the kernel reads, because an op needs one.
      const [read, written] = [inputs.slice(1), [...outputs]];
      target.launch({
        kernel,
        bindings: bindings.map((each) => (isWritten(each) ? written : read).shift() as Operand),
        scalars: Object.fromEntries(scalars.map((scalar) => [scalar.name, 1])),
      });
    },
    backward: "none",
  });

const strangers = new Set<KernelDefinition>();

/** A kernel that has the name and the parameters of the library's, and fills what it writes. */
const strangerOf = once((like: KernelDefinition): Kernel => {
  const { name, variant = "", bindings, scalars = [], epilogue } = like;
  const stranger: KernelDefinition = {
    ...{ name, variant, bindings, scalars },
    ...(epilogue === "store" && { epilogue }),
    body: () => "",
    workgroups: () => [1, 1, 1],
    reference(views) {
      for (const [i, view] of views.entries())
        if (isWritten(bindings[i] as KernelBinding)) view.fill(mark);
    },
  };
  strangers.add(stranger);
  return library.defineKernel(stranger);
});

const strangerOp = once((like: KernelDefinition): Op<null> => opAround(strangerOf(like), like));

/** An op around an expression that has the name of the library's. */
const strangerNamed = once(({ name, arity, scalars = 0 }: Expression): Op<null> => {
  const stranger: Expression = {
    ...{ name, arity, scalars },
    wgsl: () => `vec4f(${mark}.0)`,
    evaluate: () => mark,
  };
  return defineOp<null>({
    name,
    castPolicy: "none",
    shape: () => [{ shape: [length], dtype: "float32" }],
    forward({ target, inputs, outputs: [y] }) {
      target.launch(
        library.elementwise(stranger, inputs, y as Operand, new Array(scalars).fill(1)),
      );
    },
    backward: "none",
  });
});

function once<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>();
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}

const anything: KernelBinding = { name: "anything", access: "read" };

const operandOf = (runtime: Runtime, dtype: DType): Tensor =>
  runtime.tensor(new Array(length).fill(1), [length], { dtype });

const operandsOf = (runtime: Runtime, bindings: readonly KernelBinding[]): readonly Tensor[] =>
  [anything, ...bindings.filter((each) => !isWritten(each))].map((each) =>
    operandOf(runtime, dtypeOf(each)),
  );

/** What strangers of these kernels, and of the expressions in them, give; it goes through an epilogue where that can be. */
function besides(runtime: Runtime, definitions: readonly KernelDefinition[]): Tensor[] {
  const names = new Set(definitions.flatMap(({ name }) => name.split("+")));
  const results = [
    ...definitions.flatMap((each) =>
      strangerOp(each).applyAll(operandsOf(runtime, each.bindings), null),
    ),
    ...expressions
      .filter(({ name }) => names.has(name))
      .flatMap((each) =>
        strangerNamed(each).applyAll(
          Array.from({ length: each.arity }, () => operandOf(runtime, "float32")),
          null,
        ),
      ),
  ];
  return results.map((result) => (result.dtype === "float32" ? result.add(1).sub(1) : result));
}

/** A step, and what else there is to compare after it. */
interface Scenario {
  step(): readonly Tensor[];
  read?(): Promise<unknown>;
}

async function run(
  make: (runtime: Runtime) => Scenario,
  definitions: readonly KernelDefinition[],
): Promise<{ readonly results: unknown; readonly wrongStrangers: number }> {
  const runtime = cpuRuntime();
  const { step, read } = make(runtime);
  let count = 0;
  const all = await runtime.step(() => {
    const before = besides(runtime, definitions);
    const results = step();
    const others = [...before, ...besides(runtime, definitions)];
    count = others.length;
    return [...others, ...results];
  });
  const values = await Promise.all(all.map((x) => x.toArray()));
  const isRight = (each: ArrayLike<number>): boolean =>
    each.length === length && Array.from(each).every((value) => value === mark);
  return {
    results: [...values.slice(count), await read?.()],
    wrongStrangers: values.slice(0, count).filter((each) => !isRight(each)).length,
  };
}

/** What is wrong with a scenario between strangers of all kernels that it runs. */
async function mistakes(
  title: string,
  make: (runtime: Runtime) => Scenario,
): Promise<readonly string[]> {
  for (const each of defined) each.runs = 0;
  const plain = await run(make, []);
  const ran = defined.filter(({ runs, definition }) => runs > 0 && !strangers.has(definition));
  const definitions = ran.map(({ definition }) => definition);
  if (definitions.length === 0) return [`${title} runs no kernel`];
  const between = await run(make, definitions);
  return [
    ...(isDeepStrictEqual(between.results, plain.results) ? [] : [`${title} gives something else`]),
    ...(between.wrongStrangers === 0
      ? []
      : [`${between.wrongStrangers} strangers beside ${title} do not give their own`]),
  ];
}

test("ops and their gradients are not those of strangers", async () => {
  const found: string[] = [];
  for (const [op, { cases }] of Object.entries(gradientCases))
    for (const { name, inputs, apply } of new Set([cases[0], cases.at(-1)] as typeof cases))
      found.push(
        ...(await mistakes(`${op} ${name}`, (runtime) => ({
          step() {
            const tensors = inputs.map(({ shape, values }) =>
              runtime.tensor(Float32Array.from(values), shape, { requiresGrad: true }),
            );
            const y = apply(tensors, runtime);
            return [y, ...grad(y.sum(), tensors).flatMap((gradient) => gradient ?? [])];
          },
        }))),
      );
  expect(found).toEqual([]);
});

test("steps of optimizers with loss scaling are not those of strangers", async () => {
  const found: string[] = [];
  for (const { title, name, isForMatrices, make } of basics)
    found.push(
      ...(await mistakes(title, (runtime) => {
        const target = runtime.target as unknown as ResidentTarget<object>;
        const primitives = ampPrimitives(target);
        const [state, foundInf, lossFlag, outcomes, squares] = [
          8,
          2,
          1,
          2048,
          primitives.normPartials,
        ].map((words) => primitives.allocate(words)) as [object, object, object, object, object];
        primitives.writeState(state, [4, 0.25, 0, 0, 0, 0, 0, 0]);
        const shapes = isForMatrices ? matrices : mixed;
        const count = Object.values(shapes).reduce(
          (n, shape) => n + shape.reduce((a, b) => a * b, 1),
          0,
        );
        const parameters = new Parameters(target, noise(count, 1), "float32", shapes);
        parameters.setGradients(noise(count, 2));
        const clips = name !== "LAMB" && name !== "BertAdam";
        const optimizer = make(target, parameters.flat, clips ? { clipGradNorm: 1 } : {});
        return {
          step() {
            primitives.check([...optimizer.gradients()], foundInf, { state, squares });
            optimizer.step({ gradScale: state, foundInf });
            const rule = scalerRule();
            const words = { state, foundInfs: [foundInf], lossFlag, outcomes, squares };
            primitives.updateScale({ ...words, rule, tag: 1 });
            return [];
          },
          read: () => parameters.values(),
        };
      })),
    );
  expect(found).toEqual([]);
});

test("no kernel of the library is a stranger, whatever it is launched on", async () => {
  expect(known.length).toBeGreaterThan(150);
  const found: string[] = [];
  for (const each of known) {
    const { kernel, definition } = each;
    const stranger = strangerOf(definition);
    const [plain] = await resultsOf(cpuRuntime(), definition, [kernel]);
    each.runs = 0;
    const runtime = cpuRuntime();
    // The steps differ in nothing but the kernels.
    const got = [
      ...(await resultsOf(runtime, definition, [stranger])),
      ...(await resultsOf(runtime, definition, [kernel])),
      ...(await resultsOf(runtime, definition, [stranger, kernel, stranger])),
    ];
    const marks = definition.bindings.map((binding) =>
      new Array(length).fill(isWritten(binding) ? mark : 1),
    );
    const isRight = isDeepStrictEqual(got, [marks, plain, marks, plain, marks]);
    if (!isRight || each.runs !== 2) found.push(`${kernel.name} ${kernel.variant}`);
  }
  expect(found).toEqual([]);
});

/** What kernels of these parameters leave in their operands, which are ones, in one step. */
async function resultsOf(
  runtime: Runtime,
  { bindings, scalars = [] }: KernelDefinition,
  kernels: readonly Kernel[],
): Promise<readonly (readonly number[][])[]> {
  const { target } = runtime;
  const ones = Object.fromEntries(scalars.map(({ name }) => [name, 1]));
  const launches = kernels.map((kernel) => ({
    kernel,
    scalars: ones,
    bindings: bindings.map((each) => {
      const buffer = library.allocateResident(target, length * 4);
      const binding = { buffer, offset: 0, length, dtype: dtypeOf(each) };
      target.write(binding, new Float32Array(length).fill(1));
      return binding;
    }),
  }));
  await runtime.step(() => {
    for (const launch of launches) target.launch(launch);
  });
  const values = (operands: (typeof launches)[number]["bindings"]) =>
    Promise.all(operands.map(async (operand) => Array.from(await target.read(operand))));
  return Promise.all(launches.map(({ bindings: operands }) => values(operands)));
}
