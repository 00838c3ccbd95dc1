import type { HalfDType, Kernel, ProgramContext, Workgroups } from "@halfstep/device";
import type { NarrowDType } from "@halfstep/formats/dtypes";
import { checkDefinition } from "./check-definition.js";
import { isCpu } from "./cpu-adapter.js";
import { factorsOf, type KernelDefinition } from "./definition.js";
import { indexingWgsl } from "./indexing.js";
import type { Observation, StoreObserver } from "./observers/store-observer.js";
import type { WeaveObserver } from "./observers/weave-observer.js";
import { resultsStoredOnce, weaveAccumulation } from "./weave-accumulation.js";
import { weaveEpilogue } from "./weave-epilogue.js";
import { weaveTwin } from "./weave-twin.js";
import { elementWgsl } from "./wgsl/elements.js";
import { withSubgroups } from "./wgsl/pinned-subgroups.js";
import { hasPairs } from "./wgsl/quad-units.js";
import {
  conversionFunctions,
  narrowFormats,
  type StorageBinding,
  scalarDeclarations,
  storageDeclarations,
} from "./wgsl/storage.js";
import { usedDeclarations } from "./wgsl/used-functions.js";
import type { Epilogue, WovenDefinition } from "./woven-definition.js";
import { refuseWovenNames, wovenName } from "./woven-names.js";

/**
 * A kernel from its definition.
 *
 * @throws TypeError for unknown or missing members, for bindings and scalars of unknown kinds or with one name, and for those whose names
 * begin with "woven_", which are reserved for woven code.
 */
export function defineKernel(definition: KernelDefinition): DefinedKernel {
  checkDefinition(definition);
  return defineWovenKernel(definition);
}

/** The kernel of a definition that supports weaving. Each woven variant is made once. */
export function defineWovenKernel(definition: WovenDefinition): DefinedKernel {
  const { name, variant = "", bindings, scalars = [], conversions = [], reference } = definition;
  const { woven, epilogue = definition.weavesEpilogue ? "body" : undefined } = definition;
  if (!woven) refuseWovenNames(definition);
  const twins = new Map<string, Kernel>();
  const finishing = new WeakMap<Epilogue, Kernel>();
  const observing = new WeakMap<StoreObserver, Map<string, Kernel>>();
  const accumulating = new Map<string, Kernel>();
  const storedOnce = resultsStoredOnce(definition);
  const decoding = { factors: factorsOf(definition), one: definition.one };
  const finished = epilogue === "store" ? woven?.epilogue : undefined;
  const observed = woven?.observed;
  const { twinsOf = [] } = woven ?? {};
  const result = bindings.length - twinsOf.length - (observed ? 2 : 1);
  return {
    name,
    variant,
    bindings,
    scalars,
    reference,
    ...(definition.operations && { operations: definition.operations }),
    ...(definition.hasFactorRows && { hasFactorRows: true }),
    program(context) {
      const formats = narrowFormats(context, conversions);
      const copied = definition.copied?.(context) ?? [];
      const streams = bindings.map(
        ({ name }, i) => !isCpu(context) && definition.streams?.(i, name),
      );
      const inPairs =
        streams.includes(true) && streams.every((is, i) => !is || hasPairs(context.bindings[i]));
      const quads = inPairs ? 2 : 1;
      const movesQuads = definition.movesQuads?.(context);
      const moved = bindings.map(
        (binding, i): StorageBinding => ({
          ...binding,
          ...(movesQuads ? { unit: 4 } : { copied: copied[i], inPairs: inPairs && streams[i] }),
        }),
      );
      const own = {
        directives: definition.directives?.(context) ?? "",
        body: definition.body(context, woven, quads),
      };
      const { directives, body } = definition.subgroups?.(context)
        ? withSubgroups(own, context)
        : own;
      const declarations =
        conversionFunctions(formats, context) +
        storageDeclarations(moved, context, decoding, woven ?? {}, finished && result) +
        (observed?.declarations(moved, context) ?? "") +
        scalarDeclarations(scalars, bindings.length) +
        (finished ? finishedFunction(finished, moved[result]?.inPairs === true) : "");
      const code =
        (usesFloat16(context, formats) ? "enable f16;\n" : "") +
        directives +
        usedDeclarations(declarations, body) +
        body;
      return {
        code,
        workgroups: (values, lengths) => definition.workgroups(values, lengths, context, quads),
      };
    },
    ...(observed
      ? { observed }
      : {
          withTwin(result: string) {
            const twin = twins.get(result) ?? defineWovenKernel(weaveTwin(definition, result));
            twins.set(result, twin);
            return twin;
          },
        }),
    ...(!observed &&
      !definition.storesItself && {
        withObserver(observer: StoreObserver, results: readonly string[], weave: WeaveObserver) {
          const known = observing.get(observer) ?? new Map<string, Kernel>();
          observing.set(observer, known);
          const key = results.join(" ");
          const kernel = known.get(key) ?? defineWovenKernel(weave(definition, observer, results));
          known.set(key, kernel);
          return kernel;
        },
      }),
    ...(storedOnce.length > 0 && {
      storedOnce,
      accumulating(result: string, rounding?: HalfDType) {
        const key = `${result} ${rounding ?? ""}`;
        const kernel =
          accumulating.get(key) ??
          defineWovenKernel(weaveAccumulation(definition, result, rounding));
        accumulating.set(key, kernel);
        return kernel;
      },
    }),
    ...(epilogue &&
      !woven && {
        epilogue,
        withEpilogue(added: Epilogue) {
          const kernel =
            finishing.get(added) ?? defineWovenKernel(weaveEpilogue(definition, added));
          finishing.set(added, kernel);
          return kernel;
        },
      }),
  };
}

