import type {
  Binding,
  Device,
  DType,
  Float8DType,
  HalfDType,
  Hardware,
  Kernel,
  KernelView,
  LaunchTarget,
  ProgramContext,
} from "@halfstep/device";
import { type TestTier, testTiers } from "@halfstep/device/testing";
import { bytesFor, decodeElements, encodeElements } from "@halfstep/formats/dtypes";
import { type CpuTargetOptions, cpuTarget } from "../src/cpu.js";

/** A tensor operand of a test: its values, or just a length for one that launches fill. */
interface Operand {
  readonly values: ArrayLike<number> | number;
  /** Default float32. */
  readonly dtype?: DType;
  readonly rounding?: HalfDType;
}

type Operands = Readonly<Record<string, Operand>>;
type Bindings<B, O extends Operands> = { readonly [name in keyof O]: Binding<B> };

/** Launches that run on any target, as those under test should. */
export type Launches<O extends Operands> = <B>(
  target: LaunchTarget<B>,
  bindings: Bindings<B, O>,
) => void;

/** Every operand after the launches ran, decoded. */
export type Results<O extends Operands> = { readonly [name in keyof O]: KernelView };

const lengthOf = ({ values }: Operand): number =>
  typeof values === "number" ? values : values.length;

const entries = <O extends Operands>(operands: O): [keyof O, Operand][] =>
  Object.entries(operands) as [keyof O, Operand][];

function bind<B, O extends Operands>(target: LaunchTarget<B>, operands: O): Bindings<B, O> {
  const bindings: Partial<Record<keyof O, Binding<B>>> = {};
  for (const [name, operand] of entries(operands)) {
    const { dtype = "float32", rounding } = operand;
    const length = lengthOf(operand);
    const buffer = target.allocate(bytesFor(dtype, length));
    bindings[name] = { buffer, offset: 0, length, dtype, ...(rounding && { rounding }) };
  }
  return bindings as Bindings<B, O>;
}

/** Runs launches through their references. */
export function runOnCpu<const O extends Operands>(
  operands: O,
  launches: Launches<O>,
  options?: CpuTargetOptions,
): Results<O> {
  const target = cpuTarget(options);
  const bindings = bind(target, operands);
  for (const [name, { values }] of entries(operands))
    if (typeof values !== "number") target.write(bindings[name], values);
  launches(target, bindings);
  const results: Partial<Record<keyof O, KernelView>> = {};
  for (const [name] of entries(operands)) results[name] = target.read(bindings[name]);
  return results as Results<O>;
}

/** Runs launches on a device. Scratch buffers stay with the device. */
export async function runOnGpu<const O extends Operands>(
  device: Device,
  operands: O,
  launches: Launches<O>,
): Promise<Results<O>> {
  const target = device.encoder();
  const bindings = bind(target, operands);
  for (const [name, { values }] of entries(operands))
    if (typeof values !== "number" && values.length > 0)
      device.write(bindings[name].buffer, 0, encodeElements(values, bindings[name].dtype));
  launches(target, bindings);
  target.submit();
  const names = entries(operands).map(([name]) => name);
  const bytes = await Promise.all(
    names.map((name) => {
      const { buffer, length, dtype } = bindings[name];
      return device.read(buffer, 0, bytesFor(dtype, length));
    }),
  );
  const results: Partial<Record<keyof O, KernelView>> = {};
  for (const [i, name] of names.entries()) {
    const { buffer, dtype, length } = bindings[name];
    results[name] = decodeElements(bytes[i] as ArrayBuffer, dtype, length);
    device.release(buffer);
  }
  return results as Results<O>;
}

/** The same target for devices that differ in what programs are made for. */
const pretending = <B>(
  target: LaunchTarget<B>,
  name: string,
  context: Partial<ProgramContext>,
): LaunchTarget<B> => ({
  allocate: (bytes) => target.allocate(bytes),
  launch: (launch) =>
    target.launch({
      ...launch,
      kernel: {
        ...launch.kernel,
        variant: `${launch.kernel.variant}, ${name}`,
        program: (own) => launch.kernel.program({ ...own, ...context }),
      },
    }),
});

/** The same target for devices with subgroups of another size, or with none. */
export const withSubgroups = <B>(target: LaunchTarget<B>, subgroupSize: number): LaunchTarget<B> =>
  pretending(target, `subgroups of ${subgroupSize}`, { subgroupSize });

/** The same target for devices of other hardware. */
export const withHardware = <B>(target: LaunchTarget<B>, hardware: Hardware): LaunchTarget<B> =>
  pretending(target, hardware.class, { hardware });

/** A GPU of no vendor, without matrix hardware. */
export const someGpu: Hardware = {
  ...{ class: "a GPU", workgroupBytes: 16_384, workgroupInvocations: 256 },
  ...{ matrixSubgroupSize: 0, subgroupMatrices: [] },
};

/** Whether a lane runs these tests (`npm run lanes`), which sees what `npm test` leaves out. */
export const isLane: boolean = Boolean(process.env.HALFSTEP_LANE_TESTS);