/** A kernel that can store a result twice. */
export interface TwinnableKernel extends Kernel {
  /**
   * The kernel with one more binding, the last, that also gets the values of `store_…` to `result`, a float32 binding of access
   * "write". A body that writes the buffer without `store_…` has to handle this binding itself.
   */
  withTwin(result: string): Kernel;
}

/** A kernel from {@link defineKernel}: twinnable, unless its stores are observed. */
export interface DefinedKernel
  extends Kernel,
    Partial<Pick<TwinnableKernel, "withTwin">>,
    Partial<Pick<AccumulableKernel, "storedOnce" | "accumulating">> {
  /** True for matrix products, with an epilogue or without, which `factorRows` recognises. */
  readonly hasFactorRows?: boolean;
  /** The observer of its stores, for a kernel that `withObserver` made. */
  readonly observed?: Observation;
}

/** A kernel whose stores can be observed. */
export interface ObservableKernel extends DefinedKernel {
  /**
   * The kernel with one more binding, the last: the words of an observer, which is called for the stores to `results`, floating
   * bindings of access "write". `weave` is `weaveObserver`: kernels that nothing observes do without.
   */
  withObserver(observer: StoreObserver, results: readonly string[], weave: WeaveObserver): Kernel;
}

/** A kernel that can add results to existing ones. */
export interface AccumulableKernel extends Kernel {
  /** The names of results of which each unit is stored exactly once. */
  readonly storedOnce: readonly string[];
  /**
   * The kernel with access "readwrite" for one of these results: it adds to the existing values instead of storing.
   *
   * @param rounding the format to which the result is rounded before the addition.
   */
  accumulating(result: string, rounding?: HalfDType): Kernel;
}

/** A kernel whose result, its last binding, can pass through an epilogue. */
export interface EpilogueKernel extends DefinedKernel {
  readonly epilogue: "store" | "body";
  /** The kernel with the epilogue's operands before its result, and the epilogue's scalars after its own. */
  withEpilogue(epilogue: Epilogue): Kernel;
}

const usesFloat16 = ({ tier }: ProgramContext, formats: ReadonlySet<NarrowDType>): boolean =>
  tier === "native" && [...formats].some((format) => elementWgsl[format].usesF16);

const maxWorkgroups = 65_535;

/** Workgroups for `count` work items at `size` items each, folded into y where x alone cannot hold them. */
export function linearWorkgroups(count: number, size = 64): Workgroups {
  const needed = Math.ceil(count / size);
  if (needed <= maxWorkgroups) return [needed, 1, 1];
  const rows = Math.ceil(needed / maxWorkgroups);
  return [Math.ceil(needed / rows), rows, 1];
}

/**
 * The head of an entry point for work laid out by {@link linearWorkgroups}: `index` counts work items, and the caller
 * returns where it is past the end.
 */
export const linearMain = (size = 64): string => `@compute @workgroup_size(${size})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let index = (group.x + group.y * groups.x) * ${size}u + local;
`;

/**
 * On CPU adapters a workgroup of eight processes so many adjacent items: starting a workgroup or subgroup takes as long as
 * several items, and sequential accesses are prefetched.
 */
const cpuWalk = { size: 8, items: 1024 };

/**
 * The head of an entry point for all items of work up to `end` (WGSL, u32): opens, after the statements `before`, a loop over
 * `index`, which the caller closes. Laid out by {@link walkWorkgroups}.
 */
export function walkMain(end: string, context: ProgramContext, before = ""): string {
  const { size, items } = isCpu(context) ? cpuWalk : { size: 64, items: 64 };
  const [stop, step] = isCpu(context)
    ? [`min(first_item + ${items}u, ${end})`, `${size}u`]
    : [end, `groups.x * groups.y * ${size}u`];
  return `@compute @workgroup_size(${size})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
${before}  let first_item = (group.x + group.y * groups.x) * ${items}u;
  let item_stop = ${stop};
  let item_step = ${step};
  for (var index = first_item + local; index < item_stop; index += item_step) {
`;
}

/** Workgroups for `count` items of a {@link walkMain}, with `each` items for a workgroup of 64 on GPUs. */
export const walkWorkgroups = (count: number, context: ProgramContext, each = 64): Workgroups =>
  linearWorkgroups(count, isCpu(context) ? cpuWalk.items : each);

/**
 * WGSL: the quad `value` at quad `index` of a result of `count` elements, with zeros after the last one. Values there are
 * computed from memory behind the operands. The check of a flat gradient buffer includes its gaps, and would skip steps because
 * of such values.
 */
export const zeroBehind = (value: string, count: string, type = "vec4f"): string =>
  `select(${type}(), ${value}, vec4u(index * 4u) + vec4u(0u, 1u, 2u, 3u) < vec4u(${count}))`;

/**
 * WGSL `woven_finished(index, result)`: the value that is stored at quad `index` instead of `result`. Where the result is moved in pairs,
 * both are pairs, and so are operands of its shape.
 */
function finishedFunction({ functions, operands, call }: Epilogue, inPairs: boolean): string {
  const name = wovenName("finished");
  const moved: string[] = [];
  let loads = "";
  const values = operands.map(({ name: x, kind, domain }) => {
    if (inPairs && kind === "same") {
      moved.push(x);
      return `${x}_quad`;
    }
    loads += indexingWgsl(kind, x, domain);
    return `quad_${x}(index)`;
  });
  const quad = inPairs ? `${name}_quad` : name;
  const code = `${functions}${loads}
fn ${quad}(index: u32, result: vec4f${moved.map((x) => `, ${x}_quad: vec4f`).join("")}) -> vec4f {
  let value = ${call("result", values, "index")};
  return ${zeroBehind("value", `s.${wovenName("elements")}`)};
}
`;
  if (!inPairs) return code;
  const halves = [0, 1].map(
    (half) =>
      `${quad}(index * 2u + ${half}u, result[${half}]${moved.map((x) => `, ${x}[${half}]`).join("")})`,
  );
  return `${code}fn ${name}(index: u32, result: mat2x4f) -> mat2x4f {
${moved.map((x) => `  let ${x} = load_${x}(index);\n`).join("")}  return mat2x4f(${halves.join(", ")});
}
`;
}