/**
 * The tiers on which programs for other hardware than this machine's are run. In `npm test` there are none: Mesa's software driver, for which
 * they are not made, takes long to compile them. Lanes run them (`npm run lanes`).
 */
export const tiersInLanes = async (): Promise<readonly TestTier[]> =>
  isLane ? await testTiers() : [];

/** The packed tier in lanes, for programs without subgroups. */
export const packedInLanes = async (): Promise<readonly TestTier[]> =>
  (await tiersInLanes()).filter((tier) => tier === "packed");

/** The WGSL of the programs of some launches in a context, by the names of their kernels. */
export function programsOf(
  context: Omit<ProgramContext, "bindings">,
  launches: (target: LaunchTarget<object>) => void,
): Readonly<Record<string, string>> {
  const codes: Record<string, string> = {};
  launches({
    allocate: () => ({}),
    launch({ kernel, bindings }) {
      codes[kernel.name] = kernel.program({ ...context, bindings }).code;
    },
  });
  return codes;
}

/** An operand of launches that do not run. */
export const withoutMemory = (length: number, dtype: DType): Binding<object> => ({
  ...{ buffer: {}, offset: 0, length, dtype },
});

/** The same target for devices that have no subgroups. */
export const withoutSubgroups = <B>(target: LaunchTarget<B>): LaunchTarget<B> =>
  withSubgroups(target, 0);

/** Half a unit in the last place of a storage format, relative to the value. */
export const unitRoundoff: Readonly<Record<"float32" | HalfDType | Float8DType, number>> = {
  float8e4m3fn: 2 ** -4,
  float8e5m2: 2 ** -3,
  float32: 2 ** -24,
  float16: 2 ** -11,
  bfloat16: 2 ** -8,
};

/**
 * The elements of `got` that differ from `want` by more than |want| · relative + absolute, a few in words and a count. NaN
 * equals NaN only, and an infinity only itself.
 */
export function mismatches(
  got: ArrayLike<number>,
  want: ArrayLike<number>,
  { relative, absolute }: { readonly relative: number; readonly absolute: number },
): readonly string[] {
  if (got.length !== want.length) return [`length ${got.length} instead of ${want.length}`];
  const found: string[] = [];
  let count = 0;
  for (let i = 0; i < want.length; i++) {
    const x = got[i] as number;
    const y = want[i] as number;
    if (Object.is(x, y)) continue;
    if (Number.isFinite(y) && Math.abs(x - y) <= Math.abs(y) * relative + absolute) continue;
    if (count++ < 5) found.push(`[${i}] ${x} instead of ${y}`);
  }
  return count > found.length ? [...found, `${count} of ${want.length} in all`] : found;
}

/** Where a device's results differ from those of the CPU references: `name[i] …` for each result that has a tolerance. */
export async function deviceMismatches<const O extends Operands>(
  device: Device,
  operands: O,
  launches: Launches<O>,
  tolerances: {
    readonly [name in keyof O]?: { readonly relative: number; readonly absolute: number };
  },
): Promise<readonly string[]> {
  const want = runOnCpu(operands, launches);
  const got = await runOnGpu(device, operands, launches);
  return entries(operands).flatMap(([name]) => {
    const tolerance = tolerances[name];
    if (!tolerance) return [];
    return mismatches(got[name], want[name], tolerance).map((text) => `${String(name)}${text}`);
  });
}

/** Repeatable numbers in [-1, 1), multiples of 2^-7: exact in every storage format. */
export function testValues(length: number, seed = 1): Float32Array<ArrayBuffer> {
  let state = Math.imul(seed, 0x9e3779b9) ^ 0x5bd1e995;
  // Float32Array.from() takes several times as long.
  const values = new Float32Array(length);
  for (let i = 0; i < length; i++) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5;
    values[i] = ((state >>> 16) % 256) / 128 - 1;
  }
  return values;
}

/** Every other case, by tier. */
const half = <T>(cases: readonly T[], tier: TestTier): readonly T[] =>
  cases.filter((_, i) => (i % 2 === 1) === (tier === "packed"));

/**
 * Cases for a tier. The tiers differ in how halves are loaded and stored, and in subgroups: beside another tier, the packed one takes
 * every other case. So do all tiers in `npm test`, because a software driver takes long to compile a program: lanes take the others.
 */
export const casesOf = <T>(
  cases: readonly T[],
  tier: TestTier,
  tiers: readonly TestTier[],
): readonly T[] =>
  isLane && (tier !== "packed" || tiers.length === 1) ? cases : half(cases, tier);

/** Cases for a tier where tiers share them, in lanes and in `npm test`. A tier that a lane tests alone takes all. */
export const shareOf = <T>(
  cases: readonly T[],
  tier: TestTier,
  tiers: readonly TestTier[],
): readonly T[] => (isLane && tiers.length === 1 ? cases : half(cases, tier));

/** Of these scalars those that a kernel has. */
export const scalarsOf = (
  { scalars }: Pick<Kernel, "scalars">,
  values: Readonly<Record<string, number>>,
): Record<string, number> =>
  Object.fromEntries(scalars.map(({ name }) => [name, values[name] as number]));
